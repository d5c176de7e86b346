"""The matrix games and their agent under the protocol's conformance suite."""

from __future__ import annotations

import pytest

from wsap_check import plugin_host, run_agent_checks, run_checks
from wsap_matrix import plugin


@pytest.mark.parametrize("game", ["matrix", "matrix-turns", "matrix-free"])
@pytest.mark.slow
def test_every_game_passes_every_check(game: str) -> None:
    report = run_checks(game, steps=100, host=plugin_host(plugin))
    assert report.ok, report.to_text()
    assert [f.check for f in report.findings] == ["seeds-matter"]  # there is no chance in them, as they say


@pytest.mark.parametrize("game", ["matching-pennies", "rock-paper-scissors"])
@pytest.mark.slow
def test_options_reach_the_worlds_that_are_checked(game: str) -> None:
    report = run_checks("matrix", steps=40, config={"game": game}, subprocesses=False, host=plugin_host(plugin))
    assert report.ok, report.to_text()


@pytest.mark.parametrize(("agent", "game"), [("random-legal", "matrix"), ("tit-for-tat", "matrix-turns")])
def test_agents_pass_every_check_in_them(agent: str, game: str) -> None:
    report = run_agent_checks(agent, game, host=plugin_host(plugin))
    assert report.findings == (), report.to_text()

"""The worlds of the plugin keep the promises of games."""

from __future__ import annotations

import pytest

from wsap_check import run_checks


@pytest.mark.slow
@pytest.mark.parametrize(("game", "language"), [("lighthouse", "ru")])
def test_a_world_keeps_its_promises(game: str, language: str) -> None:
    report = run_checks(game, steps=6, config={"language": language})
    # The story has no end within so few ticks.
    assert [finding.check for finding in report.findings if finding.severity == "error"] == [], report.to_text()
    assert {finding.check for finding in report.findings} <= {"done"}, report.to_text()


def test_a_world_lives_and_is_restored_as_it_was() -> None:
    report = run_checks("sandbox:village", only=["abilities", "spec", "ticks-continue", "refused-influence"])
    assert report.findings == (), report.to_text()

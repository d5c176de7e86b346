"""`wsap play tossim` tells at its end how to see what everyone knew."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsap_core.cli import main

pytest.importorskip("wsap_tossim")

STOPS = """\
import os, random, signal
from wsap_core.builtin.random_agents import RandomAgent

class Stops(RandomAgent):
    def __init__(self):
        super().__init__(random.Random(3), legal_only=True)
    def reflect(self, result):
        os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.slow
def test_who_played_a_town_is_told_how_to_see_all_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = str(tmp_path / "wsap.db")
    words = ("play", "tossim", "--option", "mode=five", "--option", "rules=quick", "--seed", "3")
    assert main([*words, "--database", database]) == 0
    told = capsys.readouterr().out.splitlines()[-1]
    run = told.split()[-1]
    assert told == f"More about it: wsap tossim replay {run}"
    monkeypatch.chdir(tmp_path)
    assert main(["tossim", "replay", run, "--database", database]) == 0
    assert (tmp_path / f"{run}.html").stat().st_size > 0


def test_a_game_that_was_not_played_to_its_end_is_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "stops.py").write_text(STOPS)
    words = ("play", "tossim", "--option", "mode=five", "--agent", f"{tmp_path}/stops.py:Stops", "--seed", "3")
    assert main([*words, "--database", str(tmp_path / "wsap.db")]) == 130
    out = capsys.readouterr().out
    assert "cut off by the stop: episode 1 after " in out
    assert "More about it" not in out

"""What scripted players believed in a recorded run, held against what they believed while it was played."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsap_core.cli.app import run
from wsap_core.protocol import Action
from wsap_tossim.cli.sources import found
from wsap_tossim.perception.observation import TownObservation
from wsap_tossim.players.agent import TownPlayer
from wsap_tossim.replay import Record, load_record, save_record
from wsap_tossim.replay.runs import record_of_run

BY_NIGHT = ("dusk", "talk at night", "night")
Believed = dict[tuple[int, int], dict[int, float]]


@pytest.fixture
def believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Believed:
    """A folder to be in, and what players believe when they are asked first after a day's talk: day, player."""
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    held: Believed = {}
    decide = TownPlayer.decide

    def watched(self: TownPlayer, observation: Any) -> Action:
        action = decide(self, observation)
        if isinstance(observation, TownObservation) and observation.status["phase"] in BY_NIGHT:
            decider, knowledge = self._decider, self._knowledge
            assert decider is not None
            assert knowledge is not None
            held.setdefault((knowledge.day, observation.player), dict(decider.beliefs(knowledge)))
        return action

    monkeypatch.setattr(TownPlayer, "decide", watched)
    return held


def exported(*options: str) -> list[dict[str, Any]]:
    """Play a game; return its run, line by line."""
    assert run(["play", "tossim", *options, "--json"]) == 0
    assert run(["export", "last", "--output", "run.jsonl", "--force"]) == 0
    return [json.loads(line) for line in Path("run.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_beliefs_are_those_that_the_players_had(believed: Believed, capsys: pytest.CaptureFixture[str]) -> None:
    exported("--option", "mode=five", "--option", "rules=quick", "--seed", "5")
    record = found("run.jsonl", None).record
    assert believed
    again = {(day, player): dict(evil) for day, player, evil in record.beliefs}
    assert again.keys() >= believed.keys()
    assert {key: again[key] for key in believed} == believed
    assert set(record.found_out) == {player for _, player in again}
    save_record(Path("town.json"), record)
    assert load_record(Path("town.json")).to_json() == record.to_json(), "that they were found out is kept"


def test_nothing_is_said_of_those_who_play_otherwise(believed: Believed, capsys: pytest.CaptureFixture[str]) -> None:
    rows = exported("--option", "mode=five", "--seed", "5", "--seat", "player-2=tossim-random")
    record = record_of_run(rows, "run")
    assert 1 not in record.found_out
    assert len(record.found_out) == 4
    rows[0]["config"]["seats"][1]["agent"] = "tossim-player"
    assert record_of_run(rows, "run").found_out == record.found_out, "its choices are not those of a scripted player"


@pytest.mark.slow
def test_a_fork_keeps_what_was_believed_before_it(believed: Believed, capsys: pytest.CaptureFixture[str]) -> None:
    exported("--option", "mode=nine", "--option", "rules=quick", "--seed", "3")
    was = found("run.jsonl", None).record
    late = next(n for n, start in enumerate(was.game.starts) if was.game.log[start - 1].day == 3)
    assert run(["tossim", "fork", "last", "--at", str(late), "--agent", "random", "--json"]) == 0
    assert run(["export", "last", "--output", "fork.jsonl"]) == 0
    now = found("fork.jsonl", None).record
    assert now.beliefs
    assert list(now.beliefs) == [row for row in was.beliefs if row[0] < 3]
    assert set(now.found_out) == {player for _, player, _ in now.beliefs}


def test_a_record_says_whose_beliefs_were_found_out(play: Callable[..., Any], tmp_path: Path) -> None:
    game, _ = play(2)
    record = Record(game, ("Ann", "Bob", "Cid", "Dora", "Eve"), beliefs=[(1, 2, {0: 0.5})], found_out=(2,))
    save_record(tmp_path / "town.json", record)
    assert load_record(tmp_path / "town.json").found_out == (2,)
    assert '"found_out":[2]' in record.page(2)
    assert '"found_out":[]' in record.page(0)

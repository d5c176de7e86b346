"""An episode that its game ends at a limit of steps: in the log, the summary, replays and totals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_kit import own_folder, typed

from wsap_core.protocol import Action, ActionResult, Observation
from wsap_nexus.runs.record.tally import SeatTally
from wsap_nexus.runs.record.trajectory import step_line

GAME = """
from wsap_core import ActionDef, ActionResult, ActionSpace, Observation

class Walk:
    game_description = "Walk until the evening."
    action_space = ActionSpace((ActionDef("walk", "Walk."),))
    def __init__(self, context):
        self.n = 0
    def reset(self, seed=None):
        self.n = 0
        return self.observe()
    def observe(self):
        return Observation(status={"n": self.n}, step=self.n)
    def act(self, action):
        self.n += 1
        over = self.n >= 3
        return ActionResult(True, "", 1.0, done=over, observation=self.observe()SAYS)
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_folder(tmp_path, monkeypatch)
    write_game()


def write_game(says: str = ", truncated=over") -> None:
    Path("game.py").write_text(GAME.replace("SAYS", says))


def played(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    code, out, err = typed(capsys, "play", *words, "--json")
    assert code == 0, err
    return dict(json.loads(out))


def test_the_summary_and_the_log_say_that_a_limit_ended_an_episode(capsys: pytest.CaptureFixture[str]) -> None:
    summary = played(capsys, "./game.py:Walk", "--agent", "random", "--episodes", "2")
    (seat,) = summary["seats"]
    assert (seat["done"], seat["truncated"]) == (True, True)
    assert [(each["outcome"], each["truncated"]) for each in seat["episodes"]] == [("finished", True)] * 2
    assert seat["scored"] == 2
    _, out, _ = typed(capsys, "replay", "last", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row.get("truncated", False) for row in rows if "step" in row] == [False, False, True] * 2
    assert "done at a limit" in typed(capsys, "replay", "last", "--plain")[1]
    assert "as recorded" in typed(capsys, "replay", "last", "--verify")[1]


def test_what_does_not_end_so_has_the_same_bytes_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    write_game(says="")
    summary = played(capsys, "./game.py:Walk", "--agent", "random")
    assert "truncated" not in json.dumps(summary)
    line = step_line("seat-1", Action("walk"), ActionResult(True, done=True, observation=Observation()))
    assert "truncated" not in line


def test_a_run_of_a_version_that_did_not_say_it_is_played_again_and_continued(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_game(says="")
    older = played(capsys, "./game.py:Walk", "--agent", "random", "--steps", "5", "--seed", "1")
    write_game()
    again = played(capsys, "--replay", older["run"])
    assert (again["steps"], again["cut_off"]["by"]) == (5, "steps")
    (seat,) = again["seats"]
    assert [each.get("truncated", False) for each in seat["episodes"]] == [True, False]


def test_the_opposite_is_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    newer = played(capsys, "./game.py:Walk", "--agent", "random", "--steps", "5")
    write_game(says="")
    code, _, err = typed(capsys, "play", "--replay", newer["run"], "--json")
    assert code != 0
    assert "diverged" in err


def test_totals_keep_it_for_episodes_and_the_seat() -> None:
    tally = SeatTally("seat-1", "random")
    for episode, truncated in enumerate((True, False, True)):
        tally.begin_episode(episode, episode)
        tally.count(1.0, (), done=True, info=None, truncated=truncated)
    state = json.loads(json.dumps(tally.state()))
    again = SeatTally("seat-1", "random")
    again.restore(state)
    assert again.truncated
    assert [each.truncated for each in again.all_episodes()] == [True, False, True]
    assert [len(each) for each in state["episodes"]] == [9, 8, 9]
    again.begin_episode(3, 3)
    assert not again.truncated

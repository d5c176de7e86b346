"""What the record of a run says: who played, how each episode ended, and that no figure mixes what differs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from wsap_core import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_core.cli import main
from wsap_core.errors import PluginError
from wsap_core.host import PluginHost
from wsap_core.seams.agent import DecisionInfo
from wsap_nexus.api import list_runs, play, read_run
from wsap_nexus.runs.record.summary import MOST_EPISODES, SeatScore, seats_json
from wsap_nexus.runs.record.tally import SeatTally
from wsap_nexus.runs.session import replies_of, start
from wsap_nexus.runs.store import open_database, open_store
from wsap_nexus.store.locks.run_lock import hold_run
from wsap_nexus.store.records import NewRun
from wsap_nexus.store.repository import Repository


class Fails:
    """Plays two episodes of `echo` and breaks in the third."""

    left = 45

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Nothing to do."""

    def decide(self, observation: Observation) -> Action:
        self.left -= 1
        if not self.left:
            raise RuntimeError("the model is gone")
        return Action("wait")

    def reflect(self, result: ActionResult) -> None:
        """Nothing to do."""

    def plan(self, goals: list[Goal]) -> list[str]:
        return []


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WSAP_DATABASE", raising=False)


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    return (code, *capsys.readouterr())


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    return list(json.loads(typed(capsys, "runs", "--json", *words)[1]))


def outcomes(row: Any) -> list[tuple[str, int]]:
    return [(episode["outcome"], episode["steps"]) for episode in row["seats"][0]["episodes"]]


def test_an_episode_that_was_cut_off_is_in_no_score(capsys: pytest.CaptureFixture[str]) -> None:
    summary = play("echo", "random", steps=50)
    row = rows(capsys)[0]
    for told in (summary.to_json(), row):
        assert outcomes(told) == [("finished", 20), ("finished", 20), ("step_limit", 10)]
        (seat,) = told["seats"]
        whole, rest = seat["episodes"][:2], seat["left_out"]["unfinished"]
        assert (seat["scored"], rest["episodes"], rest["steps"]) == (2, 1, 10)
        assert told["score"] == seat["score"]
        assert sum(e["reward"] for e in whole) + rest["reward"] == pytest.approx(told["reward"])
    assert row["reason"] == "cut off by the step limit: episode 3 after 10 steps"
    alone = play("echo", "random", steps=10)
    assert (dict(alone.metrics), alone.to_json()["score"]) == ({}, {})
    # The table shows it, and that it is not whole.
    assert typed(capsys, "runs", "--limit", "1")[1].split("\t")[6].startswith("(")
    code, out, _ = typed(capsys, "play", "echo", "--steps", "50")
    assert code == 0
    assert "not scored: 1 unfinished episode of 10 steps, reward" in out


def test_a_run_that_failed_says_why_and_how_far_its_episodes_came(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PluginError, match="the model is gone"):
        play("echo", Fails, episodes=3)
    (row,) = rows(capsys)
    assert (row["status"], row["cut_off"]["by"], row["seats"][0]["scored"]) == ("failed", "failed", 2)
    assert "the model is gone" in row["reason"]
    assert outcomes(row) == [("finished", 20), ("finished", 20), ("failed", 4)]


def test_an_episode_of_mostly_forced_decisions_is_not_its_agents() -> None:
    tally = SeatTally("seat-1", "llm", {"model": "openai/x"})
    for episode, forced in enumerate((2, 3)):
        tally.begin_episode(episode, 7)
        for number in range(4):
            info = DecisionInfo(forced=number < forced, cause="it could not be read")
            tally.count(1.0, (), done=number == 3, info=info)
    found = SeatScore.of(tally, "stopped").to_json()
    assert [(e["outcome"], e["forced"]) for e in found["episodes"]] == [("finished", 2), ("finished", 3)]
    assert (found["scored"], found["left_out"]["forfeited"]["episodes"]) == (1, 1)
    again = SeatTally("seat-1", "llm")
    again.restore(json.loads(json.dumps(tally.state())))
    assert SeatScore.of(again, "stopped").to_json() == found


def test_a_summary_lists_no_more_episodes_than_it_bears() -> None:
    seats = [SeatTally(name, "random") for name in ("row", "column")]
    for seat in seats:
        for episode in range(300):
            seat.begin_episode(episode, episode)
            seat.count(1.0, (), done=True, info=None)
    told = seats_json(seats, {seat.name: SeatScore.of(seat, "stopped") for seat in seats})
    assert [len(seat["episodes"]) for seat in told] == [MOST_EPISODES // 2] * 2
    assert (told[0]["episodes"][-1]["episode"], told[0]["episodes_before"], told[0]["scored"]) == (299, 200, 300)


def test_several_seats_have_a_score_each_and_none_together(capsys: pytest.CaptureFixture[str]) -> None:
    summary = play("matrix", seats={"row": "always", "column": "tit-for-tat"}, agent_options={"action": "defect"})
    (row,) = rows(capsys)
    for told in (summary.to_json(), row):
        assert (told["reward"], told["score"]) == (None, None)
        # Axelrod 1984: 5 + 9 x 1 against 0 + 9 x 1.
        assert [(s["seat"], s["score"]) for s in told["seats"]] == [
            ("row", {"mean_payoff": 1.4}), ("column", {"mean_payoff": 0.9})
        ]  # fmt: skip
    assert (summary.reward, dict(summary.metrics)) == (None, {})
    assert typed(capsys, "runs")[1].split("\t")[5:7] == ["14/9", "1.4/0.9"]


def test_runs_are_deleted_whole(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = (play("echo", "random", steps=5, seed=seed).run for seed in (1, 2, 3))
    assert first is not None
    assert third is not None
    assert typed(capsys, "runs", "rm", first, "nobody", "--yes")[0] == 2
    with open_database() as database, hold_run(database, third):
        code, _, err = typed(capsys, "runs", "rm", first, third, "--yes")
        assert (code, "is being played by another process" in err) == (6, True)
    assert len(list_runs()) == 3
    code, out, _ = typed(capsys, "runs", "rm", first, third, third, "--json")
    assert code == 0
    assert json.loads(out)["deleted"] == [first, third]
    assert [run.id for run in list_runs()] == [second]
    with open_database() as database:
        assert Repository(database).count_events(first) == 0
    code, out, _ = typed(capsys, "runs", "rm", "last", "--yes")
    assert (code, out.startswith("Deleted 1 run with ")) == (0, True)


def test_a_branched_run_stays_while_its_branch_needs_it(capsys: pytest.CaptureFixture[str]) -> None:
    with open_store() as store:
        whole = store.repository.create_run(NewRun(game="pond", agent="world", id="whole"))
        branch = NewRun(game="pond", agent="world", id="branch", config={"branched_from": {"run": "whole", "step": 3}})
        store.repository.create_run(branch)
    code, _, err = typed(capsys, "runs", "rm", whole.id, "--yes")
    assert (code, "has the branch 'branch'" in err) == (2, True)
    assert rows(capsys)[0]["branched_from"] == {"run": "whole", "step": 3}
    assert typed(capsys, "runs", "rm", "whole", "branch", "--yes")[0] == 0


def test_a_replay_says_what_it_plays_again() -> None:
    host = PluginHost.discovered()
    run = play("echo", "random", steps=3).run
    assert run is not None
    with open_store() as store:
        plan, past = replies_of(run, store)
        with start(plan, host, store, past=past) as session:
            assert session.run.run_id is not None
            record = store.repository.get_run(session.run.run_id)
    assert record.config["replay"] == run


REPLY = '{"action": "wait", "params": {}, "reasoning": "I look around."}'


def test_an_export_of_conversations_says_how_many_calls_of_the_world_it_left_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("wsap_sandbox", reason="needs a world that asks a model")
    assert typed(capsys, "play", "sandbox:village", "--steps", "1")[0] == 0
    code, _, err = typed(capsys, "export", "last", "--format", "chat", "--output", str(tmp_path / "chat.jsonl"))
    assert (code, "Wrote 0 lines" in err) == (0, True)
    assert re.search(r"Also left out: [1-9]\d* calls of the world itself", err)


@pytest.mark.slow
def test_decisions_of_models_are_exported_as_conversations(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    good = ("play", "echo", "--agent", "scripted/x", "--agent-option", "plan=no", "--steps", "4")
    assert typed(capsys, *good, "--model-option", f"reply={json.dumps(REPLY)}")[0] == 0
    assert typed(capsys, *good, "--model-option", "reply=mumble")[0] == 0
    assert typed(capsys, "play", "echo", "--agent", "random", "--steps", "3")[0] == 0
    assert typed(capsys, "play", "matrix", "--agent", "random")[0] == 0
    file = tmp_path / "chat.jsonl"
    code, _, err = typed(capsys, "export", "--game", "echo", "--format", "chat", "--output", str(file))
    assert (code, "Wrote 4 lines" in err) == (0, True)
    assert "Left out: 4 forced decisions, 3 steps without a model's reply." in err
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        roles = [message["role"] for message in line["messages"]]
        assert (roles[0], roles[-2:]) == ("system", ["user", "assistant"])
        assert line["messages"][-1]["content"] == REPLY
        assert (line["action"]["name"], line["model"], line["forced"]) == ("wait", "scripted/x", False)
    assert [line["step"] for line in lines] == [0, 1, 2, 3]
    code, out, _ = typed(capsys, "export", "--game", "echo", "--format", "chat", "--forced")
    assert [json.loads(line)["forced"] for line in out.splitlines()] == [False] * 4 + [True] * 4
    # Several runs are one file in the other format, too.
    runs = [run.id for run in list_runs()]
    heads = [json.loads(line) for line in typed(capsys, "export", *runs)[1].splitlines() if '"format"' in line]
    assert [head["run"] for head in heads] == runs
    assert typed(capsys, "export", "--game", "echo", "last")[0] == 2


def test_what_a_notebook_shows_is_a_line_or_two() -> None:
    summary = play("crafter", "random", steps=3)
    run = read_run()
    for shown in (summary, summary.seats[0], run, run.record, run.steps[0].result, run.steps[0].result.observation):
        assert len(repr(shown)) < 700
    assert "reward=" in repr(summary)
    assert repr(run.steps[0].result.observation).startswith("CrafterObservation(")
    assert "game='crafter'" in repr(run)
    assert repr(run).endswith("<3 steps>)")

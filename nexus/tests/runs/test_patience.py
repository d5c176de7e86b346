"""Calls of games and agents that do not return, as a user of `wsap play` and `wsap eval` meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_kit import own_folder, typed

from wsap_nexus.cli.playing.interruption import Interruption
from wsap_nexus.runs.play import patience

FILE = """
import os, signal, time
from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Observation

def for_ever(word):
    end = time.process_time() + 100  # so that a failing test ends
    while time.process_time() < end:
        try:
            pass
        except Exception:
            pass
    raise RuntimeError("nobody ended it")

class Endless:
    game_description = "Count."
    action_space = ActionSpace((ActionDef("count", "Count."),))
    signals = ()
    def __init__(self, context):
        self.n = 0
    def reset(self, seed=None):
        self.n = 0
        return self.observe()
    def observe(self):
        return Observation(status={"n": self.n}, step=self.n)
    def act(self, action):
        self.n += 1
        if self.n == 3:
            for number in self.signals:
                os.kill(os.getpid(), number)
            for_ever("act")
        return ActionResult(True, str(self.n), 1.0, observation=self.observe())

class Interrupted(Endless):
    "Gets Ctrl-C in its endless loop."
    signals = (signal.SIGINT,)

class Terminated(Endless):
    "Is told to end in its endless loop."
    signals = (signal.SIGTERM,)

class Twice(Endless):
    "Is told twice."
    signals = (signal.SIGINT, signal.SIGINT)

class Short(Endless):
    def act(self, action):
        self.n += 1
        return ActionResult(True, str(self.n), 1.0, done=self.n == 4, observation=self.observe())

class Thinker:
    "Never comes to a decision."
    def initialize(self, game_desc, action_space): pass
    def decide(self, observation):
        while True:
            for_ever("decide")
    def reflect(self, result): pass
    def plan(self, goals): return []
"""
LOOP = next(n for n, line in enumerate(FILE.splitlines(), 1) if "while time.process" in line)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_folder(tmp_path, monkeypatch)
    Path("game.py").write_text(FILE)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a call one second of processor time."""
    monkeypatch.setattr(patience, "MOST", 1.0)


def names_the_loop(said: str) -> bool:
    return any(f"at game.py:{line}, within 1 s of processor time." in said for line in range(LOOP - 1, LOOP + 6))


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_an_endless_loop_of_a_game_ends_the_run_with_its_call_file_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = typed(capsys, "play", "./game.py:Endless", "--steps", "9")
    assert code == 4
    assert "The game 'endless' did not return from act(Action('count'))" in err
    assert names_the_loop(err), err
    (row,) = json.loads(typed(capsys, "runs", "--json")[1])
    assert (row["status"], row["steps"]) == ("failed", 2)


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_an_endless_loop_of_an_agent_is_the_agents(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = typed(capsys, "play", "./game.py:Short", "--agent", "./game.py:Thinker")
    assert code == 3
    assert "The agent './game.py:Thinker' in seat 'seat-1' did not return from decide(" in err
    assert names_the_loop(err), err


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_an_evaluation_goes_on_after_an_endless_loop(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("eval", "--game", "./game.py:Short", "--entrant", "random", "--entrant", "./game.py:Thinker,label=thinker")
    _, out, err = typed(capsys, *words, "--seeds", "2", "--jobs", "1", "--out", "results")
    records = [json.loads(line) for line in Path("results/episodes.jsonl").read_text().splitlines()]
    assert len(records) == 4, out + err
    ended = {(record["entrant"], record["outcome"]) for record in records}
    assert ("random", "finished") in ended
    assert names_the_loop(Path("results/episodes.jsonl").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("game", ["Interrupted", "Terminated", "Twice"])
def test_a_run_whose_game_loops_is_ended_by_a_signal(
    game: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Interruption, "GRACE", 60.0 if game == "Twice" else 0.1)
    code, out, err = typed(capsys, "play", f"./game.py:{game}", "--steps", "9")
    assert code == 130, out + err
    assert "continue with: wsap play --resume" in err
    (row,) = json.loads(typed(capsys, "runs", "--json")[1])
    assert (row["status"], row["steps"], row["resumable"]) == ("interrupted", 2, True)


def test_the_timer_is_gone_after_the_last_of_several_runs() -> None:
    import asyncio
    import signal

    async def overlapping() -> None:
        first, second = patience.watched(60), patience.watched(60)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert signal.getitimer(signal.ITIMER_PROF)[0] > 0, "one is still in play"
        second.__exit__(None, None, None)
        assert signal.getitimer(signal.ITIMER_PROF)[0] == 0

    before = signal.getsignal(signal.SIGPROF)
    asyncio.run(overlapping())
    assert signal.getsignal(signal.SIGPROF) == before

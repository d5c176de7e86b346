"""The progress of an evaluation: how long it takes yet, and which model it waits for."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from wsap_core.seams.model import Draft, Message, Request
from wsap_eval.commands.live import Live
from wsap_eval.jobs.runner import Progress
from wsap_eval.records import EpisodeRecord
from wsap_llm.kit import Waited
from wsap_llm.middleware.show import Thought

FAST, SLOW = ("dig", "random"), ("dig", "qwen")


def ended(cell: tuple[str, str], seed: int, seconds: float) -> EpisodeRecord:
    return EpisodeRecord(*cell, seed, 0, "finished", "", 1.0, {}, 1, 0.0, (), (), "", seconds=seconds)


def shown(live: Live) -> str:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(live._picture())
    return console.export_text()


def test_the_time_left_is_that_of_the_entrants_that_are_left(tmp_path: Path) -> None:
    now = [0.0]
    live = Live(tmp_path, clock=lambda: now[0])
    for seed in range(20):  # twenty quick ones within a second
        now[0] += 0.05
        live(Progress(seed + 1, 40, ended(FAST, seed, 0.05), {FAST: 19 - seed, SLOW: 20}))
        assert "left" not in shown(live), "no episode of the model has ended yet"
    now[0] += 60
    live(Progress(21, 40, ended(SLOW, 0, 60.0), {FAST: 0, SLOW: 19}))
    assert "21 of 40 episodes, about 19 min left" in shown(live)


def test_one_sees_which_model_is_waited_for_before_any_episode_ends(tmp_path: Path) -> None:
    now, waited = [0.0], Waited()
    live = Live(tmp_path)
    live.watch(waited)
    request = Request([Message("user", "word " * 1562)])
    first, other = (Thought("", "openai/qwen", request, lambda: now[0]) for _ in range(2))
    for thought in (first, other):
        waited.began(thought)
    other.move(Draft(waiting="waits for a free slot"))
    now[0] = 43.0
    assert "openai/qwen: reading 1,566 tokens, 43 s; 1 other waits" in shown(live)
    first.move(Draft("I look around."))
    assert "openai/qwen: writing, 43 s; 1 other waits" in shown(live)
    waited.ended(first)
    assert "openai/qwen: waits for a free slot, 43 s" in shown(live)
    waited.ended(other)
    assert "openai" not in shown(live)


@pytest.mark.parametrize("quiet", [True, False])
def test_without_a_terminal_a_line_is_printed_for_each_tenth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, quiet: bool
) -> None:
    now = [0.0]
    live = Live(tmp_path, quiet=quiet, clock=lambda: now[0])
    for seed in range(10):
        now[0] += 2
        live(Progress(seed + 1, 10, ended(SLOW, seed, 2.0), {SLOW: 9 - seed}))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == (0 if quiet else 10)
    if lines:
        assert lines[4] == "5 of 10 episodes, about 10 s left"


def test_of_games_of_several_entrants_one_line_tells_how_far_it_is_and_one_what_is_waited_for(tmp_path: Path) -> None:
    now, waited = [0.0], Waited()
    live = Live(tmp_path, games=True, clock=lambda: now[0])
    live.watch(waited)
    assert shown(live).splitlines() == ["Playing the first games."]
    now[0] = 4.0
    thought = Thought("", "openai/qwen", Request([Message("user", "word " * 1562)]), lambda: now[0])
    waited.began(thought)
    live(Progress(1, 3, ended(SLOW, 0, 4.0), {SLOW: 2}, "at this rate 12 calls in all"))
    assert [line.rstrip() for line in shown(live).splitlines()] == [
        "1 of 3 games, about 8 s left, at this rate 12 calls in all",
        "openai/qwen: reading 1,566 tokens, 0 s",
    ]
    waited.ended(thought)
    live(Progress(3, 3, ended(SLOW, 1, 4.0), {SLOW: 0}))
    assert [line.rstrip() for line in shown(live).splitlines()] == ["3 of 3 games"]

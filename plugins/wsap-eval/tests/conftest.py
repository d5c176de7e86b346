"""Folders of results, made by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite
from wsap_eval.records import EpisodeRecord, Outcome, SeatRecord
from wsap_eval.results import Results

MakeResults = Callable[..., Path]


def episode(entrant: str, seed: int, value: float | None, outcome: Outcome, **about: object) -> EpisodeRecord:
    llm = entrant not in ("random", "minigrid-finder")
    seat = SeatRecord("seat-1", entrant, 40, value or 0.0, ("take_key",), outcome == "finished", 3 if llm else 0, 0)
    reason = {"failed": "The provider did not answer.", "forfeited": "30 of 40 decisions had to be forced"}
    told: dict[str, object] = {
        "run": f"eval-{entrant[:3]}{seed}", "started": "2026-11-20T10:00:00+00:00", "seconds": 1.5,
        "calls": 40 if llm else 0, "prompt_tokens": 4000 if llm else 0, "cost": 0.01 if llm else 0.0,
        "conditions": {"legal": "bound", "wsap": "0.1.0"} | ({"models": entrant, "prompts": "3-8b2f"} if llm else {}),
    }  # fmt: skip
    metrics = {} if value is None else {"levels": value}
    trajectory = "" if outcome == "failed" else f"{entrant}{seed}"
    return EpisodeRecord(
        "minigrid", entrant, seed, 0, outcome, reason.get(outcome, ""), value, metrics, 40, value or 0.0,
        ("take_key",), (seat,), trajectory, **(told | about),  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.fixture
def make_results(tmp_path: Path) -> MakeResults:
    """Make a folder in which entrants played seeds of MiniGrid."""

    def make(
        entrants: Sequence[str] = ("random", "openai/x"), *, name: str = "r", first: int = 0, seeds: int = 6
    ) -> Path:
        suite = Suite(
            name="rooms",
            games=(GameEntry(game="minigrid", steps=40, metric="levels"),),
            entrants=tuple(Entrant(agent=entrant) for entrant in entrants),
            seeds=Seeds(first=first, count=seeds),
        )
        rng = random.Random(7)
        with Results(tmp_path / name, suite) as results:
            for number, entrant in enumerate(entrants):
                for seed in range(first, first + seeds):
                    results.add(episode(entrant, seed, float(min(8, number + rng.randrange(4))), "finished"))
            last = entrants[-1]
            if seeds > 3 and last != "random":
                results.add(episode(last, first + 1, None, "forfeited"))
                results.add(episode(last, first + 2, None, "failed"))
        return tmp_path / name

    return make

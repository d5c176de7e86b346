"""Kill a story's process again and again, and compare what it comes to with a story that nobody disturbed.

    python plugins/wsap-sandbox/tests/kill_story.py [--kills N] [--seed N] [--overlap]

Each kill is a SIGKILL at a random moment of a run whose model takes some milliseconds and counts what it is asked. At
the end the story goes on to its last tick, and then equals the undisturbed one, which is asked one call at a time: its
state, ledger, narration, and the requests behind every line. No call whose answer was recorded is ever asked again;
those that were on their way at a kill are asked again, and counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsap_core.seams.model import Backend, OnText, Reply, Request
from wsap_core.seams.services import runtime_services
from wsap_sandbox.storyteller import backend as storyteller

STORY = "killed"
OPTIONS: dict[str, Any] = {"template": "village", "language": "en", "cells": 2}
_SNAPSHOTS = 7


@dataclass
class Outcome:
    """What came of it."""

    kills: int
    ticks: int
    asked_again: int
    """Calls that were on their way when the process was killed, and were asked again."""
    paid_twice: list[str]
    """Keys of calls that were asked again although their answer was recorded."""
    differences: list[str]
    """What is not as in the undisturbed story."""


class Paid:
    """The storyteller behind a delay, who writes down what it is asked."""

    def __init__(self, backend: Backend, book: Path, delay: float) -> None:
        self._backend = backend
        self._book = book
        self._delay = delay
        self.model, self.abilities = backend.model, backend.abilities

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        with self._book.open("a", encoding="utf-8") as book:
            book.write(request.key + "\n")
        await asyncio.sleep(self._delay * random.random())
        return await self._backend.complete(request, on_text)

    async def aclose(self) -> None:
        await self._backend.aclose()


def play(
    database: Path, name: str, book: Path, ticks: int | None, *, concurrency: int, delay: float, overlap: bool
) -> None:
    """Let a story go on, to its tick of that number or for ever."""
    create = storyteller.create
    storyteller.create = lambda context: Paid(create(context), book, delay)  # type: ignore[assignment,return-value]
    options = {**OPTIONS, "concurrency": concurrency, "overlap": overlap}

    async def go_on() -> None:
        with runtime_services(str(database)) as services:
            assert services.runner is not None
            assert services.runs is not None
            left = None
            if ticks is not None:
                begun = bool(set(services.runs.runs()) & {name})
                left = ticks - (services.runs.ticks(name) if begun else 0)
            print("begun", flush=True)
            await services.runner.play("sandbox", {}, options=options, run=name, steps=left, snapshot_every=_SNAPSHOTS)
            models: Any = services.models
            await models.aclose()

    asyncio.run(go_on())


def _child(
    database: Path, name: str, book: Path, ticks: int | None, concurrency: int, delay: float, overlap: bool
) -> Any:
    words = [database, name, book, "-" if ticks is None else ticks, concurrency, delay, int(overlap)]
    return subprocess.Popen(
        [sys.executable, __file__, "--child", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _lines(book: Path) -> list[str]:
    return book.read_text("utf-8").splitlines() if book.exists() else []


def _answered(database: Path, name: str) -> set[str]:
    """Return the keys of the calls whose answers are recorded."""
    with runtime_services(str(database)) as services:
        assert services.runs is not None
        if name not in services.runs.runs():
            return set()
        return {event["body"]["key"] for event in services.runs.events(name, "call")}


def _told(database: Path, name: str) -> dict[str, Any]:
    """Return everything that two equal stories have in common."""
    with runtime_services(str(database)) as services:
        assert services.runs is not None
        runs = services.runs
        calls = [event["body"] for event in runs.events(name, "call")]
        return {
            "state": asyncio.run(runs.restored(name)).snapshot().hex(),  # type: ignore[attr-defined]
            "ledger": [event["body"] for event in runs.history(name, "tick")],
            "story": sorted(json.dumps(event["body"], sort_keys=True) for event in runs.history(name, "story")),
            "prompts": sorted((call["key"], call["request"]) for call in calls),
            "calls": [key for key, times in Counter(call["key"] for call in calls).items() if times > 1],
        }


_PATIENCE = 300.0
"""Seconds to wait for a number of answers."""


def killed(
    folder: Path, kills: int, *, seed: int = 0, overlap: bool = False, delay: float = 0.01, answers: int = 40
) -> Outcome:
    """Kill a story that often, each time after less than `answers` answers of its model, let it come to an end, and
    compare it with an undisturbed one."""
    rng = random.Random(seed)
    database, book = folder / "killed.db", folder / "killed.txt"
    twice: list[str] = []
    for _ in range(kills):
        answered, asked = _answered(database, STORY), len(_lines(book))
        child = _child(database, STORY, book, None, 16, delay, overlap)
        assert child.stdout is not None
        if child.stdout.readline() != "begun\n":
            raise AssertionError(child.stderr.read())
        wanted, end = asked + rng.randrange(answers), time.monotonic() + _PATIENCE
        while len(_lines(book)) < wanted and time.monotonic() < end:
            time.sleep(0.005)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        twice += [key for key in _lines(book)[asked:] if key in answered]
    with runtime_services(str(database)) as services:
        assert services.runs is not None
        ticks = services.runs.ticks(STORY) + 3
    for name, where, concurrency in ((STORY, database, 16), ("calm", folder / "calm.db", 1)):
        own = book if name == STORY else folder / "calm.txt"
        child = _child(where, name, own, ticks, concurrency, 0.0, overlap and name == STORY)
        _, errors = child.communicate(timeout=3600)
        if child.returncode:
            raise AssertionError(errors)
    one, other = _told(database, STORY), _told(folder / "calm.db", "calm")
    asked = _lines(book)
    return Outcome(
        kills, ticks, len(asked) - len(set(asked)), twice, [what for what in one if one[what] != other[what]]
    )


def main() -> int:
    """Run the script, or one life of the story."""
    if sys.argv[1:2] == ["--child"]:
        database, name, book, ticks, concurrency, delay, overlap = sys.argv[2:]
        play(Path(database), name, Path(book), None if ticks == "-" else int(ticks),
             concurrency=int(concurrency), delay=float(delay), overlap=overlap == "1")  # fmt: skip
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--overlap", action="store_true", help="tell stories beside the next tick")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = killed(Path(folder), given.kills, seed=given.seed, overlap=given.overlap)
    different = ", ".join(outcome.differences) or "nothing"
    print(f"{outcome.kills} kills, {outcome.ticks} ticks, {outcome.asked_again} calls on their way asked again, "
          f"{len(outcome.paid_twice)} answered calls asked again, different: {different}")  # fmt: skip
    return int(bool(outcome.paid_twice or outcome.differences))


if __name__ == "__main__":
    sys.exit(main())

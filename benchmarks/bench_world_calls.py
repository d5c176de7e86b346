"""Measure the cost of recording a world's model calls in its run.

    python benchmarks/bench_world_calls.py [--ticks N] [--repeats N] [--json]

A tick has 50 characters and 20 places: 140 calls (100 at once, then 20, then 20) with prompts of 1,500 characters and a
schema, answered at once. Printed are milliseconds per call at the median of N ticks (40): minimum, median and maximum
of the repeats (5), and the ratio to `bare`. `bare` calls the backend directly; `not recorded` uses a run's journal
without a log; `recorded` commits each call to a database before the world gets the reply; `replayed` reads replies
from there.

Goal: 0.3 ms per call when recorded. The exit status is 1 if it is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from wsap_core import PluginHost
from wsap_core.host import Registration
from wsap_core.protocol import Tick
from wsap_core.seams.agent import Usage
from wsap_core.seams.context import Context
from wsap_core.seams.model import Abilities, Backend, Finish, JsonConstraint, Message, OnText, Reply, Request
from wsap_core.specs import AdapterSpec, BackendSpec
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.session import replies_of, start, unrecorded
from wsap_nexus.runs.store import open_store

STAGES = {"intent": 100, "scene": 20, "story": 20}
CALLS = sum(STAGES.values())
GOAL = 0.3
PROMPT = "The miller thinks about the flour and about what was said last night. " * 21
REPLY = json.dumps({"act": "id-7", "why": PROMPT[:200]})
SCHEMA = {"type": "object", "properties": {"act": {"enum": [f"id-{i}" for i in range(60)]}, "why": {"type": "string"}}}


class Instant:
    """A model that replies at once."""

    model = "instant/it"
    abilities = Abilities(json_schema=True)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Give the reply."""
        return Reply(REPLY, finish=Finish(usage=Usage(1, 400, 60, 0.0)))

    async def aclose(self) -> None:
        """Do nothing."""


class Village:
    """A world that keeps only its ticks."""

    game_description = "A village."
    seconds: ClassVar[list[float]] = []

    def __init__(self, context: Context) -> None:
        self._models = context.services.require("models")
        self._bare = context.config.get("bare", False)
        self._backend: Backend | None = None
        self._tick = 0

    def reset(self) -> None:
        """Begin."""
        self._tick = 0

    async def advance(self) -> Tick:
        """Ask everybody, stage by stage."""
        if self._backend is None:
            self._backend = Instant() if self._bare else await self._models.open("instant/it")
        self._tick += 1
        began = time.perf_counter()
        for stage, count in STAGES.items():
            await asyncio.gather(*(self._ask(f"{self._tick}/{stage}/{i}/0") for i in range(count)))
        self.seconds.append(time.perf_counter() - began)
        return Tick(self._tick)

    async def _ask(self, key: str) -> None:
        messages = (Message("system", PROMPT), Message("user", f"{key}: what do you do?"))
        assert self._backend is not None
        await self._backend.complete(Request(messages, constraint=JsonConstraint(SCHEMA), key=key))


def host() -> PluginHost:
    """Return a host with the village and its model."""
    found = PluginHost()
    spec = AdapterSpec("village", "", Village, abilities=("lives",), seats=(0, 0), asks_models=True)
    found.games.add(Registration(spec, "bench", "bench"))
    found.backends.add(Registration(BackendSpec("instant", "", lambda context: Instant()), "bench", "bench"))
    return found


def measured(ticks: int, folder: Path) -> dict[str, float]:
    """Return milliseconds per call in each way, at the median tick."""
    plan = RunPlan("village", (), steps=ticks)
    here = host()

    def per_call(play: Callable[[], object]) -> float:
        Village.seconds.clear()
        play()
        return 1000 * statistics.median(Village.seconds) / CALLS

    found = {
        "bare": per_call(lambda: asyncio.run(unrecorded(RunPlan("village", (), steps=ticks, options={"bare": True}),
                                                        here).play())),
        "not recorded": per_call(lambda: asyncio.run(unrecorded(plan, here).play())),
    }  # fmt: skip
    with open_store(str(folder / "bench.db")) as store:
        with start(plan, here, store) as session:
            found["recorded"] = per_call(lambda: asyncio.run(session.play()))
        again, past = replies_of("last", store)
        with start(again, here, store, past=past) as session:
            found["replayed"] = per_call(lambda: asyncio.run(session.play()))
    return found


def main() -> int:
    """Measure and print; 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ticks", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows: list[dict[str, float]] = []
    for _ in range(given.repeats):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measured(given.ticks, Path(folder)))
    times = {way: [row[way] for row in rows] for way in rows[0]}
    ratios = {way: statistics.median(row[way] / row["bare"] for row in rows) for way in times}
    reached = statistics.median(times["recorded"]) <= GOAL
    if given.json:
        print(json.dumps({"ms_per_call": times, "times_bare": ratios, "goal": GOAL, "reached": reached}))
        return 0 if reached else 1
    for way, each in times.items():
        spread = f"{min(each):.3f} to {max(each):.3f}"
        print(f"{way:13} {statistics.median(each):.3f} ms per call ({spread}), {ratios[way]:.1f} times bare")
    print(f"goal of at most {GOAL} ms recorded: {'reached' if reached else 'MISSED'}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())

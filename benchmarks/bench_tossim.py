"""Measure the town with a model behind HTTP in each seat: a night in latencies, and concurrent games.

    python benchmarks/bench_tossim.py [--case latency] [--latency S] [--games N] [--repeat N] [--quick] [--json]

A model server in another process answers every request with `wait` after the latency. Everything else is the real
runtime: `llm` agents in the JSON style, sessions, and one durable log.

A night consists of consecutive parts, in each of which all players decide at once: dusk if there is a jailor, each
round of talk, and the night itself. A part's ideal is one latency; printed are the ratio with its range, and the
latencies of a whole night.

The ideal of concurrent games is the slower of one game alone and all requests at the limit of those in flight. By day
players speak one after another, so that a single game rarely has more than one request in flight. The exit status is 1
if a part takes more than 1.5 latencies, or concurrent games take more than 1.25 times their ideal.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench_backends import server

from wsap_core.host import PluginHost
from wsap_core.protocol import Action
from wsap_core.seams.services import Services
from wsap_llm.backends.pool import ModelPool, RequestPolicy
from wsap_nexus.runs.gc_tuning import tune_gc
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.session import start
from wsap_nexus.runs.store import open_store
from wsap_tossim.engine.data.model import Phase
from wsap_tossim.world import Town

REPLY = json.dumps({"action": "wait", "params": {}, "reasoning": "I wait and see what the others do."})
SEATS = 15
AT_NIGHT = (Phase.DUSK, Phase.TALK_AT_NIGHT, Phase.NIGHT)
Part = tuple[Phase, int, float]
"""A round: its phase, number of requests, and end time."""
MOST_OF_A_PART, MOST_OF_GAMES = 1.5, 1.25


def plan(seed: int, talk: int) -> RunPlan:
    """Return a game of fifteen models: two nights, and a day between them with one request each."""
    seats = tuple(SeatPlan(f"player-{n + 1}", "llm", {"model": "openai/m"}) for n in range(SEATS))
    rules = {"first_day": "none", "discussion_rounds": 0, "nomination_rounds": 1, "deathless_days": 2}
    return RunPlan("tossim", seats, seed=seed, options={**rules, "night_talk_rounds": talk})


@contextmanager
def watched() -> Iterator[dict[int, list[Part]]]:
    """Record the end of each round, by the town's id."""
    rounds: dict[int, list[Part]] = {}
    resolve = Town._resolve

    def noting(town: Town, moves: Mapping[str, Action]) -> Any:
        phase = town.game.phase
        rounds.setdefault(id(town), []).append((phase, len(moves), time.perf_counter()))
        return resolve(town, moves)

    Town._resolve = noting  # type: ignore[method-assign, assignment]
    try:
        yield rounds
    finally:
        Town._resolve = resolve  # type: ignore[method-assign]


async def play(port: int, folder: str, plans: Sequence[RunPlan], limit: int) -> tuple[list[list[Part]], float, float]:
    """Play games concurrently; return their rounds, the start time, and the total seconds."""
    host = PluginHost.discovered()
    options = {"openai": {"base_url": f"http://127.0.0.1:{port}/v1"}}
    models = ModelPool(host, options=options, policy=RequestPolicy(concurrency=limit))
    services, controls = Services(models=models), Controls()
    with watched() as rounds, ExitStack() as stack:
        store = stack.enter_context(open_store(str(Path(folder) / f"{time.time_ns()}.db")))
        sessions = [stack.enter_context(start(p, host, store, controls=controls, services=services)) for p in plans]
        tune_gc()  # as `wsap play` does
        began = time.perf_counter()
        await asyncio.gather(*(session.play() for session in sessions))
        seconds = time.perf_counter() - began
        found = list(rounds.values())
    await models.aclose()
    return found, began, seconds


def nights(rounds: Sequence[Part], latency: float) -> Iterator[list[float]]:
    """Yield each night but the first as the latencies of its parts."""
    night: list[float] = []
    for (_, _, before), (phase, _, after) in itertools.pairwise(rounds):
        if phase in AT_NIGHT:
            night.append((after - before) / latency)
        elif night:
            yield night
            night = []
    if night:
        yield night


def one_night(options: argparse.Namespace, port: int, folder: str, talk: int) -> dict[str, Any]:
    """Return the durations of nights with that many rounds of talk (Any: figures)."""
    parts: list[float] = []
    whole: list[float] = []
    many: list[int] = []
    for seed in range(options.repeat):
        (rounds,), _, _ = asyncio.run(play(port, folder, [plan(seed, talk)], 10_000))
        last = max(i for i, (phase, _, _) in enumerate(rounds) if phase not in AT_NIGHT)
        for night in nights(rounds[last:], options.latency):
            parts += night
            whole.append(sum(night))
            many.append(len(night))
    return {"parts": parts, "whole": whole, "parts_a_night": many}


def at_once(options: argparse.Namespace, port: int, folder: str, limit: int) -> dict[str, Any]:
    """Return the time of concurrent games relative to their ideal (Any: figures)."""
    ratios = []
    for turn in range(max(1, options.repeat // 2)):
        plans = [plan(100 * turn + n, 1) for n in range(options.games)]
        found, _, seconds = asyncio.run(play(port, folder, plans, limit))
        alone = max(len(rounds) for rounds in found) * options.latency
        requests = sum(asked for rounds in found for _, asked, _ in rounds)
        ratios.append(seconds / max(alone, requests * options.latency / limit))
    return {"limit": limit, "of_ideal": ratios, "seconds": seconds, "requests": requests}


def told(values: Sequence[float]) -> str:
    """Return the median and the range."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f}, {len(values)} measured)"


def main() -> int:
    """Measure and print; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=("latency",), default="latency")
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--games", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one game, and few concurrent ones")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.repeat, options.games = 1, 3
    with server(options.latency, REPLY) as port, tempfile.TemporaryDirectory() as folder:
        by_talk = {talk: one_night(options, port, folder, talk) for talk in (0, 1)}
        games = [at_once(options, port, folder, limit) for limit in (4, 8, 8 * SEATS)]
    if options.json:
        json.dump({"nights": by_talk, "games": games}, sys.stdout, indent=1)
    else:
        print(f"fifteen models, {options.latency:g} s latency, durable log, one process")
        for talk, found in by_talk.items():
            print(f"  night_talk_rounds={talk}: a part of a night takes {told(found['parts'])} latencies; ideal 1")
            print(f"    a whole night {told(found['whole'])}, in {told(found['parts_a_night'])} parts")
        for row in games:
            print(
                f"  {options.games} games at once, at most {row['limit']} in flight: {told(row['of_ideal'])} of the "
                f"ideal time; {row['requests']} requests in {row['seconds']:.1f} s"
            )
    slow = any(statistics.median(found["parts"]) > MOST_OF_A_PART for found in by_talk.values())
    return int(slow or any(statistics.median(row["of_ideal"]) > MOST_OF_GAMES for row in games))


if __name__ == "__main__":
    sys.exit(main())

"""Measure the overhead of `wsap eval`.

    python benchmarks/bench_eval.py [--case episodes|short|start|latency]... [--game crafter|minigrid|echo|PATH:NAME]
        [--seeds 200] [--entrants 50] [--rounds 3]

episodes   Crafter or MiniGrid with `random`, 200 steps per seed: episodes per second of an evaluation in two worker
           processes, relative to two plain processes that each play and record half of the seeds. Goal: 85 %.
short      Episodes of one step of a trivial game, echo or the one given by `--game`, in two worker processes, relative
           to two plain processes that play and record them in one event loop: by time, and by processor time, which
           hardly depends on what else the machine does. Both leave out the start: what `--seeds` (1,000) episodes
           take beyond a fifth of them. Goal: 500 a second, also by the processor time of all processes together.
start      Milliseconds of an episode of one step beyond the game's own reset and step, in one process. Goal: under 20.
latency    Entrants that all call a model with 200 ms of latency, one episode of 200 steps each: the ideal of
           200 x 200 ms relative to the time taken, and to that of a plain client. Goal: at least 90 % of the ideal.

Figures are medians of the rounds, with minimum and maximum. The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
from pydantic import JsonValue

from wsap_core.seams.context import Context
from wsap_crafter.adapter import CrafterAdapter
from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite
from wsap_eval.run import Evaluation, evaluate

STEPS, LATENCY, TURNS = 200, 0.2, 200
PLAIN = """
import sys
from wsap_nexus import play
first, last, database, game, steps = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5])
for seed in range(first, last):
    play(game, "random", seed=seed, steps=steps, episodes=1, database=database)
"""
PLAIN_SHORT = """
import asyncio, json, sys, time
from wsap_core.seams.services import Player, runtime_services
game, count, database = sys.argv[1], int(sys.argv[2]), sys.argv[3]

async def play(runner, seats, seeds):
    for seed in seeds:
        await runner.play(game, seats, seed=seed, steps=1)

with runtime_services(database) as services:
    from wsap_core.references import load_adapter_spec
    spec = load_adapter_spec(game)
    seats = {name: Player("random", {}) for name in spec.names_of_seats(spec.seats[0])}
    asyncio.run(play(services.require("runner"), seats, range(count, count + 5)))
    begun, worked = time.perf_counter(), time.process_time()
    asyncio.run(play(services.require("runner"), seats, range(count)))
    print(json.dumps([time.perf_counter() - begun, time.process_time() - worked]))
"""
TESTS = Path(__file__).parent.parent / "plugins" / "wsap-llm" / "tests"
REPLY = '{"action": "wait"}'
SERVER = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from llm_server.says import Say
from llm_server.server import ModelServer
with ModelServer(lambda body: Say({REPLY!r}, latency={LATENCY})) as server:
    print(server.base_url, flush=True)
    sys.stdin.read()
"""


def evaluated(entry: GameEntry, entrants: tuple[Entrant, ...], seeds: int, jobs: int) -> float:
    """Return the seconds of an evaluation."""
    suite = Suite(name="bench", games=(entry,), entrants=entrants, seeds=Seeds(count=seeds))
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        found = evaluate(Evaluation(suite, entrants, jobs=jobs, in_flight=64), Path(folder))
        seconds = time.perf_counter() - begun
    assert not found.missing
    return seconds


def plain(seeds: int, game: str, steps: int) -> float:
    """Return the seconds that two plain processes take for the same episodes."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        halves = [(0, seeds // 2), (seeds // 2, seeds)]
        processes = [
            subprocess.Popen([sys.executable, "-c", PLAIN, str(a), str(b), f"{folder}/{a}.db", game, str(steps)])
            for a, b in halves
        ]
        for process in processes:
            assert process.wait() == 0
        return time.perf_counter() - begun


def plain_short(episodes: int, game: str) -> tuple[float, float]:
    """Return the seconds and the processor's seconds of an episode in two plain processes side by side."""
    with tempfile.TemporaryDirectory() as folder:
        commands = [[sys.executable, "-c", PLAIN_SHORT, game, str(episodes), f"{folder}/{n}.db"] for n in range(2)]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
        told = [json.loads(process.communicate()[0]) for process in processes]
    return statistics.fmean(t[0] for t in told) / episodes / 2, statistics.fmean(t[1] for t in told) / episodes


def short_episodes(seeds: int, game: str) -> tuple[float, float, float]:
    """Return the seconds of an episode of an evaluation, and the processor's seconds of it in this process and in
    workers, without the start."""
    entry, found = GameEntry(game=game, steps=1), list[tuple[float, float, float]]()
    for count in (seeds // 5, seeds):
        before = os.times()
        seconds = evaluated(entry, (Entrant(agent="random"),), count, 2)
        after = os.times()
        own, others = (
            sum(getattr(after, name) - getattr(before, name) for name in names)
            for names in (("user", "system"), ("children_user", "children_system"))
        )
        found.append((seconds, own, others))
    few, many = found
    seconds, own, others = ((more - less) / (seeds - seeds // 5) for less, more in zip(few, many, strict=True))
    return seconds, own, others


def game_itself(seeds: int) -> float:
    """Return the seconds of the game's own resets."""
    adapter = CrafterAdapter(Context.create(0))
    begun = time.perf_counter()
    for seed in range(10, 10 + seeds):
        adapter.reset(seed)
    return time.perf_counter() - begun


@contextmanager
def slow_model() -> Iterator[str]:
    """Yield the base URL of a model server in a new process, which answers after `LATENCY`."""
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


async def asked_plainly(base_url: str, clients: int) -> float:
    """Return the seconds that plain clients take for `TURNS` calls each."""
    body = json.dumps({"model": "qwen3:8b", "stream": True, "messages": [{"role": "user", "content": "x" * 2000}]})

    async def ask(session: aiohttp.ClientSession) -> None:
        for _ in range(TURNS):
            async with session.post(f"{base_url}/chat/completions", data=body) as reply:
                await reply.read()

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), headers={"Content-Type": "application/json"}
    ) as session:
        begun = time.perf_counter()
        await asyncio.gather(*(ask(session) for _ in range(clients)))
        return time.perf_counter() - begun


def spread(found: Iterable[float]) -> str:
    """Return a text with median, minimum and maximum."""
    ordered = sorted(found)
    return f"{statistics.median(ordered):.3g} ({ordered[0]:.3g} to {ordered[-1]:.3g})"


def rounds(number: int, measure: Callable[[], float]) -> tuple[float, str]:
    """Return the median of measurements, and a text with median, minimum and maximum."""
    found = [measure() for _ in range(number)]
    return statistics.median(found), spread(found)


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", action="append", choices=("episodes", "short", "start", "latency"))
    parser.add_argument("--game", help="a game (crafter; of short episodes echo)")
    parser.add_argument("--seeds", type=int, help="seeds (200; of short episodes 1,000)")
    parser.add_argument("--entrants", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    cases, missed = given.case or ["episodes", "start", "latency"], 0
    random = (Entrant(agent="random"),)
    if "episodes" in cases:
        game, seeds = given.game or "crafter", given.seeds or 200
        entry = GameEntry(game=game, steps=STEPS)

        def ratio() -> float:
            return plain(seeds, game, STEPS) / evaluated(entry, random, seeds, 2)

        share, told = rounds(given.rounds, ratio)
        print(f"episodes  evaluation / two plain processes: {told}, {seeds} seeds (goal 0.85)")
        missed += share < 0.85
    if "short" in cases:
        game, seeds = given.game or "echo", given.seeds or 1000
        alone, together = list[tuple[float, float]](), list[tuple[float, float, float]]()
        evaluated(GameEntry(game=game, steps=1), random, 5, 2)  # imports what this process needs
        for _ in range(given.rounds):
            alone.append(plain_short(max(1, seeds // 5), game))
            together.append(short_episodes(seeds, game))
        load = "" if not hasattr(os, "getloadavg") else f", load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
        times = {
            "by time": spread([a[0] / b[0] for a, b in zip(alone, together, strict=True)]),
            "by processor time": spread([a[1] / sum(b[1:]) for a, b in zip(alone, together, strict=True)]),
        }
        print(f"short     {game}, {seeds} seeds{load}: evaluation / two plain processes")
        print("          " + ", ".join(f"{how} {ratio}" for how, ratio in times.items()))
        for name, place in (("this process", 1), ("workers", 2)):
            print(f"          milliseconds of the processor for an episode in {name}: "
                  f"{spread([1000 * b[place] for b in together])}")  # fmt: skip
        rate, free = ([1 / b[0] for b in together], [2 / sum(b[1:]) for b in together])
        print(f"          episodes per second: {spread(rate)}; two free processors: {spread(free)} (goal: 500)")
        missed += statistics.median(free) < 500
    if "start" in cases:
        entry = GameEntry(game="crafter", steps=1)

        def beyond() -> float:
            more = evaluated(entry, random, 60, 1) - evaluated(entry, random, 10, 1)
            return 1000 * (more - game_itself(50)) / 50

        cost, told = rounds(given.rounds, beyond)
        print(f"start     milliseconds of an episode beyond the game's reset: {told} (goal: under 20)")
        missed += cost >= 20
    if "latency" in cases:
        os.environ["OPENAI_API_KEY"] = "none"
        entry = GameEntry(game="echo", options={"length": TURNS})
        with slow_model() as base_url:
            slow: dict[str, JsonValue] = {"model.base_url": base_url, "model.concurrency": 1000, "style": "json"}
            numbers = range(given.entrants)
            many = tuple(Entrant(agent="openai/qwen3:8b", label=f"m{number}", options=slow) for number in numbers)
            share, told = rounds(given.rounds, lambda: TURNS * LATENCY / evaluated(entry, many, 1, 1))
            plain_share = TURNS * LATENCY / asyncio.run(asked_plainly(base_url, given.entrants))
        print(f"latency   ideal / time: {told}, {given.entrants} entrants of {1000 * LATENCY:.0f} ms (goal 0.9)")
        print(f"          ideal / time of as many plain clients: {plain_share:.3g}")
        missed += share < 0.9
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Measure the overhead of `wsap eval`.

    python benchmarks/bench_eval.py [--case episodes|short|start|latency]... [--game crafter|minigrid] [--seeds 200]
        [--entrants 50] [--rounds 3]

episodes   Crafter or MiniGrid with `random`, 200 steps per seed: episodes per second of an evaluation in two worker
           processes, relative to two plain processes that each play and record half of the seeds. Goal: 85 %.
short      The same with episodes of one step of a trivial game, and episodes per second of both. Goal: 500 per second.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp

from wsap_core.seams.context import Context
from wsap_crafter.adapter import CrafterAdapter
from wsap_eval.run import Evaluation, evaluate
from wsap_eval.suite import Entrant, GameEntry, Seeds, Suite

STEPS, LATENCY, TURNS = 200, 0.2, 200
PLAIN = """
import sys
from wsap_nexus import play
first, last, database, game, steps = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5])
for seed in range(first, last):
    play(game, "random", seed=seed, steps=steps, episodes=1, database=database)
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


def rounds(number: int, measure: Callable[[], float]) -> tuple[float, str]:
    """Return the median of measurements, and a text with median, minimum and maximum."""
    found = sorted(measure() for _ in range(number))
    middle = statistics.median(found)
    return middle, f"{middle:.3g} ({found[0]:.3g} to {found[-1]:.3g})"


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", action="append", choices=("episodes", "short", "start", "latency"))
    parser.add_argument("--game", choices=("crafter", "minigrid"), default="crafter")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--entrants", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    cases, missed = given.case or ["episodes", "start", "latency"], 0
    random = (Entrant(agent="random"),)
    if "episodes" in cases:
        entry = GameEntry(game=given.game, steps=STEPS)

        def ratio() -> float:
            alone = plain(given.seeds, given.game, STEPS)
            return alone / evaluated(entry, random, given.seeds, 2)

        share, told = rounds(given.rounds, ratio)
        print(f"episodes  evaluation / two plain processes: {told}, {given.seeds} seeds (goal 0.85)")
        missed += share < 0.85
    if "short" in cases:
        entry, seconds = GameEntry(game="echo", steps=1), list[tuple[float, float]]()

        def short() -> float:
            seconds.append((plain(given.seeds, "echo", 1), evaluated(entry, random, given.seeds, 2)))
            return seconds[-1][0] / seconds[-1][1]

        _, told = rounds(given.rounds, short)
        alone, together = (given.seeds / statistics.median(each) for each in zip(*seconds, strict=True))
        load = "" if not hasattr(os, "getloadavg") else f", load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
        print(f"short     evaluation / two plain processes: {told}, {given.seeds} seeds{load}")
        print(f"          {together:.0f} and {alone:.0f} episodes per second with start (goal: 500)")
        missed += together < 500
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
            slow = {"model.base_url": base_url, "plan": "no", "style": "json"}
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

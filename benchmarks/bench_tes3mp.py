"""Measure the bridge to Morrowind and agents in its embedded world.

    python benchmarks/bench_tes3mp.py [--case agents|latency|load] [--seeds 1000-1099] [--repeats N] [--minutes N]
                                      [--json]

latency Median milliseconds of a perception and a command over HTTP with the log in a file, in N (5) repeats of 200
        each, and their ratio to a bare FastAPI echo with minimum and maximum of the repeats. Goals: 5 and 10 ms.
load    50 agents that send 200 commands per second for N minutes (1; the goals are for 10): commands accepted, retries
        because an agent was busy, and the size of the bridge's process after a fifth and at the end. Goals: 195 per
        second, none refused for another reason, and at most 8 MiB of growth.
agents  Seeds in which the agent `morrowind-wayfarer` completes both quests of the embedded world, one, or none within
        500 commands, in each of three episodes; the same for random legal actions in one. Goals: both quests in at
        least 95 of 100 seeds on which the agent was not developed (those were 0-49), and no quest at random.

The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import multiprocessing
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from fastapi import FastAPI, Request

from wsap_core.builtin.random_agents import RandomAgent
from wsap_core.protocol import AvatarSpec
from wsap_core.seams.agent import Agent
from wsap_core.seams.context import Context
from wsap_tes3mp.agent.wayfarer import Wayfarer
from wsap_tes3mp.world.game import MorrowindWorld

COMMANDS = 500
WANTED = 0.95
EPISODES = 3


async def quests_done(seed: int, agent: Any, episodes: int) -> list[tuple[int, int]]:
    """Return the quests that an agent (Any: an `Agent`) completes in each episode of a seed, and the commands."""
    game = MorrowindWorld(Context.create(seed, config={"length": COMMANDS}))
    agent.initialize(game.game_description, game.action_space)
    game.jack_in("agent", game.create_avatar("agent", AvatarSpec(name="agent")).avatar_id)
    ends = []
    for episode in range(episodes):
        await game.reset(*([seed] if episode == 0 else []))
        observation, done = await game.observe(), False
        while not done:
            result = await game.act(agent.decide(observation))
            agent.reflect(result)
            observation, done = result.observation, result.done
        completed = len(observation.perception.get("completed_quests", ()))  # type: ignore[attr-defined]
        ends.append((completed, observation.step))
    await game.close()
    return ends


def agents(seeds: range) -> tuple[dict[str, Any], bool]:
    """Measure the scripted agent and random play."""
    makers: dict[str, tuple[int, Callable[[int], Agent]]] = {
        "morrowind-wayfarer": (EPISODES, lambda _: Wayfarer()),
        "random-legal": (1, lambda seed: RandomAgent(random.Random(seed), legal_only=True)),
    }
    found: dict[str, Any] = {}
    met = True
    for name, (episodes, make) in makers.items():
        ends = [asyncio.run(quests_done(seed, make(seed), episodes)) for seed in seeds]
        for number, each in enumerate(zip(*ends, strict=True), 1):
            counts = Counter(quests for quests, _ in each)
            row = {"both": counts[2], "one": counts[1], "neither": counts[0], "of": len(seeds)}
            if steps := sorted(steps for quests, steps in each if quests == 2):
                row["commands, median"] = steps[len(steps) // 2]
            found[f"{name}, episode {number}" if episodes > 1 else name] = row
            met &= row["neither"] == len(seeds) if name == "random-legal" else row["both"] >= WANTED * len(seeds)
    return found, met


TOKEN = "b" * 32
PER_REPEAT, AGENTS, RATE = 200, 50, 200


def serve_both(folder: str, pipe: Any) -> None:
    """Serve a bridge and an echo on different ports until the process is terminated."""
    from wsap_nexus.http.listening import Address, listen
    from wsap_tes3mp.bridge.app import serve
    from wsap_tes3mp.bridge.bridge import Bridge
    from wsap_tes3mp.engines.simulated.engine import SimulatedEngine
    from wsap_tes3mp.log.log import CommandLog

    echo = FastAPI()

    @echo.get("/echo")
    async def get() -> dict[str, str]:
        return {"hello": "there"}

    @echo.post("/echo", status_code=202)
    async def post(request: Request) -> Any:
        return await request.json()

    async def both() -> None:
        near = listen(Address("127.0.0.1", 0))
        config = uvicorn.Config(echo, log_level="warning", access_log=False, lifespan="off", http="h11")
        echoing = asyncio.create_task(uvicorn.Server(config).serve(sockets=[near]))
        engine = SimulatedEngine(seed=1, agents=[f"a{i}" for i in range(AGENTS)])
        with CommandLog(Path(folder) / "commands.sqlite") as log:
            url = f"http://127.0.0.1:{near.getsockname()[1]}"
            bridge = Bridge(engine, log)
            await serve(bridge, Address("127.0.0.1", 0), TOKEN, ready=lambda other: pipe.send((url, other.rstrip("/"))))
        await echoing

    asyncio.run(both())


@contextlib.contextmanager
def served() -> Iterator[tuple[str, str, int]]:
    """Yield the addresses of an echo and of a bridge, and their process."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        child = spawn.Process(target=serve_both, args=(folder, there))
        child.start()
        try:
            echo, bridge = here.recv()
            yield echo, bridge, int(child.pid or 0)
        finally:
            child.kill()
            child.join()


def body(agent: str) -> dict[str, Any]:
    """Return a command that the engine completes at once."""
    return {
        "protocol_version": "1.1.0", "timestamp": "2026-03-21T14:30:01Z", "agent_id": agent, "command": "wait",
        "params": {"duration_seconds": 0.5}, "reasoning": "Nothing to do.", "episode_id": "bench",
    }  # fmt: skip


def latency(repeats: int) -> tuple[dict[str, Any], bool]:
    """Measure perceptions and commands relative to an echo."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    times: dict[str, list[list[float]]] = {name: [] for name in ("echo GET", "perception", "echo POST", "command")}
    with served() as (echo, bridge, _), httpx2.Client(headers=headers, timeout=60) as http:
        for _ in range(repeats):
            taken: dict[str, list[float]] = {name: [] for name in times}
            for _ in range(PER_REPEAT):
                sent = body("a0")
                for name, method, url, data in (
                    ("echo GET", "GET", f"{echo}/echo", None),
                    ("perception", "GET", f"{bridge}/perception?agent_id=a0", None),
                    ("echo POST", "POST", f"{echo}/echo", sent), ("command", "POST", f"{bridge}/command", sent),
                ):  # fmt: skip
                    began = time.perf_counter()
                    answer = http.request(method, url, json=data)
                    taken[name].append(time.perf_counter() - began)
                    assert answer.status_code < 300, answer.text
                http.get(f"{bridge}/command/{answer.json()['command_id']}?wait=5")
            for name, each in taken.items():
                times[name].append(each)
    found: dict[str, Any] = {}
    for name, beside in (("perception", "echo GET"), ("command", "echo POST")):
        ratios = [
            statistics.median(ours) / statistics.median(theirs)
            for ours, theirs in zip(times[name], times[beside], strict=True)
        ]
        middle = {each: statistics.median(itertools.chain(*times[each])) * 1000 for each in (name, beside)}
        found[name] = {
            "ms": round(middle[name], 2), "echo ms": round(middle[beside], 2),
            "ratio": round(statistics.median(ratios), 2), "from": round(min(ratios), 2), "to": round(max(ratios), 2),
        }  # fmt: skip
    return found, found["perception"]["ms"] <= 5 and found["command"]["ms"] <= 10


def size_of(pid: int) -> float:
    """Return a process's memory in MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def load(minutes: float) -> tuple[dict[str, Any], bool]:
    """Measure whether a bridge keeps up with many agents without growing."""
    codes: Counter[int] = Counter()
    sizes: list[float] = []

    async def agent(http: httpx2.AsyncClient, name: str, began: float, ends: float) -> None:
        beat, due = AGENTS / RATE, began + random.random() * AGENTS / RATE
        while due < ends:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            while (code := (await http.post("/command", json=body(name))).status_code) == 409:
                codes[code] += 1  # the previous command is still running
                await asyncio.sleep(0.02)
            codes[code] += 1
            due += beat

    async def all_of_them(url: str, pid: int) -> float:
        limits = httpx2.Limits(max_connections=AGENTS, max_keepalive_connections=AGENTS)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60, limits=limits) as http:
            began = time.monotonic()
            tasks = [asyncio.create_task(agent(http, f"a{i}", began, began + minutes * 60)) for i in range(AGENTS)]
            for fifth in range(1, 6):
                await asyncio.sleep(began + minutes * 12 * fifth - time.monotonic())
                sizes.append(size_of(pid))
            await asyncio.gather(*tasks)
            return time.monotonic() - began

    with served() as (_, url, pid):
        took = asyncio.run(all_of_them(url, pid))
    rate = codes[202] / took
    found = {
        "commands": {
            "accepted": codes[202],
            "busy": codes[409],
            "refused": codes.total() - codes[202] - codes[409],
            "a second": round(rate, 1),
        },
        "MiB": {"after a fifth": round(sizes[0], 1), "at the end": round(sizes[-1], 1)},
    }
    return found, rate >= 195 and codes.total() == codes[202] + codes[409] and sizes[-1] - sizes[0] <= 8


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=("agents", "latency", "load"), default="agents")
    parser.add_argument("--seeds", default="1000-1099", help="the first and the last")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    cases: dict[str, Callable[[], tuple[dict[str, Any], bool]]] = {
        "agents": lambda: agents(range(int(first), int(last or first) + 1)),
        "latency": lambda: latency(given.repeats),
        "load": lambda: load(given.minutes),
    }
    found, reached = cases[given.case]()
    if given.json:
        print(json.dumps({given.case: found, "reached": reached}))
    else:
        for name, row in found.items():
            print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in row.items()))
        print("reached" if reached else "MISSED")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())

"""Measure what a game costs through MCP, beside the same game alone, and how many are open at a time.

    python benchmarks/bench_mcp.py [--game crafter] [--steps 150] [--rounds 5] [--games 32]

Each round plays the same steps of the same seed in the world alone, as a program outside (`wsap_nexus.doors.outside`,
each step committed), and by the official client over standard input and output, in both eras of the protocol, and over
HTTP.
Goals: an act over standard input and output takes at most 10 ms; all of `--games` are played at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcp import Client, StdioServerParameters

from wsap_core.protocol import Action
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import Context
from wsap_core.seams.options import Options
from wsap_core.worlds import World
from wsap_nexus.doors import outside

SEED = 7
"""The game lasts longer than the steps."""
GOAL = 10.0
"""Milliseconds for an act over standard input and output."""


def moves(names: tuple[str, ...], steps: int) -> list[str]:
    """Return the same steps each time."""
    plain = [name for name in names if name.startswith("move_")] or [names[0]]
    return [plain[number % len(plain)] for number in range(steps)]


async def alone(game: str, steps: int) -> float:
    """Return the milliseconds of a step in the world alone, with its text."""
    spec = load_adapter_spec(game)
    world = World.create(spec.with_options({}), Context.create(SEED, config=Options({})))
    await world.reset(SEED)
    seat = world.open_seat("seat-1")
    (await seat.observe()).to_text()
    taken = moves(seat.action_space.names, steps)
    began = time.perf_counter()
    for name in taken:
        (await seat.step(Action(name))).result.observation.to_text()
    return 1000 * (time.perf_counter() - began) / steps


async def recorded(game: str, steps: int, folder: str) -> float:
    """Return the milliseconds of a step as a program outside."""
    with outside.opened(f"{folder}/outside.db") as runs:
        run = runs.play(game, seed=SEED)
        await run.observation()
        taken = moves(run.action_space.names, steps)
        began = time.perf_counter()
        for name in taken:
            (await run.act(Action(name))).observation.to_text()
        took = time.perf_counter() - began
        await run.stop()
    return 1000 * took / steps


async def by_client(server: StdioServerParameters | str, era: str, steps: int) -> float:
    """Return the milliseconds of an act by the official client."""
    async with Client(server, mode=era) as client:
        begun = (await client.call_tool("start_game", {"seed": SEED})).structured_content
        taken = moves(tuple(begun["possible"]), steps)
        began = time.perf_counter()
        for name in taken:
            await client.call_tool("act", {"game": begun["game"], "action": name})
        took = time.perf_counter() - began
        await client.call_tool("stop_game", {"game": begun["game"]})
        return 1000 * took / steps


async def together(server: str, games: int, steps: int) -> float:
    """Play that many games at a time over HTTP, and return the acts a second."""

    async def one(number: int) -> None:
        async with Client(server) as client:
            begun = (await client.call_tool("start_game", {"seed": number})).structured_content
            for name in moves(tuple(begun["possible"]), steps):
                result = await client.call_tool("act", {"game": begun["game"], "action": name})
                assert result.structured_content is not None
            await client.call_tool("stop_game", {"game": begun["game"]})

    began = time.perf_counter()
    await asyncio.gather(*map(one, range(games)))
    return games * steps / (time.perf_counter() - began)


@contextmanager
def over_http(game: str, environ: dict[str, str]) -> Iterator[str]:
    """Yield the address of `wsap mcp GAME --http 0`."""
    command = [sys.executable, "-m", "wsap_core", "mcp", game, "--http", "0"]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            yield process.stderr.readline().split()[3]
        finally:
            process.terminate()


def spread(values: list[float]) -> str:
    """Return the median with the least and the most."""
    return f"{statistics.median(values):8.2f}  ({min(values):.2f} to {max(values):.2f})"


def main() -> int:
    """Measure and print; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--game", default="crafter")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--games", type=int, default=32)
    options = parser.parse_args()
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "WSAP_HOME": folder}
        arguments = ["-m", "wsap_core", "mcp", options.game]
        stdio = StdioServerParameters(command=sys.executable, args=arguments, env=environ)
        with over_http(options.game, environ) as address:
            for number in range(options.rounds):
                inner = Path(folder) / str(number)
                inner.mkdir()
                row = {
                    "the world alone": asyncio.run(alone(options.game, options.steps)),
                    "a program outside": asyncio.run(recorded(options.game, options.steps, str(inner))),
                    "MCP, stdio, handshake": asyncio.run(by_client(stdio, "legacy", options.steps)),
                    "MCP, stdio, 2026-07-28": asyncio.run(by_client(stdio, "2026-07-28", options.steps)),
                    "MCP, HTTP, 2026-07-28": asyncio.run(by_client(address, "2026-07-28", options.steps)),
                }
                for name, value in row.items():
                    found.setdefault(name, []).append(value)
            rate = asyncio.run(together(address, options.games, 20))
    print(f"milliseconds a step of {options.game}: median of {options.rounds} rounds, and times the world alone")
    for name, values in found.items():
        times = [value / base for value, base in zip(values, found["the world alone"], strict=True)]
        print(f"{name:<24}{spread(values)}  x {spread(times).strip()}")
    print(f"{options.games} games at a time over HTTP: {rate:.0f} acts a second")
    over = [name for name in found if "stdio" in name and statistics.median(found[name]) > GOAL]
    return bool(over)


if __name__ == "__main__":
    raise SystemExit(main())

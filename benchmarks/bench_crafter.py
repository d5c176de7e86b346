"""Compare the speed of wsap-crafter with the original game.

    python benchmarks/bench_crafter.py [--quick] [--json]

Steps per second under uniformly random play, without resets:

- raw: the original ``crafter.Env`` without rendering;
- wrapper: the original under the usual text wrapper, which renders 256 pixels twice per step;
- engine: wsap-crafter's engine alone;
- adapter: the adapter with a full observation at each step;
- text: the same with the observation rendered as text.

The variants alternate in short rounds, so that load on the machine slows them alike; ratios are computed within a
round and printed as median and spread. Then resets and snapshots.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import crafter
import numpy as np

from wsap_core import Action, Context
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.rules import GAME_ACTIONS
from wsap_crafter.simulation.engine import CrafterEngine

Step = Callable[[int], bool]
"""Action number -> whether the episode is over."""


@dataclass(frozen=True)
class Player:
    """A variant of the game."""

    step: Step
    reset: Callable[[], Any]


class Unrendered(crafter.Env):  # type: ignore[misc]
    """The original without rendering."""

    def render(self, size: Any = None) -> Any:
        """Return None."""
        return None


def raw(seed: int) -> Player:
    """Return the original without rendering."""
    game = Unrendered(seed=seed)
    return Player(lambda action: bool(game.step(action)[2]), game.reset)


def wrapper(seed: int) -> Player:
    """Return the original rendering 256 pixels twice per step: in the step, and for the wrapper."""
    game = crafter.Env(seed=seed, size=(256, 256))

    def step(action: int) -> bool:
        done = bool(game.step(action)[2])
        game.render()
        return done

    return Player(step, game.reset)


def engine(seed: int) -> Player:
    """Return the reproducible engine alone."""
    game = CrafterEngine(seed)

    def step(action: int) -> bool:
        game.step(GAME_ACTIONS[action])
        return game.done

    return Player(step, game.reset)


def adapter(seed: int) -> Player:
    """Return the adapter, with a full observation at each step."""
    world = CrafterAdapter(Context(seed=seed))
    actions = [Action(name) for name in GAME_ACTIONS]
    return Player(lambda action: world.act(actions[action]).done, world.reset)


def text(seed: int) -> Player:
    """Return the adapter, with the observation's text at each step."""
    world = CrafterAdapter(Context(seed=seed))
    actions = [Action(name) for name in GAME_ACTIONS]

    def step(action: int) -> bool:
        result = world.act(actions[action])
        result.observation.to_text()
        return result.done

    return Player(step, world.reset)


PLAYERS = {"raw": raw, "wrapper": wrapper, "engine": engine, "adapter": adapter, "text": text}


def rate(player: Player, steps: int, seed: int) -> float:
    """Return steps per second of random play, without resets."""
    chooser = random.Random(seed)
    numbers = [chooser.randrange(len(GAME_ACTIONS)) for _ in range(steps)]
    player.reset()
    spent = 0.0
    start = time.perf_counter()
    for number in numbers:
        if player.step(number):
            spent += time.perf_counter() - start
            player.reset()
            start = time.perf_counter()
    return steps / (spent + time.perf_counter() - start)


def measure_steps(rounds: int, steps: dict[str, int]) -> dict[str, list[float]]:
    """Return each player's rate in each round."""
    rates: dict[str, list[float]] = {name: [] for name in PLAYERS}
    for number in range(rounds):
        for name, make in PLAYERS.items():
            rates[name].append(rate(make(number), steps[name], number))
    return rates


def timed(action: Callable[[], Any]) -> float:
    """Return the milliseconds of a call."""
    start = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - start)


def measure_resets(count: int, raw_count: int) -> dict[str, list[float]]:
    """Return milliseconds of resets after the first, of the original and ours."""
    world, game = CrafterAdapter(Context(seed=0)), Unrendered(seed=0)
    game.reset()
    return {
        "adapter": [timed(partial(world.reset, seed)) for seed in range(1, count + 1)],
        "raw": [timed(game.reset) for _ in range(raw_count)],
    }


def measure_snapshots(count: int) -> dict[str, list[float]]:
    """Return sizes in bytes and milliseconds of snapshots during random play."""
    world, chooser = CrafterAdapter(Context(seed=3)), random.Random(3)
    found: dict[str, list[float]] = {"bytes": [], "snapshot_ms": [], "restore_ms": [], "frame_ms": []}
    for _ in range(count):
        for _ in range(60):
            if world.act(Action(chooser.choice(GAME_ACTIONS))).done:
                world.reset()
        found["snapshot_ms"].append(timed(world.snapshot))
        data = world.snapshot()
        found["bytes"].append(len(data))
        found["restore_ms"].append(timed(partial(world.restore, data)))
        found["frame_ms"].append(timed(world.render))
    return found


def summary(values: list[float]) -> dict[str, float]:
    """Return median, lowest and highest."""
    return {
        "median": round(statistics.median(values), 3),
        "low": round(min(values), 3),
        "high": round(max(values), 3),
    }


def measure(quick: bool) -> dict[str, Any]:
    """Return all figures."""
    rounds = 3 if quick else 9
    steps = dict.fromkeys(PLAYERS, 600 if quick else 2500)
    steps["wrapper"] = 80 if quick else 250
    rates = measure_steps(rounds, steps)
    ratios = {
        f"{name} / {base}": summary([a / b for a, b in zip(rates[name], rates[base], strict=True)])
        for name, base in (
            ("engine", "raw"),
            ("adapter", "raw"),
            ("text", "raw"),
            ("adapter", "wrapper"),
            ("text", "wrapper"),
        )
    }
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": importlib.util.find_spec("numba") is not None,
        "steps_per_second": {name: summary(values) for name, values in rates.items()},
        "ratios": ratios,
        "reset_ms": {k: summary(v) for k, v in measure_resets(10 if quick else 40, 2 if quick else 5).items()},
        "snapshots": {k: summary(v) for k, v in measure_snapshots(5 if quick else 30).items()},
    }


def show(figures: dict[str, Any]) -> None:
    """Print the figures."""
    print(f"Python {figures['python']}, numpy {figures['numpy']}, numba {'yes' if figures['numba'] else 'no'}")
    for title in ("steps_per_second", "ratios", "reset_ms", "snapshots"):
        print(f"\n{title:24}{'median':>12}{'low':>12}{'high':>12}")
        for name, s in figures[title].items():
            print(f"  {name:22}{s['median']:12.6g}{s['low']:12.6g}{s['high']:12.6g}")


def main() -> int:
    """Measure and print; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description="Compare the speed of wsap-crafter with the original game.")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    figures = measure(options.quick)
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        show(figures)
    reached = (
        figures["ratios"]["adapter / raw"]["median"] >= 0.9
        and figures["ratios"]["adapter / wrapper"]["median"] >= 12
        and figures["reset_ms"]["adapter"]["median"] <= (80 if figures["numba"] else 150)
    )
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())

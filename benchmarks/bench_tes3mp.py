"""Measure the bridge to Morrowind and what plays behind it, beside what is wanted.

    python benchmarks/bench_tes3mp.py [--case agents] [--seeds 1000-1099] [--json]

agents  In how many of the seeds the agent `morrowind-wayfarer` completes both quests of the embedded world, one of
        them, and neither, within 500 commands; and beside it an agent that takes random legal actions. Wanted: both
        quests in at least 95 of 100 seeds that the agent was not made with (it was made with 0-49), and none at all
        at random.

The exit status is 1 where something is not reached.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from wsap_core.builtin.random_agents import RandomAgent
from wsap_core.protocol import AvatarSpec
from wsap_core.seams.agent import Agent
from wsap_core.seams.context import Context
from wsap_tes3mp.agent.wayfarer import Wayfarer
from wsap_tes3mp.world.game import MorrowindWorld

COMMANDS = 500
WANTED = 0.95


async def quests_done(seed: int, agent: Any) -> tuple[int, int]:
    """Return how many quests an agent completes in a seed's world, and in how many commands. Any: an `Agent`."""
    game = MorrowindWorld(Context.create(seed, config={"length": COMMANDS}))
    await game.reset(seed)
    avatar = game.create_avatar("agent", AvatarSpec(name="agent"))
    game.jack_in("agent", avatar.avatar_id)
    agent.initialize(game.game_description, game.action_space)
    observation, done = await game.observe(), False
    while not done:
        result = await game.act(agent.decide(observation))
        observation, done = result.observation, result.done
    completed = len(observation.perception.get("completed_quests", ()))  # type: ignore[attr-defined]
    await game.close()
    return completed, observation.step


def agents(seeds: range) -> tuple[dict[str, Any], bool]:
    """Measure what the agent by rules and random play come to."""
    makers: dict[str, Callable[[int], Agent]] = {
        "morrowind-wayfarer": lambda _: Wayfarer(),
        "random-legal": lambda seed: RandomAgent(random.Random(seed), legal_only=True),
    }
    found: dict[str, Any] = {}
    for name, make in makers.items():
        ends = [asyncio.run(quests_done(seed, make(seed))) for seed in seeds]
        counts = Counter(quests for quests, _ in ends)
        steps = sorted(steps for quests, steps in ends if quests == 2)
        found[name] = {"both": counts[2], "one": counts[1], "neither": counts[0], "of": len(seeds)}
        if steps:
            found[name]["commands, median"] = steps[len(steps) // 2]
    reached = found["morrowind-wayfarer"]["both"] >= WANTED * len(seeds)
    return found, reached and found["random-legal"]["neither"] == len(seeds)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=("agents",), default="agents")
    parser.add_argument("--seeds", default="1000-1099", help="the first and the last")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    found, reached = agents(range(int(first), int(last or first) + 1))
    if given.json:
        print(json.dumps({given.case: found, "reached": reached}))
    else:
        for name, row in found.items():
            print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in row.items()))
        print("reached" if reached else "not reached")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())

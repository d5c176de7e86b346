"""Compare the scores of uniformly random play in wsap-crafter with those of the Crafter paper.

    python benchmarks/bench_crafter_random.py [--seeds N] [--first SEED] [--json]

Plays whole episodes, one per seed. The paper (arXiv 2109.06780) reports a score of 1.6 and a reward of 2.1 ± 1.3
(standard deviation over episodes) for random play; BALROG's leaderboard reports a progression of 10.4. Intervals are
95 % bootstrap percentile intervals over episodes.

In the runs published with the game (scores/crafter_noreward-random.json), rewards of random play are -0.9, 0.1, 1.1,
2.1, 3.1 ..., mean about 1.35: the game's own reward, in which dying costs 0.9. The paper's 2.1 ± 1.3 is close to the
number of achievements, which is that reward plus 0.9. Both are printed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wsap_core import Action, Context
from wsap_core.specs import EpisodeSummary
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.perception.observation import CrafterObservation
from wsap_crafter.rules import GAME_ACTIONS
from wsap_crafter.scores import official_score, progression, success_rates


def play(seed: int) -> EpisodeSummary:
    """Play one whole episode at random and return its result."""
    world = CrafterAdapter(Context(seed=seed))
    chooser = random.Random(f"random play {seed}")
    actions = [Action(name) for name in GAME_ACTIONS]
    reward = 0.0
    while True:
        result = world.act(chooser.choice(actions))
        reward += result.reward
        if result.done:
            seen = result.observation
            assert isinstance(seen, CrafterObservation)
            return EpisodeSummary(seed, seen.step, reward, tuple(sorted(seen.achievements_unlocked)), True)


def interval(
    episodes: Sequence[EpisodeSummary], statistic: Callable[[Sequence[EpisodeSummary]], float], draws: int = 2000
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a statistic over episodes."""
    chooser = np.random.default_rng(0)
    found = [statistic([episodes[i] for i in chooser.integers(0, len(episodes), len(episodes))]) for _ in range(draws)]
    low, high = np.percentile(found, (2.5, 97.5))
    return float(low), float(high)


def mean_reward(episodes: Sequence[EpisodeSummary]) -> float:
    """Return the mean reward of an episode."""
    return math.fsum(episode.reward for episode in episodes) / len(episodes)


def mean_count(episodes: Sequence[EpisodeSummary]) -> float:
    """Return the mean number of achievements of an episode."""
    return sum(len(episode.achievements) for episode in episodes) / len(episodes)


def figures(episodes: Sequence[EpisodeSummary]) -> dict[str, Any]:
    """Return scores with intervals, and success rates."""
    return {
        "episodes": len(episodes),
        "steps": sum(episode.steps for episode in episodes),
        "score": [official_score(episodes), *interval(episodes, official_score)],
        "reward": [mean_reward(episodes), *interval(episodes, mean_reward)],
        "achievements": [mean_count(episodes), *interval(episodes, mean_count)],
        "achievements_std": float(np.std([len(episode.achievements) for episode in episodes])),
        "reward_std": float(np.std([episode.reward for episode in episodes])),
        "progression": [progression(episodes), *interval(episodes, progression)],
        "success_rates": success_rates(episodes),
    }


def main() -> int:
    """Play and print."""
    parser = argparse.ArgumentParser(description="Random play in Crafter, compared with the paper's figures.")
    parser.add_argument("--seeds", type=int, default=400, metavar="N", help="episodes to play (400)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed (0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    found = figures([play(seed) for seed in range(options.first, options.first + options.seeds)])
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"{found['episodes']} episodes, {found['steps']} steps of uniformly random play\n")
        print(f"{'':22}{'here':>8}   {'95 % interval':16}{'std':8}published")
        published = {
            "score": "1.6",
            "reward": "2.1 ± 1.3",
            "achievements": "2.1 ± 1.3, if the paper means this",
            "progression": "10.4",
        }
        for name, figure in published.items():
            value, low, high = found[name]
            std = f"{found[f'{name}_std']:.2f}" if f"{name}_std" in found else ""
            print(f"  {name:20}{value:8.2f}   {f'{low:.2f} to {high:.2f}':16}{std:8}{figure}")
        print()
        for name, percent in found["success_rates"].items():
            print(f"  {name:20}{percent:8.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())

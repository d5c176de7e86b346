"""Check that uniformly random play in wsap-crafter scores what the Crafter paper says.

    python benchmarks/crafter_random.py [--seeds N] [--first SEED] [--json]

Whole episodes, one for each seed. The paper (arXiv 2109.06780) gives random play a score of 1.6
and a reward of 2.1 ± 1.3 (standard deviation over episodes); BALROG's leaderboard gives it a
progression of 10.4. Intervals are 95 % bootstrap percentile intervals over episodes.
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
from wsap_crafter.rules import GAME_ACTIONS
from wsap_crafter.scores import official_score, progression, success_rates


def play(seed: int) -> EpisodeSummary:
    """Play one whole episode at random and return what it came to."""
    world = CrafterAdapter(Context(seed=seed))
    chooser = random.Random(f"random play {seed}")
    actions = [Action(name) for name in GAME_ACTIONS]
    reward = 0.0
    while True:
        result = world.act(chooser.choice(actions))
        reward += result.reward
        if result.done:
            seen = result.observation
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


def figures(episodes: Sequence[EpisodeSummary]) -> dict[str, Any]:
    """Return scores with intervals, and success rates."""
    return {
        "episodes": len(episodes),
        "steps": sum(episode.steps for episode in episodes),
        "score": [official_score(episodes), *interval(episodes, official_score)],
        "reward": [mean_reward(episodes), *interval(episodes, mean_reward)],
        "reward_std": float(np.std([episode.reward for episode in episodes])),
        "progression": [progression(episodes), *interval(episodes, progression)],
        "success_rates": success_rates(episodes),
    }


def main() -> int:
    """Play, print, and return 1 if the paper's figures lie outside what was found."""
    parser = argparse.ArgumentParser(description="Random play in Crafter, beside the paper's figures.")
    parser.add_argument("--seeds", type=int, default=400, metavar="N", help="episodes to play (400)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed (0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    found = figures([play(seed) for seed in range(options.first, options.first + options.seeds)])
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"{found['episodes']} episodes, {found['steps']} steps of uniformly random play\n")
        print(f"{'':22}{'here':>8}   {'95 % interval':16}published")
        for name, published in (("score", "1.6"), ("reward", "2.1"), ("progression", "10.4")):
            value, low, high = found[name]
            print(f"  {name:20}{value:8.2f}   {f'{low:.2f} to {high:.2f}':16}{published}")
        print(f"  {'reward, std':20}{found['reward_std']:8.2f}   {'':16}1.3\n")
        for name, percent in found["success_rates"].items():
            print(f"  {name:20}{percent:8.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure `crafter-survivor` in whole episodes on new seeds, through the protocol and the runtime.

    python benchmarks/bench_crafter_survivor.py [--seeds N] [--first SEED] [--json]

Plays one episode per seed, like `wsap play crafter` without recording. The agent was developed on seeds below 7,000 and
the first hundred from each of 10,000, 30,000, 40,000 and 50,000; measure on others.
References (official score, BALROG progression): human experts 50.5 and 63.2 with reward 14.3, SPRING with GPT-4 27.3,
DreamerV3 14.5, random play 1.6 and 10.4. Goals: score 88, 3,000 steps on average, 15 % of episodes to step 10,000.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
from bench_crafter_random import interval, mean_reward

import wsap_nexus
from wsap_core import PluginHost
from wsap_core.specs import EpisodeSummary
from wsap_crafter.scores import official_score, progression, success_rates

REFERENCES = {
    "score": "goal 88, human experts 50.5, SPRING 27.3, DreamerV3 14.5, random 1.6",
    "progression": "human experts 63.2, random 10.4",
    "reward": "human experts 14.3, random 2.1",
}


def play(seed: int, host: PluginHost) -> EpisodeSummary:
    """Play one whole episode and return its result."""
    summary = wsap_nexus.play("crafter", "crafter-survivor", seed=seed, record=False, host=host)
    return summary.seats[0].all_episodes()[0]


def figures(episodes: list[EpisodeSummary], seconds: float) -> dict[str, Any]:
    """Return scores with intervals, survival and success rates."""
    steps = [episode.steps for episode in episodes]
    return {
        "episodes": len(episodes),
        "first_seed": episodes[0].seed,
        "score": [official_score(episodes), *interval(episodes, official_score)],
        "progression": [progression(episodes), *interval(episodes, progression)],
        "reward": [mean_reward(episodes), *interval(episodes, mean_reward)],
        "reward_std": float(np.std([episode.reward for episode in episodes])),
        "steps_mean": float(np.mean(steps)),
        "steps_median": float(np.median(steps)),
        "whole_length": sum(n >= 10_000 for n in steps),
        "all_22": sum(len(episode.achievements) == 22 for episode in episodes),
        "steps_per_second": sum(steps) / seconds,
        "success_rates": success_rates(episodes),
    }


def main() -> int:
    """Play and print."""
    parser = argparse.ArgumentParser(description="crafter-survivor on new seeds, compared with published figures.")
    parser.add_argument("--seeds", type=int, default=100, metavar="N", help="episodes to play (100)")
    parser.add_argument("--first", type=int, default=80_000, metavar="SEED", help="the first seed (80000)")
    parser.add_argument("--quick", action="store_true", help="five episodes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    host = PluginHost.discovered()
    begun = time.perf_counter()
    count = 5 if options.quick else options.seeds
    episodes = []
    for number, seed in enumerate(range(options.first, options.first + count), 1):
        episodes.append(play(seed, host))
        if sys.stderr.isatty():
            print(f"\r{number} of {count} episodes", end="", file=sys.stderr)
    found = figures(episodes, time.perf_counter() - begun)
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    print(f"\n{count} episodes, seeds {options.first} to {options.first + count - 1}\n")
    for name, reference in REFERENCES.items():
        value, low, high = found[name]
        print(f"  {name:14}{value:7.2f}   {f'{low:.2f} to {high:.2f}':18}{reference}")
    print(f"  reward's standard deviation {found['reward_std']:.2f}")
    print(f"  steps: mean {found['steps_mean']:.0f} (goal 3,000), median {found['steps_median']:.0f}, ", end="")
    print(f"alive at 10,000 in {found['whole_length']} (goal 15 %); all 22 in {found['all_22']} episodes")
    print(f"  {found['steps_per_second']:.0f} steps/s, resets included\n")
    for name, percent in found["success_rates"].items():
        print(f"  {name:20}{percent:8.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure the error rates of transfer measurements with agents whose true transfer is known.

    python benchmarks/bench_transfer.py [--measurements 40] [--lives 10] [--seeds 10]

Each measurement is complete: lives of an agent that learns a rule, a placebo, frozen memories. If it remembers the
rule, the agent is right 0, 10 or 30 percentage points more often, or 30 less often; with 20 rounds the true effect is
0, 2, 6 or -6 points. Printed are the mean measured effect, the share of correct verdicts, and the coverage of 95 %
intervals. Goals: 95 % correct verdicts in the three cases that are not slight, and 95 % coverage, both within three
standard errors.

The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path

from wsap_eval.suite import Entrant
from wsap_eval.transfer.plan import Plan
from wsap_eval.transfer.run import measure

LEARNERS = Path(__file__).parent.parent / "plugins" / "wsap-eval" / "tests" / "learners.py"
CASES = (("Slight", 2.0, "helps"), ("Helped", 6.0, "helps"), ("Uneven", 0.0, "none shown"), ("Harmed", -6.0, "harms"))


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--measurements", type=int, default=40)
    parser.add_argument("--lives", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    missed = 0
    print(f"{given.measurements} measurements of {given.lives} lives x {given.seeds} seeds each")
    print(f"{'learner':<10} {'true':>5} {'measured':>9} {'verdict right':>14} {'truth in interval':>18}")
    for name, truth, words in CASES:
        effects, right, held = [], 0, 0
        for number in range(given.measurements):
            entrant = Entrant(agent=f"{LEARNERS}:{name}")
            source, target, arms = f"{LEARNERS}:Stones", f"{LEARNERS}:Sand", ("placebo", "source")
            plan = Plan(source, (target,), entrant, given.lives, given.seeds, 1, None, arms, number)
            with tempfile.TemporaryDirectory() as folder:
                (verdict,) = measure(plan, Path(folder)).verdicts
            effect = verdict.headline.effect
            effects.append(effect.difference)
            right += verdict.words == words
            held += effect.interval is not None and truth in effect.interval
        n = given.measurements
        print(f"{name:<10} {truth:>5} {sum(effects) / n:>9.2f} {right / n:>14.0%} {held / n:>18.0%}")
        enough = 0.95 - 3 * math.sqrt(0.95 * 0.05 / n)
        missed += held / n < enough or (name != "Slight" and right / n < enough)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Measure the error rates of transfer measurements with agents whose true transfer is known.

    python benchmarks/bench_transfer.py [--case rates|lessons]... [--measurements 40] [--lives 10] [--seeds 10]

rates      Each measurement is complete: lives of an agent that learns a rule, a placebo, frozen memories. If it
           remembers the rule, the agent is right 0, 10 or 30 percentage points more often, or 30 less often; with 20
           rounds the true effect is 0, 2, 6 or -6 points. Printed are the mean measured effect, the share of correct
           verdicts, and the coverage of 95 % intervals. Goals: 95 % correct verdicts in the three cases that are not
           slight, and 95 % coverage, both within three standard errors.
lessons    `wsap eval transfer` as a command, on lessons that are numbers, short words, one word, or a sentence, in
           English and Russian: with each an agent plays 30 percentage points better, 30 worse, or as well as without.
           Goals: the right sign in 16 of 16, "none shown" in 16 of 16, placebos worth no more than no memory, and a
           memory that holds the seeds of its tests refused.

The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wsap_eval.planning.suite import Entrant
from wsap_eval.transfer.plan import Arm, Plan
from wsap_eval.transfer.run import measure

LEARNERS = Path(__file__).parent.parent / "plugins" / "wsap-eval" / "tests" / "learners.py"
CASES = (("Slight", 2.0, "helps"), ("Helped", 6.0, "helps"), ("Uneven", 0.0, "none shown"), ("Harmed", -6.0, "harms"))


def rates(given: argparse.Namespace) -> int:
    """Measure error rates, and return the number of missed goals."""
    missed = 0
    print(f"{given.measurements} measurements of {given.lives} lives x {given.seeds} seeds each")
    print(f"{'learner':<10} {'true':>5} {'measured':>9} {'verdict right':>14} {'truth in interval':>18}")
    for name, truth, words in CASES:
        effects, right, held = [], 0, 0
        for number in range(given.measurements):
            entrant = Entrant(agent=f"{LEARNERS}:{name}")
            source, target = f"{LEARNERS}:Stones", f"{LEARNERS}:Sand"
            arms: tuple[Arm, ...] = ("placebo", "source")
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
    return missed


LESSONS = (
    "at 17 go up by 4096", "use red key not axe", "amber",
    "In these worlds always choose amber stones first whatever others may say.",
    "на 17 шаге 4096", "ешь у дуба не у рва", "янтарь",
    "В этих мирах всегда бери сначала янтарные камни что бы ни говорили другие.",
)  # fmt: skip
ALIKE = 2
"""Measurements of each lesson that is worth nothing, so that there are as many as of those that are."""


def asked(entrant: str, *, seed: int, lives: int = 6) -> tuple[int, dict[str, Any], str]:
    """Run `wsap eval transfer`, and return its exit status, its JSON (Any), and what it said."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "wsap_core", "eval", "transfer"),
                *("--from", f"{LEARNERS}:Stones", "--to", f"{LEARNERS}:Sand", "--entrant", f"{LEARNERS}:{entrant}"),
                *("--arms", "blank,placebo,source", "--lives", str(lives), "--seeds", "4", "--learning", "1"),
                *("--seed", str(seed), "--out", f"{folder}/x", "--json"),
            ],
            capture_output=True, check=False, text=True, encoding="utf-8",
        )  # fmt: skip
    return done.returncode, json.loads(done.stdout) if done.returncode == 0 else {}, done.stderr.strip()


def lessons(given: argparse.Namespace) -> int:
    """Measure lessons of all forms by the command, and return the number of missed goals."""
    missed = 0
    for what, helps, words, times in (
        ("helps", 0.3, "helps", 1), ("harms", -0.3, "harms", 1), ("nothing", 0.0, "none shown", ALIKE)
    ):  # fmt: skip
        right = alone = covered = 0
        effects = []
        for number, lesson in enumerate(LESSONS * times):
            status, found, said = asked(f"Teachable,helps={helps},lesson={lesson}", seed=number)
            if status:
                print(f"  {lesson!r}: {said}")
                continue
            (row,) = found["targets"]
            pairs = {(each["arm"], each["other"]): each["lives"]["effect"] for each in row["comparisons"]}
            effect = pairs["source", "placebo"]
            effects.append(effect["difference"])
            right += row["verdict"] == words
            if row["verdict"] != words:
                print(f"  {lesson!r}, seed {number}: {row['verdict']}, {effect['difference']:+.2f}")
            alone += row["means"]["placebo"] == row["means"]["blank"]
            span = effect["interval"]
            # Where all lives differ by the same amount there is no interval.
            low, high = (span["low"], span["high"]) if span else (effect["difference"],) * 2
            covered += low <= 20 * helps <= high
        count = len(LESSONS) * times
        mean = sum(effects) / len(effects) if effects else math.nan
        print(
            f"lesson {what:<8} true {20 * helps:+.0f}, measured {mean:+.2f}; verdict {words!r} {right} of {count}; "
            f"placebo as good as no memory {alone} of {count}; truth in interval {covered} of {count}"
        )
        missed += (right < count) + (alone < count)
    status, _, said = asked("Cheat", seed=7, lives=2)
    print(f"memory with the seeds of its tests: exit status {status}, {said}")
    return missed + (status == 0 or "which is the seed of one" not in said)


CASES_OF: dict[str, Callable[[argparse.Namespace], int]] = {"rates": rates, "lessons": lessons}


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", action="append", choices=CASES_OF)
    parser.add_argument("--measurements", type=int, default=40)
    parser.add_argument("--lives", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    return int(sum(CASES_OF[case](given) for case in given.case or CASES_OF) > 0)


if __name__ == "__main__":
    sys.exit(main())

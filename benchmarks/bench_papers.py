"""Compare results of `wsap eval` with published ones.

    python benchmarks/bench_papers.py [--case crafter|minigrid|axelrod|mafia ...] [--seeds N]

By default Crafter is played on 6,000 seeds, about the million steps of the paper, and Mafia on 200.

Each table is produced by the command printed above it, in a temporary folder. docs/explanation/published-tables.md
explains the published figures and the differences between the protocols. The exit status is 1 if a figure that has to
agree does not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench_tossim_rules import by_day, mafia_wins
from scipy.stats import binomtest

AXELROD = {"tit-for-tat": 2.49875, "grudger": 2.49875, "cooperator": 2.25, "defector": 2.01}
"""Mean payoff per turn by `axelrod` 4.14.0: Match(turns=200), over the four opponents, including itself."""


def evaluated(*words: str) -> dict[str, Any]:
    """Run `wsap eval`, print the command, and return its output."""
    print("\n$ wsap eval " + " ".join(words), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "wsap_core", "eval", *words, "--out", str(Path(folder) / "x"), "--json"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def shown(what: str, value: float, interval: dict[str, Any] | None, published: str) -> None:
    """Print a figure with the published one."""
    span = "-" if interval is None else f"{interval['low']:.3g} to {interval['high']:.3g}"
    print(f"  {what:44}{value:8.4g}   {span:18}{published}")


def crafter(seeds: int | None) -> bool:
    """Random play's official score."""
    (row,) = evaluated("crafter-20", "--entrant", "random", "--seeds", str(seeds or 6000))["rows"]
    score = row["sets"]["score"]["estimate"]
    shown("Crafter, random, score", score["value"], score["interval"], "1.6")
    shown("Crafter, random, progression", row["figure"]["mean"], row["figure"]["interval"], "10.4, a share")
    return score["interval"] is None or bool(score["interval"]["low"] < 1.65 and score["interval"]["high"] >= 1.55)


def minigrid(seeds: int | None) -> bool:
    """Levels solved by the scripted agent."""
    (row,) = evaluated("minigrid-rooms", "--entrant", "minigrid-finder", "--seeds", str(min(seeds or 20, 20)))["rows"]
    shown(
        "MiniGrid, scripted agent, levels of 8",
        row["figure"]["mean"],
        row["figure"]["interval"],
        "8: each can be solved",
    )
    return bool(row["figure"]["mean"] == 8)


def axelrod(seeds: int | None) -> bool:
    """Payoffs of classic strategies, 200 turns."""
    found = {s["rating"]["entrant"]: s["mean"] for s in evaluated("axelrod")["standings"]}
    for name, published in AXELROD.items():
        shown(f"Prisoner's dilemma, {name}", found[name], None, f"{published:g}")
    return all(abs(found[name] - published) < 1e-9 for name, published in AXELROD.items())


def mafia(seeds: int | None) -> bool:
    """The Mafia's probability of winning in random play."""
    seeds = seeds or 200
    row = evaluated("mafia", "--seeds", str(seeds))["rows"][0]["figure"]
    # The share of winning seats is 2/7 if the Mafia wins and 5/7 if the town does.
    mean, ends = row["mean"], row["interval"]
    chance = {"low": (5 / 7 - ends["high"]) * 7 / 3, "high": (5 / 7 - ends["low"]) * 7 / 3} if ends else None
    shown("Mafia 2 of 7, random, who may abstain", (5 / 7 - mean) * 7 / 3, chance, "no formula")
    fits = True
    print("\nThe same engine if everybody always votes or kills:")
    for players, mafiosi in ((5, 1), (7, 2), (9, 2), (15, 4)):
        wins, games = mafia_wins((players, mafiosi, 0, 20 * seeds)), 20 * seeds
        low, high = binomtest(wins, games).proportion_ci(0.99)
        formula = by_day(players, mafiosi)
        shown(f"Mafia {mafiosi} of {players} (99 %)", wins / games, {"low": low, "high": high}, f"{formula:.4f}")
        fits &= bool(low <= formula <= high)
    return fits


CASES = {"crafter": crafter, "minigrid": minigrid, "axelrod": axelrod, "mafia": mafia}


def main() -> int:
    """Play and print."""
    parser = argparse.ArgumentParser(description="Compare results of wsap eval with published ones.")
    parser.add_argument("--case", action="append", choices=CASES, help="which tables (all)")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds of Crafter and Mafia (6000 and 200)")
    options = parser.parse_args()
    print(f"  {'':44}{'here':>8}   {'95 % interval':18}published")
    missed = [name for name in options.case or CASES if not CASES[name](options.seeds)]
    print("\nAll agree." if not missed else f"\nThese do not agree: {', '.join(missed)}.")
    return len(missed) > 0


if __name__ == "__main__":
    sys.exit(main())

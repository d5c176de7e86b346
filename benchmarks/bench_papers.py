"""Compare results of `wsap eval` with published ones, and with the original libraries played without WSAP.

    python benchmarks/bench_papers.py [--case crafter|minigrid|axelrod|mafia ...] [--seeds N]

By default Crafter is played on 6,000 seeds, about the million steps of the paper, and Mafia on 200. The column
"original" comes from `benchmarks/originals.py`, which imports no part of WSAP: raw Crafter on other seeds, the same
actions in raw MiniGrid, the library axelrod (`pip install axelrod`), and the Mafia counted by hand.

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
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import originals
from bench_tossim_rules import by_day, mafia_wins
from scipy.stats import binomtest, ttest_ind

from wsap_eval.digits import interval_of, number
from wsap_eval.stats import Interval
from wsap_nexus.store.database import Database
from wsap_nexus.store.repository import Repository

AXELROD = {"tit-for-tat": 2.49875, "grudger": 2.49875, "cooperator": 2.25, "defector": 2.01}
"""Mean payoff per turn by `axelrod` 4.14.0: Match(turns=200), over the four opponents, including itself."""


@contextmanager
def evaluated(*words: str) -> Iterator[tuple[dict[str, Any], Path]]:
    """Run `wsap eval`, print the command, and give its output and folder."""
    print("\n$ wsap eval " + " ".join(words), flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "x"
        command = [sys.executable, "-m", "wsap_core", "eval", *words, "--out", str(folder), "--json"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        yield dict(json.loads(done.stdout)), folder


def shown(what: str, value: float, interval: dict[str, Any] | None, original: str, published: str) -> None:
    """Print a figure with those of the original and of the publication."""
    found = None if interval is None else Interval(**{"level": 0.95, "method": "", **interval})
    told = f"{value:g}" if found is None else number(value, found)  # without an interval it is exact
    print(f"  {what:40}{told:>8}   {interval_of(found):18}{original:26}{published}")


def crafter(seeds: int | None) -> bool:
    """Random play's official score."""
    count = seeds or 6000
    with evaluated("crafter-20", "--entrant", "random", "--seeds", str(count)) as (found, folder):
        (row,) = found["rows"]
        lines = (json.loads(line) for line in (folder / "episodes.jsonl").read_text("utf-8").splitlines())
        here = [len(line["achievements"]) / originals.CRAFTER_ACHIEVEMENTS for line in lines]
    with ProcessPoolExecutor() as pool:
        raw = list(pool.map(originals.crafter_at_random, range(1_000_000, 1_000_000 + count), chunksize=20))
    shares = [originals.crafter_progression(episode) for episode in raw]
    same = float(ttest_ind(here, shares, equal_var=False).pvalue)
    score = row["sets"]["score"]["estimate"]
    shown("Crafter, random, score", score["value"], score["interval"], f"{originals.crafter_score(raw):.4g}", "1.6")
    progression = f"{100 * sum(shares) / count:.4g} (p {same:.2g})"
    shown(
        "Crafter, random, progression", row["figure"]["mean"], row["figure"]["interval"], progression, "10.4, a share"
    )
    fits = score["interval"] is None or bool(score["interval"]["low"] < 1.65 and score["interval"]["high"] >= 1.55)
    return fits and same > 0.001


def played(folder: Path) -> dict[int, list[str]]:
    """Return the recorded actions of an evaluation's episodes by seed."""
    with Database.open(str(folder / "runs.db"), read_only=True) as database:
        repository = Repository(database)
        return {
            run.seed: [
                json.loads(event.body)["step"]["action"]["name"]
                for event in repository.read_events(run.id, kinds=("step",))
            ]
            for run in repository.list_runs(limit=None)
        }


PACKED = """\
format = 1

[[games]]
game = "minigrid"
metric = "levels"
steps = 400
options = { pack = "yes" }

[seeds]
count = 20
"""


def minigrid(seeds: int | None) -> bool:
    """Levels solved by the scripted agent, and by its actions in MiniGrid itself."""
    count = str(min(seeds or 20, 20))
    fits = True
    with tempfile.TemporaryDirectory() as name:
        packed = Path(name) / "with-a-pack.toml"
        packed.write_text(PACKED, encoding="utf-8")
        for suite in ("minigrid-rooms", str(packed)):
            with evaluated(suite, "--entrant", "minigrid-finder", "--seeds", count) as (found, folder):
                (row,) = found["rows"]
                solved = [originals.minigrid_levels_solved(seed, acts) for seed, acts in played(folder).items()]
            raw, mean, pack = sum(solved) / len(solved), row["figure"]["mean"], suite != "minigrid-rooms"
            what = "MiniGrid, scripted agent, levels" + (", with a pack" if pack else "")
            published = "not MiniGrid's rules" if pack else "8: each can be solved"
            shown(what, mean, row["figure"]["interval"], f"{raw:.4g}", published)
            fits &= pack or bool(mean == raw == len(originals.MINIGRID_LEVELS))
    return fits


def axelrod(seeds: int | None) -> bool:
    """Payoffs of classic strategies, 200 turns."""
    with evaluated("axelrod") as (output, _):
        found = {s["rating"]["entrant"]: s["mean"] for s in output["standings"]}
    try:
        library = originals.axelrod_payoffs()
    except ImportError:
        library = {}
        print("  The library axelrod is not installed: pip install axelrod")
    fits = True
    for name, published in AXELROD.items():
        original = library.get(name)
        told = "not installed" if original is None else f"{original:g}"
        shown(f"Prisoner's dilemma, {name}", found[name], None, told, f"{published:g}")
        fits &= abs(found[name] - published) < 1e-9 and (original is None or abs(found[name] - original) < 1e-9)
    return fits


def mafia(seeds: int | None) -> bool:
    """The Mafia's probability of winning in random play."""
    seeds = seeds or 200
    with evaluated("mafia", "--seeds", str(seeds)) as (found, _):
        row = found["rows"][0]["figure"]
    # The share of winning seats is 2/7 if the Mafia wins and 5/7 if the town does.
    mean, ends = row["mean"], row["interval"]
    chance: dict[str, Any] | None = (
        {"low": (5 / 7 - ends["high"]) * 7 / 3, "high": (5 / 7 - ends["low"]) * 7 / 3} if ends else None
    )
    shown("Mafia 2 of 7, random, who may abstain", (5 / 7 - mean) * 7 / 3, chance, "-", "no formula")
    fits = True
    print("\nThe same engine if everybody always votes or kills:")
    for players, mafiosi in ((5, 1), (7, 2), (9, 2), (15, 4)):
        wins, games = mafia_wins((players, mafiosi, 0, 20 * seeds)), 20 * seeds
        low, high = binomtest(wins, games).proportion_ci(0.99)
        formula = by_day(players, mafiosi)
        counted = f"{originals.mafia_win_chance(players, mafiosi, games):.4f}, counted by hand"
        shown(
            f"Mafia {mafiosi} of {players} (99 %)", wins / games, {"low": low, "high": high}, counted, f"{formula:.4f}"
        )
        fits &= bool(low <= formula <= high)
    return fits


CASES: dict[str, Callable[[int | None], bool]] = {
    "crafter": crafter,
    "minigrid": minigrid,
    "axelrod": axelrod,
    "mafia": mafia,
}


def main() -> int:
    """Play and print."""
    parser = argparse.ArgumentParser(description="Compare results of wsap eval with published ones.")
    parser.add_argument("--case", action="append", choices=CASES, help="which tables (all)")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds of Crafter and Mafia (6000 and 200)")
    options = parser.parse_args()
    print(f"  {'':40}{'here':>8}   {'95 % interval':18}{'original':26}published")
    missed = [name for name in options.case or CASES if not CASES[name](options.seeds)]
    print("\nAll agree." if not missed else f"\nThese do not agree: {', '.join(missed)}.")
    return len(missed) > 0


if __name__ == "__main__":
    sys.exit(main())

"""Compare results of `wsap eval` with published ones, and with the original libraries played without WSAP.

    python benchmarks/bench_papers.py [--case crafter|minigrid|axelrod|mafia ...] [--seeds N] [--write]

By default Crafter is played on 6,000 seeds, about the million steps of the paper, MiniGrid and Mafia on 200;
`--seeds 20` takes minutes on a busy machine, and every line states its size. The column "original alone" comes from
`benchmarks/originals.py`, which imports no part of WSAP: raw Crafter on other seeds, the same actions in raw MiniGrid,
the library axelrod (`pip install axelrod`; without it, its four strategies played by hand), and the probabilities of
Mafia by a recursion.

Each table is produced by the command printed above it, in a temporary folder. `--write` records what was printed in
docs/explanation/published-tables.json and in the tables of the page beside it, which explains the published figures and
the differences between the protocols. The exit status is 1 if a figure that has to agree does not.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import originals
from bench_tossim_rules import mafia_wins
from published import Case, Figure, update
from scipy.stats import binomtest, ttest_ind

from wsap_eval.stats import Interval, estimate, set_metric
from wsap_eval.tables.digits import interval_of, number
from wsap_nexus.store.database import Database
from wsap_nexus.store.repository import Repository

AXELROD = {
    "tit-for-tat": (3, 3, 3, 0.995), "grudger": (3, 3, 3, 0.995), "cooperator": (3, 3, 3, 0),
    "defector": (1.02, 1.02, 5, 1),
}  # fmt: skip
"""Payoff per turn by `axelrod` 4.14.0, `Match(turns=200)`, against each of the four in this order."""
MANY = 1000
"""Seeds of the smaller sample of Crafter, from twice as many."""

Found = tuple[list[Figure], bool]
Span = Interval | Mapping[str, Any] | tuple[float, float] | None
"""An interval as the statistics, the JSON of a command, or the originals give it."""


@contextmanager
def evaluated(*words: str) -> Iterator[tuple[dict[str, Any], Path]]:
    """Run `wsap eval`, print the command, and give its output and folder."""
    print("\n$ wsap eval " + " ".join(words), flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "x"
        command = [sys.executable, "-m", "wsap_core", "eval", *words, "--out", str(folder), "--json"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        yield dict(json.loads(done.stdout)), folder


def interval(span: Span) -> Interval | None:
    """Return an interval from any of its forms."""
    if span is None or isinstance(span, Interval):
        return span
    low, high = span if isinstance(span, tuple) else (span["low"], span["high"])
    return Interval(low, high, 0.95, "")


def told(value: float, span: Span = None) -> tuple[str, str]:
    """Return a number and its interval as they are printed; a number without one is exact, and has all its digits."""
    found = interval(span)
    return (f"{value:g}" if found is None else number(value, found)), interval_of(found)


def figure(what: str, here: tuple[str, str], original: tuple[str, str] = ("-", "-"), published: str = "-") -> Figure:
    """Print and return a line of a table."""
    found = Figure(what, *here, *original, published)
    print(f"  {what:52}{here[0]:>9}  {here[1]:18}{original[0]:>9}  {original[1]:18}{published}", flush=True)
    return found


def unlocked(episodes: Sequence[Sequence[str]]) -> list[int]:
    """Return achievements by name as bit sets."""
    bits = {name: 1 << i for i, name in enumerate(sorted({name for episode in episodes for name in episode}))}
    return [sum(bits[name] for name in episode) for episode in episodes]


def score_of(episodes: Sequence[int]) -> tuple[str, str]:
    """Return Crafter's score of episodes here, with the interval that `wsap eval` prints."""
    found = set_metric({seed: [episode] for seed, episode in enumerate(episodes)}, originals.crafter_score)
    assert found.value is not None, "there are episodes"
    return told(found.value, found.interval)


def crafter(seeds: int | None) -> Found:
    """Random play's official score."""
    count = seeds or 6000
    with evaluated("crafter-20", "--entrant", "random", "--seeds", str(count)) as (found, folder):
        (row,) = found["rows"]
        lines = [json.loads(line) for line in (folder / "episodes.jsonl").read_text("utf-8").splitlines()]
    lines.sort(key=lambda line: int(line["seed"]))
    here = unlocked([line["achievements"] for line in lines])
    with ProcessPoolExecutor() as pool:
        raw = list(pool.map(originals.crafter_at_random, range(1_000_000, 1_000_000 + count), chunksize=20))
    mine, shares = ([100 * originals.crafter_progression(episode) for episode in part] for part in (here, raw))
    same = float(ttest_ind(mine, shares, equal_var=False).pvalue)
    score = row["sets"]["score"]["estimate"]
    size = f"{count} seeds"
    spread = originals.crafter_score_interval(raw) if count > 2 else None
    progression = told(statistics.fmean(shares), originals.mean_interval(shares))
    figures = [
        figure(
            f"random, score, {size}", told(score["value"], score["interval"]),
            told(originals.crafter_score(raw), spread), "1.6",
        ),
        figure(
            f"random, progression in percent, {size}", told(statistics.fmean(mine), estimate(mine).interval),
            progression, "10.4",
        ),
    ]  # fmt: skip
    if count >= 2 * MANY:
        draw = random.Random(0)
        drawn = sorted(originals.crafter_score(draw.sample(raw, MANY)) for _ in range(100))
        middle = Interval(drawn[2], drawn[-3], 0.95, "")
        figures.append(
            figure(
                f"random, score, first {MANY} seeds; original: 95 of 100 samples of {MANY}", score_of(here[:MANY]),
                told(statistics.median(drawn), middle),
            )
        )  # fmt: skip
    fits = score["interval"] is None or bool(score["interval"]["low"] < 1.65 and score["interval"]["high"] >= 1.55)
    return figures, fits and same > 0.001


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


def minigrid(seeds: int | None) -> Found:
    """Levels solved by the scripted agent and by random legal actions, and by the same actions in MiniGrid itself."""
    count = str(seeds or 200)
    figures: list[Figure] = []
    fits = True
    with tempfile.TemporaryDirectory() as name:
        packed = Path(name) / "with-a-pack.toml"
        packed.write_text(PACKED, encoding="utf-8")
        for suite, agent in (
            ("minigrid-rooms", "minigrid-finder"), ("minigrid-rooms", "random-legal"), (str(packed), "minigrid-finder")
        ):  # fmt: skip
            with evaluated(suite, "--entrant", agent, "--seeds", count) as (found, folder):
                (row,) = found["rows"]
                recorded = played(folder)
            alone = [originals.minigrid_levels_solved(seed, acts) for seed, acts in recorded.items()]
            solved, steps = [levels for levels, _ in alone], [acts for _, acts in alone]
            pack, scripted = suite != "minigrid-rooms", agent == "minigrid-finder"
            what = f"{'scripted agent' if scripted else 'random legal actions'}{', with a pack' if pack else ''}, "
            what += f"{count} seeds"
            published = "not MiniGrid's rules" if pack else "8, the maximum" if scripted else "-"
            mean, lengths = row["figure"]["mean"], [float(len(acts)) for acts in recorded.values()]
            figures += [
                figure(f"{what}: levels solved", told(mean, row["figure"]["interval"]), spread_of(solved), published),
                figure(f"{what}: actions", spread_of(lengths), ("-", "-") if pack else spread_of(steps)),
            ]
            fits &= pack or (mean == statistics.fmean(solved) and steps == lengths)
            fits &= pack or not scripted or mean == len(originals.MINIGRID_LEVELS)
    return figures, fits


def spread_of(values: Sequence[float]) -> tuple[str, str]:
    """Return the mean of an original's values with its interval, none if all are equal."""
    varied = len(set(values)) > 1
    return told(statistics.fmean(values), originals.mean_interval(values) if varied else None)


def axelrod(seeds: int | None) -> Found:
    """Payoffs of classic strategies, 200 turns."""
    with evaluated("axelrod") as (output, _):
        means = {s["rating"]["entrant"]: s["mean"] for s in output["standings"]}
        cells = {(r["entrant"], r["game"].rpartition(" against ")[2]): r["figure"]["mean"] for r in output["rows"]}
    by_hand = originals.axelrod_by_hand()
    try:
        library = originals.axelrod_payoffs()
    except ImportError:
        library = by_hand
        print("  The library axelrod is not installed (pip install axelrod); its strategies are played by hand.")
    figures, fits = [], by_hand == library
    for name, row in AXELROD.items():
        for other, published in zip(AXELROD, row, strict=True):
            found = cells[name, other], library[name, other]
            figures.append(figure(f"{name} against {other}", told(found[0]), told(found[1]), f"{published:g}"))
            fits &= all(math.isclose(value, published) for value in found)
        found = means[name], statistics.fmean(library[name, other] for other in AXELROD)
        figures.append(figure(f"{name}, mean", told(found[0]), told(found[1]), f"{statistics.fmean(row):g}"))
        fits &= all(math.isclose(value, statistics.fmean(row)) for value in found)
    return figures, fits


def mafia(seeds: int | None) -> Found:
    """The Mafia's probability of winning in random play."""
    seeds = seeds or 200
    with evaluated("mafia", "--seeds", str(seeds)) as (found, _):
        row = found["rows"][0]["figure"]
    # The share of winning seats is 2/7 if the Mafia wins and 5/7 if the town does.
    setups = [(round((5 / 7 - row["mean"]) * 7 / 3 * row["n"]), row["n"], 7, 2, True)]
    for players, mafiosi in ((5, 1), (7, 2), (9, 2), (15, 4)):
        setups.append((mafia_wins((players, mafiosi, 0, 20 * seeds)), 20 * seeds, players, mafiosi, False))
    figures, fits = [], True
    for wins, games, players, mafiosi, idle in setups:
        ends = binomtest(wins, games).proportion_ci(0.95)
        sure = binomtest(wins, games).proportion_ci(0.999)
        chance = originals.mafia_chance(players, mafiosi, idle=idle)
        what = f"{mafiosi} of {players}, {'wsap eval, may abstain' if idle else 'always vote or kill'}, {games} games"
        figures.append(
            figure(
                what,
                told(wins / games, (ends.low, ends.high)),
                (f"{chance:.4f}", "exact"),
                "-" if idle else f"{chance:.4f}",
            )
        )
        fits &= bool(sure.low <= chance <= sure.high)
    return figures, fits


CASES: dict[str, Callable[[int | None], Found]] = {
    "crafter": crafter,
    "minigrid": minigrid,
    "axelrod": axelrod,
    "mafia": mafia,
}


def main() -> int:
    """Play and print."""
    parser = argparse.ArgumentParser(description="Compare results of wsap eval with published ones.")
    parser.add_argument("--case", action="append", choices=CASES, help="which tables (all)")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds of Crafter, MiniGrid and Mafia (6000, 200, 200)")
    parser.add_argument("--write", action="store_true", help="record the figures and write the page's tables")
    options = parser.parse_args()
    if options.seeds is not None and options.seeds < 2:
        parser.error("--seeds must be 2 or more; an interval needs two seeds.")
    size = f" --seeds {options.seeds}" if options.seeds else ""
    print(f"  {'':52}{'here':>9}  {'95 % interval':18}{'original':>9}  {'95 % interval':18}published")
    missed: list[str] = []
    for name in options.case or CASES:
        figures, fits = CASES[name](options.seeds)
        missed += [] if fits else [name]
        if options.write:
            update({name: Case(f"python benchmarks/bench_papers.py --case {name}{size}", tuple(figures))})
    print("\nAll agree." if not missed else f"\nThese do not agree: {', '.join(missed)}.")
    return len(missed) > 0


if __name__ == "__main__":
    sys.exit(main())

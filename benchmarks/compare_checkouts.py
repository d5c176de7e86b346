"""Run benchmarks of two checkouts by turns, and print each figure's ratio: what a change costs.

    python benchmarks/compare_checkouts.py OTHER [NAME ...] [--rounds 3] [--json]

OTHER is another checkout of this repository, such as a worktree of the commit before a change, with an environment of
its own in `.venv`. Each NAME is a benchmark with its options, `"workers --rounds 3"` for `bench_workers.py --rounds 3`;
each runs from its own checkout, with that checkout's environment. In every round both checkouts run each benchmark
once, and begin by turns, so that other load on the machine affects them alike. A figure is any number that
both sides print, by its place in the JSON, or by the words of its line where a benchmark prints no JSON. Printed are
both medians, and of the rounds' ratios (this one's figure by the other's) the median, least and greatest. The
processor time of the whole benchmark is one figure more.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
NAMES = (
    "runtime",
    "log --quick",
    "llm",
    "agents --quick",
    "nexus --case transit",
    "wire --agents 200 --requests 200",
    "workers --rounds 5",
    "world_calls",
    "eval --case short --rounds 1",
    "backends --quick",
    "start --rounds 10",
)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    """Yield each number of a JSON value with its place; a row of a list is named by its first text."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from leaves(one, (*path, name))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            words = [text for text in one.values() if isinstance(text, str)] if isinstance(one, dict) else []
            yield from leaves(one, (*path, words[0] if words else str(index)))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield ".".join(path), float(value)


def lines(text: str) -> Iterator[tuple[str, float]]:
    """Yield each number of printed lines, named by the line's words and its place among the line's numbers."""
    for line in text.splitlines():
        words = " ".join(NUMBER.sub("#", line).split())
        for index, number in enumerate(NUMBER.findall(line)):
            yield f"{words} ({index + 1})", float(number.replace(",", ""))


def measure(checkout: Path, name: str) -> dict[str, float]:
    """Return the figures of one run of a benchmark.

    Raises:
        SystemExit: The benchmark printed no number.
    """
    bench, *options = shlex.split(name)
    script = checkout / "benchmarks" / f"bench_{bench}.py"
    if "--json" in script.read_text(encoding="utf-8"):
        options.append("--json")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [str(checkout / ".venv/bin/python"), str(script), *options]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        figures = dict(leaves(json.loads(done.stdout)))
    except ValueError:
        figures = dict(lines(done.stdout))
    if not figures:
        raise SystemExit(
            f"{checkout}: bench_{bench} printed no figure (exit {done.returncode}):\n{done.stderr[-2000:]}"
        )
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**figures, "processor seconds of the whole": cpu}


def compare(other: Path, name: str, rounds: int) -> list[dict[str, Any]]:
    """Run one benchmark in both checkouts, and return a row for each figure that both print and that is not fixed."""
    taken: dict[Path, list[dict[str, float]]] = {HERE: [], other: []}
    for number in range(rounds):
        for checkout in (HERE, other) if number % 2 else (other, HERE):
            taken[checkout].append(measure(checkout, name))
    rows = []
    for figure in taken[HERE][0]:
        pairs = [
            (ours[figure], theirs[figure])
            for ours, theirs in zip(taken[HERE], taken[other], strict=True)
            if ours.get(figure) and theirs.get(figure)
        ]
        if len(pairs) < rounds or all(ours == theirs for ours, theirs in pairs):
            continue
        ratios = [ours / theirs for ours, theirs in pairs]
        rows.append(
            {
                "benchmark": name,
                "figure": figure,
                "other": statistics.median(theirs for _, theirs in pairs),
                "this": statistics.median(ours for ours, _ in pairs),
                "ratio": statistics.median(ratios),
                "least": min(ratios),
                "greatest": max(ratios),
            }
        )
    return rows


def main() -> int:
    """Compare, and print a block for each benchmark as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in args.names:
        found = compare(args.other.resolve(), name, args.rounds)
        rows += found
        if not args.json:
            print(f"bench_{name}: other, this, this / other [least, greatest]")
            for row in found:
                spread = f"{row['ratio']:.2f} [{row['least']:.2f}, {row['greatest']:.2f}]"
                print(f"  {row['figure']:60} {row['other']:12.6g} {row['this']:12.6g}  {spread}", flush=True)
    if args.json:
        json.dump(rows, sys.stdout, indent=1)
        print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Measure that the time to parse a model's reply is proportional to its length, for any reply.

    python benchmarks/bench_parsing.py [--size N] [--quick] [--json]

Parses replies in the JSON style, legs of the tag style, and expressions for the calculator. The texts are the worst
known cases: unclosed nesting, quotes and tags. Each is parsed at half and at full size; a ratio of 2 is linear, 4
quadratic. The best CPU time of three counts. The ratio is omitted if half the size takes less than a millisecond.

Goal: no ratio above 3, and a reply of a million characters is parsed within a second. The exit status is 1 if it is
missed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator

from wsap_core.protocol import ActionDef, ParamDef, Tool
from wsap_llm.reply import read_reply
from wsap_llm.reply.tags import TagTurn, read_leg
from wsap_llm.tools.calculator import Calculator

RATIO_LIMIT = 3.0
SECONDS_LIMIT = 1.0
"""For a million characters."""
TOO_SHORT = 0.001
ACTIONS = (
    ActionDef("move", parameters=(ParamDef("direction", "north|south|east|west"),)),
    ActionDef("move_left"),
    ActionDef("say", parameters=(ParamDef("text", "what to say"),)),
    ActionDef("wait"),
)
TOOLS = (Tool("clock"), Tool("recall", parameters=(ParamDef("query", "what"),)))
PIECES = {
    "braces": "{",
    "nested objects": '{"a":',
    "nested lists": "[",
    "lists of objects": "[{",
    "quotes": '"',
    "open texts": '{"a": "',
    "backslashes": '{"a": "\\\\',
    "thinking": "<think>",
    "end of thinking": "</think>",
    "labels": "Action: ",
    "labelled lines": "Action: move\n",
    "names": "move_left ",
    "calls": "move(",
    "tags": "<action>",
    "elements": '<move a="',
    "intents": "I will ",
    "commas": "a, ",
    "keys": "{a: ",
    "comments": "{/*",
    "spaces": " ",
    "lines": "\n",
    "fences": "```",
    "apostrophes": "{'a': 'it's ",
    "enumeration": "1. ",
    "digits": "1",
    "pairs": "a=1, ",
}
"""Pieces that a bad reply repeats endlessly."""
BEGINNINGS = {
    "": "",
    " in thinking": "<think>",
    " in a text": '{"action": "move", "params": {"direction": "',
    " after a label": "Action: move ",
}
LETTERS = ('{}[]":,\\ a', "<>/ move_left\n", "{'a': 'b', }\n//")
LEGS = {"comparisons": "a < b ", "angles": "<", "begun tags": "<think", "open tags": "<say>", "other tags": "<b>x</b>"}
SUMS = {"brackets": "(", "signs": "-", "powers": "2**", "products": "9*", "numbers": "1", "functions": "sqrt("}

Case = tuple[str, Callable[[int], Callable[[], object]]]
"""Name, and a function from a size to the parse to be timed."""


def cases() -> Iterator[Case]:
    """Yield all cases."""
    for name, piece in PIECES.items():
        for place, beginning in BEGINNINGS.items():
            yield f"reply: {name}{place}", reply(beginning, piece)
    for letters in LETTERS:
        yield f"reply: chance of {letters.strip()!r}", chance(letters)
    for name, piece in LEGS.items():
        yield f"leg: {name}", leg(piece)
    for name, piece in SUMS.items():
        yield f"sum: {name}", calculation(piece)


def reply(beginning: str, piece: str) -> Callable[[int], Callable[[], object]]:
    """Return a case for a reply that repeats a piece."""

    def prepare(size: int) -> Callable[[], object]:
        text = beginning + piece * (size // len(piece))
        return lambda: read_reply(text, ACTIONS, TOOLS)

    return prepare


def chance(letters: str) -> Callable[[int], Callable[[], object]]:
    """Return a case for random letters, the same each time."""

    def prepare(size: int) -> Callable[[], object]:
        text = "".join(random.Random(5).choices(letters, k=size))
        return lambda: read_reply(text, ACTIONS, TOOLS)

    return prepare


def leg(piece: str) -> Callable[[int], Callable[[], object]]:
    """Return a case for a leg."""

    def prepare(size: int) -> Callable[[], object]:
        text = piece * (size // 10 // len(piece))  # a reply's token limit bounds a leg
        turn = TagTurn(TOOLS, ACTIONS)
        return lambda: read_leg(turn, text, inside_thinking=True)

    return prepare


def calculation(piece: str) -> Callable[[int], Callable[[], object]]:
    """Return a case for an expression."""

    def prepare(size: int) -> Callable[[], object]:
        text = piece * (size // len(piece))
        calculator = Calculator()
        return lambda: calculator.run({"expression": text})

    return prepare


def seconds(work: Callable[[], object]) -> float:
    """Return the best CPU time of three."""
    found = []
    for _ in range(3):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


def main() -> int:
    """Measure and print; 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=1_000_000, help="characters of the longer text")
    parser.add_argument("--quick", action="store_true", help="a tenth of that")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    options = parser.parse_args()
    size = options.size // 10 if options.quick else options.size
    rows = {}
    for name, prepare in cases():
        half, whole = seconds(prepare(size // 2)), seconds(prepare(size))
        ratio = round(whole / half, 2) if half >= TOO_SHORT else None
        rows[name] = {"ms": round(whole * 1000, 2), "ratio": ratio}
    slowest = max(row["ms"] or 0.0 for row in rows.values()) / 1000
    ratios = {name: row["ratio"] for name, row in rows.items() if row["ratio"] is not None}
    worst = max(ratios.values(), default=0.0)
    reached = worst <= RATIO_LIMIT and slowest <= SECONDS_LIMIT * size / 1_000_000
    report = {"size": size, "worst_ratio": worst, "slowest_ms": round(slowest * 1000, 1), "reached": reached}
    if options.json:
        print(json.dumps(report | {"texts": rows}, indent=1))
    else:
        print(f"{len(rows)} texts of {size:,} characters, each against half of it (2 is proportional)")
        print(f"  worst ratio {worst:.2f}, slowest {slowest * 1000:.0f} ms: {'reached' if reached else 'MISSED'}")
        for name in sorted(rows, key=lambda n: -(rows[n]["ratio"] or 0))[:6]:
            print(f"  {rows[name]['ratio'] or 0:5.2f}  {rows[name]['ms'] or 0:8.1f} ms  {name}")
        for name in sorted(rows, key=lambda n: -(rows[n]["ms"] or 0))[:4]:
            print(f"  {rows[name]['ratio'] or 0:5.2f}  {rows[name]['ms'] or 0:8.1f} ms  {name}")
    return 0 if reached or options.quick else 1


if __name__ == "__main__":
    sys.exit(main())

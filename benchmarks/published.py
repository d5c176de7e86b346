"""The record of `bench_papers.py`, and the tables of the page that shows it.

What stands on the page between `<!-- figures: CASE -->` and `<!-- end -->` is written from the record by `update`, and
a test compares the two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "published-tables.md"
RECORD = PAGE.with_suffix(".json")
HEADING = ("figure", "here", "95 % interval", "original alone", "its 95 % interval", "published")
BLOCK = re.compile(r"<!-- figures: (?P<case>[a-z]+) -->\n(?P<lines>.*?)<!-- end -->\n", re.DOTALL)


@dataclass(frozen=True)
class Figure:
    """One line of a table; all as it is printed, "-" for what does not exist."""

    what: str
    here: str
    interval: str = "-"
    original: str = "-"
    spread: str = "-"
    """The original's interval."""
    published: str = "-"


@dataclass(frozen=True)
class Case:
    """What one run of a case printed."""

    command: str
    figures: tuple[Figure, ...]
    note: str = ""
    """What a reader has to know about this run; empty if nothing."""


def table(figures: Sequence[Figure]) -> str:
    """Return figures as the lines of a Markdown table."""
    rows = [HEADING, ("---", *["---:"] * (len(HEADING) - 1)), *(tuple(asdict(figure).values()) for figure in figures)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def lines(case: Case) -> str:
    """Return what the page shows of a case: its table, and its note below."""
    return "\n" + table(case.figures) + (f"\n{case.note}\n" if case.note else "") + "\n"


def recorded(path: Path = RECORD) -> dict[str, Case]:
    """Return the recorded cases by name."""
    found = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return {
        name: Case(case["command"], tuple(Figure(**figure) for figure in case["figures"]), case["note"])
        for name, case in found.items()
    }


def shown(page: str) -> dict[str, str]:
    """Return what a page shows of each case."""
    return {block["case"]: block["lines"] for block in BLOCK.finditer(page)}


def update(cases: Mapping[str, Case], page: Path = PAGE, record: Path = RECORD) -> None:
    """Write cases to the record, and the record's tables to the page; cases that are not given stay as they are."""
    kept = recorded(record) | dict(cases)
    told = {name: asdict(case) for name, case in sorted(kept.items())}
    record.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def rewritten(block: re.Match[str]) -> str:
        name = block["case"]
        return f"<!-- figures: {name} -->\n{lines(kept[name])}<!-- end -->\n" if name in kept else block[0]

    page.write_text(BLOCK.sub(rewritten, page.read_text("utf-8")), encoding="utf-8")

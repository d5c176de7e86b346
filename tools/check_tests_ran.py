"""Fail if a test ran in none of several calls of pytest, because each of them skipped it or left it out.

WSAP_TESTS_RECORD=FOLDER python -m pytest ...
WSAP_TESTS_RECORD=FOLDER python -m pytest -m slow ...
python tools/check_tests_ran.py FOLDER
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

IMPOSSIBLE = {
    "(the suite)": True,  # a check of the conformance suite that does not apply to a game
    "needs two users": os.name == "posix" and os.geteuid() != 0,
    "permissions of a user who is not root": os.name != "posix",
}
"""Reasons that no stage can remove, and whether they hold on this machine."""


class Note(NamedTuple):
    """What one call of pytest did with a test, or with a module that it skipped as a whole."""

    test: str
    outcome: str
    """`ran`, `skipped` or `deselected`."""
    reason: str = ""


def read(folder: Path) -> list[Note]:
    """Return all notes in a folder."""
    lines = (line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text(encoding="utf-8").splitlines())
    return [Note(**json.loads(line)) for line in lines]


def never_run(notes: Iterable[Note]) -> dict[str, str]:
    """Return the tests and modules that ran in no call, with why the last call that had them did not run them."""
    ran: set[str] = set()
    left: dict[str, str] = {}
    for note in notes:
        if note.outcome == "ran":
            ran.update((note.test, note.test.partition("::")[0]))
        else:
            left[note.test] = note.reason or left.get(note.test) or "no call asked for it"
    impossible = [reason for reason, holds in IMPOSSIBLE.items() if holds]
    return {
        test: why
        for test, why in sorted(left.items())
        if test not in ran and not any(reason in why for reason in impossible)
    }


def main() -> int:
    """Print each test that ran nowhere; return the exit status."""
    notes = read(Path(sys.argv[1]))
    found = never_run(notes)
    for test, why in found.items():
        print(f"{test}: {why}")
    if not any(note.outcome == "ran" for note in notes):
        print(f"No test ran at all: {sys.argv[1]} holds no record of one.")
        return 1
    if found:
        print(f"{len(found)} tests ran in no stage. Give them what they need in one, or delete them.")
    else:
        print(f"All {len({note.test for note in notes if note.outcome == 'ran'})} tests ran in some stage.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Fail if a test ran in none of several calls of pytest, because each of them skipped it or left it out.

WSAP_TESTS_RECORD=FOLDER WSAP_TESTS_STAGE=tests python -m pytest ...
WSAP_TESTS_RECORD=FOLDER WSAP_TESTS_STAGE=slow python -m pytest -m slow ...
python tools/check_tests_ran.py FOLDER
python tools/check_tests_ran.py FOLDER docs/reference/promises.md

With a page of promises, fail if the test of one does not exist, or did not run in the stage that the page names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
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

ACCEPTED = {
    "needs llama-cpp-python": "it has no wheel, and compiling it can take longer than ten minutes",
}
"""Reasons that a stage could remove, at a price: why none does. Their tests are named at each run."""


class Note(NamedTuple):
    """What one call of pytest did with a test, or with a module that it skipped as a whole."""

    test: str
    outcome: str
    """`ran`, `skipped` or `deselected`."""
    reason: str = ""
    stage: str = ""
    """The stage of the checks, from `WSAP_TESTS_STAGE`."""


class Promise(NamedTuple):
    """A row of the page of promises."""

    text: str
    test: str
    """A test's id; without its parameters all of them."""
    part: str
    """The part that it runs with."""
    stage: str


_ROW = re.compile(r"^\| (?P<text>.+?) \| `(?P<test>[^`]+::[^`]+)` \| (?P<part>.+?) \| (?P<stage>\w+) \|$", re.MULTILINE)
ABSENT = {"PostgreSQL": not (shutil.which("initdb") or [*Path("/usr/lib/postgresql").glob("*/bin/initdb")])}
"""Parts that a machine may lack, and whether this one does; their promises are not checked there."""


def promises(page: str) -> list[Promise]:
    """Return the rows of a page of promises."""
    return [Promise(**found.groupdict()) for found in _ROW.finditer(page)]


def broken(promised: Iterable[Promise], notes: Iterable[Note]) -> dict[Promise, str]:
    """Return the promises whose test did not run in its stage, or was skipped there in part, with what happened."""
    known = list(notes)
    found: dict[Promise, str] = {}
    for promise in promised:
        mine = [n for n in known if n.test == promise.test or n.test.startswith(f"{promise.test}[")]
        there = [note for note in mine if note.stage == promise.stage and note.outcome != "deselected"]
        module = promise.test.partition("::")[0]
        left_out = [n.reason for n in known if n.test == module and n.stage == promise.stage and n.outcome == "skipped"]
        if skipped := [note.reason for note in there if note.outcome == "skipped"]:
            found[promise] = f"skipped there: {skipped[0]}"
        elif not there:
            elsewhere = sorted({note.stage or "a stage without a name" for note in mine if note.outcome == "ran"})
            told = f"it ran in: {', '.join(elsewhere)}" if elsewhere else "no stage has such a test"
            found[promise] = f"skipped there: {left_out[0]}" if left_out else f"it did not run there; {told}"
    return found


def read(folder: Path) -> list[Note]:
    """Return all notes in a folder, those of the last call last; its processes may have any numbers."""
    paths = sorted(folder.glob("*.jsonl"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    lines = (line for path in paths for line in path.read_text(encoding="utf-8").splitlines())
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


def check_promises(page: Path, notes: Iterable[Note]) -> int:
    """Print each promise that no test showed; return the exit status."""
    promised = promises(page.read_text(encoding="utf-8"))
    here = [promise for promise in promised if not any(part in promise.part for part, no in ABSENT.items() if no)]
    found = broken(here, notes)
    for promise, why in found.items():
        print(f"{promise.text}\n  {promise.test}, in {promise.stage}: {why}")
    if len(here) < len(promised):
        print(f"{len(promised) - len(here)} promises are left out, because this machine lacks their part.")
    if not promised or found:
        print(f"{len(found)} of {len(promised)} promises of {page.name} are not shown.")
        return 1
    print(f"All {len(here)} promises are shown.")
    return 0


def main() -> int:
    """Print each test that ran nowhere; return the exit status."""
    notes = read(Path(sys.argv[1]))
    if len(sys.argv) > 2:
        return check_promises(Path(sys.argv[2]), notes)
    found = never_run(notes)
    excused = {test: price for test, why in found.items() for reason, price in ACCEPTED.items() if reason in why}
    for test, why in found.items():
        print(f"{test}: {why}" + (f"; accepted: {excused[test]}" if test in excused else ""))
    found = {test: why for test, why in found.items() if test not in excused}
    if not any(note.outcome == "ran" for note in notes):
        print(f"No test ran at all: {sys.argv[1]} holds no record of one.")
        return 1
    if found:
        print(f"{len(found)} tests ran in no stage. Give them what they need in one, or delete them.")
    else:
        ran = len({note.test for note in notes if note.outcome == "ran"})
        print(f"{ran} tests ran in some stage; {len(excused)} are accepted to run in none.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

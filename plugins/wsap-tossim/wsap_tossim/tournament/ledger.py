"""The folder of a tournament: its settings, and one line of JSON for each finished game.

    tournament.json   {"format": "wsap-tossim-tournament", "version": 1, "settings": {...}}
    games.jsonl       a line for each finished game

A killed tournament continues after the last complete line. At its end the lines are in the order of the games.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from wsap_core.errors import UsageError, WireError
from wsap_core.textfile import refuse_pipe
from wsap_core.untrusted import single_line
from wsap_eval.kit import Journal, locked
from wsap_tossim.replay.page import write_text
from wsap_tossim.tournament.plan import Settings

__all__ = ["GAMES", "RESULTS", "SETTINGS", "Ledger", "Line", "packed_json", "row_in"]

FORMAT = "wsap-tossim-tournament"
VERSION = 1
SETTINGS, GAMES = "tournament.json", "games.jsonl"
RESULTS = ("ratings.csv", "games.csv", "spending.csv", "summary.json", "report.html")
"""Result files, overwritten whenever the tournament is continued."""
MOST_GAMES = 1_000_000
LARGEST_SETTINGS = 1_000_000

Line = dict[str, Any]
"""A finished game, as in `docs/reference/tossim-measures.md`. Any: JSON data."""


def packed_json(row: Mapping[str, Any]) -> str:
    """Return a row as the text of a line."""
    return json.dumps(row, separators=(",", ":"), allow_nan=False)


def row_in(line: bytes) -> Mapping[str, Any]:
    """Return the row of a line. Raises WireError if it is not a JSON object."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WireError(f"{error}.") from error
    if not isinstance(row, dict):
        raise WireError("It is not a JSON object.")
    return row


def _line_in(line: bytes) -> Line:
    row = dict(row_in(line))
    if type(row.get("game")) is not int or not 0 <= row["game"] < MOST_GAMES:
        raise WireError("It has no number of a game.")
    return row


class Ledger:
    """A tournament's folder, created if it is missing, locked against other processes.

    Raises:
        UsageError: the folder has a tournament with other settings, or can't be used.
        StorageLockedError: another process plays this tournament.
        WireError: a line is damaged.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        with ExitStack() as stack:
            busy = f"Another process plays the tournament in {str(folder)!r}; wait for it, or stop it."
            stack.callback(locked(folder, busy).release)
            self._check(folder / SETTINGS, settings)
            self._journal = stack.enter_context(Journal(folder / GAMES, _line_in, synced=True))
            self.played: dict[int, Line] = {}
            """Game -> its line."""
            for line in self._journal.rows:
                self.played.setdefault(line["game"], line)
            self._has_twins = len(self._journal.rows) > len(self.played)
            self._held = stack.pop_all()

    def add(self, line: Line) -> None:
        """Store a game; it is on disk when this returns.

        Raises:
            StorageError: it can't be written.
        """
        self._journal.add(packed_json(line))
        self.played[line["game"]] = line

    @property
    def cut(self) -> int:
        """Bytes of an incomplete line that were removed."""
        return self._journal.cut

    def lines(self) -> list[Line]:
        """Return all games, by number."""
        return [self.played[number] for number in sorted(self.played)]

    def tidy(self) -> None:
        """Put the stored lines in the order of their numbers, each once."""
        if self._has_twins or list(self.played) != sorted(self.played):
            self._journal.rewrite(map(packed_json, self.lines()))

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self._held.close()

    def _check(self, path: Path, settings: Settings) -> None:
        # after a round trip, so that lists and tuples are equal
        ours = json.loads(json.dumps(settings.to_json()))
        if not path.exists():
            for name in (GAMES, *RESULTS):
                if (path.parent / name).exists():
                    raise UsageError(
                        f"{str(path.parent)!r} has a {name} that would be overwritten, but no {SETTINGS}, so it is "
                        "not a tournament; choose another folder with --out."
                    )
            document = {"format": FORMAT, "version": VERSION, "settings": ours}
            write_text(path, json.dumps(document, indent=2) + "\n")
            return
        with _told(path.parent):
            refuse_pipe(path)
            data = path.read_bytes() if path.stat().st_size <= LARGEST_SETTINGS else b""
        try:
            document = json.loads(data)
            theirs = document["settings"]
            fits = document["format"] == FORMAT and isinstance(theirs, dict)
        except (ValueError, KeyError, TypeError, RecursionError):
            fits = False
        if not fits:
            raise WireError(f"{str(path)!r} is damaged, or not of a tournament; choose another folder.")
        if document.get("version") != VERSION:
            raise WireError(f"{str(path)!r} was written by another version; choose another folder.")
        if theirs != ours:
            raise UsageError(
                f"{str(path.parent)!r} has a tournament with other settings: {_difference(theirs, ours)}. "
                "Use the same settings to continue it, or choose another folder."
            )


def _difference(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """Return the first difference of two tournaments' settings, in words."""
    say: Callable[[Any], str] = lambda value: single_line(json.dumps(value))[:80]  # noqa: E731
    for name in ours:
        if theirs.get(name) != ours[name]:
            return f"{name} is {say(theirs.get(name))} there and {say(ours[name])} here"
    return "it has additional ones"


@contextlib.contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"The folder {str(folder)!r} can't be used: {why}; choose another with --out.") from error

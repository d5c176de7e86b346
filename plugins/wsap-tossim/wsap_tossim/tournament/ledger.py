"""The folder of a tournament: its settings, and one line of JSON for each finished game.

    tournament.json   {"format": "wsap-tossim-tournament", "version": 1, "settings": {...}}
    games.jsonl       a line for each finished game, in the order in which they were finished

A line counts once it is on the disk, so a tournament that is killed goes on after the last whole line.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from wsap_core.errors import StorageLockedError, UsageError, WireError
from wsap_core.untrusted import single_line
from wsap_tossim.replay.page import write_text
from wsap_tossim.tournament.journal import Journal
from wsap_tossim.tournament.plan import Settings

__all__ = ["GAMES", "RESULTS", "SETTINGS", "Ledger", "Line"]

FORMAT = "wsap-tossim-tournament"
VERSION = 1
SETTINGS, GAMES = "tournament.json", "games.jsonl"
RESULTS = ("ratings.csv", "games.csv", "spending.csv", "summary.json", "report.html")
"""Result files, overwritten whenever the tournament is continued."""
MOST_GAMES = 1_000_000
TAKE_OUT = "take the line out to have its game played again"
LARGEST_SETTINGS = 1_000_000

Line = dict[str, Any]
"""A game that was played; `docs/reference/tossim-measures.md` says what is in it (Any: it is JSON)."""


class Ledger:
    """An open folder that nobody else writes to.

    Args:
        folder: where; made if it is not there.
        settings: of the tournament; what is there already must be of the same.

    Raises:
        UsageError: there is a tournament with other settings, or the folder can't be used.
        StorageLockedError: another process plays this tournament.
        WireError: a line is damaged.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        from filelock import FileLock, Timeout  # deferred for weight

        with _told(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(folder / ".lock", timeout=0)
        with _told(folder):
            try:
                self._lock.acquire()
            except Timeout:
                raise StorageLockedError(
                    f"Another process plays the tournament in {str(folder)!r}; wait for it, or stop it."
                ) from None
        try:
            self._check(folder / SETTINGS, settings)
            self._journal = Journal(folder / GAMES)
            self.played: dict[int, Line] = {}
            """Game -> its line."""
            for number, line in enumerate(self._journal.rows, start=1):
                if type(line.get("game")) is not int or not 0 <= line["game"] < MOST_GAMES:
                    self._journal.close()
                    raise WireError(f"Line {number} of {str(folder / GAMES)!r} is damaged; {TAKE_OUT}.")
                self.played.setdefault(line["game"], dict(line))
        except BaseException:
            self._lock.release()
            raise

    def add(self, line: Line) -> None:
        """Store a game; it is on disk when this returns.

        Raises:
            UsageError: it can't be written.
        """
        self._journal.add(line)
        self.played[line["game"]] = line

    @property
    def cut(self) -> int:
        """How many bytes of a line that was cut off were taken away."""
        return self._journal.cut

    def lines(self) -> list[Line]:
        """Return all games, by number."""
        return [self.played[number] for number in sorted(self.played)]

    def close(self) -> None:
        """Close the folder and release its lock."""
        self._journal.close()
        self._lock.release()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self, path: Path, settings: Settings) -> None:
        # As they are after a round trip, so that lists and tuples are the same.
        ours = json.loads(json.dumps(settings.to_json()))
        if not path.exists():
            for name in (GAMES, *RESULTS):
                if (path.parent / name).exists():
                    raise UsageError(
                        f"{str(path.parent)!r} holds a {name} but no {SETTINGS}, so it is no tournament,  "
                        "and it would be overwritten; choose another folder with --out."
                    )
            document = {"format": FORMAT, "version": VERSION, "settings": ours}
            write_text(path, json.dumps(document, indent=2) + "\n")
            return
        with _told(path.parent):
            data = path.read_bytes() if path.stat().st_size <= LARGEST_SETTINGS else b""
        try:
            document = json.loads(data)
            theirs = document["settings"]
            fits = document["format"] == FORMAT and isinstance(theirs, dict)
        except (ValueError, KeyError, TypeError, RecursionError):
            fits = False
        if not fits:
            raise WireError(f"{str(path)!r} is damaged, or no tournament's; choose another folder.")
        if document.get("version") != VERSION:
            raise WireError(f"{str(path)!r} was written by another version; choose another folder.")
        if theirs != ours:
            raise UsageError(
                f"{str(path.parent)!r} holds a tournament with other settings: {_difference(theirs, ours)}. "
                "Start it with the same ones to go on, or choose another folder."
            )


def _difference(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """Return the first setting in which two tournaments differ, for a reader."""
    say: Callable[[Any], str] = lambda value: single_line(json.dumps(value))[:80]  # noqa: E731
    for name in ours:
        if theirs.get(name) != ours[name]:
            return f"{name} is {say(theirs.get(name))} there and {say(ours[name])} here"
    return "there are more of them"


@contextlib.contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Turn system errors into a sentence."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"The folder {str(folder)!r} can't be used: {why}; choose another with --out.") from error

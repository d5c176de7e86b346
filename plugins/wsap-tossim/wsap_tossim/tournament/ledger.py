"""The folder of a tournament: its settings, and one line of JSON for each finished game.

    tournament.json   {"format": "wsap-tossim-tournament", "version": 1, "settings": {...}}
    games.jsonl       a line for each finished game, in the order in which they were finished

A line counts once it is on the disk, so a tournament that is killed goes on after the last whole line.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from wsap_core.errors import StorageLockedError, UsageError, WireError
from wsap_core.untrusted import single_line
from wsap_tossim.replay.page import write_text
from wsap_tossim.tournament.plan import Settings

__all__ = ["GAMES", "RESULTS", "SETTINGS", "Ledger", "Line"]

FORMAT = "wsap-tossim-tournament"
VERSION = 1
SETTINGS, GAMES = "tournament.json", "games.jsonl"
RESULTS = ("ratings.csv", "games.csv", "spending.csv", "summary.json", "report.html")
"""Result files, overwritten whenever the tournament is continued."""
MOST_GAMES = 1_000_000
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
        WireError: a line is damaged that is not the last one.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        from filelock import FileLock, Timeout  # deferred for weight

        self.folder = folder
        self._file: IO[bytes] | None = None
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
            self._check(settings)
            self.played: dict[int, Line] = {}
            """Game -> its line."""
            self.repaired = self._read()
            """How many bytes of a line that was cut off were taken away."""
            with _told(folder):
                self._file = (folder / GAMES).open("ab")
        except BaseException:
            self._lock.release()
            raise

    def add(self, line: Line) -> None:
        """Store a game; it is on disk when this returns.

        Raises:
            UsageError: it can't be written.
        """
        assert self._file is not None, "the ledger is open"
        with _told(self.folder):
            self._file.write(json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        self.played[line["game"]] = line

    def lines(self) -> list[Line]:
        """Return all games, by number."""
        return [self.played[number] for number in sorted(self.played)]

    def close(self) -> None:
        """Close the folder and release its lock."""
        if self._file is not None:
            self._file.close()
        self._lock.release()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self, settings: Settings) -> None:
        path = self.folder / SETTINGS
        # As they are after a round trip, so that lists and tuples are the same.
        ours = json.loads(json.dumps(settings.to_json()))
        if not path.exists():
            for name in (GAMES, *RESULTS):
                if (self.folder / name).exists():
                    raise UsageError(
                        f"{str(self.folder)!r} holds a {name} but no {SETTINGS}, so it is no tournament,  "
                        "and it would be overwritten; choose another folder with --out."
                    )
            document = {"format": FORMAT, "version": VERSION, "settings": ours}
            write_text(path, json.dumps(document, indent=2) + "\n")
            return
        with _told(self.folder):
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
                f"{str(self.folder)!r} holds a tournament with other settings: {_difference(theirs, ours)}. "
                "Start it with the same ones to go on, or choose another folder."
            )

    def _read(self) -> int:
        """Read what was played, and cut off what is left of a line that was being written; return how much."""
        path = self.folder / GAMES
        if not path.exists():
            return 0
        good = 0
        cut = 0
        with _told(self.folder), path.open("r+b") as file:
            for number, data in enumerate(file, start=1):
                line = _parsed(data)
                if line is None:
                    if file.read(1):
                        raise WireError(
                            f"Line {number} of {str(path)!r} is damaged and is not the last one; "
                            "take the line out to have its game played again."
                        )
                    cut = len(data)
                    file.seek(good)
                    file.truncate()
                    os.fsync(file.fileno())
                    break
                self.played.setdefault(line["game"], line)
                good += len(data)
        return cut


def _parsed(data: bytes) -> Line | None:
    """Return a line, or None if it is damaged."""
    if not data.endswith(b"\n"):
        return None
    try:
        line = json.loads(data)
        number = line["game"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return line if type(number) is int and 0 <= number < MOST_GAMES and isinstance(line, dict) else None


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

"""A game with the thoughts of its players, as one JSON file: `town.json`.

    {"format": "wsap-tossim-game", "version": 1, "game": what `Game.to_json` gives, "names": [...],
     "minds": [...], "thoughts": [[round, player, text], ...], "beliefs": [[day, player, {"3": 0.25}], ...],
     "found_out": [players whose beliefs were recomputed; omitted if there are none]}

Reading a record replays the game, so edits that break the rules are detected. Nothing in a file is executed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wsap_core.errors import SnapshotError, UsageError, WireError
from wsap_core.protocol.values import JsonValue
from wsap_core.textfile import refuse_pipe
from wsap_core.untrusted import error_line
from wsap_tossim.engine.game import Game
from wsap_tossim.replay.page import page_of, write_text
from wsap_tossim.replay.story import Belief, Story, Thought, View

__all__ = ["FORMAT", "LARGEST", "Record", "load_record", "record_from_json", "save_record", "until"]

FORMAT = "wsap-tossim-game"
VERSION = 1
LARGEST = 64_000_000
"""Maximum bytes of a record."""


@dataclass(frozen=True)
class Record:
    """A game, its players, and their thoughts."""

    game: Game
    names: Sequence[str]
    played_by: Sequence[str] = ()
    """Who played each seat; empty if unknown."""
    thoughts: Sequence[tuple[int, int, str]] = ()
    """Round, player, text; see `Thought`."""
    beliefs: Sequence[tuple[int, int, Mapping[int, float]]] = ()
    """Day, player, and for each other player the probability that it is evil; see `Belief`."""
    found_out: Sequence[int] = ()
    """Players whose beliefs were recomputed after the game."""

    def page(self, view: View | None = None, *, called: str = "") -> str:
        """Return the page of this game; see `replay_page`. `called` is its name for `wsap tossim fork`, if known.

        Raises:
            UsageError: the number of names is wrong, or there is no such player.
        """
        story = Story.of(self.game, self.names, self.thoughts, self.beliefs, self.played_by)
        return page_of(replace(story, found_out=tuple(self.found_out), called=called), view)

    def to_json(self) -> dict[str, Any]:
        """Return the contents of the file; JSON-ready."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "game": self.game.to_json(),
            "names": list(self.names),
            "minds": list(self.played_by),
            "thoughts": [list(row) for row in self.thoughts],
            "beliefs": [[day, who, {str(p): e for p, e in sorted(evil.items())}] for day, who, evil in self.beliefs],
            **({"found_out": list(self.found_out)} if self.found_out else {}),
        }


def save_record(path: Path, record: Record) -> None:
    """Write a record atomically; an existing file is overwritten.

    Raises:
        UsageError: it can't be written.
    """
    write_text(path, json.dumps(record.to_json(), separators=(",", ":"), allow_nan=False) + "\n")


def load_record(path: Path) -> Record:
    """Return the record in a file.

    Raises:
        UsageError: it can't be read, or is too large.
        WireError: it is not a record, is damaged, or was written by a newer version.
        SnapshotError: its game can't be replayed.
    """
    return record_from_json(parsed(read_bytes(path), str(path)), str(path))


def read_bytes(path: Path) -> bytes:
    """Return the contents of a file.

    Raises:
        UsageError: it can't be read, or is too large.
    """
    try:
        refuse_pipe(path)
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{str(path)!r} can't be read: {why}.") from error
    if len(data) > LARGEST:
        raise UsageError(f"{str(path)!r} is larger than {LARGEST // 1_000_000} MB, the maximum for a game's record.")
    return data


def parsed(data: bytes, source: str) -> Any:
    """Parse JSON of any type.

    Raises:
        WireError: it is not JSON.
    """
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else error_line(error, 120)
        raise WireError(f"{source!r} is not a game's record: it is not JSON ({what}).") from error


def record_from_json(data: Any, source: str = "The record") -> Record:
    """Return a record from the output of `Record.to_json`, untrusted; `source` is its origin, for messages.

    Raises:
        WireError: it is not a record, is damaged, or was written by a newer version.
        SnapshotError: its game can't be replayed.
    """
    reader = _Reader(source)
    fields = reader.table(data, "it")
    if fields.get("format") != FORMAT:
        raise WireError(f"{source!r} is not a game's record: its format is not {FORMAT!r}.")
    if fields.get("version") != VERSION:
        found = str(fields.get("version"))[:20]
        raise WireError(f"{source!r} has version {found} of the record's format; this package reads {VERSION}.")
    try:
        game = Game.from_json(reader.table(fields.get("game"), "game"))
    except SnapshotError as error:
        raise SnapshotError(f"{source!r} can't be replayed: {error}") from error
    count = len(game.state.players)
    names = [reader.text(name, f"names[{n}]") for n, name in enumerate(reader.rows(fields.get("names"), "names"))]
    played_by = [reader.text(m, f"minds[{n}]") for n, m in enumerate(reader.rows(fields.get("minds", []), "minds"))]
    if len(names) != count or len(played_by) not in (0, count):
        raise reader.damaged(
            f"the game has {count} players, but there are {len(names)} names and {len(played_by)} minds"
        )
    thoughts = [
        Thought(reader.number(r, where, 0, 10**6), reader.number(p, where, 0, count - 1), reader.text(t, where))
        for (r, p, t), where in reader.triples(fields.get("thoughts", []), "thoughts")
    ]
    beliefs = [
        Belief(reader.number(d, where, 1, 10**6), reader.number(p, where, 0, count - 1), reader.evil(e, where, count))
        for (d, p, e), where in reader.triples(fields.get("beliefs", []), "beliefs")
    ]
    found_out = [
        reader.number(player, f"found_out[{n}]", 0, count - 1)
        for n, player in enumerate(reader.rows(fields.get("found_out", []), "found_out"))
    ]
    return Record(game, tuple(names), tuple(played_by), tuple(thoughts), tuple(beliefs), tuple(found_out))


def until(played_by: Sequence[str], at: int, now: Sequence[str]) -> tuple[str, ...]:
    """Return who played each seat if other players take over at a round."""
    return tuple(
        then if was == then else f"{was or 'somebody'} until round {at}, then {then}"
        for was, then in zip(played_by, now, strict=True)
    )


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not a JSON number")


class _Reader:
    """Checks untrusted data, and names the invalid part in errors."""

    def __init__(self, source: str) -> None:
        self.source = source

    def damaged(self, what: str) -> WireError:
        return WireError(f"{self.source!r} is damaged: {what}.")

    def table(self, value: JsonValue, where: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.damaged(f"{where} is not an object")
        return value

    def rows(self, value: JsonValue, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.damaged(f"{where} is not a list")
        return value

    def text(self, value: JsonValue, where: str) -> str:
        if not isinstance(value, str):
            raise self.damaged(f"{where} has a value that is not text")
        return value

    def number(self, value: JsonValue, where: str, low: int, high: int) -> int:
        if type(value) is not int or not low <= value <= high:
            raise self.damaged(f"{where} has {str(value)[:20]!r} instead of a whole number from {low} to {high}")
        return value

    def triples(self, value: JsonValue, where: str) -> list[tuple[tuple[Any, Any, Any], str]]:
        found: list[tuple[tuple[Any, Any, Any], str]] = []
        for n, row in enumerate(self.rows(value, where)):
            if not isinstance(row, list) or len(row) != 3:
                raise self.damaged(f"{where}[{n}] is not a list of three")
            found.append(((row[0], row[1], row[2]), f"{where}[{n}]"))
        return found

    def evil(self, value: JsonValue, where: str, count: int) -> dict[int, float]:
        found: dict[int, float] = {}
        for key, share in self.table(value, where).items():
            player = int(key) if key.isascii() and key.isdigit() and len(key) <= 3 else -1
            if not 0 <= player < count or isinstance(share, bool) or not isinstance(share, int | float):
                raise self.damaged(f"{where} has {key[:20]!r}: {str(share)[:20]!r}, not a player's probability")
            if not 0 <= share <= 1:
                raise self.damaged(f"{where} has the probability {str(share)[:20]}; it must be from 0 to 1")
            found[player] = float(share)
        return found

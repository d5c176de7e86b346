"""Sources of games: exported runs, game records, and JSON lines of records such as those of tournaments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wsap_core.errors import UsageError, WireError
from wsap_core.protocol import Action
from wsap_core.protocol.values import JsonValue
from wsap_tossim.engine.data.model import Choice, Verb
from wsap_tossim.engine.game import WRITINGS, Game
from wsap_tossim.export.sent import Heard
from wsap_tossim.export.walk import Deed, Source
from wsap_tossim.options import TownOptions
from wsap_tossim.replay.record import FORMAT, Record, parsed, read_bytes, record_from_json
from wsap_tossim.replay.runs import RUN_FORMAT, head_of, nothing_played, rows_of_export, telling_damage
from wsap_tossim.tool_use import WRITES
from wsap_tossim.verbs import to_action

__all__ = ["games_of_run", "source_of_record", "sources_in"]

_TOOL_OF: Mapping[str, str] = {what: tool for tool, what in WRITES.items()}
_HOLDS = ("record", "town", "game")
"""Members of a line that can hold a record."""


def sources_in(path: Path) -> Iterator[Source]:
    """Yield the games in a file or in a folder's files (`*.json`, `*.jsonl`).

    A file is a game's record, an exported run, or JSON lines of records: each line is one, or has one in its
    member `record`, `town` or `game`; other lines are skipped.

    Raises:
        UsageError: there is no such file, it can't be read or is too large, or the folder has no game.
        WireError: a file is none of these, or is damaged.
        SnapshotError: a game can't be replayed.
    """
    if not path.is_dir():
        yield from _in_file(path)
        return
    found = False
    for file in sorted(p for p in path.rglob("*.json*") if p.suffix in (".json", ".jsonl") and p.is_file()):
        for source in _in_file(file, anything=True):
            found = True
            yield source
    if not found:
        raise UsageError(f"There is no ToSSim game in {str(path)!r}: no file there has a record.")


def _in_file(path: Path, *, anything: bool = False) -> Iterator[Source]:
    data = read_bytes(path)
    head = data.split(b"\n", 1)[0]
    if f'"{RUN_FORMAT}"'.encode() in head:
        yield from games_of_run(rows_of_export(data, str(path)), str(path))
    elif path.suffix == ".jsonl":
        yield from _in_lines(data, str(path), anything=anything)
    else:
        whole = parsed(data, str(path))
        record = _record_in(whole)
        if record is None and anything:
            return
        yield source_of_record(record_from_json(whole if record is None else record, str(path)))


def _in_lines(data: bytes, name: str, *, anything: bool) -> Iterator[Source]:
    found = False
    for number, row in enumerate(rows_of_export(data, name), start=1):
        record = _record_in(row)
        if record is not None:
            found = True
            yield source_of_record(record_from_json(record, f"{name}, game {number}"))
    if not found and not anything:
        raise WireError(f"{name!r} has no ToSSim game.")


def _record_in(row: JsonValue) -> Mapping[str, JsonValue] | None:
    if not isinstance(row, dict):
        return None
    for held in (row, *(row.get(name) for name in _HOLDS)):
        if isinstance(held, dict) and held.get("format") == FORMAT:
            return held
    return None


def source_of_record(record: Record) -> Source:
    """Return a record as a game to replay. A record does not contain lookups."""
    game = record.game
    options = TownOptions(game.setup, game.rules, tuple(record.names), 8, "public")
    thoughts: dict[tuple[int, int], list[str]] = {}
    for number, player, text in record.thoughts:
        if text.strip():
            thoughts.setdefault((number, player), []).append(text)
    deeds = []
    books: dict[int, str] = {}
    for entry in game.record:
        if entry.verb in WRITINGS:
            text = entry.text
            if entry.verb == "notebook":
                text = _added(books.get(entry.player, ""), text)
                books[entry.player] = entry.text
            deeds.append(Deed(entry.player, Action(_TOOL_OF[entry.verb], {"text": text}), whole=entry.text))
            continue
        why = "\n".join(thoughts.get((entry.round, entry.player), ())) or None
        choice = Choice(Verb(entry.verb), entry.targets, entry.text)
        deeds.append(Deed(entry.player, to_action(choice, record.names, why), entry.forced))
    played_by = tuple(record.played_by) or ("",) * len(record.names)
    return Source(_digest(game), options, game.fork(0), deeds, played_by)


def _added(before: str, after: str) -> str:
    """Return the text added to a notebook, whose first lines may have been dropped."""
    at = 0
    while before:
        if after.startswith(f"{before}\n"):
            return after[len(before) + 1 :]
        at = before.find("\n") + 1
        before = before[at:] if at else ""
    return after


def _digest(game: Game) -> str:
    text = json.dumps(game.to_json(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def games_of_run(rows: Iterable[Mapping[str, Any]], name: str) -> Iterator[Source]:
    """Yield the games of an exported run, one for each episode, with their tool calls; `name` is for messages.

    Raises:
        WireError: it is not a run of this game, or is damaged.
    """
    with telling_damage(name):
        yield from _games(iter(rows), name)


def _games(rows: Iterator[Mapping[str, Any]], name: str) -> Iterator[Source]:
    head = head_of(rows, name)
    options = head.options
    if head.run is None:
        raise KeyError("run")
    episode = -1
    seed: int | None = None
    deeds: list[Deed] = []
    heard = Heard()

    def source() -> Source:
        assert seed is not None, "an episode has begun"
        begins = options.begin(seed)
        return Source(f"{head.run}/{episode + 1}", options, begins, tuple(deeds), head.played_by, head.styles)

    for row in rows:
        kind = row.get("kind")
        if kind == "episode":
            if seed is not None:
                yield source()
            seed, episode, deeds = int(row["body"]["seed"]), episode + 1, []
        elif kind == "call":
            heard.call(str(row["seat"]), row["body"])
        elif kind == "chosen":
            deeds.append(_deed(row, head.seats.player(str(row["seat"])), heard.before(str(row["seat"]))))
        elif kind == "left":
            deeds.append(Deed(head.seats.player(str(row["seat"])), None))
    if seed is None:
        raise nothing_played(name)
    yield source()


def _deed(row: Mapping[str, Any], player: int, sent: Sequence[tuple[str, str]]) -> Deed:
    body = row["body"]
    action = Action(str(body["action"]["name"]), body["action"]["parameters"], body.get("reasoning"))
    how = body.get("decision") or {}
    return Deed(player, action, bool(how.get("forced") or how.get("chosen")), sent=sent)

"""Checks of snapshots: complete, without side effects, and safe to restore."""

from __future__ import annotations

import base64
import gzip
import json
import pickle
import pickletools
import random
import zlib
from collections.abc import Callable, Iterator
from typing import Any, cast

from wsap_check.checks.trajectory import digests, first_different, request_for, trajectories_elsewhere
from wsap_check.play import RandomPlayer, Table, must_not_disturb, unless_interrupted
from wsap_check.raised import describe
from wsap_check.steps import Step, first_difference, fresh_text
from wsap_check.subject import Notes, Subject, check, other_processes
from wsap_core.errors import SnapshotError
from wsap_core.seams.game import Snapshots

_POINTS = 4
"""Number of snapshots in a game."""

_ONWARDS = 40
"""Steps compared after each."""

_EVERY = 40
"""Steps at the start of a game after each of which a snapshot is restored into used worlds."""

_TO_THE_END = 200
"""Steps of the world that has reached the end of an episode, if it can in so many."""

_FROM_THE_END = 5
"""Of so many snapshots, one is also restored into the world at the end of an episode, whose own state may be large."""

_DERIVED = "restore() must set the whole state, and derive nothing from what the world was before."


@check("snapshot")
async def snapshot_continues(notes: Notes, subject: Subject) -> None:
    """A world restored in the middle of an episode continues identically, whatever it was before."""
    await unless_interrupted(notes, subject, _continues)


async def _continues(subject: Subject, cut: bool | int) -> tuple[str, str] | None:
    """Return how a restored world continues otherwise than the saved one, and where it was saved; None if alike."""
    if (found := await _same_everywhere(subject, cut)) is not None:
        return found
    table = await Table(subject).begin()
    for point in range(_POINTS):
        saved, where = table.world.snapshot(), table.where()
        own: Any = cast(Snapshots, table.world.adapter).snapshot()
        if not isinstance(own, bytes):
            return f"snapshot() returned a {type(own).__name__}, not bytes.", where
        other = await Table(subject, subject.seed + 1).begin()
        await other.play(RandomPlayer(40), 5, cut=cut)
        other.world.restore(saved)
        other.seed, other.episode = table.seed, table.episode
        one, two = [await each.play(RandomPlayer(41 + point), _ONWARDS, cut=cut) for each in (table, other)]
        if found := first_difference(one, two):
            return f"A world restored from a snapshot continues differently: {found[0]}.", f"snapshot at {where}"
        if table.over:
            await table.next_episode()
        await table.play(RandomPlayer(50 + point), max(1, subject.steps // _POINTS), cut=cut)
        if table.over and point % 2:
            await table.next_episode()
    return None


async def _same_everywhere(subject: Subject, cut: bool | int) -> tuple[str, str] | None:
    """Restore each of the first steps of an episode into worlds that have been used, one of which is a step further and
    the other at the end of another episode; return where they do not show the same and continue for a step alike."""
    table, ahead, ended = [await Table(subject, subject.seed + other).begin() for other in range(3)]
    await ended.play(RandomPlayer(51, "available"), min(subject.steps, _TO_THE_END))
    end = ended.world.snapshot()
    for number in range(min(subject.steps, _EVERY)):
        saved, where = table.world.snapshot(), f"snapshot at {table.where()}"
        if not isinstance(cast(Any, table.world.adapter).snapshot(), bytes):
            return None  # which the check reports
        before, over = await _sights(table), table.over
        one = await table.play(RandomPlayer(number), 1, cut=cut)
        for other in (ahead, ended) if number % _FROM_THE_END == 0 else (ahead,):
            if other is ended:
                ended.world.restore(end)
            other.world.restore(saved)
            other.seed, other.episode = table.seed, table.episode
            now = await _sights(other)
            if wrong := next((name for name, seen in before.items() if seen != now[name]), None):
                differs = (
                    "waits for its turn in one of them" if None in (before[wrong], now[wrong]) else "sees otherwise"
                )
                message = f"A used world restored from a snapshot is not what the saved one was: {wrong} {differs}. "
                return message + _DERIVED, where
            if found := first_difference(one, await other.play(RandomPlayer(number), 1, cut=cut)):
                message = f"A used world restored from a snapshot continues differently: {found[0]}. {_DERIVED}"
                return message, where
        if over:
            break
    return None


async def _sights(table: Table) -> dict[str, str | None]:
    """Return what each seat observes now; None for one that waits for its turn."""
    seen = {s.agent_id: await table.now(s.face.observe(), 0.01) for s in table.seats}
    return {name: None if what is None else fresh_text(what) for name, what in seen.items()}


@check("snapshot", other_processes)
async def snapshot_elsewhere(notes: Notes, subject: Subject) -> None:
    """A world restored in another process continues identically."""
    request = request_for(subject)
    table = await _played(subject, 45)
    if table.over:
        await table.next_episode()
    saved, where = base64.b64encode(table.world.snapshot()).decode(), table.where()
    here = await table.play(RandomPlayer(46), _ONWARDS)
    onwards = {**request, "snapshot": saved, "play_seed": 46, "steps": _ONWARDS}
    position = first_different(digests(here), next(trajectories_elsewhere(onwards))[1])
    differs = f"A world restored in another process continues differently, {position} steps after the snapshot. "
    differs += "A snapshot must contain the whole state, without references into this process."
    notes.expect(position is None, differs, f"snapshot at {where}")


async def _played(subject: Subject, player: int) -> Table:
    """Return a table after some steps."""
    table = await Table(subject).begin()
    await table.play(RandomPlayer(player), max(5, subject.steps // 10))
    return table


@check("snapshot")
async def snapshot_silent(notes: Notes, subject: Subject) -> None:
    """Taking a snapshot changes nothing."""
    if subject.can("multi-seat"):
        table = await Table(subject).begin()
        await table.play(RandomPlayer(60), 4)
        same = table.world.snapshot() == table.world.snapshot()
        notes.expect(same, "Two snapshots of one moment differ.", table.where())
        return

    def take(table: Table, count: int, _: Step) -> None:
        if count % 3 == 2:
            table.world.snapshot()

    await must_not_disturb(notes, subject, 60, take, "Taking snapshots changes")


@check("snapshot")
async def snapshot_refuses(notes: Notes, subject: Subject) -> None:
    """An invalid snapshot is refused with SnapshotError, and changes nothing."""
    table = await _played(subject, 61)
    adapter, where = cast(Snapshots, table.world.adapter), table.where()
    good = adapter.snapshot()
    before = await _state(table, adapter)
    for name, data, must in _damages(good):
        try:
            adapter.restore(data)
        except SnapshotError:
            same = await _state(table, adapter) == before
            if not notes.expect(same, f"A refused snapshot ({name}) changed the state.", where):
                return
            continue
        except Exception as error:
            notes.error(f"{describe(error)} for {name}; it must raise SnapshotError.", where, type(error).__name__)
        else:
            notes.expect(not must, f"restore() accepted {name} as a snapshot.", where, "took")
        adapter.restore(good)
        before = await _state(table, adapter)


async def _state(table: Table, adapter: Snapshots) -> str:
    saved = base64.b64encode(adapter.snapshot()).decode()
    return saved if len(table.seats) > 1 else saved + await table.seen()


def _damages(good: bytes) -> Iterator[tuple[str, bytes, bool]]:
    """Yield names, data, and whether it must be refused, or may be accepted as an older snapshot."""
    yield "no data", b"", bool(good)
    yield "random bytes", random.Random(0).randbytes(200), True
    yield "an empty JSON object", b"{}", True
    yield "a JSON null", b"null", True
    yield "a JSON list", b"[]", True
    yield "deeply nested JSON", b"[" * 100_000, True
    yield "half a snapshot", good[: len(good) // 2], len(good) > 1
    yield "a pickle", pickle.dumps({"step": 1}), True
    state = _read_json(good)
    for key in sorted(state) if isinstance(state, dict) else ():
        yield f"one without {key!r}", json.dumps({k: v for k, v in state.items() if k != key}).encode(), False
        wrongs: tuple[Any, ...] = (None, "wrong", -1, [], {})
        for wrong in wrongs:
            yield f"one with {key!r} = {wrong!r}", json.dumps({**state, key: wrong}).encode(), False


def _read_json(data: bytes) -> Any:
    """Return the value of JSON text, or None if it is invalid."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


@check("snapshot")
async def snapshot_is_data(notes: Notes, subject: Subject) -> None:
    """A snapshot is data and contains no pickle."""
    table = await _played(subject, 62)
    saved = cast(Snapshots, table.world.adapter).snapshot()
    pickled = "The snapshot contains a pickle, which runs code when it is read. Use JSON, or a format of your own."
    notes.expect(not any(map(_holds_pickle, _layers(saved))), pickled, table.where())


def _layers(data: bytes, depth: int = 0) -> Iterator[bytes]:
    """Yield the data, and its decompressed and decoded contents."""
    yield data
    if depth > 3:
        return
    openers: tuple[Callable[[bytes], bytes], ...] = (zlib.decompress, gzip.decompress, _from_base64)
    for opener in openers:
        try:
            inner = opener(data)
        except (ValueError, OSError, EOFError, zlib.error):
            continue
        yield from _layers(inner, depth + 1)
    for text in _texts(_read_json(data)):
        if len(text) > 8:
            yield from _layers(text.encode("utf-8", "replace"), depth + 1)


def _from_base64(data: bytes) -> bytes:
    return base64.b64decode(data, validate=True)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _holds_pickle(data: bytes) -> bool:
    if b"\x80\x04\x95" in data or b"\x80\x05\x95" in data:
        return True
    try:
        opcodes = [opcode.name for opcode, _, _ in pickletools.genops(data)]
    except Exception:
        return False
    return len(opcodes) > 2 and opcodes[-1] == "STOP" and (opcodes[0] == "PROTO" or "GLOBAL" in opcodes)

"""Checks of worlds that live by themselves: their ticks, and what is done to them from outside."""

from __future__ import annotations

import asyncio
from typing import cast

from wsap_check.play import refused
from wsap_check.subject import Fault, Notes, Subject, check
from wsap_core.errors import WireError
from wsap_core.protocol.ticks import Tick
from wsap_core.protocol.wire import dumps
from wsap_core.seams.game import Influenced, Lives
from wsap_core.worlds import World

_TICKS = 5


async def _advanced(notes: Notes, subject: Subject, world: World, count: int) -> list[str]:
    """Return the ticks, as JSON, of a world in which no seat is taken."""
    game, found = cast(Lives, world.adapter), list[str]()
    for _ in range(count):
        try:
            tick = await asyncio.wait_for(game.advance(), 4 * subject.patience)
        except TimeoutError:
            raise Fault("advance() waits for a seat, and none is taken.") from None
        if not isinstance(tick, Tick):
            raise Fault(f"advance() returned a {type(tick).__name__}, not a Tick.")
        try:
            found.append(dumps(tick))
        except WireError as error:
            notes.error(f"A tick can't be sent: {error}", about="wire")
            return found
        if tick.done:
            break
    return found


async def _begun(subject: Subject) -> World:
    world = subject.world()
    await world.reset(seed=subject.seed)
    return world


@check("lives")
async def ticks(notes: Notes, subject: Subject) -> None:
    """A world that lives goes on without seats, and the same seed gives the same ticks."""
    found = await _advanced(notes, subject, await _begun(subject), _TICKS)
    if subject.can("seed") and found != await _advanced(notes, subject, await _begun(subject), _TICKS):
        notes.error("The same seed gave two different sequences of ticks. All chance comes from the seed.")
    world = await _begun(subject)
    for number in range(1, len(found) + 1):
        tick = await cast(Lives, world.adapter).advance()
        if tick.number != number:
            notes.error(f"Tick {number} has the number {tick.number}; ticks count from 1.", about="number")


@check("lives", "snapshot")
async def ticks_continue(notes: Notes, subject: Subject) -> None:
    """A world that lives goes on from a snapshot with the same ticks."""
    world, other = await _begun(subject), await _begun(subject)
    await _advanced(notes, subject, world, 2)
    other.restore(world.snapshot())
    if await _advanced(notes, subject, world, _TICKS) != await _advanced(notes, subject, other, _TICKS):
        notes.error("A world restored from a snapshot goes on with different ticks.")


@check("influence")
async def refused_influence(notes: Notes, subject: Subject) -> None:
    """An influence that makes no sense is refused with a UsageError and changes nothing."""
    world = await _begun(subject)
    game = cast(Influenced, world.adapter)
    before = world.snapshot() if world.can_snapshot else b""
    for body in ({}, {"kind": "no such thing"}, {"kind": 7}, {"kind": None, "text": "\u202e"}):
        if did := await refused(lambda body=body: game.influence(body)):  # type: ignore[misc]
            notes.error(f"influence({body!r}) must be refused with a UsageError, but {did}.", about="influence")
    if world.can_snapshot and world.snapshot() != before:
        notes.error("A refused influence changed the world.")

"""Stopping of concurrent seats: all together, or one of several."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from wsap_core.errors import RecordMismatchError
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.loop import SeatLoop
from wsap_nexus.runs.record.deadlock import DeadlockDetector
from wsap_nexus.tasks import ended


async def play_until_stopped(loop: SeatLoop, episode: int, own: Controls | None, run: Controls) -> None:
    """Play an episode of a seat, which ends as soon as its `own` controls stop it, whatever it waits for."""
    if own is None:
        await loop.episode(episode)
        return
    playing = asyncio.create_task(loop.episode(episode))
    stopped = asyncio.create_task(own.until_stopped())
    try:
        await asyncio.wait({playing, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not playing.done() and not run.stopping:
            if loop.acting:
                # The world was told of its choice: remove the seat, and process the result.
                if not loop.let_go:  # else its recorded removal is being repeated
                    await loop.leave(episode)
                await playing
            else:
                await ended(playing)
        if playing.done() and not playing.cancelled():
            playing.result()
    finally:
        await ended(playing, stopped)


async def side_by_side(
    tasks: Sequence[asyncio.Task[None]],
    controls: Controls,
    deadlock: DeadlockDetector | None,
    *,
    ends_before: Sequence[asyncio.Task[None]],
    more: asyncio.Event | None,
) -> str | None:
    """Wait until all tasks but those in `ends_before` are done, or the run is stopped; then cancel the rest.

    In a deadlock of the replay, return the seat whose recorded turn does not come. `more` is set when tasks were added;
    None if none ever is.
    """
    stop = asyncio.create_task(controls.until_stopped())
    standing = None if deadlock is None else asyncio.create_task(deadlock.noticed())
    pending: set[asyncio.Task[None]] = set(tasks)
    adding = None if more is None else asyncio.create_task(more.wait())
    try:
        while pending - set(ends_before):
            awaited: set[asyncio.Future[Any]] = {*pending, stop}
            if standing is not None:
                awaited.add(standing)
            if adding is not None:
                awaited.add(adding)
            done, _ = await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if more is not None and adding in done:
                more.clear()
                adding = asyncio.create_task(more.wait())
                pending |= {task for task in tasks if not task.done()}
            pending -= done
            for task in done & set(tasks):
                if not task.cancelled():
                    task.result()
            if stop in done:
                break
            if standing is not None and standing in done and pending:
                return standing.result()
    finally:
        await ended(*tasks, stop, standing, adding)
    return None


def stuck_at(name: str, game: str, loops: Sequence[SeatLoop], *, again: bool) -> RecordMismatchError:
    """Return the error of a replay that never reaches the recorded turn of a seat, or of a world that lives."""
    numbers = {loop.seat.agent_id: loop.next_decision for loop in loops}
    where = f"step {numbers[name]} of seat {name!r}" if name in numbers else "the next tick"
    return RecordMismatchError(
        f"{game!r} does not reach {where}, which is recorded and which all seats wait for, so the run can't be "
        f"{'repeated' if again else 'resumed'}. Has the game changed?"
    )

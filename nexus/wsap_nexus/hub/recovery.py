"""A failed world as it was after its last good step: what its run began with, and every step of the log again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from wsap_core.errors import WorldError, WsapError
from wsap_core.protocol.wire import Codec
from wsap_nexus.hub.venue import START, KeptVenue
from wsap_nexus.runs.recorder import read_snapshot, read_step
from wsap_nexus.runs.tally import step_line
from wsap_nexus.store.repository import Repository
from wsap_nexus.worlds.port import WorldFace
from wsap_nexus.worlds.seats import SeatFace, leave


async def last_good_state(
    make: Callable[[], WorldFace], repository: Repository, run_id: str, *, seat: str, seed: int, codec: Codec
) -> bytes | None:
    """Return the state after the last recorded step, with the seat left and its body suspended.

    The world is made anew, elsewhere if worlds are made elsewhere, and goes through what it went through
    without failing; the step at which it failed was not recorded.

    Args:
        make: gives a new world of the same game, seed and options.
        repository: the log.
        run_id: the run of one seat, all of it written.
        seat: the seat.
        seed: of the world.
        codec: reads the game's recorded messages.

    Returns:
        None where the world keeps nothing, or does not get there again.
    """
    start = next(iter(repository.read_events(run_id, kinds=(START,))), None)
    if start is None or start.data.get("world") is None:
        return None
    face: WorldFace | None = None
    try:
        face = make()
        venue = KeptVenue(face, seed=seed, start=start.body)
        player = (await venue.open([seat], seed))[seat]
        await _go_through(face, player, repository, run_id, codec)
        if player.left is None:
            await leave(player, "suspend")
        return await face.snapshot()
    except WsapError:
        return None
    finally:
        if face is not None:
            with contextlib.suppress(WorldError):
                await face.close()


async def _go_through(face: WorldFace, player: SeatFace, repository: Repository, run_id: str, codec: Codec) -> None:
    after = 0
    saved = repository.last_event(run_id, "snapshot")
    if saved is not None:
        await face.restore(read_snapshot(saved.body)[0])
        after = saved.seq
    for event in repository.read_events(run_id, from_seq=after, kinds=("step",)):
        if event.seq <= after:
            continue
        step = read_step(event.seq, event.episode, event.step or 0, event.body, codec)
        await player.observe()
        outcome = await player.resolve(step.action)
        if step_line(player.agent_id, outcome.action, outcome.result) != step.line:
            raise WorldError(f"{face.spec.name!r} did not go the way it was recorded.")

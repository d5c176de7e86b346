"""A world that lives, as it was after any tick of a run: to look at, to go back to, and to branch from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import select
from typing_extensions import override

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_core.seams.game import GameAdapter
from wsap_core.worlds import World
from wsap_nexus.runs.checkpoint import Checkpoint
from wsap_nexus.runs.controls import Controls
from wsap_nexus.runs.life_log import PASSAGES, LoggedPassage, read_life
from wsap_nexus.runs.open_run import OpenRun
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.resume import read_past
from wsap_nexus.runs.revisiting import SILENT, Revisited
from wsap_nexus.runs.run import Run
from wsap_nexus.runs.session import ResolvedSpecs, resolve_specs
from wsap_nexus.runs.totals import summary_now
from wsap_nexus.store.export import RecordedRuns
from wsap_nexus.store.records import RunRecord
from wsap_nexus.store.repository import Repository
from wsap_nexus.store.tables import METADATA
from wsap_nexus.store.ticks import TickPosition, find_tick

_TRANSFER = METADATA.tables["transfer"]


async def restored(repository: Repository, record: RunRecord, specs: ResolvedSpecs, position: TickPosition) -> World:
    """Return the world of a run as it was after a tick; no model is asked, and nothing is recorded.

    Raises:
        UsageError: the world does not live.
        RecordMismatchError: it does not go the way that is recorded.
        WireError: an event is damaged.
    """
    plan = replace(RunPlan.from_config(record.config), steps=None)
    plan = replace(plan, seats=tuple(replace(seat, options={}) for seat in plan.seats))
    if not plan.lives:
        raise UsageError(f"The world of run {record.id!r}, {record.game!r}, does not go on by itself: it has no ticks.")
    silent = {} if plan.open else {seat.name: SILENT for seat in plan.seats}
    past = read_past(repository, record.id, plan, specs.game, silent, specs.codec(), until=position)
    controls = Controls()
    controls.finish()  # as soon as a new tick would begin
    run: Run
    if plan.open:
        passages = _passages(repository, record, past, position)
        run = passages.run = OpenRun(
            plan, specs.game, {}, past=past, controls=controls, seat_controls=passages.controls, passages=passages,
            run_id=record.id,
        )  # fmt: skip
    else:
        own = {seat.name: Controls() for seat in plan.seats}
        run = Run(plan, specs.game, silent, past=past, controls=controls, seat_controls=own)
    await run.play()
    assert run.world is not None  # it was played
    return run.world


def _passages(repository: Repository, record: RunRecord, past: Checkpoint, position: TickPosition) -> Revisited:
    """Return those who came into the world of a run and left it until a tick."""
    saved = -1 if position.snapshot is None or past.world is None else position.snapshot.seq
    there: dict[str, LoggedPassage] = {}
    later: list[LoggedPassage] = []
    for event in repository.read_events(record.id, to_seq=position.end + 1, kinds=PASSAGES):
        for logged in read_life(event):
            if isinstance(logged, LoggedPassage) and logged.seq > saved:
                later.append(logged)
            elif isinstance(logged, LoggedPassage) and logged.arrives and logged.seat in past.seats:
                there[logged.seat] = logged
    with repository.database.read() as connection:
        query = select(_TRANSFER.c.id).where(_TRANSFER.c.state == "cancelled", _TRANSFER.c.kind == "enter")
        cancelled = set(connection.execute(query).scalars())
    return Revisited(tuple(there.values()), later, cancelled)


class Runs(RecordedRuns):
    """Recorded runs, with the worlds in them: the kernel's `RunReader`."""

    def __init__(self, host: PluginHost, repository: Repository) -> None:
        super().__init__(repository)
        self._host = host

    @override
    def _about(self, run: RunRecord) -> dict[str, Any]:  # Any: JSON
        return {**super()._about(run), "summary": summary_now(self._repository, run)}

    async def restored(self, run: str, step: int | None = None) -> GameAdapter:
        """Return a world that lives as it was after a tick; see `wsap_core.seams.services.RunReader`.

        Raises:
            UnknownNameError: there is no such run.
            UsageError: it has no such tick.
        """
        record = self._repository.get_run(run)
        specs = resolve_specs(replace(RunPlan.from_config(record.config), seats=()), self._host)  # nobody decides
        position = find_tick(self._repository, record, step)
        return (await restored(self._repository, record, specs, position)).adapter

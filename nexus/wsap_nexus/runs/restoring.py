"""A world that lives, as it was after any tick of a run: to look at, to go back to, and to branch from."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import override

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_core.seams.game import GameAdapter
from wsap_core.specs import AgentSpec
from wsap_core.worlds import World
from wsap_nexus.runs.controls import Controls
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.resume import read_past
from wsap_nexus.runs.run import Run
from wsap_nexus.runs.session import ResolvedSpecs, resolve_specs
from wsap_nexus.runs.totals import summary_now
from wsap_nexus.store.export import RecordedRuns
from wsap_nexus.store.records import RunRecord
from wsap_nexus.store.repository import Repository
from wsap_nexus.store.ticks import TickPosition, find_tick


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
    silent = {seat.name: AgentSpec("silent", "Waits.", _Silent, ("snapshot",), interactive=True) for seat in plan.seats}
    past = read_past(repository, record.id, plan, specs.game, silent, specs.codec(), until=position)
    controls = Controls()
    controls.finish()  # as soon as a new tick would begin
    own = {seat.name: Controls() for seat in plan.seats}
    run = Run(plan, specs.game, silent, past=past, controls=controls, seat_controls=own)
    await run.play()
    assert run.world is not None  # it was played
    return run.world


class Runs(RecordedRuns):
    """Recorded runs, with the worlds in them: the kernel's `RunReader`.

    Args:
        host: has the games.
        repository: where the runs are.
    """

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
        specs = resolve_specs(RunPlan.from_config(record.config), self._host)
        position = find_tick(self._repository, record, step)
        return (await restored(self._repository, record, specs, position)).adapter


class _Silent:
    """An agent that does nothing: what is recorded is done in its place."""

    async def initialize(self, game_description: str, action_space: ActionSpace) -> None:
        """Take nothing in."""

    async def decide(self, observation: Observation) -> Action:
        """Never decide."""
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    async def reflect(self, result: ActionResult) -> None:
        """Learn nothing."""

    async def plan(self, goals: Sequence[Goal]) -> Sequence[str]:
        """Plan nothing."""
        return ()

    def snapshot(self) -> bytes:
        """Return nothing."""
        return b""

    def restore(self, data: bytes) -> None:
        """Stay as it is."""

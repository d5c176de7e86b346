"""Views of recorded runs, and worlds that live restored to any tick, to look at or to branch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import override

from wsap_core import protocol
from wsap_core.errors import PluginError, UsageError, WsapError
from wsap_core.factories import load
from wsap_core.host import PluginHost
from wsap_core.seams.context import Context
from wsap_core.seams.game import GameAdapter
from wsap_core.seams.services import RunReader
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import error_line
from wsap_core.worlds import World
from wsap_nexus.runs.open_run import OpenRun
from wsap_nexus.runs.plan import RunPlan, SeatPlan, game_of
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.recorded_agent import GONE
from wsap_nexus.runs.record.life_log import WITHDRAWN, LoggedPassage
from wsap_nexus.runs.resume import Checkpoint, read_past
from wsap_nexus.runs.run import Run, RunSetup
from wsap_nexus.runs.session import ResolvedSpecs, resolve_specs
from wsap_nexus.runs.totals import summary_now
from wsap_nexus.runs.views.arrivals import Arrivals, read_arrivals, read_there, took_place
from wsap_nexus.runs.visitor_seat import seat_again
from wsap_nexus.store.history import TickPosition, find_tick
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.store.records import RunRecord
from wsap_nexus.store.repository import Repository
from wsap_nexus.store.upkeep.export import RecordedRuns
from wsap_nexus.worlds.port import LivingPort, avatar_in, let_in_again
from wsap_nexus.worlds.seats import SeatPort, leave


def spec_with_views(run: RunRecord, host: PluginHost) -> AdapterSpec | None:
    """Return the game of a run if it is installed and gives views of its runs; None otherwise."""
    try:
        spec = game_of(run, host)
    except WsapError:
        return None
    return spec if spec.run_views is not None else None


def view_of_run(spec: AdapterSpec, runs: RunReader, run: str, selection: Mapping[str, str]) -> protocol.View:
    """Return a game's view of a run for a selection (name -> value).

    Raises:
        PluginError: the game's code failed.
        WsapError: the run can't be read.
    """
    assert spec.run_views is not None, "asked by spec_with_views()"
    try:
        view = load(spec.run_views)(runs, run, selection)
    except WsapError:
        raise
    except Exception as error:
        why = error_line(error, 200, kind=True).rstrip(". ")
        raise PluginError(f"{spec.name} could not show run {run!r}: {why}. Tell its author.") from error
    if not isinstance(view, protocol.View):
        raise PluginError(f"{spec.name} returned a {type(view).__name__} as the view of run {run!r}. Tell its author.")
    return view


class Revisited:
    """The passages of a world that is restored to an earlier tick.

    Args:
        there: the arrivals of the agents present when the state was saved.
        later: all arrivals and departures after that, with their outcomes.
    """

    def __init__(self, there: Sequence[LoggedPassage], later: Arrivals) -> None:
        self.run: OpenRun
        """The run; set before it is played."""
        self.controls: dict[str, Controls] = {}
        """By seat."""
        self._there, self._later = there, later
        self._here: dict[str, tuple[str, SeatPort]] = {}
        self._idle: set[str] = set()
        """Seats whose agents were let in and did not get to play."""
        self._going: dict[str, asyncio.Future[None]] = {}
        self._goes = asyncio.Event()

    def opened(self) -> None:
        """Do nothing: nobody views the world meanwhile."""

    async def take(self, episode: int) -> None:
        """Do nothing: there are no new arrivals and departures."""

    async def again(self, logged: LoggedPassage) -> None:
        """Replay an arrival or departure."""
        seat = logged.seat
        if not logged.arrives:
            while seat not in self._going and seat in self._here and seat not in self._idle:
                self._goes.clear()
                await self._goes.wait()
            await self._let_out(seat, logged.transfer)
            return
        if self._later.outcome(logged) == WITHDRAWN:
            return
        await self._sit(logged, await let_in_again(self._port, seat, logged.body), plays=self._later.plays(logged))

    async def restored(self, restore: Callable[[], Awaitable[None]]) -> None:
        """Open the seats of the agents present when the state was saved, restore it, and seat them."""
        seat_ports = [await self._port.open_seat(logged.seat) for logged in self._there]
        await restore()
        for logged, seat_port in zip(self._there, seat_ports, strict=True):
            await self._sit(logged, seat_port, resting=True)

    async def departed(self, seat: str) -> None:
        """Wait until the agent of a seat is let out."""
        self._going[seat] = out = asyncio.get_running_loop().create_future()
        self._goes.set()
        await out

    def failed(self, seat: str, error: WsapError) -> None:
        """Do nothing."""

    def decides_elsewhere(self, seat: str) -> bool:
        """Return False: what agents decided is only repeated."""
        return False

    async def _sit(
        self, logged: LoggedPassage, seat_port: SeatPort, *, plays: bool = True, resting: bool = False
    ) -> None:
        seat, seat_port = logged.seat, seat_again(seat_port, logged.body)
        self._here[seat] = (str(logged.body["avatar"]), seat_port)
        if not plays:
            self._idle.add(seat)
            return
        self.controls[seat] = Controls()
        if self._later.leaves(logged):
            self.controls[seat].finish()
        await self.run.join(SeatPlan(seat, GONE.name, {}), GONE, seat_port, resting=resting)

    async def _let_out(self, seat: str, transfer: str) -> None:
        out = self._going.pop(seat, None)
        if seat not in self._here:
            return
        avatar, seat_port = self._here.pop(seat)
        self._idle.discard(seat)
        body = await avatar_in(self._port, seat, avatar)
        if seat_port.left is None and body.state is protocol.AvatarState.BOUND:
            await leave(seat_port)
        await self._port.release(body.avatar_id, transfer)
        await self.run.close_seat(seat)
        self.controls.pop(seat, None)
        if out is not None and not out.done():
            out.set_result(None)

    @property
    def _port(self) -> LivingPort:
        return self.run.living


async def restored(repository: Repository, record: RunRecord, specs: ResolvedSpecs, position: TickPosition) -> World:
    """Return the world of a run as it was after a tick, in this process; see `played_to`."""
    world = (await played_to(repository, record, specs, position)).world
    assert world is not None  # it was played
    return world


async def played_to(
    repository: Repository,
    record: RunRecord,
    specs: ResolvedSpecs,
    position: TickPosition,
    make_world: Callable[[Context], LivingPort] | None = None,
) -> Run:
    """Return a run with its world as it was after a tick, without model calls and without recording.

    Args:
        make_world: makes an open world; by default in this process.

    Raises:
        UsageError: the world does not live.
        RecordMismatchError: it diverges from the recording.
        WireError: an event is damaged.
    """
    plan = replace(RunPlan.from_config(record.config), steps=None)
    plan = replace(plan, seats=tuple(replace(seat, options={}) for seat in plan.seats))
    if not plan.lives:
        raise UsageError(f"The world of run {record.id!r}, {record.game!r}, does not live: it has no ticks.")
    silent = {} if plan.open else {seat.name: GONE for seat in plan.seats}
    past = read_past(repository, record.id, plan, specs.game, silent, specs.codec(), until=position)
    controls = Controls()
    controls.finish()  # before a new tick
    run: Run
    if plan.open:
        passages = _passages(repository, record, past, position)
        run = passages.run = OpenRun(
            plan,
            specs.game,
            {},
            RunSetup(
                past=past,
                controls=controls,
                seat_controls=passages.controls,
                passages=passages,
                run_id=record.id,
                make_world=make_world,
            ),
        )
    else:
        own = {seat.name: Controls() for seat in plan.seats}
        run = Run(plan, specs.game, silent, RunSetup(past=past, controls=controls, seat_controls=own))
    await run.play()
    return run


def _passages(repository: Repository, record: RunRecord, past: Checkpoint, position: TickPosition) -> Revisited:
    saved = -1 if position.snapshot is None or past.world is None else position.snapshot.seq
    there = read_there(repository, record.id, past.seats)
    later = read_arrivals(repository, record.id, there=there, from_seq=saved + 1, to_seq=position.end + 1)
    if later.unsettled:
        with NexusStore(repository.database).look() as tx:
            later = later.settled(lambda arrival: took_place(tx, repository, record.id, arrival))
    return Revisited(there, later)


class Runs(RecordedRuns):
    """Recorded runs with their worlds: the kernel's `RunReader`."""

    def __init__(self, host: PluginHost, repository: Repository) -> None:
        super().__init__(repository)
        self._host = host

    @override
    def about(self, run: str) -> Mapping[str, Any]:  # Any: JSON
        return {**super().about(run), "summary": summary_now(self._repository, self._repository.get_run(run))}

    async def restored(self, run: str, step: int | None = None) -> GameAdapter:
        """Return a world that lives, as it was after a tick; see `wsap_core.seams.services.RunReader`.

        Raises:
            UnknownNameError: there is no such run.
            UsageError: it has no such tick.
        """
        record = self._repository.get_run(run)
        specs = resolve_specs(replace(RunPlan.from_config(record.config), seats=()), self._host)  # without agents
        position = find_tick(self._repository, record, step)
        return (await restored(self._repository, record, specs, position)).adapter

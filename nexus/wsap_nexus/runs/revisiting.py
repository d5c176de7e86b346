"""Those who came into a recorded world in play and left it, gone through again without their minds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

from wsap_core.errors import WorldError, WsapError
from wsap_core.protocol import Action, ActionResult, ActionSpace, AvatarSpec, AvatarState, Entry, Goal, Observation
from wsap_core.protocol.wire import Codec, encode
from wsap_core.specs import AgentSpec
from wsap_nexus.runs.controls import Controls
from wsap_nexus.runs.life_log import LoggedPassage
from wsap_nexus.runs.open_run import OpenRun
from wsap_nexus.runs.plan import SeatPlan
from wsap_nexus.worlds.port import LocalWorld, avatar_in
from wsap_nexus.worlds.seats import SeatPort, leave


class Silent:
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


SILENT = AgentSpec("silent", "Waits.", Silent, ("snapshot",), interactive=True)


class Revisited:
    """The passages of a world that is gone back to.

    Args:
        there: the arrivals of those who were there when the state was saved.
        later: all arrivals and departures after that, in order.
        cancelled: the transfers that did not take place, although the world had let somebody in.
    """

    def __init__(
        self, there: Sequence[LoggedPassage], later: Sequence[LoggedPassage], cancelled: Collection[str]
    ) -> None:
        self.run: OpenRun
        """The run; set before it is played."""
        self.controls: dict[str, Controls] = {}
        """What stops each seat."""
        self._there, self._later, self._cancelled = there, later, cancelled
        self._here: dict[str, tuple[str, SeatPort]] = {}
        self._going: dict[str, asyncio.Future[None]] = {}
        self._goes = asyncio.Event()

    async def take(self, episode: int) -> None:
        """Let nobody in or out: nothing new happens."""

    async def again(self, logged: LoggedPassage) -> None:
        """Carry out an arrival or departure again."""
        seat, body, port, codec = logged.seat, logged.body, self._port, Codec()
        if not logged.arrives:
            while seat not in self._going and seat in self._here:
                self._goes.clear()
                await self._goes.wait()
            await self._let_out(seat, str(body["transfer"]))
            return
        entry = codec.decode(Entry, body["entry"], where="recorded arrival")
        if entry.transfer_id in self._cancelled and not self._leaves(logged):
            return
        await port.create_avatar(seat, codec.decode(AvatarSpec, body["wanted"], where="recorded arrival"))
        if encode(await port.admit(str(body["avatar"]), entry)) != body["receipt"]:
            raise WorldError(f"The game {port.spec.name!r} did not let {seat!r} in as it was recorded.")
        await self._sit(logged, await port.open_seat(seat))

    async def restored(self, restore: Callable[[], Awaitable[None]]) -> None:
        """Open the seats of those who were there when the state was saved, have it restored, and seat them."""
        faces = [await self._port.open_seat(logged.seat) for logged in self._there]
        await restore()
        for logged, face in zip(self._there, faces, strict=True):
            await self._sit(logged, face, resting=True)

    async def departed(self, seat: str) -> None:
        """Have somebody who has left let out, and return after that."""
        self._going[seat] = out = asyncio.get_running_loop().create_future()
        self._goes.set()
        await out

    def failed(self, seat: str, error: WsapError) -> None:
        """Take in that an agent failed; it is about to leave."""

    def _leaves(self, arrival: LoggedPassage) -> bool:
        later = (logged for logged in self._later if logged.seq > arrival.seq and logged.seat == arrival.seat)
        return not getattr(next(later, arrival), "arrives", True)

    async def _sit(self, logged: LoggedPassage, face: SeatPort, *, resting: bool = False) -> None:
        seat = logged.seat
        self.controls[seat] = Controls()
        if self._leaves(logged):
            self.controls[seat].finish()
        self._here[seat] = (str(logged.body["avatar"]), face)
        await self.run.join(SeatPlan(seat, SILENT.name, {}), SILENT, face, resting=resting)

    async def _let_out(self, seat: str, transfer: str) -> None:
        out = self._going.pop(seat, None)
        if seat not in self._here:
            return
        avatar, face = self._here.pop(seat)
        body = await avatar_in(self._port, seat, avatar)
        if face.left is None and body.state is AvatarState.BOUND:
            await leave(face)
        await self._port.release(body.avatar_id, transfer)
        assert self.run.world is not None, "it is played"
        self.run.world.close_seat(seat)
        self.controls.pop(seat, None)
        if out is not None and not out.done():
            out.set_result(None)

    @property
    def _port(self) -> LocalWorld:
        assert self.run.world is not None, "it is played"
        return LocalWorld.of(self.run.world)

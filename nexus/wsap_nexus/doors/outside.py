"""One seat of a recorded run for a program outside: what doors such as MCP and OpenEnv are built on.

    with outside.opened() as games:
        run = games.play("crafter", seed=7)
        seen = await run.observation()
        result = await run.act(Action("move_left"))
        await run.stop()

The run is recorded like any other: it can be watched with `wsap replay`, exported, and continued by `games.resume`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from wsap_core.errors import UsageError, WsapError
from wsap_core.host import PluginHost
from wsap_core.protocol import Action, ActionResult, ActionSpace, Observation
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import Context
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec
from wsap_llm.backends.pool import ModelPool
from wsap_nexus.hub.outside.external import ActionPendingError, ExternalAgent, SeatLeftError
from wsap_nexus.runs.plan import RunPlan, plan_seats
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.session import RunHandle, came_to_nothing, resume, start
from wsap_nexus.runs.store import Store, open_store

__all__ = ["ActionPendingError", "OutsideRun", "OutsideRuns", "create", "opened"]

T = TypeVar("T")

AGENT = "external"
"""The agent of a seat that is played from outside."""


@contextmanager
def opened(database: str | None = None, *, tell: Callable[[str], None] | None = None) -> Iterator[OutsideRuns]:
    """Yield games for programs outside, recorded in a database; those still open are stopped at the end.

    Args:
        database: path or URL; None for the default.
        tell: receives messages for a person, such as that a model is waited for.

    Raises:
        StorageError: the database can't be used.
    """
    host = PluginHost.discovered()
    with open_store(database) as store:
        yield OutsideRuns(host, store, Services(models=ModelPool(host), progress=tell))


class OutsideRuns:
    """Plays games in which one seat is a program outside; use it within one event loop."""

    def __init__(self, host: PluginHost, store: Store, services: Services) -> None:
        self.host = host
        self.store = store
        self._services = services

    def play(
        self,
        game: str,
        *,
        seat: str | None = None,
        opponents: Mapping[str, str] | str | None = None,
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
        run: str | None = None,
    ) -> OutsideRun:
        """Start an episode of a game and return it; play begins in the background.

        Args:
            game: a registered game, or `./file.py:Name`.
            seat: the seat of the program; by default the first.
            opponents: the agent of the other seats, or seat -> agent; by default the game's default agent.
            seed: from 0 to 2**31 - 1.
            options: options of the game.
            run: the id of the run; by default a new one.

        Raises:
            WsapError: the game, a seat or an agent is unknown; nothing is recorded then. What is only found when the
                game is created, such as an invalid option, is raised by `observation`, and leaves no run either.
        """
        spec = load_adapter_spec(game, self.host).with_options(dict(options or {}))
        mine = seat or spec.names_of_seats(spec.seats[1])[0]
        others = {} if opponents is None or isinstance(opponents, str) else dict(opponents)
        if mine in others:
            raise UsageError(f"The seat {mine!r} is the program's own, so no agent can play it.")
        seats = plan_seats(
            spec,
            agent=opponents if isinstance(opponents, str) else None,
            seats={mine: AGENT, **others},
            game_options=options,
            host=self.host,
        )
        plan = RunPlan(game, seats, seed, None, dict(options or {}), episodes=1)
        seated = _Seats()
        around = replace(self._services, views=seated)
        begun = start(plan, self.host, self.store, run_id=run, services=around, observers=(seated.heard,))
        return OutsideRun(begun, seated, mine, self.store.repository.delete_run)

    def resume(self, run: str) -> OutsideRun:
        """Continue a stopped run of a program outside.

        Raises:
            UnknownNameError: there is no such run.
            UsageError: it was played to its end, or no seat was played from outside.
            StorageLockedError: another process is playing it.
        """
        record = self.store.repository.get_run(run)
        mine = [seat.name for seat in RunPlan.from_config(record.config).seats if seat.agent == AGENT]
        if len(mine) != 1:
            raise UsageError(
                f"Run {record.id!r} was not played by a program outside; continue it with: "
                f"wsap play --resume {record.id}"
            )
        seated = _Seats()
        around = replace(self._services, views=seated)
        again = resume(record.id, self.host, self.store, services=around, observers=(seated.heard,))
        return OutsideRun(again, seated, mine[0])


class OutsideRun:
    """A run in which a program outside has one seat; created by `OutsideRuns`, within an event loop."""

    def __init__(
        self,
        entering: AbstractContextManager[RunHandle],
        seated: _Seats,
        seat: str,
        forget: Callable[[str], None] = lambda run_id: None,
    ) -> None:
        self._held = ExitStack()
        self._handle = self._held.enter_context(entering)
        self._forget = forget
        self._agent = seated.agent(seat)
        self._seated = seated
        self.seat = seat
        """The name of the program's seat."""
        self.run_id = self._handle.run.run_id or ""
        """The id of the recorded run."""
        self.summary: Mapping[str, Any] | None = None
        """The summary, as `wsap play --json` prints it; None until play has ended."""
        self._play = asyncio.create_task(self._played(), name=f"run {self.run_id}")
        self._play.add_done_callback(_noticed)

    @property
    def spec(self) -> AdapterSpec:
        """The game."""
        return self._handle.run.spec

    @property
    def description(self) -> str:
        """The game, its goals and mechanics; empty before the first observation."""
        return self._agent.description

    @property
    def action_space(self) -> ActionSpace:
        """All actions of the seat; empty before the first observation."""
        return self._agent.action_space

    @property
    def over(self) -> bool:
        """Whether play has ended."""
        return self._play.done()

    @property
    def last(self) -> ActionResult | None:
        """The result of the seat's last decision; the final one if the game ended without it."""
        return self._seated.results.get(self.seat)

    async def observation(self) -> Observation:
        """Wait for the seat's next decision and return its observation; after the end, the last one.

        Raises:
            WsapError: the run failed.
        """
        seen = await self._before_end(self._agent.observation())
        if seen is not None:
            return seen
        return self.last.observation if self.last is not None else Observation()

    async def act(self, action: Action) -> ActionResult:
        """Take an action and return its result once that is committed; it says `done` when the seat's game is over.

        Raises:
            ActionPendingError: another action is being resolved.
            UsageError: play has ended.
            WsapError: the run failed.
        """
        if self.over:
            await self._play
            raise UsageError("The game is over; start another.")
        result = await self._before_end(self._agent.act(action)) or self.last
        if result is None:
            raise UsageError("The game is over; start another.")
        if result.done:
            await asyncio.shield(self._play)
        else:
            await self._handle.flushed()  # what the program was told is never lost
        return result

    async def turn(self, action: Action) -> ActionResult:
        """Take an action as `act` does, and wait for the seat's next decision; return the result with what it sees.

        If the game ends before that decision, the result is that of the end, with all that was paid and achieved since.
        """
        result = await self.act(action)
        if result.done:
            return result
        seen, last = await self.observation(), self.last
        if last is None or last is result:
            return replace(result, observation=seen)
        return replace(
            last,
            success=result.success,
            message=f"{result.message} {last.message}".strip(),
            reward=result.reward + last.reward,
            achievements=(*result.achievements, *last.achievements),
        )

    async def stop(self) -> None:
        """End play; unless the game is over, the run can be resumed. Waits until everything is recorded."""
        self._play.cancel()
        await asyncio.wait({self._play})

    async def _before_end(self, asked: Awaitable[T]) -> T | None:
        """Return what the seat answers; None if play ends before."""
        answer = asyncio.ensure_future(asked)
        try:
            await asyncio.wait({answer, self._play}, return_when=asyncio.FIRST_COMPLETED)
            if answer.done() and not answer.cancelled() and not isinstance(answer.exception(), SeatLeftError):
                return answer.result()
            await asyncio.shield(self._play)
            return None
        finally:
            answer.cancel()

    async def _played(self) -> None:
        with self._held:
            try:
                self.summary = await self._handle.play_for_json()
            except WsapError as error:
                if came_to_nothing(self._handle.run, error):
                    self._forget(self.run_id)
                raise


def _noticed(play: asyncio.Task[None]) -> None:
    # The next call raises its error; if there is none, nobody wants to know.
    if not play.cancelled():
        play.exception()


class _Seats:
    """The service `views` of an outside run: its seats for programs, and the results of all seats."""

    def __init__(self) -> None:
        self._agents: dict[str, ExternalAgent] = {}
        self.results: dict[str, ActionResult] = {}

    def agent(self, seat: str) -> ExternalAgent:
        """Return the program in a seat."""
        return self._agents.setdefault(seat, ExternalAgent())

    def heard(self, step: StepTaken) -> None:
        """Note a seat's last result."""
        self.results[step.seat] = step.result


def create(context: Context) -> ExternalAgent:
    """Return the agent `external`: the program outside that has the seat; UsageError where there is none."""
    seats: object = context.services.views
    if not isinstance(seats, _Seats):
        raise UsageError(
            f"The agent {AGENT!r} is a program outside, such as an MCP client; start or continue the run with it "
            "(wsap mcp GAME, wsap mcp --resume RUN)."
        )
    return seats.agent(context.agent_id or "")

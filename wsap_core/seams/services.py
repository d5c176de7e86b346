"""The protocols of the services that a runtime offers to games, agents and commands, through their `Context`.

The kernel itself has no database, network or model client.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from wsap_core.errors import MissingServiceError
from wsap_core.installing import install_line
from wsap_core.protocol import Tick
from wsap_core.protocol.values import JsonValue

if TYPE_CHECKING:
    from wsap_core.seams.agent import Usage
    from wsap_core.seams.game import GameAdapter
    from wsap_core.seams.memory import AgentMemory
    from wsap_core.seams.model import Backend, Price, SpendingLimit

T = TypeVar("T")

RUNTIME_SERVICES = "wsap_nexus.services:opened"
"""The runtime's function that opens its services for commands."""


@dataclass(frozen=True)
class Player:
    """The agent of a seat."""

    agent: str
    """The name of an agent, `./file.py:Name`, or a model's address, which means `llm` with that model."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The agent's options, such as `model`."""


class InPlay(Protocol):
    """A run that is being played."""

    @property
    def usage(self) -> Usage:
        """What models took so far, of all seats and of the world itself, with that before the run was resumed."""

    @property
    def seconds(self) -> float:
        """Its seconds so far, with those before it was resumed."""

    def stop(self) -> None:
        """End it at once, with what it has; the decisions that are being made are dropped."""


class Runner(Protocol):
    """Plays games, possibly several at once, each as a recorded run."""

    async def play(
        self,
        game: str,
        seats: Mapping[str, Player],
        *,
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
        run: str | None = None,
        begun: Callable[[str], None] | None = None,
        steps: int | None = None,
        on_tick: Callable[[Tick], bool | None] | None = None,
        pace: float | None = None,
        snapshot_every: int | None = None,
        prepare: Callable[[str, AgentMemory], None] | None = None,
        before: Callable[[InPlay], None] | None = None,
    ) -> Mapping[str, Any]:
        """Play one episode to its end and return its summary, as `wsap play --json` prints it.

        `run` is the id of the run: an existing one with the same arguments is resumed (a finished one is not played
        again), else a new one gets it. `begun` is called with the id before the run starts.

        `steps` limits the decisions of each seat in a new run. In a world that lives it is the number of ticks to play
        now (0 only creates the run); `on_tick` is called with each new tick and returns False to stop, `pace` is the
        most ticks per second, and `snapshot_every` the number of ticks between snapshots of a new run. Cancellation
        interrupts the current tick, which is later repeated from its start.

        `prepare` may fill each seat's memory before the first decision of a new run. The memory's contents at the start
        and the end of the run are recorded (events `mind`), and stored nowhere else.

        `before` is called in the run's event loop before each new decision of a seat, and each new tick, with the run,
        which it may stop.

        Raises:
            WsapError: whatever ended the run; it can be resumed.
        """

    def influence(self, run: str, body: Mapping[str, JsonValue]) -> None:
        """Put an influence into the inbox of a run of a world that lives.

        Raises:
            UnknownNameError: there is no such run.
            UsageError: it accepts no influence, or is over.
        """

    async def rewind(self, run: str, step: int) -> None:
        """Let a run of a world that lives continue from an earlier tick; its recording is kept.

        Raises:
            UsageError: it has no such tick.
            StorageLockedError: another process plays it.
        """

    async def branch(self, run: str, step: int, name: str) -> None:
        """Create a branch with the id `name` from a tick of a run of a world that lives; `UsageError` if there is no
        such tick or the name is taken."""


class WorldLog(Protocol):
    """The record of a world's run, to which the world can add notes."""

    def note(self, kind: str, body: Mapping[str, JsonValue]) -> None:
        """Record something on which nothing depends, such as the story of a tick, also after the tick. A note that a
        repeated tick writes again is recorded once. `UsageError` if the kind is one of the run's own."""


class RunReader(Protocol):
    """Reads recorded runs."""

    def events(self, run: str, *kinds: str, after: int = -1) -> Iterator[Mapping[str, Any]]:
        """Yield the events of a run (of these kinds, or all) with numbers above `after`, oldest first."""

    def about(self, run: str) -> Mapping[str, Any]:
        """Return a run's id, game, options, status, summary and so on, as in the first line of its export. `run` may
        also be the beginning or end of its id, or "last". `UnknownNameError` if there is no such run."""

    def ticks(self, run: str) -> int:
        """Return the number of a run's newest tick that was not rewound; 0 if there is none. For a branch without ticks
        of its own, it is the tick of the other run from which it starts."""

    def history(self, run: str, *kinds: str, first: int = 1, last: int | None = None) -> Iterator[Mapping[str, Any]]:
        """Yield the events of these kinds, such as `tick` and `story`, of the ticks from `first` to `last` (by default
        the newest) that were not rewound. A branch includes the ticks of the run from which it starts."""

    def waiting(self, run: str) -> Sequence[Mapping[str, Any]]:
        """Return the influences that wait for the next tick of a run, oldest first."""

    def runs(self) -> Sequence[str]:
        """Return the ids of all runs, newest first."""

    async def restored(self, run: str, step: int | None = None) -> GameAdapter:
        """Return a world that lives in its state after a tick of a run (by default the last), without calling models.

        Raises:
            UnknownNameError: there is no such run.
            UsageError: it has no such tick.
        """


class Models(Protocol):
    """Language models by address."""

    def backend(self, name: str) -> object:
        """Return the backend of an address such as `ollama/qwen3:8b`."""


class WorldModels(Protocol):
    """The language models of a game: the service `models` in its context.

    Each call is part of the run and counts against its limits. The reply is committed under the `Request.key` before
    the game receives it, and reused when the run is resumed or replayed.
    """

    async def open(self, name: str, options: Mapping[str, Any] | None = None) -> Backend:
        """Return the backend of an address once its abilities are known. Of the game's or agent's `options`, the
        backend gets those that start with `model.`. `WsapError` if there is no such backend, or it is unavailable."""


class CommandModels(Models, WorldModels, Protocol):
    """The models of a command, with limits and prices shared by all its games and other requests."""

    @property
    def in_flight(self) -> int:
        """The number of requests that were sent and have no complete reply yet."""

    async def drained(self) -> None:
        """Send no further request, and return when those in flight have their replies; later ones raise
        `BudgetReachedError` then, so that their runs pause."""

    async def aclose(self) -> None:
        """Close all of them, in the event loop that used them."""


class Parts(Protocol):
    """The installed memories and tools, for agents composed of them."""

    def memory(self, name: str) -> object:
        """Return the `MemorySpec` of that name."""

    def tool(self, name: str) -> object:
        """Return the `ToolSpec` of that name."""


class Journal(Protocol):
    """The record of an agent's model calls; see `wsap_llm.middleware.record`."""

    @property
    def offline(self) -> bool:
        """Whether a recorded run is replayed, so that no model may be called."""


@dataclass(frozen=True)
class Services:
    """The available services; None for each that no installed package provides."""

    runner: Runner | None = None
    views: object | None = None
    """The display of the run, which also asks the person who plays an agent."""
    runs: RunReader | None = None
    models: Models | WorldModels | None = None
    parts: Parts | None = None
    journal: Journal | None = None
    log: WorldLog | None = None
    progress: Callable[[str], None] | None = None
    """Shows progress to a waiting person."""
    run: str = ""
    """The id of the recorded run; empty outside a run."""
    identities: Mapping[str, str] = field(default_factory=dict)
    """Seat -> the agent of the database that plays it."""

    def require(self, name: str) -> Any:
        """Return a service; `MissingServiceError` if no installed package provides it."""
        # Any: the caller knows the protocol of the service.
        service = getattr(self, name)
        if service is None:
            raise MissingServiceError(f"This requires the service {name!r}; get it with: {install_line('wsap-nexus')}")
        return service


def runtime_services(
    database: str | None = None, *, budgets: Sequence[SpendingLimit] = (), prices: Mapping[str, Price] | None = None
) -> AbstractContextManager[Services]:
    """Open the services of the installed runtime for a command; games and agents find theirs in their context.

    The service `models` is a `CommandModels`: await its `aclose` in the event loop that played the games. Runs are
    recorded in `database`, a path or URL (by default the usual one). `budgets` limit the usage of models by the whole
    command; recorded usage of a resumed game counts only if they include it from the start. `prices` (address -> price)
    are for models whose price the backend does not know.

    Raises:
        MissingServiceError: there is no runtime.
        StorageError: the database can't be used.
    """
    name, _, attribute = RUNTIME_SERVICES.partition(":")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        raise MissingServiceError(
            f"This requires the runtime, which is not installed; install it with: {install_line('wsap-nexus')}"
        ) from None
    opened: AbstractContextManager[Services] = getattr(module, attribute)(database, budgets=budgets, prices=prices)
    return opened

"""What a runtime offers to games, agents and commands, as protocols.

The kernel has no database, network or model client. A plugin that needs one takes it from
its `Context`; with the kernel alone it gets a sentence that says which package to install.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from wsap_core.errors import MissingServiceError
from wsap_core.protocol import Tick
from wsap_core.protocol.values import JsonValue

if TYPE_CHECKING:
    from wsap_core.seams.game import GameAdapter
    from wsap_core.seams.memory import AgentMemory
    from wsap_core.seams.model import Backend, Price, SpendingLimit

T = TypeVar("T")

RUNTIME_SERVICES = "wsap_nexus.services:opened"
"""Where the runtime opens its services for commands; a name, as in `wsap_core.cli.commands`, because nothing of it is
imported before it is used."""


@dataclass(frozen=True)
class Player:
    """Who takes a seat."""

    agent: str
    """A registered agent, such as `random`, `./file.py:Name`, or a model's address, which is `llm` with that model."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The agent's own, such as `model`."""


class Runner(Protocol):
    """Plays games, one or several at once, each as a recorded run."""

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
    ) -> Mapping[str, Any]:
        """Play one episode to its end and return its summary, as `wsap play --json` prints it.

        `run` is the id of a run of the same that was begun before, to go on with; one that is finished is not played
        again. Where there is none of that id, one is begun with it. `begun` is told the run's id before it begins.

        `steps` is the most decisions that each seat of a new run makes. Of a world that lives, it is how many ticks are
        played now (0 only begins the run), after which it can be gone on with; `on_tick` is told each new one, and
        returns False to stop there; `pace` is at most so many a second; `snapshot_every` is the number of ticks between
        two snapshots of a new run. Who cancels this stops at once, in the middle of a tick, which is then carried out
        from its beginning.

        `prepare` is given each seat's memory before the first decision of a new run, to put there what the agent is to
        remember. What the memory holds then, and when the run is over, is recorded (events `mind`), and kept nowhere
        else.

        Raises:
            WsapError: whatever ended the run; it can be gone on with.
        """

    def influence(self, run: str, body: Mapping[str, JsonValue]) -> None:
        """Let whoever plays a run of a world that lives, now or later, interfere in it before its next tick.

        Raises:
            UnknownNameError: there is no such run.
            UsageError: it takes no influence, or is over.
        """

    async def rewind(self, run: str, step: int) -> None:
        """Let a run of a world that lives go on from an earlier tick; nothing that is recorded is lost.

        Raises:
            UsageError: it has no such tick.
            StorageLockedError: another process plays it.
        """

    async def branch(self, run: str, step: int, name: str) -> None:
        """Begin a run of the id `name` with the state that another, of a world that lives, had after a tick.

        Raises:
            UsageError: the run has no such tick, or the name is taken.
        """


class WorldLog(Protocol):
    """Where a world adds to the record of its run."""

    def note(self, kind: str, body: Mapping[str, JsonValue]) -> None:
        """Record something that nothing depends on, such as the story of a tick; it may come after the tick.

        A note that is recorded already, because a tick is carried out again, is not recorded twice.

        Raises:
            UsageError: the kind is one that the run itself records.
        """


class RunReader(Protocol):
    """Recorded runs, read back."""

    def events(self, run: str, *kinds: str, after: int = -1) -> Iterator[Mapping[str, Any]]:
        """Give the events of a run, oldest first: of these kinds, or of all; those after the number `after` alone."""

    def about(self, run: str) -> Mapping[str, Any]:
        """Return what a run is, as the first line of its export: its id, game, options, status, summary.

        `run` may also be the beginning or end of its id, or "last".

        Raises:
            UnknownNameError: there is no such run.
        """

    def ticks(self, run: str) -> int:
        """Return the number of a run's newest tick, once what was rewound is left out; 0 before the first.

        Of a branch that has no tick yet, it is the tick of the other run that it begins with.
        """

    def history(self, run: str, *kinds: str, first: int = 1, last: int | None = None) -> Iterator[Mapping[str, Any]]:
        """Give the events of these kinds, such as `tick` and `story`, that belong to the ticks from `first` to `last`
        (the newest when None), as they now stand: without what was rewound. A branch begins with the ticks of the run
        that it was branched from.
        """

    def runs(self) -> Sequence[str]:
        """Return the ids of all runs, newest first."""

    async def restored(self, run: str, step: int | None = None) -> GameAdapter:
        """Return a world that lives as it was after a tick of a run, the last by default; no model is asked.

        Raises:
            UnknownNameError: there is no such run.
            UsageError: it has no such tick.
        """


class Models(Protocol):
    """Language models by address; the runtime resolves names such as `ollama/qwen3:8b`."""

    def backend(self, name: str) -> object:
        """Return the backend of that name."""


class WorldModels(Protocol):
    """The language models of a game: the service `models` in its context.

    Each call is part of the run: it is kept under its `Request.key`, and the reply is committed before the game has it,
    so that nothing that was answered is asked again when the run is resumed or replayed. It counts against the run's
    limits.
    """

    async def open(self, name: str, options: Mapping[str, Any] | None = None) -> Backend:
        """Return the backend of an address once it knows what its model can do.

        Of the game's or agent's `options`, those that begin with `model.` are the backend's.

        Raises:
            WsapError: there is no such backend, or it can't be asked.
        """


class CommandModels(Models, WorldModels, Protocol):
    """The models of one command: all its games and whatever else it asks share them, their limits and their prices."""

    async def aclose(self) -> None:
        """Close all of them, in the event loop that used them."""


class Parts(Protocol):
    """What is installed, for agents that are put together from parts."""

    def memory(self, name: str) -> object:
        """Return the `MemorySpec` of that name."""

    def tool(self, name: str) -> object:
        """Return the `ToolSpec` of that name."""


class Journal(Protocol):
    """Where the calls of one agent to its models are kept; see `wsap_llm.middleware.record`."""

    @property
    def offline(self) -> bool:
        """Whether a recorded run is played again, so that no model may be asked."""


@dataclass(frozen=True)
class Services:
    """The services at hand; None for each that no installed package provides."""

    runner: Runner | None = None
    views: object | None = None
    """What shows the run to a person, where there is one; an agent that the person plays is asked there."""
    runs: RunReader | None = None
    models: Models | WorldModels | None = None
    parts: Parts | None = None
    journal: Journal | None = None
    log: WorldLog | None = None
    progress: Callable[[str], None] | None = None
    """Tells a waiting person what is going on."""

    def require(self, name: str, *, package: str = "wsap-nexus") -> Any:
        """Return a service, or say what to install.

        Raises:
            MissingServiceError: nothing installed provides it.
        """
        # Any: the caller knows the protocol of the service it names.
        service = getattr(self, name)
        if service is None:
            raise MissingServiceError(
                f"This needs the service {name!r}, which the kernel alone does not have; "
                f"install it with: pip install {package}"
            )
        return service


def runtime_services(
    database: str | None = None, *, budgets: Sequence[SpendingLimit] = (), prices: Mapping[str, Price] | None = None
) -> AbstractContextManager[Services]:
    """Open the services of the installed runtime, for a command; those of a game or agent are in its context.

    The service `models` is a `CommandModels` there: await its `aclose` in the event loop that games were played in.
    Runs are recorded in `database`, a path or URL; the usual one when None. The `budgets` limit what is spent on
    models, over all games and everything else that is asked; what was had from a record when a game is gone on with
    counts only if it is in them from the beginning. `prices` (address -> price) are for models whose backend does not
    know it.

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
            "This needs the runtime, which is not installed; install it with: pip install wsap-nexus"
        ) from None
    opened: AbstractContextManager[Services] = getattr(module, attribute)(database, budgets=budgets, prices=prices)
    return opened

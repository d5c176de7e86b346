"""What a runtime offers to games, agents and commands, as protocols.

The kernel has no database, network or model client. A plugin that needs one takes it from
its `Context`; with the kernel alone it gets a sentence that says which package to install.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from wsap_core.errors import MissingServiceError
from wsap_core.models import Observation, View

T = TypeVar("T")


class EventLog(Protocol):
    """The append-only log of everything that happened in a run."""

    def append(self, kind: str, body: Mapping[str, Any], *, seat: str | None = None, step: int | None = None) -> int:
        """Add an event and return its number; it is durable once `flush` has returned."""
        ...

    def flush(self) -> None:
        """Return when everything appended so far is committed."""
        ...


class Runner(Protocol):
    """Plays games, one or many."""

    def play(self, game: str, agent: str, *, seed: int = 0, steps: int | None = None) -> Mapping[str, Any]:
        """Play and return the summary, as `wsap play --json` prints it."""
        ...


class ViewSink(Protocol):
    """Where a live picture goes."""

    def show(self, seat: str, observation: Observation, view: View | None) -> None:
        """Draw the state of one seat."""
        ...


class RunReader(Protocol):
    """Recorded runs, read back."""

    def events(self, run: str) -> Iterator[Mapping[str, Any]]:
        """Give the events of a run, oldest first."""
        ...

    def runs(self) -> Sequence[str]:
        """Return the ids of all runs, newest first."""
        ...


class Models(Protocol):
    """Language models by address; the runtime resolves names such as `ollama/qwen3:8b`."""

    def backend(self, name: str) -> object:
        """Return the backend of that name."""
        ...


class Parts(Protocol):
    """What is installed, for agents that are put together from parts."""

    def memory(self, name: str) -> object:
        """Return the `MemorySpec` of that name."""
        ...

    def tool(self, name: str) -> object:
        """Return the `ToolSpec` of that name."""
        ...


class Journal(Protocol):
    """Where the calls of one agent to its models are kept; see `wsap_core.llm.wrappers.record`."""

    @property
    def offline(self) -> bool:
        """Whether a recorded run is played again, so that no model may be asked."""
        ...


@dataclass(frozen=True)
class Services:
    """The services at hand; None for each that no installed package provides."""

    log: EventLog | None = None
    runner: Runner | None = None
    views: ViewSink | None = None
    runs: RunReader | None = None
    models: Models | None = None
    parts: Parts | None = None
    journal: Journal | None = None
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

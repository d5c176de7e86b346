"""The hook by which a plugin listens to a nexus.

The kernel does not know this hook, so that a plugin marks it as one that may be missing:

    from wsap_core import hookimpl
    from wsap_nexus.hookspecs import ListenerSpec

    @hookimpl(optionalhook=True)
    def wsap_listeners():
        return [ListenerSpec("deaths", "Prints who died.", "mine.deaths:Deaths")]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from wsap_core.factories import Reference
from wsap_core.hookspecs import hookspec
from wsap_nexus.store.events import NexusEvent


class Listener(Protocol):
    """What is told of the events of a nexus."""

    async def on_event(self, event: NexusEvent) -> None:
        """Take note of an event. It is committed, and can't be changed.

        Events come in the order of their numbers, each once. After the nexus was killed, the last ones may come again:
        whoever must not act twice remembers `event.seq`. An event for which this raises, or takes longer than a
        minute, is not delivered again.
        """


@dataclass(frozen=True)
class ListenerSpec:
    """Something that listens to a nexus."""

    name: str
    """How its place in the log is kept: another name is another listener."""
    summary: str
    """One line."""
    factory: Reference
    """A class, or a function, that takes nothing and returns a `Listener`."""
    kinds: tuple[str, ...] = ()
    """The kinds of events that it is told of, such as "died"; empty for all."""


@hookspec
def wsap_listeners() -> Iterable[ListenerSpec]:  # type: ignore[empty-body]  # a hook has no body
    """Offer listeners: `return [ListenerSpec("deaths", "One line.", "mine.deaths:Deaths")]`."""

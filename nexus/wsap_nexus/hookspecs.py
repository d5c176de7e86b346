"""The hook of plugins that listen to a nexus.

The kernel does not define this hook, so a plugin marks it as optional:

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
    """Receives the events of a nexus."""

    async def on_event(self, event: NexusEvent) -> None:
        """Handle a committed event.

        Events are delivered in order, each once. After a kill of the nexus the last ones may be repeated, so a listener
        that must not act twice stores `event.seq`. If this raises or takes longer than a minute, the event is skipped.
        """


@dataclass(frozen=True)
class ListenerSpec:
    """The description of a listener."""

    name: str
    """Identifies the listener; the number of its last event is stored under it."""
    summary: str
    """One line."""
    factory: Reference
    """A class or function without parameters that returns a `Listener`."""
    kinds: tuple[str, ...] = ()
    """The kinds of events to deliver, such as "died"; empty for all."""


@hookspec
def wsap_listeners() -> Iterable[ListenerSpec]:  # type: ignore[empty-body]  # a hook has no body
    """Offer listeners: `return [ListenerSpec("deaths", "One line.", "mine.deaths:Deaths")]`."""

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
        """Handle an event, which is committed already.

        Events are delivered in the order of their numbers, each once. After the nexus was killed, the last ones may be
        delivered again: a listener that must not act twice stores `event.seq`. An event for which this raises, or
        takes longer than a minute, is not delivered again.
        """


@dataclass(frozen=True)
class ListenerSpec:
    """The description of a listener."""

    name: str
    """Identifies the stored number of its last event: another name is another listener."""
    summary: str
    """One line."""
    factory: Reference
    """A class or function without parameters that returns a `Listener`."""
    kinds: tuple[str, ...] = ()
    """The kinds of events to deliver, such as "died"; empty for all."""


@hookspec
def wsap_listeners() -> Iterable[ListenerSpec]:  # type: ignore[empty-body]  # a hook has no body
    """Offer listeners: `return [ListenerSpec("deaths", "One line.", "mine.deaths:Deaths")]`."""

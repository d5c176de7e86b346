"""The events of the nexus: one class for each kind, in `agents`, `sessions` and `nexus`.

`Transaction.note(Entered(agent_id="ada", ...))` writes an event in the transaction that it reports; it is read back as
the same class. `NexusEvent.sentence` returns its text for all readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from wsap_nexus.store.events import agents, nexus, sessions
from wsap_nexus.store.events.base import AgentEvent as AgentEvent
from wsap_nexus.store.events.base import GameEvent as GameEvent
from wsap_nexus.store.events.base import Names as Names
from wsap_nexus.store.events.base import NexusEvent as NexusEvent
from wsap_nexus.store.events.base import OtherEvent as OtherEvent
from wsap_nexus.store.events.base import sentences as sentences
from wsap_nexus.store.events.endings import ENDINGS as ENDINGS
from wsap_nexus.store.events.endings import why_ended as why_ended
from wsap_nexus.store.json_values import read_column

KINDS: Mapping[str, type[NexusEvent]] = {
    str(found.model_fields["kind"].default): found
    for module in (agents, nexus, sessions)
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, NexusEvent) and not found.model_fields["kind"].is_required()
}
"""Kind -> class of every event."""

PUBLIC_KINDS = frozenset(kind for kind, event in KINDS.items() if event.PUBLIC is not None)
"""The kinds of public events."""


def kind_of(event: type[NexusEvent] | str) -> str:
    """Return the stored kind of the events of a class."""
    return event if isinstance(event, str) else str(event.model_fields["kind"].default)


def read_event(kind: str, body: Mapping[str, Any], **envelope: Any) -> NexusEvent:
    """Return a stored event, as `OtherEvent` if its kind is unknown or its body unreadable.

    Any: JSON, and in the `envelope` the values of the fields of `NexusEvent`.
    """
    envelope["kind"] = kind
    known = KINDS.get(kind)
    if known is not None:
        try:
            return known.model_validate({**body, **envelope})
        except ValidationError:
            pass  # a body that no version writes
    return OtherEvent(**envelope, data=dict(body))


def read_row(row: Any) -> NexusEvent:
    """Return the event of a row of the table `nexus_event`. Any: the row."""
    envelope = {name: value for name, value in row._mapping.items() if name not in ("kind", "body")}
    return read_event(row.kind, read_column(row.body), **envelope)

"""What came of reading a reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wsap_core.protocol import Action
from wsap_core.protocol.values import JsonValue


@dataclass(frozen=True)
class ToolCall:
    """A model asks for a tool before it acts."""

    tool: str
    """The tool's name, as it was offered."""
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    """Values by parameter name, in declared form."""
    reasoning: str | None = None


@dataclass(frozen=True)
class Understood:
    """One thing, and one only, that the reply asks for; legal and with valid parameters."""

    choice: Action | ToolCall
    repaired: bool = False
    """True if the reply was not what was asked for: one JSON object with a declared name and valid parameters."""
    how: str = "as asked"
    """How it was found: "as asked", "JSON in text", "mended JSON", "tags", "label" or "name alone"."""
    thinking: str = ""
    """What the model thought aloud before; never part of what is stored in history or memory."""


@dataclass(frozen=True)
class NotUnderstood:
    """The reply asks for nothing, for several things, or for something that can't be done."""

    reason: str
    """One sentence for the model that is asked again."""
    thinking: str = ""


Reading = Understood | NotUnderstood
"""What `read_reply` gives."""

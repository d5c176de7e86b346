"""What a place in a reply asks for, and what comes of reading the whole reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from wsap_core.protocol import Action
from wsap_core.protocol.values import JsonValue
from wsap_core.worlds.legality import check_action
from wsap_llm.reply.choices import LegalChoices
from wsap_llm.reply.parameters import settle


@dataclass(frozen=True)
class Candidate:
    """A place in a reply that asks for one action or tool, legal or not."""

    name: str
    """The name as offered; as it was written if nothing of that name is on offer."""
    values: dict[str, JsonValue] = field(default_factory=dict)
    reason: str = ""
    """Why it can't be done; empty when it can."""
    reasoning: str | None = None
    repaired: bool = True
    """False if it is exactly what was asked for."""
    how: str = "JSON in text"
    start: int = 0
    end: int = 0

    def at(self, start: int, end: int, how: str) -> Candidate:
        """Return it with its place in the reply and how it was found."""
        return replace(self, start=start, end=end, how=how)

    @property
    def meaning(self) -> tuple[str, str]:
        """What tells it from other candidates."""
        return (self.name, "" if self.reason else repr(sorted(self.values.items())))


def candidate(
    name: str, given: JsonValue, choices: LegalChoices, reasoning: str | None = None, *, repaired: bool = True
) -> Candidate:
    """Return what a known name with parameters asks for."""
    definition = choices.definition(name)
    if definition is None:
        return refuse(name, f"{name} is not possible now.", reasoning)
    settled = settle(definition, given, choices)
    return Candidate(name, settled.values, settled.reason, reasoning, repaired or settled.repaired)


def refuse(name: str, reason: str, reasoning: str | None = None) -> Candidate:
    """Return a candidate that can't be carried out."""
    return Candidate(name[:80], reason=reason, reasoning=reasoning)


def unknown(said: str, choices: LegalChoices, reasoning: str | None = None) -> Candidate:
    """Return a candidate whose name is not on offer."""
    return refuse(said, check_action(Action(said[:80]), choices.actions)[1], reasoning)


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

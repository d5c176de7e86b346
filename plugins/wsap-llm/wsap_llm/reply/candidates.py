"""What a reply, or a piece of one, asks for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from wsap_llm.reply.choices import LegalChoices
from wsap_llm.reply.parameters import settle


@dataclass(frozen=True)
class Candidate:
    """A place in a reply that asks for one action or tool, rightly or not."""

    name: str
    """The name as offered, or as it was written if nothing of that name is on offer."""
    values: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    """Why it can't be done; empty when it can."""
    reasoning: str | None = None
    mended: bool = True
    """False if it is just what was asked for."""
    how: str = "JSON in text"
    start: int = 0
    end: int = 0

    def at(self, start: int, end: int, how: str) -> Candidate:
        """Return it with its place in the reply and how it was found."""
        return replace(self, start=start, end=end, how=how)

    @property
    def meaning(self) -> tuple[str, str]:
        """What tells it from other claims."""
        return (self.name, "" if self.reason else repr(sorted(self.values.items())))


def claim(
    name: str, given: Any, offer: LegalChoices, reasoning: str | None = None, *, mended: bool = True
) -> Candidate:
    """Return the claim that a known name with parameters makes."""
    definition = offer.definition(name)
    if definition is None:
        return refuse(name, f"{name} is not possible now.", reasoning)
    settled = settle(definition, given, offer)
    return Candidate(name, settled.values, settled.reason, reasoning, mended or settled.mended)


def refuse(name: str, reason: str, reasoning: str | None = None) -> Candidate:
    """Return a claim that can't be met."""
    return Candidate(name[:80], reason=reason, reasoning=reasoning)

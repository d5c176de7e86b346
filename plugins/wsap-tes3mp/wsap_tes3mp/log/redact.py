"""Taking out of exported commands what others should not read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from wsap_core.errors import UsageError

GONE = "[redacted]"
_FREE = frozenset({"content", "message", "text", "choices", "tags"})
"""Fields with free text of agents, players and the game."""


@dataclass(frozen=True)
class Redaction:
    """What is taken out."""

    names: bool = False
    """Names of agents and players become `agent_1`, `player_1`, ... wherever they stand."""
    text: bool = False
    """Notes, messages and what is said in dialogues."""
    reasoning: bool = False
    patterns: Sequence[re.Pattern[str]] = ()
    """Whatever matches is replaced."""


def compiled(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    """Return patterns that were typed; `UsageError` if one can't be read."""
    found = []
    for pattern in patterns:
        try:
            found.append(re.compile(pattern))
        except re.error as error:
            raise UsageError(f"The pattern {pattern!r} can't be read: {error}.") from None
    return tuple(found)


class Redactor:
    """Redacts the lines of one export; a name is replaced by the same word in all of them.

    Args:
        redaction: what is taken out.
        agents: ids of all agents of the log.
    """

    def __init__(self, redaction: Redaction, agents: Iterable[str] = ()) -> None:
        self._redaction = redaction
        self._names: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        if redaction.names:
            for agent in sorted(agents):
                self._add(agent, "agent")

    def line(self, value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return what is left of a line's perception, action or outcome."""
        if self._redaction.names:
            self._find_players(value)
        return {key: self._field(key, item) for key, item in value.items()}

    def word(self, text: str) -> str:
        """Return what is left of a text."""
        if self._names:
            text = self._matcher().sub(lambda found: self._names[found[0].casefold()], text)
        for pattern in self._redaction.patterns:
            text = pattern.sub(GONE, text)
        return text

    def _field(self, key: str, value: JsonValue) -> JsonValue:
        if key == "reasoning" and self._redaction.reasoning:
            return ""
        if self._redaction.text and key in _FREE:
            return [] if isinstance(value, list) else GONE if value else value
        if isinstance(value, str):
            return self.word(value)
        if isinstance(value, dict):
            return {name: self._field(name, item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._field(key, item) for item in value]
        return value

    def _find_players(self, value: Mapping[str, JsonValue]) -> None:
        entities = value.get("nearby_entities")
        for entity in entities if isinstance(entities, list) else []:
            if isinstance(entity, dict) and entity.get("entity_type") == "player":
                for name in (entity.get("name"), entity.get("entity_id")):
                    if isinstance(name, str):
                        self._add(name, "player")

    def _add(self, name: str, kind: str) -> None:
        key = name.casefold()
        if name and key not in self._names:
            number = sum(word.startswith(kind) for word in self._names.values()) + 1
            self._names[key] = f"{kind}_{number}"
            self._pattern = None

    def _matcher(self) -> re.Pattern[str]:
        if self._pattern is None:
            longest = sorted(self._names, key=len, reverse=True)
            words = "|".join(map(re.escape, longest))
            self._pattern = re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])", re.IGNORECASE)
        return self._pattern

"""The state of one seat outside the game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wsap_core.untrusted import sanitize
from wsap_tossim.engine.data.model import Event
from wsap_tossim.knowledge import Knowledge, as_seen
from wsap_tossim.perception.context import LONGEST_SUMMARY, Lookup

__all__ = ["Place"]


class Place:
    """One seat's knowledge, shown events and tool use."""

    def __init__(self, player: int) -> None:
        self.player = player
        self.knowledge = Knowledge(player)
        self.read = 0
        """Number of log entries already in its knowledge."""
        self.told = 0
        """Number of its known events shown when it last acted."""
        self.lookups: list[Lookup] = []
        """Tool uses today."""
        self.calls = 0
        """Number of tool uses in this turn."""
        self.turns = 0
        """Its turns so far, the step of its observations; the game's round would reveal hidden choices."""
        self.earned: dict[str, bool] = {}
        """Achievement -> whether it has been reported."""
        self.summed_up: dict[int, str] = {}
        """Day -> the player's own summary, sanitized."""

    def take_in(self, log: Sequence[Event]) -> Knowledge:
        """Update the player's knowledge from the log, and return it."""
        bit = 1 << self.player
        for event in log[self.read :]:
            if event.known_by & bit:
                self.knowledge.take(as_seen(event))
        self.read = len(log)
        return self.knowledge

    def sum_up(self, day: int, text: str) -> None:
        """Store the player's own summary of a day."""
        self.summed_up[day] = sanitize(text, LONGEST_SUMMARY)
        self.knowledge.summaries[day] = f"{self.summed_up[day]} (in your own words)"

    def took_a_turn(self) -> None:
        """End the player's turn: its events count as shown, and it can use tools again."""
        self.told, self.calls = len(self.knowledge.events), 0
        self.turns += 1

    def to_json(self) -> dict[str, Any]:
        """Return the state that the game's record lacks; JSON-ready."""
        return {
            "told": self.told,
            "calls": self.calls,
            "turns": self.turns,
            "earned": self.earned,
            "lookups": [list(u) for u in self.lookups],
            "summaries": sorted(self.summed_up.items()),
        }

    @classmethod
    def from_json(cls, player: int, kept: Mapping[str, Any]) -> Place:
        """Return a place from the output of `to_json`.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: it is damaged.
        """
        place = cls(player)
        place.told, place.calls, place.turns = int(kept["told"]), int(kept["calls"]), int(kept["turns"])
        for day, text in kept["summaries"]:
            place.sum_up(int(day), str(text))
        place.earned = {str(name): bool(told) for name, told in kept["earned"].items()}
        place.lookups = [Lookup(int(d), str(t), str(a), str(r)) for d, t, a, r in kept["lookups"]]
        return place

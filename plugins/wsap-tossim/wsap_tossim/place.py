"""The state that a town keeps for one seat, besides the game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wsap_core.untrusted import sanitize
from wsap_tossim.context import LONGEST_SUMMARY, Lookup
from wsap_tossim.engine.model import Event
from wsap_tossim.knowledge import Knowledge, as_seen

__all__ = ["Place"]


class Place:
    """One seat's knowledge, what it has been told, and which tools it used.

    Args:
        player: who sits there.
    """

    def __init__(self, player: int) -> None:
        self.player = player
        self.knowledge = Knowledge(player)
        self.read = 0
        """Number of log entries already in its knowledge."""
        self.told = 0
        """Number of its own events shown when it last acted."""
        self.lookups: list[Lookup] = []
        """The tools that it used today."""
        self.calls = 0
        """Tools used in this turn."""
        self.turns = 0
        """Its turns so far, used as the step of its observations. The game's round number would reveal hidden
        choices."""
        self.earned: dict[str, bool] = {}
        """Achievement -> whether it has been told of it."""
        self.summed_up: dict[int, str] = {}
        """Day -> the player's own summary, sanitized."""

    def take_in(self, log: Sequence[Event]) -> Knowledge:
        """Return the player's knowledge, updated from the log."""
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
        """Note that the player has chosen: all that it knows now has been told, and it can use tools again."""
        self.told, self.calls = len(self.knowledge.events), 0
        self.turns += 1

    def to_json(self) -> dict[str, Any]:
        """Return the state that the game's record does not hold; JSON-ready."""
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
        """Return a place from what `to_json` gave.

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

"""Bidding for the floor by day."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_tossim.engine.model import Verb
from wsap_tossim.engine.state import State

__all__ = ["BIDS", "Bids"]

BIDS: Mapping[Verb, int] = {Verb.BID_1: 1, Verb.BID_2: 2, Verb.BID_3: 3}
"""Bidding verb -> amount."""


class Bids:
    """Gives the floor to the highest bidder, for one day.

    Args:
        state: the game.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self.turns_left = 0
        """How many turns are left in this part of the day; set by the caller that begins it."""
        self._had: dict[int, int] = {}
        """How often each has had the floor today, in all parts of the day."""

    def asked(self, *, silenced: bool) -> tuple[int, ...]:
        """Return who bids for the next turn, by number; nobody when there is none.

        Args:
            silenced: whether those who are blackmailed are left out.
        """
        if self.turns_left <= 0:
            return ()
        return tuple([p.number for p in self._state.players if p.alive and not (silenced and p.blackmailed)])

    def give(self, bids: Mapping[int, int]) -> int:
        """Return who has the floor: the highest bid, then whoever has had it least often today, then by lot.

        Args:
            bids: who -> how much; at least one.
        """
        highest = max(bids.values())
        first = [player for player, bid in sorted(bids.items()) if bid == highest]
        least = min(self._had.get(player, 0) for player in first)
        first = [player for player in first if self._had.get(player, 0) == least]
        number = sum(self._had.values())
        # Who has tied is a secret, so the lot has a name of its own and moves no other.
        taken = first[int(self._state.lot(f"floor {number}") * len(first))] if len(first) > 1 else first[0]
        self._had[taken] = least + 1
        self.turns_left -= 1
        return taken

"""Bidding for the floor by day."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_tossim.engine.data.model import Verb
from wsap_tossim.engine.data.state import State

__all__ = ["BIDS", "Bids"]

BIDS: Mapping[Verb, int] = {Verb.BID_1: 1, Verb.BID_2: 2, Verb.BID_3: 3}
"""Bidding verb -> amount."""


class Bids:
    """Gives the floor to the highest bidder, for one day."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.turns_left = 0
        """Turns left in this phase; set by the caller that starts it."""
        self._had: dict[int, int] = {}
        """Number of times that each player had the floor today."""

    def asked(self, *, silenced: bool) -> tuple[int, ...]:
        """Return the bidders for the next turn, without the blackmailed if `silenced`; empty if no turn is left."""
        if self.turns_left <= 0:
            return ()
        return tuple([p.number for p in self._state.players if p.alive and not (silenced and p.blackmailed)])

    def give(self, bids: Mapping[int, int]) -> int:
        """Return the highest bidder; of equals the one with the fewest turns today, then a random one."""
        highest = max(bids.values())
        first = [player for player, bid in sorted(bids.items()) if bid == highest]
        least = min(self._had.get(player, 0) for player in first)
        first = [player for player in first if self._had.get(player, 0) == least]
        number = sum(self._had.values())
        # Ties are secret, so the draw has its own name and affects no other.
        taken = first[int(self._state.lot(f"floor {number}") * len(first))] if len(first) > 1 else first[0]
        self._had[taken] = least + 1
        self.turns_left -= 1
        return taken

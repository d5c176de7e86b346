"""Turns on the floor by day, without bidding."""

from __future__ import annotations

from bisect import bisect_left

from wsap_tossim.engine.data.state import State

__all__ = ["Floor"]


class Floor:
    """Gives the floor to each living player, for a number of rounds without deaths.

    Args:
        state: the game.
        rounds: turns of each player.
        until_idle: whether to end after a round in which nobody acts.
    """

    def __init__(self, state: State, rounds: int, *, until_idle: bool = False) -> None:
        self._state = state
        self.rounds_left = rounds
        self._until_idle = until_idle
        self.idle = False
        """Whether nobody has acted in this round."""
        self._waiting: list[int] = []

    def next(self) -> int | None:
        """Return who gets the floor, or None after all rounds or an idle one."""
        if not self._waiting:
            if self.rounds_left <= 0 or (self._until_idle and self.idle):
                return None
            self.rounds_left -= 1
            self.idle = True
            self._waiting = self._order()
        return self._waiting.pop()

    @property
    def rounds_to_go(self) -> int:
        """Rounds left, the unfinished one included."""
        return self.rounds_left + bool(self._waiting)

    def _order(self) -> list[int]:
        """Return the living in reverse order of this round."""
        state = self._state
        living = list(state.others())
        if state.rules.floor == "random":
            state.public.shuffle(living)
            return living
        first = bisect_left(living, (state.day - 1) % len(state.players))
        ordered = living[first:] + living[:first]
        ordered.reverse()
        return ordered

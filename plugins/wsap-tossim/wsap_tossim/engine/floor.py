"""The floor by day, in turns."""

from __future__ import annotations

from bisect import bisect_left

from wsap_tossim.engine.state import State

__all__ = ["Floor"]


class Floor:
    """Gives the floor to each living player, for a number of rounds, in which nobody dies.

    Args:
        state: the game.
        rounds: how often each has it.
        until_idle: whether it ends with a round in which nobody does anything.
    """

    def __init__(self, state: State, rounds: int, *, until_idle: bool = False) -> None:
        self._state = state
        self.rounds_left = rounds
        self._until_idle = until_idle
        self.idle = False
        """Whether nobody has done anything in this round so far."""
        self._waiting: list[int] = []

    def next(self) -> int | None:
        """Return who has the floor now, or None when all rounds are over, or one has passed in silence."""
        if not self._waiting:
            if self.rounds_left <= 0 or (self._until_idle and self.idle):
                return None
            self.rounds_left -= 1
            self.idle = True
            self._waiting = self._order()
        return self._waiting.pop()

    @property
    def rounds_to_go(self) -> int:
        """How many rounds are left, the one included in which not everybody has had the floor yet."""
        return self.rounds_left + bool(self._waiting)

    def _order(self) -> list[int]:
        """Return the living in the order of this round, last first."""
        state = self._state
        living = list(state.others())
        if state.rules.floor == "random":
            state.public.shuffle(living)
            return living
        first = bisect_left(living, (state.day - 1) % len(state.players))
        ordered = living[first:] + living[:first]
        ordered.reverse()
        return ordered

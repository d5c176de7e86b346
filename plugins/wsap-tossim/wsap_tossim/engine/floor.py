"""Who has the floor by day, one after the other."""

from __future__ import annotations

from wsap_tossim.engine.state import State

__all__ = ["Floor"]


class Floor:
    """Gives the floor to each living player, for a number of rounds.

    Args:
        state: the game.
        rounds: how often each has it.
    """

    def __init__(self, state: State, rounds: int) -> None:
        self._state = state
        self.rounds_left = rounds
        self.idle = True
        """Whether nobody has done anything in this round so far."""
        self._waiting: list[int] = []

    def next(self) -> int | None:
        """Return who has the floor now, or None when all rounds are over, or one has passed in silence."""
        while True:
            while self._waiting:
                player = self._waiting.pop()
                if self._state.players[player].alive:
                    return player
            if self.rounds_left <= 0:
                return None
            self.rounds_left -= 1
            self.idle = True
            self._waiting = self._order()

    def end(self) -> None:
        """Take the floor from everybody."""
        self._waiting.clear()
        self.rounds_left = 0

    @property
    def round_is_over(self) -> bool:
        """Whether everybody has had the floor in this round."""
        return not self._waiting

    def _order(self) -> list[int]:
        """Return the living in the order of this round, last first."""
        state = self._state
        living = [p.number for p in state.players if p.alive]
        if state.rules.floor == "random":
            state.public.shuffle(living)
            return living
        first = (state.day - 1) % len(state.players)
        ordered = [n for n in living if n >= first] + [n for n in living if n < first]
        ordered.reverse()
        return ordered

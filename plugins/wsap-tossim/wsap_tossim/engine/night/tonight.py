"""The state of a night during its resolution."""

from __future__ import annotations

from collections.abc import Sequence

from wsap_tossim.engine.data.model import Choice, Verb
from wsap_tossim.engine.data.state import State

__all__ = ["Night"]


class Night:
    """One night. Players are numbers; lists have an entry for each player."""

    def __init__(self, state: State) -> None:
        many = len(state.players)
        self.state = state
        self.acts: list[Choice | None] = [None] * many
        """Each player's action after jail, Witch and blocks, if any. Changed by `let` only."""
        self._doing: dict[Verb, list[int]] | None = None
        self.places = list(range(many))
        """The player found at each player's house."""
        self.blocked_by: dict[int, list[int]] = {}
        """Blocked player -> blockers."""
        self.met = [-1] * many
        """Target of each player's action; -1 for nobody."""
        self.visits: list[tuple[int, int, Verb]] = []
        """Visitor, host and verb of each visit."""
        self.visitors: dict[int, list[int]] = {}
        """Host -> visitors, by seat."""
        self.alert = 0
        """Mask of the Veterans on alert."""
        self.vested = 0
        """Mask of those in a vest."""
        self.healers: dict[int, list[int]] = {}
        """Healed player -> healers."""
        self.guards: dict[int, list[int]] = {}
        """Guarded player -> Bodyguards."""
        self.cleaners: dict[int, list[int]] = {}
        self.forgers: dict[int, int] = {}
        self.blackmailed: list[int] = []
        self.causes: dict[int, list[str]] = {}
        """Dying player -> causes."""
        self.notes: dict[int, list[int]] = {}
        """Dying player -> killers who leave notes."""
        self.bitten: list[int] = []
        """Players who become Vampires if they survive."""
        self.guilty: list[int] = []
        """Vigilantes who have shot Town."""
        self.looked = 0
        """Mask of the players examined by a Sheriff or Investigator."""

    def let(self, player: int, act: Choice | None) -> None:
        """Replace a player's action of tonight."""
        self.acts[player] = act
        self._doing = None

    def doing(self, verb: Verb) -> Sequence[int]:
        """Return the players with this action tonight."""
        known = self._doing
        if known is None:
            known = self._doing = {}
            for number, act in enumerate(self.acts):
                if act is not None:
                    known.setdefault(act.verb, []).append(number)
        return known.get(verb, ())

    def act_of(self, player: int) -> Choice:
        """Return the action of a player that has one."""
        act = self.acts[player]
        assert act is not None, "it is one of those who do something"
        return act

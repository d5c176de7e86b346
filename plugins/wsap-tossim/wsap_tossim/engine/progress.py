"""The progress of a game: who is asked, the state between rounds, and the ending."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wsap_tossim.engine.bids import Bids
from wsap_tossim.engine.data.model import Choice, Event, Option, Phase
from wsap_tossim.engine.data.record import Entry
from wsap_tossim.engine.data.rules import RuleSet
from wsap_tossim.engine.data.state import State
from wsap_tossim.engine.floor import Floor
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.engine.setups import Setup, deal
from wsap_tossim.engine.victory import Ending, ending

__all__ = ["Progress"]


class Progress:
    """The base of day and night; `wsap_tossim.engine.game.Game` combines them.

    Args:
        setup: the role list.
        rules: the rule set.
        seed: of the roles and all random draws.
        roles: the role of each player by name, instead of dealing them (for tests and studies).

    Raises:
        ConfigError: the list can't be played.
    """

    _step: Callable[[Mapping[int, Choice]], None]
    """The method that carries out the next choices; set with `waiting`."""

    def __init__(self, setup: Setup, rules: RuleSet, seed: int, *, roles: Sequence[str] | None = None) -> None:
        self.setup = setup
        self.rules = rules
        self.seed = seed
        self.fixed_roles = tuple(roles) if roles is not None else None
        dealt = [ROLES[name] for name in roles] if roles is not None else deal(setup, seed)
        self.state = State(rules, dealt, seed)
        self.round = 0
        """Number of resolved rounds."""
        self.waiting: tuple[int, ...] = ()
        """Players asked in this round; empty if the game is over."""
        self.over = False
        """Whether the game has ended."""
        self.ending: Ending | None = None
        self._record: list[Entry] = []
        self._starts: list[int] = []
        self._done: list[tuple[int, tuple[int, ...], tuple[Choice, ...], frozenset[int]]] = []
        """Rounds not yet in the record: length of the log before, players asked, choices, forced players."""
        self.trials_today = 0
        self.accused: int | None = None
        """The player on trial."""
        self.mayors: list[int] = []
        """Players who revealed themselves as Mayor, even if their role has changed since."""
        self.votes: dict[int, int] = {}
        """Current votes for a trial: voter -> target."""
        self._offered: dict[tuple[int, int | None, bool], tuple[Option, ...]] = {}
        """Cache of this phase's options by player, vote, and whether it can talk; see `Offers.options`."""
        self._unseen: dict[int, tuple[Option, ...]] = {}
        """Options at this dusk or night by player, without `wait`."""
        self._floor = Floor(self.state, 0)
        self._bids = Bids(self.state)
        self._bidding = False
        """Whether the players asked bid for the floor."""
        self._spent: dict[int, int] = {}
        """Tokens that each player said and whispered today."""
        self._talk_rounds = 0
        self._voted_guilty: list[int] = []
        """Players who voted the condemned guilty."""

    @property
    def record(self) -> list[Entry]:
        """Choices and writings so far, in order."""
        self._write_down()
        return self._record

    @property
    def starts(self) -> list[int]:
        """The length of the log when each round was resolved."""
        self._write_down()
        return self._starts

    def _write_down(self) -> None:
        """Add the new rounds to the record."""
        for start, asked, choices, forced in self._done:
            number = len(self._starts)
            self._starts.append(start)
            for player, choice in zip(asked, choices, strict=True):
                self._record.append(Entry(number, player, *choice, player in forced))
        self._done.clear()

    @property
    def log(self) -> list[Event]:
        """All events, oldest first."""
        return self.state.log

    @property
    def phase(self) -> Phase:
        """The current phase."""
        return self.state.phase

    @property
    def needed(self) -> int:
        """The weight of votes for a trial: more than half of the living."""
        return len(self.state.others()) // 2 + 1

    def weight(self, player: int) -> int:
        """Return the weight of a player's vote: three for a revealed Mayor."""
        return 3 if player in self.mayors else 1

    def against(self, target: int) -> int:
        """Return the weight of the current votes against a player."""
        votes = self.votes
        return list(votes.values()).count(target) + 2 * sum([votes.get(mayor) == target for mayor in self.mayors])

    def tokens_left(self, player: int) -> int | None:
        """Return the tokens that a player may still say and whisper today; None without a limit."""
        most = self.rules.tokens_a_day
        return max(0, most - self._spent.get(player, 0)) if most else None

    # --- for day and night -----------------------------------------------------------------

    def _enter(self, phase: Phase, known_by: int | None = None) -> None:
        """Enter a phase, and tell all or some players."""
        self._turn_to(phase)
        self.state.tell("phase", self.state.everyone if known_by is None else known_by, name=phase.value)

    def _turn_to(self, phase: Phase) -> None:
        self.state.phase = phase
        self._offered.clear()

    def _ended(self) -> bool:
        """End the game if it is decided; return whether it has ended."""
        found = ending(self.state)
        if found is None:
            return False
        self._end(found)
        return True

    def _end(self, found: Ending) -> None:
        """End the game, and reveal all roles."""
        state = self.state
        self.over, self.ending = True, found
        self.waiting = ()
        self._turn_to(Phase.OVER)
        self._step = _nothing  # break the reference cycle, so that the game is freed
        everyone = state.everyone
        state.tell("over", everyone, winners=list(found.winners), side=found.side, reason=found.reason)
        state.tell(
            "truth",
            everyone,
            roles=[p.first_role.name for p in state.players],
            final=[p.role.name for p in state.players],
        )

    def _morning(self) -> None:
        raise NotImplementedError

    def _dusk(self) -> None:
        raise NotImplementedError


def _nothing(choices: Mapping[int, Choice]) -> None:
    """Carry out nothing: the game is over."""

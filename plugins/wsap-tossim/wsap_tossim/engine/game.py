"""A game, from its first question to its end.

    game = Game(setup("classic"), CLASSIC, seed=1)
    while not game.over:
        game.resolve({player: choose(game.options(player)) for player in game.waiting})

A game is a function of its set-up, rules, seed and choices (`Game.record`), so it can be replayed from them and
forked at any round (`Game.fork`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wsap_core.errors import SnapshotError, UsageError
from wsap_tossim.engine.data.model import Choice, Verb
from wsap_tossim.engine.data.record import WRITINGS, Entry, Writing, entries_of, rows_of, steps_of
from wsap_tossim.engine.data.rules import RuleSet
from wsap_tossim.engine.daytime import Daytime
from wsap_tossim.engine.death import set_up
from wsap_tossim.engine.night.nighttime import Nighttime
from wsap_tossim.engine.offers import Offers
from wsap_tossim.engine.setups import Setup

__all__ = ["WRITINGS", "Entry", "Game", "Writing"]


class Game(Offers, Daytime, Nighttime):
    """One game, from dealing the roles to its end; see `Progress` for the arguments."""

    def __init__(self, setup: Setup, rules: RuleSet, seed: int, *, roles: Sequence[str] | None = None) -> None:
        super().__init__(setup, rules, seed, roles=roles)
        self._begin()

    def _begin(self) -> None:
        state = self.state
        state.tell(
            "begins",
            state.everyone,
            players=len(state.players),
            rules=self.rules.to_json(),
            mode=self.setup.name,
            slots=list(self.setup.slots),
        )
        set_up(state)
        if self._ended():
            return
        if self.rules.first_day == "none":
            self._dusk()
        else:
            self._morning()

    # --- choices ---------------------------------------------------------------------------

    def resolve(self, choices: Mapping[int, Choice], *, forced: frozenset[int] = frozenset()) -> None:
        """Carry out a round.

        Args:
            choices: of exactly the players in `waiting`.
            forced: players whose choices were made for them.

        Raises:
            UsageError: a choice is missing, unexpected or illegal; the game is unchanged.
        """
        for player in self.waiting:
            if player not in choices:
                raise UsageError(f"Player {player} has not chosen; the round waits for {list(self.waiting)}.")
        for player, choice in choices.items():
            reason = self.refusal(player, choice)
            if reason:
                raise UsageError(f"Player {player}: {reason}")
        self.carry_out(choices, forced)

    def carry_out(self, choices: Mapping[int, Choice], forced: frozenset[int] = frozenset()) -> None:
        """Carry out a round whose choices are known to be legal; see `resolve`."""
        if self.over:
            return
        asked = self.waiting
        self._done.append((self.state.told, asked, tuple(map(choices.__getitem__, asked)), forced))
        if forced:
            for player in asked:
                if player in forced:
                    self.state.tell("forced", player=player)
        self._step(choices)
        self.round += 1

    def write(self, player: int, what: Writing, text: str) -> str:
        """Write a will, death note or notebook, which takes no turn; return the refusal, or an empty text."""
        if self.over:
            return "The game is over."
        if not 0 <= player < len(self.state.players):
            return f"There is no player number {player}."
        if what not in WRITINGS:
            return f"There is no {what!r} to write; there are: {', '.join(WRITINGS)}."
        one = self.state.players[player]
        if not one.alive:
            return "The dead write no more."
        if (what == "will" and not self.rules.wills) or (what == "note" and not self.rules.death_notes):
            return f"There is no {what} in this game's rules."
        if len(text) > self.rules.longest_will:
            return f"That is too long: {len(text)} characters; at most {self.rules.longest_will}."
        setattr(one, what, text)
        self.record.append(Entry(self.round, player, what, (), text))
        self.state.tell_one(player, "writes", what=what, text=text)
        return ""

    # --- replay and fork -------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return everything needed to replay the game; JSON-ready."""
        return {
            "format": 1,
            "mode": self.setup.name,
            "slots": list(self.setup.slots),
            "rules": self.rules.to_json(),
            "seed": self.seed,
            "roles": list(self.fixed_roles) if self.fixed_roles is not None else None,
            "record": rows_of(self.record),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, rounds: int | None = None) -> Game:
        """Return a game replayed from the output of `to_json`, up to a number of rounds if given.

        Raises:
            SnapshotError: the record is damaged, or of another version of the rules.
        """
        try:
            if data["format"] != 1:
                raise SnapshotError(f"The game's record has the format {data['format']!r}; this package reads 1.")
            rules = RuleSet.from_json(data["rules"])
            setup = Setup(str(data["mode"]), tuple(str(s) for s in data["slots"]))
            roles = None if data["roles"] is None else [str(r) for r in data["roles"]]
            entries = entries_of(data["record"])
            game = cls(setup, rules, int(data["seed"]), roles=roles)
            game.repeat(entries, rounds)
        except SnapshotError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, UsageError, RecursionError) as error:
            raise SnapshotError(f"The game's record is damaged: {error}.") from error
        return game

    def repeat(self, entries: Sequence[Entry], rounds: int | None = None) -> None:
        """Replay a record.

        Raises:
            SnapshotError: it does not fit this game.
        """
        for step in steps_of(entries, rounds):
            first = step[0]
            if first.round != self.round:
                raise SnapshotError(f"The record has no choices for round {self.round}.")
            if first.verb in WRITINGS:
                if self.write(first.player, first.verb, first.text):
                    raise SnapshotError(f"The record does not fit in round {self.round}: nobody could write there.")
                continue
            if any(entry.verb in WRITINGS for entry in step):
                raise SnapshotError(f"The record of round {self.round} is out of order.")
            choices = {entry.player: Choice(Verb(entry.verb), entry.targets, entry.text) for entry in step}
            forced = frozenset(entry.player for entry in step if entry.forced)
            try:
                self.resolve(choices, forced=forced)
            except UsageError as error:
                raise SnapshotError(f"The record does not fit in round {self.round}: {error}") from error

    def fork(self, rounds: int | None = None) -> Game:
        """Return an independent copy of the game's first rounds, or of all if None.

        Raises:
            UsageError: the game has fewer rounds.
        """
        if rounds is not None and not 0 <= rounds <= self.round:
            raise UsageError(f"This game has had {self.round} rounds; it can be forked at 0 to {self.round}.")
        copy = Game(self.setup, self.rules, self.seed, roles=self.fixed_roles)
        copy.repeat(self.record, rounds)
        return copy

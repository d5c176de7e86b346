"""OpenSpiel's Kuhn poker, tic-tac-toe and goofspiel as `RoundGame`s; needs `pip install open_spiel`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

import pyspiel
from typing_extensions import override

from wsap_core import Action, ActionDef, ActionSpace, Observation
from wsap_core.authoring.rounds import RoundGame
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context


class OpenSpielGame(RoundGame):
    """An OpenSpiel game for two players."""

    game: ClassVar[str]
    """OpenSpiel's name of the game."""
    names: ClassVar[Sequence[str]]
    """The names of OpenSpiel's actions, by number."""
    seats = ("first", "second")
    zero_sum = True

    def __init__(self, context: Context) -> None:
        self.loaded = pyspiel.load_game(self.game)
        super().__init__(context)

    def __init_subclass__(cls) -> None:
        cls.action_space = ActionSpace([ActionDef(name, f"Play {name}") for name in cls.names])

    @override
    def begin(self) -> None:
        self.state = self.loaded.new_initial_state()
        self.leave_to_chance()

    def leave_to_chance(self) -> None:
        """Draw cards until a player moves or the game is over."""
        while self.state.is_chance_node():
            outcomes, chances = zip(*self.state.chance_outcomes(), strict=True)
            self.state.apply_action(self.random.choices(outcomes, chances)[0])

    @override
    def to_move(self) -> Sequence[str]:
        if self.state.is_terminal():
            return ()
        return self.seats if self.state.is_simultaneous_node() else (self.seats[self.state.current_player()],)

    @override
    def legal(self, seat: str) -> Sequence[str]:
        return [self.names[number] for number in self.state.legal_actions(self.seats.index(seat))]

    @override
    def apply(self, moves: Mapping[str, Action]) -> None:
        self.advance(self.state, [self.names.index(action.name) for action in moves.values()])
        self.leave_to_chance()

    @override
    def see(self, seat: str) -> Observation:
        player = self.seats.index(seat)
        known = (self.state.information_state_string(player), self.state.observation_string(player))
        return Observation(status={"past": known[0].strip(), "now": known[1].strip()})

    @override
    def returns(self) -> Mapping[str, float]:
        return dict(zip(self.seats, self.state.returns(), strict=True))

    @override
    def dump(self) -> JsonValue:
        return self.state.history()

    @override
    def load(self, data: JsonValue) -> None:
        state, rest = self.loaded.new_initial_state(), list(data)
        while rest:
            count = 2 if state.is_simultaneous_node() else 1
            self.advance(state, rest[:count])
            del rest[:count]
        self.state = state

    @override
    def vary_secret(self, seat: str, rng: Random) -> bool:
        before = self.state.history()
        self.state = self.state.resample_from_infostate(1 - self.seats.index(seat), rng.random)
        return bool(self.state.history() != before)

    @staticmethod
    def advance(state: pyspiel.State, numbers: Sequence[int]) -> None:
        """Apply one action, or one per player. Raises ValueError if it is illegal."""
        players = range(2) if state.is_simultaneous_node() else [state.current_player()]
        for player, number in zip(players, numbers, strict=True):
            if number not in state.legal_actions(player):
                raise ValueError(f"{number} is not a legal action")
        state.apply_actions(numbers) if len(numbers) > 1 else state.apply_action(numbers[0])


class KuhnPoker(OpenSpielGame):
    """Kuhn poker."""

    game_description = "Kuhn poker: three cards, one chip in the pot each; pass or bet one more. The higher card wins."
    game, names = "kuhn_poker", ("pass", "bet")


class TicTacToe(OpenSpielGame):
    """Tic-tac-toe."""

    game_description = "Tic-tac-toe: put your mark into a free cell; three in a row win."
    game, names = "tic_tac_toe", tuple(f"{row}{column}" for row in "abc" for column in "123")


class Goofspiel(OpenSpielGame):
    """Goofspiel with four cards."""

    game_description = "Goofspiel: bid a card for each prize, which the higher bid wins. Most points win."
    game, names = "goofspiel(num_cards=4)", tuple(f"bid-{card}" for card in range(1, 5))
    timing = "simultaneous"

"""A game of OpenSpiel as a game for agents."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import Any

from wsap_core.authoring.rounds import RoundGame
from wsap_core.protocol import Action, ActionDef, ActionSpace, Observation, ParamDef, Possible
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context, derive_seed
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import single_line
from wsap_nexus.doors.foreign import TextObservation, drawn
from wsap_openspiel.catalogue import has_generator, loaded, seeded, spiel
from wsap_openspiel.plugin import DEFAULT

# Any, in this module: OpenSpiel ships no types.

PLAY = "play"
"""The only action; its parameter `move` is written as OpenSpiel writes it."""
_LONGEST_RECALL = 2000
"""Maximum characters of an information state beside an observation."""
_RESAMPLED = ("bargaining", "kuhn_poker")
"""Games in which OpenSpiel can draw anew what one player can never know, and no later move tells it."""


def variant(spec: AdapterSpec, options: Mapping[str, Any]) -> AdapterSpec:
    """Return the spec of one game; UsageError if it can't be played."""
    game = loaded(str(options.get("game", DEFAULT)))
    kind, seats = game.get_type(), game.num_players()
    together = kind.dynamics == spiel().GameType.Dynamics.SIMULTANEOUS
    return replace(
        spec, title=kind.long_name, seats=(seats, seats), timing="simultaneous" if together else "alternating"
    )


def create(context: Context) -> OpenSpielGame:
    """Return a game.

    Raises:
        UsageError: there is no such game, its parameters are invalid, or it can't be played.
        MissingServiceError: OpenSpiel is not installed.
    """
    return OpenSpielGame(str(context.config.get("game", DEFAULT)), context)


class OpenSpielGame(RoundGame):
    """A game of OpenSpiel. A snapshot has the moves with those of chance; restoring repeats them."""

    def __init__(self, call: str, context: Context | None = None) -> None:
        game = loaded(call)
        kind = game.get_type()
        pyspiel = spiel()
        self._call = call
        self._kind = kind
        self.seats = tuple(f"seat-{number + 1}" for number in range(game.num_players()))
        self.timing = "simultaneous" if kind.dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS else "alternating"
        self.zero_sum = kind.utility == pyspiel.GameType.Utility.ZERO_SUM
        self._perfect = kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION
        self._pays_meanwhile = kind.reward_model == pyspiel.GameType.RewardModel.REWARDS
        self._invalid = pyspiel.INVALID_ACTION
        how = ParamDef("move", "a move, written as in the list of what is possible now")
        self.action_space = ActionSpace((ActionDef(PLAY, "Make a move", (how,)),))
        self.game_description = _described(game)
        super().__init__(context)

    # --- the rules --------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start from the initial state."""
        if has_generator(self._kind):
            self._state, self._log = self._initial(), []
            self._draw()
            return
        state, log = _dealt(self._call, self.seed, self.episode)
        self._state, self._log = state.clone(), list(log)
        self._known: dict[str, dict[str, int]] = {}

    def to_move(self) -> Sequence[str]:
        """Return the seats that have moves now."""
        if self._state.is_terminal():
            return ()
        if not self._state.is_simultaneous_node():
            return (self.seats[self._state.current_player()],)
        return tuple(seat for number, seat in enumerate(self.seats) if self._state.legal_actions(number))

    def legal(self, seat: str) -> Sequence[Possible]:
        """Return all moves of a seat."""
        return [Possible(PLAY, choices={"move": list(self._moves(seat))})]

    def refusal(self, seat: str, action: Action) -> str:
        """Return why a move is not possible, with similar ones that are."""
        given = str(action.parameters.get("move", ""))
        if self._move(seat, given) is not None:
            return ""
        known = list(self._moves(seat))
        near = difflib.get_close_matches(given, known, n=3, cutoff=0.6)
        hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"There are: {', '.join(known[:20])}."
        return f"{single_line(given)[:80]!r} is no move that is possible now. {hint}"

    def apply(self, moves: Mapping[str, Action]) -> None:
        """Make the moves, and draw chance until somebody decides again."""
        chosen = {seat: self._move(seat, str(action.parameters["move"])) for seat, action in moves.items()}
        if self._state.is_simultaneous_node():
            joint = [chosen.get(seat, self._invalid) for seat in self.seats]
            self._state.apply_actions(joint)
            self._log.append(joint)
        else:
            (move,) = chosen.values()
            self._state.apply_action(move)
            self._log.append(move)
        self._draw()

    def see(self, seat: str) -> Observation:
        """Return OpenSpiel's own texts of what a seat observes, and of hidden information what it can know."""
        number = self.seats.index(seat)
        texts = []
        if self._kind.provides_observation_string:
            texts.append(self._state.observation_string(number))
        if self._kind.provides_information_state_string and not (self._perfect and texts):
            known = self._state.information_state_string(number)
            if not texts:
                texts.append(known)
            elif known.strip() != texts[0].strip() and len(known) <= _LONGEST_RECALL:
                texts.append(f"What you know of all moves so far:\n{known}")
        return TextObservation(drawing=drawn("\n\n".join(text.rstrip() for text in texts)))

    def returns(self) -> Mapping[str, float]:
        """Return OpenSpiel's returns."""
        if not self._pays_meanwhile and not self._state.is_terminal():
            return dict.fromkeys(self.seats, 0.0)
        return dict(zip(self.seats, map(float, self._state.returns()), strict=True))

    def dump(self) -> JsonValue:
        """Return the moves."""
        return list(self._log)

    def load(self, data: JsonValue) -> None:
        """Repeat moves, each of which must be possible: OpenSpiel's own way back trusts what it reads."""
        if not isinstance(data, list):
            raise TypeError("the moves are no list")
        state: Any = self._initial()
        first: tuple[Any, ...] = ()
        if not has_generator(self._kind):
            dealt, log = _dealt(self._call, self.seed, self.episode)
            if data[: len(log)] == list(log):
                state, first = dealt.clone(), log
        for move in data[len(first) :]:
            _repeat(state, move, len(self.seats), self._invalid)
        if not state.is_terminal() and state.is_chance_node():
            raise ValueError("the moves end where chance has to move")
        self._state, self._log = state, [*first, *data[len(first) :]]
        self._known = {}

    def describe(self, seat: str) -> str:
        """Return what is known of the game, and the number by which OpenSpiel calls the player."""
        if len(self.seats) == 1:
            return self.game_description
        return f"{self.game_description}\nYou are {seat}: player {self.seats.index(seat)} in the texts of OpenSpiel."

    def vary_hidden(self, rng: Random) -> Sequence[str] | None:
        """Draw anew what one player can't know, where OpenSpiel can do that."""
        if self._kind.short_name not in _RESAMPLED or self._state.is_terminal():
            return None
        number = rng.randrange(len(self.seats))
        state = self._state.resample_from_infostate(number, rng.random)
        log = [each.action for each in state.full_history()]
        if log == self._log:
            return None
        self._state, self._log, self._known = state, log, {}
        return [seat for seat in self.seats if seat != self.seats[number]]

    # --- parts ------------------------------------------------------------------------------------------

    def _initial(self) -> Any:
        return seeded(self._call, self.seed, self.episode).new_initial_state()

    def _draw(self) -> None:
        """Draw chance until somebody decides, or the game is over."""
        _draw_chance(self._state, self.random, self._log)
        self._known = {}

    def _moves(self, seat: str) -> dict[str, int]:
        """Return the moves of a seat that is to move, by their texts."""
        if seat not in self._known:
            number = self.seats.index(seat)
            found: dict[str, int] = {}
            for move in self._state.legal_actions(number):
                text = _written(self._state.action_to_string(number, move)) or str(move)
                found[f"{text} (number {move})" if text in found else text] = move
            self._known[seat] = found
        return self._known[seat]

    def _move(self, seat: str, text: str) -> int | None:
        """Return a move by its text, in any case where that is clear; None if there is none."""
        moves = self._moves(seat)
        if text in moves:
            return moves[text]
        alike = [move for known, move in moves.items() if known.lower() == _written(text).lower()]
        return alike[0] if len(alike) == 1 else None


@lru_cache(maxsize=64)
def _dealt(call: str, seed: int, episode: int) -> tuple[Any, tuple[Any, ...]]:
    """Return how an episode begins, and what chance has drawn for it: some games solve each new deal, which takes a
    second. The state is shared, so that it must be cloned, and the game's chance must be drawn by the kit."""
    state: Any = loaded(call).new_initial_state()
    log: list[Any] = []
    _draw_chance(state, Random(derive_seed(seed, episode, 0)), log)
    return state, tuple(log)


def _draw_chance(state: Any, random: Random, log: list[Any]) -> None:
    """Draw chance until somebody decides, or the game is over, and add it to the log."""
    while state.is_chance_node():
        outcomes = state.chance_outcomes()
        (drawn_one,) = random.choices([move for move, _ in outcomes], [share for _, share in outcomes])
        state.apply_action(drawn_one)
        log.append(drawn_one)


def _written(text: str) -> str:
    """Return the text of a move as an agent writes it: one line, and no bar, which separates choices."""
    return " ".join(single_line(text).replace("|", "/").split())


def _repeat(state: Any, move: Any, seats: int, invalid: int) -> None:
    if state.is_terminal():
        raise ValueError("there are moves after the end")
    if state.is_chance_node():
        possible = [outcome for outcome, share in state.chance_outcomes() if share > 0]
        if type(move) is not int or move not in possible:
            raise ValueError(f"{move!r} is nothing that chance can draw here")
        state.apply_action(move)
    elif state.is_simultaneous_node():
        if not isinstance(move, list) or len(move) != seats:
            raise ValueError(f"{move!r} is no move of {seats} players")
        for number, one in enumerate(move):
            if type(one) is not int or one not in (state.legal_actions(number) or [invalid]):
                raise ValueError(f"{one!r} is no move of player {number} here")
        state.apply_actions(move)
    else:
        if type(move) is not int or move not in state.legal_actions():
            raise ValueError(f"{move!r} is no move that is possible here")
        state.apply_action(move)


def _described(game: Any) -> str:
    """Return what OpenSpiel says of a game: it has no texts of rules."""
    kind, kinds = game.get_type(), spiel().GameType
    seats = game.num_players()
    players = "one player" if seats == 1 else f"{seats} players"
    words = [f"{kind.long_name}, for {players}."]
    parameters = ", ".join(f"{name}={value}" for name, value in sorted(game.get_parameters().items()))
    if parameters:
        words.append(f"Parameters: {single_line(parameters)[:500]}.")
    if kind.dynamics == kinds.Dynamics.SIMULTANEOUS:
        words.append("Players move at the same time.")
    if kind.chance_mode != kinds.ChanceMode.DETERMINISTIC:
        words.append("Chance plays a part.")
    if kind.information != kinds.Information.PERFECT_INFORMATION and seats > 1:
        words.append("Players do not see everything.")
    if kind.utility == kinds.Utility.ZERO_SUM and seats > 1:
        words.append("What one wins, others lose.")
    low, high = game.min_utility(), game.max_utility()
    words.append(f"The return of a player is from {low:g} to {high:g}; more is better.")
    return " ".join(words)

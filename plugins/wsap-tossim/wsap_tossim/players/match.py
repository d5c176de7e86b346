"""A game on the engine, with a decider at every seat, each with only its own knowledge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wsap_tossim.engine.data.model import WAIT, Choice, Phase
from wsap_tossim.engine.game import WRITINGS, Game
from wsap_tossim.knowledge import Knowledge, share
from wsap_tossim.players.decider import Decider

__all__ = ["Played", "play_match"]


AFTER_THE_DAY = (Phase.DUSK, Phase.TALK_AT_NIGHT, Phase.NIGHT)


@dataclass
class Played:
    """A finished game."""

    game: Game
    thoughts: list[tuple[int, int, str]] = field(default_factory=list)
    """Round, player, reason."""
    beliefs: list[tuple[int, int, dict[int, float]]] = field(default_factory=list)
    """Day, player, and at the end of the day the probability that each other living player is an enemy."""
    refused: list[tuple[int, int, str]] = field(default_factory=list)
    """Round, player, why its choice or paper was illegal; it waited instead."""


def play_match(
    game: Game,
    deciders: Mapping[int, Decider] | Sequence[Decider],
    *,
    beliefs: bool = True,
    given: Mapping[int, Choice] | None = None,
) -> Played:
    """Play a game to its end from any round, with forced choices in the first round if given."""
    settled = dict(given or {})
    seats = [deciders[n] for n in range(len(game.state.players))]
    known = {n: Knowledge(n) for n in range(len(seats))}
    played = Played(game)
    told = asked_on = 0
    while not game.over:
        share(game.log[told:], known)
        told = len(game.log)
        if beliefs and game.phase in AFTER_THE_DAY and asked_on != game.state.day:
            asked_on = game.state.day
            _ask(game, seats, known, played)
        choices, settled = settled, {}
        for player in game.waiting:
            if player in choices:
                continue
            turn = seats[player].turn(known[player], game.options(player))
            played.thoughts.append((game.round, player, turn.thought))
            for what in WRITINGS:
                if what in turn.writings:
                    refusal = game.write(player, what, turn.writings[what])
                    if refusal:
                        played.refused.append((game.round, player, refusal))
            refusal = game.refusal(player, turn.choice)
            if refusal:
                played.refused.append((game.round, player, refusal))
            choices[player] = WAIT if refusal else turn.choice
        game.carry_out(choices)
    share(game.log[told:], known)
    return played


def _ask(game: Game, seats: Sequence[Decider], known: Mapping[int, Knowledge], played: Played) -> None:
    for player in game.state.living():
        number = player.number
        played.beliefs.append((game.state.day, number, dict(seats[number].beliefs(known[number]))))

"""The games of a tournament, and how those without models are played: on the engine, in any process."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from wsap_core.errors import WsapError
from wsap_core.seams.agent import Usage
from wsap_eval.kit import EpisodeKey
from wsap_tossim.engine import game as engine
from wsap_tossim.options import TownOptions
from wsap_tossim.players.decider import Decider, RandomDecider
from wsap_tossim.players.match import play_match
from wsap_tossim.players.scripted import ScriptedDecider
from wsap_tossim.replay.record import Record
from wsap_tossim.tournament.ledger import Line
from wsap_tossim.tournament.plan import Fixture, Settings, fixture
from wsap_tossim.tournament.scores.measures import measure
from wsap_tossim.tournament.spending import packed, spent_on

__all__ = ["Game", "PlayedGame", "Scripted", "line_of", "play_one"]

Beliefs = Sequence[tuple[int, int, Mapping[int, float]]]
_DECIDERS: Mapping[str, Callable[[int, random.Random, Sequence[str]], Decider]] = {
    "scripted": ScriptedDecider,
    "random": RandomDecider,
}

_TURNS = 3
"""Turns of the event loop between two games: in one it hears of Ctrl-C, in the next it acts on it."""


def play_one(settings: Settings, number: int) -> Line:
    """Play a game without models, and return its line."""
    drawn = fixture(settings, number)
    options = TownOptions.read(settings.options)
    game = engine.Game(options.setup, options.rules, drawn.seed)
    deciders: list[Decider] = []
    for seat, entrant in enumerate(drawn.seats):
        maker = _DECIDERS[settings.entrants[entrant].kind]
        deciders.append(maker(seat, random.Random(drawn.decider_seeds[seat]), drawn.names))  # play, not secrets
    played = play_match(game, deciders)
    refused = [0] * len(deciders)
    for _, player, _ in played.refused:
        refused[player] += 1
    return line_of(settings, drawn, game, played.beliefs, refused)


def line_of(
    settings: Settings,
    drawn: Fixture,
    game: engine.Game,
    beliefs: Beliefs = (),
    refused: Sequence[int] = (),
    *,
    run: str | None = None,
    usage: Sequence[Usage | None] | None = None,
    asked: Sequence[Usage | None] | None = None,
) -> Line:
    """Return the line to store for a finished game.

    Args:
        settings: of the tournament.
        drawn: the planned game.
        game: the finished game.
        beliefs: the known beliefs of the players, by day.
        refused: number of illegal choices of each seat.
        run: id of the recorded run, if any.
        usage: each seat's model usage for playing; None without a model.
        asked: the same for beliefs.
    """
    ending = game.ending
    assert ending is not None, "the game is over"
    labels = [settings.entrants[entrant].label for entrant in drawn.seats]
    return {
        "game": drawn.number,
        "block": drawn.block,
        "seed": drawn.seed,
        "seats": list(drawn.seats),
        "entrants": labels,
        "names": list(drawn.names),
        "roles": [p.first_role.name for p in game.state.players],
        "final": [p.role.name for p in game.state.players],
        "side": ending.side,
        "winners": list(ending.winners),
        "reason": ending.reason,
        "days": game.state.day,
        "rounds": game.round,
        "refused": list(refused) or [0] * len(labels),
        "measures": measure(game.log, drawn.names, beliefs),
        "usage": None if usage is None else [None if one is None else packed(one) for one in usage],
        "asked": None if asked is None else [None if one is None else packed(one) for one in asked],
        "run": run,
        "record": Record(game, drawn.names, labels, (), beliefs).to_json(),
    }


@dataclass(frozen=True)
class Game:
    """A planned game, by its number."""

    number: int
    models: bool = False
    """Whether a model takes part."""

    @property
    def key(self) -> EpisodeKey:
        """Tells it from others."""
        return EpisodeKey("tossim", "models" if self.models else "scripted", self.number)


@dataclass(frozen=True)
class PlayedGame:
    """A finished game."""

    key: EpisodeKey
    line: Line
    """What is stored of it."""
    seconds: float = 0.0
    """How long it took here."""
    outcome: Literal["finished"] = "finished"
    value: None = None
    """A game has no score: its players have."""
    path: None = None

    @cached_property
    def _taken(self) -> Usage:
        return spent_on([self.line])

    @property
    def calls(self) -> int:
        """Calls of all its models."""
        return self._taken.calls

    @property
    def prompt_tokens(self) -> int:
        """Tokens of their prompts."""
        return self._taken.prompt_tokens

    @property
    def completion_tokens(self) -> int:
        """Tokens of their replies."""
        return self._taken.completion_tokens

    @property
    def cost(self) -> float | None:
        """US dollars; None if it is unknown."""
        return self._taken.cost


@dataclass(frozen=True)
class Scripted:
    """The games of a tournament without models, which worker processes can play; see `wsap_eval.kit.Work`."""

    settings: Settings

    @contextmanager
    def opened(self) -> Iterator[Callable[[Game], Coroutine[Any, Any, PlayedGame]]]:
        """Yield what plays a game here."""

        async def play(game: Game) -> PlayedGame:
            begun = time.monotonic()
            line = play_one(self.settings, game.number)
            taken = time.monotonic() - begun
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            return PlayedGame(game.key, line, taken)

        yield play

    def lost(self, job: Game, reason: str, taken: Usage) -> PlayedGame:
        """Raise WsapError: a game without models has no part that can fail."""
        raise WsapError(f"Game {job.number + 1} was lost: {reason}.")

    def elsewhere(self) -> Scripted:
        """Return the same: a game needs nothing else."""
        return self

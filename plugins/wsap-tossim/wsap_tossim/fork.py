"""A game gone on with from one of its rounds, by other players or otherwise: what if?"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from wsap_core.errors import UsageError
from wsap_tossim.engine.game import WRITINGS, Game
from wsap_tossim.knowledge import as_seen
from wsap_tossim.players.match import play_match
from wsap_tossim.players.minds import Mind, RandomMind
from wsap_tossim.players.scripted import ScriptedMind
from wsap_tossim.replay.record import Record

__all__ = ["MINDS", "Round", "forked", "rounds_of"]

MINDS: Mapping[str, type[ScriptedMind] | type[RandomMind]] = {"scripted": ScriptedMind, "random": RandomMind}
"""Who can play on, by name."""


class Round(NamedTuple):
    """One round of a game, as a fork is told by."""

    number: int
    day: int
    phase: str
    asked: tuple[int, ...]
    """Players, by number."""


def rounds_of(game: Game) -> Iterator[Round]:
    """Give the rounds that a game has had, in order."""
    asked: dict[int, list[int]] = {}
    for entry in game.record:
        if entry.verb not in WRITINGS:
            asked.setdefault(entry.round, []).append(entry.player)
    for number, start in enumerate(game.starts):
        before = as_seen(game.log[max(0, start - 1)])
        yield Round(number, before.day, before.phase, tuple(asked.get(number, ())))


def forked(record: Record, at: int, minds: Mapping[int, str], *, seed: int = 0, otherwise: str = "scripted") -> Record:
    """Return a game with the same past as another one, and an end of its own.

    Args:
        record: the game.
        at: how many of its rounds are kept: what was chosen in round `at` and after it, and what was written
            during round `at`, is gone.
        minds: player -> a name of `MINDS`, for who plays on.
        seed: of who plays on; the game's own lots stay those of its seed.
        otherwise: who plays on where `minds` names nobody.

    Raises:
        UsageError: the game has not had so many rounds, or there is no such mind.
    """
    game = record.game.fork(at)
    count = len(record.names)
    names = [minds.get(player, otherwise) for player in range(count)]
    players = [_mind(name, player, seed, record.names) for player, name in enumerate(names)]
    day = game.state.day
    played = play_match(game, players)
    before = record.minds or ("",) * count
    told = tuple(f"{was or 'somebody'} until round {at}, then {now}" for was, now in zip(before, names, strict=True))
    thoughts = [row for row in record.thoughts if row[0] < at] + played.thoughts
    beliefs = [row for row in record.beliefs if row[0] < day] + played.beliefs
    return Record(game, record.names, told, tuple(thoughts), tuple(beliefs))


def _mind(name: str, player: int, seed: int, names: Sequence[str]) -> Mind:
    if name not in MINDS:
        raise UsageError(f"There is no player {name[:40]!r} to play on; there are: {', '.join(MINDS)}.")
    return MINDS[name](player, random.Random(f"{seed}:{player}"), names)  # play, not secrets

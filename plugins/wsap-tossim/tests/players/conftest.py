"""Games between minds, and knowledge made by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from wsap_tossim.engine.data.model import Faction
from wsap_tossim.engine.data.rules import CLASSIC, rule_set
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.setups import setup
from wsap_tossim.knowledge import Knowledge, Seen
from wsap_tossim.players.decider import Decider
from wsap_tossim.players.match import Played, play_match
from wsap_tossim.players.scripted import ScriptedDecider

NAMES = ("Ann", "Bo", "Cy", "Dana", "Eve", "Finn", "Gus", "Hal", "Ivy", "Jon", "Kim", "Lea", "Max", "Ned", "Oda")

Maker = Callable[[int, random.Random, Sequence[str]], Decider]


def played(
    mode: str,
    seed: int,
    *,
    rules: str = "classic",
    town: Maker = ScriptedDecider,
    others: Maker = ScriptedDecider,
    roles: Sequence[str] | None = None,
    beliefs: bool = False,
) -> Played:
    """Return a game that was played to its end."""
    game = Game(setup(mode), rule_set(rules), seed, roles=roles)
    return play_match(game, minds_for(game, seed, town, others), beliefs=beliefs)


def minds_for(game: Game, seed: int, town: Maker = ScriptedDecider, others: Maker = ScriptedDecider) -> list[Decider]:
    rng = random.Random(seed)
    minds: list[Decider] = []
    for player in game.state.players:
        maker = town if player.role.faction is Faction.TOWN else others
        minds.append(maker(player.number, rng, NAMES[: len(game.state.players)]))
    return minds


class Story:
    """What one player has seen, told line by line."""

    def __init__(self, player: int, role: str, slots: Sequence[str], **more: Any) -> None:
        self.knowledge = Knowledge(player)
        self.day = 1
        self.phase = "discussion"
        self.see("begins", players=len(slots), rules=CLASSIC.to_json(), mode="custom", slots=list(slots))
        self.see("role", player=player, role=role, mates=more.get("mates", {}), target=more.get("target"))
        self.see("phase", name="discussion")

    def see(self, kind: str, **data: Any) -> Story:
        self.knowledge.take(Seen(self.day, self.phase, kind, data))
        return self

    def says(self, name: str, text: str) -> Story:
        return self.see("speech", player=NAMES.index(name), text=text)

    def dies_at_night(self, name: str, role: str | None, will: str = "") -> Story:
        self.phase = "night"
        self.see("phase", name="night")
        self.see("death", player=NAMES.index(name), causes=["the Mafia"], role=role, when="night")
        self.see("will", player=NAMES.index(name), text=will, cleaned=False)
        self.day += 1
        self.phase = "discussion"
        return self.see("phase", name="discussion")

    def finds(self, **data: Any) -> Story:
        """Let the player be told what it found last night."""
        self.knowledge.take(Seen(self.day - 1, "night", "result", {"player": self.knowledge.player, **data}))
        return self

    def beliefs(self) -> dict[str, float]:
        assert self.knowledge.player is not None
        mind = ScriptedDecider(self.knowledge.player, None, NAMES[: self.knowledge.players], seed=1)
        return {NAMES[n]: p for n, p in mind.beliefs(self.knowledge).items()}


@pytest.fixture
def names() -> tuple[str, ...]:
    return NAMES


@pytest.fixture
def play() -> Callable[..., Played]:
    return played


@pytest.fixture
def seated() -> Callable[..., list[Decider]]:
    return minds_for


@pytest.fixture
def story() -> type[Story]:
    return Story

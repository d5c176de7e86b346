"""Scenes of the town for tests of what players are shown: real games with fixed roles, played as it is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wsap_tossim.engine.data.model import WAIT, Choice, Verb
from wsap_tossim.engine.game import Game
from wsap_tossim.history import History
from wsap_tossim.options import TownOptions, seat_name
from wsap_tossim.perception.observation import TownObservation
from wsap_tossim.world import Town

Lines = dict[tuple[int, str, int], list[str]]


class Scene:
    """A game in which everybody waits who is not told otherwise. Players are numbers from 1, as in "Player 7".

    scene = Scene("Sheriff", "Doctor", "Citizen", "Citizen", "Mafioso")
    scene.on(1, "discussion", 2, "speak: Good morning.")
    scene.play(1, "night", 1)

    With `hidden` the role list that all know says nothing of the roles.
    """

    def __init__(self, *roles: str, seed: int = 0, hidden: bool = False, **options: Any) -> None:
        slots = ["Any"] * len(roles) if hidden else list(roles)
        self.options = TownOptions.read({"roles": slots, **options})
        self.seed = seed
        self.game = Game(self.options.setup, self.options.rules, seed, roles=roles)
        self._lines: Lines = {}
        self.writings: dict[tuple[int, str], list[tuple[int, str, str]]] = {}
        """What is written when a phase is reached first: player, what, text."""

    def on(self, day: int, phase: str, player: int, *lines: str) -> Scene:
        """Let a player do this the next times it is asked in that phase: "speak: words", "heal 5", "transport 1 2"."""
        self._lines.setdefault((day, phase, player), []).extend(lines)
        return self

    def write(self, player: int, what: str, text: str) -> Scene:
        """Let a player write now."""
        refused = self.game.write(player - 1, what, text)
        assert not refused, refused
        return self

    def writes(self, day: int, phase: str, player: int, what: str, text: str) -> Scene:
        """Let a player write when the phase is reached, in `history`."""
        self.writings.setdefault((day, phase), []).append((player, what, text))
        return self

    def play(self, day: int, phase: str, player: int = 0) -> Scene:
        """Go on until a player is asked there and has nothing left to do; for 0, until anybody is asked there."""
        game = self.game
        while not game.over:
            here = (game.state.day, game.phase.value)
            asked = [number + 1 for number in game.waiting]
            if here == (day, phase) and (player == 0 or (player in asked and not self._lines.get((*here, player)))):
                return self
            game.resolve({number - 1: self.next_choice(*here, number) for number in asked})
        raise AssertionError(f"the game was over before day {day}, {phase}: {game.ending}")

    def finish(self) -> Scene:
        """Go on to the end."""
        game = self.game
        while not game.over:
            here = (game.state.day, game.phase.value)
            game.resolve({number: self.next_choice(*here, number + 1) for number in game.waiting})
        return self

    def next_choice(self, day: int, phase: str, player: int) -> Choice:
        """Return what a player does now: the next of its lines, or nothing."""
        lines = self._lines.get((day, phase, player))
        if not lines:
            return WAIT
        words, _, text = lines.pop(0).partition(": ")
        verb, *targets = words.split()
        return Choice(Verb(verb), tuple(int(t) - 1 for t in targets), text)

    def town(self) -> Town:
        """Return the world with this game in it, as it is now."""
        return town_with(self.game, self.options, self.seed)

    def shown(self, player: int) -> TownObservation:
        """Return what a player is shown now."""
        return self.town().observation(seat_name(player - 1))

    def text(self, player: int) -> str:
        """Return the turn of a player as a model is shown it."""
        return self.shown(player).to_text()


def town_with(game: Game, options: TownOptions, seed: int) -> Town:
    """Return the world with a game in it, as it is now."""
    return Town(replace(options, history=History(game, options.names)), seed)


def headings(text: str) -> list[str]:
    """Return the sections of a turn, in order."""
    return [line for line in text.split("\n") if line.startswith("**")]


def section(text: str, title: str) -> list[str]:
    """Return the lines of a section, without bullets."""
    _, _, rest = text.partition(f"**{title}:**\n")
    found = []
    for line in rest.split("\n"):
        if not line.startswith("- "):
            break
        found.append(line[2:])
    return found

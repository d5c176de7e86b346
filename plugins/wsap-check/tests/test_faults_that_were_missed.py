"""Faults of games that are seldom, late, or in what was said before: small games with one each, and the check's words.

Each sound game differs from the faulty one in the fault alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, ClassVar

import numpy
import pytest

from wsap_check import Report, run_checks
from wsap_core import Action, ActionAvailability, ActionDef, ActionResult, ActionSpace, Context, Observation, ParamDef
from wsap_core.authoring.rounds import RoundGame
from wsap_core.protocol import Possible
from wsap_core.protocol.values import JsonValue


class Line:
    """Walk along a line for some steps."""

    game_description = "Walk along the line."
    action_space = ActionSpace([ActionDef("left", "Go left"), ActionDef("right", "Go right")])

    def __init__(self, context: Context) -> None:
        self.random, self.gate = context.random, "open"
        self.reset()

    def reset(self, seed: int | None = None) -> Observation:
        if seed is not None:
            self.random = Random(seed)
        self.count = self.at = 0
        self.build()
        return self.observe()

    def build(self) -> None:
        """Begin the level."""
        self.gate = self.random.choice(["open", "shut"])

    @property
    def over(self) -> bool:
        """Whether the walk is over."""
        return self.count >= 6

    def observe(self) -> Observation:
        possible = [ActionAvailability(name, not self.over, "It is over." * self.over) for name in ("left", "right")]
        return Observation(status={"at": self.at, "gate": self.gate}, step=self.count, available_actions=possible)

    def act(self, action: Action) -> ActionResult:
        if self.over or action.parameters or action.name not in self.action_space.names:
            return ActionResult(False, "No.", done=self.told_over, observation=self.observe())
        self.count += 1
        self.at += 1 if action.name == "right" else -1
        return ActionResult(True, self.words(), 1.0, done=self.told_over, observation=self.observe())

    @property
    def told_over(self) -> bool:
        """What results say about it."""
        return self.over

    def words(self) -> str:
        """Return the message of a step."""
        return "You walk."


class Stale(Line):
    """In three of ten levels, the gate stays as it was in the level before."""

    def build(self) -> None:
        if self.random.random() > 0.3:
            super().build()


class NeverTold(Line):
    """The end is never reported."""

    told_over = False


class Endless(Line):
    """There is no end."""

    over = False


class Talkative(Line):
    """A message of a megabyte."""

    def words(self) -> str:
        return "x" * 1_000_000


class Printing(Line):
    """Prints what it does."""

    def words(self) -> str:
        print("walking")
        return super().words()


class Remembering(Line):
    """Once a walk was won in this process, all later ones are."""

    won: ClassVar[set[str]] = set()

    def words(self) -> str:
        if self.at >= 2:
            self.won.add("won")
        return " ".join(self.won) or "You walk."


class Numpy(Line):
    """Counts with numpy."""

    def observe(self) -> Observation:
        return replace(super().observe(), step=numpy.int64(self.count))


class Hands(RoundGame):
    """Everybody holds a card and sees those of the others, never their own."""

    game_description = "Play your card blindly."
    action_space = ActionSpace([ActionDef("play", "Play"), ActionDef("hint", "Hint", [ParamDef("to", "ann|bob|cid")])])
    seats = ("ann", "bob", "cid")

    def begin(self) -> None:
        self.cards = {seat: self.random.randrange(100) for seat in self.seats}
        self.log: list[str] = []

    def to_move(self) -> Sequence[str]:
        return () if self.round >= 9 else (self.seats[self.round % 3],)

    def legal(self, seat: str) -> Sequence[str | ActionAvailability]:
        assert seat in self.to_move(), "legal() is asked for a seat that is to move"
        return ["play", Possible("hint", choices={"to": [name for name in self.seats if name != seat]})]

    def apply(self, moves: Mapping[str, Action]) -> None:
        ((seat, action),) = moves.items()
        self.log.append(f"{seat} {action.name}s")

    def see(self, seat: str) -> Observation:
        return Observation(status={"cards": self.shown(seat), "log": list(self.log)})

    def shown(self, seat: str) -> dict[str, int]:
        """Return the cards that a seat sees."""
        return {name: card for name, card in self.cards.items() if name != seat}

    def returns(self) -> Mapping[str, float]:
        return dict.fromkeys(self.seats, 0.0)

    def dump(self) -> JsonValue:
        return {"cards": self.cards, "log": self.log}

    def load(self, data: Any) -> None:
        self.cards, self.log = {seat: int(data["cards"][seat]) for seat in self.seats}, [*map(str, data["log"])]

    def vary_hidden(self, rng: Random) -> Sequence[str] | None:
        """Give a seat another card, which all others may notice."""
        owner = rng.choice(self.seats)
        self.cards[owner] += 100
        return [seat for seat in self.seats if seat != owner]


class OpenHands(Hands):
    """Shows their own card as well."""

    def shown(self, seat: str) -> dict[str, int]:
        return dict(self.cards)


class Murmured(Hands):
    """Writes into the log what the player's own card is like."""

    def apply(self, moves: Mapping[str, Action]) -> None:
        super().apply(moves)
        ((seat, _),) = moves.items()
        if self.cards[seat] >= 100:
            self.log.append(f"{seat} has luck")


class Rota(RoundGame):
    """All but one act in a round, so that there is no step after which nobody waits for a result."""

    game_description = "Work when it is your turn."
    action_space = ActionSpace([ActionDef("work", "Work")])
    seats = ("ann", "bob", "cid")
    timing = "phased"
    rounds = 110
    tool = ""

    def begin(self) -> None:
        self.choose()

    def choose(self) -> None:
        """Choose the tool."""
        self.tool = self.random.choice(["rake", "hoe"])

    def to_move(self) -> Sequence[str]:
        return () if self.round >= self.rounds else [s for s in self.seats if s != self.seats[self.round % 3]]

    def legal(self, seat: str) -> Sequence[str]:
        return ["work"]

    def apply(self, moves: Mapping[str, Action]) -> None:
        """Nothing happens."""

    def see(self, seat: str) -> Observation:
        return Observation(status={"tool": self.tool, "round": self.round})

    def returns(self) -> Mapping[str, float]:
        return dict.fromkeys(self.seats, 0.0)

    def dump(self) -> JsonValue:
        return self.tool

    def load(self, data: Any) -> None:
        self.tool = str(data)


class StaleRota(Rota):
    """In three of ten episodes, the tool stays that of the one before."""

    def choose(self) -> None:
        if self.random.random() > 0.3:
            super().choose()


class Unstoppable(Rota):
    """What was interrupted can't be begun again."""

    working = False

    def begin(self) -> None:
        if self.working:
            raise RuntimeError("There is work to do.")
        super().begin()

    def apply(self, moves: Mapping[str, Action]) -> None:
        self.working = self.round < self.rounds


class Resentful(Unstoppable):
    """What was interrupted is not forgotten."""

    def begin(self) -> None:
        self.choose()
        self.tool += " (dirty)" * self.working
        self.working = False


def checked(game: type, *only: str, **more: Any) -> Report:
    return run_checks(game, only=only, steps=30, **more)


@pytest.mark.parametrize(
    ("game", "check", "severity", "words"),
    [
        (Stale, "reset", "error", "a used world differs from a fresh one: observation.status"),
        (NeverTold, "done", "error", "does not say that the episode is done"),
        (Endless, "done", "warning", "No episode was over within 600 steps"),
        (Talkative, "text", "error", "message has 1000000 characters"),
        (Printing, "play", "warning", "prints, for example 'walking'"),
        (Numpy, "play", "error", "a step that is a number of numpy; write int(...)"),
        (OpenHands, "secrets", "error", "sees what is hidden from it"),
        (Murmured, "secrets", "warning", "is told what is hidden from it by the moves that follow"),
    ],
)
def test_a_fault_is_found_and_told(game: type, check: str, severity: str, words: str) -> None:
    found = [finding for finding in checked(game, check, text_limit=2_000).findings if finding.severity == severity]
    assert found
    assert words in found[0].message


@pytest.mark.parametrize(("game", "check"), [(Line, ("reset", "done", "text", "play")), (Hands, ("secrets", "play"))])
@pytest.mark.slow
def test_a_sound_game_of_the_same_kind_has_no_finding(game: type, check: tuple[str, ...]) -> None:
    assert checked(game, *check).findings == ()


@pytest.mark.slow
def test_a_reset_is_checked_where_somebody_always_waits() -> None:
    """And nothing is held against a game that only was interrupted."""
    (finding,) = checked(StaleRota, "reset").findings
    assert "a used world differs from a fresh one" in finding.message
    for sound in (Rota, Unstoppable, Resentful):
        assert checked(sound, "reset").findings == ()


@pytest.mark.slow
def test_state_of_a_class_is_told_as_such_and_not_as_the_order_of_sets() -> None:
    checked(Remembering, "play")
    (finding,) = checked(Remembering, "other-process").findings
    assert "Keep no state in modules or classes" in finding.message

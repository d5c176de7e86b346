"""A short game written by hand, in which every secret is a word of its own, and games that were played at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from wsap_tossim.engine.data.model import Event, Phase
from wsap_tossim.engine.data.rules import rule_set
from wsap_tossim.engine.game import Entry, Game
from wsap_tossim.engine.random_play import random_choice
from wsap_tossim.engine.setups import setup
from wsap_tossim.replay.story import Belief, Story, Thought

ANN, BOB, CID, DORA, EVE = range(5)
NAMES = ("Ann", "Bob", "Cid", "Dora", "Eve")
ALL = 0b11111


def mask(*players: int) -> int:
    return sum(1 << p for p in players)


class Scroll:
    """A log as it is written by hand."""

    def __init__(self) -> None:
        self.log: list[Event] = []
        self.starts: list[int] = []
        self.record: list[Entry] = []
        self.day = 1
        self.phase = Phase.DISCUSSION

    def tell(self, kind: str, known_by: int = ALL, **data: Any) -> None:
        self.log.append(Event(len(self.log), self.day, self.phase, kind, known_by, data))

    def enter(self, phase: Phase) -> None:
        self.phase = phase
        self.tell("phase", name=phase.value)

    def round(self, *choices: tuple[int, str] | tuple[int, str, str]) -> None:
        """Begin what comes of a round's choices."""
        for player, verb, *text in choices:
            self.record.append(Entry(len(self.starts), player, verb, (), text[0] if text else ""))
        self.starts.append(len(self.log))


def written(*, over: bool, plan: str = "PLAN-OF-THE-MAFIA", doctor: str = "Doctor") -> Story:
    """Return the game: Eve dies in the first night, Bob is tried on the second day."""
    s = Scroll()
    s.tell("begins", players=5, rules={"name": "classic", "version": 1}, mode="custom", slots=["Any"] * 5)
    roles = ("Sheriff", "Godfather", "Mafioso", "Jailor", doctor)
    mates = {BOB: {str(CID): "Mafioso"}, CID: {str(BOB): "Godfather"}}
    for player, role in enumerate(roles):
        s.tell("role", mask(player), player=player, role=role, mates=mates.get(player, {}), target=None)
    s.enter(Phase.DISCUSSION)
    s.round((ANN, "speak", "OPEN-WORDS-OF-ANN"))  # round 0
    s.tell("speech", player=ANN, text="OPEN-WORDS-OF-ANN")
    s.round((BOB, "whisper", "WHISPER-OF-BOB"))  # round 1
    s.tell("whispered", player=BOB, to=CID)
    s.tell("whisper", mask(BOB, CID), player=BOB, to=CID, text="WHISPER-OF-BOB")
    s.tell("writes", mask(EVE), player=EVE, what="notebook", text="NOTEBOOK-OF-EVE")
    s.enter(Phase.DUSK)
    s.round((DORA, "jail"))  # round 2
    s.tell("jailed", mask(DORA, ANN), player=ANN)
    s.phase = Phase.TALK_AT_NIGHT
    s.round((ANN, "say", "ANSWER-IN-JAIL"), (BOB, "say", plan), (CID, "wait"), (DORA, "say", "QUESTION-IN-JAIL"))
    s.tell("said", mask(DORA, ANN), channel="jail", player=ANN, text="ANSWER-IN-JAIL")
    s.tell("said", mask(DORA, ANN), channel="jail", player=None, text="QUESTION-IN-JAIL")
    s.tell("said", mask(BOB, CID), channel="mafia", player=BOB, text=plan)
    s.enter(Phase.NIGHT)
    s.round((BOB, "kill"), (CID, "wait"), (DORA, "wait"), (EVE, "heal"))  # round 4
    s.tell("chose", 0, player=BOB, verb="kill", targets=[EVE])
    s.tell("chose", 0, player=EVE, verb="heal", targets=[ANN])
    s.tell("visits", 0, player=CID, target=EVE, verb="kill")
    s.tell("visits", 0, player=EVE, target=ANN, verb="heal")
    s.tell("attacks", 0, player=CID, target=EVE, attack=1, defense=0, kills=True, how="the Mafia")
    s.tell("told", mask(CID), player=CID, code="ordered", target=EVE)
    s.tell("death", player=EVE, causes=["the Mafia"], role=None, when="night")
    s.tell("will", player=EVE, text="WILL-OF-EVE", cleaned=False)
    s.day = 2
    s.enter(Phase.DISCUSSION)
    s.enter(Phase.NOMINATION)
    s.round((ANN, "vote"))  # round 5
    s.tell("vote", player=ANN, target=BOB, weight=1, needed=3)
    s.round((BOB, "vote"))
    s.tell("vote", player=BOB, target=ANN, weight=1, needed=3)
    s.round((BOB, "unvote"))
    s.tell("unvote", player=BOB, target=ANN)
    s.round((CID, "vote"))
    s.tell("vote", player=CID, target=BOB, weight=1, needed=3)
    s.round((DORA, "vote"))
    s.tell("vote", player=DORA, target=BOB, weight=1, needed=3)
    s.tell("trial", player=BOB, number=1)
    s.enter(Phase.DEFENSE)
    s.round((BOB, "speak", "DEFENSE-OF-BOB"))  # round 10
    s.tell("speech", player=BOB, text="DEFENSE-OF-BOB")
    s.enter(Phase.JUDGEMENT)
    s.round((ANN, "guilty"), (CID, "innocent"), (DORA, "guilty"))  # round 11
    for player, verdict in ((ANN, "guilty"), (CID, "innocent"), (DORA, "guilty")):
        s.tell("verdict", 0, player=player, verdict=verdict, weight=1)
    s.tell("judged", player=BOB, guilty=2, innocent=1, condemned=True)
    s.enter(Phase.LAST_WORDS)
    if over:
        s.round((BOB, "speak", "LAST-WORDS-OF-BOB"))
        s.tell("speech", player=BOB, text="LAST-WORDS-OF-BOB")
        s.tell("death", player=BOB, causes=["the town"], role="Godfather", when="day")
        s.phase = Phase.OVER
        s.tell("over", winners=[ANN, DORA, EVE], side="Town", reason="The Town alone is left.")
        s.tell("truth", roles=list(roles), final=["Sheriff", "Godfather", "Godfather", "Jailor", doctor])
    thoughts = (
        Thought(0, ANN, "THOUGHT-OF-ANN"), Thought(1, BOB, "THOUGHT-OF-BOB"), Thought(3, DORA, "THOUGHT-OF-DORA"),
        Thought(4, CID, "THOUGHT-OF-CID"), Thought(4, EVE, "THOUGHT-OF-EVE"), Thought(11, ANN, "VERDICT-THOUGHT"),
    )  # fmt: skip
    beliefs = (Belief(1, ANN, {BOB: 0.4321}), Belief(2, ANN, {BOB: 0.9, CID: 0.2}), Belief(1, CID, {ANN: 0.1234}))
    minds = ("mind-of-ann", "mind-of-bob", "mind-of-cid", "mind-of-dora", "mind-of-eve")
    return Story(s.log, NAMES, "custom", "classic (version 1)", s.starts, s.record, thoughts, beliefs, minds)


def played(
    seed: int,
    mode: str = "five",
    *,
    say: Callable[[random.Random], str] = lambda rng: f"I say {rng.randrange(10**6)}.",
    rules: str = "classic",
    rounds: int | None = None,
) -> tuple[Game, list[tuple[int, int, str]]]:
    """Return a game played at random, and what was thought in it."""
    game, rng = Game(setup(mode), rule_set(rules), seed), random.Random(seed)
    thoughts: list[tuple[int, int, str]] = []
    while not game.over and (rounds is None or game.round < rounds):
        choices = {}
        for player in game.waiting:
            choice = random_choice(game, player, rng, talk=True)
            choices[player] = choice._replace(text=say(rng)) if choice.text else choice
            thoughts.append((game.round, player, f"I am {player}, and {say(rng)}"))
        if rng.random() < 0.2:
            game.write(game.waiting[0], "will", say(rng))
        game.carry_out(choices)
    return game, thoughts


@pytest.fixture
def story() -> Callable[..., Story]:
    """Gives the game that is written by hand, with `over` or not."""
    return written


@pytest.fixture(scope="session")
def play() -> Callable[..., tuple[Game, list[tuple[int, int, str]]]]:
    """Gives games played at random."""
    return played

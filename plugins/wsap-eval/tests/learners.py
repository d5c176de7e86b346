"""A game of choosing stones, and learners whose transfer is known by construction.

Each round one of two stones is right. An agent that knows the rule picks it more often by exactly what its class says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Context, Goal, Observation
from wsap_core.errors import SnapshotError
from wsap_core.protocol import HistoryEntry
from wsap_core.seams.context import derive_seed
from wsap_core.seams.memory import Recollection

ROUNDS = 20
RULE = "always choose amber stones first"


SPACE = ActionSpace((ActionDef("right", "Take the amber stone."), ActionDef("wrong", "Take the other one.")))


class Stones:
    """Twenty rounds of choosing; `right` is worth a point."""

    game_description = "Stones, amber and others."
    action_space = SPACE

    def __init__(self, context: Context) -> None:
        self.round = 0

    def observe(self) -> Observation:
        return Observation(step=self.round)

    def act(self, action: Action) -> ActionResult:
        self.round += 1
        won = action.name == "right"
        return ActionResult(True, "", reward=float(won), done=self.round >= ROUNDS, observation=self.observe())

    def reset(self) -> Observation:
        self.round = 0
        return self.observe()


class Sand(Stones):
    """The same, as another game."""


class Notebook:
    """The smallest memory: a list of notes."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str]] = []

    def remember(self, entry: HistoryEntry) -> None: ...

    def note(self, text: str, *, kind: str = "fact", world: str = "", step: int | None = None) -> None:
        self.notes.append((text, kind))

    def recall(self, query: str, *, budget: int) -> Sequence[Recollection]:
        return self.browse()

    def browse(self, kind: str | None = None, *, most: int = 50) -> Sequence[Recollection]:
        found = [Recollection(text, kind=own) for text, own in reversed(self.notes) if kind in (None, own)]
        return found[:most]

    def compact(self) -> None: ...

    def snapshot(self) -> bytes:
        return json.dumps(self.notes).encode()

    def restore(self, data: bytes) -> None:
        try:
            self.notes = [(text, kind) for text, kind in json.loads(data)]
        except ValueError as error:
            raise SnapshotError("no notes") from error


class Learner:
    """Learns the rule in any game, and is right so much more often where it remembers it."""

    helps = 0.0

    def __init__(self, context: Context) -> None:
        self.memory = Notebook()
        self.random = context.random

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    def decide(self, observation: Observation) -> Action:
        knows = any(RULE in text for text, _ in self.memory.notes)
        return Action("right" if self.random.random() < 0.5 + self.helps * knows else "wrong")

    def reflect(self, result: ActionResult) -> None:
        if result.done:
            self.memory.note(f"In these worlds {RULE}, whatever others may say.", kind="lesson")
            self.memory.note("Twenty rounds were played among stones.", kind="event")

    def plan(self, goals: list[Goal]) -> list[str]:
        return []


class Helped(Learner):
    """Learns what helps."""

    helps = 0.3


class Harmed(Learner):
    """Learns what harms."""

    helps = -0.3


class Slight(Learner):
    """Learns what helps a little."""

    helps = 0.1


class Teachable(Learner):
    """Learns what it is told in the options, and is right so much more often where it remembers it word for word."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.helps = float(context.config["helps"])
        self.lesson = str(context.config["lesson"])

    def decide(self, observation: Observation) -> Action:
        words = set(re.findall(r"\w+", self.lesson.lower()))
        noted = [set(re.findall(r"\w+", text.lower())) for text, _ in self.memory.notes]
        knows = any(words <= told for told in noted)  # in whatever order
        return Action("right" if self.random.random() < 0.5 + self.helps * knows else "wrong")

    def reflect(self, result: ActionResult) -> None:
        if result.done:
            self.memory.note(self.lesson, kind="lesson")


class Cheat(Learner):
    """Notes the seeds of all tests that follow from --seed 7."""

    def reflect(self, result: ActionResult) -> None:
        if result.done:
            seeds = [derive_seed(7, "target", life, number) for life in range(9) for number in range(9)]
            self.memory.note(f"Seeds: {seeds}", kind="lesson")


class Distracted(Learner):
    """Plays worse with any memory, whatever is in it."""

    def decide(self, observation: Observation) -> Action:
        return Action("right" if self.random.random() < (0.5 if not self.memory.notes else 0.2) else "wrong")


class Uneven(Learner):
    """Plays by other draws where it remembers the rule, and no better."""

    def decide(self, observation: Observation) -> Action:
        knows = any(RULE in text for text, _ in self.memory.notes)
        drawn = self.random.random()
        return Action("right" if (drawn < 0.5) is not knows else "wrong")


class Forgetful(Learner):
    """Has no memory."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        del self.memory

    def decide(self, observation: Observation) -> Action:
        return Action("wrong")

    def reflect(self, result: ActionResult) -> None: ...

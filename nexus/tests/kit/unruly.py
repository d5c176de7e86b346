"""A game that does whatever it is asked, the worst included, and agents that ask for it.

Tests copy this file to a folder of their own and play it as `file.py:Unruly`. What is to happen once
only is marked by a file beside it.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace, Goal, Observation, ParamDef
from wsap_core.seams.context import Context

HERE = Path(__file__).parent
DEEDS = (
    "go", "print", "read", "crash", "crash_once", "hang", "hang_once", "raise", "exit", "leak", "chance", "wait",
)  # fmt: skip


class Unruly:
    """Counts what it was asked, and adds up random numbers that follow from the seed."""

    def __init__(self, context: Context) -> None:
        self.services = context.services
        self.state = {"step": 0, "sum": 0, "asked": {}}
        self._random = random.Random(context.seed)
        self._held: list[bytes] = []

    game_description = "Whatever you say."
    action_space = ActionSpace(tuple(ActionDef(name, name, (ParamDef("text", optional=True),)) for name in DEEDS))

    def observe(self) -> Observation:
        asked = " ".join(f"{k}:{v}" for k, v in sorted(self.state["asked"].items()))
        return Observation({"sum": self.state["sum"], "asked": asked}, step=self.state["step"])

    async def act(self, action: Action) -> ActionResult:
        message = "Done."
        self.state["step"] += 1
        self.state["asked"][action.name] = self.state["asked"].get(action.name, 0) + 1
        self.state["sum"] += self._random.randrange(1000)
        if action.name == "print":
            print(action.parameters.get("text", "hello"), flush=True)
            os.write(1, b"\x00\x00\x00\x05straight to the descriptor\n")
        elif action.name == "read":
            message = f"Read {sys.stdin.read()!r} and {os.read(0, 10)!r}."
        elif action.name == "chance":
            message = f"Got {os.urandom(8).hex()}."
        elif action.name == "wait":
            _at_it()
            await asyncio.sleep(3600)
        elif action.name == "raise":
            raise KeyError("something it forgot")
        elif action.name == "exit":
            sys.exit(5)
        elif action.name == "leak":
            self._held.append(bytes(bytearray(os.urandom(1)) * (8 * 2**20)))
        elif action.name.startswith("crash") and self._first(action.name):
            os._exit(3)
        elif action.name.startswith("hang") and self._first(action.name):
            _at_it()
            while True:
                pass
        return ActionResult(True, message, 1.0, observation=self.observe())

    def reset(self, seed: int | None = None) -> Observation:
        self.state = {"step": 0, "sum": 0, "asked": {}}
        self._random = random.Random(seed)
        return self.observe()

    def snapshot(self) -> bytes:
        version, internal, gauss = self._random.getstate()
        return json.dumps([self.state, version, internal, gauss]).encode()

    def restore(self, data: bytes) -> None:
        self.state, version, internal, gauss = json.loads(data)
        self._random.setstate((version, tuple(internal), gauss))

    @staticmethod
    def _first(name: str) -> bool:
        """Return whether it is to happen: always, or if it is the first time in this folder."""
        flag = HERE / f"{name}.flag"
        if not name.endswith("_once"):
            return True
        if flag.exists():
            return False
        flag.touch()
        return True


def _at_it() -> None:
    """Say that it waits, or hangs, now; it is heard as long as this process lives."""
    if (HERE / "at-it").exists():
        os.write(os.open(HERE / "at-it", os.O_RDWR), b".")


class Unsaved(Unruly):
    """The same, but it can't be saved."""

    wsap_spec: ClassVar = {"name": "unsaved", "abilities": ["seed"]}


class Needy(Unruly):
    """Needs what only the nexus has."""

    wsap_spec: ClassVar = {"name": "needy"}

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        context.services.require("models")


class Broken(Unruly):
    """Fails as soon as somebody looks."""

    wsap_spec: ClassVar = {"name": "broken", "abilities": ["seed"]}

    def observe(self) -> Observation:
        raise KeyError("nothing to see")


class Obedient:
    """Says `go` until a file called `say` names something else."""

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        pass

    def decide(self, observation: Observation) -> Action:
        say = HERE / "say"
        word = say.read_text() if say.exists() else "go"
        if word in ("fail", "refuse"):
            raise RuntimeError("no model answers")
        return Action(word)

    def reflect(self, result: ActionResult) -> None:
        pass

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        return []


class Walker(Obedient):
    """Walks about in Crafter, always the same way."""

    def __init__(self) -> None:
        self._step = 0

    def decide(self, observation: Observation) -> Action:
        self._step += 1
        return Action(("move_left", "do", "move_up", "noop", "move_right", "move_down")[self._step * 5 // 3 % 6])


class Moody(Obedient):
    """An agent that can't even be made while the file says `refuse`."""

    def __init__(self) -> None:
        say = HERE / "say"
        if say.exists() and say.read_text() == "refuse":
            raise RuntimeError("no key")


class Steady(Obedient):
    """Always defects."""

    def decide(self, observation: Observation) -> Action:
        return Action("defect")

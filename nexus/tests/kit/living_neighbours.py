"""Worlds that live, of games that do one bad thing each in the middle of a tick, to the process in which they run.

Such a game is a fair with the option `folder`. It does it in each tick after the first flower was planted in it, while
a gardener is there and there is a file `bad` in the folder, and writes before that one letter to the file `deeds`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, cast

from living_worlds import FAIR, Fair, Gardener

from wsap_core import Action, ActionResult, ActionSpace, AgentSpec, Context, Observation
from wsap_core.protocol import Goal, Tick


class Bad(Fair):
    def __init__(self, context: Context) -> None:
        self._folder = Path(str(context.config.get("folder")))
        super().__init__(context)

    async def advance(self) -> Tick:
        if self._gardeners and any(self.planted.values()) and (self._folder / "bad").exists():
            with (self._folder / "deeds").open("a", encoding="ascii") as deeds:
                deeds.write("x")
            await self.misbehave()
        return await super().advance()

    async def misbehave(self) -> None:
        raise NotImplementedError


class Loop(Bad):
    async def misbehave(self) -> NoReturn:
        while True:
            pow(3, 10**6)


class Sleep(Bad):
    async def misbehave(self) -> None:
        threading.Event().wait()


class Raise(Bad):
    async def misbehave(self) -> NoReturn:
        raise RuntimeError("The tent is down.")


class Eat(Bad):
    async def misbehave(self) -> NoReturn:
        held = []
        while True:
            held.append(b"x" * (16 * 2**20))


class Exit(Bad):
    async def misbehave(self) -> NoReturn:
        os._exit(7)


GAMES = {
    kind.__name__.lower(): replace(FAIR, name=f"living-{kind.__name__.lower()}", factory=f"{__name__}:{kind.__name__}")
    for kind in Bad.__subclasses__()
}


class Gate(Fair):
    """Where there is a gate, a named pipe `gate` in the folder `folder`, who goes out waits until somebody opens it.

    Gardeners go out by leaving, and by a rest, which ends their episode.
    """

    def __init__(self, context: Context) -> None:
        self._gate = Path(str(context.config.get("folder"))) / "gate"
        super().__init__(context)

    def seat(self, agent_id: str) -> Gardener:
        return self._gardeners.setdefault(agent_id, Walker(self))

    def leave(self, agent_id: str) -> None:
        self.wait()
        super().leave(agent_id)

    def wait(self) -> None:
        if self._gate.exists():
            self._gate.read_bytes()


class Walker(Gardener):
    """A gardener who goes out by a rest."""

    async def act(self, action: Action) -> ActionResult:
        if action.name != "rest":
            return await super().act(action)
        cast(Gate, self._meadow).wait()
        self.done = True
        self.acted.set()
        return ActionResult(True, "You are out.", observation=self.observe(), done=True)

    def resolve(self, done: bool) -> None:
        if not self.done:
            super().resolve(done)


GATE = replace(FAIR, name="gate", factory=f"{__name__}:Gate")


class Reader(Fair):
    """Needs the installed parts of agents, which are not known in a worker."""

    def __init__(self, context: Context) -> None:
        context.services.require("parts")
        super().__init__(context)


READER = replace(FAIR, name="reader", factory=f"{__name__}:Reader")


class Digger:
    """Plants wherever it is, and waits in the nexus."""

    def __init__(self, context: Context) -> None:
        self._at_home = context.world == "nexus"

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    def decide(self, observation: Observation) -> Action:
        return Action("wait_for_game", {"timeout": 600}) if self._at_home else Action("plant")

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        return []

    def snapshot(self) -> bytes:
        return b""

    def restore(self, data: bytes) -> None: ...


DIGGER = AgentSpec("digger", "Plants.", Digger, abilities=("snapshot",))

"""A small world that asks a model: three villagers intend something side by side, and one scene comes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, ClassVar

from hosts import host_with_ours

from wsap_core import PluginHost
from wsap_core.host import Registration
from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace, Observation, Tick
from wsap_core.seams.agent import Usage
from wsap_core.seams.context import Context
from wsap_core.seams.model import Abilities, Backend, Finish, Message, OnText, Reply, Request
from wsap_core.seams.model_errors import BackendError
from wsap_core.seams.options import with_prefix
from wsap_core.specs import AdapterSpec, BackendSpec
from wsap_nexus.runs.plan import RunPlan, SeatPlan

VILLAGERS = ("anna", "boris", "clara")
A_TICK = len(VILLAGERS) + 1
"""Calls that a tick takes."""


class Village:
    """Each `wait` is a tick. The villagers are asked in equal words, and the scene's prompt has all their replies."""

    def __init__(self, context: Context) -> None:
        self._address = str(context.config.get("model", "teller/it"))
        self._options = with_prefix(context.config, "model.")
        self._keyed = context.config.get("keyed", True)
        self._words = str(context.config.get("words", self.question))
        self._models = context.services.require("models")
        self._backend: Backend | None = None
        self._reset()

    def _reset(self) -> None:
        self.tick = 0
        self.told: list[str] = []

    question = "What do you do?"
    game_description = "A village."
    action_space = ActionSpace((ActionDef("wait", "Let time pass."),))

    def observe(self) -> Observation:
        return Observation({"told": "\n".join(self.told[-A_TICK:])}, step=self.tick)

    async def act(self, action: Action) -> ActionResult:
        await self._pass_time()
        return ActionResult(True, observation=self.observe())

    async def _pass_time(self) -> None:
        self.tick += 1
        asked = [self._ask("intent", who, self._words) for who in VILLAGERS]
        intents = await asyncio.gather(*asked)
        self.told += [*intents, await self._ask("scene", "square", " ".join(intents))]

    async def _ask(self, phase: str, subject: str, words: str) -> str:
        if self._backend is None:
            self._backend = await self._models.open(self._address, self._options)
        for attempt in range(2):
            key = f"{self.tick}/{phase}/{subject}/{attempt}" if self._keyed else ""
            try:
                return (await self._backend.complete(Request((Message("user", words),), key=key, purpose=phase))).text
            except BackendError as error:
                if not error.retryable:
                    raise
        return "nothing"

    def reset(self, seed: int | None = None) -> Observation:
        self._reset()
        return self.observe()

    def snapshot(self) -> bytes:
        return json.dumps([self.tick, self.told]).encode()

    def restore(self, data: bytes) -> None:
        self.tick, self.told = json.loads(data)


class Hamlet(Village):
    """The village, without anybody who lets time pass."""

    wsap_spec: ClassVar[dict[str, Any]] = {"seats": (0, 0), "asks_models": True}

    async def advance(self) -> Tick:
        """Let time pass by itself."""
        before = self.tick, list(self.told)
        try:
            await self._pass_time()
        except BaseException:
            self.tick, self.told = before
            raise
        return Tick(self.tick, {"told": self.told[-A_TICK:]})


Answer = Callable[[Request, int], str | Exception]


class Teller:
    """A model that numbers its replies in the order in which it is asked, and gives the later of them earlier."""

    model = "teller/it"
    abilities = Abilities(json_schema=True)

    def __init__(self, answer: Answer | None = None) -> None:
        self.requests: list[Request] = []
        self.opened = 0
        self._answer = answer or (lambda request, number: f"#{number}")

    def make(self, context: Context) -> Teller:
        self.opened += 1
        context.config.get("api_key")
        return self

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        self.requests.append(request)
        number = len(self.requests)
        for _ in range(10 - 3 * (number % 3)):
            await asyncio.sleep(0)
        answer = self._answer(request, number)
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer, finish=Finish(usage=Usage(1, 10, 2, 0.5)))

    async def aclose(self) -> None: ...


def village_host(teller: Any, *, saved: bool = True) -> PluginHost:
    """Return a host with the village and its model."""
    host = host_with_ours()
    abilities = ("seed", "snapshot") if saved else ("seed",)
    spec = AdapterSpec("village", "A village.", "asking_world:Village", abilities=abilities, asks_models=True)
    host.games.add(Registration(spec, "t", "t"))
    lives = ("seed", "snapshot", "lives")
    alone = AdapterSpec("hamlet", "", "asking_world:Hamlet", abilities=lives, asks_models=True, seats=(0, 0))
    host.games.add(Registration(alone, "t", "t"))
    host.backends.add(Registration(BackendSpec("teller", "", teller.make), "t", "t"))
    return host


def village_plan(ticks: int, *, every: int = 500, **options: Any) -> RunPlan:
    return RunPlan("village", (SeatPlan("seat-1", "random"),), steps=ticks, options=options, snapshot_every=every)

"""A small world that lives: a meadow, with seats for gardeners or without."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, AdapterSpec, Context, Observation
from wsap_core.errors import UsageError
from wsap_core.protocol import Entry, PortableItem, Receipt, Tick, TransitPackage
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import Codec, encode


class Meadow:
    """Flowers grow and wither by themselves; gardeners, where there are some, plant or rest in each tick.

    A tick waits for every gardener who is there. The option `ends` is the tick at which the world ends.
    """

    game_description = "A meadow."
    action_space = ActionSpace((ActionDef("plant", "Plant a flower."), ActionDef("rest", "Do nothing.")))

    def __init__(self, context: Context) -> None:
        self._ends = int(context.config.get("ends", 0))
        self._log = context.services.log
        self._gardeners: dict[str, Gardener] = {}
        self.ticks_carried_out = 0
        self._begin(context.seed)

    def _begin(self, seed: int) -> None:
        self._random = random.Random(seed)  # play, not secrets
        self.number, self.flowers, self.rain = 0, 3, 0

    def reset(self, seed: int = 0) -> Observation:
        self._begin(seed)
        for gardener in self._gardeners.values():
            gardener.begin()
        return self.observe()

    def observe(self) -> Observation:
        return Observation({"flowers": self.flowers, "rain": self.rain}, step=self.number)

    def act(self, action: Action) -> ActionResult:
        return ActionResult(False, "Nobody is here.", observation=self.observe())

    def seat(self, agent_id: str) -> Gardener:
        return self._gardeners.setdefault(agent_id, Gardener(self))

    def leave(self, agent_id: str) -> None:
        self._gardeners.pop(agent_id).end("You have left.")

    async def advance(self) -> Tick:
        self.ticks_carried_out += 1
        for gardener in list(self._gardeners.values()):
            await gardener.acted.wait()
        planted = sum(g.action == "plant" for g in self._gardeners.values())
        grown, withered = self._random.randint(0, 2), self._random.randint(0, 1)
        self.number += 1
        self.flowers += planted + grown + self.rain - withered
        self.rain = 0
        if self._log is not None:
            self._log.note("story", {"tick": self.number, "text": f"There are {self.flowers} flowers."})
        done = self.number == self._ends
        for gardener in self._gardeners.values():
            gardener.resolve(done)
        body = {"flowers": self.flowers, "planted": planted, "grown": grown, "withered": withered}
        return Tick(self.number, body, f"{self.flowers} flowers", done)

    def influence(self, body: Mapping[str, JsonValue]) -> str:
        if not isinstance(body.get("rain"), int):
            raise UsageError("It can only rain here.")
        self.rain += body["rain"]
        return f"It rains: {body['rain']}."

    def snapshot(self) -> bytes:
        version, internal, gauss = self._random.getstate()
        state = [self.number, self.flowers, self.rain, [version, list(internal), gauss]]
        return json.dumps(state).encode()

    def restore(self, data: bytes) -> None:
        self.number, self.flowers, self.rain, (version, internal, gauss) = json.loads(data)
        self._random.setstate((version, tuple(internal), gauss))
        for gardener in self._gardeners.values():
            gardener.begin()


class Fair(Meadow):
    """A meadow into which things are brought, and from which each gardener takes the flowers that it planted."""

    def _begin(self, seed: int) -> None:
        super()._begin(seed)
        self.codec = Codec()
        self.things: dict[str, dict[str, Any]] = {}
        self.planted: dict[str, int] = {}
        self.told: dict[str, Any] = {}

    async def advance(self) -> Tick:
        for gardener in list(self._gardeners.values()):
            await gardener.acted.wait()
        for name, gardener in self._gardeners.items():
            self.planted[name] = self.planted.get(name, 0) + (gardener.action == "plant")
        return await super().advance()

    def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        if entry.transfer_id not in self.told:
            bag = self.things.setdefault(avatar_id.partition("@")[0], {})
            bag.update({item.item_id: encode(item) for item in entry.items})
            self.told[entry.transfer_id] = encode(Receipt(entry.transfer_id, {}, tuple(i.item_id for i in entry.items)))
        return self.codec.decode(Receipt, self.told[entry.transfer_id])

    def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        if transfer_id not in self.told:
            name = avatar_id.partition("@")[0]
            brought = [self.codec.decode(PortableItem, data) for data in self.things.pop(name, {}).values()][1:]
            flowers = [
                PortableItem(f"{transfer_id}:{number}", "flower", "currency", 1, origin="fair")
                for number in range(min(self.planted.pop(name, 0), 2))
            ]
            self.told[transfer_id] = encode(TransitPackage(transfer_id, (*brought, *flowers)))
        return self.codec.decode(TransitPackage, self.told[transfer_id])

    def snapshot(self) -> bytes:
        more = [self.things, self.planted, self.told]
        return json.dumps([super().snapshot().decode(), more]).encode()

    def restore(self, data: bytes) -> None:
        meadow, (self.things, self.planted, self.told) = json.loads(data)
        super().restore(meadow.encode())


class Gardener:
    """The face of the meadow for one gardener."""

    game_description, action_space = Meadow.game_description, Meadow.action_space

    def __init__(self, meadow: Meadow) -> None:
        self._meadow = meadow
        self.begin()

    def begin(self) -> None:
        self.action, self.acted, self.done = "", asyncio.Event(), False
        self._result: asyncio.Future[ActionResult] | None = None

    def observe(self) -> Observation:
        return self._meadow.observe()

    def reset(self) -> Observation:
        return self.observe()

    async def act(self, action: Action) -> ActionResult:
        self._result = asyncio.get_running_loop().create_future()
        self.action = action.name
        self.acted.set()
        return await self._result

    def resolve(self, done: bool) -> None:
        self.action, self.done = "", done
        self.acted.clear()
        if self._result is not None and not self._result.done():
            self._result.set_result(ActionResult(True, "Done.", observation=self.observe(), done=done))

    def end(self, message: str) -> None:
        self.acted.set()
        if self._result is not None and not self._result.done():
            self._result.set_result(ActionResult(False, message, observation=self.observe(), done=True))


FAIR = AdapterSpec(
    "fair",
    "A meadow with things to carry.",
    "living_worlds:Fair",
    abilities=("seed", "snapshot", "multi-seat", "lives", "influence", "transit"),
    seats=(0, 9),
    timing="simultaneous",
    skills={"crafting": ("plant",)},
)


MEADOW = AdapterSpec(
    "meadow",
    "A meadow that goes on by itself.",
    "living_worlds:Meadow",
    abilities=("seed", "snapshot", "multi-seat", "lives", "influence"),
    seats=(0, 3),
    timing="simultaneous",
)


class Market(Meadow):
    """A meadow that waits for nobody: what gardeners do counts from the next tick on."""

    def seat(self, agent_id: str) -> Seller:
        return Seller(self)

    def leave(self, agent_id: str) -> None:
        """Go on without them."""

    async def advance(self) -> Tick:
        planted, self.planted = self.planted, 0
        grown = self._random.randint(0, 2)
        for _ in range(self._random.randint(0, 5)):
            await asyncio.sleep(0)
        self.number += 1
        self.flowers += planted + grown
        return Tick(self.number, {"flowers": self.flowers, "planted": planted}, done=self.number == self._ends)

    def _begin(self, seed: int) -> None:
        super()._begin(seed)
        self.planted = 0

    def snapshot(self) -> bytes:
        return json.dumps([self.planted, super().snapshot().decode()]).encode()

    def restore(self, data: bytes) -> None:
        self.planted, meadow = json.loads(data)
        super().restore(meadow.encode())


class Seller:
    """The face of the market for one gardener."""

    game_description, action_space = Meadow.game_description, Meadow.action_space

    def __init__(self, market: Market) -> None:
        self._market = market

    def observe(self) -> Observation:
        return self._market.observe()

    def reset(self) -> Observation:
        return self.observe()

    async def act(self, action: Action) -> ActionResult:
        self._market.planted += action.name == "plant"
        for _ in range(3):
            await asyncio.sleep(0)
        return ActionResult(True, "Noted.", observation=Observation({"noted": action.name}))


MARKET = replace(MEADOW, name="market", factory="living_worlds:Market", timing="free")

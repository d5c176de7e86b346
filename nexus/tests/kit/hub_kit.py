"""A small real world with bodies, things and skills, and agents that make much use of them.

`quarry` is a game like any other: one seat, snapshots, transit. One digs for gems, forges two of them
into a pick, climbs down where it is dangerous, and may die there and lose everything.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wsap_core.errors import SnapshotError, UsageError
from wsap_core.host import PluginHost, Registration
from wsap_core.protocol import (
    Action,
    ActionDef,
    ActionResult,
    ActionSpace,
    Avatar,
    AvatarSpec,
    AvatarState,
    Bonus,
    DeathEvent,
    EmbodiedObservation,
    Entry,
    Goal,
    JackInResult,
    JackOutResult,
    Observation,
    PortableItem,
    Receipt,
    RespawnOption,
    TransferRule,
    TransitPackage,
)
from wsap_core.protocol.wire import Codec, encode
from wsap_core.seams.context import Context
from wsap_core.specs import AdapterSpec, AgentSpec

ACTIONS = ActionSpace(
    (
        ActionDef("dig", "Dig for gems"),
        ActionDef("forge", "Make a pick of two gems"),
        ActionDef("climb", "Climb down, where gems are many and falls are deep"),
        ActionDef("rest", "Get back to where it is safe"),
    )
)
MODES = {"dormant": AvatarState.DORMANT, "suspend": AvatarState.SUSPENDED, "despawn": AvatarState.DESTROYED}
HOLDS = 6
"""Things brought along that a body can carry."""


class Quarry:
    """One quarry with one body; `context.config["deadly"]` is the chance in 100 that climbing kills (20)."""

    def __init__(self, context: Context) -> None:
        self._deadly = int(context.config.get("deadly", 20))
        self._codec = Codec()
        self._state: dict[str, Any] = {}
        self.reset(context.seed)

    # --- the game -------------------------------------------------------------------------------

    @property
    def game_description(self) -> str:
        return "A quarry. Dig, forge, climb, rest."

    @property
    def action_space(self) -> ActionSpace:
        return ACTIONS

    def reset(self, seed: int | None = None) -> Observation:
        self._random = random.Random(seed)
        self._state = {
            "step": 0, "gems": 0, "picks": 0, "health": 10, "danger": False, "done": False, "deaths": 0,
            "owner": None, "body": "unbound", "name": "", "kept": {}, "lost": {}, "rules": [],
            "receipts": {}, "packages": {}, "despawned": False,
        }  # fmt: skip
        return self.observe()

    def observe(self) -> EmbodiedObservation:
        s = self._state
        status = {"health": f"{s['health']}/10", "danger": s["danger"]}
        things = {"gems": s["gems"], "picks": s["picks"], "brought": len(s["kept"])}
        return EmbodiedObservation(status, things, step=s["step"], avatar=self._avatar())

    def act(self, action: Action) -> ActionResult:
        s = self._state
        if s["body"] != "bound" or s["done"]:
            return ActionResult(False, "Nobody is here.", done=s["done"], observation=self.observe())
        s["step"] += 1
        success, message, achieved = getattr(self, f"_{action.name}")()
        if s["health"] <= 0:
            self._die()
        return ActionResult(success, message, float(bool(achieved)), achieved, s["done"], self.observe())

    def _dig(self) -> tuple[bool, str, tuple[str, ...]]:
        if self._random.random() < 0.4:
            self._state["gems"] += 1
            return True, "A gem!", ("first_gem",) if self._state["gems"] == 1 else ()
        return False, "Nothing.", ()

    def _forge(self) -> tuple[bool, str, tuple[str, ...]]:
        s = self._state
        if s["gems"] < 2:
            return False, "That takes two gems.", ()
        s["gems"], s["picks"] = s["gems"] - 2, s["picks"] + 1
        return True, "A pick!", ("make_pick",)

    def _climb(self) -> tuple[bool, str, tuple[str, ...]]:
        s = self._state
        s["danger"] = True
        if self._random.randrange(100) < self._deadly:
            s["health"] = 0
            return False, "You fall.", ()
        s["health"] -= self._random.randrange(3)
        s["gems"] += 2
        return True, "Gems!", ("climb_down",)

    def _rest(self) -> tuple[bool, str, tuple[str, ...]]:
        self._state["danger"], self._state["health"] = False, min(10, self._state["health"] + 3)
        return True, "You rest.", ()

    def _die(self) -> None:
        s = self._state
        s.update(health=0, body="destroyed", done=True, gems=0, picks=0)
        s["lost"].update(dict.fromkeys(s["kept"], "lost in the fall"))
        s["kept"] = {}

    # --- bodies -----------------------------------------------------------------------------------

    def _avatar(self) -> Avatar:
        s = self._state
        agent = s["owner"] if s["body"] == "bound" else None
        return Avatar("digger-1", "quarry", agent, AvatarState(s["body"]), s["name"], health=s["health"], max_health=10,
                      death_count=s["deaths"])  # fmt: skip

    def list_avatars(self, agent_id: str) -> list[Avatar]:
        return [self._avatar()] if self._state["owner"] == agent_id else []

    def create_avatar(self, agent_id: str, spec: AvatarSpec) -> Avatar:
        if self._state["owner"] is not None:
            raise UsageError("There is somebody here already.")
        self._state.update(owner=agent_id, name=spec.name or agent_id)
        self._state["gems"] += {"challenging": 0, "random": 1}.get(spec.spawn_location, 0)
        return self._avatar()

    def jack_in(self, agent_id: str, avatar_id: str) -> JackInResult:
        s = self._state
        if s["owner"] != agent_id or s["body"] in ("bound", "destroyed"):
            return JackInResult(False, None, "That body can't be entered.")
        s["body"] = "bound"
        return JackInResult(True, self._avatar(), "", {}, self.observe())

    def jack_out(self, agent_id: str, mode: str = "dormant") -> JackOutResult:
        s = self._state
        if s["owner"] != agent_id or s["body"] != "bound":
            return JackOutResult(False, AvatarState(s["body"]), "You are in no body.")
        if s["danger"]:
            return JackOutResult(False, AvatarState.BOUND, "Not while you hang on a rope.")
        s["body"], s["despawned"] = MODES[mode].value, mode == "despawn"
        return JackOutResult(True, MODES[mode], "You leave.")

    def handle_death(self, avatar_id: str) -> DeathEvent:
        options = () if self._state["despawned"] else (RespawnOption("camp", penalties=("lose_inventory",)),)
        return DeathEvent(avatar_id, "fall", respawn_options=options)

    def respawn(self, avatar_id: str, option: RespawnOption | str) -> JackInResult:
        s = self._state
        if s["body"] != "destroyed" or s["despawned"]:
            return JackInResult(False, None, "It is not dead.")
        s.update(body="bound", health=5, done=False, danger=False, deaths=s["deaths"] + 1)
        return JackInResult(True, self._avatar(), "", {}, self.observe())

    # --- coming and going ---------------------------------------------------------------------------

    def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        s = self._state
        if entry.transfer_id in s["receipts"]:
            return self._codec.decode(Receipt, s["receipts"][entry.transfer_id])
        notes = []
        if s["body"] == "dormant" and entry.steps_away:
            s["health"] -= sum(self._random.random() < 0.02 for _ in range(min(entry.steps_away, 200)))
            notes.append(f"You slept for {entry.steps_away}.")
            if s["health"] <= 0:
                self._die()
        applied: dict[str, Any] = {}
        if entry.skills.get("crafting", 0.0) >= 0.1 and "pick" not in s["rules"] and s["body"] != "destroyed":
            s["rules"].append("pick")
            s["picks"] += 1
            applied["pick"] = {"picks": 1}
        admitted, refused = [], {}
        for item in entry.items:
            if s["body"] == "destroyed":
                refused[item.item_id] = "the body is dead"
            elif item.category == "currency":
                refused[item.item_id] = "money is worth nothing here"
            elif len(s["kept"]) >= HOLDS:
                refused[item.item_id] = "the bag is full"
            else:
                s["kept"][item.item_id] = encode(item)
                admitted.append(item.item_id)
        receipt = Receipt(entry.transfer_id, applied, tuple(admitted), refused, tuple(notes))
        s["receipts"][entry.transfer_id] = encode(receipt)
        return receipt

    def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        s = self._state
        if transfer_id in s["packages"]:
            return self._codec.decode(TransitPackage, s["packages"][transfer_id])
        items = []
        if s["body"] != "destroyed" or s["despawned"]:
            items = [self._codec.decode(PortableItem, data) for data in s["kept"].values()]
            own = ["pick"] * (s["picks"] - len(s["rules"])) + ["gem"] * min(s["gems"], 2)
            items += [
                PortableItem(f"{transfer_id}:{n}", thing, "tool" if thing == "pick" else "currency", 2, origin="quarry")
                for n, thing in enumerate(own, 1)
            ]
            s.update(kept={}, picks=min(s["picks"], len(s["rules"])), gems=max(0, s["gems"] - 2))
        package = TransitPackage(transfer_id, tuple(items), dict(s["lost"]))
        s["lost"] = {}
        s["packages"][transfer_id] = encode(package)
        return package

    def snapshot(self) -> bytes:
        version, inner, gauss = self._random.getstate()
        return json.dumps({"state": self._state, "random": [version, list(inner), gauss]}).encode()

    def restore(self, data: bytes) -> None:
        try:
            found = json.loads(data)
            version, inner, gauss = found["random"]
        except (ValueError, KeyError, TypeError) as error:
            raise SnapshotError(f"Not a quarry: {error}.") from error
        self._state = found["state"]
        self._random.setstate((version, tuple(inner), gauss))


class Digger:
    """Digs, forges, climbs and rests by chance, and leaves by choice now and then. Has no snapshot: it is rehearsed."""

    def __init__(self, context: Context) -> None:
        self._random = context.random
        self._leaves = float(context.config.get("leaves", 0.02))
        self._climbs = float(context.config.get("climbs", 0.05))

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    def decide(self, observation: Observation) -> Action:
        chance = self._random.random()
        if chance < self._leaves:
            return Action("jack_out", {"mode": self._random.choice(("dormant", "suspend", "despawn"))})
        if chance < self._leaves + self._climbs:
            return Action("climb")
        return Action(self._random.choice(("dig", "dig", "forge", "rest")))

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        return []


class Rover:
    """Goes anywhere by chance, to old bodies and new ones, for a short while."""

    def __init__(self, context: Context) -> None:
        self._random = context.random
        self._games = tuple(context.config.get("games", ()))
        self._steps = int(context.config.get("steps", 30))
        self._goals = str(context.config.get("goals", ""))

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    def decide(self, observation: Observation) -> Action:
        steps = self._random.randrange(3, self._steps)
        game = self._random.choice(self._games)
        where: dict[str, Any] = {"game": game, "exit_when": f"step >= {steps} or health < 20%"}
        if self._random.random() < 0.2:
            where["avatar"] = "new"
        where |= self._wishes()
        return Action("enter_game", where)

    def _wishes(self) -> dict[str, Any]:
        """Return goals by chance, if it has any."""
        return {"goals": self._goals} if self._goals and self._random.random() < 0.7 else {}

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        return []


RULES = (TransferRule("pick", "crafting", 0.1, Bonus("item", "pick"), "a pick to begin with"),)

QUARRY = AdapterSpec(
    "quarry", "A quarry with gems, picks and deep falls.", Quarry,
    abilities=("seed", "snapshot", "avatars", "transit"), default_agent="digger",
    skills={"crafting": ("make_pick", "forge"), "exploration": ("climb_down", "dig")},
    transfer_rules=RULES, terms={"spawn": ("challenging", "random")}, max_avatars=2, wire_types=(), persistent=True,
)  # fmt: skip

AGENTS = (AgentSpec("digger", "Digs.", Digger), AgentSpec("rover", "Roves.", Rover))


def host(*, quarry: AdapterSpec = QUARRY, more: Sequence[AdapterSpec] = ()) -> PluginHost:
    """Return everything that is installed, with the quarry and those who go there."""
    found = PluginHost.discovered()
    for game in (quarry, *more):
        found.games.add(Registration(game, "kit", "tests"))
    for agent in AGENTS:
        found.agents.add(Registration(agent, "kit", "tests"))
    return found


def deadly(chance: int) -> AdapterSpec:
    """Return a quarry where climbing kills with another chance in 100."""
    return replace(QUARRY, factory=lambda context: Quarry(replace(context, config={"deadly": chance})))

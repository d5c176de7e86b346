"""The engine `simulated`: the embedded world as an `Engine`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import TypeAdapter, ValidationError

from wsap_core.authoring.packing import WRONG_DATA, pack, unpack
from wsap_core.errors import SnapshotError
from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.untrusted import error_line
from wsap_tes3mp.engines.engine import Done, EngineAbility, EngineView
from wsap_tes3mp.engines.simulated import seeding
from wsap_tes3mp.engines.simulated.acting import begin
from wsap_tes3mp.engines.simulated.definitions import definitions
from wsap_tes3mp.engines.simulated.passing import BEAT, advance, rest
from wsap_tes3mp.engines.simulated.state import CAPACITY, REACH, Body, Refused, Thing, World, distance, move_items
from wsap_tes3mp.engines.simulated.talking import open_topics, words
from wsap_tes3mp.protocol.bridge import AgentInfo, ItemsReceipt, ItemsRequest, JoinRequest
from wsap_tes3mp.protocol.commands import Wait
from wsap_tes3mp.protocol.errors import BridgeUnavailableError
from wsap_tes3mp.protocol.perception import Payload

START = datetime(2000, 1, 1, tzinfo=UTC)
"""The date at which stepped time begins."""
_LONGEST_GAP = 60.0
"""Maximum seconds of missed real time that are caught up."""
_HEADER = b"wsap-tes3mp simulated 1\n"
_LARGEST = 64_000_000
_LONGEST_NAME = 200
_WORLD = TypeAdapter(World)


class SimulatedEngine:
    """A small world of its own. Commands advance its time by their duration or, in real time, take that long.

    Args:
        seed: determines the world and all chance in it.
        realtime: advance time by the clock rather than with commands.
        clock: real time in seconds.
        agents: the agents in the world from the start.
        now: the date at which real time starts.
    """

    name = "simulated"

    def __init__(
        self,
        *,
        seed: int = 0,
        realtime: bool = False,
        clock: Clock | None = None,
        agents: Sequence[str] = (),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._clock = clock or SystemClock()
        self._realtime = realtime
        stepped: Sequence[EngineAbility] = () if realtime else ("stepped",)
        self.abilities: frozenset[EngineAbility] = frozenset(("join", "respawn", "items", "snapshot", *stepped))
        self._now = now
        self._began, self._zero = START, 0.0
        self._boots = 0
        self._running = False
        self._beats: asyncio.Task[None] | None = None
        self._world = seeding.new_world(seed)
        for agent_id in agents:
            self._world.bodies[agent_id] = seeding.new_body(self._world, agent_id, agent_id, "avatar")

    @property
    def boot_id(self) -> str | None:
        """The seed and the number of starts; in real time also the date of the start."""
        if not self._running:
            return None
        since = f"-{self._began:%Y%m%dT%H%M%S.%f}" if self._realtime else ""
        return f"simulated-{self._world.seed}-{self._boots}{since}"

    async def start(self) -> None:
        """Start the world, or resume it."""
        if self._running:
            return
        self._running = True
        self._boots += 1
        if self._realtime:
            self._began, self._zero = self._now(), self._clock.now()
            self._beats = asyncio.create_task(self._go_on())

    async def stop(self) -> None:
        """Pause the world."""
        self._running = False
        if self._beats is not None:
            self._beats.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._beats
            self._beats = None

    def agents(self) -> Sequence[AgentInfo]:
        """Return the agents with bodies, including those asleep or hidden."""
        if not self._running:
            return ()
        return tuple(self._info(body) for _, body in sorted(self._world.bodies.items()))

    def _info(self, body: Body) -> AgentInfo:
        return AgentInfo(
            agent_id=body.agent_id,
            name=body.name,
            connected=body.presence == "awake",
            dead=body.health <= 0,
            embodiment=body.embodiment,
        )

    async def perceive(self, agent_id: str) -> EngineView:
        """Return what an agent perceives now."""
        body = self._body(agent_id)
        passed = self._clock.now() - self._zero if self._realtime else self._world.time
        timestamp = self._began + timedelta(seconds=passed)
        return EngineView(timestamp, self._world.version, view(self._world, body))

    async def execute(self, agent_id: str, command_id: str, command: str, params: Payload) -> Done:
        """Execute a command; if the world does not allow it, it is `failed`, with a code."""
        world, body = self._world, self._body(agent_id)
        try:
            plan = begin(world, body, params)
            await self._take_time(body, next(plan), body if isinstance(params, Wait) else None)
            if self._world is not world:
                return Done("unknown", "The world was restored to another state meanwhile.")
            if body.health <= 0:
                raise Refused("DEAD", "You have died; ask for a respawn.")
            if body.presence != "awake":
                raise Refused("AWAY", "Your body has left the world.")
            next(plan)
        except StopIteration as end:
            done = end.value
        except Refused as refusal:
            done = Done("failed", str(refusal), refusal.code)
        finally:
            body.goal = None
            self._world.version += 1
        return Done(done.state, done.message, done.code, self._world.version, done.data)

    async def _take_time(self, body: Body, seconds: float, resting: Body | None) -> None:
        if not self._realtime:
            advance(self._world, seconds, resting)
            return
        end = self._clock.now() + seconds
        while (left := end - self._clock.now()) > 1e-9:
            health, before = body.health, self._clock.now()
            await self._clock.sleep(min(BEAT, left))
            if body.health < health:
                break
            if resting is not None:
                rest(self._world, body, self._clock.now() - before)

    async def join(self, request: JoinRequest) -> AgentInfo:
        """Give an agent a body on the quay, or wake its own; possible before the start."""
        world = self._world
        body = world.bodies.get(request.agent_id)
        if body is None:
            body = seeding.new_body(world, request.agent_id, request.name or request.agent_id, request.embodiment)
            world.bodies[request.agent_id] = body
        body.presence = "awake"
        world.version += 1
        return self._info(body)

    def settle(self, agent_id: str, *, spawn: str = "", loadout: str = "", difficulty: str = "") -> None:
        """Begin elsewhere or with other things, with a new body; or change the damage that a body takes."""
        body = self._world.bodies[agent_id]
        seeding.settle(self._world, body, spawn=spawn, loadout=loadout)
        if difficulty:
            body.harm = seeding.HARM.get(difficulty, 100)
        self._world.version += 1

    async def leave(self, agent_id: str, mode: str) -> None:
        """Put a body to sleep where it is, hide it, or delete it with all it carries."""
        body = self._world.bodies.get(agent_id)
        if body is None:
            return
        body.be_silent()
        body.presence = "suspend" if mode in ("suspend", "despawn") else "dormant"
        if mode == "despawn":
            for item, count in list(body.items.items()):
                move_items(body.items, self._world.spent, item, count)
            del self._world.bodies[agent_id]
        self._world.version += 1

    async def respawn(self, agent_id: str) -> AgentInfo:
        """Bring a dead body back to life in the inn, with half its health and without a third of its gold."""
        body = self._body(agent_id)
        if body.health <= 0:
            seeding.revive(self._world, body)
            self._world.version += 1
        return self._info(body)

    async def transfer(self, agent_id: str, request: ItemsRequest) -> ItemsReceipt:
        """Add and remove items, once per transfer id."""
        receipt = seeding.transfer(self._world, self._body(agent_id, asleep=True), request)
        self._world.version += 1
        return receipt

    def snapshot(self) -> bytes:
        """Return the state of the world, without running commands."""
        return pack(_HEADER, _WORLD.dump_python(self._world, mode="json"))

    def restore(self, data: bytes) -> None:
        """Restore a snapshot, including its seed; `SnapshotError` if it is invalid."""
        state = unpack(_HEADER, data, "the embedded engine", _LARGEST)
        try:
            world = _WORLD.validate_python(state)
            _check(world)
        except (ValidationError, *WRONG_DATA) as error:
            raise SnapshotError(f"The snapshot of the embedded engine is damaged: {error_line(error, 200)}.") from error
        self._world = world

    def _body(self, agent_id: str, *, asleep: bool = False) -> Body:
        if not self._running:
            raise BridgeUnavailableError("The embedded engine is not started.")
        body = self._world.bodies.get(agent_id)
        if body is None or (body.presence != "awake" and not asleep):
            raise BridgeUnavailableError("That agent has no body in the world; let it join first.")
        return body

    async def _go_on(self) -> None:
        last = self._clock.now()
        while True:
            await self._clock.sleep(BEAT)
            passed, last = self._clock.now() - last, self._clock.now()
            advance(self._world, min(passed, _LONGEST_GAP))


def view(world: World, body: Body) -> Mapping[str, Any]:
    """Return the body of an `EngineView`. Any: JSON."""
    cell = definitions().cells[body.cell]
    active, completed = _quests(world, body)
    things = [item for item in sorted(body.items) if item != "gold"]
    return {
        "location": {"cell": cell.name, "x": body.x, "y": body.y, "z": 0.0, "interior": cell.inside},
        "health": {"current": body.health, "max": body.max_health},
        "nearby_entities": _entities(world, body),
        "inventory_summary": {
            "gold": body.items.get("gold", 0),
            "item_count": sum(body.items[item] for item in things),
            "encumbrance_pct": round(world.load(body) / CAPACITY, 4),
        },
        "inventory": [
            {"item_id": i, "name": world.item(i).name, "count": body.items[i], "equipped": i in body.equipped}
            for i in things
        ],
        "reach": REACH,
        "active_quests": active,
        "completed_quests": completed,
        "environment": {
            "time_of_day": world.time_of_day,
            "weather": world.weather,
            "is_combat": body.fighting(world),
            "is_dialogue": bool(body.talking),
        },
        "dialogue": _dialogue(world, body),
        "raw_engine_data": {"day": world.dawns + 1, "hour": int(world.hour)},
    }


def _entities(world: World, body: Body) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    others: list[Thing | Body] = [*world.things.values(), *world.bodies.values()]
    for other in filter(lambda one: world.sees(body, one), others):
        row: dict[str, Any] = {"name": other.name, "distance": distance(body, other)}
        if isinstance(other, Body):
            row |= {"entity_id": f"agent:{other.agent_id}", "entity_type": "player"}
        else:
            dead = other.kind == "creature" and other.health <= 0
            row |= {"entity_id": other.id, "entity_type": "container" if dead else other.kind}
            if other.kind == "npc":
                row["disposition"] = body.dispositions[other.id]
        rows.append(row)
    return sorted(rows, key=lambda row: (row["distance"], row["entity_id"]))


def _quests(world: World, body: Body) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    active, completed, names = [], [], words(world)
    for key, stage in body.quests.items():
        quest = definitions().quests[key]
        hint = quest.stages[stage].format_map(names)
        if stage >= quest.end:
            completed.append({"quest_id": key, "name": quest.title, "stage": stage})
        else:
            active.append({"quest_id": key, "name": f"{quest.title}: {hint}"[:_LONGEST_NAME], "stage": stage})
    return active, completed


def _dialogue(world: World, body: Body) -> dict[str, Any] | None:
    if not body.talking:
        return None
    person: Thing = world.things[body.talking]
    return {
        "entity_id": person.id,
        "text": body.said,
        "topics": [] if body.choices else open_topics(world, body, person),
        "choices": [text for _, text in body.choices],
    }


def _check(world: World) -> None:
    """Raise LookupError or ValueError if anything in a restored world refers to nothing."""
    cells = definitions().cells
    if world.facts.keys() != definitions().chosen.keys():
        raise ValueError("the seed's choices are not complete")
    for role in definitions().people:
        words(world, world.things[world.cast[role]])
    for thing in world.things.values():
        if thing.kind == "door" and world.things[thing.partner].kind != "door":
            raise ValueError(f"{thing.id} leads nowhere")
        _ = cells[thing.cell], [world.item(item) for item in thing.items]
    for body in world.bodies.values():
        if not 0 <= body.health <= body.max_health:
            raise ValueError(f"{body.agent_id} has {body.health} health")
        _ = [body.dispositions[person] for person in world.cast.values()], view(world, body)

"""The whole state of a game as JSON-ready data, and back.

The order of chunks and of their objects determines which random numbers they draw, so it is part of the state. Loading
validates everything: damaged or forged data raises an error.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wsap_core.protocol import Event
from wsap_core.protocol.values import JsonValue
from wsap_crafter.perception.observation import Happenings
from wsap_crafter.simulation.creatures import Player, make_creature
from wsap_crafter.simulation.engine import AREA, CrafterEngine
from wsap_crafter.simulation.game import Arrow, Object, Plant, constants
from wsap_crafter.simulation.sight import FACINGS, STEPS

MAGIC = b"WSAP-CRAFTER-2\n"

_BIGGEST_NUMBER = 2**63
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PLAYER_NUMBERS = ("_last_health", "_hunger", "_thirst", "_fatigue", "_recover")
# The fields of each kind of object besides position and health.
_EXTRAS: dict[str, tuple[str, ...]] = {
    "Cow": (),
    "Zombie": ("cooldown",),
    "Skeleton": ("reload",),
    "Plant": ("grown",),
    "Arrow": (),
}

# --- out --------------------------------------------------------------------------------------


def dump_engine(engine: CrafterEngine) -> dict[str, JsonValue]:
    """Return the game's whole state as JSON-ready data."""
    world = engine.world
    alive = [obj for obj in world.slots if obj is not None]
    numbers = {id(obj): number for number, obj in enumerate(alive)}
    words, position = world.random.dump()
    return {
        "seed": engine.seed,
        "episode": engine.episode,
        "step": engine.steps,
        "length": engine.length,
        "last_health": engine.last_health,
        "random": [words, position],
        "ground": "".join([_LETTERS[number] for number in world.materials.ravel().tolist()]),
        "player": _dump_player(engine.player),
        "objects": [_dump_object(obj) for obj in alive],
        "chunks": [
            [*map(int, chunk), [numbers[id(obj)] for obj in members]] for chunk, members in world.ordered_chunks.items()
        ],
    }


def _dump_player(player: Any) -> dict[str, JsonValue]:
    return {
        "facing": FACINGS[int(player.facing[0]), int(player.facing[1])],
        "sleeping": bool(player.sleeping),
        "action": player.action,
        "inventory": list(player.inventory.values()),
        "achievements": list(player.achievements.values()),
        "numbers": [getattr(player, name) for name in _PLAYER_NUMBERS],
    }


def _dump_object(obj: Any) -> list[JsonValue]:
    kind = type(obj).__name__
    x, y = obj.pos.tolist()
    if kind == "Player":
        return [kind, x, y]
    row = [kind, x, y, obj.inventory["health"], *(getattr(obj, name) for name in _EXTRAS[kind])]
    if kind == "Arrow":
        row.append(FACINGS[int(obj.facing[0]), int(obj.facing[1])])
    return row


# --- in ---------------------------------------------------------------------------------------


def load_engine(state: JsonValue) -> CrafterEngine:
    """Return a game with a state from `dump_engine`; raise ValueError, TypeError, LookupError, AttributeError or
    OverflowError if it is invalid."""
    engine = CrafterEngine(
        whole(state["seed"], -_BIGGEST_NUMBER, _BIGGEST_NUMBER), whole(state["length"], 0, _BIGGEST_NUMBER)
    )
    world = engine.world
    words, position = state["random"]
    world.random.load(_text(words), whole(position, 0, 624))
    world.set_materials(_load_ground(state["ground"], len(world.material_ids)))
    player = _load_player(engine, state["player"])
    rows = state["objects"]
    if [row[0] for row in rows].count("Player") != 1 or rows[0][0] != "Player":
        raise ValueError("there must be one player, and it must come first")
    everybody = [_place(engine, player, row) for row in rows]
    _load_chunks(engine, everybody, state["chunks"])
    episode, step = (whole(state[key], low, _BIGGEST_NUMBER) for key, low in (("episode", 1), ("step", 0)))
    engine.resume(player, episode, step, whole(state["last_health"], 0, 9))
    return engine


def _load_ground(letters: JsonValue, materials: int) -> Any:
    numbers = [_LETTERS.index(letter) for letter in _text(letters)]
    if len(numbers) != AREA[0] * AREA[1] or not 1 <= min(numbers) <= max(numbers) < materials:
        raise ValueError("the map is not 64 by 64 known materials")
    return np.array(numbers, np.uint8).reshape(AREA)


def _load_player(engine: CrafterEngine, data: JsonValue) -> Player:
    player = Player(engine.world, (0, 0))
    player.facing = STEPS[data["facing"]]
    player.sleeping = _flag(data["sleeping"])
    player.action = constants.actions[constants.actions.index(data["action"])]
    limits = [info["max"] for info in constants.items.values()]
    amounts = [whole(n, 0, limit) for n, limit in zip(data["inventory"], limits, strict=True)]
    player.inventory = dict(zip(constants.items, amounts, strict=True))
    counts = [whole(n, 0, _BIGGEST_NUMBER) for n in data["achievements"]]
    player.achievements = dict(zip(constants.achievements, counts, strict=True))
    for name, value in zip(_PLAYER_NUMBERS, data["numbers"], strict=True):
        setattr(player, name, _number(value))
    return player


def _place(engine: CrafterEngine, player: Player, row: JsonValue) -> Object:
    """Put one object on the map, after those before it."""
    kind, x, y, *rest = row
    x, y = whole(x, 0, AREA[0] - 1), whole(y, 0, AREA[1] - 1)
    world = engine.world
    if world[x, y][1] is not None:
        raise ValueError(f"two objects stand at {x}, {y}")
    obj = player if kind == "Player" else _make(engine, player, kind, (x, y), rest)
    obj.pos = np.array((x, y))
    world.add(obj)
    return obj


def _make(engine: CrafterEngine, player: Player, kind: str, pos: tuple[int, int], rest: list[JsonValue]) -> Object:
    world = engine.world
    health, *extras = rest
    obj: Object
    if kind == "Arrow":
        (facing,) = extras
        obj, extras = Arrow(world, pos, np.array(STEPS[facing])), []
    elif kind == "Plant":
        obj = Plant(world, pos)
    else:
        obj = make_creature(kind, world, pos, player)
    obj.health = whole(health, 0, 100)
    for name, value in zip(_EXTRAS[kind], extras, strict=True):
        setattr(obj, name, whole(value, 0, _BIGGEST_NUMBER))
    return obj


def _load_chunks(engine: CrafterEngine, everybody: list[Object], rows: JsonValue) -> None:
    """Restore the order of chunks and of their objects."""
    world = engine.world
    world.ordered_chunks.clear()
    left = set(range(len(everybody)))
    for *corners, members in rows:
        chunk = world.chunk_key((whole(corners[0], 0, AREA[0] - 1), whole(corners[2], 0, AREA[1] - 1)))
        if list(chunk) != corners or chunk in world.ordered_chunks:
            raise ValueError(f"{corners} is not a chunk, or is repeated")
        occupants = world.ordered_chunks[chunk]
        for member in members:
            left.remove(whole(member, 0, len(everybody) - 1))
            obj = everybody[member]
            if world.chunk_key(obj.pos) != chunk:
                raise ValueError(f"object {member} is not in chunk {corners}")
            occupants.add(obj)
    if left:
        raise ValueError(f"objects {sorted(left)} are in no chunk")


def dump_happenings(happenings: Happenings) -> dict[str, JsonValue]:
    """Return the events of a step as JSON-ready data."""
    return {
        "events": [[e.description, e.type, e.source, e.step] for e in happenings.events],
        "damage": happenings.damage,
        "damage_from": happenings.damage_from,
    }


def load_happenings(data: JsonValue) -> Happenings:
    """Return the events from `dump_happenings`; raise ValueError, TypeError or LookupError if they are invalid."""
    damage_from = data["damage_from"]
    if damage_from not in (None, "zombie", "arrow"):
        raise ValueError("a source of damage is unknown")
    events = tuple(_load_event(*row) for row in data["events"])
    return Happenings(events, whole(data["damage"], 0, 9), damage_from)


def _load_event(description: JsonValue, kind: JsonValue, source: JsonValue, step: JsonValue) -> Event:
    if not (isinstance(description, str) and isinstance(kind, str) and isinstance(source, str | None)):
        raise ValueError("a field of an event is not text")
    return Event(description, kind, source, None if step is None else whole(step, 0, _BIGGEST_NUMBER))


def whole(value: JsonValue, low: int, high: int) -> int:
    """Return a whole number within bounds; raise ValueError if it is anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{str(value)[:40]!r} is not a whole number from {low} to {high}")
    return value


def _number(value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]!r} is not a number")
    return value


def _text(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:40]!r} is not text")
    return value


def _flag(value: JsonValue) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{str(value)[:40]!r} is neither true nor false")
    return value

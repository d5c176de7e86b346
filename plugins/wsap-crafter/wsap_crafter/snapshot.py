"""A game in progress as plain data, and back: everything that what happens next depends on.

The order of chunks and of the objects in them decides who draws which random number, so it is part
of the state. What comes from outside is checked before anything is built from it: a snapshot that
is cut short, forged or of another version is refused, and the game in hand stays as it was.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from wsap_core.errors import SnapshotError
from wsap_crafter.creatures import Player, make_creature
from wsap_crafter.engine import AREA, CrafterEngine
from wsap_crafter.game import Arrow, Object, Plant, constants
from wsap_crafter.sight import FACINGS, STEPS

_MAGIC = b"WSAP-CRAFTER-2\n"
_FIRST_MAGIC = b"WSAP-CRAFTER-1\n"
"""Of snapshots from before agents brought things along."""

_LARGEST = 4_000_000
_BIGGEST_NUMBER = 2**63
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PLAYER_NUMBERS = ("_last_health", "_hunger", "_thirst", "_fatigue", "_recover")
# What each kind of object keeps besides its place and health.
_EXTRAS: dict[str, tuple[str, ...]] = {
    "Cow": (),
    "Zombie": ("cooldown",),
    "Skeleton": ("reload",),
    "Plant": ("grown",),
    "Arrow": (),
}

# Any, in this module: JSON data whose shape is being checked here.


def pack(state: dict[str, Any]) -> bytes:
    """Return JSON-ready data as compressed bytes with a versioned header."""
    text = json.dumps(state, separators=(",", ":"), allow_nan=False)
    return _MAGIC + zlib.compress(text.encode("ascii"), 6)


def unpack(data: bytes) -> dict[str, Any]:
    """Return the data of :func:`pack`; an older snapshot's with what is new since.

    Raises:
        SnapshotError: it is not such data.
    """
    if not data.startswith((_MAGIC, _FIRST_MAGIC)):
        raise SnapshotError("This is not a snapshot of Crafter, or it is of another version.")
    try:
        reader = zlib.decompressobj()
        text = reader.decompress(data[len(_MAGIC) :], _LARGEST)
        if not reader.eof or reader.unused_data:
            raise ValueError("it ends too early or too late")
        state = json.loads(text, parse_constant=_no_constant)
        if not isinstance(state, dict):
            raise ValueError("it holds no object")
        if data.startswith(_FIRST_MAGIC):
            state["ledger"] = None
    except (ValueError, zlib.error, RecursionError) as error:
        raise SnapshotError(f"The snapshot of Crafter is damaged: {error}.") from error
    return state


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def restoring(build: Callable[[], Any]) -> Any:
    """Return what ``build`` makes of untrusted data.

    Raises:
        SnapshotError: it raised, because the data is not what it should be.
    """
    try:
        return build()
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise SnapshotError(f"The snapshot of Crafter is damaged: {error}.") from error


# --- out --------------------------------------------------------------------------------------


def dump_engine(engine: CrafterEngine) -> dict[str, Any]:
    """Return the game's whole state as JSON-ready data. Changes nothing."""
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


def _dump_player(player: Any) -> dict[str, Any]:
    return {
        "facing": FACINGS[int(player.facing[0]), int(player.facing[1])],
        "sleeping": bool(player.sleeping),
        "action": player.action,
        "inventory": list(player.inventory.values()),
        "achievements": list(player.achievements.values()),
        "numbers": [getattr(player, name) for name in _PLAYER_NUMBERS],
    }


def _dump_object(obj: Any) -> list[Any]:
    kind = type(obj).__name__
    x, y = obj.pos.tolist()
    if kind == "Player":
        return [kind, x, y]
    row = [kind, x, y, obj.inventory["health"], *(getattr(obj, name) for name in _EXTRAS[kind])]
    if kind == "Arrow":
        row.append(FACINGS[int(obj.facing[0]), int(obj.facing[1])])
    return row


# --- in ---------------------------------------------------------------------------------------


def load_engine(state: Any) -> CrafterEngine:
    """Return a game in the state that :func:`dump_engine` gave.

    Raises:
        SnapshotError: the data does not describe a game.
    """
    engine: CrafterEngine = restoring(lambda: _load_engine(state))
    return engine


def _load_engine(state: Any) -> CrafterEngine:
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


def _load_ground(letters: Any, materials: int) -> Any:
    numbers = [_LETTERS.index(letter) for letter in _text(letters)]
    if len(numbers) != AREA[0] * AREA[1] or not 1 <= min(numbers) <= max(numbers) < materials:
        raise ValueError("the map is not 64 by 64 known materials")
    return np.array(numbers, np.uint8).reshape(AREA)


def _load_player(engine: CrafterEngine, data: Any) -> Player:
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


def _place(engine: CrafterEngine, player: Player, row: Any) -> Object:
    """Put one object on the map, behind those that came before it."""
    kind, x, y, *rest = row
    x, y = whole(x, 0, AREA[0] - 1), whole(y, 0, AREA[1] - 1)
    world = engine.world
    if world[x, y][1] is not None:
        raise ValueError(f"two objects stand at {x}, {y}")
    obj = player if kind == "Player" else _make(engine, player, kind, (x, y), rest)
    obj.pos = np.array((x, y))
    world.add(obj)
    return obj


def _make(engine: CrafterEngine, player: Player, kind: str, pos: tuple[int, int], rest: list[Any]) -> Object:
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


def _load_chunks(engine: CrafterEngine, everybody: list[Object], rows: Any) -> None:
    """Put chunks, and the objects in them, into the order they were in."""
    world = engine.world
    world.ordered_chunks.clear()
    left = set(range(len(everybody)))
    for *corners, members in rows:
        chunk = world.chunk_key((whole(corners[0], 0, AREA[0] - 1), whole(corners[2], 0, AREA[1] - 1)))
        if list(chunk) != corners or chunk in world.ordered_chunks:
            raise ValueError(f"{corners} is not a chunk, or is there twice")
        occupants = world.ordered_chunks[chunk]
        for member in members:
            left.remove(whole(member, 0, len(everybody) - 1))
            obj = everybody[member]
            if world.chunk_key(obj.pos) != chunk:
                raise ValueError(f"object {member} is not in chunk {corners}")
            occupants.add(obj)
    if left:
        raise ValueError(f"objects {sorted(left)} are in no chunk")


def whole(value: Any, low: int, high: int) -> int:
    """Return a whole number within bounds, or raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{str(value)[:40]!r} is not a whole number from {low} to {high}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]!r} is not a number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:40]!r} is not text")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{str(value)[:40]!r} is neither true nor false")
    return value

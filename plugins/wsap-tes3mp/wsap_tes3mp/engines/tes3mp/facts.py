"""Converts the script's facts to the body of a perception, with fidelity labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from pydantic import JsonValue

from wsap_tes3mp.engines.engine import time_of_day
from wsap_tes3mp.engines.tes3mp.connection import Facts
from wsap_tes3mp.engines.tes3mp.esm import GRID, GameData, Quest
from wsap_tes3mp.protocol.errors import SchemaMismatchError

Row = dict[str, Any]  # Any: a part of the body, as JSON
COMBAT_SECONDS = 10.0
"""How long an agent counts as fighting after a blow."""
DIALOGUE_SECONDS = 30.0
"""How long an agent counts as talking after a word."""
WEATHERS = ("clear", "cloudy", "foggy", "overcast", "rain", "thunder", "ash", "blight", "snow", "blizzard")
"""The engine's weathers, by number."""
_OBJECT_KINDS = (("door", "door"), ("chest", "container"), ("barrel", "container"), ("crate", "container"),
                 ("sack", "container"), ("urn", "container"))  # fmt: skip
_UNAVAILABLE = ("nearby_entities.disposition", "dialogue.text", "dialogue.topics")
_LOAD = "inventory_summary.encumbrance_pct"
_DERIVED = ("environment.is_combat", "environment.is_dialogue", _LOAD)
_AVATAR = dict.fromkeys(("interact", "use_item", "combat_action", "dialogue"), "derived")
"""Command -> how its effect is known; those not listed are observed."""
_COMPANION = {**_AVATAR, "move_to": "derived", "dialogue": "unavailable"}


def text(value: JsonValue, longest: int = 200) -> str | None:
    """Return a text without control characters and lone surrogates; None for anything else."""
    if not isinstance(value, str):
        return None
    clean = "".join(c if c.isprintable() else " " for c in value[: longest * 2]).strip()
    return clean[:longest] or None


def number(value: JsonValue) -> float | None:
    """Return a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:  # NaN is never below
        return None
    return float(value)


def whole(value: JsonValue, least: int = 0) -> int | None:
    """Return a whole number of at least `least`; None for anything else."""
    found = number(value)
    return None if found is None or found < least else int(found)


def _rows(value: JsonValue, most: int = 2000) -> Iterable[Facts]:
    """Return the objects in a list; Lua may send an empty table as `{}`."""
    return [row for row in value[:most] if isinstance(row, dict)] if isinstance(value, list) else []


def body_of(facts: Facts, *, names: GameData | None = None) -> Row:
    """Return the body of a perception; `SchemaMismatchError` if cell, position or health is missing or invalid."""
    cell = text(facts.get("cell"))
    place = _place(facts)
    if cell is None or place is None:
        raise SchemaMismatchError("The TES3MP script gave no usable position (cell, x, y, z).")
    interior = facts.get("interior")
    if not isinstance(interior, bool):
        interior = GRID.fullmatch(cell) is None
    inventory = _inventory(facts, names)
    gold = sum(row["count"] for row in inventory if row["item_id"].lower() == "gold_001")
    load = _load(facts, inventory, names)
    hour, index = number(facts.get("hour")), whole(facts.get("weather"))
    weather = text(facts.get("weather"), 40) if index is None else dict(enumerate(WEATHERS)).get(index)
    active, completed = _quests(facts, names)
    known = {
        _LOAD: load,
        "environment.time_of_day": hour,
        "environment.weather": weather,
        "completed_quests": completed,
    }
    unavailable = {*_UNAVAILABLE, *(field for field, value in known.items() if value is None)}
    derived = {*_DERIVED, *(["nearby_entities.entity_type"] if names is None else [])} - unavailable
    commands = _COMPANION if facts.get("embodiment") == "companion" else _AVATAR
    return {
        "location": {
            "cell": (names.cell(cell) if names is not None else None) or cell,
            **dict(zip("xyz", place, strict=True)),
            "interior": interior,
        },
        "health": _health(facts),
        "nearby_entities": _entities(facts, cell, place, interior, names),
        "inventory_summary": {
            "gold": gold,
            "item_count": sum(row["count"] for row in inventory) - gold,
            "encumbrance_pct": load or 0.0,
        },
        "inventory": inventory,
        "active_quests": active,
        "completed_quests": completed,
        "environment": {
            "time_of_day": "unknown" if hour is None else time_of_day(hour % 24),
            "weather": weather or "unknown",
            "is_combat": _recent(facts.get("combat_age"), COMBAT_SECONDS),
            "is_dialogue": _recent(facts.get("dialogue_age"), DIALOGUE_SECONDS),
        },
        "dialogue": _dialogue(facts),
        "raw_engine_data": {
            "cell": cell,
            "region": text(facts.get("region")),
            "hour": hour,
            **{key: whole(facts.get(key)) for key in ("level", "day")},
        },
        "fidelity": {
            **dict.fromkeys(sorted(derived), "derived"),
            **dict.fromkeys(sorted(unavailable), "unavailable"),
            **{f"command.{command}": label for command, label in commands.items()},
        },
    }


def _place(facts: Facts) -> tuple[float, float, float] | None:
    x, y, z = (number(facts.get(axis)) for axis in "xyz")
    return None if x is None or y is None or z is None else (x, y, z)


def _health(facts: Facts) -> dict[str, int]:
    health = facts.get("health")
    current, most = (number(health.get(key)) if isinstance(health, dict) else None for key in ("current", "max"))
    if current is None or most is None:
        raise SchemaMismatchError("The TES3MP script gave no usable health (current, max).")
    ceiling = max(1, math.ceil(most))
    return {"current": min(ceiling, max(0, math.ceil(current))), "max": ceiling}


def _recent(age: JsonValue, seconds: float) -> bool:
    found = number(age)
    return found is not None and 0 <= found < seconds


def _inventory(facts: Facts, names: GameData | None) -> list[Row]:
    found: dict[tuple[str, bool], int] = {}
    for row in _rows(facts.get("inventory")):
        item, count = text(row.get("ref_id")), whole(row.get("count"), 1)
        if item is not None and count is not None:
            key = (item, row.get("equipped") is True)
            found[key] = found.get(key, 0) + count
    return [
        {"item_id": item, "name": (names and names.find(item).name) or item, "count": count, "equipped": equipped}
        for (item, equipped), count in sorted(found.items())
    ]


def _load(facts: Facts, inventory: list[Row], names: GameData | None) -> float | None:
    """Return load divided by capacity (five times the strength); None if a weight or the strength is unknown."""
    strength = number(facts.get("strength"))
    if names is None or strength is None or strength <= 0:
        return None
    total = 0.0
    for item in inventory:
        weight = names.find(item["item_id"]).weight
        if weight is None:
            return None
        total += weight * item["count"]
    return total / (5 * strength)


def _quests(facts: Facts, names: GameData | None) -> tuple[list[Row], list[Row] | None]:
    """Return the active and the completed quests; without data files the latter are unknown (None)."""
    known = names.quests if names is not None else {}
    stages: dict[str, int] = {}
    ended: set[str] = set()
    for row in _rows(facts.get("journal"), 20_000):
        quest, index = text(row.get("quest")), whole(row.get("index"))
        if quest is None or index is None:
            continue
        quest = quest.lower()
        stages[quest] = max(stages.get(quest, 0), index)
        if index in known.get(quest, Quest()).finished:
            ended.add(quest)
    active, completed = list[Row](), list[Row]()
    for quest, stage in sorted(stages.items()):
        row = {"quest_id": quest, "name": known.get(quest, Quest()).name or quest, "stage": stage}
        (completed if quest in ended else active).append(row)
    return active, None if names is None else completed


def _entities(
    facts: Facts, cell: str, place: tuple[float, float, float], interior: bool, names: GameData | None
) -> list[Row]:
    found: dict[str, Row] = {}
    for row in _rows(facts.get("entities")):
        entity, at, where = text(row.get("id")), _place(row), text(row.get("cell")) or cell
        if entity is None or at is None:
            continue
        if where.lower() != cell.lower() and (interior or GRID.fullmatch(where) is None):
            continue  # coordinates of different interiors are unrelated
        ref = text(row.get("ref_id")) or ""
        found[entity] = {
            "entity_id": entity,
            "name": text(row.get("name")) or (names and names.find(ref).name) or ref or entity,
            "entity_type": _entity_type(text(row.get("kind")), ref, names),
            "distance": round(math.dist(place, at), 2),
        }
    return sorted(found.values(), key=lambda entity: (entity["distance"], entity["entity_id"]))


def _entity_type(kind: str | None, ref: str, names: GameData | None) -> str:
    if kind == "player":
        return "player"
    if names is not None and (known := names.find(ref).kind) is not None:
        return known
    if kind == "actor":
        return "npc"
    return next((found for word, found in _OBJECT_KINDS if word in ref.lower()), "object")


def _dialogue(facts: Facts) -> Row | None:
    dialogue = facts.get("dialogue")
    entity = text(dialogue.get("entity")) if isinstance(dialogue, dict) else None
    recent = _recent(facts.get("dialogue_age"), DIALOGUE_SECONDS)
    return {"entity_id": entity} if entity is not None and recent else None

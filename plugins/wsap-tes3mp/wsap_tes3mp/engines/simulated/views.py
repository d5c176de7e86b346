"""What an agent perceives, as the body of a perception."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wsap_tes3mp.engines.simulated.definitions import definitions
from wsap_tes3mp.engines.simulated.state import CAPACITY, Body, Thing, World, distance, sees
from wsap_tes3mp.engines.simulated.talking import open_topics, words
from wsap_tes3mp.protocol.bridge import AgentInfo

_LONGEST = 200


def view(world: World, body: Body) -> Mapping[str, Any]:
    """Return the fields of `PerceptionOutput` that an engine fills. Any: JSON."""
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
        "inventory": [_item(world, body, item) for item in things],
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


def info(body: Body, busy: str | None = None) -> AgentInfo:
    """Return how an agent's body is."""
    return AgentInfo(
        agent_id=body.agent_id,
        name=body.name,
        connected=body.presence == "awake",
        dead=body.health <= 0,
        embodiment=body.embodiment,
        busy=busy,
    )


def _item(world: World, body: Body, item: str) -> dict[str, Any]:
    name, count = world.item(item).name, body.items[item]
    return {"item_id": item, "name": name, "count": count, "equipped": item in body.equipped}


def _entities(world: World, body: Body) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    others: list[Thing | Body] = [*world.within(body.cell), *world.bodies.values()]
    for other in filter(lambda one: sees(world, body, one), others):
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
            active.append({"quest_id": key, "name": f"{quest.title}: {hint}"[:_LONGEST], "stage": stage})
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

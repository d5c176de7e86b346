"""A bridge by a stranger who has read nothing but the seed: its three endpoints, its fields, its parameters. An ASGI
application around a small town whose people, places and coordinates are another's, in another scale."""

from __future__ import annotations

import json
import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

PARAMS = {
    "move_to": {"target_cell", "target_x", "target_y", "target_z"}, "interact": {"entity_id", "interaction_type"},
    "use_item": {"item_id", "target_entity_id"}, "wait": {"duration_seconds"}, "noop": set[str](),
    "combat_action": {"action_type", "target_entity_id"}, "dialogue": {"entity_id", "topic", "choice_idx"},
    "journal_note": {"content", "tags"},
}  # fmt: skip
STATUS = {"INVALID_COMMAND": 400, "VALIDATION_ERROR": 400, "NOT_FOUND": 404}
SIGHT, REACH = 2500, 180


class SeedBridge:
    """The town of a seed. Somebody has to be reported to, something fetched, and a rat killed."""

    def __init__(self, seed: int) -> None:
        chance = self.chance = random.Random(seed)
        self.x, self.y = (round(chance.uniform(-30000, 30000), 1) for _ in range(2))
        self.cell, self.time, self.items, self.said = "Balmora", 0, 3, ""
        self.refused: list[str] = []
        spots = [(self.x + chance.uniform(-5000, 5000), self.y + chance.uniform(-5000, 5000)) for _ in range(6)]
        spy, ring, rat = (chance.choice(["Balmora", "South Wall"]) for _ in range(3))
        self.things: dict[str, list[Any]] = {  # name, type, cell, x, y
            "e1": ["South Wall", "door", "Balmora", *spots[0]], "e2": ["Balmora", "door", "South Wall", 50.0, 90.0],
            "e3": ["Caius Cosades", "npc", spy, *(spots[1] if spy == "Balmora" else (600.0, -300.0))],
            "e4": ["Silver Ring", "item", ring, *(spots[2] if ring == "Balmora" else (-500.0, 200.0))],
            "e5": ["Cave Rat", "creature", rat, *(spots[3] if rat == "Balmora" else (100.0, 700.0))],
            "e6": ["Nalcarya", "npc", "Balmora", *spots[4]], "e7": ["Crate", "container", "Balmora", *spots[5]],
        }  # fmt: skip
        self.quests = {"mq_01": "Report to Caius Cosades", "hh_02": "Find the Silver Ring"}
        self.quests["fg_01"] = "Kill the Cave Rat"
        self.done: list[str] = []

    def away(self, key: str) -> float:
        _, _, cell, x, y = self.things[key]
        return math.hypot(x - self.x, y - self.y) if cell == self.cell else math.inf

    def perception(self) -> dict[str, Any]:
        near = sorted((round(self.away(key), 1), key) for key in self.things if self.away(key) <= SIGHT)
        return {
            "protocol_version": "1.0.0", "timestamp": self.now(), "agent_id": "timmy",
            "location": {"cell": self.cell, "x": self.x, "y": self.y, "z": 64.0, "interior": self.cell != "Balmora"},
            "health": {"current": 85, "max": 100},
            "nearby_entities": [{"entity_id": key, "name": self.things[key][0], "entity_type": self.things[key][1],
                                 "distance": far} for far, key in near],
            "inventory_summary": {"gold": 150, "item_count": self.items, "encumbrance_pct": 0.45},
            "active_quests": [{"quest_id": k, "name": v, "stage": 10} for k, v in self.quests.items()],
            "environment": {"time_of_day": "afternoon", "weather": "clear", "is_combat": False,
                            "is_dialogue": bool(self.said)},
        }  # fmt: skip

    def now(self) -> str:
        return (datetime(2026, 3, 21, 14, 30, tzinfo=UTC) + timedelta(seconds=self.time)).isoformat()

    def command(self, name: str, params: dict[str, Any]) -> str:
        """Carry out a command; "" or the code of its refusal."""
        if name not in PARAMS:
            return "INVALID_COMMAND"
        if not params.keys() <= PARAMS[name]:
            return "VALIDATION_ERROR"
        self.time, target = self.time + 1, params.get("entity_id", params.get("target_entity_id", ""))
        if name == "move_to" and params.get("target_cell", self.cell) == self.cell:
            self.x, self.y, self.said = float(params["target_x"]), float(params["target_y"]), ""
        elif name in ("interact", "dialogue", "combat_action") and target in self.things and self.away(target) <= REACH:
            self.touch(name, target)
        return ""

    def touch(self, name: str, key: str) -> None:
        kind, ends = self.things[key][1], {"e3": "mq_01", "e4": "hh_02", "e5": "fg_01"}
        if name == "interact" and kind == "door":
            (self.cell, self.x, self.y), self.said = self.things["e2" if key == "e1" else "e1"][2:], ""
        elif name == "interact" and kind == "npc":
            self.said = key
        fits = {"npc": name == "dialogue" and self.said == key, "item": name == "interact",
                "creature": name == "combat_action" and self.chance.random() < 0.4}  # fmt: skip
        if fits.get(kind) and key in ends and self.quests.pop(ends[key], ""):
            self.done.append(ends[key])
            if kind != "npc":
                self.things[key][2], self.items = "", self.items + (kind == "item")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert not parse_qs(scope["query_string"].decode()).keys() - {"agent_id"}
        asked, answer, status = f"{scope['method']} {scope['path']}", dict[str, Any](), 200
        if asked == "GET /perception":
            answer = self.perception()
        elif asked == "GET /morrowind/status":
            answer = {"bridge_connected": True, "engine": "tes3mp", "protocol_version": "1.0.0", "uptime_seconds": 3600,
                      "last_perception_at": self.now()}  # fmt: skip
        else:
            body, code = json.loads((await receive())["body"] or b"{}"), "NOT_FOUND"
            if asked == "POST /command":
                code = self.command(body["command"], body["params"])
                answer, status = {"status": "accepted", "command_id": f"cmd_{self.time}", "logged": True}, 202
            if code:
                self.refused.append(f"{code} {asked} {body}")
                status = STATUS[code]
                answer = {"error": {"code": code, "message": code, "details": {}, "timestamp": self.now()}}
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

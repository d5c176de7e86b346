"""Achievements and rewards, derived from two perceptions and the command between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from wsap_core.protocol import Event
from wsap_core.protocol.values import JsonValue
from wsap_core.untrusted import sanitize
from wsap_tes3mp.protocol.perception import PerceptionOutput

_Kept = tuple[list[str], list[tuple[str, str]], dict[str, int], list[str], list[str], list[tuple[int, str]]]
FRIEND = 70
"""The disposition of a friend."""
MANY_PLACES = 5
STAGE, QUEST, FEAT, DEATH = 0.5, 5.0, 0.2, -2.0
"""Rewards for a quest stage, a completed quest, a new achievement, and death."""


@dataclass
class Memory:
    """An agent's progress in a world."""

    cells: list[str] = field(default_factory=list)
    """Places visited, in order of the first visit."""
    ways: list[tuple[str, str]] = field(default_factory=list)
    """Ways taken, from place to place."""
    stages: dict[str, int] = field(default_factory=dict)
    """Quest -> highest stage reached."""
    done: list[str] = field(default_factory=list)
    """Completed quests."""
    feats: list[str] = field(default_factory=list)
    """Achievements so far."""
    story: list[tuple[int, str]] = field(default_factory=list)
    """Step and sentence."""

    def to_json(self) -> JsonValue:
        """Return it as JSON-ready data."""
        return [self.cells, self.ways, self.stages, self.done, self.feats, self.story[-200:]]

    @classmethod
    def from_json(cls, data: JsonValue) -> Memory:
        """Return the memory of `to_json`; `ValueError` if the untrusted data is invalid."""
        return cls(*TypeAdapter(_Kept).validate_python(data))

    def begin(self, seen: PerceptionOutput) -> None:
        """Record the initial perception."""
        self._visit(seen.location.cell)
        self.stages.update({quest.quest_id: quest.stage for quest in seen.active_quests})

    def take_in(
        self, before: PerceptionOutput, seen: PerceptionOutput, command: str, step: int
    ) -> tuple[float, list[str], list[Event]]:
        """Record a command by the perceptions before and after it; return reward, new achievements, and events."""
        reward, events, names = 0.0, list[Event](), list(_feats(before, seen, command))
        cell, old = seen.location.cell, before.location.cell
        if cell != old:
            names += ["travel"] + (["go_inside"] if seen.location.interior else [])
            self._visit(cell, old)
            self.story.append((step, f"Went to {sanitize(cell, 60)}."))
        names += ["see_places"] if len(self.cells) >= MANY_PLACES else []
        for quest in seen.active_quests:
            known = self.stages.get(quest.quest_id)
            if known is None or quest.stage > known:
                self.stages[quest.quest_id] = quest.stage
                reward += STAGE
                names.append("begin_quest" if known is None else "advance_quest")
                how = "has begun" if known is None else f"is now at stage {quest.stage}"
                events.append(Event(f"The quest {sanitize(quest.name, 60)} {how}.", "quest", None, step))
        for quest in seen.completed_quests or ():
            if quest.quest_id not in self.done:
                self.done.append(quest.quest_id)
                reward += QUEST
                names += ["complete_quest"] + (["complete_two_quests"] if len(self.done) >= 2 else [])
                events.append(Event(f"The quest {sanitize(quest.name, 60)} is completed.", "quest", None, step))
        lost = before.health.current - seen.health.current
        if lost > 0:
            events.append(Event(f"You lost {lost} health.", "damage", None, step))
        new = [name for name in dict.fromkeys(names) if name not in self.feats]
        self.feats += new
        reward += FEAT * len(new) + (DEATH if seen.health.current == 0 < before.health.current else 0.0)
        self.story += [(step, event.description) for event in events if event.type == "quest"]
        return round(reward, 6), new, events

    def _visit(self, cell: str, before: str = "") -> None:
        if cell not in self.cells:
            self.cells.append(cell)
        if before and (before, cell) not in self.ways:
            self.ways.append((before, cell))


def _feats(before: PerceptionOutput, seen: PerceptionOutput, command: str) -> Iterator[str]:
    if seen.dialogue is not None or seen.environment.is_dialogue:
        yield "talk"
    had, have = before.inventory_summary, seen.inventory_summary
    if command == "interact" and have.item_count > had.item_count:
        yield "take_item"
    if have.gold > had.gold:
        yield "earn_gold"
    worn = {item.item_id for item in before.inventory or () if item.equipped}
    if before.inventory is not None and any(i.equipped and i.item_id not in worn for i in seen.inventory or ()):
        yield "equip"
    liked = {one.entity_id: one.disposition for one in before.nearby_entities}
    for one in seen.nearby_entities:
        then = liked.get(one.entity_id)
        if then is not None and one.disposition is not None and then < FRIEND <= one.disposition:
            yield "befriend"
    if seen.environment.is_combat:
        yield "fight"
    if command == "use_item" and seen.health.current > before.health.current:
        yield "heal"
    there = {one.entity_id for one in seen.nearby_entities if one.entity_type == "creature"}
    gone = {one.entity_id for one in before.nearby_entities if one.entity_type == "creature"} - there
    if command == "combat_action" and gone and before.location.cell == seen.location.cell and seen.health.current:
        yield "prevail"

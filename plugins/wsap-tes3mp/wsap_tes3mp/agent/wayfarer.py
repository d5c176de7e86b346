"""A rule-based agent for `morrowind` that uses perceptions alone: it asks around and follows its quests.

It is not part of the world and knows no engine. It knows how such games work: doors lead to the place in their name,
gifts make friends, the journal says what to do next, and better weapons help. Everything else it reads and remembers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from pydantic import TypeAdapter, ValidationError

from wsap_core.errors import SnapshotError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_core.protocol.values import JsonValue
from wsap_core.untrusted import error_line
from wsap_tes3mp.agent.walker import REACH, TRADE, Notes, Walker, away_from, name_of, place_of
from wsap_tes3mp.protocol.perception import InventoryItem, NearbyEntity, OpenDialogue, PerceptionOutput

FRIEND = 60
_TRIES = 12
"""How often it tries what an entry names before it does something else."""
RUN_FROM = 35
"""Percentage of health below which it heals first, even with foes nearby."""
FLEE = 25
"""Percentage of health below which it leaves its foes if it has nothing to heal itself with."""
REST = 80
"""Percentage of health below which it rests where no foes are."""
_READ = re.compile(r"Read the (.+?) in the (.+?)[,.]")
_TALK = re.compile(r"Talk to (.+?) (?:at|in) (?:the )?([^,]+?)(?:, off [^,]+,)? about ([^,.]+?)(?:,| and|\.|$)")
_KEY = re.compile(r"(?:^|: )([^:]+?) at (?:the )?(.+?) gives friends the (.+?): bring gifts, then ask about ([^.]+)")
_TAKE = re.compile(r"Take the (?:heavy )?(.+?) from the (.+?) in the (.+?)[,.]")
_USE = re.compile(r"Use the (.+?) on (?:the )?(.+?) (?:in|at) (?:the )?(.+?)(?:\.|$)")
_BRING = re.compile(r"Bring (.+?) an? (.+?), an? (.+?) and an? (.+?), then talk about ([^:]+)")
_GOOD = ("i will", "promise", "forgive", "i keep")
_BAD = ("gold", "pay", "break", "have the", "it was", "pass", "themselves", "yes. give")
_ARMS = ("cutlass", "sword", "gaff", "spear", "axe", "club", "dagger")
_ARMOUR = ("vest", "mail", "coat", "cuirass")
_CURES = ("salve", "potion", "eel", "bread")
_SELF = "yourself"
_NOTES = TypeAdapter(Notes)


class Wayfarer(Walker):
    """Plays by rules."""

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Start without notes."""
        self.notes = Notes({})

    def reflect(self, result: ActionResult) -> None:
        """Note whether the episode is over; the next perception shows the rest."""
        self.notes.over = result.done

    def plan(self, goals: list[Goal]) -> list[str]:
        """Return its fixed plan."""
        return ["ask people for news", "do what the journal says", "make friends, stay alive"]

    def decide(self, observation: Observation) -> Action:
        """Return the action for an observation; `noop` if it has no perception. A new episode begins without notes."""
        notes, step = self.notes, observation.step
        if step < notes.step or (notes.over and step <= notes.step):
            self.notes = Notes({})
        self.notes.step, self.notes.over = step, False
        perception = getattr(observation, "perception", None)
        return self.act_on(PerceptionOutput.model_validate(perception)) if perception else Action("noop")

    def act_on(self, seen: PerceptionOutput) -> Action:
        """Return the action for a perception."""
        self._seen, self._why = seen, ""
        self.notes.learn(seen)
        # What was done in between says nothing about an approach.
        self._approached, self.notes.nears = self.notes.nears, {}
        action = next(filter(None, self._wishes()), Action("wait", {"duration_seconds": 60}))
        place, things = seen.location.model_dump(), len(seen.inventory or ())
        mark = json.dumps([action.name, dict(action.parameters), place, things, str(seen.dialogue)])
        again = mark == self.notes.last and action.name not in ("combat_action", "wait")
        self.notes.same = self.notes.same + 1 if again else 0
        self.notes.last = mark
        if self.notes.same >= 3:
            self.notes.same = 0
            action = self._wander() or action
        return Action(action.name, action.parameters, self._why or "Nothing else to do.")

    # --- what it wants ----------------------------------------------------------------------------

    def _wishes(self) -> Iterator[Action | None]:
        seen = self._seen
        yield self._survive()
        if seen.dialogue is not None and seen.dialogue.choices:
            yield self._answer(seen.dialogue)
        yield self._ask_on(seen.dialogue)
        yield self._arm()
        yield self._lighten()
        for quest in sorted(seen.active_quests, key=lambda quest: quest.quest_id):
            yield self._follow(quest.name)
        begun = {quest.name for quest in (*seen.active_quests, *(seen.completed_quests or ()))}
        for topic, (who, where) in sorted(self.notes.rumours.items()):
            if not any(place_of(topic).split(" ")[-1] in name.lower() for name in begun):
                yield self._talk(who, where, topic)
        yield self._news()
        yield self._wander()
        yield self._way_out() or self._explore()

    def _survive(self) -> Action | None:
        seen = self._seen
        percent = 100 * seen.health.current / seen.health.max
        foes = [one for one in self._foes() if one.distance < 12]
        cure = self._carried(_CURES if percent < 60 else ("bread", "eel"))
        if cure and percent < (RUN_FROM if foes else 70):
            return self._act("use_item", "I am hurt.", item_id=cure)
        if foes and percent < FLEE and not cure and (door := self._nearest_door()):
            self._why = "I am too hurt to go on fighting."
            return self._touch(door, self._open)
        near = [one for one in foes if one.distance <= REACH]
        if near and seen.environment.is_combat:
            return self._act("combat_action", "It attacks.", action_type="attack", target_entity_id=near[0].entity_id)
        if not foes and percent < REST:
            return self._act("wait", "I rest.", duration_seconds=120)
        return None

    def _nearest_door(self) -> NearbyEntity | None:
        """Return the nearest door that it has not failed at, to leave by."""
        doors = [one for one in self._seen.nearby_entities if one.entity_type == "door"]
        usable = [one for one in doors if self.notes.shut.get(one.entity_id, 0) < 2]
        return min(usable, key=lambda one: one.distance, default=None)

    def _foes(self) -> list[NearbyEntity]:
        alive = [e for e in self._seen.nearby_entities if e.entity_type == "creature" and not e.name.startswith("Dead")]
        return sorted(alive, key=lambda one: one.distance)

    def _arm(self) -> Action | None:
        for words in (_ARMS, _ARMOUR):
            best = self._carried(words)
            if best and not any(i.item_id == best and i.equipped for i in self._seen.inventory or ()):
                return self._act("use_item", "Better than bare hands.", item_id=best)
        return None

    def _lighten(self) -> Action | None:
        """Drop what weighs most, as far as it knows; last what it wears, and what its quests need."""
        seen = self._seen
        if seen.inventory_summary.encumbrance_pct <= 1 or not seen.inventory:
            return None
        journal = " ".join(quest.name for quest in seen.active_quests).lower()
        weights = self.notes.weights
        known = sum(weights.get(item.item_id, 0.0) * item.count for item in seen.inventory)
        unknown = sum(item.count for item in seen.inventory if item.item_id not in weights)
        guess = max(0.0, seen.inventory_summary.encumbrance_pct - known) / max(1, unknown)

        def worth(item: InventoryItem) -> tuple[bool, bool, bool, float]:
            needed = item.name.lower() in journal or item.name in self.notes.likes.values()
            cure = any(word in item.name.lower() for word in _CURES)
            return needed, item.equipped, cure, -weights.get(item.item_id, guess)

        heavy = min(seen.inventory, key=worth)
        return self._act("interact", "I carry too much.", entity_id=heavy.item_id, interaction_type="drop")

    # --- dialogue ---------------------------------------------------------------------------------

    def _answer(self, talk: OpenDialogue) -> Action | None:
        if any(choice.startswith(("Buy ", "Sell ")) for choice in talk.choices):
            return self._deal(talk)
        journal = " ".join(quest.name for quest in self._seen.active_quests)

        def worth(text: str) -> int:
            low = text.lower()
            return 10 * (text in journal) + 3 * any(w in low for w in _GOOD) - 5 * any(w in low for w in _BAD)

        best = max(range(len(talk.choices)), key=lambda index: worth(talk.choices[index]))
        return self._say(talk, "The best answer that I see.", choice_idx=best)

    def _deal(self, talk: OpenDialogue) -> Action:
        gold = self._seen.inventory_summary.gold
        for name in self._shopping():
            if name in self.notes.wares and self.notes.wares[name] <= gold:
                index = next(i for i, choice in enumerate(talk.choices) if choice.startswith(f"Buy {name} for "))
                return self._say(talk, f"I need {name}.", choice_idx=index)
        return self._say(talk, "I have what I need.", choice_idx=len(talk.choices) - 1)

    def _shopping(self) -> Iterator[str]:
        for quest in self._seen.active_quests:
            if found := _BRING.search(quest.name):
                yield from (name for name in found.groups()[1:4] if not self._id(name))
            if (found := _KEY.search(quest.name)) and (gift := self.notes.likes.get(found[1])):
                missing = -(-(FRIEND - (self._liking(found[1]) or 45)) // 12)
                if self._count(gift) < missing:
                    yield gift
        if self._seen.inventory_summary.gold >= 60:
            yield from ("Old Cutlass", "Green Salve") if self._count("Green Salve") < 2 else ("Old Cutlass",)

    def _ask_on(self, talk: OpenDialogue | None) -> Action | None:
        """Ask the person it is talking to about themselves, once."""
        if talk is None or talk.choices:
            return None
        name = name_of(self._seen, talk.entity_id)
        if _SELF in talk.topics and name and name not in self.notes.likes and f"{name}/{_SELF}" not in self.notes.asked:
            self.notes.asked.append(f"{name}/{_SELF}")
            return self._say(talk, "Who are you?", topic=_SELF)
        return None

    def _talk(self, who: str, where: str, topic: str) -> Action | None:
        """Go to somebody and talk about a topic; bring gifts if they won't talk about it yet."""
        self._why = self._why or f"I want to ask {who} about {topic}."
        talk = self._seen.dialogue
        if talk is not None and name_of(self._seen, talk.entity_id) == who:
            if topic in talk.topics:
                return self._say(talk, f"{who} knows about {topic}.", topic=topic)
            return self._befriend(who)
        return self._at(who, where, self._on("interact", interaction_type="talk"))

    def _befriend(self, who: str) -> Action | None:
        gift, liking = self.notes.likes.get(who), self._liking(who)
        if gift is None or (liking is not None and liking >= FRIEND):
            return None
        if carried := self._id(gift):
            target = next(one.entity_id for one in self._seen.nearby_entities if one.name == who)
            return self._act("use_item", f"{who} likes {gift}.", item_id=carried, target_entity_id=target)
        return self._get(gift)

    def _news(self) -> Action | None:
        for one in sorted(self._seen.nearby_entities, key=lambda one: one.distance):
            if one.entity_type == "npc" and one.name not in self.notes.asked:
                self._why = self._why or f"Perhaps {one.name} has news."
                return self._touch(one, self._ask)
        return None

    def _ask(self, one: NearbyEntity) -> Action:
        self.notes.asked.append(one.name)
        return self._act("interact", "Any news?", entity_id=one.entity_id, interaction_type="talk")

    # --- quests -----------------------------------------------------------------------------------

    def _follow(self, journal: str) -> Action | None:
        """Return the next step of a quest's journal entry."""
        self._why = journal
        if found := _READ.search(journal):
            return self._at(found[1], found[2], self._on("interact", interaction_type="read"))
        if found := _BRING.search(journal):
            who, *things, topic = found.groups()
            for name in things:
                if not self._id(name):
                    return self._get(name)
            known = self.notes.where.get(who)
            return self._talk(who, known.place, topic.strip()) if known else self._wander()
        if found := _KEY.search(journal):
            gift, liking = self.notes.likes.get(found[1]), self._liking(found[1]) or 0
            if gift is not None and liking < FRIEND and not self._id(gift):
                return self._get(gift)
            return self._talk(found[1], found[2], found[4].strip())
        if found := _TAKE.search(journal):
            return self._at(found[2], found[3], self._on("interact", interaction_type="open"))
        if found := _USE.search(journal):
            item = self._id(found[1])
            if item is None:
                return self._get(found[1])
            return self._at(found[2], found[3], self._on("use_item", "target_entity_id", item_id=item))
        if found := _TALK.search(journal):
            return self._talk(found[1], found[2], found[3].strip())
        return self._pursue(journal)

    def _pursue(self, journal: str) -> Action | None:
        """Go to what an entry names in whatever words, and do there what is usual."""
        low = journal.lower()
        for one in sorted(self._seen.nearby_entities, key=lambda one: (-len(one.name), one.distance)):
            if one.name.lower() in low and self.notes.tried_for.get(f"{journal}/{one.entity_id}", 0) < _TRIES:
                return self._touch(one, lambda it: self._try(it, journal))
        for name, known in self.notes.where.items():
            there = known.place == self.notes.here and away_from(self._seen, known) <= max(REACH, self.notes.span / 20)
            if name.lower() in low and not there and known.kind != "door":
                return self._toward(known.place, known)
        return None

    def _try(self, one: NearbyEntity, journal: str) -> Action:
        key = f"{journal}/{one.entity_id}"
        times = self.notes.tried_for[key] = self.notes.tried_for.get(key, 0) + 1
        if one.entity_type == "creature":
            return self._act("combat_action", journal, action_type="attack", target_entity_id=one.entity_id)
        if one.entity_type == "door":
            return self._open(one)
        if one.entity_type == "npc" and times % 2 == 0:
            return self._act("dialogue", journal, entity_id=one.entity_id, topic=journal[:60])
        kinds = {"npc": "talk", "item": "take", "container": "open"}
        kind = kinds.get(one.entity_type, "activate")
        return self._act("interact", journal, entity_id=one.entity_id, interaction_type=kind)

    def _get(self, name: str) -> Action | None:
        """Return the next step to get a thing: pick it up, take it from a creature, or buy it."""
        seen, notes = self._seen, self.notes
        self._why = f"I need {name}."
        word = name.split(" ")[0]
        for one in sorted(seen.nearby_entities, key=lambda one: one.distance):
            if one.entity_type == "item" and one.name == name:
                return self._touch(one, self._on("interact"))
            if one.name.startswith("Dead ") and word in one.name and notes.shut.get(one.entity_id, 0) < 1:
                return self._touch(one, self._loot)
            if one.entity_type == "creature" and word in one.name:
                return self._touch(one, self._on("combat_action", "target_entity_id", action_type="attack"))
        lies = notes.where.get(name)
        if lies is not None and lies.kind == "item":
            return self._toward(lies.place, lies)
        if sold := self._buy(name):
            return sold
        for other, known in notes.where.items():
            if known.kind == "creature" and word in other.split(" "):
                return self._toward(known.place, known) or self._wander()
        return self._wander()

    def _buy(self, name: str) -> Action | None:
        """Return the next step to buy a thing, or to find somebody who may know where."""
        seen, notes = self._seen, self.notes
        if name in notes.wares:
            return self._shop() if notes.wares[name] <= seen.inventory_summary.gold else self._wander()
        if notes.trader and not notes.wares:
            return self._shop()
        if name in notes.sold:
            return self._act("wait", f"{name} is sold out; perhaps there is more in the morning.", duration_seconds=600)
        if notes.trader:
            return None
        for stranger, known in notes.where.items():
            if known.kind == "npc" and stranger not in notes.asked:
                return self._news() or self._toward(known.place, known)
        return None

    def _shop(self) -> Action | None:
        known = self.notes.where.get(self.notes.trader)
        if known is None:
            return self._wander()
        if self._seen.environment.time_of_day == "night" and known.place != self.notes.here:
            return self._act("wait", "The shop opens in the morning.", duration_seconds=200)
        talk = self._seen.dialogue
        if talk is not None and TRADE not in talk.topics and name_of(self._seen, talk.entity_id) == self.notes.trader:
            return self._act("wait", "The shop opens in the morning.", duration_seconds=200)
        return self._talk(self.notes.trader, known.place, TRADE)

    def _loot(self, one: NearbyEntity) -> Action:
        self.notes.shut[one.entity_id] = self.notes.shut.get(one.entity_id, 0) + 1
        return self._act("interact", "", entity_id=one.entity_id, interaction_type="loot")

    # --- what it carries and says ------------------------------------------------------------------

    def _say(self, talk: OpenDialogue, why: str, **params: JsonValue) -> Action:
        return self._act("answer" if "choice_idx" in params else "dialogue", why, entity_id=talk.entity_id, **params)

    def _carried(self, words: Sequence[str]) -> str | None:
        """Return the item in the inventory that matches the earliest of these words."""
        for word in words:
            for item in self._seen.inventory or ():
                if word in item.name.lower():
                    return item.item_id
        return None

    def _id(self, name: str) -> str | None:
        return next((i.item_id for i in self._seen.inventory or () if i.name.lower() == name.lower()), None)

    def _count(self, name: str) -> int:
        return sum(item.count for item in self._seen.inventory or () if item.name == name)

    def _liking(self, who: str) -> int | None:
        return next((one.disposition for one in self._seen.nearby_entities if one.name == who), None)

    # --- state ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return its notes."""
        return _NOTES.dump_json(self.notes)  # keeps the order of its tables, by which it decides

    def restore(self, data: bytes) -> None:
        """Restore its notes; `SnapshotError` if the data is damaged: nothing has changed."""
        try:
            self.notes = _NOTES.validate_json(data)
        except ValidationError as error:
            raise SnapshotError(f"The wayfarer's snapshot is damaged: {error_line(error, 200)}.") from error

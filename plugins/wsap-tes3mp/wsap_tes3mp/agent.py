"""An agent that plays `morrowind` by rules, from perceptions alone: it asks around, and does what its quests say.

It is no part of the world, and knows no engine. It knows how such games work: doors lead to the place in their name,
gifts make friends, a journal says what to do next, and better weapons help. Everything else it reads and remembers.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from pydantic import ValidationError

from wsap_core.errors import SnapshotError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_core.protocol.values import JsonValue
from wsap_tes3mp.protocol.perception import NearbyEntity, OpenDialogue, PerceptionOutput

REACH = 3.0
FRIEND = 60
LOCKED = 100
"""How often a door counts as shut that says so itself."""
RUN_FROM = 35
"""Percent of health below which it heals before anything else."""
_SWEEP = (
    (15, 15),
    (45, 15),
    (75, 15),
    (105, 15),
    (130, 15),
    (130, 45),
    (105, 45),
    (75, 45),
    (45, 45),
    (15, 45),
    (30, 30),
)
_RUMOUR = re.compile(r"(?:^|[.:!?] )([^.:!?]+?) at (?:the )?([^.]+?) asks for help with ([^.]+)\.", re.I)
_LIKES = re.compile(r"I am ([^,.]+), .*nothing does it like an? ([^.]+)\.")
_READ = re.compile(r"Read the (.+?) in the (.+?)[,.]")
_TALK = re.compile(r"Talk to (.+?) (?:at|in) (?:the )?([^,]+?)(?:, off [^,]+,)? about ([^,.]+?)(?:,| and|\.|$)")
_KEY = re.compile(r"(?:^|: )([^:]+?) at (?:the )?(.+?) gives friends the (.+?): bring gifts, then ask about ([^.]+)")
_TAKE = re.compile(r"Take the (?:heavy )?(.+?) from the (.+?) in the (.+?)[,.]")
_USE = re.compile(r"Use the (.+?) on (?:the )?(.+?) (?:in|at) (?:the )?(.+?)(?:\.|$)")
_BRING = re.compile(r"Bring (.+?) an? (.+?), an? (.+?) and an? (.+?), then talk about ([^:]+)")
_BUY, _SELL = re.compile(r"Buy (.+) for (\d+) gold"), re.compile(r"Sell (.+) for (\d+) gold")
_GOOD = ("i will", "promise", "forgive", "i keep")
_BAD = ("gold", "pay", "break", "have the", "it was", "pass", "themselves", "yes. give")
_ARMS = ("cutlass", "sword", "gaff", "spear", "axe", "club", "dagger")
_ARMOUR = ("vest", "mail", "coat", "cuirass")
_CURES = ("salve", "potion", "eel", "bread")
_TRADE, _SELF = "trade", "yourself"


@dataclass
class Notes:
    """What it remembers."""

    doors: dict[str, dict[str, str]] = field(default_factory=dict)
    """Place -> the place behind a door -> the door."""
    where: dict[str, list[JsonValue]] = field(default_factory=dict)
    """Who or what -> the place, and where it stood when it saw it from nearest: x, y, distance."""
    likes: dict[str, str] = field(default_factory=dict)
    """Somebody -> the gift."""
    wares: dict[str, int] = field(default_factory=dict)
    """What a trader sells -> the price."""
    trader: str = ""
    rumours: dict[str, list[str]] = field(default_factory=dict)
    """Topic -> who asks for help with it, and the place."""
    asked: list[str] = field(default_factory=list)
    """Who was asked for news, and about themselves."""
    sweep: dict[str, int] = field(default_factory=dict)
    """Place -> how many of the points to look around from it has been at."""
    shut: dict[str, int] = field(default_factory=dict)
    """Door -> how often it did not open."""
    here: str = ""
    tried: str = ""
    """The place, and the door that it tried last."""
    last: str = ""
    same: int = 0
    """The last action with what was seen, and how often it came to nothing."""


class Wayfarer:
    """Plays by rules."""

    def __init__(self) -> None:
        self.notes = Notes()
        self._seen: PerceptionOutput
        self._why = ""

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Begin without notes."""
        self.notes = Notes()

    def reflect(self, result: ActionResult) -> None:
        """Learn nothing: the next perception shows what came of it."""

    def plan(self, goals: list[Goal]) -> list[str]:
        """Return what it always does."""
        return ["ask people for news", "do what the journal says", "make friends, stay alive"]

    def decide(self, observation: Observation) -> Action:
        """Return what the perception in an observation suggests; let a beat pass where there is none."""
        perception = getattr(observation, "perception", None)
        return self.act_on(PerceptionOutput.model_validate(perception)) if perception else Action("noop")

    def act_on(self, seen: PerceptionOutput) -> Action:
        """Return what to do by a perception."""
        self._seen, self._why = seen, ""
        self._learn()
        action = next(filter(None, self._wishes()), Action("wait", {"duration_seconds": 60}))
        mark = json.dumps(
            [
                action.name,
                dict(action.parameters),
                seen.location.model_dump(),
                len(seen.inventory or ()),
                str(seen.dialogue),
            ]
        )
        self.notes.same = self.notes.same + 1 if mark == self.notes.last else 0
        self.notes.last = mark
        if self.notes.same >= 3:
            self.notes.same = 0
            action = self._wander() or action
        return Action(action.name, action.parameters, self._why or "Nothing else to do.")

    # --- what it learns ---------------------------------------------------------------------------

    def _learn(self) -> None:
        seen, notes = self._seen, self.notes
        here = place_of(seen.location.cell)
        if here != notes.here:
            notes.shut.pop(notes.tried, None)
            notes.here, notes.tried = here, ""
        doors = notes.doors.setdefault(here, {})
        for one in seen.nearby_entities:
            if one.entity_type == "door":
                doors[place_of(re.sub(r"^.*? to ", "", one.name))] = one.entity_id
                if "(locked)" in one.name:
                    notes.shut.setdefault(one.entity_id, LOCKED)
            known = notes.where.get(one.name)
            if known is None or known[0] != here or one.distance < float(known[3]):
                notes.where[one.name] = [here, seen.location.x, seen.location.y, one.distance]
        for name, known in list(notes.where.items()):
            gone = known[0] == here and float(known[3]) < 20 and self._away_from(known) < 10
            if gone and not any(one.name == name for one in seen.nearby_entities):
                del notes.where[name]
        talk = seen.dialogue
        if talk is None:
            return
        for who, where, topic in _RUMOUR.findall(talk.text):
            notes.rumours[topic.strip()] = [who.removeprefix("People say: ").strip(), place_of(where)]
        if found := _LIKES.search(talk.text):
            notes.likes[found[1]] = found[2]
        if _TRADE in talk.topics:
            notes.trader = self._name(talk.entity_id)
        offers = [_BUY.fullmatch(choice) for choice in talk.choices]
        if any(offers):
            notes.wares = {offer[1]: int(offer[2]) for offer in offers if offer}

    def _away_from(self, known: Sequence[JsonValue]) -> float:
        x, y = self._seen.location.x - float(known[1]), self._seen.location.y - float(known[2])
        return float((x * x + y * y) ** 0.5)

    def _name(self, entity_id: str) -> str:
        return next((one.name for one in self._seen.nearby_entities if one.entity_id == entity_id), "")

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

    def _survive(self) -> Action | None:
        seen = self._seen
        percent = 100 * seen.health.current / seen.health.max
        foes = [one for one in self._foes() if one.distance < 12]
        if percent < (RUN_FROM if foes else 70) and (
            cure := self._carried(_CURES if percent < 60 else ("bread", "eel"))
        ):
            return self._act("use_item", "I am hurt.", item_id=cure)
        near = [one for one in foes if one.distance <= REACH]
        if near and seen.environment.is_combat:
            return self._act("combat_action", "It attacks.", action_type="attack", target_entity_id=near[0].entity_id)
        if not foes and percent < 60:
            return self._act("wait", "I rest.", duration_seconds=120)
        return None

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
        if self._seen.inventory_summary.encumbrance_pct <= 1:
            return None
        heavy = self._carried(("anchor", "ballast", "rope", "hide", "club", "gaff", "coat", "cutlass"))
        return self._act("interact", "I carry too much.", entity_id=heavy, interaction_type="drop") if heavy else None

    # --- dialogue ---------------------------------------------------------------------------------

    def _answer(self, talk: OpenDialogue) -> Action | None:
        if any(_BUY.fullmatch(choice) or _SELL.fullmatch(choice) for choice in talk.choices):
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
        for index, choice in enumerate(talk.choices):
            if (offer := _SELL.fullmatch(choice)) and (
                "Hide" in offer[1] or "Rope" in offer[1] or "Anchor" in offer[1]
            ):
                return self._say(talk, "I have no use for it.", choice_idx=index)
        return self._say(talk, "I have what I need.", choice_idx=len(talk.choices) - 1)

    def _shopping(self) -> Iterator[str]:
        for quest in self._seen.active_quests:
            if found := _BRING.search(quest.name):
                yield from (name for name in found.groups()[1:4] if not self._has(name))
            if (found := _KEY.search(quest.name)) and (gift := self.notes.likes.get(found[1])):
                missing = -(-(FRIEND - (self._liking(found[1]) or 45)) // 12)
                if self._count(gift) < missing:
                    yield gift
        if self._seen.inventory_summary.gold >= 60:
            yield from ("Old Cutlass", "Green Salve") if self._count("Green Salve") < 2 else ("Old Cutlass",)

    def _ask_on(self, talk: OpenDialogue | None) -> Action | None:
        """Ask whoever it talks to what everybody can be asked once."""
        if talk is None or talk.choices:
            return None
        name = self._name(talk.entity_id)
        if _SELF in talk.topics and name and name not in self.notes.likes and f"{name}/{_SELF}" not in self.notes.asked:
            self.notes.asked.append(f"{name}/{_SELF}")
            return self._say(talk, "Who are you?", topic=_SELF)
        return None

    def _talk(self, who: str, where: str, topic: str) -> Action | None:
        """Go and talk with somebody about a topic; with gifts, where they do not talk about it yet."""
        self._why = self._why or f"I want to ask {who} about {topic}."
        talk = self._seen.dialogue
        if talk is not None and self._name(talk.entity_id) == who:
            if topic in talk.topics:
                return self._say(talk, f"{who} knows about {topic}.", topic=topic)
            return self._befriend(who)
        return self._at(
            who, where, lambda one: self._act("interact", "", entity_id=one.entity_id, interaction_type="talk")
        )

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
                if one.distance > REACH:
                    return self._act("move_to", f"Perhaps {one.name} has news.", target_entity_id=one.entity_id)
                self.notes.asked.append(one.name)
                return self._act("interact", "Any news?", entity_id=one.entity_id, interaction_type="talk")
        return None

    # --- quests -----------------------------------------------------------------------------------

    def _follow(self, journal: str) -> Action | None:
        """Return the next step of what a quest's entry says."""
        self._why = journal
        if found := _READ.search(journal):
            return self._handle(found[1], found[2], "read")
        if found := _BRING.search(journal):
            who, *things, topic = found.groups()
            for name in things:
                if not self._has(name):
                    return self._get(name)
            known = self.notes.where.get(who)
            return self._talk(who, str(known[0]), topic.strip()) if known else self._wander()
        if found := _KEY.search(journal):
            return self._make_friend(found[1], place_of(found[2]), found[4].strip())
        if found := _TAKE.search(journal):
            return self._handle(found[2], found[3], "open")
        if found := _USE.search(journal):
            item = self._id(found[1])
            if item is None:
                return self._get(found[1])
            return self._at(
                found[2],
                place_of(found[3]),
                lambda one: self._act("use_item", "", item_id=item, target_entity_id=one.entity_id),
            )
        if found := _TALK.search(journal):
            return self._talk(found[1], place_of(found[2]), found[3].strip())
        return None

    def _make_friend(self, who: str, where: str, topic: str) -> Action | None:
        gift, liking = self.notes.likes.get(who), self._liking(who)
        if gift is not None and (liking or 0) < FRIEND and not self._has(gift):
            return self._get(gift)
        return self._talk(who, where, topic)

    def _handle(self, name: str, where: str, how: str) -> Action | None:
        return self._at(
            name, place_of(where), lambda one: self._act("interact", "", entity_id=one.entity_id, interaction_type=how)
        )

    def _get(self, name: str) -> Action | None:
        """Return the next step to a thing: one that lies about, one that a creature has, or one that is sold."""
        seen, notes = self._seen, self.notes
        self._why = f"I need {name}."
        word = name.split(" ")[0]
        for one in sorted(seen.nearby_entities, key=lambda one: one.distance):
            if one.entity_type == "item" and one.name == name:
                return self._touch(one, lambda one: self._act("interact", "", entity_id=one.entity_id))
            if one.entity_type == "creature" and word in one.name:
                if one.name.startswith("Dead"):
                    if notes.shut.get(one.entity_id, 0) < 2:
                        return self._touch(one, self._loot)
                    continue
                return self._touch(one, self._attack)
        if name in notes.wares and notes.wares[name] > seen.inventory_summary.gold:
            return self._wander()
        if notes.trader and (name in notes.wares or not notes.wares):
            return self._shop()
        for other, known in notes.where.items():
            if other == name or (word in other.split(" ") and not other.startswith("Dead")):
                return self._toward(str(known[0]), known)
        return self._wander()

    def _shop(self) -> Action | None:
        known = self.notes.where.get(self.notes.trader)
        if known is None:
            return self._wander()
        if self._seen.environment.time_of_day == "night" and known[0] != place_of(self._seen.location.cell):
            return self._act("wait", "The shop opens in the morning.", duration_seconds=200)
        return self._talk(self.notes.trader, str(known[0]), _TRADE)

    def _loot(self, one: NearbyEntity) -> Action:
        self.notes.shut[one.entity_id] = self.notes.shut.get(one.entity_id, 0) + 1
        return self._act("interact", "", entity_id=one.entity_id, interaction_type="loot")

    def _attack(self, one: NearbyEntity) -> Action:
        return self._act("combat_action", "", action_type="attack", target_entity_id=one.entity_id)

    # --- getting about ----------------------------------------------------------------------------

    def _at(self, name: str, where: str, do: Callable[[NearbyEntity], Action | None]) -> Action | None:
        """Go to somebody or something in a place, and then do that."""
        for one in self._seen.nearby_entities:
            if one.name.lower() == name.lower():
                return self._touch(one, do)
        return self._toward(place_of(where), self.notes.where.get(name))

    def _touch(self, one: NearbyEntity, do: Callable[[NearbyEntity], Action | None]) -> Action | None:
        if one.distance > REACH:
            return self._act("move_to", "", target_entity_id=one.entity_id)
        return do(one)

    def _toward(self, where: str, known: Sequence[JsonValue] | None = None) -> Action | None:
        """Return the next step to a place, and within it to where something was seen."""
        here = place_of(self._seen.location.cell)
        if here == where:
            if known is not None and known[0] == here and self._away_from(known) > REACH:
                return self._act("move_to", "", target_x=float(known[1]), target_y=float(known[2]))
            return self._look_around()
        door = self._first_door(here, lambda place: place == where)
        return self._through(door) if door else self._wander()

    def _through(self, door: str) -> Action | None:
        for one in self._seen.nearby_entities:
            if one.entity_id == door:
                return self._touch(one, self._open)
        return self._look_around()

    def _open(self, one: NearbyEntity) -> Action:
        tried = self.notes.shut[one.entity_id] = self.notes.shut.get(one.entity_id, 0) + 1
        self.notes.tried = one.entity_id
        if tried % 3 == 0:
            return self._act("wait", "It is shut now.", duration_seconds=200)
        return self._act("interact", "", entity_id=one.entity_id, interaction_type="activate")

    def _first_door(self, here: str, wanted: Callable[[str], bool], shut: int = 10**6) -> str | None:
        """Return the first door of the shortest way to a place that is wanted, by none that was so often shut."""
        queue, met = deque[tuple[str, str]]([(here, "")]), {here}
        while queue:
            place, first = queue.popleft()
            for behind, door in self.notes.doors.get(place, {}).items():
                if behind in met or self.notes.shut.get(door, 0) >= shut:
                    continue
                if wanted(behind):
                    return first or door
                met.add(behind)
                queue.append((behind, first or door))
        return None

    def _look_around(self) -> Action | None:
        here = place_of(self._seen.location.cell)
        if self._seen.location.interior:
            return None
        index = self.notes.sweep[here] = self.notes.sweep.get(here, -1) + 1
        x, y = _SWEEP[index % len(_SWEEP)]
        return self._act("move_to", self._why or "I look around.", target_x=x, target_y=y)

    def _wander(self) -> Action | None:
        """Go where it has not been, or look around outside."""
        here = place_of(self._seen.location.cell)
        new = self._first_door(here, lambda place: place not in self.notes.doors, shut=2)
        if new:
            return self._through(new)
        around = self._look_around()
        outside = self._first_door(here, lambda place: place in self.notes.sweep or "causeway" in place)
        if around is None or (self.notes.sweep.get(here, 0) % len(_SWEEP) == 0 and outside):
            return self._through(outside) if outside else around
        return around

    # --- actions ----------------------------------------------------------------------------------

    def _act(self, name: str, why: str, **params: JsonValue) -> Action:
        self._why = why or self._why
        return Action(name, params)

    def _say(self, talk: OpenDialogue, why: str, **params: JsonValue) -> Action:
        return self._act("dialogue", why, entity_id=talk.entity_id, **params)

    def _carried(self, words: Sequence[str]) -> str | None:
        """Return the item in the inventory whose name has the first of these words that any has."""
        for word in words:
            for item in self._seen.inventory or ():
                if word in item.name.lower():
                    return item.item_id
        return None

    def _id(self, name: str) -> str | None:
        return next((i.item_id for i in self._seen.inventory or () if i.name.lower() == name.lower()), None)

    def _has(self, name: str) -> bool:
        return self._id(name) is not None

    def _count(self, name: str) -> int:
        return sum(item.count for item in self._seen.inventory or () if item.name == name)

    def _liking(self, who: str) -> int | None:
        return next((one.disposition for one in self._seen.nearby_entities if one.name == who), None)

    # --- state ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return its notes."""
        return json.dumps(asdict(self.notes), sort_keys=True).encode()

    def restore(self, data: bytes) -> None:
        """Take notes back.

        Raises:
            SnapshotError: the data is damaged; nothing has changed.
        """
        try:
            notes = json.loads(data)
            self.notes = Notes(**notes)
        except (ValueError, TypeError, ValidationError) as error:
            raise SnapshotError(f"The wayfarer's snapshot is damaged: {error}.") from error


def place_of(name: str) -> str:
    """Return a place's name for comparison: in lower case, without article and remarks."""
    return re.sub(r"\s*\(.*?\)", "", name).strip().lower().removeprefix("the ")

"""One agent in the world: its body, what it perceives, and its actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from pydantic import TypeAdapter

from wsap_core import protocol as wsap
from wsap_core.authoring.body import Body, Session
from wsap_core.authoring.grid import chart
from wsap_core.authoring.item_ledger import ItemLedger
from wsap_core.authoring.packing import Count
from wsap_core.protocol import Action, ActionResult, AvatarState, Event
from wsap_core.protocol.spatial import entity_line
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.views import Block, TableBlock, View
from wsap_core.untrusted import sanitize
from wsap_core.worlds.legality import check_action
from wsap_starbound.catalogue import GAME_ID, TRANSFER_RULES
from wsap_starbound.data import items
from wsap_starbound.engine.being import MOST_HEALTH, Being
from wsap_starbound.engine.physics import standing
from wsap_starbound.engine.place import LAVA
from wsap_starbound.engine.universe import Universe, spilled
from wsap_starbound.rules.base import Outcome, enemies
from wsap_starbound.rules.table import RULES
from wsap_starbound.world.actions import DECLARED, availability
from wsap_starbound.world.items import write_off
from wsap_starbound.world.observation import StarboundObservation, legend, observation_of

STAGE, QUEST, FEAT, DEATH = 0.5, 5.0, 0.2, -2.0
"""Rewards for a stage of a quest, a finished quest, a new achievement, and death."""
_ASLEEP = "nobody is in the body; jack in first"
_GESTURES = frozenset(wsap.AVATAR_ACTIONS.names)
_EPISODE = TypeAdapter(tuple[Count, str, str, str | None])


class Player:
    """One agent's seat in the world. `world` returns the current universe, which changes with each episode."""

    def __init__(self, world: Callable[[], Universe], agent_id: str, number: int, limits: tuple[int, int]) -> None:
        self.world = world
        self.agent_id = agent_id
        self.former: tuple[str, ...] = ()
        """Ids of its earlier bodies."""
        self.terms: dict[str, str] = {}
        """Where and with what a body begins, if not as usual: `spawn`, `loadout`."""
        self.items = ItemLedger()
        self.gifts: Counter[str] = Counter()
        """First things and bonuses, which stay with the body."""
        self._length, self._quests = limits
        self.begin(Body(number=number, owner=agent_id, name=agent_id))

    def begin(self, body: Body) -> None:
        """Start an episode in a body."""
        self.body = body
        self.session = Session()
        self.steps, self.over = 0, ""
        self.death: tuple[str, str | None] = ("", None)
        self.dropped: dict[str, int] = {}
        self.events: tuple[Event, ...] = ()
        self._seen: StarboundObservation | None = None

    def enter(self) -> None:
        """Put a new body into the world."""
        being = self.world().join(self.agent_id, **self.terms)
        self.gifts = Counter(being.bag)
        self.changed()

    @property
    def being(self) -> Being:
        """The body in the world."""
        return self.world().beings[self.agent_id]

    @property
    def away(self) -> bool:
        """Whether no agent is in the body."""
        return self.body.state not in (AvatarState.UNBOUND, AvatarState.BOUND)

    def changed(self) -> None:
        """Forget the last observation."""
        self._seen = None
        self.world().sights.clear()

    # --- perceiving -------------------------------------------------------------------------------

    def observe(self) -> StarboundObservation:
        """Return what the body perceives now."""
        if self._seen is None:
            over = self.over or (_ASLEEP if self.away else "")
            actions = availability(self.world(), self.being, over)
            self._seen = observation_of(self.world(), self.being, self.avatar(), actions, self.events, self.steps)
        return self._seen

    def avatar(self) -> wsap.Avatar:
        """Return the body."""
        being = self.being
        bed = being.bed
        return self.body.avatar(
            GAME_ID,
            self.steps,
            position=(being.x, being.y),
            health=being.health,
            max_health=MOST_HEALTH,
            inventory=dict(being.bag),
            equipment={
                **{f"slot {number}": item for number, item in enumerate(being.slots, 1) if item},
                **{f"skill {number}": ability for number, ability in enumerate(being.abilities, 1)},
            },
            respawn_point=None if bed is None else bed[1:],
        )

    def danger(self) -> str:
        """Return why the agent must not leave the body now; empty if it may."""
        being, world = self.being, self.world()
        place = world.where(being)
        if being.in_fight() or enemies(world, being, 8):
            return "you are in a fight, or a hostile creature is near"
        if not standing(place, being):
            return "you are falling"
        if LAVA in (place.at(being.x, being.y), place.at(being.x, being.y + 1)):
            return "you are in lava"
        return "" if being.breath == 40 else "you are out of breath"

    def render(self) -> View:
        """Return a drawing of what the body perceives."""
        seen = self.observe()
        drawn = chart(seen.local_map, legend(), seen.location.description)
        rows = [(items()[name].name, str(count)) for name, count in sorted(seen.inventory.items())]
        blocks: list[Block] = [*drawn.blocks, TableBlock(("item", "count"), rows, "Bag")]
        return View(blocks, f"{seen.location.description}, health {seen.status['health']}")

    # --- acting -----------------------------------------------------------------------------------

    def act(self, action: Action) -> ActionResult:
        """Carry out an action, or refuse it with its reason and without a change."""
        if self.over:
            return self._say(f"The episode is over: {self.over}.")
        if self.away:
            return self._say(f"That does not work: {_ASLEEP}.")
        if action.name in _GESTURES and action.name not in DECLARED:
            return self._gesture(action)
        action, why = check_action(action, DECLARED)
        offer = why or RULES[action.name].offer(self.world(), self.being)
        if why := offer if isinstance(offer, str) else "":
            return self._say(f"That does not work: {why}.".replace("..", "."))
        before = self.world().beat, self.being.beats
        held = Counter(spilled(self.being))
        self.changed()
        outcome = RULES[action.name].do(self.world(), self.being, action.parameters)
        if not outcome.success and before == (self.world().beat, self.being.beats):
            return self._say(outcome.message)
        self.steps += 1
        return self._result(outcome, held)

    def _result(self, outcome: Outcome, held: Counter[str]) -> ActionResult:
        being, world = self.being, self.world()
        reward, feats = self._progress(outcome)
        told = world.news.get(self.agent_id, [])
        world.news[self.agent_id] = []
        events = [Event(text, kind, None, self.steps) for text, kind in told]
        write_off(self.items, self.body.avatar_id, being, "used up, given away or left behind")
        message = outcome.message
        if not being.alive:
            reward += DEATH
            self.dropped = dict(held)
            self.perish()
            events.append(Event(f"You died: {self.death[0]}.", "death", self.death[1], self.steps))
            message += f" You died: {self.death[0]}."
        elif self._quests and len(being.done) >= self._quests:
            self.over = f"{len(being.done)} quests are finished"
        late = not self.over and bool(self._length) and self.steps >= self._length
        if late:
            self.over = f"{self._length} actions were taken"
        self.events = tuple(events)
        self.changed()
        seen = self.observe()
        result = ActionResult(outcome.success, message, round(reward, 6), feats, bool(self.over), seen, truncated=late)
        self.session.add(result)
        return result

    def _progress(self, outcome: Outcome) -> tuple[float, list[str]]:
        being = self.being
        feats = [deed for deed in dict.fromkeys(outcome.deeds) if deed not in being.feats]
        stages = [stage for stage in dict.fromkeys(outcome.stages) if stage not in being.stages]
        quests = [quest for quest in outcome.quests if quest not in being.done]
        being.feats += feats
        being.stages += stages
        being.done += quests
        return FEAT * len(feats) + STAGE * len(stages) + QUEST * len(quests), feats

    def perish(self) -> None:
        """Note that the body is dead, and end the episode until it is brought back."""
        being = self.being
        self.death = (being.cause or "unknown", being.killer or None)
        self.over = "you are dead"
        self.body = replace(self.body, state=AvatarState.DESTROYED, deaths=self.body.deaths + 1)
        write_off(self.items, self.body.avatar_id, being, "left behind when the avatar died")
        self.changed()

    def look_after(self) -> None:
        """Note a death that came while another agent acted."""
        if not self.being.alive and self.body.state is not AvatarState.DESTROYED:
            self.perish()

    def _gesture(self, action: Action) -> ActionResult:
        if action.name == "emote":
            return self._say("This body has no gestures.")
        if action.name != "look":
            return self._say(f"The runtime carries out {action.name}; it is not a step of the game.")
        target, seen = str(action.parameters.get("target") or ""), self.observe().nearby_entities
        lines = [entity_line(one) for one in seen if not target or target in entity_line(one)]
        return self._say("; ".join(lines) or f"There is nothing of note ({sanitize(target, 60)}).", success=True)

    def _say(self, message: str, *, success: bool = False) -> ActionResult:
        return ActionResult(success, message, done=bool(self.over), observation=self.observe())

    # --- as data ----------------------------------------------------------------------------------

    def to_json(self) -> JsonValue:
        """Return the state as JSON-ready data."""
        return {
            "body": self.body.to_json(),
            "former": list(self.former),
            "terms": dict(self.terms),
            "items": self.items.to_json(),
            "gifts": dict(self.gifts),
            "session": self.session.to_json(),
            "episode": [self.steps, self.over, *self.death],
            "dropped": dict(self.dropped),
            "events": [[event.description, event.type, event.source, event.step] for event in self.events],
        }

    def load_json(self, data: JsonValue) -> None:
        """Restore the state of `to_json` from untrusted data; raises one of `WRONG_DATA` if it is invalid."""
        self.begin(Body.from_json(data["body"]))
        self.former = tuple(str(one) for one in data["former"])
        self.terms = {name: str(data["terms"][name]) for name in ("spawn", "loadout") if name in data["terms"]}
        self.items.load_json(data["items"], {rule.id for rule in TRANSFER_RULES})
        counts = TypeAdapter(dict[str, Count])
        self.gifts, self.dropped = (
            Counter(counts.validate_python(data["gifts"])),
            counts.validate_python(data["dropped"]),
        )
        self.session = Session.from_json(data["session"])
        self.steps, self.over, cause, killer = _EPISODE.validate_python(data["episode"])
        self.death = (cause, killer)
        rows = TypeAdapter(list[tuple[str, str, str | None, int | None]]).validate_python(data["events"])
        self.events = tuple(Event(*row) for row in rows)

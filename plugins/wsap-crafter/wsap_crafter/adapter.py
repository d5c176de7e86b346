"""Crafter as a world of the protocol, with one seat and one body, in text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import override

from wsap_core.authoring.body import Body, Session
from wsap_core.authoring.item_ledger import Refused
from wsap_core.authoring.one_body import OneBodyGame
from wsap_core.protocol import (
    Action,
    ActionResult,
    AvatarState,
    Bonus,
    DeathEvent,
    Event,
    GridMapBlock,
    ImageBlock,
    JackOutResult,
    PortableItem,
    View,
)
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context
from wsap_core.seams.options import read_option
from wsap_crafter.body import CAUSES, GAME_ID, MAX_HEALTH, NEW_WORLD, equipment_of, unsafe_reason
from wsap_crafter.catalogue import ACHIEVEMENTS, PORTABLE, TRANSFER_RULES
from wsap_crafter.dormancy import sleep_through
from wsap_crafter.items import MOST, dump_items, item_of, load_items, own_things, thing_of, write_off_used
from wsap_crafter.perception.frames import FramePainter
from wsap_crafter.perception.gestures import gesture
from wsap_crafter.perception.narration import note_before, tell_action, tell_step
from wsap_crafter.perception.observation import NOTHING, CrafterObservation, Happenings, build_observation, carried
from wsap_crafter.plugin import OPTIONS
from wsap_crafter.rules import ACTION_SPACE, GAME_ACTIONS, Situation, availability, in_the_open, situation_of
from wsap_crafter.simulation.engine import CrafterEngine
from wsap_crafter.simulation.sight import WORDS, Sight, ground_table, look_around
from wsap_crafter.snapshot import MAGIC, dump_engine, dump_happenings, load_engine, load_happenings

_NUMBER = {name: number for number, name in enumerate(GAME_ACTIONS)}
_NAMES = frozenset(a.name for a in ACHIEVEMENTS)
_SOURCES = {death: source for source, death in CAUSES.items()}


class CrafterAdapter(OneBodyGame):
    """One Crafter world and its player.

    Configuration (`context.config`): `length`, the steps of an episode (10000; 0 for no limit), `frame_size`, the width
    and height of frames in pixels (360; 0 for no frames), and `longest_sleep`, the maximum number of steps that pass
    while the agent is away (300, a day). Raises ConfigError if one is not a whole number in its range.
    """

    game_id = GAME_ID
    action_space = ACTION_SPACE
    transfer_rules = TRANSFER_RULES
    way_back = NEW_WORLD
    headers = (MAGIC,)

    def __init__(self, context: Context | None = None) -> None:
        super().__init__()
        context = context or Context()
        given = {known.name: context.config.get(known.name, known.default) for known in OPTIONS}
        length, self._frame_size, self._longest_sleep = (read_option(known, given[known.name]) for known in OPTIONS)
        self._engine = CrafterEngine(context.seed, length)
        self._painter: FramePainter | None = None
        self._characters = ground_table(self._engine.world)
        self._happenings = NOTHING
        self._sight: Sight
        self._situation: Situation
        self._observation: CrafterObservation
        self.reset(context.seed)

    @property
    def game_description(self) -> str:
        """The rules of the game as text."""
        # Deferred: needed once a session, and not by scores and benchmarks.
        from wsap_crafter.perception.description import DESCRIPTION

        return DESCRIPTION

    # --- play ---------------------------------------------------------------------------------

    @override
    def begin(self, seed: int | None) -> None:
        """Start an episode; the first world of a seed is that of `crafter.Env(seed=seed)`."""
        self.items.lose_all(self.body.avatar_id, "lost when the episode ended and another world began")
        self.gifts.clear()
        self._engine.reset(seed)
        self._perceive(NOTHING)

    @override
    def play(self, action: Action) -> ActionResult:
        """Execute one of the 17 actions as one step of the game. An impossible action takes a step too, as in the game,
        and is reported with `success=False` and the reason."""
        engine, name = self._engine, action.name
        player = engine.player
        possible = availability(self._situation)[_NUMBER[name]]
        before = note_before(player, self._sight, self._situation.facing)
        report = engine.step(name)
        happenings = tell_step(report, before, player, engine.steps)
        self._advance(happenings.events)
        if self.items.kept:
            write_off_used(self.items, self.body.avatar_id, player.inventory)
        observation = self._perceive(happenings)
        if possible.available:
            message = tell_action(name, before, player)
        else:
            message = f"Nothing came of {name}: {possible.reason}."
        deaths = [event.description for event in happenings.events if event.type == "death"]
        message = " ".join([message, *deaths])
        late = engine.late and not engine.dead
        return ActionResult(
            *(possible.available, message, report.reward, report.unlocked, self.done, observation), truncated=late
        )

    @override
    def observe(self) -> CrafterObservation:
        return self._observation

    @override
    def changed(self) -> None:
        self._perceive(self._happenings)

    @override
    def gesture(self, action: Action) -> tuple[bool, str]:
        return gesture(action, self._observation)

    def _advance(self, events: Sequence[Event]) -> None:
        """Update steps and end of the episode from the engine, and the body's death from the last of these events."""
        self.steps, self.done = self._engine.steps, self._engine.done
        if self._engine.dead:
            sources = [event.source for event in events if event.type in ("damage", "death")]
            source = (sources[-1] if sources else None) or "unknown"
            self.die(*CAUSES.get(source, (source, None)))
            self.gifts.clear()

    def _perceive(self, happenings: Happenings) -> CrafterObservation:
        engine, player = self._engine, self._engine.player
        self._happenings = happenings
        self._sight = look_around(engine.world, player, self._characters)
        self._situation = situation_of(player, self._sight)
        items = carried(self._situation.items)
        x, y = player.pos.tolist()
        avatar = self.body.avatar(
            GAME_ID,
            engine.steps,
            position=(x, y),
            health=player.inventory["health"],
            max_health=MAX_HEALTH,
            inventory=items,
            equipment=equipment_of(items),
        )
        self._observation = build_observation(engine, self._sight, self._situation, items, avatar, happenings)
        return self._observation

    # --- the body -----------------------------------------------------------------------------

    @override
    def danger(self) -> str:
        return unsafe_reason(self._observation, self._sight)

    @override
    def jack_out(self, agent_id: str, mode: str = "dormant", *, force: bool = False) -> JackOutResult:
        left = super().jack_out(agent_id, mode, force=force)
        if left.success and left.avatar_state is AvatarState.DORMANT and in_the_open(self._situation):
            message = f"{left.message[:-1]}, in the open: creatures can reach it while it sleeps."
            return replace(left, message=message)
        return left

    @override
    def sleep(self, steps: int) -> list[str]:
        engine = self._engine
        sleep = sleep_through(engine, min(steps, self._longest_sleep))
        if not sleep.steps:
            return []
        notes = [f"Your body slept for {sleep.steps} steps."]
        events = [Event(notes[0], "info", None, engine.steps), *sleep.wounds]
        if sleep.wounds:
            notes.append("Meanwhile: " + " ".join(wound.description for wound in sleep.wounds))
        if engine.dead:
            notes.append("It died in its sleep.")
            events.append(Event("You died in your sleep.", "death", sleep.wounds[-1].source, engine.steps))
        self._happenings = Happenings(tuple(events))
        self._advance(events)
        return notes

    @override
    def handle_death(self, avatar_id: str) -> DeathEvent:
        return replace(super().handle_death(avatar_id), items_dropped=dict(self._observation.inventory))

    # --- items --------------------------------------------------------------------------------

    @override
    def give(self, bonus: Bonus) -> dict[str, int]:
        inventory, name = self._engine.player.inventory, bonus.name
        amount = min(int(bonus.amount), MOST - inventory[name])
        if amount <= 0:
            return {}
        inventory[name] += amount
        if name in PORTABLE:
            self.gifts[name] += amount
        return {name: amount}

    @override
    def thing_for(self, item: PortableItem) -> str | Refused:
        inventory = self._engine.player.inventory
        thing = thing_of(item, inventory)
        if isinstance(thing, str):
            inventory[thing] += 1
        return thing

    @override
    def take_out(self) -> list[PortableItem]:
        inventory, kept = self._engine.player.inventory, self.items.count()
        own = own_things(inventory, kept, self.gifts)
        for thing in (*kept.elements(), *own):
            inventory[thing] -= 1
        return [item_of(thing) for thing in own]

    # --- rendering and snapshots --------------------------------------------------------------

    def render(self) -> View:
        """Return the game's picture and the map in characters, without changing the game."""
        seen = self._observation
        present = sorted(set("".join(seen.local_map)), key=list(WORDS).index)
        chart = GridMapBlock(seen.local_map, {character: WORDS[character] for character in present})
        if not self._frame_size:
            return View((chart,), "Crafter")
        if self._painter is None:
            self._painter = FramePainter(self._frame_size)
        frame = ImageBlock.from_png(
            self._painter.png(self._engine),
            width=self._frame_size,
            height=self._frame_size,
            alt=f"Crafter, step {seen.step}: {seen.location.description}",
        )
        return View((frame, chart), "Crafter")

    @override
    def to_json(self) -> dict[str, JsonValue]:
        record = {
            "body": self.body.to_json(),
            **dump_happenings(self._happenings),
            "death_cause": _SOURCES.get(self.death, self.death[0]),
            "session": self.session.to_json(),
        }
        ledger = dump_items(self.items, self.gifts)
        return {"engine": dump_engine(self._engine), "record": record, "ledger": ledger}

    @override
    def load_json(self, data: JsonValue) -> None:
        engine, record = load_engine(data["engine"]), data["record"]
        body, session = Body.from_json(record["body"]), Session.from_json(record["session"])
        happenings = load_happenings(record)
        if not _NAMES.issuperset(session.achievements):
            raise ValueError("an achievement of the session is unknown")
        cause = record["death_cause"]
        if not isinstance(cause, str):
            raise ValueError("the cause of death is not text")
        self.items, self.gifts = load_items(data["ledger"], engine.player.inventory)
        self._engine, self.body, self.session, self._happenings = engine, body, session, happenings
        self.steps, self.done, self.death = engine.steps, engine.done, CAUSES.get(cause, (cause, None))

"""Sentences about the outcome of an action and about events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from wsap_core.protocol import Event
from wsap_crafter.perception.observation import Happenings
from wsap_crafter.perception.telling import in_words
from wsap_crafter.rules import MOVES, faced_character, with_article
from wsap_crafter.simulation.daytime import turn_at
from wsap_crafter.simulation.engine import StepReport
from wsap_crafter.simulation.game import constants
from wsap_crafter.simulation.sight import HEIGHT, WIDTH, WORDS, Sight

_HIT = {"cow": "You hit the cow.", "zombie": "You hit the zombie.", "skeleton": "You hit the skeleton."}
_KILLS = {"cow": "eat_cow", "zombie": "defeat_zombie", "skeleton": "defeat_skeleton"}


class Before(NamedTuple):
    """The data before a step that is needed to describe the step."""

    position: tuple[int, int]
    faced: str
    """The map character in front."""
    sleeping: bool
    inventory: dict[str, int]
    achievements: dict[str, int]


def note_before(player: Any, sight: Sight, facing: str) -> Before:
    """Return the data before a step."""
    x, y = player.pos.tolist()
    return Before(
        (x, y),
        faced_character(sight.cells, facing),
        bool(player.sleeping),
        player.inventory.copy(),
        player.achievements.copy(),
    )


def tell_action(action: str, before: Before, player: Any) -> str:
    """Return a sentence about the effect of an available action."""
    if action == "noop":
        return "You sleep on." if before.sleeping and player.sleeping else "You wait."
    if action == "sleep":
        return "You sleep on." if before.sleeping else "You lie down to sleep."
    if action in MOVES:
        x, y = player.pos.tolist()
        moved = before.position != (x, y)
        return f"You walk {MOVES[action]}." if moved else f"You turn {MOVES[action]}; the way is blocked."
    if action == "do":
        return _tell_do(before, player)
    verb, _, thing = action.partition("_")
    if verb == "place":
        return "You plant a sapling." if thing == "plant" else f"You place {with_article(thing)}."
    return f"You make {with_article(thing.replace('_', ' '))}."


def _tell_do(before: Before, player: Any) -> str:
    faced, achievements = WORDS[before.faced], player.achievements
    if faced in _KILLS:
        goal = _KILLS[faced]
        if achievements[goal] == before.achievements[goal]:
            return _HIT[faced]
        return "You kill the cow and eat it." if faced == "cow" else f"You defeat the {faced}."
    if faced == "ripe plant":
        return "You eat the ripe plant."
    if faced == "water":
        return "You drink."
    rule = constants.collect[faced]
    (item,) = rule["receive"]
    if achievements[f"collect_{item}"] == before.achievements[f"collect_{item}"]:
        return "You search the grass and find nothing."
    return f"You collect 1 {item} and have {player.inventory[item]}."


def tell_step(report: StepReport, before: Before, player: Any, step: int) -> Happenings:
    """Return the events of a step and the damage by attacks."""
    events = tell_wounds(report, player, step)
    attacks = [(amount, source) for source, amount in report.wounds if source in _ATTACKS]
    damage, damage_from = sum(amount for amount, _ in attacks), max(attacks)[1] if attacks else None
    events.extend(Event(f"Achievement unlocked: {name}", "achievement", name, step) for name in report.unlocked)
    if before.sleeping and not player.sleeping:
        events.append(Event("You woke up.", "info", None, step))
    for place in report.lost_plants:
        events.extend(_lost_plant(place, player, step))
    if turn := turn_at(step):
        events.append(Event(turn, "world", None, step))
    if player.health <= 0:
        events.append(_death(events, step))
    return Happenings(tuple(events), damage, damage_from)


_DEATHS = {"zombie": ": a zombie killed you", "arrow": ": an arrow killed you", "lava": " in the lava"}


def _death(events: Sequence[Event], step: int) -> Event:
    """Return the event of a death, by the last wound among the events of its step."""
    source = next((event.source for event in reversed(events) if event.type == "damage"), None)
    how = "" if source is None else _DEATHS.get(source, f" of {source}")
    return Event(f"You died{how}.", "death", source, step)


def tell_wounds(report: StepReport, player: Any, step: int) -> list[Event]:
    """Return an event for each wound of a step, in order."""
    return [_wound(source, amount, player, step) for source, amount in report.wounds]


_ATTACKS = {"zombie": "A zombie hit you", "arrow": "An arrow hit you"}


def _wound(source: str, amount: int, player: Any, step: int) -> Event:
    if source in _ATTACKS:
        return Event(f"{_ATTACKS[source]} for {amount}.", "damage", source, step)
    if source == "lava":
        return Event("You stepped into lava.", "damage", "lava", step)
    want = want_of(player)
    return Event(f"You lose {amount} health to {want}.", "damage", want, step)


def want_of(player: Any) -> str:
    """Return why the player loses health: "hunger", "thirst", "exhaustion", or several."""
    lacks = {"hunger": "food", "thirst": "drink", "exhaustion": "energy"}
    found = [
        word
        for word, vital in lacks.items()
        if player.inventory[vital] <= 0 and not (vital == "energy" and player.sleeping)
    ]
    return " and ".join(found) or "want"


def _lost_plant(place: tuple[int, int], player: Any, step: int) -> list[Event]:
    x, y = player.pos.tolist()
    dx, dy = place[0] - x, place[1] - y
    if abs(dx) > WIDTH // 2 or abs(dy) > HEIGHT // 2:
        return []
    return [Event(f"The plant {in_words(dx, dy)} of you was destroyed.", "world", "plant", step)]

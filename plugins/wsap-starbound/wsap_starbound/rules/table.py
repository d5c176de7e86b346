"""All actions: what each does, and whether and with which words it is possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wsap_starbound.data import items
from wsap_starbound.engine.being import Being
from wsap_starbound.engine.universe import Universe
from wsap_starbound.rules import digging, fighting, handling, making, movement, travel
from wsap_starbound.rules.base import Choices, Outcome, Params, filled_slots

Offer = str | Choices
"""Why an action is impossible whatever its parameters, or the words to choose from; no words for all declared ones."""


@dataclass(frozen=True)
class Rule:
    """The rule of one action."""

    do: Callable[[Universe, Being, Params], Outcome]
    offer: Callable[[Universe, Being], Offer] = lambda world, being: {}


def _one(name: str, find: Callable[[Universe, Being], list[str]], none: str) -> Callable[[Universe, Being], Offer]:
    """Return an offer of one parameter with the words that `find` returns, or `none` as the reason without any."""

    def offer(world: Universe, being: Being) -> Offer:
        words = find(world, being)
        return {name: words} if words else none

    return offer


def _unless(why_not: Callable[[Universe, Being], str]) -> Callable[[Universe, Being], Offer]:
    return lambda world, being: why_not(world, being) or {}


def _dig(world: Universe, being: Being) -> Offer:
    cells = digging.diggable(world, being)
    if not cells:
        return "nothing that you can dig is within reach"
    columns, rows = sorted({dx for dx, _ in cells}), sorted({dy for _, dy in cells})
    return {"dx": [str(n) for n in columns], "dy": [str(n) for n in rows]}


def _place(world: Universe, being: Being) -> Offer:
    if not world.where(being).planet:
        return "the ship is no place to build"
    words = [str(n) for n, item in enumerate(being.slots, 1) if item and items()[item].tile]
    return {"slot": words} if words else "no slot has anything to place"


def _equip(world: Universe, being: Being) -> Offer:
    return {"item": sorted(being.bag)} if being.bag else "your bag is empty"


def _drop(world: Universe, being: Being) -> Offer:
    return handling.no_drop(world, being) or {"slot": filled_slots(being)}


def _give(world: Universe, being: Being) -> Offer:
    who, slots = handling.can_give(world, being), filled_slots(being)
    return {"target": who, "slot": slots} if who and slots else "nobody who takes things is within reach"


def _travel(world: Universe, being: Being) -> Offer:
    return travel.no_travel(world, being) or {"planet": travel.can_travel(being)}


def _noop(world: Universe, being: Being, params: Params) -> Outcome:
    return movement.wait(world, being, {"beats": 1})


RULES: dict[str, Rule] = {
    "move": Rule(movement.move, _one("direction", movement.can_move, "the way is blocked on both sides")),
    "jump": Rule(movement.jump, _unless(movement.no_jump)),
    "climb": Rule(movement.climb, _one("direction", movement.can_climb, "there is no ladder or water to climb")),
    "go_to": Rule(movement.go_to, _one("target", movement.can_go_to, "nothing to go to is in view")),
    "interact": Rule(handling.interact, _one("target", handling.usable, "nothing to use is within reach")),
    "use_item": Rule(
        handling.use_item, _one("slot", handling.useful_slots, "nothing in your slots is of use here and now")
    ),
    "dig": Rule(digging.dig, _dig),
    "place": Rule(digging.place_item, _place),
    "attack": Rule(fighting.attack, _one("target", fighting.can_attack, "no creature is within reach")),
    "craft": Rule(
        making.craft, _one("recipe", making.possible, "you lack the materials or the station for every recipe")
    ),
    "equip": Rule(handling.equip, _equip),
    "take": Rule(
        handling.take,
        _one("target", handling.can_take, "no chest, locker or pack with something to take is within reach"),
    ),
    "drop": Rule(handling.drop, _drop),
    "give": Rule(handling.give, _give),
    "beam_up": Rule(travel.beam_up, _unless(travel.no_beam_up)),
    "beam_down": Rule(travel.beam_down, _unless(travel.no_beam_down)),
    "travel": Rule(travel.travel, _travel),
    "rest": Rule(movement.rest, _unless(movement.no_rest)),
    "say": Rule(handling.say),
    "wait": Rule(movement.wait),
    "noop": Rule(_noop),
}

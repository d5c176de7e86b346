"""Attacking creatures."""

from __future__ import annotations

from wsap_starbound.data import creatures, items
from wsap_starbound.engine.being import Being
from wsap_starbound.engine.place import Creature
from wsap_starbound.engine.universe import Universe
from wsap_starbound.rules.base import Outcome, Params, called, is_person, refused, spend

_HANDS = 2
"""Damage and reach of bare hands."""


def damage(being: Being, weapon: str) -> int:
    """Return the health that a hit takes; with the bonus for combat a quarter more, rounded up."""
    base = items()[weapon].damage if weapon else _HANDS
    return base + (base + 3) // 4 if "might" in being.abilities else base


def targets(world: Universe, being: Being, weapon: str) -> list[Creature]:
    """Return the creatures that a weapon hits, nearest first."""
    place, reach = world.where(being), items()[weapon].reach if weapon else _HANDS

    def far(c: Creature) -> int:
        return max(abs(place.apart(being.x, c.x)), min(abs(c.y - being.y), abs(c.y - being.y + 1)))

    return sorted((c for c in place.creatures if not is_person(c) and far(c) <= reach), key=lambda c: (far(c), c.id))


def best_weapon(being: Being) -> str:
    """Return the weapon that a body attacks with: the one with the most damage."""
    return being.best("weapon")


def can_attack(world: Universe, being: Being) -> list[str]:
    """Return the creatures that can be attacked now."""
    return [creature.id for creature in targets(world, being, best_weapon(being))]


def attack(world: Universe, being: Being, params: Params) -> Outcome:
    """Hit a creature with the best weapon."""
    return hit(world, being, str(params["target"]), best_weapon(being))


def hit(world: Universe, being: Being, target: str, weapon: str) -> Outcome:
    """Hit a creature with a weapon; a dead creature leaves what it had."""
    creature = next((c for c in targets(world, being, weapon) if target in (c.id, c.kind)), None)
    if creature is None:
        return refused(f"there is no {target[:40]!r} within reach to attack")
    place, kind = world.where(being), creatures()[creature.kind]
    being.facing = 1 if place.apart(being.x, creature.x) >= 0 else -1
    creature.health -= damage(being, weapon)
    creature.ready = max(creature.ready, world.beat + 4)
    dead = creature.health <= 0
    if dead:
        place.creatures.remove(creature)
    spend(world, being, 2)
    how = f" with the {called(weapon)}" if weapon else ""
    if not dead:
        return Outcome(True, f"You hit the {kind.word}{how}; it has {creature.health} health left.")
    loot = {item: being.gain(item, count) for item, count in kind.loot.items()} if being.alive else {}
    told = ", ".join(f"{count} {called(item)}" for item, count in loot.items() if count)
    deed = "prevail" if kind.temper in ("night", "fierce") else "hunt"
    return Outcome(True, f"You killed the {kind.word}{how}" + (f" and got {told}." if told else "."), [deed])

"""Observations of a body, as data, as text and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from typing_extensions import override

from wsap_core.authoring.grid import GridObservation
from wsap_core.protocol import ActionAvailability, Avatar, Effect, Entity, Event, Goal, Location, Terrain
from wsap_core.protocol.availability import Possible
from wsap_core.protocol.avatars import render_avatar
from wsap_core.protocol.lines import legs
from wsap_core.protocol.observation import render_brief, render_observation
from wsap_core.untrusted import sanitize
from wsap_starbound.data import creatures, items, planets, tiles
from wsap_starbound.engine.being import Being
from wsap_starbound.engine.fauna import hostile
from wsap_starbound.engine.physics import protected, standing, swimming
from wsap_starbound.engine.place import NAMES, TILES, Place
from wsap_starbound.engine.sight import OTHER, SELF, UNSEEN, Sight, in_view, light, look
from wsap_starbound.engine.universe import Universe
from wsap_starbound.rules.base import REACH, is_person, near

MOST_SEEN = 12
"""Maximum entities in an observation."""


@dataclass(frozen=True, kw_only=True)
class StarboundObservation(GridObservation):
    """What a body perceives: the tiles that open ones connect with it, and its own state.

    `local_map` has the top row first; the feet of the body are in its middle.
    """

    corner: Sequence[int] = ()
    """Column and row of the map's first character; the column may be negative, left of a ring's beginning."""
    slots: Sequence[str] = ()
    """The items of slots 1 to 10; empty text for none."""
    worn: Sequence[str] = ()
    recipes: Sequence[str] = ()
    """What can be made here and now."""
    lenses: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Planet -> column and row of its lens, once the star chart was read."""
    planet: str = ""
    """The id of the planet; empty aboard the ship."""
    orbit: str = ""
    """The id of the planet that the ship is at."""
    surface: int = 0
    """Row of the natural ground in this column."""

    @override
    def to_text(self) -> str:
        present = set("".join(self.local_map))
        words = ", ".join(f"{'space' if c == ' ' else c} {word}" for c, word in self.legend.items() if c in present)
        rows = "\n".join(f"|{row}|" for row in self.local_map)
        left, top = self.corner or (0, 0)
        title = f"MAP (the first character is x {left}, y {top}; you are in the middle)"
        slots = ", ".join(f"{number} {items()[item].name}" for number, item in enumerate(self.slots, 1) if item)
        charted = "; ".join(f"{planet} x {x} y {y}" for planet, (x, y) in self.lenses.items())
        sections = [
            (title, f"{rows}\n{words}" if rows else ""),
            ("SLOTS", slots),
            ("WORN", ", ".join(items()[one].name for one in self.worn)),
            ("LENSES ON THE CHART", charted),
        ]
        return render_avatar(self) + "\n" + render_observation(self, extra_sections=sections)

    @override
    def to_brief(self) -> str:
        slots = ", ".join(f"{number} {items()[item].name}" for number, item in enumerate(self.slots, 1) if item)
        made = ", ".join(self.recipes)
        return render_brief(self, extra_lines=[f"Slots: {slots}" if slots else "", f"To make: {made}" if made else ""])


@cache
def legend() -> dict[str, str]:
    """Return character -> meaning of everything that a map can show."""
    people = {kind.char: "somebody of the settlement" if kind.temper == "people" else kind.word
              for kind in creatures().values()}  # fmt: skip
    ground = {tile.char: tile.word for tile in tiles().values()}
    return {SELF: "you", OTHER: "another explorer", UNSEEN: "unseen", **ground, **people}


def in_words(dx: int, dy: int) -> str:
    """Return an offset in words: "3 right 2 down"; "here" for none."""
    return legs((dx, "right", "left"), (dy, "down", "up"))


def direction(dx: int, dy: int) -> str:
    """Return the direction of the longer part of an offset: "left", "above"; "here" for none."""
    if not (dx or dy):
        return "here"
    if abs(dx) >= abs(dy):
        return "right" if dx > 0 else "left"
    return "below" if dy > 0 else "above"


def observation_of(
    world: Universe,
    being: Being,
    avatar: Avatar,
    actions: Sequence[ActionAvailability],
    events: Sequence[Event],
    step: int,
) -> StarboundObservation:
    """Return what a body perceives now."""
    place, sight = world.where(being), look(world, being)
    kind = place.kind
    night = world.night(place)
    status: dict[str, object] = {
        "health": f"{being.health}/20",
        "breath": f"{being.breath}/40",
        "light": light(world, being),
    }
    if kind and kind.hazard:
        status["hazard"] = f"{kind.hazard}{' (protected)' if protected(being, kind.hazard) else ''}"
    lenses = {name: list(world.place(name).lens or ()) for name in planets()} if being.charted else {}
    return StarboundObservation(
        status=status,
        inventory=dict(being.bag),
        location=Location((being.x, being.y), kind.biome if kind else "ship", _where(world, being, place)),
        nearby_entities=_entities(world, being, place, sight, night=night),
        nearby_terrain=[
            Terrain(TILES[tile].word, direction(dx, dy), not TILES[tile].solid, float(abs(dx) + abs(dy)))
            for tile, dx, dy in sight.ground
            if not TILES[tile].object and (dx, dy) not in ((0, 0), (0, -1))
        ],
        active_effects=_effects(being, place),
        current_goals=_goals(being),
        recent_events=events,
        step=step,
        time_of_day=None if kind is None else "night" if night else "day",
        available_actions=actions,
        avatar=avatar,
        facing="right" if being.facing > 0 else "left",
        stance="lying" if being.asleep else "swimming" if swimming(place, being) else "standing",
        velocity=(0.0, -1.0 if being.rise else 0.0 if standing(place, being) else 1.0),
        vision_range=float(len(sight.rows[0]) // 2 + len(sight.rows) // 2),
        local_map=sight.rows,
        legend=legend(),
        corner=sight.corner,
        slots=tuple(being.slots),
        worn=tuple(being.worn),
        recipes=next(
            (tuple(a.choices["recipe"]) for a in actions if a.name == "craft" and isinstance(a, Possible)), ()
        ),
        lenses=lenses,
        planet=place.planet,
        orbit=being.orbit,
        surface=place.ground[being.x],
    )


def _where(world: Universe, being: Being, place: Place) -> str:
    kind = place.kind
    at = f"at x {being.x}, y {being.y}"
    if kind is None:
        return f"Aboard your ship at {planets()[being.orbit].name}, {at}"
    depth = being.y + 1 - place.ground[being.x]
    how = "in the open" if depth <= 0 else f"{depth} below the ground"
    return f"On {kind.name} ({kind.biome}), {how}, {at}"


def _entities(world: Universe, being: Being, place: Place, sight: Sight, *, night: bool) -> list[Entity]:
    found: list[tuple[int, str, Entity]] = []

    def add(kind: str, name: str | None, x: int, y: int, state: str | None, told: str, *, usable: bool) -> None:
        dx, dy = place.apart(being.x, x), y - being.y
        said = f"{told}, {in_words(dx, dy)}"
        entity = Entity(kind, name, float(abs(dx) + abs(dy)), direction(dx, dy), state, usable, said)
        found.append((abs(dx) + abs(dy), said, entity))

    for c in place.creatures:
        if in_view(sight, place, being, c.x, c.y):
            known = creatures()[c.kind]
            angry = hostile(c.kind, dark=night or not place.open_sky(c.x, c.y))
            state = "friendly" if is_person(c) else "hostile" if angry else "peaceful"
            within = is_person(c) and near(place, being, c.x, c.y, REACH)
            add(known.word, c.id, c.x, c.y, state, f"{c.id} ({state})", usable=within)
    for other in world.present(place.id):
        if other is not being and in_view(sight, place, being, other.x, other.y):
            name = sanitize(other.owner, 40)
            state = "asleep" if other.asleep else "friendly"
            add("explorer", name, other.x, other.y, state, f"{name}, another explorer", usable=False)
    for dx, dy in sorted(sight.seen):
        x, y = being.x + dx, being.y + dy
        tile = TILES[place.at(x, y)]
        if tile.object:
            name = NAMES[place.at(x, y)]
            within = near(place, being, x, y, REACH)
            add(name, None, place.wrap(x), y, None, tile.word, usable=within)
    return [entity for _, _, entity in sorted(found, key=lambda one: one[:2])[:MOST_SEEN]]


def _effects(being: Being, place: Place) -> list[Effect]:
    effects = []
    hazard = place.kind.hazard if place.kind else ""
    if hazard and not protected(being, hazard):
        gear = "breather" if hazard == "no air" else "cooler"
        effects.append(Effect(hazard, f"it harms you without a {gear}"))
    if being.in_fight():
        effects.append(Effect("fight", "a creature hurt you just now; no beam and no leaving"))
    told = {"scanner": "a wider view, and ores through rock", "might": "more damage", "handy": "bench recipes by hand"}
    return effects + [Effect(name, told[name]) for name in being.abilities]


def _goals(being: Being) -> list[Goal]:
    goals = []
    if "pad" not in being.done:
        progress = "the coil is made" if being.bag.get("coil") else None
        goals.append(Goal("pad", "Repair the buffer of the beam pad aboard with a buffer coil", "main", progress))
    if "moon" not in being.done:
        progress = f"{being.bag.get('fuel_cell', 0)} of 2 fuel cells"
        goals.append(Goal("moon", "Bring fuel cells and reach the moon Palewake", "main", progress))
    if "lantern" not in being.done:
        have = len(being.lenses) + sum(bool(being.bag.get(planet.lens)) for planet in planets().values())
        told = "Fit the three lenses into the old lantern aboard, and read its message"
        goals.append(Goal("lantern", told, "main", f"{have} of 3 lenses"))
    return goals

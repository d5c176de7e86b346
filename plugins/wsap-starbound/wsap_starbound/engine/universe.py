"""All places, bodies and the time of one world."""

from __future__ import annotations

import base64
import zlib
from collections import Counter
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from wsap_core.protocol.values import JsonValue
from wsap_starbound.data import creatures, items, planets
from wsap_starbound.engine import terrain
from wsap_starbound.engine.being import MOST_HEALTH, Being, Count, Whole, load_being, new_being
from wsap_starbound.engine.fauna import live
from wsap_starbound.engine.liquids import settle
from wsap_starbound.engine.noise import Chance, mix
from wsap_starbound.engine.physics import endure, fits, float_or_fall
from wsap_starbound.engine.place import (
    AIR,
    HEIGHT,
    NAMES,
    NUMBER,
    SHIP_HEIGHT,
    SHIP_WIDTH,
    SOLID,
    TILES,
    WIDTH,
    Cell,
    Creature,
    Place,
)

HOME = next(iter(planets()))
"""The planet where everybody begins."""
HEALING = 60
"""Beats in which a body regains one health by itself."""
_Rows = TypeAdapter(list[tuple[Whole, Count, dict[str, Annotated[int, Field(strict=True, ge=1, le=10**6)]]]])
_Herd = TypeAdapter(list[tuple[str, str, Whole, Count, Annotated[int, Field(strict=True, ge=1, le=100)], int, Count]])
_Cells = TypeAdapter(list[tuple[Whole, Count]])


class Universe:
    """One world: planets made when somebody first comes near them, ships, bodies, and time in beats of 0.25 s."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.beat = 0
        self.chance = Chance(mix(seed, 11))
        self.places: dict[str, Place] = {}
        self.beings: dict[str, Being] = {}
        self.news: dict[str, list[tuple[str, str]]] = {}
        """Owner -> what happened to its body since its last action: text and type."""
        self.sights: dict[str, object] = {}
        """Owner -> what its body sees, until anything changes."""
        self._credit = 0

    # --- places and bodies ------------------------------------------------------------------------

    def place(self, name: str) -> Place:
        """Return a place, which is made on the first visit."""
        if name not in self.places:
            owner = name.removeprefix("ship:")
            self.places[name] = terrain.ship(owner) if owner != name else terrain.planet(self.seed, name)
        return self.places[name]

    def where(self, being: Being) -> Place:
        """Return the place of a body."""
        return self.place(being.place)

    def present(self, place: str) -> list[Being]:
        """Return the living bodies in a place."""
        return [being for being in self.beings.values() if being.place == place and being.alive and not being.away]

    def join(self, owner: str, loadout: str = "default", spawn: str = "safe") -> Being:
        """Return a new body for an agent: near the first landing place, or with `spawn` "random" anywhere on the
        surface of the first planet, or "challenging" on the far side of its ring."""
        place = self.place(HOME)
        column = place.start[0]
        if spawn == "random":
            column += mix(self.seed, 12, *owner.encode()) % place.width
        elif spawn == "challenging":
            column += place.width // 2
        being = new_being(owner, HOME, self.landing(place, column), loadout)
        self.beings[owner] = being
        self.news[owner] = []
        return being

    def landing(self, place: Place, column: int | None = None) -> Cell:
        """Return where a body arrives: dry ground near the given or the usual column."""
        column = place.start[0] if column is None else column
        taken = {cell for being in self.present(place.id) for cell in being.cells}
        for far in range(place.width):
            x = place.wrap(column + (far + 1) // 2 * (1 if far % 2 else -1))
            top = next((y for y in range(place.height) if SOLID[place.at(x, y)]), place.height - 1)
            y = top - 1
            dry = all(not TILES[place.at(x, y - up)].flow for up in (0, 1))
            if y > 1 and abs(top - place.ground[x]) <= 4 and dry and fits(place, x, y) and (x, y) not in taken:
                return x, y
        return place.start

    def night(self, place: Place) -> bool:
        """Whether it is night there: the last third of a planet's day."""
        return bool(place.kind) and self.beat % place.kind.day >= place.kind.day * 2 // 3  # type: ignore[union-attr]

    def tell(self, owner: str, text: str, kind: str = "world") -> None:
        """Note what happens to a body, for its next observation."""
        self.news.setdefault(owner, []).append((text, kind))

    # --- time -------------------------------------------------------------------------------------

    def awake(self) -> list[Being]:
        """Return the living bodies with an agent in them."""
        return [being for being in self.beings.values() if being.alive and not being.asleep and not being.away]

    def pass_beat(self, being: Being) -> None:
        """Let one beat of a body pass. The world goes on by one beat when as many have passed as bodies are awake, so
        that it is not faster for several agents than for one."""
        self.sights.clear()
        self._live_on(being)
        self._credit += 1
        if self._credit >= len(self.awake()):
            self._credit = 0
            self.world_beat()

    def world_beat(self) -> None:
        """Let sand, liquids, creatures and sleeping bodies live for a beat."""
        self.sights.clear()
        self.beat += 1
        for name in sorted({being.place for being in self.beings.values() if being.alive and not being.away}):
            place, bodies = self.place(name), self.present(name)
            for being in bodies:
                if being.asleep:
                    self._live_on(being)
            taken = {cell for being in bodies for cell in being.cells} | {(c.x, c.y) for c in place.creatures}
            settle(place, taken)
            for owner in live(place, self.present(name), self.beat, self.chance, night=self.night(place)):
                being = self.beings[owner]
                self.tell(owner, "A creature hit you." if being.alive else "A creature killed you.", "damage")
                if not being.alive:
                    self.die(being)

    def _live_on(self, being: Being) -> None:
        if not being.alive:
            return
        being.beats += 1
        place, health = self.where(being), being.health
        cause = float_or_fall(place, being) or ""
        cause = endure(place, being) or cause
        if being.health < health:
            self.tell(being.owner, f"You lost {health - being.health} health: {cause}.", "damage")
        elif being.beats % HEALING == 0 and being.breath:
            being.health = min(MOST_HEALTH, being.health + 1)
        if not being.health:
            self.die(being)

    def die(self, being: Being) -> None:
        """Let a dead body drop its materials in a pack where it died; lenses, shards and gear stay with it."""
        lost = Counter({name: n for name, n in being.bag.items() if name in spilled(being)})
        for name, count in lost.items():
            being.lose(name, count)
        if lost:
            self.leave_pack(self.where(being), (being.x, being.y), lost)

    def leave_pack(self, place: Place, cell: Cell, held: Counter[str]) -> Cell | None:
        """Put things into a pack at a cell or in the next free one above; return where, or None if nowhere is room."""
        pack = NUMBER["pack"]
        for y in range(cell[1], 0, -1):
            here = place.wrap(cell[0]), y
            tile = place.at(*here)
            if tile in (pack, AIR):
                place.put(*here, pack)
                place.contents.setdefault(here, Counter()).update(held)
                return here
        return None

    # --- as data ----------------------------------------------------------------------------------

    def to_json(self) -> JsonValue:
        """Return the world as JSON-ready data."""
        return {
            "seed": self.seed,
            "time": [self.beat, self.chance.state, self._credit],
            "places": [place.to_json() for place in self.places.values()],
            "beings": [being.to_json() for being in self.beings.values()],
            "news": {owner: [list(one) for one in told] for owner, told in self.news.items()},
        }

    @classmethod
    def from_json(cls, data: JsonValue) -> Universe:
        """Return a world from untrusted data; `ValueError`, `TypeError` or `LookupError` if it is invalid."""
        world = cls(TypeAdapter(Count).validate_python(data["seed"]))
        beat, state, credit = data["time"]
        world.beat, world._credit = (TypeAdapter(Count).validate_python(n) for n in (beat, credit))
        if type(state) is not int or not 0 <= state < 1 << 64:
            raise ValueError("the state of chance is invalid")
        world.chance = Chance(state)
        for one in data["places"]:
            place = _load_place(one)
            world.places[place.id] = place
        for one in data["beings"]:
            being = load_being(one)
            place = world.place(being.place) if being.place in planets() else world.places[being.place]
            if not place.inside(being.x, being.y) or (
                being.alive and not being.away and not fits(place, being.x, being.y)
            ):
                raise ValueError("a body is not in a free cell")
            world.beings[being.owner] = being
        told = TypeAdapter(dict[str, list[tuple[str, str]]]).validate_python(data["news"])
        world.news = {owner: list(lines) for owner, lines in told.items() if owner in world.beings}
        return world


def spilled(being: Being) -> dict[str, int]:
    """Return what a body drops when it dies: materials that are neither lenses nor shards."""
    known = items()
    return {
        name: count
        for name, count in being.bag.items()
        if known[name].kind == "material" and not name.startswith("lens_") and name != "shard"
    }


def _load_place(data: Any) -> Place:
    """Return a place from untrusted data (hence Any)."""
    name, planet = str(data["id"]), str(data["planet"])
    width, height = (WIDTH, HEIGHT) if planet else (SHIP_WIDTH, SHIP_HEIGHT)
    reader = zlib.decompressobj()
    cells = bytearray(reader.decompress(base64.b64decode(data["cells"], validate=True), width * height + 1))
    if len(cells) != width * height or max(cells) >= len(NAMES) or (name != planet and not name.startswith("ship:")):
        raise ValueError("the tiles of a place are invalid")
    if planet and planet not in planets():
        raise ValueError("a planet is unknown")
    ground = TypeAdapter(list[Count]).validate_python(data["ground"])
    start, lens = _Cells.validate_python([data["start"], data["lens"] or [0, 0]])
    if len(ground) != width or max(ground) >= height:
        raise ValueError("the ground of a place is invalid")
    place = Place(name, planet, width, height, cells, start, ground, lens=lens if data["lens"] else None)
    for x, y, held in _Rows.validate_python(data["contents"]):
        if not place.inside(x, y) or not held.keys() <= items().keys():
            raise ValueError("what is in a chest is invalid")
        place.contents[x, y] = Counter(held)
    for row in _Herd.validate_python(data["creatures"]):
        creature = Creature(*row)
        if creature.kind not in creatures() or not place.inside(creature.x, creature.y):
            raise ValueError("a creature is invalid")
        place.creatures.append(creature)
    place.restless = {cell for cell in _Cells.validate_python(data["restless"]) if place.inside(*cell)}
    return place

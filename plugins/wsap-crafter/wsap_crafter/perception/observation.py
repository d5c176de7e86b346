"""Crafter's observation: everything in view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from typing_extensions import override

from wsap_core.protocol import (
    ActionAvailability,
    Avatar,
    Effect,
    EmbodiedObservation,
    Entity,
    Event,
    Goal,
    GridMapBlock,
    Location,
    Terrain,
    View,
)
from wsap_core.protocol.spatial import entity_line
from wsap_crafter.goals import NEXT, mask_of, remaining_goals, unlocked_names
from wsap_crafter.perception import telling
from wsap_crafter.rules import ITEMS, Situation, availability, with_article
from wsap_crafter.simulation.daytime import daylight_at, phase_at
from wsap_crafter.simulation.engine import CrafterEngine
from wsap_crafter.simulation.sight import (
    DIRECTIONS,
    DISTANCES,
    GROUND_CHARACTERS,
    HERE,
    NEAREST_FIRST,
    OFFSETS,
    PLACE_TOWARDS,
    PLAYER_CHARACTER,
    WORDS,
    Sight,
)

VISION_RANGE = float(max(DISTANCES))
"""The player's vision range in Manhattan distance: 7, to the corners of the 9 by 7 cells."""

DARK = 0.4
"""Daylight below which brief observations mention the night."""
_REST = (0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class CrafterObservation(EmbodiedObservation):
    """Crafter's observation, with a map of the view and damage to the body. Distances are Manhattan distances in cells,
    as in the game."""

    local_map: tuple[str, ...] = ()
    """Seven rows of nine characters, north first, west first; the player, "@", is in row 3, column 4.

    Ground: "." grass, ":" path, "_" sand, "~" water, "#" stone, "T" tree, "L" lava, "c" coal,
    "i" iron, "d" diamond, "t" table, "f" furnace, " " outside the world. On top of it: "C" cow,
    "Z" zombie, "S" skeleton, "a" arrow, "p" sapling, "P" ripe plant.
    """
    faced: str = ""
    """The thing in front: "tree", "zombie", "water", "sapling", "ripe plant", "edge of the world"."""
    daylight: float = 1.0
    """From 0, darkest night, to 1."""
    sleeping: bool = False
    """Whether the player is asleep."""
    damage: int = 0
    """Health lost to attacks in the last step."""
    damage_from: str | None = None
    """The source of the damage: "zombie" or "arrow"; of both, the stronger one. None without damage."""
    achievements_unlocked: tuple[str, ...] = ()
    """Names of the achievements in this episode, in the catalogue's order."""

    @override
    def to_text(self) -> str:
        """Return the observation as text for a language model.

        To keep prompts short, the terrain takes one line, the legend covers only the characters on the map, and hints
        and reasons that the rules name are left out.
        """
        # Deferred: agents that use the structured observation need no text.
        from wsap_core.protocol.observation import render_observation

        where = "" if self.sleeping else f" to the {self.facing}"
        east, south = self.location.coordinates
        plain = replace(
            self,
            location=replace(self.location, description=f"{self.location.description}{where}, at ({east}, {south})"),
            nearby_entities=(),
            nearby_terrain=(),
            current_goals=_short_goals(self.current_goals),
            available_actions=_told(self.available_actions or (), self.sleeping),
        )
        sections = [
            ("NEARBY", _nearby(self.nearby_entities, tuple(self.local_map))),
            ("MAP (north up)", _map(self.local_map)),
        ]
        return render_observation(plain, extra_sections=sections)

    @override
    def to_brief(self) -> str:
        night = self.daylight < DARK
        return telling.brief(
            {name: int(value) for name, value in self.status.items()}, self.inventory, tuple(self.local_map),
            self.faced, self.current_goals, night=night, asleep=self.sleeping,
        )  # fmt: skip

    @override
    def phrases(self) -> Mapping[str, str]:
        return telling.phrases(tuple(self.local_map), self.faced)

    @override
    def to_view(self) -> View:
        present = set("".join(self.local_map))
        legend = {character: word for character, word in WORDS.items() if character in present}
        return View((GridMapBlock(self.local_map, legend),))


@dataclass(frozen=True)
class Happenings:
    """Events and damage of the last step, for the next observation."""

    events: tuple[Event, ...] = ()
    damage: int = 0
    damage_from: str | None = None


NOTHING = Happenings()


def build_observation(
    engine: CrafterEngine,
    sight: Sight,
    situation: Situation,
    items: dict[str, int],
    avatar: Avatar,
    happenings: Happenings,
) -> CrafterObservation:
    """Return the observation of the current state; `items` is the result of :func:`carried`."""
    player, step = engine.player, engine.steps
    cells, facing = sight.cells, situation.facing
    inventory = player.inventory
    mask = mask_of(player.achievements)
    faced = PLACE_TOWARDS[facing]
    x, y = player.pos.tolist()
    sleeping = bool(player.sleeping)
    return CrafterObservation(
        status={
            "health": inventory["health"],
            "food": inventory["food"],
            "drink": inventory["drink"],
            "energy": inventory["energy"],
        },
        inventory=items,
        location=Location((x, y), region_of(sight), _standing(sight.ground[HERE], cells[faced], sleeping)),
        nearby_entities=tuple([entity_at(s.kind, s.heading, s.place, s.place == faced) for s in sight.seen]),
        nearby_terrain=nearest_terrain(sight.ground_by_distance),
        active_effects=_effects(
            sleeping,
            inventory["food"] <= 0,
            inventory["drink"] <= 0,
            inventory["energy"] <= 0,
            "L" in situation.surroundings,
        ),
        current_goals=remaining_goals(mask),
        recent_events=happenings.events,
        step=step,
        time_of_day=phase_at(step),
        available_actions=availability(situation),
        avatar=avatar,
        facing=facing,
        stance="lying" if sleeping else "standing",
        velocity=_REST,
        vision_range=VISION_RANGE,
        hearing_range=0.0,
        local_map=_rows(cells),
        faced=WORDS[cells[faced]],
        daylight=daylight_at(step),
        sleeping=sleeping,
        damage=happenings.damage,
        damage_from=happenings.damage_from,
        achievements_unlocked=unlocked_names(mask),
    )


def _rows(cells: str) -> tuple[str, ...]:
    return (cells[0:9], cells[9:18], cells[18:27], cells[27:36], cells[36:45], cells[45:54], cells[54:63])


def carried(items: tuple[int, ...]) -> dict[str, int]:
    """Return the player's items without zero counts."""
    return {name: count for name, count in zip(ITEMS, items, strict=True) if count}


def region_of(sight: Sight) -> str:
    """Return the kind of the player's region, by the ground under it and the trees in view."""
    return _region(sight.ground[HERE], sight.ground.count("T") >= 6)


def _region(ground: str, wooded: bool) -> str:
    if ground == ".":
        return "forest" if wooded else "grassland"
    return {":": "cave", "_": "beach", "L": "lava"}.get(ground, "wilderness")


@lru_cache(maxsize=512)
def _standing(ground: str, faced: str, sleeping: bool) -> str:
    if sleeping:
        return f"Asleep on {WORDS[ground]}"
    return f"Standing on {WORDS[ground]}, facing {with_article(WORDS[faced])}"


_STATES = {"cow": "peaceful", "zombie": "hostile", "skeleton": "hostile", "plant": "growing", "ripe plant": "ripe"}


@lru_cache(maxsize=4096)
def entity_at(kind: str, heading: str, place: int, faced: bool) -> Entity:
    """Return the entity of a kind at a place of the view, cached."""
    entity_type = "plant" if kind == "ripe plant" else kind
    state = f"flying {heading}" if heading else _STATES[kind]
    where = telling.in_words(*OFFSETS[place])
    named = "sapling" if kind == "plant" else kind
    description = f"{named}{_remark(kind, heading)}, {where}" + (" (in front of you)" if faced else "")
    usable = faced and kind in ("cow", "zombie", "skeleton", "ripe plant")
    return Entity(entity_type, None, float(DISTANCES[place]), DIRECTIONS[place], state, usable, description)


def _remark(kind: str, heading: str) -> str:
    if heading:
        return f" flying {heading}"
    return " (hostile)" if _STATES[kind] == "hostile" else ""


_PASSABLE = frozenset(".:_")


@lru_cache(maxsize=1024)
def terrain_at(character: str, place: int) -> Terrain:
    """Return the terrain of a character at a place of the view, cached."""
    return Terrain(WORDS[character], DIRECTIONS[place], character in _PASSABLE, float(DISTANCES[place]))


_MATERIAL_CHARACTERS = "".join(GROUND_CHARACTERS.values())
_WORTH_NAMING = "".join(character for character in _MATERIAL_CHARACTERS if character not in _PASSABLE)
"""The materials whose nearest cell is told; the others are open ground, which the map shows."""


def nearest_terrain(ground_by_distance: str) -> tuple[Terrain, ...]:
    """Return the nearest cell of each material in view except the player's own cell, nearest first."""
    found = []
    find = ground_by_distance.find
    for character in _MATERIAL_CHARACTERS:
        rank = find(character, 1)
        if rank > 0:
            found.append((rank, character))
    found.sort()
    return tuple([terrain_at(character, NEAREST_FIRST[rank]) for rank, character in found])


@lru_cache(maxsize=64)
def _effects(sleeping: bool, starving: bool, parched: bool, exhausted: bool, lava: bool) -> tuple[Effect, ...]:
    effects = []
    if sleeping:
        effects.append(Effect("sleeping", "you sleep on, whatever you do, until rested or hurt"))
    if starving:
        effects.append(Effect("starving", "no food left: you lose health"))
    if parched:
        effects.append(Effect("parched", "no drink left: you lose health"))
    if exhausted and not sleeping:
        effects.append(Effect("exhausted", "no energy left: you lose health"))
    if lava:
        effects.append(Effect("lava beside you", "stepping into it kills"))
    return tuple(effects)


# --- text ---------------------------------------------------------------------------------------


def _nearby(entities: Sequence[Entity], local_map: tuple[str, ...]) -> str:
    lines = [f"- {entity_line(entity)}" for entity in entities]
    if nearest := telling.in_view(local_map, _WORTH_NAMING):
        lines.append("- nearest: " + ", ".join(f"{word} {telling.in_words(x, y)}" for word, x, y in nearest))
    return "\n".join(lines)


def _map(rows: tuple[str, ...]) -> str:
    if not rows:
        return ""
    present = sorted(set("".join(rows)) - {PLAYER_CHARACTER}, key=list(WORDS).index)
    legend = ", ".join(f"{'space' if c == ' ' else c} {WORDS[c]}" for c in (PLAYER_CHARACTER, *present))
    return "\n".join(f"|{row}|" for row in rows) + f"\n{legend}"


def _told(actions: Sequence[ActionAvailability], sleeping: bool) -> Sequence[ActionAvailability]:
    """Return the availability of actions without reasons that are told elsewhere: of recipes and sleep, whose
    requirements the rules name, and of any action while asleep, which is an effect."""
    return [
        replace(action, reason="") if sleeping or action.name.startswith(("make_", "place_", "sleep")) else action
        for action in actions
    ]


def _short_goals(goals: Sequence[Goal]) -> tuple[Goal, ...]:
    """Return a line for the goals that can be reached next and one for the others; the rules say how each is
    reached."""
    ready = [goal.id for goal in telling.in_order(goals)]
    later = [goal.id for goal in goals if goal.progress != NEXT]
    return tuple(
        Goal(title, f"{title}: {_by_verb(names)}") for title, names in (("next", ready), ("later", later)) if names
    )


def _by_verb(names: Sequence[str]) -> str:
    """Return names of achievements in words, each verb once: "collect coal, iron; wake up"."""
    things: dict[str, list[str]] = {}
    for name in names:
        verb, _, thing = name.partition("_")
        things.setdefault(verb, []).append(thing.replace("_", " "))
    return "; ".join(f"{verb} {', '.join(named)}" for verb, named in things.items())

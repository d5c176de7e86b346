"""Observations, compared with the original's map and objects."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import numpy as np
import pytest
from crafter import constants, objects

from wsap_core import Action
from wsap_core.protocol import Observation
from wsap_core.protocol.wire import Codec, dumps
from wsap_crafter.perception.observation import CrafterObservation
from wsap_crafter.rules import GAME_ACTIONS

GOLDEN = Path(__file__).parent / "golden"
GROUND = {
    None: " ",
    "grass": ".",
    "path": ":",
    "sand": "_",
    "water": "~",
    "stone": "#",
    "tree": "T",
    "lava": "L",
    "coal": "c",
    "iron": "i",
    "diamond": "d",
    "table": "t",
    "furnace": "f",
}
CREATURES = {objects.Cow: "C", objects.Zombie: "Z", objects.Skeleton: "S", objects.Arrow: "a"}


def character_at(world, player, x, y) -> str:
    """Return the map character of one cell by slow queries of the world."""
    material, obj = world[x, y]
    if obj is player:
        return "@"
    if isinstance(obj, objects.Plant):
        return "P" if obj.ripe else "p"
    for cls, character in CREATURES.items():
        if isinstance(obj, cls):
            return character
    return GROUND[material]


def expected_map(game) -> tuple[str, ...]:
    px, py = game.player.pos.tolist()
    return tuple(
        "".join(character_at(game.world, game.player, x, y) for x in range(px - 4, px + 5))
        for y in range(py - 3, py + 4)
    )


CORNERS = [(0, 0), (63, 0), (0, 63), (63, 63), (2, 2), (61, 61), (0, 32), (32, 0), (63, 20), (4, 3), (59, 60), (60, 61)]


@pytest.mark.parametrize(("x", "y"), CORNERS)
def test_the_view_is_right_at_the_corners_and_edges_of_the_world(x, y, scene):
    made = scene(4)
    occupant = made.world[x, y][1]
    if occupant is not None and occupant is not made.player:
        made.world.remove(occupant)
    made.stand(x, y, (-1, 0))
    seen = made.look()
    assert seen.local_map == expected_map(made.game)
    # Compared with the map array, too, cell by cell.
    for row in range(7):
        for column in range(9):
            cell_x, cell_y = x + column - 4, y + row - 3
            inside = 0 <= cell_x < 64 and 0 <= cell_y < 64
            assert (seen.local_map[row][column] == " ") is (not inside)
            if inside and made.world._obj_map[cell_x, cell_y] == 0:
                number = made.world._mat_map[cell_x, cell_y]
                assert seen.local_map[row][column] == GROUND[constants.materials[number - 1]]
    assert (seen.faced == "edge of the world") is (x == 0)
    assert seen.nearby_terrain or x in (0, 63)


@pytest.mark.slow
def test_over_a_long_walk_the_map_and_the_entities_are_those_of_the_world(scene):
    made = scene(6, length=0)
    chooser = random.Random(6)
    action = "noop"
    for step in range(1200):
        if step % 40 == 0:
            made.player.inventory.update(health=9, food=9, drink=9, energy=9, sapling=3)
        action = action if chooser.random() < 0.6 else chooser.choice(GAME_ACTIONS)
        seen = made.adapter.act(Action(action)).observation
        if made.game.done:
            seen = made.adapter.reset()
        assert seen.local_map == expected_map(made.game)
        px, py = made.player.pos.tolist()
        inside = sorted(
            abs(int(o.pos[0]) - px) + abs(int(o.pos[1]) - py)
            for o in made.world.objects
            if o is not made.player and abs(int(o.pos[0]) - px) <= 4 and abs(int(o.pos[1]) - py) <= 3
        )
        assert [entity.distance for entity in seen.nearby_entities] == inside
        assert seen.status == {k: made.player.inventory[k] for k in ("health", "food", "drink", "energy")}
        assert seen.inventory == {k: v for k, v in made.player.inventory.items() if v and k not in seen.status}
        assert seen.daylight == pytest.approx(float(made.world.daylight), abs=6e-4)


def test_the_nearest_of_each_material_is_named_with_its_distance(scene):
    made = scene(9)
    seen = made.look()
    px, py = made.player.pos.tolist()
    nearest: dict[str, int] = {}
    for x in range(max(0, px - 4), min(64, px + 5)):
        for y in range(max(0, py - 3), min(64, py + 4)):
            if (x, y) != (px, py):
                material = constants.materials[made.world._mat_map[x, y] - 1]
                nearest[material] = min(nearest.get(material, 99), abs(x - px) + abs(y - py))
    assert {terrain.type: terrain.distance for terrain in seen.nearby_terrain} == nearest
    distances = [terrain.distance for terrain in seen.nearby_terrain]
    assert distances == sorted(distances)
    assert {t.type for t in seen.nearby_terrain if t.passable} <= set(constants.walkable)


def test_nothing_outside_the_view_changes_the_observation(scene):
    made = scene(0).empty().stand(32, 32)
    before = made.look()
    for x, y in ((27, 32), (37, 32), (32, 28), (32, 36), (37, 36), (0, 0)):
        made.put("diamond", x, y)
    made.put("Zombie", 38, 32)
    made.put("Cow", 32, 27)
    assert made.look() == before


@pytest.mark.parametrize(
    ("dx", "dy", "direction"),
    [
        (0, -3, "north"),
        (4, 0, "east"),
        (-1, 0, "west"),
        (0, 2, "south"),
        (2, -2, "northeast"),
        (-4, 1, "west"),
        (-2, 1, "southwest"),
        (3, 3, "southeast"),
        (-1, -3, "north"),
        (-2, -3, "northwest"),
    ],
)
def test_a_creature_is_named_with_direction_distance_and_state(dx, dy, direction, scene):
    made = scene(0).empty().stand(32, 32, (0, 1))
    made.put("Zombie", 32 + dx, 32 + dy)
    (zombie,) = made.look().nearby_entities
    assert (zombie.type, zombie.state, zombie.direction) == ("zombie", "hostile", direction)
    assert zombie.distance == abs(dx) + abs(dy)
    assert zombie.interactable is False


def test_the_view_reaches_its_corners_and_says_so(scene):
    made = scene(0).empty().stand(32, 32)
    made.put("Cow", 28, 29)
    seen = made.look()
    assert [cow.distance for cow in seen.nearby_entities] == [7]
    assert seen.vision_range == 7


def test_plants_and_arrows_show_their_state(scene):
    made = scene(0).empty().stand(32, 32, (1, 0))
    made.put("Plant", 33, 32, grown=301)
    made.put("Plant", 30, 32, grown=300)
    made.put("Arrow", 32, 30, facing=(-1, 0))
    seen = made.look()
    ripe, arrow, sapling = seen.nearby_entities
    assert (ripe.type, ripe.state, ripe.interactable) == ("plant", "ripe", True)
    assert (arrow.type, arrow.state) == ("arrow", "flying west")
    assert (sapling.type, sapling.state, sapling.interactable) == ("plant", "growing", False)
    assert seen.faced == "ripe plant"
    assert seen.local_map[3] == "..p.@P..."


def test_damage_is_told_with_its_source(scene):
    made = scene(0).empty().stand(32, 32)
    made.put("Zombie", 33, 32)
    for _ in range(20):
        seen = made.adapter.act(Action("noop")).observation
        if seen.damage:
            break
    assert (seen.damage, seen.damage_from) == (2, "zombie")
    assert seen.status["health"] == 7
    assert ("A zombie hit you for 2.", "damage", "zombie") in [
        (event.description, event.type, event.source) for event in seen.recent_events
    ]


def test_an_arrow_hurts_and_a_hungry_step_is_no_attack(scene):
    made = scene(0).empty("path").stand(32, 32)
    made.put("Arrow", 31, 32, facing=(1, 0))
    seen = made.adapter.act(Action("noop")).observation
    assert (seen.damage, seen.damage_from) == (2, "arrow")
    made.carry(food=0, health=5)
    made.player._recover = -15
    made.player._last_health = 5
    seen = made.adapter.act(Action("noop")).observation
    assert (seen.damage, seen.damage_from) == (0, None)
    assert [event.description for event in seen.recent_events] == ["You lose 1 health to hunger."]
    assert [effect.name for effect in seen.active_effects] == ["starving"]


def test_a_plant_eaten_in_view_is_told(scene):
    made = scene(0).empty().stand(32, 32)
    made.put("Plant", 34, 31)
    made.put("Cow", 35, 31)
    told = []
    for _ in range(30):
        told += [event.description for event in made.adapter.act(Action("noop")).observation.recent_events]
    assert "The plant 1 north 2 east of you was destroyed." in told


def test_the_day_turns_through_dusk_night_and_dawn(scene):
    made = scene(0).empty().stand(32, 32)
    phases, told = [], []
    for _ in range(300):
        made.player.inventory.update(health=9, food=9, drink=9, energy=9)
        seen = made.adapter.act(Action("noop")).observation
        for obj in list(made.world.objects):
            if obj is not made.player:
                made.world.remove(obj)
        if not phases or phases[-1] != seen.time_of_day:
            phases.append(seen.time_of_day)
        told += [event.description for event in seen.recent_events if event.type == "world"]
    assert phases == ["day", "dusk", "night", "dawn", "day"]
    assert told == ["It is getting dark.", "Night has fallen.", "The day is breaking.", "It is day again."]


def test_goals_are_what_is_left_and_what_can_be_reached_comes_first(scene):
    made = scene(0)
    seen = made.look()
    assert len(seen.current_goals) == 22
    assert [g.id for g in seen.current_goals if g.progress == "next"] == [
        "collect_drink",
        "collect_sapling",
        "collect_wood",
        "defeat_skeleton",
        "defeat_zombie",
        "eat_cow",
        "wake_up",
    ]
    made.player.achievements.update(collect_wood=3, place_table=1)
    seen = made.look()
    assert seen.achievements_unlocked == ("collect_wood", "place_table")
    assert len(seen.current_goals) == 20
    assert "make_wood_sword" in [g.id for g in seen.current_goals if g.progress == "next"]


def test_the_same_moment_is_the_same_object_and_nothing_is_lost_on_the_wire(scene):
    made = scene(3)
    seen = made.adapter.act(Action("move_left")).observation
    assert made.adapter.observe() is seen
    read = Codec([CrafterObservation]).loads(Observation, dumps(seen))
    assert isinstance(read, CrafterObservation)
    assert read == seen


def test_every_field_holds_plain_python_values(scene):
    def check(value):
        assert not isinstance(value, np.generic | np.ndarray), value
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                check(getattr(value, field.name))
        elif isinstance(value, dict):
            for item in value.items():
                check(item)
        elif isinstance(value, tuple):
            for item in value:
                check(item)

    made = scene(3)
    for action in ("move_left", "do", "place_table", "sleep"):
        check(made.adapter.act(Action(action)))


def _evening(scene):
    """Return a scene with some of everything, at the end of a long day."""
    made = scene(0).empty().stand(32, 32, (1, 0))
    ground = [
        "#######~~",
        "#cciL##~~",
        "##:::#__~",
        "TTt....._",
        "T.f......",
        "T........",
        "TT.......",
    ]
    names = {character: name for name, character in GROUND.items()}
    for row, line in enumerate(ground):
        for column, character in enumerate(line):
            made.put(names[character], 28 + column, 29 + row)
    made.put("Cow", 30, 34)
    made.put("Zombie", 34, 33)
    made.put("Skeleton", 31, 31)
    made.put("Plant", 33, 32)
    made.carry(wood=5, stone=3, wood_pickaxe=1, food=4, drink=6, energy=7, health=8)
    for name in ("collect_wood", "place_table", "make_wood_pickaxe", "collect_stone", "collect_sapling", "place_plant"):
        made.player.achievements[name] = 1
    made.game._unlocked = {name for name, count in made.player.achievements.items() if count}
    made.game._step = 150
    return made


@pytest.mark.parametrize("name", ["first_step", "evening"])
def test_the_text_is_the_golden_one(name, scene, request):
    seen = scene(0).look() if name == "first_step" else _evening(scene).look()
    golden = GOLDEN / f"{name}.txt"
    assert seen.to_text() == golden.read_text(encoding="utf-8").removesuffix("\n")
    brief = GOLDEN / f"{name}_brief.txt"
    told = [seen.to_brief(), "", *(f"{action}: {phrase}" for action, phrase in seen.phrases().items())]
    assert "\n".join(told) == brief.read_text(encoding="utf-8").removesuffix("\n")


def test_the_text_stays_small(scene):
    made = scene(12, length=0)
    chooser = random.Random(12)
    lengths = []
    for step in range(600):
        if step % 40 == 0:
            made.player.inventory.update(health=9, food=9, drink=9, energy=9)
        lengths.append(len(made.adapter.act(Action(chooser.choice(GAME_ACTIONS))).observation.to_text()))
        if made.game.done:
            made.adapter.reset()
    # Three characters a token is a conservative estimate for text with maps.
    assert sum(lengths) / len(lengths) / 3 < 450

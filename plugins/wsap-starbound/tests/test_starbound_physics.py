"""Bodies, tiles and what flows: by properties over random play, and by the documented numbers."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from settling import FLOOR, begun, do, room

from wsap_core import Action
from wsap_core.protocol.availability import choices_of
from wsap_starbound.data import planets, recipes
from wsap_starbound.engine import terrain
from wsap_starbound.engine.liquids import settle
from wsap_starbound.engine.place import AIR, LAVA, NUMBER, SAND, TILES, WATER
from wsap_starbound.rules.digging import diggable, why_not_dig
from wsap_starbound.world.game import StarboundWorld

_QUICK = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
_MOVES = ("move", "jump", "climb", "dig", "place", "go_to", "use_item", "drop", "take", "wait", "beam_up", "beam_down")


def at_random(world: StarboundWorld, rng: random.Random, names: tuple[str, ...] = _MOVES) -> Action:
    """Return an action with words that the observation offers."""
    offers = [a for a in world.observe().available_actions or () if a.available and a.name in names]
    told = rng.choice(offers)
    given: dict[str, object] = {key: rng.choice(words) for key, words in choices_of(told).items()}
    if told.name == "wait":
        given["beats"] = rng.randint(1, 5)
    if told.name == "place":
        given |= {"dx": rng.randint(-3, 3), "dy": rng.randint(-3, 3)}
    if told.name in ("jump", "climb"):
        given.setdefault("direction", rng.choice(["left", "right"]))
    return Action(told.name, given)


def everything(world: StarboundWorld) -> Counter[str]:
    """Return all items: as tiles, in chests and packs, and carried."""
    found = Counter[str]()
    for place in world.universe.places.values():
        found.update(TILES[tile].drop for tile in place.cells if TILES[tile].drop)
        for held in place.contents.values():
            found.update(held)
    for being in world.universe.beings.values():
        found.update(being.bag)
    return found


@_QUICK
@given(st.integers(0, 10**6))
def test_a_body_is_never_inside_a_solid_tile_and_no_item_appears_or_vanishes(seed: int) -> None:
    world, rng = begun(seed % 3), random.Random(seed)
    being = world.universe.beings["ann"]
    before = everything(world)
    for _ in range(25):
        result = world.act(at_random(world, rng))
        place = world.universe.where(being)
        assert not any(place.solid(x, y) for x, y in being.cells), result.message
        if not being.alive:
            break
    world.universe.place(f"ship:{being.owner}")
    after = everything(world)
    aboard = Counter({"bandage": 2, "torch": 6, "bed": 1})
    # The ship comes into being on the first visit, with its locker, bed and torches.
    aboard["torch"] += 2
    assert {name: after[name] - aboard[name] for name in (after | aboard) if name != "basalt"} == {
        name: before[name] for name in (after | aboard) if name != "basalt"
    }


@_QUICK
@given(st.integers(0, 10**6))
def test_a_world_goes_on_after_saving_as_without(seed: int) -> None:
    one, rng = begun(seed % 3), random.Random(seed)
    for _ in range(seed % 9):
        one.act(at_random(one, rng))
    other = begun(99)
    other.restore(one.snapshot())
    for _ in range(8):
        action = at_random(one, rng)
        assert other.act(action) == one.act(action)
    assert other.snapshot() == one.snapshot()


@_QUICK
@given(st.integers(0, 10**6))
def test_what_can_be_dug_is_what_is_not_refused(seed: int) -> None:
    world, rng = begun(seed % 3), random.Random(seed)
    for _ in range(seed % 12):
        world.act(at_random(world, rng))
    universe, being = world.universe, world.universe.beings["ann"]
    place = universe.where(being)
    cells = [(dx, dy) for dy in range(-5, 5) for dx in range(-4, 5)]

    def cell(dx: int, dy: int) -> tuple[int, int]:
        return (place.wrap(being.x + dx) if place.planet else being.x + dx), being.y + dy

    assert set(diggable(universe, being)) == {c for c in cells if not why_not_dig(universe, being, cell(*c))}


@pytest.mark.parametrize("planet", list(planets()))
@pytest.mark.parametrize("deep", range(0, 20, 3))
def test_a_fall_costs_what_is_documented(planet: str, deep: int) -> None:
    world = begun()
    being = world.universe.beings["ann"]
    world.universe.place(planet)
    being.place = planet
    _, _, being = room(world)
    kind = planets()[planet]
    being.y = FLOOR - 1 - deep
    for _ in range(25):
        if being.y < FLOOR - 1:
            world.universe.pass_beat(being)
    world.universe.pass_beat(being)
    harm = max(0, deep - kind.safe_fall) * kind.fall_harm
    heat = 0 if kind.hazard != "heat" else being.beats // 8
    assert being.health == max(0, 20 - harm - heat)
    assert being.y == FLOOR - 1


@pytest.mark.parametrize("planet", list(planets()))
def test_a_jump_reaches_a_ledge_of_the_planets_height_and_no_higher(planet: str) -> None:
    for height, lands in ((planets()[planet].jump, True), (planets()[planet].jump + 1, False)):
        world = begun()
        world.universe.place(planet)
        world.universe.beings["ann"].place = planet
        _, place, being = room(world)
        for y in range(FLOOR - height, FLOOR):
            place.put(81, y, NUMBER["stone"])
        do(world, "jump", direction="right")
        assert (being.x == 81) is lands, (planet, height)


def test_water_takes_the_harm_out_of_a_fall_and_the_breath_of_a_diver() -> None:
    world = begun()
    universe, place, being = room(world)
    for y in range(FLOOR, FLOOR + 6):
        for x in range(78, 83):
            place.cells[y * place.width + x] = WATER
    being.y = FLOOR - 20
    for _ in range(20):
        universe.pass_beat(being)
    assert being.health == 20
    do(world, "climb", direction="down", tiles=4)
    assert being.breath < 40


def test_lava_burns_to_death_and_materials_stay_behind_while_tools_do_not() -> None:
    world = begun()
    _, place, being = room(world)
    being.gain("coal", 5)
    being.gain("lens_green")
    place.put(80, FLOOR - 1, LAVA)
    result = do(world, "noop")
    while being.alive:
        result = do(world, "noop")
    assert result.done
    assert result.reward < 0
    event = world.handle_death("avatar-1")
    assert event.cause == "burning"
    assert event.items_dropped == {"coal": 5}
    assert {"worn_pick", "lens_green"} <= being.bag.keys()
    assert any(held["coal"] == 5 for held in place.contents.values())


def test_sand_falls_into_a_hole_and_not_onto_a_body() -> None:
    world = begun()
    universe, place, being = room(world)
    place.put(80, FLOOR - 6, SAND)
    place.put(84, FLOOR - 6, SAND)
    for _ in range(12):
        universe.world_beat()
    assert place.at(84, FLOOR - 1) == SAND
    assert place.at(80, being.y - 2) == SAND
    assert not place.solid(*being.cells[1])


def test_water_falls_flows_over_an_edge_and_stays_as_much_and_lava_that_meets_it_is_basalt() -> None:
    world = begun()
    _, place, _ = room(world)
    for x in range(20, 30):
        place.cells[FLOOR * place.width + x] = AIR
    for x in (18, 19):
        place.put(x, FLOOR - 1, WATER)
    for _ in range(60):
        settle(place, ())
    assert sum(tile == WATER for tile in place.cells) == 2
    assert all(place.at(x, FLOOR - 1) == AIR for x in (18, 19))
    place.put(60, FLOOR - 1, LAVA)
    place.put(61, FLOOR - 1, WATER)
    settle(place, ())
    assert place.at(60, FLOOR - 1) == NUMBER["basalt"]
    assert place.at(61, FLOOR - 1) == AIR


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("planet", list(planets()))
def test_a_new_planet_is_the_same_each_time_and_at_rest(planet: str, seed: int) -> None:
    place, again = terrain.planet(seed, planet), terrain.planet(seed, planet)
    assert place.cells == again.cells
    assert place.lens is not None
    assert place.at(*place.lens) == NUMBER["lens"]
    before = bytes(place.cells)
    cells = [(x, y) for y in range(place.height) for x in range(place.width)]
    place.restless.update(cell for cell in cells if TILES[place.at(*cell)].flow)
    for _ in range(12):
        settle(place, ())
    assert sum(a != b for a, b in zip(before, place.cells, strict=True)) <= 4


def test_seeds_give_different_planets() -> None:
    assert len({bytes(terrain.planet(seed, "fernhollow").cells) for seed in range(3)}) == 3


def test_every_recipe_can_be_reached_from_what_the_planets_have() -> None:
    found = {tile.drop for tile in TILES if tile.drop and tile.tier < 9}
    found |= {"meat", "hide", "shard"}
    for _ in recipes():
        found |= {name for name, recipe in recipes().items() if recipe.needs.keys() <= found}
    assert recipes().keys() <= found

"""The declared availability of actions, compared with their effects in the game."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest
from crafter import constants
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wsap_core import Action
from wsap_crafter.rules import ACTION_SPACE, GAME_ACTIONS, MOVES
from wsap_crafter.snapshot import dump_engine, load_engine

MATERIALS = constants.materials
DIRECTIONS = [(-1, 0), (1, 0), (0, -1), (0, 1)]


def reasons(scene) -> dict[str, str]:
    """Return the reason why each action is unavailable, empty if it is available."""
    return {a.name: a.reason for a in scene.look().available_actions}


def own_state(game) -> dict[str, Any]:
    """Return the state that an action of the player can change, without the effects of time."""
    player = game.player
    return {
        "position": player.pos.tolist(),
        "facing": tuple(int(v) for v in player.facing),
        "sleeping": player.sleeping,
        "inventory": dict(player.inventory),
        "achievements": dict(player.achievements),
        "ground": game.world._mat_map.tolist(),
        "objects": sorted((type(o).__name__, *o.pos.tolist(), o.health) for o in game.world.objects if o is not player),
        "thirst": player._thirst,
        "hunger": player._hunger,
        "grown": [o.grown for o in game.world.objects if hasattr(o, "grown")],
    }


def player_alone(game, action: str) -> dict[str, Any]:
    """Return the effects of an action by the player's own update, compared with noop.

    Both run in copies with the same random numbers, and without other objects moving, so that any difference is caused
    by the action.
    """
    changed, idle = load_engine(dump_engine(game)), load_engine(dump_engine(game))
    for copy_of_game, name in ((changed, action), (idle, "noop")):
        copy_of_game.player.action = name
        copy_of_game.player.update()
    after, without = own_state(changed), own_state(idle)
    return {key: (without[key], after[key]) for key in after if after[key] != without[key]}


def arrange(scene, data) -> None:
    """Put the player into an arbitrary small scene: ground, a creature in front, items."""
    draw = data.draw
    scene.empty()
    x, y = draw(st.sampled_from([(0, 5), (5, 0), (63, 63), (30, 30), (1, 1), (0, 0), (63, 0)]))
    facing = draw(st.sampled_from(DIRECTIONS))
    around = [(x + dx, y + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if (dx, dy) != (0, 0)]
    for cell in around:
        if 0 <= cell[0] < 64 and 0 <= cell[1] < 64:
            scene.put(draw(st.sampled_from([*MATERIALS, "table", "furnace", "grass", "path"])), *cell)
    scene.world[x, y] = draw(st.sampled_from(["grass", "sand", "path"]))
    scene.stand(x, y, facing)
    front = x + facing[0], y + facing[1]
    creature = draw(st.sampled_from([None, None, None, "Cow", "Zombie", "Skeleton", "Arrow", "Plant", "ripe"]))
    if creature and 0 <= front[0] < 64 and 0 <= front[1] < 64:
        attributes: dict[str, Any] = {"facing": (0, 1)} if creature == "Arrow" else {}
        if creature == "ripe":
            creature, attributes = "Plant", {"grown": 301}
        scene.put(creature, *front, **attributes)
    amounts = st.sampled_from([0, 0, 1, 2, 3, 4, 8, 9])
    for item in constants.items:
        scene.player.inventory[item] = draw(amounts)
    scene.player.inventory["health"] = scene.player._last_health = draw(st.integers(1, 9))
    scene.player.inventory["energy"] = draw(st.sampled_from([1, 8, 9]))
    scene.player.sleeping = draw(st.booleans())
    for name in ("collect_sapling", "collect_wood"):
        scene.player.achievements[name] = draw(st.integers(0, 1))


@pytest.fixture(scope="module")
def one_scene(request):
    from_conftest = request.getfixturevalue("scene_class")
    return from_conftest(1)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_an_available_action_does_something_and_an_unavailable_one_only_lets_time_pass(one_scene, data):
    arrange(one_scene, data)
    declared = reasons(one_scene)
    for action in GAME_ACTIONS:
        changes = player_alone(one_scene.game, action)
        if declared[action]:
            assert changes == {}, (action, declared[action])
        elif action not in ("noop", "do", "sleep"):
            assert changes, action
    one_scene.player.sleeping = False


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
@pytest.mark.slow
def test_an_available_action_does_what_it_promises(one_scene, data):
    arrange(one_scene, data)
    one_scene.player.sleeping = False
    declared = reasons(one_scene)
    for action in GAME_ACTIONS:
        if not declared[action]:
            _assert_promise(action, one_scene, player_alone(one_scene.game, action))


def _assert_promise(action: str, scene, changes: dict[str, Any]) -> None:
    verb, _, thing = action.partition("_")
    if action == "sleep":
        assert changes["sleeping"] == (False, True)
    elif verb == "move":
        assert "position" in changes or "facing" in changes
        if "position" in changes:
            before, after = changes["position"]
            west_east, north_south = after[0] - before[0], after[1] - before[1]
            assert {(-1, 0): "west", (1, 0): "east", (0, -1): "north", (0, 1): "south"}[
                west_east, north_south
            ] == MOVES[action]
    elif verb == "place":
        front = tuple(np.add(scene.player.pos, scene.player.facing).tolist())
        if thing == "plant":
            assert ("Plant", *front, 1) in changes["objects"][1]
        else:
            assert scene.world._mat_names[changes["ground"][1][front[0]][front[1]]] == thing
        assert "inventory" in changes
    elif verb == "make":
        before, after = changes.get("inventory", ({}, {}))
        assert changes["achievements"][1][action] == changes["achievements"][0][action] + 1
        assert after.get(thing, 9) == min(9, before.get(thing, 9) + 1) or before.get(thing) == 9


def _in_front(scene, thing, **attributes):
    """Return a scene with one thing south of the player, and the reason against `do`."""
    made = scene(0).empty()
    made.put(thing, 32, 33, **attributes)
    made.stand(32, 32)
    return made


def test_reasons_say_what_is_missing(scene):
    made = _in_front(scene, "stone").carry(wood=1)
    declared = reasons(made)
    assert declared["do"] == "collecting stone needs 1 wood pickaxe, you have none"
    assert declared["place_table"].startswith("needs 2 wood, you have 1, and you must face free grass, sand or path")
    assert declared["make_wood_pickaxe"] == "no table within reach (adjacent, diagonals included)"
    assert declared["sleep"] == "you are fully rested"
    assert declared["move_down"] == "stone is in the way and you face it already"
    assert declared["move_up"] == ""


def test_a_table_at_a_diagonal_is_within_reach(scene):
    made = scene(0).empty().stand(32, 32).carry(wood=1)
    made.put("table", 33, 33)
    assert reasons(made)["make_wood_pickaxe"] == ""
    made.world[33, 33] = "grass"
    made.put("table", 34, 32)
    assert "no table" in reasons(made)["make_wood_pickaxe"]


@pytest.mark.parametrize(
    ("x", "y", "works"), [(0, 10, False), (10, 0, False), (1, 1, True), (63, 63, True), (0, 0, False)]
)
def test_nothing_can_be_made_in_the_first_column_and_row_as_in_the_game(x, y, works, scene):
    made = scene(0).empty().stand(x, y).carry(wood=5)
    made.put("table", x + 1 if x < 63 else x - 1, y)
    declared = reasons(made)["make_wood_sword"]
    assert (declared == "") is works
    result = made.adapter.act(Action("make_wood_sword"))
    assert result.success is works
    assert result.observation.inventory.get("wood_sword", 0) == int(works)
    if not works:
        assert "westernmost column" in declared


def test_asleep_everything_but_waiting_is_declared_impossible_and_does_nothing(scene):
    made = scene(0).empty().stand(32, 32).carry(energy=3)
    made.look()
    assert made.adapter.act(Action("sleep")).success
    declared = reasons(made)
    assert declared["move_left"] == "you are asleep, and sleep on until rested or hurt"
    assert [name for name, reason in declared.items() if not reason] == ["noop", "sleep"]
    result = made.adapter.act(Action("move_left"))
    assert not result.success
    assert result.observation.location.coordinates == (32, 32)
    assert result.observation.step == 2


def test_rested_one_wakes_and_does_what_one_wanted(scene):
    made = scene(0).empty().stand(32, 32).carry(energy=9)
    made.player.sleeping = True
    assert reasons(made)["move_left"] == ""
    result = made.adapter.act(Action("move_left"))
    assert result.success
    assert "wake_up" in result.achievements
    assert result.observation.location.coordinates == (31, 32)


def test_a_full_load_of_saplings_can_not_grow_but_stone_can_be_dug_through(scene):
    made = _in_front(scene, "grass").carry(sapling=9)
    assert reasons(made)["do"] == ""  # never collected, so the achievement is still open
    made.player.achievements["collect_sapling"] = 1
    assert reasons(made)["do"] == "you carry 9 sapling, the most you can"
    made.world[32, 33] = "stone"
    made.carry(stone=9, wood_pickaxe=1)
    assert reasons(made)["do"] == ""
    assert made.adapter.act(Action("do")).success
    assert made.world[32, 33][0] == "path"


def test_an_impossible_action_takes_a_step_and_an_undeclared_one_does_not(scene):
    made = scene(0)
    adapter = made.adapter
    refused = adapter.act(Action("place_table"))
    assert not refused.success
    assert "needs 2 wood, you have none" in refused.message
    assert refused.observation.step == 1
    before = copy.deepcopy(dump_engine(made.game))
    for action in (Action("fly"), Action("noop", {"times": 3}), Action("")):
        unknown = adapter.act(action)
        assert not unknown.success
        assert unknown.observation is adapter.observe()
    assert dump_engine(made.game) == before


@pytest.mark.slow
def test_over_random_play_what_is_declared_impossible_changes_nothing(scene):
    made = scene(8, length=0)
    chooser = random.Random(8)
    for step in range(600):
        made.player.inventory.update(health=9, food=9, drink=9)
        if step % 60 == 0:
            made.carry(wood=5, stone=5, sapling=2, energy=7)
            made.look()
        action = chooser.choice(GAME_ACTIONS)
        declared = made.adapter.observe().is_available(action)
        changes = player_alone(made.game, action)
        assert declared.available or changes == {}, (step, action, declared.reason)
        result = made.adapter.act(Action(action))
        assert result.success is declared.available
        if result.done:
            made.adapter.reset()


def test_every_action_is_described_with_the_costs_of_the_game():
    assert ACTION_SPACE.names == tuple(constants.actions)
    for thing, rule in {**constants.place, **constants.make}.items():
        name = f"place_{thing}" if thing in constants.place else f"make_{thing}"
        text = ACTION_SPACE.find(name).description
        for item, amount in rule["uses"].items():
            assert f"{amount} {item.replace('_', ' ')}" in text
        for place in rule.get("nearby", []):
            assert place in text

"""What WSAP adds to MiniGrid: levels that follow each other, a pack, and ends."""

from __future__ import annotations

import json

import pytest
from minigrid.core.world_object import Goal, Lava

from wsap_core import Action, AvatarState, Context
from wsap_core.errors import ConfigError, SnapshotError
from wsap_minigrid.adapter import MiniGridAdapter


def test_a_locked_door_is_refused_without_a_key_and_says_which_is_missing(scene) -> None:
    result = scene().before_a_locked_door("red").do("toggle")
    assert not result.success
    assert "red key" in result.message


def test_a_key_of_another_colour_does_not_help(scene) -> None:
    assert not scene().before_a_locked_door("red", key="blue").do("toggle").success


def test_the_key_in_hand_opens_and_stays(scene) -> None:
    here = scene().before_a_locked_door("red", key="red")
    result = here.do("toggle")
    assert result.success
    assert set(result.achievements) == {"open_door", "unlock_door"}
    assert here.do("forward").observation.status["in_hand"] == "red key"


def test_the_limit_of_steps_ends_an_episode_as_a_limit_and_lava_does_not(scene) -> None:
    here = scene()
    here.env.step_count = here.world._limit - 2
    assert not here.do("turn_left").done
    late = here.do("turn_left")
    assert (late.done, late.truncated) == (True, True)
    burnt = scene().before_a_locked_door("red")
    burnt.env.grid.set(2, 1, Lava())
    burnt.env.step_count = burnt.world._limit - 1
    last = burnt.do("forward")
    assert (last.done, last.truncated, burnt.world.death[0]) == (True, False, "lava")


def test_each_action_tells_what_it_changed(scene) -> None:
    here = scene().before_a_locked_door("red", key="red")
    told = [here.do(name).message for name in ("toggle", "toggle", "toggle", "forward", "turn_left", "turn_right")]
    assert told == [
        "You unlocked and opened the red door with the red key in your hand.",
        "You closed the red door.",
        "You opened the red door.",
        "You went one cell east.",
        "You turned left and face north.",
        "You turned right and face east.",
    ]
    assert [here.do(name).message for name in ("drop", "pickup")] == [
        "You laid down the red key.",
        "You took the red key.",
    ]


def test_what_is_in_hand_at_the_end_of_a_level_is_kept_and_opens_no_door_of_a_later_one(scene) -> None:
    here = scene().before_a_locked_door("red", key="red")
    here.env.grid.set(3, 1, Goal())
    result = here.do("toggle", "forward", "forward")
    assert result.achievements == ("solve_key",)
    assert result.observation.status["level"] == "2 of 8"
    assert result.observation.status["in_hand"] == "nothing"
    assert result.observation.inventory == {"red key of an earlier level": 1}
    again = here.before_a_locked_door("red").do("toggle")
    assert not again.success
    assert "no red key" in again.message
    assert [item.name for item in here.world.release("avatar-1", "t1").items] == ["red key"]


def test_with_a_pack_what_is_in_hand_at_the_end_of_a_level_opens_doors_of_later_ones(scene) -> None:
    here = scene(pack="yes").before_a_locked_door("red", key="red")
    here.env.grid.set(3, 1, Goal())
    result = here.do("toggle", "forward", "forward")
    assert result.observation.inventory == {"red key": 1}
    again = here.before_a_locked_door("red").do("toggle")
    assert "improvise" in again.achievements
    assert again.message == "You unlocked and opened the red door with your red key."
    assert again.observation.inventory == {"red key": 1}


def test_the_description_tells_the_rule_that_holds(scene) -> None:
    assert "pack" not in scene().world.game_description
    assert "in your pack" in scene(pack="yes").world.game_description


def test_a_pack_that_is_neither_yes_nor_no_is_refused(scene) -> None:
    with pytest.raises(ConfigError, match="pack='some' must be yes or no"):
        scene(pack="some")


def test_lava_kills_and_another_episode_begins_with_empty_hands(scene) -> None:
    here = scene().before_a_locked_door("red", key="red")
    here.env.grid.set(3, 1, Lava())
    result = here.do("toggle", "forward", "forward")
    assert result.done
    assert result.reward == 0
    assert result.observation.avatar.state is AvatarState.DESTROYED
    death = here.world.handle_death("avatar-1")
    assert death.cause == "lava"
    back = here.world.respawn("avatar-1", death.respawn_options[0])
    assert back.success
    assert back.avatar is not None
    assert back.avatar.death_count == 1
    assert back.avatar.inventory == {}


def test_the_episode_ends_when_the_time_for_a_level_is_up(scene) -> None:
    here = scene()
    left = here.world.observe().status["steps_left"]
    result = here.do(*["turn_left"] * left)
    assert result.done
    assert here.world.body.state is AvatarState.BOUND
    assert not here.do("turn_left").success


def test_after_the_last_level_the_episode_is_over(scene) -> None:
    here = scene(level=8).before_a_locked_door("red", key="red")
    here.env.grid.set(3, 1, Goal())
    result = here.do("toggle", "forward", "forward")
    assert result.done
    assert "solve_maze" in result.achievements


@pytest.mark.parametrize("level", [0, 9, "2", True])
def test_a_level_that_does_not_exist_is_refused(level: object) -> None:
    with pytest.raises(ConfigError, match="from 1 to 8"):
        MiniGridAdapter(Context(config={"level": level}))


def forged(world: MiniGridAdapter, change) -> bytes:
    """Return the world's snapshot with something in it changed."""
    import zlib

    header, _, body = world.snapshot().partition(b"\n")
    state = json.loads(zlib.decompress(body))
    change(state["game"])
    return header + b"\n" + zlib.compress(json.dumps(state).encode())


@pytest.mark.parametrize(
    "change",
    [
        lambda game: game[0].__setitem__(2, 8),
        lambda game: game[0].__setitem__(5, {"golden crown": 1}),
        lambda game: game[0].__setitem__(5, {"red key": -1}),
        lambda game: game[1].__setitem__(0, 99),
        lambda game: game[1].__setitem__(0, 0),
        lambda game: game[2].append(3),
        lambda game: game[2].__setitem__(slice(None), [0] * len(game[2])),
        lambda game: game.pop(),
    ],
)
def test_a_forged_snapshot_is_refused_and_the_world_stays_as_it_was(change) -> None:
    world = MiniGridAdapter(Context(seed=4, config={"level": 3}))
    for name in ("forward", "turn_left", "forward"):
        world.act(Action(name))
    before = world.snapshot()
    with pytest.raises(SnapshotError):
        world.restore(forged(world, change))
    assert world.snapshot() == before

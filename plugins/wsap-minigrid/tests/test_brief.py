"""What small models are told of MiniGrid, compared with texts written by hand."""

from __future__ import annotations

from wsap_core.protocol import Avatar, Entity, Goal
from wsap_core.protocol.wire import Codec, encode
from wsap_minigrid.seen import GridObservation

MAP = (
    "#######",
    "#..k..#",
    "#.....L",
    "#.>.o.#",
    "#....~#",
)


def seen() -> GridObservation:
    return GridObservation(
        avatar=Avatar("player", "Player"),
        status={"ahead": "floor", "in_hand": "nothing"},
        nearby_entities=[
            Entity("key", "yellow key"),
            Entity("door", "locked yellow door"),
            Entity("ball", "blue ball"),
        ],
        current_goals=[Goal("key", "use the key to open the door")],
        local_map=MAP,
        legend={"~": "lava"},
    )


def test_what_is_seen_is_told_by_the_steps_to_walk_from_where_one_faces() -> None:
    assert seen().to_brief() == (
        "Goal: use the key to open the door.\n"
        "In your hand: nothing. Ahead: floor.\n"
        "You see: blue ball 2 ahead; yellow key 1 ahead 2 left; lava 3 ahead 1 right; "
        "locked yellow door 4 ahead 1 left.\n"
        "Free cells ahead: 1."
    )


def test_each_action_is_told_by_what_it_does_now() -> None:
    assert seen().phrases() == {
        "turn_left": "turn left to the yellow key",
        "turn_right": "turn right",
        "forward": "go forward to the blue ball",
        "pickup": "pick up the floor",
        "drop": "put down the nothing",
        "toggle": "open the floor",
    }


def test_it_is_recorded_under_the_name_of_the_kernel_s_observation() -> None:
    assert encode(seen())["$type"] == "GridObservation"
    assert Codec([GridObservation]).decode(GridObservation, encode(seen())) == seen()

"""Paths on hand-drawn maps."""

from __future__ import annotations

from itertools import pairwise

import pytest

from wsap_crafter.survivor.mind.grid import SIZE, WIDTH, bearing, cell_at, distance, place_of
from wsap_crafter.survivor.mind.paths import costs_for, find_route, spread

CORNER = (10, 10)


def drawn(picture):
    """Return the ground with the picture's upper left corner at CORNER, and the cells of its letters."""
    ground = bytearray(b"?" * SIZE)
    marks = {}
    for y, row in enumerate(picture.split()):
        for x, character in enumerate(row):
            cell = cell_at(CORNER[0] + x, CORNER[1] + y)
            if character.isupper() and character not in "TL":
                marks[character] = cell
                character = "."
            ground[cell] = ord(character)
    return ground, marks


def steps(way, start):
    """Return a path as compass letters."""
    letters = {1: "e", -1: "w", WIDTH: "s", -WIDTH: "n"}
    cells = [start, *way]
    return "".join(letters[b - a] for a, b in pairwise(cells))


BARE = costs_for({})
PICK = costs_for({"wood_pickaxe": 1})
BRIDGES = costs_for({"wood_pickaxe": 1, "stone": 1})


def test_the_straight_way_is_taken_over_open_ground():
    ground, at = drawn("A...B")
    assert steps(find_route(ground, at["A"], BARE, cells=(at["B"],)), at["A"]) == "eeee"


def test_the_way_goes_round_lava_even_if_it_is_much_longer():
    ground, at = drawn(
        """
        ALB
        .L.
        .L.
        ...
        """
    )
    assert steps(find_route(ground, at["A"], BRIDGES, cells=(at["B"],)), at["A"]) == "ssseennn"


def test_there_is_no_way_through_lava():
    ground, at = drawn("A.L.B")
    assert find_route(ground, at["A"], BRIDGES, cells=(at["B"],)) is None


def test_there_is_no_way_into_the_unknown():
    ground, at = drawn("A.?.B")
    assert find_route(ground, at["A"], BRIDGES, cells=(at["B"],)) is None


@pytest.mark.parametrize(("costs", "expected"), [(BARE, "sseeeenn"), (PICK, "eeee")])
def test_a_pickaxe_opens_the_way_through_stone_where_that_is_shorter(costs, expected):
    ground, at = drawn(
        """
        A.#.B
        .###.
        .....
        """
    )
    assert steps(find_route(ground, at["A"], costs, cells=(at["B"],)), at["A"]) == expected


@pytest.mark.parametrize(("costs", "reachable"), [(BARE, False), (PICK, False), (BRIDGES, True)])
def test_water_is_crossed_only_with_a_stone_and_a_pickaxe_to_take_it_up_again(costs, reachable):
    ground, at = drawn("A~~B")
    assert (find_route(ground, at["A"], costs, cells=(at["B"],)) is not None) is reachable


def test_the_nearest_thing_of_a_kind_is_found_and_the_way_ends_on_it():
    ground, at = drawn(
        """
        c..A.c
        ......
        """
    )
    way = find_route(ground, at["A"], BARE, wanted=b"c")
    assert steps(way, at["A"]) == "ee"
    assert ground[way[-1]] == ord("c")


def test_stones_that_are_kept_are_no_goals():
    ground, at = drawn("#A..#")
    kept = at["A"] - 1
    assert steps(find_route(ground, at["A"], PICK, wanted=b"#", kept=(kept,)), at["A"]) == "eee"


def test_blocked_cells_are_walked_round_but_reached_as_goals():
    ground, at = drawn(
        """
        AXB
        ...
        """
    )
    assert steps(find_route(ground, at["A"], BARE, cells=(at["B"],), blocked=(at["X"],)), at["A"]) == "seen"
    assert steps(find_route(ground, at["A"], BARE, cells=(at["X"],), blocked=(at["X"],)), at["A"]) == "e"


def test_being_there_already_is_an_empty_way():
    ground, at = drawn("A")
    assert find_route(ground, at["A"], BARE, cells=(at["A"],)) == []


def test_a_limit_ends_the_search():
    ground, at = drawn("A....B")
    assert find_route(ground, at["A"], BARE, cells=(at["B"],), limit=4) is None
    assert find_route(ground, at["A"], BARE, cells=(at["B"],), limit=5) is not None


def test_grass_is_avoided_by_night_where_sand_leads_there_as_well():
    ground, at = drawn(
        """
        A..B
        ____
        """
    )
    ground[at["A"]] = ground[at["B"]] = ord("_")
    assert steps(find_route(ground, at["A"], costs_for({}), cells=(at["B"],)), at["A"]) == "eee"
    assert steps(find_route(ground, at["A"], costs_for({}, dark=True), cells=(at["B"],)), at["A"]) == "seeen"


def test_spreading_visits_cells_by_price():
    ground, at = drawn(
        """
        A.T
        .#.
        """
    )
    seen = []
    spread(ground, at["A"], PICK, lambda cell, price: bool(seen.append((price, cell))))
    assert [price for price, _ in seen] == sorted(price for price, _ in seen)
    assert {cell for _, cell in seen} == {at["A"] + row + x for row in (0, WIDTH) for x in range(3)}


def test_places_and_cells_are_two_names_of_one_thing():
    for x, y in ((0, 0), (63, 0), (0, 63), (32, 17)):
        assert place_of(cell_at(x, y)) == (x, y)
    assert distance(cell_at(3, 4), cell_at(6, 0)) == 7


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (38, 32, "6 tiles east"),
        (32, 31, "1 tile north"),
        (28, 28, "8 tiles north-west"),
        (33, 42, "11 tiles south"),
        (32, 32, "right here"),
    ],
)
def test_bearings_read_as_a_person_would_say_them(x, y, words):
    assert bearing(cell_at(32, 32), cell_at(x, y)) == words

"""Declarations of parameters that would not be what they seem."""

from __future__ import annotations

from typing import Any

import pytest

from wsap_core import Action, ActionDef, ActionSpace, AdapterSpec, Context, ParamDef, World
from wsap_core.builtin.echo import EchoWorld
from wsap_core.errors import WorldError
from wsap_core.worlds.legality import check_action, narrowed, wrong_parameter

NESTED = {"type": "array", "items": {"type": "intger"}}


@pytest.mark.parametrize("spec", ["1..5", "-0.5-2.5", "1-", "5-1", "7", "1,5", "int", "Boolean", "1:5"])
def test_a_misspelt_range_or_the_name_of_a_type_is_no_free_text(spec: str) -> None:
    assert wrong_parameter(ParamDef("n", spec)).startswith(repr(spec))


@pytest.mark.parametrize("spec", ["1-5", "-5--1", "-180-180", "1|2", "what to say", "", "a number of coins", "string"])
def test_ranges_words_and_descriptions_are_declarations(spec: str) -> None:
    assert wrong_parameter(ParamDef("n", spec)) == ""


@pytest.mark.parametrize("schema", [{"type": "intger"}, NESTED])
def test_a_world_whose_actions_declare_what_is_impossible_is_refused_with_the_action(schema: dict[str, Any]) -> None:
    class Odd(EchoWorld):
        """An echo with an odd action."""

        action_space = ActionSpace([ActionDef("bid", "Bid", [ParamDef("coins", schema=schema)])])

    world = World.create(AdapterSpec("odd", "One line.", Odd), Context.create(0))
    with pytest.raises(WorldError, match=r"declares 'bid' with 'coins': schema.*type must be one of .*, not 'intger'"):
        world.open_seat("ann")


@pytest.mark.parametrize(
    ("schema", "words", "values"),
    [
        ({"type": "integer"}, ["1", "-2"], [1, -2]),
        ({"type": "number"}, ["0.5", "1"], [0.5, 1]),
        ({"type": "boolean"}, ["true"], [True]),
        ({"type": "array", "items": {"type": "integer"}}, ["[1]"], [[1]]),
        ({"type": "string"}, ["1", "true", "[1]"], ["1", "true", "[1]"]),
    ],
)
def test_each_choice_of_a_parameter_is_accepted_in_its_type(
    schema: dict[str, Any], words: list[str], values: list[object]
) -> None:
    bid = ActionDef("bid", "Bid", [ParamDef("coins", schema=schema)])
    (narrow,) = narrowed(bid, {"coins": words}).parameters
    assert narrow.json_schema()["enum"] == values
    for value in values:
        assert check_action(Action("bid", {"coins": value}), {"bid": bid}) == (Action("bid", {"coins": value}), "")


def test_a_choice_that_its_parameter_cannot_take_is_refused_by_name() -> None:
    bid = ActionDef("bid", "Bid", [ParamDef("coins", "1-10")])
    (narrow,) = narrowed(bid, {"coins": ["one"]}).parameters
    offered = narrow.json_schema()["enum"][0]
    assert "'coins' is not right" in check_action(Action("bid", {"coins": offered}), {"bid": bid})[1]


def test_whoever_leaves_out_a_number_is_told_which_are_possible_now() -> None:
    (narrow,) = narrowed(ActionDef("bid", "Bid", [ParamDef("coins", "1-10")]), {"coins": ["2", "5"]}).parameters
    refused = check_action(Action("bid", {}), {"bid": ActionDef("bid", "Bid", [narrow])})[1]
    assert refused == "bid needs 'coins' (one of 2, 5)."


@pytest.mark.parametrize("text", ["--5", "-", "\u00b2", "1_0", "", "9" * 5000, "\u2460"])
def test_a_text_that_is_no_whole_number_is_refused_by_name(text: str) -> None:
    bid = ActionDef("bid", "Bid", [ParamDef("coins", "1-10")])
    refused = check_action(Action("bid", {"coins": text}), {"bid": bid})[1]
    assert refused.startswith("bid: 'coins' is not right: ")


@pytest.mark.parametrize(("text", "number"), [("5", 5), (" 7 ", 7), ("\u0663", 3)])
def test_a_whole_number_may_be_written_as_text(text: str, number: int) -> None:
    bid = ActionDef("bid", "Bid", [ParamDef("coins", "1-10")])
    assert check_action(Action("bid", {"coins": text}), {"bid": bid}) == (Action("bid", {"coins": number}), "")


@pytest.mark.parametrize(("text", "taken"), [("bxc3", "bxc3"), ("Bxc3", "Bxc3"), (" BXC3 ", "Bxc3")])
def test_of_words_that_differ_only_in_case_the_one_that_is_written_is_taken(text: str, taken: str) -> None:
    move = ActionDef("play", "Move", [ParamDef("move", "Bxc3|bxc3")])
    assert check_action(Action("play", {"move": text}), {"play": move}) == (Action("play", {"move": taken}), "")

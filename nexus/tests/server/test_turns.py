"""What a person is asked for an action's parameters."""

from __future__ import annotations

from typing import Any

import pytest

from wsap_core.protocol import ActionDef, ActionSpace, Observation, ParamDef
from wsap_nexus.hub.outside.external import ExternalAgent
from wsap_nexus.server.turns import MOST_CHOICES, playable


def asked(**schema: Any) -> dict[str, Any]:
    """Return how a person is asked for a value of a schema."""
    seat = ExternalAgent()
    seat.initialize("", ActionSpace((ActionDef("say", parameters=(ParamDef("x", schema=schema),)),)))
    ((parameter,),) = (one["parameters"] for one in playable(seat, Observation()))
    return dict(parameter)


@pytest.mark.parametrize(("declared", "most"), [({}, 400), ({"maxLength": 20}, 20), ({"maxLength": 2000}, 2000)])
def test_a_text_may_be_as_long_as_the_game_lets_it_be(declared: dict[str, int], most: int) -> None:
    found = asked(type="string", **declared)
    assert (found["kind"], found["high"]) == ("text", most)


def test_more_choices_than_a_person_looks_through_are_typed() -> None:
    words = [f"word {i}" for i in range(MOST_CHOICES + 1)]
    assert asked(type="string", enum=words)["kind"] == "text"
    assert asked(type="string", enum=words[1:])["kind"] == "choice"
    assert asked(type="integer", enum=list(range(1000)))["kind"] == "whole"
    assert asked(type=["integer", "null"])["kind"] == asked(type="array", items={})["kind"] == "json"

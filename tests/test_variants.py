"""What a game is like, where that depends on its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from wsap_check import run_checks
from wsap_core import AdapterSpec
from wsap_core.errors import ConfigError, UsageError
from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace, Observation
from wsap_core.seams.context import Context


def players(spec: AdapterSpec, options: Mapping[str, Any]) -> Any:
    given = options.get("players", 3)
    if given == "many":
        raise ConfigError("The option players of parlour must be a whole number, not 'many'.")
    if given == "nothing":
        return None
    return replace(spec, seats=(given, given if given != "broken" else 1 // 0), seat_names=("host",))


class Chair:
    """One of them, who may only nod."""

    game_description = "A parlour."
    action_space = ActionSpace([ActionDef("nod", "Nod")])

    def __init__(self) -> None:
        self.nods = 0

    def observe(self) -> Observation:
        return Observation(step=self.nods)

    def act(self, action: Action) -> ActionResult:
        if action.name != "nod" or self.nods >= 5:
            return ActionResult(False, "No.", done=self.nods >= 5, observation=self.observe())
        self.nods += 1
        return ActionResult(True, "You nod.", done=self.nods >= 5, observation=self.observe())

    def reset(self) -> Observation:
        raise UsageError("Nobody begins anew alone.")


class Parlour(Chair):
    """As many people as the option says, each for themselves; it is made for exactly so many."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.chairs: dict[str, Chair] = {}
        self.most = int(context.config.get("players", 3))

    def seat(self, agent_id: str) -> Chair:
        if len(self.chairs) >= self.most and agent_id not in self.chairs:
            raise UsageError("There is no chair left.")
        return self.chairs.setdefault(agent_id, Chair())

    def observe(self) -> Observation:
        raise UsageError("Ask a seat.")

    def act(self, action: Action) -> ActionResult:
        raise UsageError("Ask a seat.")

    def reset(self) -> Observation:
        for chair in self.chairs.values():
            chair.nods = 0
        return Observation()


SPEC = AdapterSpec("parlour", "Nod.", Parlour, abilities=("multi-seat",), seats=(2, 6), variant=players)


def test_without_a_variant_nothing_depends_on_the_options() -> None:
    assert AdapterSpec("a", "", Parlour, seats=(2, 6)).with_options({"players": 4}).seats == (2, 6)


@pytest.mark.parametrize(("options", "count"), [({}, 3), ({"players": 2}, 2), ({"players": 6}, 6)])
def test_the_game_says_what_it_is_like(options: dict[str, Any], count: int) -> None:
    spec = SPEC.with_options(options)
    assert (spec.seats, spec.seat_names) == ((count, count), ("host",))
    assert spec.with_options({"players": "many"}) is spec


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("many", "The option players of parlour must be a whole number, not 'many'"),
        ("broken", "'parlour' can't be played with these options: ZeroDivisionError"),
        (1, r"the seats \(1\) are not in 2 to 6"),
        (7, r"the seats \(7\) are not in 2 to 6"),
        (True, r"the seats \(True\)"),
        (3.0, r"the seats \(3.0\)"),
        ([3], r"the seats \(\[3\]\)"),
        ("nothing", "with these options: AttributeError"),
    ],
)
def test_what_it_can_not_say_is_told_in_a_sentence(given: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        SPEC.with_options({"players": given})


def test_the_checks_take_as_many_seats_as_the_options_say() -> None:
    report = run_checks(SPEC, steps=30, config={"players": 5}, only=["play", "spec", "shared-world"])
    assert report.ok, report.to_text()
    assert report.count("passed") == 3


def test_the_checks_tell_where_the_game_can_not_say_it() -> None:
    wrong = AdapterSpec("parlour", "Nod.", Parlour, abilities=("multi-seat",), seats=(2, 6), variant=players)
    with pytest.raises(UsageError, match=r"the seats \(9\) are not in 2 to 6"):
        run_checks(wrong, steps=10, config={"players": 9}, only=["spec"])

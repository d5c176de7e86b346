"""Games in which another seat than the first moves first, and games of one seat on the base of those for several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from wsap_check import run_checks
from wsap_core.authoring.rounds import RoundGame
from wsap_core.protocol import Action, ActionDef, ActionSpace, Observation, ParamDef, Possible
from wsap_nexus import api


class SecondFirst(RoundGame):
    """Taking one to three of seven; who takes the last one wins. The second seat begins."""

    game_description = "Take one, two or three. Who takes the last one wins."
    action_space = ActionSpace((ActionDef("take", "Take some", (ParamDef("count", "1-3"),)),))
    seats = ("a", "b")
    timing = "alternating"

    def begin(self) -> None:
        self.left, self.mover = 7, 1

    def to_move(self) -> Sequence[str]:
        return (self.seats[self.mover],) if self.left else ()

    def legal(self, seat: str) -> Sequence[Possible]:
        return [Possible("take", choices={"count": [str(n) for n in range(1, min(3, self.left) + 1)]})]

    def apply(self, moves: Mapping[str, Action]) -> None:
        (action,) = moves.values()
        self.left -= action.parameters["count"]
        self.mover = 1 - self.mover

    def returns(self) -> dict[str, float]:
        winner = None if self.left else self.seats[1 - self.mover]
        return {seat: float(seat == winner) for seat in self.seats}

    def see(self, seat: str) -> Observation:
        return Observation(status={"left": self.left})

    def dump(self) -> dict[str, Any]:
        return {"left": self.left, "mover": self.mover}

    def load(self, state: Any) -> None:
        self.left, self.mover = state["left"], state["mover"]


class Alone(SecondFirst):
    """The same for one."""

    seats = ("a",)

    def begin(self) -> None:
        self.left, self.mover = 7, 0

    def apply(self, moves: Mapping[str, Action]) -> None:
        (action,) = moves.values()
        self.left -= action.parameters["count"]

    def returns(self) -> dict[str, float]:
        return {"a": 7.0 - self.left}


@pytest.mark.parametrize("game", [SecondFirst, Alone])
def test_they_conform(game: type[RoundGame]) -> None:
    report = run_checks(game, steps=20)
    assert report.ok, report.findings


def test_choices_of_a_number_are_numbers_and_can_be_taken() -> None:
    for agent in ("random-legal", "random"):
        summary = api.play(SecondFirst, agent, episodes=20, record=False).to_json()
        assert summary["episodes"] == 20
    refused = SecondFirst()
    refused.reset(3)
    assert refused.refusal("b", Action("take", {"count": 3})) == ""
    refused.left = 2
    assert "3" in refused.refusal("b", Action("take", {"count": 3}))

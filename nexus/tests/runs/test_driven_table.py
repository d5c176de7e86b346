"""Worlds of several seats, stepped by plain calls."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping, Sequence
from random import Random

import pytest

from wsap_core.authoring.rounds import RoundGame
from wsap_core.errors import SnapshotError, UsageError, WorldError
from wsap_core.protocol import Action, ActionDef, ActionSpace, Observation
from wsap_core.references import load_adapter_spec
from wsap_nexus.doors.driven import DrivenTable


def played(table: DrivenTable, chance: Random) -> dict[str, float]:
    """Play an episode at random, and return what each seat was paid."""
    paid = dict.fromkeys(table.seats, 0.0)
    while table.ready:
        for seat, outcome in table.step(chosen(table, chance)).items():
            paid[seat] += outcome.result.reward
    return paid


def chosen(table: DrivenTable, chance: Random) -> dict[str, Action]:
    found = {}
    for seat, seen in table.ready.items():
        names = [each.name for each in seen.available_actions or () if each.available]
        found[seat] = Action(chance.choice(names or list(table.action_space(seat).names[:2])))
    return found


@pytest.mark.parametrize("game", ["matrix", "matrix-turns", "matrix-free"])
def test_every_seat_is_asked_and_told_its_results_to_the_end(game: str) -> None:
    table = DrivenTable(game, {"rounds": 6})
    table.reset(4)
    first = list(table.ready)
    assert first == ["row"] if game == "matrix-turns" else ["row", "column"]
    paid = played(table, Random(1))
    assert table.done == {"row", "column"}
    assert any(paid.values())
    table.reset(4)
    assert played(table, Random(1)) == paid, "the same seed and actions"


def test_a_seat_that_waits_for_others_is_told_nothing_yet() -> None:
    table = DrivenTable("matrix", {"rounds": 3})
    table.reset(1)
    action = Action(table.action_space("row").names[0])
    assert table.step({"row": action}) == {}
    assert list(table.ready) == ["column"]
    with pytest.raises(UsageError, match="row is not to decide now; these are: column"):
        table.step({"row": action})
    assert set(table.step({"column": action})) == {"row", "column"}
    assert list(table.ready) == ["row", "column"]


def test_a_snapshot_is_gone_on_from() -> None:
    table = DrivenTable("matrix-turns", {"rounds": 6})
    table.reset(2)
    table.step(chosen(table, Random(0)))
    saved, ready = table.snapshot(), list(table.ready)
    paid = played(table, Random(5))
    table.restore(saved)
    assert list(table.ready) == ready
    again = played(table, Random(5))
    assert again == paid
    table.restore(saved)
    with pytest.raises(SnapshotError):
        table.restore(saved[:-5])
    assert list(table.ready) == ready


def test_it_is_stepped_where_a_loop_runs_too() -> None:
    async def inside() -> dict[str, float]:
        table = DrivenTable("matrix", {"rounds": 3})
        table.reset(1)
        paid = played(table, Random(2))
        table.close()
        return paid

    table = DrivenTable("matrix", {"rounds": 3})
    table.reset(1)
    assert asyncio.run(inside()) == played(table, Random(2))


class Breaks(RoundGame):
    """A game that fails in its first round."""

    seats = ("left", "right")
    game_description = "Break it."
    action_space = ActionSpace((ActionDef("go"),))
    timing = "simultaneous"

    def begin(self) -> None: ...

    def to_move(self) -> Sequence[str]:
        return self.seats

    def legal(self, seat: str) -> Sequence[str]:
        return ["go"]

    def apply(self, moves: Mapping[str, Action]) -> None:
        raise RuntimeError("out of order")

    def see(self, seat: str) -> Observation:
        return Observation()

    def returns(self) -> Mapping[str, float]:
        return dict.fromkeys(self.seats, 0.0)

    def dump(self) -> None: ...

    def load(self, data: object) -> None: ...


def test_what_a_game_raises_is_raised() -> None:
    table = DrivenTable(load_adapter_spec(Breaks))
    table.reset(0)
    with pytest.raises(WorldError, match="out of order"):
        table.step({seat: Action("go") for seat in table.seats})


def test_one_that_is_forgotten_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    table = DrivenTable("matrix-turns")
    table.reset(0)
    del table
    gc.collect()
    assert not caplog.records


def test_a_game_that_goes_on_by_itself_is_refused() -> None:
    with pytest.raises(UsageError, match="goes on by itself"):
        DrivenTable("sandbox:village")
    with pytest.raises(UsageError, match="has 2 to 2 seats, not 5"):
        DrivenTable("matrix", seats=5)

"""A recorded run shows the moves of several seats in the order in which they were made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hosts import host_with_ours
from rounds_kit import Standoff
from several_seats import RUN, Log, agent, play
from test_several_seats_resume import GAMES, by_chance, matrix_plan

from wsap_core.cli import main
from wsap_core.references import load_adapter_spec
from wsap_nexus import api
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.record.replay_order import IN_ORDER, in_order_made

SPEC = load_adapter_spec(Standoff)
PLAN = RunPlan("game", tuple(SeatPlan(name, "agent") for name in Standoff.seats), seed=3, episodes=3)


def moves(log: Log) -> list[tuple[str | None, str]]:
    steps = in_order_made(log.read_events(RUN, kinds=IN_ORDER))
    return [(step.seat, json.loads(step.body)["step"]["action"]["name"]) for step in steps]


@pytest.mark.parametrize("interactive", [False, True], ids=["agents", "people"])
def test_moves_in_turn_come_in_turn_wherever_the_run_was_cut(interactive: bool) -> None:
    agents = {
        name: agent(
            name, lambda c, n, o: "take" if o.status["passed"] == 4 else "pass", interactive=interactive and not i
        )
        for i, name in enumerate(Standoff.seats)
    }
    whole = Log()
    hashes = play(whole, PLAN, SPEC, agents)
    one = [("ann", "pass"), ("bob", "pass"), ("cid", "pass"), ("ann", "pass"), ("bob", "take")]
    assert moves(whole) == one * 3
    assert [e.seat for e in whole.of("step")] != [seat for seat, _ in moves(whole)], "results come later than moves"
    for length in range(1, len(whole.events) + 1, 5):
        log = whole.cut(length)
        assert play(log, PLAN, SPEC, agents) == hashes
        assert moves(log) == one * 3


@pytest.mark.parametrize("name", ["matrix", "matrix-turns", "matrix-free"])
def test_no_step_is_lost_or_doubled_and_each_seats_own_keep_their_order(name: str) -> None:
    agents = {"row": agent("a", by_chance), "column": agent("b", by_chance)}
    log = Log()
    play(log, matrix_plan(), GAMES[name], agents)
    for seat in agents:
        assert [move for who, move in moves(log) if who == seat] == log.actions(seat)
    if name == "matrix-turns":
        assert [seat for seat, _ in moves(log)] == ["row", "column"] * 4
    without = Log([event for event in log.events if event.kind != "chosen"])  # as of a single seat
    assert moves(without) == [(e.seat, json.loads(e.body)["step"]["action"]["name"]) for e in log.of("step")]


def test_a_step_whose_predecessor_never_had_its_result_is_still_shown() -> None:
    agents = {"row": agent("a", by_chance), "column": agent("b", by_chance)}
    whole = Log()
    play(whole, matrix_plan(), GAMES["matrix-turns"], agents)
    for length in range(len(whole.events)):
        log = whole.cut(length)
        assert len(moves(log)) == len(log.of("step"))


def test_the_command_and_the_api_show_them_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path))
    host = host_with_ours()
    api.play("matrix-turns", "random", options={"rounds": 3}, host=host)
    assert [step.seat for step in api.read_run(host=host).steps] == ["row", "column"] * 3
    assert main(["replay", "last"]) == 0
    assert [line.split("\t")[:2] for line in capsys.readouterr().out.splitlines()] == [
        [str(number), seat] for number in (1, 2, 3) for seat in ("row", "column")
    ]
    assert main(["replay", "last", "--from", "2", "--to", "3", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["seat"], row["step"]) for row in rows] == [("column", 1), ("row", 2)]

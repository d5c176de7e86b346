"""Ctrl-C while models are asked: the first press loses no reply, the second one stops at once."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "wsap-llm" / "tests"))

from llm_server.says import Say
from llm_server.server import ModelServer

from wsap_core.errors import RunInterruptedError
from wsap_eval.commands.live import Live
from wsap_eval.jobs.runner import Reports
from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite
from wsap_eval.run import Evaluation, Played, evaluate
from wsap_eval.tables.shown import cells, notes
from wsap_llm.kit import BudgetLimits

AT_ONCE, STEPS, WAIT = 4, 3, 120
REPLY = '{"action": "wait"}'


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ModelServer(Say(REPLY)) as found:
        yield found


def evaluation(server: ModelServer, **more: Any) -> Evaluation:
    own = {"model.base_url": server.base_url, "style": "json", "plan": "no"} | more.pop("own", {})
    entrants = (Entrant(agent="openai/qwen3:8b", label="m", options=own),)
    entry = GameEntry(game="echo", options={"length": STEPS})
    suite = Suite(name="stopping", games=(entry,), entrants=entrants, seeds=Seeds(count=6))
    return Evaluation(suite, entrants, in_flight=AT_ONCE, **more)


def stopped(
    server: ModelServer, folder: Path, presses: int, in_flight: int = AT_ONCE, own: Mapping[str, Any] | None = None
) -> list[int]:
    """Press Ctrl-C while calls are in flight, which are answered after the last press; return what was told."""
    told, said = list[int](), threading.Event()

    def stopping(calls: int) -> None:
        told.append(calls)
        live.stopping(calls)
        said.set()

    def press() -> None:
        server.await_requests(in_flight)
        os.kill(os.getpid(), signal.SIGINT)
        assert said.wait(WAIT)
        if presses == 2:
            os.kill(os.getpid(), signal.SIGINT)
        else:
            server.release()

    server.default = Say(REPLY, wait=True)
    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(RunInterruptedError) as error, Live(folder) as live:
        evaluate(evaluation(server, own=own or {}), folder, Reports(live, stopping))
    thread.join()
    assert error.value.exit_code == 130
    return told


def calls_of(server: ModelServer) -> Counter[str]:
    return Counter(json.dumps(r.body, sort_keys=True) for r in server.requests if r.method == "POST")


def continued(server: ModelServer, folder: Path, own: Mapping[str, Any] | None = None) -> Played:
    server.release()
    server.default = Say(REPLY)
    return evaluate(evaluation(server, own=own or {}), folder)


@pytest.mark.slow
def test_the_first_ctrl_c_awaits_and_records_calls_in_flight_and_starts_nothing(
    server: ModelServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stopped(server, tmp_path, presses=1) == [AT_ONCE]
    assert "Stopping: 4 calls in flight, which you pay for, are awaited and recorded" in capsys.readouterr().err
    assert calls_of(server).total() == AT_ONCE, "neither another call nor another episode"
    played = continued(server, tmp_path)
    assert calls_of(server).total() == 6 * STEPS, "none is bought again"
    (row,) = played.rows()
    assert (row.asked_again, row.calls) == (0, 6 * STEPS)


@pytest.mark.slow
def test_the_second_ctrl_c_stops_at_once_and_the_table_tells_what_was_asked_again(
    server: ModelServer, tmp_path: Path
) -> None:
    assert stopped(server, tmp_path, presses=2) == [AT_ONCE]
    played = continued(server, tmp_path)
    assert calls_of(server).total() == 6 * STEPS + AT_ONCE
    (row,) = played.rows()
    assert (row.asked_again, row.calls) == (AT_ONCE, 6 * STEPS)
    told = " ".join(notes(row))
    assert "4 calls were in flight at an interruption and asked again; what the provider billed" in told


@pytest.mark.slow
def test_calls_that_waited_for_their_turn_were_not_in_flight(server: ModelServer, tmp_path: Path) -> None:
    one = {"model.concurrency": 1}
    stopped(server, tmp_path, presses=2, in_flight=1, own=one)
    played = continued(server, tmp_path, own=one)
    assert calls_of(server).total() == 6 * STEPS + 1
    (row,) = played.rows()
    assert (row.asked_again, row.calls) == (1, 6 * STEPS)


@pytest.mark.slow
def test_a_limit_reached_in_one_episode_loses_no_reply_of_the_others(server: ModelServer, tmp_path: Path) -> None:
    limits = BudgetLimits(calls=2 * STEPS + 1)
    first = evaluate(evaluation(server, limits=limits), tmp_path)
    assert first.limit
    assert calls_of(server).total() <= 2 * STEPS + 1
    assert sum(record.outcome == "finished" for record in first.records) == 2, "whole episodes instead of halves"
    played = evaluate(evaluation(server), tmp_path)
    assert calls_of(server).total() == 6 * STEPS
    (row,) = played.rows()
    assert row.asked_again == 0
    assert cells(row)[7] == "?"

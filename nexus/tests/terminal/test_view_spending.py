"""What models take, wherever it is shown: while a run is played, after it, in the list of runs, and looking back."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hosts import host_with_ours
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from wsap_core import PluginHost
from wsap_core.cli import main
from wsap_core.host import Registration
from wsap_core.protocol import Observation
from wsap_core.seams.agent import Usage
from wsap_core.seams.context import Context
from wsap_core.seams.model import Finish, Reply, Request
from wsap_core.specs import BackendSpec
from wsap_llm.scripted import ScriptedBackend
from wsap_nexus.api import play
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.session import start
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.repository import Repository
from wsap_nexus.terminal.live import LiveView
from wsap_nexus.terminal.plain import PlainProgress, summary_lines
from wsap_nexus.terminal.recorded import Recording
from wsap_nexus.terminal.screen import Look, compose
from wsap_nexus.terminal.spending import (
    Spent,
    brief,
    count,
    money,
    packed,
    parts,
    rate,
    share,
    spending_of,
    spending_so_far,
)
from wsap_nexus.terminal.story import SeatScene, Stage

UNKNOWN = Spent(Usage(120, 210_000, 9_800, None), 100, 6, 1, 31.4)
WAIT = json.dumps({"action": "wait", "params": {}, "reasoning": "no hurry"})


def a_host(cost: float | None, answer: Callable[[int], str] = lambda number: WAIT) -> PluginHost:
    """Return a host with a model that takes 100 tokens and says 10, at a cost for each call."""

    def make(context: Context) -> ScriptedBackend:
        asked: list[Request] = []

        def reply(request: Request) -> Reply:
            asked.append(request)
            return Reply(answer(len(asked)), finish=Finish(usage=Usage(1, 100, 10, cost)))

        return ScriptedBackend(reply, model=f"shop/{context.config['model']}")

    host = host_with_ours()
    host.backends.add(Registration(BackendSpec("shop", "", make), "t", "t"))
    return host


OPTIONS: dict[str, Any] = {"model": "shop/x", "plan": "no"}


def play_echo(database: str, host: PluginHost, steps: int = 10) -> dict[str, Any]:
    return play("echo", "llm", agent_options=OPTIONS, steps=steps, database=database, host=host).to_json()


def shown(stage: Stage, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    console.print(compose(stage, width, height, Look(plain=True)), height=height)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return [line.rstrip() for line in text.splitlines()]


def a_stage(spending: Spent) -> Stage:
    scene = SeatScene("seat-1", "llm", Observation(status={"health": 9}), steps=100)
    return replace(Stage("Island", "20261120-island-7f3a", 7, None, (scene,)), spending=spending)


# --- figures -------------------------------------------------------------------------------------


@given(st.floats(0, 1e6, exclude_min=True))
def test_only_what_costs_nothing_is_shown_as_costing_nothing(cost: float) -> None:
    assert money(cost).strip("$<").strip("0.") != ""
    assert money(None) == "cost unknown"
    assert money(0.0) == "$0.00"


@given(st.integers(1, 10**6), st.data())
def test_a_share_says_none_only_for_none_and_all_only_for_all(all_of_them: int, data: st.DataObject) -> None:
    some = data.draw(st.integers(0, all_of_them))
    assert (share(some, all_of_them) == "0%") is (some == 0)
    assert (share(some, all_of_them) == "100%") is (some == all_of_them)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [(0, "0"), (9_999, "9999"), (10_000, "10.0k"), (999_949, "999.9k"), (999_950, "1.00M"), (12_340_000, "12.34M")],
)
def test_tokens_are_written_short(tokens: int, words: str) -> None:
    assert count(tokens) == words


def test_no_figures_are_shown_where_no_model_was_asked() -> None:
    assert parts(Spent(decisions=100)) == []
    assert brief(Spent(decisions=100)) == []


def test_long_waits_are_counted_on_the_screen_and_out_of_a_summary() -> None:
    assert "2 retries after a wait" in parts(replace(UNKNOWN, retries=2))
    assert spending_of({"usage": {"calls": 3, "retries": 1}}).retries == 1
    assert not any("wait" in figure for figure in parts(UNKNOWN))


def test_a_rate_is_shown_after_ten_decisions_and_not_before() -> None:
    usage = Usage(20, 9_000, 1_000, 0.5)
    assert rate(Spent(usage, 9, progress=0.1)) == []
    assert rate(Spent(usage, 10)) == ["a decision takes 2 calls, 1000 tokens, $0.0500"]
    assert rate(Spent(usage, 10, progress=0.01)) == [
        "a decision takes 2 calls, 1000 tokens, $0.0500",
        "at this rate the run takes 2000 calls, 1.00M tokens, $50.00",
    ]
    assert len(rate(Spent(usage, 10, progress=1.0))) == 1, "a run that is over takes no more"
    assert rate(Spent(replace(usage, cost=None), 20)) == ["a decision takes 1 call, 500 tokens, cost unknown"]
    assert rate(Spent(decisions=50, progress=0.5)) == []


@given(st.integers(20, 200))
def test_lines_never_get_wider_than_they_may(width: int) -> None:
    lines = packed(parts(UNKNOWN), width)
    assert all(len(line) <= width for line in lines)
    assert ", ".join(lines).replace("\n", "") == ", ".join(", ".join(parts(UNKNOWN)).split(", ")) or width < 21


# --- the live view -------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "height"), [(100, 30), (80, 24), (60, 18), (200, 50)])
@pytest.mark.parametrize("cost", [None, 1.25])
def test_the_live_view_shows_what_models_take_at_every_size(width: int, height: int, cost: float | None) -> None:
    spending = replace(UNKNOWN, usage=replace(UNKNOWN.usage, cost=cost))
    lines = shown(a_stage(spending), width, height)
    assert len(lines) == height
    text = ", ".join(line.strip() for line in lines[2:4])
    assert "models 120 calls" in text
    assert "210.0k" in text
    assert "9800" in text
    assert ("cost unknown" if cost is None else "$1.25") in text
    assert "7% fixed" in text or "6% repaired, 1% forced" in text


def test_the_live_view_has_no_line_about_models_where_none_plays() -> None:
    assert not any("models" in line or "cost" in line for line in shown(a_stage(Spent(decisions=5)), 100, 30))


def test_a_run_that_is_played_shows_its_models_as_it_goes(tmp_path: Path) -> None:
    host = a_host(None, lambda number: "what?" if number == 3 else WAIT)
    controls = Controls()
    console = Console(file=io.StringIO(), width=100, height=30, force_terminal=True, color_system=None)
    view = LiveView(console, controls, pace=None)
    plan = RunPlan("echo", (SeatPlan("seat-1", "llm", OPTIONS),), steps=10)
    with open_store(str(tmp_path / "runs.db")) as store, start(plan, host, store, controls=controls) as session:
        view.follow(session.run, host.games.get("echo"))
        session.run.observe(view.observe)
        asyncio.run(session.play())
        view.print_last()
        taken = spending_so_far(session.run)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "models 11 calls, 1100 tokens in, 110 out, cost unknown, 10% repaired, 0% forced" in text
    assert taken.tokens_per_second is not None
    assert "tokens/s" in text


# --- plain lines and summaries -------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 60, 100])
def test_lines_of_progress_say_what_models_took_and_fit_a_telephone(width: int, tmp_path: Path) -> None:
    lines: list[str] = []
    moments = iter(range(0, 1000, 6))
    plan = RunPlan("echo", (SeatPlan("seat-1", "llm", OPTIONS),), steps=4)
    host = a_host(None)
    with open_store(str(tmp_path / "runs.db")) as store, start(plan, host, store) as session:
        run = session.run
        progress = PlainProgress(
            lines.append, spending=lambda: spending_so_far(run), width=width, clock=lambda: float(next(moments))
        )
        run.observe(progress.observe)
        asyncio.run(session.play())
    assert all(len(line) <= width for line in lines)
    text = " ".join(line.strip() for line in lines)
    assert "4 calls" in text
    assert "400 tokens in" in text
    assert "cost unknown" in text
    assert "0% repaired" in text


@pytest.mark.parametrize(("cost", "words"), [(None, "cost unknown"), (0.002, "$0.0200"), (0.0, "$0.00")])
def test_every_summary_says_tokens_calls_cost_and_the_share_that_was_fixed(
    cost: float | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = str(tmp_path / "runs.db")
    summary = play_echo(database, a_host(cost))
    expected = f"10 calls, 1000 tokens in, 100 out, {words}, 0% repaired, 0% forced"

    assert summary["usage"]["cost"] == (None if cost is None else pytest.approx(10 * cost))
    lines = summary_lines(summary, units={}, catalogue=0, planned=40)
    assert any(expected in line for line in lines)
    each = "cost unknown" if cost is None else money(cost)
    assert f"a decision takes 1 call, 110 tokens, {each}" in lines
    whole = "cost unknown" if cost is None else money(40 * cost)
    assert f"at this rate the run takes 40 calls, 4400 tokens, {whole}" in lines

    assert main(["runs", "--database", database]) == 0
    assert capsys.readouterr().out.split("\t")[-3:] == ["1100", words.removeprefix("cost "), "0%\n"]
    assert main(["runs", "--json", "--database", database]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["usage"] == summary["usage"]
    assert row["decisions"]["repaired"] == 0

    assert main(["replay", "last", "--database", database]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 10, "a line for each step, and the models beside them"
    assert expected in err
    assert main(["replay", "last", "--json", "--database", database]) == 0
    steps = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [step["usage"]["cost"] for step in steps] == [cost] * 10


def test_a_run_without_models_has_dashes_and_not_noughts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = str(tmp_path / "runs.db")
    summary = play("echo", "random", steps=5, database=database).to_json()
    assert not any("model" in line for line in summary_lines(summary, units={}, catalogue=0))
    assert main(["runs", "--database", database]) == 0
    assert capsys.readouterr().out.split("\t")[-3:] == ["-", "-", "-\n"]
    assert main(["replay", "last", "--database", database]) == 0
    assert "model" not in capsys.readouterr().err
    assert main(["replay", "last", "--json", "--database", database]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["usage"] is None


def test_looking_back_shows_what_was_taken_up_to_each_step(tmp_path: Path) -> None:
    database = str(tmp_path / "runs.db")
    host = a_host(0.5, lambda number: "what?" if number in (3, 5, 6) else WAIT)
    play_echo(database, host)
    with open_store(database) as store:
        repository = Repository(store.database)
        recording = Recording(repository, repository.get_run("last"), host)
        at = [recording.stage(position).spending for position in range(11)]
    assert at[0] == Spent()
    assert [taken.usage.calls for taken in at] == [0, 1, 2, 4, 6, 7, 8, 9, 10, 11, 12]
    assert at[10].usage.cost == pytest.approx(6.0)
    assert [taken.repaired + taken.forced for taken in at] == [0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2]


def test_a_cost_that_is_unknown_for_one_call_is_unknown_for_the_run(tmp_path: Path) -> None:
    asked: list[Request] = []

    def reply(request: Request) -> Reply:
        asked.append(request)
        return Reply(WAIT, finish=Finish(usage=Usage(1, 100, 10, None if len(asked) == 7 else 0.5)))

    host = a_host(0.0)
    host.backends.add(Registration(BackendSpec("odd", "", lambda context: ScriptedBackend(reply)), "t", "t"))
    database = str(tmp_path / "runs.db")
    options = {**OPTIONS, "model": "odd/x"}
    summary = play("echo", "llm", agent_options=options, steps=10, database=database, host=host).to_json()
    assert summary["usage"]["cost"] is None
    assert money(spending_of(summary).usage.cost) == "cost unknown"


def test_a_summary_reads_as_what_it_has() -> None:
    known = {
        "usage": {"calls": 3, "prompt_tokens": 30, "completion_tokens": 6, "cost": None},
        "decisions": {"total": 3},
    }
    assert spending_of(known) == Spent(Usage(3, 30, 6, None), 3)
    assert spending_of({}) == Spent(Usage(cost=None))

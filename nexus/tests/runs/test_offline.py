"""A recorded run, with tools that change the world and a memory that asks a model, replays with the network cut off."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hosts import host_with_ours
from warm import begin_python

from wsap_core import PluginHost
from wsap_core.host import Registration
from wsap_core.protocol import Tool
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.context import Context
from wsap_core.seams.model import Abilities, Request
from wsap_core.seams.model_errors import BadRequestError
from wsap_core.specs import BackendSpec
from wsap_llm.decision.toolbox import RecordedTool
from wsap_llm.journal import BROKEN_OFF, ToolJournal
from wsap_llm.scripted import ScriptedBackend
from wsap_nexus.api import RunSummary, resume_run
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.session import replies_of, start
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.records import EventRecord

SERVER = str(Path(__file__).parents[3] / "plugins" / "wsap-llm" / "tests" / "mcp_server" / "server.py")

CUT_OFF = """
import asyncio, os, socket, subprocess, sys

def cut(*args, **options):
    raise AssertionError("something was asked outside this process")

for name in ("connect", "connect_ex", "sendto", "sendmsg"):
    setattr(socket.socket, name, cut)
socket.getaddrinfo = socket.create_connection = cut
asyncio.create_subprocess_exec = asyncio.create_subprocess_shell = cut
asyncio.base_events.BaseEventLoop.create_connection = cut
subprocess.Popen.__init__ = cut
os.posix_spawn = os.fork = os.system = cut
from wsap_core.cli import main
sys.exit(main())
"""
"""Runs `wsap` in a process that can reach nobody."""


class Player:
    """A model that uses a tool before every second action, in either style, and sums up."""

    def __init__(self, style: str, notebook: Path) -> None:
        self.style = style
        self.notebook = notebook
        self.asked = 0
        self.decided = 0
        self.fails: Callable[[int], bool] = lambda number: False
        self.summed_up = 0

    def make(self, context: Context) -> ScriptedBackend:
        abilities = Abilities(prefill=self.style == "prefill")
        return ScriptedBackend(self.answer, model=f"player/{context.config['model']}", abilities=abilities)

    def answer(self, request: Request) -> str:
        self.asked += 1
        last = request.messages[-1].text()
        if "LIVED THROUGH SINCE" in last:
            self.summed_up += 1
            if self.fails(self.summed_up):
                raise BadRequestError("the model fell over")
            return f"I remember {self.summed_up} things."
        seen = last + request.prefill
        used = "lines" in seen and ("Result of" in last or "<observation>" in seen)
        if not used:
            self.decided += 1
        if self.decided % 2 and not used:
            return self.tool("writes", {"path": str(self.notebook), "text": f"line {self.decided}"})
        return self.say(f"{self.decided}: {'used' if used else 'plain'} {len(seen)}")

    def tool(self, name: str, params: dict[str, str]) -> str:
        if self.style == "json":
            return json.dumps({"tool": name, "params": params})
        return f"{'' if self.style == 'prefill' else '<thinking>'}Let me see.<{name}>{json.dumps(params)}</{name}>"

    def say(self, text: str) -> str:
        if self.style == "json":
            return json.dumps({"action": "speak", "params": {"text": text}})
        return f"So be it.</thinking><speak>{text}</speak>"


def host_with(player: Player) -> PluginHost:
    own = host_with_ours()
    own.backends.add(Registration(BackendSpec("player", "", player.make), "t", "t"))
    return own


@pytest.fixture(scope="module")
def served() -> Iterator[dict[str, Any]]:
    """The option that names a server of the tools which runs already, for tests of what is done with them."""
    with subprocess.Popen([sys.executable, SERVER, "http"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield {"mcp.command": None, "mcp.url": f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"}
        finally:
            server.kill()


def plan(style: str, *, steps: int = 12, snapshot_every: int = 5, **options: Any) -> RunPlan:
    """Plan a run whose tools are in a process of its own, with other options given; None for no such option."""
    given: dict[str, Any] = {
        "model": "player/loud",
        "style": "json" if style == "json" else "tags",
        "tools": "mcp,calculator,notes",
        "mcp.command": [sys.executable, SERVER, "stdio"],
        "memory": "fifo",
        "memory.cells": 2,
        "memory.summary_model": "player/short",
        "recall_tokens": 600,
        **options,
    }
    return RunPlan(
        "echo",
        (SeatPlan("seat-1", "llm", {name: value for name, value in given.items() if value is not None}),),
        steps=steps,
        options={"length": 7},
        snapshot_every=snapshot_every,
    )


def record(database: str, host: PluginHost, plan: RunPlan, *, stop_after: int | None = None) -> RunSummary:
    controls = Controls()
    seen: list[object] = []

    def observe(step: object) -> None:
        seen.append(step)
        if len(seen) == stop_after:
            controls.stop()

    with (
        open_store(database) as store,
        start(plan, host, store, controls=controls, observers=[observe]) as session,
    ):
        return asyncio.run(session.play())


def taken(summary: RunSummary) -> list[Any]:
    """What a summary says that was asked of models, without how fast they were."""
    said = summary.to_json()["usage"]
    return [said[name] for name in ("calls", "prompt_tokens", "completion_tokens", "cost")]


def events(database: str, run: str) -> Iterator[EventRecord]:
    with open_store(database) as store:
        yield from store.repository.read_events(run)


def told(database: str, run: str) -> list[tuple[str, str | None, int, int | None, bytes]]:
    """Everything in a run's log but when it was started and how it ended."""
    return [(e.kind, e.seat, e.episode, e.step, e.body) for e in events(database, run) if e.kind != "run"]


@pytest.mark.slow
@pytest.mark.parametrize("style", ["json", "tags", "prefill"])
def test_a_run_with_a_server_of_tools_and_a_summarising_memory_replays_byte_for_byte_with_everything_cut_off(
    style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: dict[str, Any]
) -> None:
    database, notebook = str(tmp_path / "runs.db"), tmp_path / "notebook"
    player = Player(style, notebook)
    player.fails = lambda number: number in (2, 5)
    tools = {} if style == "json" else served  # a program, or at an address
    first = record(database, host_with(player), plan(style, **tools))
    written, asked = notebook.read_text(), player.asked
    lines = written.count("\n")
    assert lines >= 5
    assert player.summed_up > 5

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WSAP_DATABASE", raising=False)
    process = begin_python(CUT_OFF, "play", "--replay", str(first.run), "--database", database, "--json")
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    again = json.loads(out)
    assert again["trajectory_hash"] == first.trajectory_hash
    assert notebook.read_text() == written, "the tool was called again"
    assert player.asked == asked
    before, after = told(database, str(first.run)), told(database, again["run"])
    kinds = [kind for kind, *_ in before]
    assert kinds.count("call") == asked - 2, "two summaries failed"
    assert kinds.count("tool") == 2 * lines, "that each begins, and what came of it"
    assert {"tools", "failure", "decision", "snapshot"} <= set(kinds)
    assert after == before


@pytest.mark.slow
@pytest.mark.parametrize("snapshot_every", [0, 3])
@pytest.mark.parametrize("stop", [5, 11])
@pytest.mark.parametrize("style", ["json", "prefill"])
def test_a_run_that_is_gone_on_with_calls_no_tool_twice(
    style: str, stop: int, snapshot_every: int, tmp_path: Path, served: dict[str, Any]
) -> None:
    player = Player(style, tmp_path / "notebook")
    database = str(tmp_path / "runs.db")
    is_program = (style, stop, snapshot_every) == ("json", 5, 3)  # once one that is begun anew
    made = plan(style, snapshot_every=snapshot_every, **({} if is_program else served))
    whole = record(database, host_with(player), made)
    written, asked = player.notebook.read_text(), player.asked

    player.notebook.unlink()
    player.asked = player.decided = player.summed_up = 0
    record(database, host_with(player), made, stop_after=stop)
    resumed = resume_run(database=database, host=host_with(player))
    assert resumed.trajectory_hash == whole.trajectory_hash
    assert player.notebook.read_text() == written
    assert player.asked == asked
    assert taken(resumed) == taken(whole)


@pytest.mark.slow
def test_a_run_that_was_gone_on_with_replays_too(tmp_path: Path) -> None:
    player = Player("json", tmp_path / "notebook")
    database, host = str(tmp_path / "runs.db"), host_with(player)
    record(database, host, plan("json", snapshot_every=3), stop_after=5)
    resumed = resume_run(database=database, host=host)
    written = player.notebook.read_text()
    with open_store(database) as store:
        again, past = replies_of(str(resumed.run), store)
        with start(again, host_with(Player("json", tmp_path / "other")), store, past=past) as session:
            second = asyncio.run(session.play())
    assert second.trajectory_hash == resumed.trajectory_hash
    assert player.notebook.read_text() == written
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("style", "options"),
    [
        ("json", {}),
        ("tags", {}),
        ("json", {"memory": "none", "memory.cells": None, "memory.summary_model": None}),
        ("tags", {"memory.batch": 3}),
        ("json", {"plan": "no", "window": 2}),
        ("tags", {"tool_calls": 0}),
    ],
)
def test_what_a_summary_says_of_usage_is_the_sum_over_the_recorded_calls(
    style: str, options: dict[str, Any], tmp_path: Path, served: dict[str, Any]
) -> None:
    database = str(tmp_path / "runs.db")
    player = Player(style, tmp_path / "notebook")
    player.fails = lambda number: number == 3
    made = plan(style, **served, **options)
    for stop in (None, 4):
        summary = record(database, host_with(player), made, stop_after=stop)
        if stop is not None:
            summary = resume_run(database=database, host=host_with(player))
        calls = [
            Usage(**e.data["reply"]["finish"]["usage"]) for e in events(database, str(summary.run)) if e.kind == "call"
        ]
        total = sum(calls, NO_USAGE)
        assert taken(summary) == [total.calls, total.prompt_tokens, total.completion_tokens, total.cost]
        assert total.calls >= 12


# --- one tool ---------------------------------------------------------------------------------


class Log:
    """What a recorder writes, in memory."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def append(
        self, run_id: str, kind: str, body: str | bytes, *, seat: str | None = None, episode: int = 0,
        step: int | None = None,
    ) -> int:  # fmt: skip
        self.bodies.append(json.loads(body))
        return len(self.bodies)


class Counter:
    """A tool that keeps a number of its own."""

    def __init__(self) -> None:
        self.definition = Tool("counter", "Counts.")
        self.count = 0

    def run(self, parameters: object) -> str:
        self.count += 1
        return str(self.count)

    def snapshot(self) -> bytes:
        return str(self.count).encode()

    def restore(self, data: bytes) -> None:
        self.count = int(data)


def journal(log: Log, past: list[dict[str, Any]] | None = None, *, offline: bool = False) -> ToolJournal:
    own = ToolJournal(partial(Recorder(log, "run").write, seat="seat-1"), offline=offline)
    for event in past or []:
        assert own.take(event)
    return own


def test_a_tool_that_keeps_something_has_it_again_without_being_called() -> None:
    log = Log()
    tool = RecordedTool(Counter(), journal(log))

    async def twice() -> list[str]:
        return [await tool.run({}), await tool.run({})]

    assert asyncio.run(twice()) == ["1", "2"]
    counter = Counter()
    again = RecordedTool(counter, journal(Log(), log.bodies))

    async def thrice() -> list[str]:
        return [await again.run({}), await again.run({}), await again.run({})]

    assert asyncio.run(thrice()) == ["1", "2", "3"]


@contextmanager
def hanging() -> Iterator[tuple[Any, asyncio.Event]]:
    begun = asyncio.Event()

    class Hanging(Counter):
        async def run(self, parameters: object) -> str:  # type: ignore[override]
            begun.set()
            await asyncio.Event().wait()
            return "never"

    yield Hanging(), begun


@pytest.mark.parametrize("killed", [False, True])
def test_a_call_that_was_broken_off_is_not_made_again_and_the_model_is_told(killed: bool) -> None:
    log = Log()
    with hanging() as (tool, begun):

        async def broken_off() -> None:
            task = asyncio.ensure_future(RecordedTool(tool, journal(log)).run({}))
            await begun.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(broken_off())
    past = log.bodies[:1] if killed else log.bodies  # a killed process writes no more
    after = Log()
    counter = Counter()
    assert asyncio.run(RecordedTool(counter, journal(after, past)).run({})) == BROKEN_OFF
    assert counter.count == 0
    replayed = Counter()
    everything = past + after.bodies
    assert asyncio.run(RecordedTool(replayed, journal(Log(), everything, offline=True)).run({})) == BROKEN_OFF
    assert replayed.count == 0

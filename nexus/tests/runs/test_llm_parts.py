"""The options of an agent's memory and tools, from the run's options to the part itself."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hosts import host_with_ours

from wsap_core import PluginHost
from wsap_core.errors import ConfigError
from wsap_core.host import Registration
from wsap_core.seams.context import Context
from wsap_core.seams.model import Request
from wsap_core.specs import BackendSpec
from wsap_llm.scripted import ScriptedBackend
from wsap_nexus.api import play
from wsap_nexus.runs.session import replies_of, start
from wsap_nexus.runs.store import open_store


class Speaker:
    """A model that plays, and another at the same address that sums up."""

    def __init__(self) -> None:
        self.played: list[str] = []
        self.summed_up: list[str] = []

    def make(self, context: Context) -> ScriptedBackend:
        def answer(request: Request) -> str:
            text = request.messages[-1].text()
            if "LIVED THROUGH SINCE" in text:
                self.summed_up.append(text)
                return f"I said {len(self.summed_up)} things."
            self.played.append(text)
            return json.dumps({"action": "speak", "params": {"text": f"word {len(self.played)}"}})

        return ScriptedBackend(answer, model=f"speaker/{context.config['model']}")


@pytest.fixture
def speaker() -> Speaker:
    return Speaker()


@pytest.fixture
def host(speaker: Speaker) -> PluginHost:
    own = host_with_ours()
    own.backends.add(Registration(BackendSpec("speaker", "", speaker.make), "t", "t"))
    return own


OPTIONS: dict[str, Any] = {
    "model": "speaker/loud",
    "plan": "no",
    "reflect": "no",
    "memory": "fifo",
    "recall_tokens": 1000,
}


def test_the_options_of_a_memory_reach_it_and_its_summaries_are_recorded_and_replayed(
    host: PluginHost, speaker: Speaker, tmp_path: Path
) -> None:
    database = str(tmp_path / "runs.db")
    options = {**OPTIONS, "memory.cells": 2, "memory.summary_model": "speaker/short"}
    first = play("echo", "llm", agent_options=options, steps=6, database=database, host=host)
    assert len(speaker.summed_up) == 4, "two of six steps are still in cells"
    assert "- Before: (Echo, steps 0 to 2) I said 3 things." in speaker.played[-1]
    asked = len(speaker.played)
    host.backends = type(host.backends)(BackendSpec, "backend", "backends")  # there is nobody left to ask
    with open_store(database) as store:
        again, past = replies_of(str(first.run), store)
        with start(again, host, store, past=past) as session:
            second = asyncio.run(session.play())
    assert second.trajectory_hash == first.trajectory_hash
    assert (len(speaker.played), len(speaker.summed_up)) == (asked, 4)


@pytest.mark.slow
def test_a_model_uses_the_tool_of_a_server_in_a_run_and_the_server_ends_with_it(
    host: PluginHost, tmp_path: Path
) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> str:
        asked.append(request)
        if len(asked) == 1:
            return json.dumps({"tool": "says", "params": {"text": "the code is 4711"}})
        return json.dumps({"action": "speak", "params": {"text": "done"}})

    pid = tmp_path / "pid"
    server = str(Path(__file__).parents[3] / "plugins" / "wsap-llm" / "tests" / "mcp_server" / "server.py")
    script = (
        f"import os, runpy, sys; open({str(pid)!r}, 'w').write(str(os.getpid())); "
        f"sys.argv = ['server.py', 'stdio']; runpy.run_path({server!r}, run_name='__main__')"
    )
    host.backends.add(
        Registration(BackendSpec("caller", "", lambda c: ScriptedBackend(answer, model="caller/x")), "t", "t")
    )
    options = {"model": "caller/x", "plan": "no", "tools": "mcp", "mcp.command": [sys.executable, "-c", script]}
    summary = play("echo", "llm", agent_options=options, steps=2, host=host, record=False)
    assert summary.steps == 2
    assert "the code is 4711" in asked[1].messages[-1].text()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_wrong_option_of_a_part_is_told_before_the_run(host: PluginHost, tmp_path: Path) -> None:
    for options, why in (
        ({"memory.sells": 2}, "fifo memory has no option 'sells'"),
        ({"tools": "recall", "recall.tokens": 1}, "tokens of the recall tool"),
        ({"tools": "recall", "memory": "none"}, "requires a memory"),
        ({"calculator.digits": 3}, "no option 'calculator.digits'"),
    ):
        with pytest.raises(ConfigError, match=why):
            play("echo", "llm", agent_options={**OPTIONS, **options}, steps=1, host=host, record=False)

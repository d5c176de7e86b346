"""`wsap mcp` as a client starts it: a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from mcp import Client, MCPError, StdioServerParameters

from wsap_mcp.command import mcp
from wsap_nexus.store.database import Database
from wsap_nexus.store.repository import Repository

WSAP = [sys.executable, "-m", "wsap_core"]


def parameters(home: Path, *arguments: str) -> StdioServerParameters:
    """Return how a client starts the command."""
    environ = {**os.environ, "WSAP_HOME": str(home), "PYTHONDONTWRITEBYTECODE": ""}
    return StdioServerParameters(command=WSAP[0], args=[*WSAP[1:], "mcp", *arguments], env=environ)


def kill_children() -> None:
    """Kill the processes that this one has started."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[1]) == os.getpid():
                os.kill(int(path.parent.name), signal.SIGKILL)


def within(use: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(use())  # type: ignore[arg-type]  # a coroutine function


@pytest.mark.slow
@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_client_that_starts_the_command_plays_over_its_input_and_output_whatever_the_game_prints(
    tmp_path: Path, era: str
) -> None:
    source = (
        "from wsap_core.builtin.echo import EchoWorld\nimport os, sys\n"
        "class Prints(EchoWorld):\n    def act(self, action):\n"
        "        print('{}')\n        os.write(1, b'noise\\n')\n        sys.stdout.write('more')\n"
        "        return super().act(action)\n"
    )
    (tmp_path / "prints.py").write_text(source, encoding="utf-8")

    async def use() -> None:
        async with Client(parameters(tmp_path, f"{tmp_path}/prints.py:Prints"), mode=era) as client:
            begun = (await client.call_tool("start_game", {})).structured_content
            for _ in range(3):
                result = await client.call_tool("act", {"game": begun["game"], "action": "wait"})
                assert not result.is_error
            assert result.structured_content["step"] == 3

    within(use)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="how to find a child is known for Linux only")
def test_a_game_goes_on_in_another_process_after_the_first_was_killed(tmp_path: Path) -> None:
    runs: list[str] = []

    async def first() -> None:
        async with Client(parameters(tmp_path, "crafter")) as client:
            begun = (await client.call_tool("start_game", {"seed": 3})).structured_content
            runs.append(begun["run"])
            for _ in range(5):
                await client.call_tool("act", {"game": begun["game"], "action": "noop"})
            kill_children()
            with pytest.raises((MCPError, OSError, ExceptionGroup)):
                async with asyncio.timeout(60):
                    await client.call_tool("act", {"game": begun["game"], "action": "noop"})

    async def then() -> None:
        async with Client(parameters(tmp_path, "--resume", runs[0])) as client:
            told = client.instructions or ""
            handle = told.partition("its handle is '")[2].partition("'")[0]
            result = await client.call_tool("act", {"game": handle, "action": "noop"})
            assert result.structured_content["step"] == 6

    with suppress(ExceptionGroup):  # its server is gone
        within(first)
    within(then)
    with Database.open(str(tmp_path / "wsap.db")) as database:
        assert Repository(database).get_run(runs[0]).status.value == "interrupted"


@pytest.mark.slow
def test_over_http_strangers_and_other_hosts_get_nothing(tmp_path: Path) -> None:
    import urllib.error
    import urllib.request

    token = tmp_path / "token"
    token.write_text("t" * 30, encoding="ascii")
    environ = {**os.environ, "WSAP_HOME": str(tmp_path)}
    command = [*WSAP, "mcp", "echo", "--http", "0", "--token-file", str(token)]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().split()[3]
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
            for more in (
                {},
                {"Authorization": "Bearer " + "x" * 30},
                {"Authorization": "Bearer " + "t" * 30, "Host": "evil.example"},
            ):
                headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **more}
                with pytest.raises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60)
                assert refused.value.code in (401, 421)
                refused.value.close()
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["crafter", "--nexus"], "leave out the game"),
        (["--agent", "eve"], "add --nexus"),
        (["--each"], "name the game"),
    ],
)
def test_what_does_not_go_together_is_said(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(mcp, arguments)
    assert words in str(result.exception)


def test_the_block_for_a_client_starts_the_same_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["wsap", "mcp", "crafter", "--each", "--config"])
    result = CliRunner().invoke(mcp, ["crafter", "--each", "--config"])
    (name,) = servers = json.loads(result.output)["mcpServers"]
    assert name == "wsap-crafter"
    assert servers[name]["args"] == ["mcp", "crafter", "--each"]
    assert Path(servers[name]["command"]).is_absolute()

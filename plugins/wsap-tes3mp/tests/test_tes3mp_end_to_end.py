"""From `wsap tes3mp install` to an agent's command in the game: processes, real ports, the script in LuaJIT."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from wsap_core.cli import main
from wsap_nexus import api
from wsap_tes3mp.client import BridgeClient
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.log.records import COMMAND
from wsap_tes3mp.paths import log_file
from wsap_tes3mp.protocol.commands import CommandInput, Outcome

WSAP = (sys.executable, "-m", "wsap_core")
GAME = (sys.executable, Path(__file__).parent / "run_script_server.py")


class Process:
    """A process that says in its first lines that it is ready."""

    def __init__(self, *arguments: object) -> None:
        self.child = subprocess.Popen([str(a) for a in arguments], stdout=subprocess.PIPE, text=True)
        assert self.child.stdout is not None
        self.said = self.child.stdout.readline().strip()
        while self.said.startswith("{") and not self.said.endswith("}"):
            self.said += self.child.stdout.readline().strip()

    def stop(self) -> None:
        self.child.kill()
        self.child.communicate(timeout=60)


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A server's folder of scripts, into which the script is installed."""
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    folder = tmp_path / "tes3mp" / "server" / "scripts"
    folder.mkdir(parents=True)
    for name in ("serverCore.lua", "customScripts.lua"):
        (folder / name).touch()
    subprocess.run([*WSAP, "tes3mp", "install", str(tmp_path / "tes3mp")], check=True, stdout=subprocess.DEVNULL)
    return folder


async def play(client: BridgeClient, restart: Callable[[], None]) -> dict[str, Outcome]:
    """Act as an agent, with a restart of the game in between; return what came of each command."""
    ends: dict[str, Outcome] = {}

    async def begin(name: str, **params: Any) -> str:
        sent = CommandInput(
            timestamp=datetime.now(UTC), agent_id="nerys", command=name, params=params, reasoning="Test."
        )
        return (await client.command(sent)).command_id

    async def end(command_id: str) -> Outcome:
        ends[command_id] = await client.outcome(command_id, wait=60)
        return ends[command_id]

    async def connected() -> None:
        async with asyncio.timeout(120):
            while not (await client.status()).bridge_connected:  # noqa: ASYNC110 - another process's state
                await asyncio.sleep(0.05)

    await connected()
    assert [agent.agent_id for agent in await client.agents()] == ["nerys", "othmar"]
    seen = await client.perception("nerys")
    assert seen.location.cell == "Test House"
    assert {entity.entity_type for entity in seen.nearby_entities} == {"npc", "player"}
    assert (await end(await begin("move_to", target_x=500, target_y=300))).state == "confirmed"
    assert (await client.perception("nerys")).location.x == 500
    assert (await end(await begin("dialogue", entity_id="nobody", topic="rumors"))).code == "NO_ENTITY"
    assert (await end(await begin("journal_note", content="I have moved."))).state == "confirmed"
    waiting = await begin("wait", duration_seconds=36000)
    assert (await client.outcome(waiting, wait=1)).state == "dispatched"
    restart()
    assert (await end(waiting)).state == "unknown"
    await connected()
    assert (await end(await begin("wait", duration_seconds=1))).state == "confirmed"
    return ends


@pytest.mark.slow
def test_an_agent_acts_in_the_game_through_all_of_it(scripts: Path) -> None:
    settings = scripts / "custom" / "wsap" / "settings.lua"
    settings.write_text(settings.read_text().replace("port = 8766", "port = 0"))
    with ExitStack() as stack:

        def started(*arguments: object) -> Process:
            process = Process(*arguments)
            stack.callback(process.stop)
            return process

        game = started(*GAME, scripts)
        settings.write_text(settings.read_text().replace("port = 0", f"port = {game.said}"))
        bridge = started(
            *WSAP, "tes3mp", "serve", "--engine", "tes3mp", "--script", f"127.0.0.1:{game.said}", "--port", 0, "--json"
        )
        told = json.loads(bridge.said)

        def restart() -> None:
            game.stop()
            started(*GAME, scripts)

        token = Path(told["token_file"]).read_text(encoding="ascii").strip()

        async def scenario() -> dict[str, Outcome]:
            async with BridgeClient(told["url"], token, timeout=60.0) as client:
                return await play(client, restart)

        ends = asyncio.run(scenario())
    with CommandLog(Path(told["log"])) as log:
        found = {command_id: log.find(command_id) for command_id in ends}
    assert [end and end.state for end in found.values()] == [end.state for end in ends.values()]
    assert len(ends) == 5


@pytest.mark.slow
def test_the_agent_of_the_embedded_world_plays_in_the_game_unchanged(scripts: Path) -> None:
    settings = scripts / "custom" / "wsap" / "settings.lua"
    settings.write_text(settings.read_text().replace("port = 8766", "port = 0"))
    game = Process(*GAME, scripts)
    try:
        options = [f"address=127.0.0.1:{game.said}", "engine=tes3mp", "agent=nerys"]
        given = [word for option in options for word in ("--option", option)]
        played = subprocess.run(
            [*WSAP, "play", "morrowind", "--steps", "15", "--json", *given],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    finally:
        game.stop()
    found = json.loads(played.stdout)
    assert (found["agent"], found["steps"]) == ("morrowind-wayfarer", 15)
    with CommandLog(log_file()) as log:
        rows = log.read(select(COMMAND.c.state, COMMAND.c.agent_id, COMMAND.c.command))
    assert len(rows) >= 15
    assert {row.agent_id for row in rows} == {"nerys"}
    assert "confirmed" in {row.state for row in rows}
    # The script reports no effect of talking to somebody who has nothing to say.
    assert {row.state for row in rows if row.command != "interact"} <= {"confirmed", "failed"}


@pytest.mark.slow
def test_the_baseline_random_comes_about_so_that_a_floor_of_an_evaluation_says_something() -> None:
    counted = api.play("morrowind", "random", seed=0, steps=1500, record=False).to_json()
    assert len(counted["achievements"]) >= 3, counted


@pytest.mark.slow
def test_the_log_of_several_runs_says_whose_and_which_each_line_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    file, out = str(tmp_path / "log.sqlite"), tmp_path / "steps.jsonl"
    words = ("play", "morrowind", "--episodes", "2", "--option", f"log={file}", "--option", "length=4", "--no-watch")
    for more in ((), (), ("--as", "ada")):
        subprocess.run([*WSAP, *words, *more], check=True, stdout=subprocess.DEVNULL, timeout=600)
    assert main(["tes3mp", "log", "export", "--log", file, "--format", "steps", "--out", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 3 * 2 * 4
    episodes = [row["episode"] for row in rows]
    assert len(set(episodes)) == 6
    assert [row["next_state_id"] is None for row in rows] == [False, False, False, True] * 6
    agents = {row["agent"] for row in rows}
    assert len(agents) == 3, "two unnamed agents of two runs are not the same"
    assert "ada" in agents
    assert all("/ada/" in row["episode"] for row in rows if row["agent"] == "ada")

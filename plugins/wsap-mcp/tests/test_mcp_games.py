"""Games played by the official MCP client, connected within the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.types import CallToolResult, TextContent

from wsap_core.errors import UsageError
from wsap_core.protocol import Action
from wsap_mcp.games import OpenGames
from wsap_mcp.play import Play, Terms, instructions_of
from wsap_mcp.tools import server_of
from wsap_nexus import api
from wsap_nexus.doors import outside

ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
"""With a handshake and sessions, and the protocol without either."""


@asynccontextmanager
async def served(
    tmp_path: Path, game: str | None = "crafter", era: str = "2026-07-28", *, most: int = 32, **how: Any
) -> AsyncIterator[tuple[Client, OpenGames]]:
    with outside.opened(str(tmp_path / "wsap.db")) as runs:
        games = OpenGames(runs, most=most, **({"clock": how.pop("clock")} if "clock" in how else {}))
        play = Play(games, Terms(game, **how), chance=lambda below: 11)
        server = server_of("wsap", instructions_of(play.spec), play.tools(), play.resources())
        try:
            async with Client(server, mode=era) as client:
                yield client, games
        finally:
            await games.close_all()


def within(use: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(use())  # type: ignore[arg-type]  # a coroutine function


def text(result: CallToolResult) -> str:
    (part,) = result.content
    assert isinstance(part, TextContent)
    return part.text


@ERAS
def test_a_whole_game_is_played_and_recorded(tmp_path: Path, era: str) -> None:
    async def use() -> None:
        async with served(tmp_path, era=era, options={"length": 4}) as (client, games):
            begun = await client.call_tool("start_game", {"seed": 7})
            assert "survival game" in text(begun)
            assert "POSSIBLE NOW" in text(begun)
            handle = begun.structured_content["game"]
            for move in ("move_left", "move_up", "noop", "move_left"):
                result = await client.call_tool("act", {"game": handle, "action": move, "reasoning": "I try."})
                assert not result.is_error
            assert result.structured_content["done"]
            assert "The game is over. Look back with: wsap replay" in text(result)
            hashes.append(result.structured_content["summary"]["trajectory_hash"])
            stopped = await client.call_tool("stop_game", {"game": handle})
            assert text(stopped).startswith("The game is over.")
            assert len(games) == 0

    hashes: list[str] = []
    within(use)
    walked = api.play("crafter", walker(), seed=7, options={"length": 4}, record=False)
    assert hashes == [walked.to_json()["trajectory_hash"]]


def walker() -> type:
    """Return an agent that takes the same steps."""

    class Walks:
        def __init__(self) -> None:
            self.moves = iter(("move_left", "move_up", "noop", "move_left"))

        def initialize(self, *about: object) -> None: ...

        def decide(self, observation: object) -> Action:
            return Action(next(self.moves))

        def reflect(self, result: object) -> None: ...

        def plan(self, goals: object) -> list[str]:
            return []

    return Walks


def test_refusals_are_results_that_a_model_can_read(tmp_path: Path) -> None:
    async def use() -> None:
        async with served(tmp_path) as (client, _):
            handle = (await client.call_tool("start_game", {})).structured_content["game"]
            useless = await client.call_tool("act", {"game": handle, "action": "place_table"})
            assert useless.is_error
            assert "needs 2 wood" in text(useless)
            assert useless.structured_content["step"] == 1, "as in Crafter itself, it takes a step"
            for given, wanted in (
                ({"action": "fly"}, "fly"),
                ({"action": "move_left", "parameters": {"far": 1}}, "far"),
                ({}, "The arguments of act do not fit: action is missing"),
                ({"action": "noop", "speed": 9}, "speed"),
            ):
                result = await client.call_tool("act", {"game": handle, **given})
                assert result.is_error
                assert wanted in text(result)
            assert (await client.call_tool("show_game", {"game": handle})).structured_content["step"] == 1

    within(use)


def test_only_who_has_the_handle_plays_a_game(tmp_path: Path) -> None:
    async def use() -> None:
        async with served(tmp_path) as (client, games):
            first = (await client.call_tool("start_game", {})).structured_content["game"]
            second = (await client.call_tool("start_game", {})).structured_content["game"]
            await client.call_tool("act", {"game": first, "action": "noop"})
            assert (await client.call_tool("show_game", {"game": second})).structured_content["step"] == 0
            await client.call_tool("stop_game", {"game": first})
            for handle in (first, "nothing", first[:-1]):
                with pytest.raises(MCPError) as refused:
                    await client.call_tool("act", {"game": handle, "action": "noop"})
                assert refused.value.error.code == -32602
            assert len(games) == 1

    within(use)


def test_a_stopped_game_is_resumed_by_its_run(tmp_path: Path) -> None:
    async def use() -> None:
        async with served(tmp_path) as (client, _):
            begun = (await client.call_tool("start_game", {})).structured_content
            assert begun["seed"] == 11
            await client.call_tool("act", {"game": begun["game"], "action": "move_left"})
            stopped = await client.call_tool("stop_game", {"game": begun["game"]})
            assert begun["run"] in text(stopped)
            again = await client.call_tool("resume_game", {"run": begun["run"]})
            assert again.structured_content["step"] == 1
            refused = await client.call_tool("resume_game", {"run": "no-such-run"})
            assert refused.is_error
            assert "no-such-run" in text(refused)

    within(use)


def test_games_that_nobody_calls_are_stopped_and_so_are_too_many(tmp_path: Path) -> None:
    now = 0.0

    async def use() -> None:
        nonlocal now
        async with served(tmp_path, "echo", most=2, clock=lambda: now) as (client, games):
            old = (await client.call_tool("start_game", {})).structured_content
            await client.call_tool("start_game", {})
            refused = await client.call_tool("start_game", {})
            assert refused.is_error
            assert "2 games are open, which is the maximum" in text(refused)
            now += 1801
            assert not (await client.call_tool("start_game", {})).is_error
            assert len(games) == 1
            assert not (await client.call_tool("resume_game", {"run": old["run"]})).is_error

    within(use)


def test_each_action_can_be_a_tool_with_its_parameters(tmp_path: Path) -> None:
    async def use() -> None:
        async with served(tmp_path, "echo", each=True) as (client, _):
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert {"speak", "wait"} <= set(tools)
            assert "act" not in tools
            schema = tools["speak"].input_schema
            assert schema["required"] == ["game", "text"]
            assert schema["properties"]["text"] == {"type": "string", "description": "what to say"}
            handle = (await client.call_tool("start_game", {})).structured_content["game"]
            told = await client.call_tool("speak", {"game": handle, "text": "Hello."})
            assert "Hello." in text(told)
            refused = await client.call_tool("speak", {"game": handle})
            assert "text is missing" in text(refused)
            assert (await client.list_tools()).tools == list(tools.values()), "the list never changes"

    within(use)


def test_actions_that_are_seldom_of_use_need_no_tools_of_their_own(tmp_path: Path) -> None:
    async def use() -> None:
        async with served(tmp_path, "matrix", each=True) as (client, _):
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert {"cooperate", "defect", "say", "act"} <= set(names)
            assert "tell" not in names, "with one other player, say does the same"

    within(use)


def test_each_needs_a_game() -> None:
    with pytest.raises(UsageError, match="name the game"):
        Play(OpenGames(FakeRuns()), Terms(None, each=True)).tools()  # type: ignore[arg-type]  # only its host is used


class FakeRuns:
    host = None


def test_any_installed_game_but_no_file_can_be_chosen(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("raise SystemExit('executed')", encoding="utf-8")

    async def use() -> None:
        async with served(tmp_path, None) as (client, _):
            listed = await client.call_tool("list_games", {})
            assert {"crafter", "matrix", "echo"} <= set(listed.structured_content["games"])
            begun = await client.call_tool("start_game", {"name": "echo"})
            assert begun.structured_content["possible"] == ["speak", "wait"]
            for name in (f"{tmp_path}/own.py:Game", "./own.py:Game", "craftr", ""):
                refused = await client.call_tool("start_game", {"name": name})
                assert refused.is_error
                assert "executed" not in text(refused)
            # A part of this name is a package that is imported.
            refused = await client.call_tool("start_game", {"name": "gymnasium:os:Walk-v0"})
            assert "where the server is started" in text(refused)

    within(use)


def test_others_play_the_other_seats(tmp_path: Path) -> None:
    async def use() -> None:
        async with served(tmp_path, "matrix", opponents="tit-for-tat", options={"rounds": 2}) as (client, _):
            begun = (await client.call_tool("start_game", {"seat": "column"})).structured_content
            assert begun["seat"] == "column"
            await client.call_tool("act", {"game": begun["game"], "action": "defect"})
            result = await client.call_tool("act", {"game": begun["game"], "action": "defect"})
            assert (result.structured_content["reward"], result.structured_content["done"]) == (1.0, True)
            refused = await client.call_tool("start_game", {"seat": "nobody"})
            assert "its seats are: row, column" in text(refused)

    within(use)


def test_rules_and_runs_can_be_read(tmp_path: Path) -> None:
    async def use() -> None:
        async with served(tmp_path, state=True) as (client, _):
            begun = (await client.call_tool("start_game", {})).structured_content
            assert begun["state"]["status"]["food"] == 9
            addresses = [resource.uri for resource in (await client.list_resources()).resources]
            assert addresses == ["wsap://games", "wsap://runs"]
            assert len((await client.list_resource_templates()).resource_templates) == 2

            async def read(address: str) -> str:
                (content,) = (await client.read_resource(address)).contents
                return content.text  # type: ignore[union-attr]  # no resource is binary

            assert begun["run"] in await read("wsap://runs")
            assert '"game":"crafter"' in await read(f"wsap://runs/{begun['run']}")
            assert "survival game" in await read("wsap://games/crafter")
            for unknown in ("wsap://runs/no-such-run", "wsap://nothing", "file:///etc/passwd"):
                with pytest.raises(MCPError):
                    await read(unknown)

    within(use)


def test_what_a_game_says_can_t_move_a_cursor(tmp_path: Path) -> None:
    source = (
        "from wsap_core.builtin.echo import EchoWorld\nfrom dataclasses import replace\n"
        "class Loud(EchoWorld):\n    def act(self, action):\n"
        "        return replace(super().act(action), message='\\x1b[2Jgone')\n"
    )
    (tmp_path / "loud.py").write_text(source, encoding="utf-8")

    async def use() -> None:
        async with served(tmp_path, f"{tmp_path}/loud.py:Loud") as (client, _):
            handle = (await client.call_tool("start_game", {})).structured_content["game"]
            assert "\x1b" not in text(await client.call_tool("act", {"game": handle, "action": "wait"}))

    within(use)


def test_a_game_that_fails_is_a_result_with_its_reason_and_the_server_goes_on(tmp_path: Path) -> None:
    source = (
        "from wsap_core.builtin.echo import EchoWorld\n"
        "class Falls(EchoWorld):\n    def act(self, action): raise ValueError('it fell')\n"
    )
    (tmp_path / "falls.py").write_text(source, encoding="utf-8")

    async def use() -> None:
        async with served(tmp_path, f"{tmp_path}/falls.py:Falls") as (client, _):
            for _ in range(2):
                handle = (await client.call_tool("start_game", {})).structured_content["game"]
                failed = await client.call_tool("act", {"game": handle, "action": "wait"})
                assert failed.is_error
                assert "it fell" in text(failed)

    within(use)


def test_what_a_seat_is_paid_when_another_ends_the_game_is_told(tmp_path: Path) -> None:
    source = (
        "from wsap_core import ActionDef, ActionSpace, Observation\n"
        "from wsap_core.authoring.rounds import RoundGame\n"
        "class Turns(RoundGame):\n"
        "    seats, game_description = ('a', 'b'), 'One after the other.'\n"
        "    action_space = ActionSpace((ActionDef('go', 'Go.'),))\n"
        "    def begin(self): self.moves = 0\n"
        "    def to_move(self): return () if self.moves >= 2 else (self.seats[self.moves],)\n"
        "    def legal(self, seat): return ('go',)\n"
        "    def apply(self, moves): self.moves += 1\n"
        "    def see(self, seat): return Observation(step=self.moves)\n"
        "    def returns(self): return {'a': 7.0 * (self.moves >= 2), 'b': 0.0}\n"
        "    def dump(self): return self.moves\n"
        "    def load(self, data): self.moves = data\n"
    )
    (tmp_path / "turns.py").write_text(source, encoding="utf-8")

    async def use() -> None:
        async with served(tmp_path, f"{tmp_path}/turns.py:Turns", seat="a", opponents="random") as (client, _):
            handle = (await client.call_tool("start_game", {})).structured_content["game"]
            told = (await client.call_tool("act", {"game": handle, "action": "go"})).structured_content
            assert (told["done"], told["reward"]) == (True, 7.0)

    within(use)

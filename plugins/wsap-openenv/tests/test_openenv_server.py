"""Games over OpenEnv's wire."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from openenv_kit import Client, Server, served, wait_until
from websockets.exceptions import ConnectionClosed, InvalidStatus

from wsap_core.errors import UsageError, WsapError
from wsap_core.protocol import Action
from wsap_nexus import api
from wsap_nexus.store.database import Database
from wsap_nexus.store.repository import Repository
from wsap_openenv.command import opponents_of, serve

MOVES = ("move_left", "move_up", "noop", "move_left")


def repeats(moves: tuple[str, ...]) -> type:
    """Return an agent that takes the same steps."""

    class Repeats:
        def __init__(self) -> None:
            self.moves = iter(moves)

        def initialize(self, *about: object) -> None: ...

        def decide(self, observation: object) -> Action:
            return Action(next(self.moves))

        def reflect(self, result: object) -> None: ...

        def plan(self, goals: object) -> list[str]:
            return []

    return Repeats


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a server of the smallest game."""
    with served(tmp_path_factory.mktemp("echo"), "echo") as server:
        yield server


def test_the_same_seed_and_moves_give_the_same_trajectory_as_a_run(tmp_path: Path) -> None:
    with served(tmp_path, "crafter", options={"length": 4}) as server, Client(server.socket) as client:
        first = client.ask("reset", seed=7, episode_id="mine")
        assert "NEARBY" in first["observation"]["text"]
        assert {"action": "noop"} in first["observation"]["legal_actions"]
        assert (first["reward"], first["done"]) == (None, False)
        told = [client.ask("step", action=move, reasoning="I try.") for move in MOVES]
        assert [each["done"] for each in told] == [False, False, False, True]
        last = told[-1]["metadata"]
        assert (last["episode_id"], last["seed"], last["truncated"]) == ("mine", 7, True)
        assert told[-1]["observation"]["legal_actions"] == []
        state = client.ask("state")
        assert (state["episode_id"], state["step_count"], state["done"]) == ("mine", 4, True)
        run = state["run"]
    by_run = api.play("crafter", repeats(MOVES), seed=7, options={"length": 4}, record=False).to_json()
    assert last["trajectory_hash"] == by_run["trajectory_hash"]
    assert sum(each["reward"] for each in told) == by_run["reward"]
    with Database.open(str(tmp_path / "wsap.db"), read_only=True) as database:
        record = Repository(database).get_run(run)
    assert (record.status.value, record.game) == ("finished", "crafter")


def test_a_refusal_is_a_step_and_after_the_end_nothing_happens(tmp_path: Path) -> None:
    with served(tmp_path, "crafter", options={"length": 2}, structured=True) as server, Client(server.socket) as client:
        assert client.refused("step", action="noop") == (
            "EXECUTION_ERROR", "No episode was started; send a reset first.",
        )  # fmt: skip
        assert client.ask("reset")["metadata"]["seed"] == 11, "drawn by chance"
        refused = client.ask("step", action="fly")
        assert (refused["observation"]["success"], refused["reward"], refused["done"]) == (False, 0.0, False)
        assert "There is no action 'fly' here" in refused["observation"]["message"]
        assert refused["observation"]["state"]["step"] == 0
        for _ in range(2):
            last = client.ask("step", action="noop")
        after = client.ask("step", action="noop")
        assert (last["done"], after["done"], after["observation"]["success"], after["reward"]) == (True, True, False, 0)
        assert after["metadata"] == last["metadata"]
        assert client.ask("state")["step_count"] == 4
        assert not client.ask("reset", seed=3)["done"]
        assert client.ask("state")["step_count"] == 0


def test_a_seat_among_agents_is_paid_to_the_end(tmp_path: Path) -> None:
    how: dict[str, Any] = {"seat": "column", "opponents": "tit-for-tat", "options": {"rounds": 6}}
    with served(tmp_path, "matrix", **how) as server, Client(server.socket) as client:
        told = client.ask("reset", seed=5)
        paid = 0.0
        while not told["done"]:
            told = client.ask("step", action=told["observation"]["legal_actions"][0]["action"])
            paid += told["reward"]
        run = client.ask("state")["run"]
    with Database.open(str(tmp_path / "wsap.db"), read_only=True) as database:
        summary = Repository(database).get_run(run).summary
    assert summary is not None
    mine = next(seat for seat in summary["seats"] if seat["seat"] == "column")
    assert (paid, told["metadata"]["trajectory_hash"]) == (mine["reward"], summary["trajectory_hash"])
    assert paid > 0


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        ("{", "INVALID_JSON", "The message is not valid JSON"),
        ('{"type": "reset", "data": {"seed": NaN}}', "INVALID_JSON", "NaN"),
        ("[]", "VALIDATION_ERROR", "a JSON object"),
        ({"type": "fly"}, "UNKNOWN_TYPE", "no message of the type 'fly'"),
        ({"data": {}}, "UNKNOWN_TYPE", "None"),
        ({"type": "step", "data": []}, "VALIDATION_ERROR", "is an object"),
        ({"type": "step", "data": {"move": "left"}}, "VALIDATION_ERROR", "the name of an action"),
        ({"type": "step", "data": {"action": "noop", "parameters": [1]}}, "VALIDATION_ERROR", "are an object"),
        ({"type": "step", "data": {"action": "noop", "reasoning": 1}}, "VALIDATION_ERROR", "is a text"),
        ({"type": "step", "data": {"action": "noop", "more": 1}}, "VALIDATION_ERROR", "has no 'more'"),
        ({"type": "step", "data": {"type": "call_tool", "tool_name": 3}}, "VALIDATION_ERROR", "the name of a tool"),
        ({"type": "reset", "data": {"seed": -1}}, "VALIDATION_ERROR", "from 0 to 2147483647"),
        ({"type": "reset", "data": {"seed": 2**31}}, "VALIDATION_ERROR", "from 0 to 2147483647"),
        ({"type": "reset", "data": {"seed": True}}, "VALIDATION_ERROR", "from 0 to 2147483647"),
        ({"type": "reset", "data": {"episode_id": "x" * 256}}, "VALIDATION_ERROR", "at most 255"),
        ({"type": "reset", "data": {"split": "test", "index": 200}}, "VALIDATION_ERROR", "0 to 199, not 200"),
        ({"type": "reset", "data": {"split": "test", "index": -1}}, "VALIDATION_ERROR", "0 to 199, not -1"),
        ({"type": "reset", "data": {"split": "dev", "index": 0}}, "VALIDATION_ERROR", "no split 'dev'"),
        ({"type": "reset", "data": {"index": 0}}, "VALIDATION_ERROR", "by its split"),
        ({"type": "reset", "data": {"split": "test", "index": 3, "seed": 4}}, "VALIDATION_ERROR", "not that of task 3"),
    ],
)
def test_bad_messages_are_answered_with_one_sentence_and_the_session_goes_on(
    echo: Server, message: object, code: str, words: str
) -> None:
    with Client(echo.socket) as client:
        found, told = client.error(message if isinstance(message, str) else json.dumps(message))
        assert (found, words in told) == (code, True), told
        assert "Traceback" not in told
        assert not client.ask("reset", seed=1, prompt="what a trainer adds")["done"]


def test_tasks_are_seeds_in_splits_that_share_none(tmp_path: Path) -> None:
    with served(tmp_path, "echo") as server, httpx2.Client(base_url=server.url) as http:
        assert http.get("/list_environments").json() == ["echo"]
        assert http.get("/echo/splits").json() == [
            {"name": "train", "type": "train"}, {"name": "test", "type": "test"},
        ]  # fmt: skip
        assert http.post("/echo/num_tasks", json={"split": "test"}).json() == {"num_tasks": 200}
        listed = http.post("/echo/tasks", json={"split": "test"}).json()
        assert [task["seed"] for task in listed["tasks"]] == list(range(200))
        many = http.post("/echo/task_range", json={"split": "train", "start": 5, "stop": 7}).json()["tasks"]
        assert [task["seed"] for task in many] == [1_000_005, 1_000_006]
        assert http.post("/echo/task", json={"split": "train", "index": 5}).json()["task"] == many[0]
        for path, body, status in (
            ("/echo/tasks", {"split": "train"}, 400),
            ("/echo/task", {"split": "test", "index": 200}, 400),
            ("/echo/task", {"split": "test", "index": "x"}, 400),
            ("/echo/task", {}, 400),
            ("/echo/task_range", {"split": "test", "start": 9, "stop": 3}, 400),
            ("/crafter/tasks", {"split": "test"}, 404),
        ):
            answer = http.post(path, json=body)
            assert (answer.status_code, "error" in answer.json()) == (status, True), path
        with Client(server.socket) as client:
            assert client.ask("reset", split="train", index=5)["metadata"]["seed"] == many[0]["seed"]


def test_without_a_connection_there_is_only_a_probe_which_leaves_no_run(tmp_path: Path) -> None:
    with served(tmp_path, "echo") as server, httpx2.Client(base_url=server.url) as http:
        seen = http.post("/reset", json={"seed": 3}).json()
        assert seen["metadata"]["seed"] == 3
        assert http.post("/reset").status_code == 200
        assert http.post("/reset", json={"seed": -3}).status_code == 400
        assert http.post("/step", json={"action": {"action": "wait"}}).status_code == 409
        assert http.get("/state").json()["step_count"] == 0
        action = http.get("/schema").json()["action"]
        assert (action["title"], action["required"]) == ("GameAction", ["action"])
        assert action["$defs"]["speak"]["required"] == ["text"]
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert [tool["name"] for tool in http.post("/mcp", json=asked).json()["result"]["tools"]][:2] == [
            "speak", "wait",
        ]  # fmt: skip
        called = http.post("/mcp", json={**asked, "method": "tools/call", "params": {"name": "wait"}}).json()
        assert "web socket" in called["error"]["message"]
        assert http.post("/mcp", json={}).json()["error"]["code"] == -32600
        assert server.count() == 0
    with Database.open(str(tmp_path / "wsap.db"), read_only=True) as database:
        assert Repository(database).list_runs() == []


def test_each_action_is_a_tool(tmp_path: Path) -> None:
    with served(tmp_path, "echo") as server, Client(server.socket) as client:
        client.ask("reset", seed=1)
        tools = {tool["name"]: tool for tool in client.ask("step", type="list_tools")["observation"]["tools"]}
        assert tools["speak"]["input_schema"]["required"] == ["text"]
        said = client.ask("step", type="call_tool", tool_name="speak", arguments={"text": "Good day."})["observation"]
        assert (said["tool_name"], said["error"], said["success"]) == ("speak", None, True)
        assert "Good day." in said["result"]
        params = {"name": "speak", "arguments": {"text": "Again."}}
        told = client.ask("mcp", jsonrpc="2.0", id="a", method="tools/call", params=params)
        assert (told["id"], told["result"]["isError"]) == ("a", False)
        wrong = client.ask("mcp", jsonrpc="2.0", id=2, method="tools/call", params={"name": "fly", "arguments": {}})
        assert wrong["result"]["isError"]
        assert client.ask("mcp", jsonrpc="2.0", id=3, method="resources/list")["error"]["code"] == -32601
        assert client.ask("mcp", id=3)["error"]["code"] == -32600
        assert client.ask("state")["step_count"] == 3


def test_a_client_too_many_is_told_so_and_the_others_play_on(tmp_path: Path) -> None:
    with served(tmp_path, "echo", limits={"most": 1}) as server, Client(server.socket) as client:
        client.ask("reset")
        with Client(server.socket) as another:
            answer = json.loads(another.socket.recv(60))
            assert answer["data"]["code"] == "CAPACITY_REACHED"
            assert (answer["data"]["active_sessions"], answer["data"]["max_sessions"]) == (1, 1)
            with pytest.raises(ConnectionClosed):
                another.socket.recv(60)
        assert httpx2.post(f"{server.url}/reset").status_code == 503
        client.ask("step", action="wait")
        client.socket.send(json.dumps({"type": "close"}))
        wait_until(lambda: server.count() == 0)
        with Client(server.socket) as third:
            third.ask("reset")


def test_a_session_that_nobody_uses_is_closed_and_its_run_can_be_continued(tmp_path: Path) -> None:
    now = [0.0]
    limits = {"clock": lambda: now[0], "idle": 60.0}
    with (
        served(tmp_path, "echo", limits=limits) as server,
        Client(server.socket) as idle,
        Client(server.socket) as busy,
    ):
        run = idle.ask("reset")["metadata"]["run"]
        busy.ask("reset")
        now[0] = 59.0
        server.within(server.sessions.expire_idle)
        busy.ask("step", action="wait")
        now[0] = 61.0
        server.within(server.sessions.expire_idle)
        with pytest.raises(ConnectionClosed):
            idle.socket.recv(60)
        wait_until(lambda: server.count() == 1)
        busy.ask("step", action="wait")
    with Database.open(str(tmp_path / "wsap.db"), read_only=True) as database:
        assert Repository(database).get_run(run).status.value == "interrupted"


CLIENTS = """
import json, sys
from websockets.sync.client import connect
open_ = [connect(sys.argv[1], ping_interval=None).__enter__() for _ in range(int(sys.argv[2]))]
for number, each in enumerate(open_):
    each.send(json.dumps({"type": "reset", "data": {"seed": number}}))
for each in open_:
    each.recv(100)
for each in open_:
    each.send(json.dumps({"type": "step", "data": {"action": "wait"}}))
for each in open_:
    assert json.loads(each.recv(100))["data"]["observation"]["success"]
print("all play", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_of_a_hundred_sessions_none_is_left_when_their_clients_are_killed(tmp_path: Path) -> None:
    now = [0.0]
    limits = {"most": 100, "clock": lambda: now[0], "idle": 60.0}
    with served(tmp_path, "echo", limits=limits) as server:
        command = [sys.executable, "-c", CLIENTS, server.socket, "100"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as clients:
            assert clients.stdout is not None
            assert clients.stdout.readline() == "all play\n"
            assert server.count() == 100
            os.kill(clients.pid, signal.SIGKILL)
        wait_until(lambda: server.count() == 0)
        assert now == [0.0], "no time has passed by the clock, so none has expired"
        with Client(server.socket) as client:
            client.ask("reset")
    with Database.open(str(tmp_path / "wsap.db"), read_only=True) as database:
        assert {run.status.value for run in Repository(database).list_runs(limit=200)} == {"interrupted"}


def test_a_client_that_leaves_in_the_middle_of_an_action_leaves_no_session(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(
        "import asyncio\nfrom wsap_core.builtin.echo import EchoWorld\n"
        "class Waits(EchoWorld):\n    async def act(self, action):\n        await asyncio.Event().wait()\n"
    )
    with served(tmp_path, f"{tmp_path / 'waits.py'}:Waits") as server, Client(server.socket) as client:
        client.ask("reset")
        client.socket.send(json.dumps({"type": "step", "data": {"action": "wait"}}))
        wait_until(lambda: server.within(lambda: any(each.busy for each in server.sessions._open)))
        client.socket.close()
        wait_until(lambda: server.count() == 0)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("raise ValueError('lost the board')", "lost the board"),
        ("return ActionResult(True, reward=float('nan'))", "nan"),
    ],
)
def test_a_game_that_fails_is_an_error_and_ends_the_session(tmp_path: Path, answer: str, words: str) -> None:
    (tmp_path / "fails.py").write_text(
        "from wsap_core import ActionResult\nfrom wsap_core.builtin.echo import EchoWorld\n"
        f"class Fails(EchoWorld):\n    def act(self, action):\n        print('noise')\n        {answer}\n"
    )
    with served(tmp_path, f"{tmp_path / 'fails.py'}:Fails") as server, Client(server.socket) as client:
        client.ask("reset")
        code, told = client.refused("step", action="wait")
        assert (code, words in told) == ("EXECUTION_ERROR", True), told
        with pytest.raises(ConnectionClosed):
            client.socket.recv(60)
        wait_until(lambda: server.count() == 0)


def test_pages_of_other_sites_and_strangers_get_nothing(tmp_path: Path) -> None:
    with served(tmp_path, "echo") as server:
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
            with pytest.raises(InvalidStatus):
                Client(server.socket, additional_headers=headers)
        with Client(server.socket, additional_headers={"Origin": server.url}) as client:
            client.ask("reset")
    token = "t" * 30
    with served(tmp_path, "echo", token=token) as server:
        for headers in ({}, {"Authorization": "Bearer " + "x" * 30}):
            with pytest.raises(InvalidStatus):
                Client(server.socket, additional_headers=headers)
            assert httpx2.get(f"{server.url}/metadata", headers=headers).status_code == 401
        with Client(server.socket, additional_headers={"Authorization": f"Bearer {token}"}) as client:
            client.ask("reset")


def test_what_can_t_be_served_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(WsapError, match="There is no game"), served(tmp_path, "no-such-game"):
        pass
    with pytest.raises(WsapError, match="length"), served(tmp_path, "crafter", options={"length": -1}):
        pass


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["echo"], "add --openenv"),
        (["echo", "--openenv", "--host", "0.0.0.0", "--port", "0"], "--token-file"),
        (["matrix", "--openenv", "--opponents", "random", "--opponents", "always"], "one agent for all"),
        (["matrix", "--openenv", "--opponents", "random", "--opponents", "row=always"], "SEAT=AGENT for each"),
    ],
)
def test_what_does_not_go_together_is_said(tmp_path: Path, arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(serve, [*arguments, "--database", str(tmp_path / "wsap.db")])
    assert isinstance(result.exception, UsageError)
    assert words in str(result.exception)


def test_opponents_are_one_agent_or_one_a_seat() -> None:
    assert opponents_of(()) is None
    assert opponents_of(("random",)) == "random"
    assert opponents_of(("row=always", "column=random")) == {"row": "always", "column": "random"}

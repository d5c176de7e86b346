"""OpenEnv's environments as games: our own server, and one as others write it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, WebSocket
from openenv_kit import served

from wsap_check import run_checks
from wsap_core.errors import ConfigError, PluginError, WorldError, WsapError
from wsap_core.protocol import Action, ParamDef
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import Context
from wsap_core.seams.options import Options
from wsap_nexus import api
from wsap_nexus.doors.driven import Driven
from wsap_nexus.http.listening import Address, listen, url_of
from wsap_openenv.games import create

MOVES = ("move_left", "move_up", "noop", "move_left", "fly", "move_down", "noop")


@pytest.mark.slow
@pytest.mark.parametrize("game", ["minigrid", "echo"])
def test_a_game_that_is_served_conforms_as_it_does_itself(tmp_path: Path, game: str) -> None:
    with served(tmp_path, game, limits={"most": 200}) as server:
        report = run_checks(load_adapter_spec(f"openenv:{server.url}"), config={"seeded": "yes"}, steps=30)
        assert report.ok, report.findings


def test_through_both_doors_the_same_moves_give_the_same_rewards_and_ends(tmp_path: Path) -> None:
    own = Driven("crafter", {"length": 6})
    own.reset(9)
    with served(tmp_path, "crafter", options={"length": 6}) as server:
        far = Driven(f"openenv:{server.url}", {"seeded": "yes"})
        far.reset(9)
        assert set(far.action_space.names) >= {"noop", "place_table"}
        for move in MOVES:
            mine, theirs = own.step(Action(move)).result, far.step(Action(move)).result
            assert (theirs.success, theirs.reward, theirs.done, theirs.truncated) == (
                mine.success, mine.reward, mine.done, mine.truncated,
            )  # fmt: skip
        assert (theirs.done, theirs.truncated) == (True, True)
        assert far.observe().to_text().count("health: 9") == 1
        assert "message" not in far.observe().status
        far.close()


def test_an_agent_plays_it_to_the_end_by_its_name(tmp_path: Path) -> None:
    with served(tmp_path, "crafter", options={"length": 5}) as server:
        summary = api.play(f"openenv:{server.url}", "random-legal", seed=1, episodes=2, record=False).to_json()
    assert (summary["episodes"], summary["steps"]) == (2, 10)
    assert [each["truncated"] for each in summary["seats"][0]["episodes"]] == [True, True]


# --- one as others write it ---------------------------------------------------------------------------

FIELDS = {
    "type": "object",
    "title": "GuessAction",
    "description": "Guess a number.",
    "$defs": {"Mood": {"type": "string", "enum": ["calm", "bold"]}},
    "properties": {
        "metadata": {"type": "object", "additionalProperties": True},
        "guess": {"type": "integer", "minimum": 1, "maximum": 9, "description": "The number."},
        "mood": {"$ref": "#/$defs/Mood"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    },
    "required": ["guess", "mood"],
}
TOOLS = {
    "type": "object",
    "properties": {"type": {"const": "call_tool"}, "tool_name": {"type": "string"}, "arguments": {"type": "object"}},
}
HOSTILE = "\x1b[2Jseen\u202e"


class Other:
    """A server of an environment that drops seeds, like many; `says` is what it answers to the next steps."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.heard: list[dict[str, Any]] = []
        self.says: list[object] = []
        self.url = ""
        self.sees: dict[str, Any] = {"hint": f"higher {HOSTILE}", "left": 3, "board": "a\nb", "metadata": {"x": 1}}
        self.app = FastAPI()
        self.app.get("/schema")(lambda: {"action": schema, "observation": {}, "state": {}})
        self.app.get("/metadata")(lambda: {"name": f"Guess{HOSTILE}", "description": f"A guess. {HOSTILE}"})
        self.app.websocket("/ws")(self.play)

    async def play(self, socket: WebSocket) -> None:
        await socket.accept()
        async for text in socket.iter_text():
            message = json.loads(text)
            self.heard.append(message)
            if message["type"] == "step" and message["data"].get("type") == "list_tools":
                tool = {"name": "look", "description": "Look.", "input_schema": {"type": "object", "properties": {}}}
                bad = {"name": "no name", "input_schema": {}}
                await socket.send_json({"type": "observation", "data": {"observation": {"tools": [tool, bad, 3]}}})
            elif self.says and message["type"] == "step":
                said = self.says.pop(0)
                if said is None:
                    await socket.close()
                    return
                await socket.send_text(said if isinstance(said, str) else json.dumps(said))
            else:
                told = {"observation": self.sees, "reward": 0.5, "done": message["data"].get("guess") == 9}
                await socket.send_json({"type": "observation", "data": told})


@pytest.fixture
def other(request: pytest.FixtureRequest) -> Iterator[Other]:
    found = Other(getattr(request, "param", FIELDS))
    ready: Future[uvicorn.Server] = Future()
    listening = listen(Address(port=0))
    found.url = url_of(*listening.getsockname()[:2])

    async def live() -> None:
        server = uvicorn.Server(uvicorn.Config(found.app, ws="websockets-sansio", log_level="error", lifespan="off"))
        ready.set_result(server)
        await server.serve(sockets=[listening])

    thread = threading.Thread(target=lambda: asyncio.run(live()))
    thread.start()
    yield found
    ready.result(60).should_exit = True
    thread.join()
    listening.close()


def test_the_fields_of_an_action_are_parameters_and_its_texts_are_cleaned(other: Other) -> None:
    world = Driven(f"openenv:{other.url}")
    seen = world.reset(4)
    (act,) = world.action_space.actions
    assert [(p.name, p.optional) for p in act.parameters] == [("guess", False), ("mood", False), ("note", True)]
    assert act.parameters[1] == ParamDef("mood", "", False, {"type": "string", "enum": ["calm", "bold"]}, "")
    assert (seen.status["left"], "a\nb" in seen.to_text()) == (3, True)
    for text in (seen.to_text(), world.description):
        assert "\x1b" not in text
        assert "\u202e" not in text
    refused = world.step(Action("act", {"guess": 10, "mood": "calm"})).result
    assert not refused.success
    result = world.step(Action("act", {"guess": 9, "mood": "bold"})).result
    assert (result.success, result.reward, result.done, result.truncated) == (True, 0.5, True, False)
    assert other.heard[-1] == {"type": "step", "data": {"guess": 9, "mood": "bold"}}
    assert all(not each["data"] for each in other.heard if each["type"] == "reset"), "it is told no seeds"
    world.close()


def test_it_declares_the_options_that_it_reads(other: Other) -> None:
    options = Options({"url": other.url})
    game = create(Context.create(0, config=options))
    game.close()
    assert options.asked == {option.name for option in load_adapter_spec("openenv").options}


@pytest.mark.parametrize("other", [TOOLS], indirect=True)
def test_an_environment_of_tools_has_each_as_an_action(other: Other) -> None:
    world = Driven(f"openenv:{other.url}")
    world.reset(4)
    assert world.action_space.names == ("look",)
    assert world.step(Action("look")).result.reward == 0.5
    assert other.heard[-1]["data"] == {"type": "call_tool", "tool_name": "look", "arguments": {}}
    world.close()


@pytest.mark.parametrize("other", [{"type": "object", "properties": {"a b": {}}, "required": ["a b"]}], indirect=True)
def test_what_takes_no_action_in_words_is_refused(other: Other) -> None:
    with pytest.raises(PluginError, match="write an adapter"):
        Driven(f"openenv:{other.url}")


def test_pictures_are_left_out_and_an_environment_that_shows_nothing_else_is_refused(other: Other) -> None:
    picture = {"rgb": [[[0, 1, 2]] * 30] * 30, "png": "iVBORw0KGgo" * 200}
    other.sees = {**picture, "score": 3, "map": "a b\nc d"}
    world = Driven(f"openenv:{other.url}")
    seen = world.reset(1)
    assert seen.status == {"score": 3}
    assert "a b\nc d" in seen.to_text()
    assert seen.to_text().count("not shown") == 2
    world.close()
    other.sees = picture
    with pytest.raises(PluginError, match="pictures or other large arrays only"):
        Driven(f"openenv:{other.url}")


GUESS = Action("act", {"guess": 1, "mood": "calm"})


def test_a_refusal_of_the_environment_is_one_of_the_game(other: Other) -> None:
    world = Driven(f"openenv:{other.url}")
    world.reset(1)
    other.says.append({"type": "error", "data": {"message": f"Not now.{HOSTILE}", "code": "VALIDATION_ERROR"}})
    result = world.step(GUESS).result
    assert (result.success, result.message.startswith("Not now."), "\x1b" in result.message) == (False, True, False)
    assert world.step(GUESS).result.success
    world.close()


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ({"type": "error", "data": {"message": "no memory", "code": "EXECUTION_ERROR"}}, "no memory"),
        ('{"type": "observation", "data": {"observation": {}, "reward": NaN, "done": false}}', "NaN"),
        ("{", "not JSON"),
        ([1], "not of OpenEnv"),
        (None, "is lost"),
    ],
)
def test_an_environment_that_fails_is_an_error_in_one_sentence(other: Other, says: object, words: str) -> None:
    world = Driven(f"openenv:{other.url}")
    world.reset(1)
    other.says.append(says)
    with pytest.raises(WorldError, match=words):
        world.step(GUESS)
    world.close()


@pytest.mark.parametrize(
    ("url", "options", "error", "words"),
    [
        ("http://127.0.0.1:9", {}, PluginError, "No OpenEnv environment answers"),
        ("ftp://127.0.0.1", {}, ConfigError, "no address of a server"),
        ("some words/and a slash", {}, ConfigError, "no address of a server"),
        ("http://127.0.0.1:9", {"seeded": "maybe"}, ConfigError, "yes or no"),
        ("http://127.0.0.1:9", {"timeout": 0}, ConfigError, "from 1 to 3600"),
    ],
)
def test_what_can_t_be_reached_is_refused(
    url: str, options: dict[str, object], error: type[WsapError], words: str
) -> None:
    with pytest.raises(error, match=words):
        Driven(f"openenv:{url}", options)

"""What agents' models are asked and are writing now: told while it lasts, to those who may know, and never kept."""

from __future__ import annotations

import asyncio
import io
import json
import urllib.request
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from dashboard_kit import EVIL, Served
from rich.console import Console

from wsap_core.host import PluginHost, Registration
from wsap_core.seams.model import Draft, Message, OnText, Reply, Request
from wsap_core.specs import BackendSpec
from wsap_llm.middleware.show import Thought
from wsap_llm.scripted import ScriptedBackend
from wsap_nexus.cli.nexus.report import AgentRow
from wsap_nexus.cli.nexus.watching.screen import agent_screen
from wsap_nexus.cli.nexus.watching.thoughts import Thoughts as WatchedThoughts
from wsap_nexus.http.access.auth import Tokens
from wsap_nexus.hub.context import LiveState
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.waiting.thinking import LONGEST, Thoughts
from wsap_nexus.store.entities import Policy
from wsap_nexus.store.events.passing import Thinking
from wsap_nexus.terminal.story import Writing


def asked(now: list[float], agent: str = "ada", prompt: str = "What now? ") -> Thought:
    return Thought(agent, "openai/qwen", Request([Message("user", prompt)], purpose="decide"), lambda: now[0])


# --- the parts --------------------------------------------------------------------------------------


def test_a_request_is_told_from_its_start_to_its_end_and_only_when_it_changed() -> None:
    async def main() -> None:
        now = [10.0]
        thoughts = Thoughts(LiveState())
        with thoughts.watch() as watcher:
            assert watcher.news() == []
            thought = asked(now, prompt="What now? " * 500)
            assert thoughts.began(thought)
            now[0] += 43
            (event,) = watcher.news()
            assert (event.agent_id, event.state, event.purpose, event.seconds) == ("ada", "reading", "decide", 43.0)
            assert event.tokens > 1000
            assert event.line(2.0) == f"reading {event.tokens:,} tokens, 45 s"
            assert event.sentence() == f"openai/qwen for ada: reading {event.tokens:,} tokens, 43 s"
            assert watcher.news() == []
            for draft, state, text in (
                (Draft(waiting="waiting for its turn"), "waiting", ""),
                (Draft(thinking="Hm."), "thinking", "Hm."),
                (Draft("I dig.", "Hm."), "writing", "I dig."),
            ):
                thought.move(draft)
                thoughts.moved(thought)
                (event,) = watcher.news()
                assert (event.state, event.text) == (state, text)
            thoughts.ended(thought)
            (event,) = watcher.news()
            assert (event.state, event.request, event.text) == ("done", 1, "")
            assert watcher.news() == []

    asyncio.run(main())


def test_a_watcher_who_comes_later_is_told_of_what_is_going_on() -> None:
    async def main() -> None:
        thoughts = Thoughts(LiveState())
        thought = asked([0.0])
        assert not thoughts.began(thought), "nobody watches, so the reply need not be streamed"
        with thoughts.watch() as watcher:
            assert [event.state for event in watcher.news()] == ["reading"]
            assert thoughts.began(asked([0.0], "bob"))
            assert [event.agent_id for event in watcher.news()] == ["bob"]
        assert not thoughts.began(asked([0.0]))

    asyncio.run(main())


def test_those_who_watch_are_woken_once_for_many_pieces_and_nobody_else_is() -> None:
    async def main() -> None:
        rings: list[None] = []
        rung = asyncio.Event()
        thoughts = Thoughts(LiveState())

        def ring() -> None:
            rings.append(None)
            rung.set()

        thoughts.listen(ring)
        thought = asked([0.0])
        thoughts.began(thought)
        assert thoughts._waking is None
        with thoughts.watch():
            for count in range(1000):
                thought.move(Draft("x" * count))
                thoughts.moved(thought)
            async with asyncio.timeout(60):
                await rung.wait()
            assert len(rings) == 1

    asyncio.run(main())


def test_only_the_end_of_a_long_text_is_told_without_what_could_move_a_cursor() -> None:
    async def main() -> None:
        thoughts = Thoughts(LiveState())
        with thoughts.watch() as watcher:
            thought = asked([0.0])
            thoughts.began(thought)
            thought.move(Draft("x" * 10_000 + "\x1b[2J\u202e end"))
            (event,) = watcher.news()
            assert len(event.text) <= LONGEST
            assert event.text.endswith(" end")
            assert not {"\x1b", "\u202e"} & set(event.text)

    asyncio.run(main())


# --- a nexus ----------------------------------------------------------------------------------------


class Slow(ScriptedBackend):
    """A model that has begun to write, and goes on when it is let."""

    def __init__(self) -> None:
        super().__init__(lambda request: "", model="slow/it")
        self.goes_on = asyncio.Event()
        self.streamed: list[bool] = []

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        self.streamed.append(on_text is not None)
        if on_text is not None:
            on_text(Draft(f"I think {EVIL}"))
        await self.goes_on.wait()
        return Reply('{"action": "wait", "params": {}}')


MODELS: list[Slow] = []


def slow() -> Slow:
    MODELS.append(Slow())
    return MODELS[-1]


def host() -> PluginHost:
    found = PluginHost.discovered()
    found.backends.add(Registration(BackendSpec("slow", "Waits.", slow), "tests", "tests"))
    return found


def prepare(nexus: Nexus) -> None:
    with nexus.nexus_store.change() as tx:
        tx.register("ada", name="Ada", policies={"*": Policy("llm", {"model": "slow/it", "plan": False})})
        tx.register("bob", name="Bob", policies={"nexus": Policy("external")})


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path, prepare=prepare, host=host) as found:
        yield found


def told(served: Served, path: str, token: str, event: str = "thinking") -> Iterator[Any]:
    """Yield the data of a stream's messages of one kind."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(served.url + path, headers=headers)
    with urllib.request.urlopen(request, timeout=300) as answer:
        message: dict[str, str] = {}
        for line in answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            message |= {name: value} if name else {}
            if not name:
                if message.get("event") == event:
                    assert "id" not in message, "it can't be resumed from"
                    yield json.loads(message["data"])
                message = {}


def test_owner_and_page_see_a_model_read_and_write_and_the_log_keeps_nothing_of_it(served: Served) -> None:
    stream = told(served, "nexus/events?kind=thinking", served.token)
    first = next(stream)
    assert first["agent_id"] == "ada"
    assert first["body"]["model"] == "slow/it"
    assert first["body"]["tokens"] > 50
    page = next(told(served, "nexus/events?also=pulse&also=thinking&sentences=true", served.token))
    assert page["body"]["request"] == first["body"]["request"]
    if not MODELS[-1].streamed[0]:  # it was asked before somebody watched: the next reply is streamed
        served.do(MODELS[-1].goes_on.set)
        served.do(MODELS[-1].goes_on.clear)
    texts = (event["body"] for event in chain([first], stream) if event["body"].get("text"))
    assert next(texts)["text"] == f"I think {EVIL}"
    served.do(MODELS[-1].goes_on.set)
    assert any(event["body"]["state"] == "done" for event in stream)

    def kinds() -> set[str]:
        with served.nexus.nexus_store.look() as tx:
            return {event.kind for event in tx.events(limit=1000)}

    assert "thinking" not in served.do(kinds)


def test_an_agent_sees_only_its_own_model_and_a_spectator_none(served: Served) -> None:
    next(told(served, "nexus/events?kind=thinking", served.token))
    tokens = Tokens(served.nexus.nexus_store, served.token)
    own, other = (served.do(lambda agent=agent: tokens.issue(agent)) for agent in ("ada", "bob"))
    assert next(told(served, "nexus/events?kind=thinking", own))["agent_id"] == "ada"

    for token in (other, ""):
        # Whatever comes before an event of the log that everybody may see.
        request = urllib.request.Request(
            served.url + "nexus/events?kind=thinking&kind=agent_registered&after=0",
            headers={"Authorization": f"Bearer {token}"} if token else {},
        )
        came = b""
        with urllib.request.urlopen(request, timeout=300) as answer:
            while came.count(b"event: agent_registered") < 2:
                came += answer.readline()
        assert b"thinking" not in came


# --- the terminal -----------------------------------------------------------------------------------


def test_the_watch_shows_for_each_agent_which_model_is_waited_for_and_counts_the_seconds() -> None:
    now = [100.0]
    thoughts = WatchedThoughts(lambda: now[0])
    event = Thinking(agent_id="ada", request=1, model="openai/qwen\x1b[2J", tokens=1566, state="reading", seconds=0.1)
    thoughts.take(event.to_json())
    heard = thoughts.now(None)["ada"]
    assert heard.writing(100.1) == Writing(), "most replies come at once"
    row = AgentRow("ada", "Ada", "active", "nexus", None, None, 0, 0, "llm")
    shown = screen_of(agent_screen(None, row, 80, 20, plain=True, note="", helping=False, writing=heard.writing(143.0)))
    assert "openai/qwen" in shown
    assert ": reading 1,566 tokens, 43 s" in shown
    assert "\x1b" not in shown
    thoughts.take(event.model_copy(update={"state": "waiting", "waiting": "waiting for its turn"}).to_json())
    assert thoughts.now(None)["ada"].writing(100.0).state == "waiting for its turn, 0 s"
    thoughts.take(event.model_copy(update={"state": "thinking", "text": "Hm."}).to_json())
    assert thoughts.now(None)["ada"].writing(100.0) == Writing("openai/qwen\x1b[2J", "Hm.", thinks=True)
    thoughts.take(event.model_copy(update={"request": 2}).to_json())
    thoughts.take(event.model_copy(update={"state": "done"}).to_json())
    assert thoughts.now(None)["ada"].event.request == 2
    thoughts.take(event.model_copy(update={"request": 2, "state": "done"}).to_json())
    assert thoughts.now(None) == {}


def screen_of(shown: Any) -> str:
    console = Console(file=io.StringIO(), width=80, height=20, color_system=None, _environ={})
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()

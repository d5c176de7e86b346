"""A nexus with its dashboard, served from a thread, with agents, games and models that mean no good.

What they say is full of markup that would run if a page took it for markup; `window.hit` is then set.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import threading
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from wsap_core.host import PluginHost, Registration
from wsap_core.protocol import (
    Action,
    ActionDef,
    ActionResult,
    ActionSpace,
    ChatBlock,
    Event,
    Goal,
    GridMapBlock,
    ImageBlock,
    Location,
    Observation,
    PlaceGraphBlock,
    TableBlock,
    TextBlock,
    View,
)
from wsap_core.protocol.views import ChatLine
from wsap_core.seams.context import Context
from wsap_core.seams.model import Request
from wsap_core.specs import AdapterSpec, AgentSpec, BackendSpec
from wsap_llm.scripted import ScriptedBackend
from wsap_nexus.dashboard.key import OneTimeKey
from wsap_nexus.http.listening import Address
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.server.serve import serve

T = TypeVar("T")

EVIL = '"><img src=x onerror="window.hit=1"><script>window.hit=1</script><svg onload="window.hit=1"></svg>'
"""What a page must show as it stands here."""


def png(width: int = 8, height: int = 8) -> bytes:
    """Return a small picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\x00" + bytes((40, 90, 160)) * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Hall:
    """A hall of mirrors without end: every text in it is markup, and it draws every kind of block."""

    game_description = f"A hall. {EVIL}"
    action_space = ActionSpace((ActionDef("look", "Look around"), ActionDef("shout", f"Shout {EVIL}")))

    def __init__(self, context: Context) -> None:
        self._step = 0
        self.drawn = 0

    def reset(self, seed: int | None = None) -> Observation:
        self._step = 0
        return self.observe()

    def observe(self) -> Observation:
        status = {"health": 7, EVIL[:60]: EVIL}
        events = [Event(f"A mirror says {EVIL}")]
        where = Location(description=f"In the hall {EVIL}")
        return Observation(status, {EVIL[:60]: 3, "lamp": 1}, where, recent_events=events, step=self._step)

    def act(self, action: Action) -> ActionResult:
        self._step += 1
        return ActionResult(True, f"You see {EVIL}", 0.5, observation=self.observe())

    def render(self) -> View:
        self.drawn += 1
        picture = base64.b64encode(png()).decode("ascii")
        return View(
            (
                ImageBlock(picture, 8, 8, f"A mirror {EVIL}"),
                ImageBlock('" onerror="window.hit=1', 8, 8, EVIL),
                GridMapBlock(["<@>", "#.#"], {"@": EVIL, "#": "wall"}),
                ChatBlock([ChatLine(EVIL, EVIL, EVIL)], EVIL),
                TableBlock([EVIL, "b"], [[EVIL, "2"]], EVIL),
                TextBlock(EVIL, EVIL),
                PlaceGraphBlock(["here", EVIL], [("here", EVIL)], "here", {"here": [EVIL]}),
            ),
            EVIL,
            caption=f"A mirror turns {EVIL}",
        )


HALL = AdapterSpec("hall", f"A hall of mirrors {EVIL}", Hall, title=f"Hall {EVIL}"[:80], abilities=("render", "seed"),
                   look_back="wsap hall show {run}", meters={"health": 9.0, EVIL: 9.0})  # fmt: skip


class Steady:
    """Does the world's first action that needs nothing, again and again, and says so in markup."""

    def initialize(self, game_description: str, action_space: ActionSpace) -> None:
        self._name = next(a.name for a in action_space.actions if not a.parameters)
        self._count = 0

    def decide(self, observation: Observation) -> Action:
        self._count += 1
        return Action(self._name, reasoning=f"Time {self._count} {EVIL}")

    def reflect(self, result: ActionResult) -> None:
        return None

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        return [f"Go on {EVIL}"]


STEADY = AgentSpec("steady", "Does one thing.", Steady)


def talker(context: Context) -> ScriptedBackend:
    """Return a model that answers well, now and then badly first, and always with markup."""
    count = 0

    def answer(request: Request) -> str:
        nonlocal count
        count += 1
        if count % 5 == 3:
            return "I would rather not say. " + EVIL
        return json.dumps({"reasoning": f"Reason {count} {EVIL}", "action": "look", "params": {}})

    return ScriptedBackend(answer, model="talker/it")


def host() -> PluginHost:
    """Return what is installed, with the hall and the talker."""
    found = PluginHost.discovered()
    found.games.add(Registration(HALL, "tests", "tests"))
    found.agents.add(Registration(STEADY, "tests", "tests"))
    found.backends.add(Registration(BackendSpec("talker", "Answers with markup.", talker), "tests", "tests"))
    return found


@dataclass
class Served:
    """A nexus that is served from a thread; `start` may be called again after `stop`."""

    folder: Path
    settings: Settings = field(default_factory=lambda: Settings(pace=20.0, lobby_seconds=0.05))
    prepare: Callable[[Nexus], None] = lambda nexus: None
    """Called before the nexus is started."""
    port: int = 0
    key: OneTimeKey = field(default_factory=OneTimeKey)
    host: Callable[[], PluginHost] = host
    """Returns the games, agents and models that there are."""
    url: str = ""

    def start(self) -> Served:
        """Serve, and return once requests are answered."""
        self._ready, self._failure = threading.Event(), None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(60), "the nexus did not start"
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        """Stop in good order."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._until.set)
            self._thread.join(60)
            assert not self._thread.is_alive(), "the nexus did not stop"

    def __enter__(self) -> Served:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:
            self._failure = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._until = asyncio.get_running_loop(), asyncio.Event()
        with open_store(str(self.folder / "wsap.db")) as store:
            self.nexus = Nexus(self.host(), store, self.settings)
            self.prepare(self.nexus)

            def ready(url: str) -> None:
                self.url, self.port = url, int(url.rstrip("/").rpartition(":")[2])
                self._ready.set()

            address = Address("127.0.0.1", self.port)
            await serve(self.nexus, address, self.folder / "nexus.token", ready=ready, until=self._until, key=self.key)

    def within(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run something in the nexus' own loop, and return what came of it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def do(self, f: Callable[[], T]) -> T:
        """Call something in the nexus' own loop."""

        async def call() -> T:
            return f()

        return self.within(call())

    @property
    def token(self) -> str:
        """The token of whoever runs it."""
        return (self.folder / "nexus.token").read_text(encoding="ascii").strip()

    def ask(
        self, path: str, *, method: str = "GET", body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request and return the answer's status, headers and body."""
        data = None if body is None else json.dumps(body).encode()
        sent = {**({"Content-Type": "application/json"} if data is not None else {}), **(headers or {})}
        request = urllib.request.Request(self.url.rstrip("/") + path, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()

    @property
    def authorized(self) -> dict[str, str]:
        """The header of whoever runs it."""
        return {"Authorization": f"Bearer {self.token}"}

    def read(self, path: str) -> Any:
        """Return the JSON that is told at a path to whoever runs it."""
        return self._read(path, self.authorized)

    def read_public(self, path: str) -> Any:
        """Return the JSON that is told at a path without a token."""
        return self._read(path, {})

    def _read(self, path: str, headers: dict[str, str]) -> Any:
        status, _, body = self.ask(path, headers=headers)
        assert status == 200, body[:500]
        return json.loads(body)

"""The server-side Lua scripts in a real LuaJIT (or Lua 5.1), on top of the fake TES3MP server."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest

import wsap_tes3mp

LUA = Path(wsap_tes3mp.__file__).parent / "lua"
HERE = Path(__file__).parent
SIGNATURES = json.loads((HERE / "signatures-0.8.1.json").read_text())
TOKEN = "a token of tests"
LUAS = pytest.mark.parametrize("lua", ["luajit21", "lua51"])
SETTINGS = {"token": TOKEN, "port": 0, "transport": "memory", "mailbox": "", "avatars": "*", "companion": "test npc"}


COVERAGE = """
return function(note)
    require("jit").off()
    local known = {}
    debug.sethook(function(_, line)
        local source = debug.getinfo(2, "S").source
        local name = source:match("^@.*[/\\\\]lua[/\\\\]([%w_]+%.lua)$")
        local key = name and name .. line
        if key and not known[key] then
            known[key] = true
            note(name, line)
        end
    end, "l")
end
"""


class ServerDiedError(AssertionError):
    """The real server would have ended here."""


class LuaServer:
    """A TES3MP server that has loaded the scripts. Text goes in and out as Latin-1: one character for each byte.

    Args:
        settings: instead of those of the tests (see settings.lua).
        lua: "luajit21" or "lua51".
        before: Lua that runs before the scripts are loaded; `fake` is the fake server.
        folder: where the scripts are instead of the package.
        module: what the owner's `require` names.
    """

    covered: ClassVar[dict[str, set[int]] | None] = None
    """Which lines of which file were run, where that is noted."""

    def __init__(
        self,
        settings: dict[str, Any] | None = None,
        *,
        lua: str = "luajit21",
        before: str = "",
        folder: Path = LUA.parent,
        module: str = "lua.main",
    ) -> None:
        self.lua = import_module(f"lupa.{lua}").LuaRuntime(encoding="latin-1")
        run = self.lua.execute
        run(f"package.path = '{folder.as_posix()}/?.lua;' .. package.path")
        self.fake = run((HERE / "fake_tes3mp.lua").read_text("latin-1"))
        self.lua.globals().fake = self.fake
        if self.covered is not None and lua == "luajit21":
            run(COVERAGE)(lambda name, line: self.covered.setdefault(name, set()).add(line))
        self.fake.install(self.table(SIGNATURES))
        run(before)
        here = module.rsplit(".", 1)[0]
        run(f"require('{here}.transport').memory = fake.listener")
        if settings is not None or module == "lua.main":
            package = self.lua.globals().package.loaded
            package[f"{here}.settings"] = self.table({"entities": 100, **SETTINGS, **(settings or {})})
        run(f"require('{module}')")
        self.event("OnServerPostInit")

    def table(self, value: Any) -> Any:
        """Return a value as Lua has it."""
        if isinstance(value, dict):
            return self.lua.table_from({key: self.table(item) for key, item in value.items()})
        if isinstance(value, (list, tuple)):
            return self.lua.table_from([self.table(item) for item in value])
        return value

    def alive(self) -> None:
        """Raise `ServerDiedError` if the server has died meanwhile, whatever the scripts have caught."""
        if self.fake.dead:
            raise ServerDiedError(self.fake.dead)

    def event(self, name: str, *arguments: Any) -> None:
        """Let the server report something to the scripts."""
        self.fake.event(name, *(self.table(argument) for argument in arguments))
        self.alive()

    def step(self, ms: int = 50, times: int = 1) -> None:
        """Let time pass."""
        for _ in range(times):
            self.fake.step(ms)
            self.alive()

    def player(
        self,
        pid: int = 0,
        name: str = "Nerys",
        at: tuple[float, float, float] = (100.0, 200.0, 50.0),
        cell: str = "Test House",
    ) -> None:
        """Let a player connect and log in."""
        self.fake.connect(pid, name, cell, *at)
        self.alive()

    def connect(self, chunk: int = 65536, token: str = TOKEN) -> Link:
        """Connect, say hello and return the connection, whose `welcome` is the answer."""
        link = Link(self, chunk)
        link.send({"hello": {"token": token, "version": 1}})
        self.step()
        link.welcome = link.read()[0]
        return link

    @property
    def log(self) -> list[str]:
        """The lines that the scripts logged."""
        return list(self.fake.log.values())


class Link:
    """One connection to the scripts, in memory."""

    welcome: dict[str, Any]

    def __init__(self, server: LuaServer, chunk: int = 65536) -> None:
        self.server = server
        self.wire = server.fake.wire(chunk)
        self.events: list[dict[str, Any]] = []
        self._number = 0

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.wire.into = self.wire.into + data.decode("latin-1")

    def send(self, message: Any) -> None:
        """Send a message."""
        self.write(json.dumps(message).encode() + b"\n")

    def read(self) -> list[dict[str, Any]]:
        """Return the messages that have come."""
        text, self.wire.out = self.wire.out, ""
        lines = text.encode("latin-1").decode("utf-8").split("\n")
        assert lines[-1] == "", "half a line"
        return [json.loads(line, parse_constant=_no_constants) for line in lines[:-1]]

    @property
    def closed(self) -> bool:
        """Whether the script has closed it."""
        return bool(self.wire.closed)

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Send a request and return its whole reply; events that come before it are kept in `events`."""
        self._number += 1
        self.send({"id": self._number, "op": op, **fields})
        for _ in range(40):
            self.server.step()
            for message in self.read():
                if message.get("re") == self._number:
                    return message
                self.events.append(message)
        raise AssertionError(f"no reply to {op}")

    def ok(self, op: str, **fields: Any) -> dict[str, Any]:
        """Send a request that succeeds."""
        reply = self.ask(op, **fields)
        assert "ok" in reply, reply
        return dict(reply["ok"])

    def command(self, agent: str, command: str, command_id: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and return its reply's `ok`."""
        command_id = command_id or f"c{self._number + 1}"
        return self.ok("command", agent=agent, command_id=command_id, command=command, params=params)

    def outcome(self, command_id: str, ms: int = 20_000) -> dict[str, Any]:
        """Wait for a command's outcome event."""
        for _ in range(ms // 50):
            self.events += self.read()
            for event in self.events:
                if event.get("event") == "outcome" and event["command_id"] == command_id:
                    return event
            self.server.step()
        raise AssertionError(f"no outcome of {command_id}: {self.events}")

    def do(self, agent: str, command: str, **params: Any) -> dict[str, Any]:
        """Send a command and return what came of it."""
        command_id = f"c{self._number + 1}"
        reply = self.command(agent, command, command_id, **params)
        return reply if reply["state"] != "dispatched" else self.outcome(command_id)


def _no_constants(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def started(**more: Any) -> tuple[LuaServer, Link]:
    """Return a server with one player in it, and a connection."""
    server = LuaServer(**more)
    server.player()
    return server, server.connect()


def furnished(**more: Any) -> tuple[LuaServer, Link]:
    """Return the same with somebody and something around the player."""
    server, link = started(**more)
    place = server.fake.place
    place("Test House", "11-0", "test innkeeper", "actor", 150, 200, 50)
    place("Test House", "12-0", "test cup", "item", 160, 200, 60)
    place("Test House", "13-0", "test chest", "chest", 170, 200, 50)
    place("Test House", "14-0", "test door", "door", 180, 200, 50)
    place("Test House", "15-0", "test shelf", "item", None, None, None)
    return server, link


def accompanied(**more: Any) -> tuple[LuaServer, Link]:
    """Return the same with a companion named comp."""
    server, link = furnished(**more)
    assert link.ok("join", agent="comp", name="Comp", embodiment="companion")["connected"]
    return server, link

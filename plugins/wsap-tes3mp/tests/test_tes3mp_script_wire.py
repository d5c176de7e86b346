"""The server-side script: one connector at a time, and what it makes of input that is none."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from lua_server import LUAS, TOKEN, Link, LuaServer, accompanied

MESSAGES = int(os.environ.get("WSAP_TES3MP_MESSAGES", "800"))
"""How many messages the script is fed; 100,000 in the nox session `tes3mp`."""


def test_who_does_not_say_hello_rightly_is_refused() -> None:
    server = LuaServer()
    for hello, why in (
        ({"hello": {"token": "wrong", "version": 1}}, "token"),
        ({"hello": {"version": 1}}, "token"),
        ({"hello": 3}, "token"),
        ({"op": "ping"}, "token"),
        ([], "token"),
        ({"hello": {"token": TOKEN, "version": 2}}, "version"),
    ):
        link = Link(server)
        link.send(hello)
        server.step()
        assert link.read() == [{"refused": why}]
        assert link.closed


def test_there_is_one_connector_until_it_falls_silent_or_goes() -> None:
    server = LuaServer()
    first = server.connect()
    second = server.connect()
    assert second.welcome == {"refused": "busy"}
    assert second.closed
    server.step(1000, 29)
    assert server.connect().welcome == {"refused": "busy"}
    server.step(1000, 2)
    third = server.connect()
    assert third.welcome["welcome"]["connection"] == 2
    assert first.closed
    third.wire.ended = True
    server.step()
    assert server.connect().welcome["welcome"]["connection"] == 3


def test_who_says_nothing_is_let_go_and_blocks_nobody() -> None:
    server = LuaServer()
    silent = [Link(server) for _ in range(5)]
    silent[0].write(b'{"hel')
    server.step()
    late = Link(server)
    late.send({"hello": {"token": TOKEN, "version": 1}})
    server.step(1000, 5)
    assert late.read() == []
    server.step(1000, 2)
    assert [link.closed for link in silent] == [True] * 5
    assert "welcome" in late.read()[0]


@pytest.mark.parametrize("chunk", [1, 7, 65536])
def test_bytes_may_come_and_go_in_pieces(chunk: int) -> None:
    server = LuaServer()
    server.player()
    link = Link(server, chunk)
    hello = json.dumps({"hello": {"token": TOKEN, "version": 1}}).encode() + b"\n"
    for byte in hello:
        link.write(bytes([byte]))
        server.step()
    server.step(50, 400)
    assert link.read()[0]["welcome"]["version"] == 1
    link.write(b'{"id":1,"op":"ping"}\n{"id":2,"op":"ping"}\n{"id":3,"op":"agents"}\n{"id":4,')
    server.step(50, 40)
    assert [reply["re"] for reply in link.read()] == [1, 2, 3]


def test_a_line_that_is_too_long_ends_the_connection() -> None:
    server = LuaServer()
    for ending in (b"", b"\n"):
        link = server.connect()
        link.write(b" " * (256 * 1024) + ending)
        server.step(50, 30)
        assert link.read() == [{"refused": "line too long"}]
        assert link.closed


def test_a_connector_that_does_not_read_is_let_go_before_memory_runs_out() -> None:
    server = LuaServer()
    server.player()
    link = server.connect()
    link.wire.deaf = True
    for _ in range(120):
        link.write(b'{"id":1,"op":"perceive","agent":"nerys"}\n' * 128)
        server.step(50, 2)
    assert link.closed
    assert server.connect().welcome["welcome"]["connection"] == 2


def test_an_operation_that_fails_is_said_to_fail_and_the_log_says_why() -> None:
    server = LuaServer()
    server.player()
    link = server.connect()
    server.lua.execute("Players[0].data = nil")
    assert link.ask("perceive", agent="nerys")["error"]["code"] == "INTERNAL"
    assert any("operation perceive failed" in line and "world.lua" in line for line in server.log)
    server.lua.execute(
        "Players[0].data = { inventory = {} } local long = ('x'):rep(1000) "
        "for n = 1, 500 do Players[0].data.inventory[n] = { refId = long .. n, count = 1 } end"
    )
    assert link.ask("perceive", agent="nerys")["error"]["message"] == "the answer can't be sent"
    assert link.ask("dance")["error"]["code"] == "BAD_REQUEST"


def test_a_transport_that_fails_ends_one_connection() -> None:
    server = LuaServer()
    link = server.connect()
    server.lua.eval("function(wire) wire.connection.receive = function() error('broken') end end")(link.wire)
    server.step()
    assert link.closed
    other = server.connect()
    server.lua.eval("function(wire) wire.connection.send = function() error('broken') end end")(other.wire)
    other.send({"id": 1, "op": "ping"})
    server.step()
    assert other.closed


@LUAS
def test_it_survives_whatever_it_is_sent(lua: str) -> None:
    chance = random.Random(lua)
    server, link = accompanied(lua=lua)
    count = MESSAGES if lua == "luajit21" else MESSAGES // 10
    for number in range(count):
        link.write(_noise(chance, number))
        if link.wire.into.count("\n") > 40:
            server.step()
        if number % 1000 == 999:
            link.write(b"\n")
            server.step(50, 10)
        if link.closed:
            link = server.connect(chunk=chance.choice((50, 4000, 100_000)))
        if not server.fake.players[0]:
            server.player()
    server.step(50, 200)
    server.lua.execute("fake.players[0].current, fake.players[0].answers = 50, true")
    link.wire.into, link.wire.ended = "", True
    server.step(50, 10)
    again = server.connect()
    assert again.ok("perceive", agent="nerys")["cell"]
    assert server.fake.calls.CreateTimer == 1
    assert server.lua.eval("collectgarbage('collect') or collectgarbage('count')") < 40_000


PIECES = (
    b'{"id":',
    b'"op":',
    b'"command"',
    b"perceive",
    b"\xff\xfe",
    b"[[[[",
    b'"\\ud800"',
    b"null",
    b"1e400",
    b"-0",
    b"{}",
)
OPS = ("ping", "agents", "perceive", "command", "outcome", "join", "leave", "respawn", "shutdown", "")
VERBS = {
    "move_to": ("target_x", "target_y", "target_z", "target_cell", "target_entity_id"), "interact": ("entity_id",),
    "use_item": ("item_id", "slot"), "wait": ("duration_seconds",), "dialogue": ("entity_id", "topic"),
    "combat_action": ("action_type", "target_entity_id"), "journal_note": (), "noop": (), "dance": (),
}  # fmt: skip
KEYS = ("target_cell", "target_x", "target_y", "target_z", "target_entity_id", "entity_id", "item_id", "slot", "topic",
        "action_type", "duration_seconds", "interaction_type")  # fmt: skip
FIELDS = ("agent", "name", "mode", "host", "embodiment", "id", "command_id", "params", "command")


def _like(key: str, fine: dict[str, tuple[str, ...]]) -> tuple[Any, ...]:
    """Return values that a parameter may well have."""
    if key.startswith("target_") and len(key) == 8:
        return (0, 120.5, 300, -40)
    if key in ("slot", "duration_seconds"):
        return (0, 1, 16, 0.5, 500)
    return fine.get(
        key, ("11-0", "12-0", "13-0", "player:nerys", "player:other", "0-101", "Test House", "0, 0", "99999999999, 0")
    )


def _noise(chance: random.Random, number: int) -> bytes:
    """Return one message: valid, malformed, cut off, oversized, or of wrong types."""
    kind = chance.random()
    strange: list[Callable[[], Any]] = [
        lambda: chance.choice(("nerys", "comp", "x", "11-0", "0-101", "player:nerys", "2, 3", "", "a" * 300)),
        lambda: chance.choice((0, -1, 1.5, 1e308, 2**53, 70000, 100, 200)),
        lambda: chance.choice(
            (None, True, [], {}, [[]], {"a": []}, "test potion", 'x" y', "\x00", "é😀", "avatar", "companion")
        ),
    ]
    if kind < 0.45:
        verb = chance.choice(tuple(VERBS))
        keys = VERBS[verb] if chance.random() < 0.8 else [chance.choice(KEYS) for _ in range(chance.randrange(5))]
        fine = {"action_type": ("cast", "attack", "cast:x"), "topic": ("told topic", "x"), "item_id": ("test potion",)}
        params = {key: chance.choice(_like(key, fine)) if chance.random() < 0.8 else chance.choice(strange)()
                  for key in keys if chance.random() < 0.8}  # fmt: skip
        request = {"id": number, "op": "command", "agent": chance.choice(("nerys", "comp", "x")), "params": params,
                   "command_id": f"n{chance.randrange(number + 1)}", "command": verb}  # fmt: skip
        return json.dumps(request).encode() + b"\n"
    if kind < 0.75:
        fields = {chance.choice(FIELDS): chance.choice(strange)() for _ in range(chance.randrange(6))}  # fmt: skip
        return json.dumps({**fields, "op": chance.choice((*OPS, chance.choice(strange)()))}).encode() + b"\n"
    if kind < 0.999:
        pieces = b"".join(chance.choice(PIECES) for _ in range(chance.randrange(8)))
        return pieces + (b"\n" if kind < 0.9 else b"")
    return b"x" * 300_000 + b"\n"

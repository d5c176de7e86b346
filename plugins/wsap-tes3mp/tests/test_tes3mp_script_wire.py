"""The server-side script: its JSON, its transports, and what it makes of input that is none."""

from __future__ import annotations

import json
import math
import os
import random
import socket
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lua_server import LUA, SETTINGS, TOKEN, Link, LuaServer

MESSAGES = int(os.environ.get("WSAP_TES3MP_MESSAGES", "3000"))
"""How many messages the script is fed; 100,000 in the nox session `tes3mp`."""
LUAS = ["luajit21", "lua51"]


@cache
def codec_of(lua: str) -> Any:
    """Return the scripts' way from text to text."""
    codec = "function(text) local json = require('lua.json') local value, why = json.decode(text) "
    return LuaServer(lua=lua).lua.eval(
        codec + "if value == nil then return nil, why end return json.encode(value), '' end"
    )


def recoded(lua: str, text: bytes) -> tuple[bytes | None, str]:
    """Return what decoding and encoding make of a text, and what decoding complained of."""
    found = codec_of(lua)(text.decode("latin-1"))
    return (found[0].encode("latin-1") if found[0] is not None else None), found[1]


# JSON ---------------------------------------------------------------------------------------------------------------

values = st.recursive(
    st.booleans() | st.integers(-(2**52), 2**52) | st.floats(-1e6, 1e6, allow_subnormal=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=values, lua=st.sampled_from(LUAS), ascii_only=st.booleans())
def test_what_python_writes_comes_back_the_same(value: Any, lua: str, ascii_only: bool) -> None:
    text, why = recoded(lua, json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"))
    assert text is not None, why
    assert b"\n" not in text
    assert _close(json.loads(text), value)


def _close(left: Any, right: Any) -> bool:
    if isinstance(right, bool) or not isinstance(right, int | float):
        if isinstance(right, list):
            return isinstance(left, list) and len(left) == len(right) and all(map(_close, left, right))
        if isinstance(right, dict):
            return (
                isinstance(left, dict) and left.keys() == right.keys() and all(_close(left[k], right[k]) for k in right)
            )
        return bool(left == right) and isinstance(left, type(right))
    return isinstance(left, int | float) and math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-12)


@settings(max_examples=100, deadline=None)
@given(
    text=st.binary(max_size=30) | st.text(alphabet='[]{}",:0123456789eE+-.\\u truefalsn', max_size=20).map(str.encode)
)
def test_what_is_no_json_is_refused_and_what_is_some_is_not(text: bytes) -> None:
    try:
        wanted = json.loads(text.decode("utf-8"), parse_constant=lambda _: 1 / 0)
        fine = True
    except (ValueError, ZeroDivisionError):
        fine = False
    found, _ = recoded("luajit21", text)
    if fine and wanted is not None and not _strange(wanted):
        assert found is not None, text
        assert _close(json.loads(found), _without_nulls(wanted))
    elif not fine:
        assert found is None, text


def _strange(value: Any) -> bool:
    """Whether Python allows what the script does not: halves of characters, numbers beyond a double."""
    if isinstance(value, list):
        return any(map(_strange, value))
    if isinstance(value, dict):
        return any(_strange(key) or _strange(item) for key, item in value.items())
    if isinstance(value, str):
        return any("\ud800" <= c <= "\udfff" for c in value)
    return isinstance(value, int | float) and abs(value) > 2**52


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "text",
    [
        b"", b"nul", b"[1,]", b"{1:2}", b'{"a" 1}', b"01", b"-", b"1.", b".5", b"1e", b"+1", b"NaN", b"Infinity",
        b"1e999", b'"\x01"', b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"\\x"', b'"\\ud800"', b'"\\ud800\\u0041"',
        b'"\\udc00"',
        b'"\\u12g4"', b"[" * 40 + b"]" * 40, b"[1] 2", b"{", b'"abc', b"[1 2]", b"1.e5", b"--1", b"0x10", b'{"a":}',
    ],
)  # fmt: skip
def test_these_are_no_json(text: bytes) -> None:
    assert recoded("luajit21", text)[0] is None
    assert recoded("lua51", text)[0] is None


def test_empty_tables_and_numbers_that_are_none() -> None:
    make = LuaServer().lua.eval
    write = make("require('lua.json').encode")
    assert write(make("{}")) == "{}"
    assert write(make("require('lua.json').list()")) == "[]"
    assert write(make("{ a = 0/0, b = 1/0, c = -1/0, d = 2^60, e = 0.1, f = '\\255\\0\\127' }")) == (
        '{"a":null,"b":null,"c":null,"d":1.1529215046068e+18,"e":0.1,"f":"?\\u0000\\u007f"}'
    )
    for broken in ("function() end", "(function() local t = {} t.t = t return t end)()"):
        with pytest.raises(Exception, match="json"):
            write(make(broken))


# Sessions -----------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("lua", LUAS)
def test_it_survives_whatever_it_is_sent(lua: str) -> None:
    chance = random.Random(lua)
    server = LuaServer(lua=lua)
    server.player()
    link = server.connect(chunk=100_000)
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
    link.wire.ended = True
    server.step(50, 3)
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
VERBS = ("move_to", "interact", "use_item", "wait", "combat_action", "dialogue", "journal_note", "noop", "dance")
KEYS = ("target_cell", "target_x", "target_y", "target_z", "target_entity_id", "entity_id", "item_id", "slot", "topic",
        "action_type", "duration_seconds", "interaction_type")  # fmt: skip
FIELDS = ("agent", "name", "mode", "host", "embodiment", "id", "command_id", "params", "command")


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
        params = {chance.choice(KEYS): chance.choice(strange)() for _ in range(chance.randrange(5))}
        request = {"id": number, "op": "command", "agent": chance.choice(("nerys", "comp", "x")), "params": params,
                   "command_id": f"n{chance.randrange(number + 1)}", "command": chance.choice(VERBS)}  # fmt: skip
        return json.dumps(request).encode() + b"\n"
    if kind < 0.75:
        fields = {chance.choice(FIELDS): chance.choice(strange)() for _ in range(chance.randrange(6))}  # fmt: skip
        return json.dumps({**fields, "op": chance.choice((*OPS, chance.choice(strange)()))}).encode() + b"\n"
    if kind < 0.999:
        pieces = b"".join(chance.choice(PIECES) for _ in range(chance.randrange(8)))
        return pieces + (b"\n" if kind < 0.9 else b"")
    return b"x" * 300_000 + b"\n"


# Transports ---------------------------------------------------------------------------------------------------------


def port_of(server: LuaServer) -> int:
    """Return where a server's script listens, from what it logged."""
    return next(int(line.rsplit(", ", 1)[1]) for line in server.log if "listens" in line)


def asked(server: LuaServer, client: socket.socket, data: bytes, lines: int) -> list[dict[str, Any]]:
    """Send bytes and return so many lines that come back."""
    client.settimeout(0.001)
    found = b""
    for _ in range(2000):
        if data:
            data = data[client.send(data[:100_000]) :]
        server.step()
        try:
            part = client.recv(100_000)
            if not part:
                break
            found += part
        except TimeoutError:
            pass
        if found.count(b"\n") >= lines:
            break
    return [json.loads(line) for line in found.splitlines()]


def test_sockets_through_ffi() -> None:
    server = LuaServer(settings={"transport": "auto"})  # there is no LuaSocket here
    assert "listens by ffi" in server.log[-1]
    server.player()
    hello = json.dumps({"hello": {"token": TOKEN, "version": 1}}).encode() + b"\n"
    with socket.create_connection(("127.0.0.1", port_of(server))) as client:
        replies = asked(server, client, hello + b'{"id":1,"op":"agents"}\n' * 500, 501)
        assert len(replies) == 501
        with socket.create_connection(("127.0.0.1", port_of(server))) as other:
            assert asked(server, other, hello, 1) == [{"refused": "busy"}]
    server.step(50, 3)
    with socket.create_connection(("127.0.0.1", port_of(server))) as client:
        assert asked(server, client, hello, 1)[0]["welcome"]["connection"] == 2
        server.event("OnServerExit")
        assert asked(server, client, b"", 1) == []


def test_a_port_that_is_taken_is_said_in_the_log() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = LuaServer(settings={"transport": "ffi", "port": port})
    assert f"port {port} of 127.0.0.1 is taken" in server.log[-1]
    server = LuaServer(settings={"transport": "pigeon"})
    assert "not started: pigeon" in server.log[-1]
    server = LuaServer(settings={"transport": "auto"}, lua="lua51")
    assert "there is no FFI" in server.log[-1]


LUASOCKET = """
package.preload.socket = function()
    local function stream(wire)
        local client = {}
        function client:settimeout(seconds) assert(seconds == 0) end
        function client:receive(count)
            local bytes, closed = wire.connection.receive()
            if bytes and #bytes >= count then return bytes end
            if bytes then return nil, "timeout", bytes end
            return nil, closed and "closed" or "timeout", ""
        end
        function client:send(bytes)
            local count = wire.connection.send(bytes)
            if not count then return nil, "closed", 0 end
            if count < #bytes then return nil, "timeout", count end
            return count
        end
        function client:close() wire.connection.close() end
        return client
    end
    return { bind = function(host, port)
        if port == 1 then return nil, "permission denied" end
        assert(host == "127.0.0.1")
        local listener, server = fake.listener(), {}
        function server:settimeout(seconds) assert(seconds == 0) end
        function server:getsockname() return host, "4711" end
        function server:close() listener.close() end
        function server:accept()
            local wire = listener.take()
            return wire and stream(wire) or nil
        end
        return server
    end }
end
"""


@pytest.mark.parametrize("chunk", [5, 65536])
def test_luasocket_where_there_is_one(chunk: int) -> None:
    server = LuaServer(settings={"transport": "auto"}, before=LUASOCKET)
    assert server.log[-1].endswith("listens by luasocket, 4711")
    server.player()
    link = server.connect(chunk)
    assert link.ok("agents")["agents"]
    link.wire.ended = True
    server.step()
    assert link.closed
    server.event("OnServerExit")
    assert server.fake.shut
    assert "permission denied" in LuaServer(settings={"transport": "luasocket", "port": 1}, before=LUASOCKET).log[-1]


@pytest.mark.parametrize("lua", LUAS)
def test_a_mailbox_of_files(tmp_path: Path, lua: str) -> None:
    server = LuaServer(settings={"transport": "mailbox", "mailbox": tmp_path.as_posix()}, lua=lua)
    server.player()

    def put(name: str, data: bytes) -> None:
        (tmp_path / "new").write_bytes(data)
        (tmp_path / "new").rename(tmp_path / name)

    def take(name: str) -> bytes:
        for _ in range(20):
            server.step()
            if (path := tmp_path / name).exists():
                data = path.read_bytes()
                path.unlink()
                return data
        raise AssertionError(f"no {name}: {sorted(tmp_path.iterdir())}")

    put("hello", b"../x\n")
    put("hello", b"abc1\n")
    hello = json.dumps({"hello": {"token": TOKEN, "version": 1}}).encode() + b"\n"
    put("abc1.in.1", hello[:20])
    put("abc1.in.2", hello[20:] + b'{"id":1,"op":"ping"}\n')
    replies = [json.loads(line) for line in take("abc1.out.1").splitlines()]
    assert replies[0]["welcome"]["connection"] == 1
    assert replies[1]["re"] == 1
    for number in range(3, 90):
        put(f"abc1.in.{number}", b'{"id":1,"op":"ping"}\n')
        server.step()
    assert len(list(tmp_path.glob("*.out.*"))) == 64  # no more as long as nobody reads
    for number in range(2, 60):
        take(f"abc1.out.{number}")
    put("abc1.in.90", b"")
    server.step(50, 5)
    put("hello", b"abc2\n")
    put("abc2.in.1", hello)
    assert b"welcome" in take("abc2.out.1")
    assert "no mailbox folder" in LuaServer(settings={"transport": "mailbox", "mailbox": "/nowhere"}).log[-1]


# As its owner installs it -------------------------------------------------------------------------------------------


def test_it_loads_as_its_owner_installs_it(tmp_path: Path) -> None:
    target = tmp_path / "server" / "scripts" / "custom" / "wsap"
    target.mkdir(parents=True)
    for path in LUA.glob("*.lua"):
        target.joinpath(path.name).write_bytes(path.read_bytes())
    assert "set a token" in LuaServer(folder=tmp_path / "server" / "scripts", module="custom.wsap.main").log[0]
    settings_file = target / "settings.lua"
    text = settings_file.read_text().replace('token = ""', f'token = "{TOKEN}"').replace('"auto"', '"memory"')
    settings_file.write_text(text)
    server = LuaServer(folder=tmp_path / "server" / "scripts", module="custom.wsap.main")
    server.step(50, 1000)  # nobody is there
    assert server.connect().ok("agents") == {"agents": []}
    assert set(server.lua.eval("require('custom.wsap.settings')").keys()) == {*SETTINGS, "entities"}

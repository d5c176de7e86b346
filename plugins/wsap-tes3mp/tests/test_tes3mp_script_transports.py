"""The server-side script: its three transports, and how it is installed."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from lua_server import LUA, LUAS, SETTINGS, TOKEN, LuaServer

from wsap_core.errors import ConfigError
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.clock import SystemClock
from wsap_tes3mp.engines.tes3mp.connection import MailboxLink
from wsap_tes3mp.engines.tes3mp.engine import open_engine

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


WINDOWS = """
local real = require("ffi")
real.cdef("int wsap_fcntl(int, int, ...) __asm__(\\"fcntl\\");")
real.cdef("int wsap_accept2(int, void *, void *) __asm__(\\"accept\\");")
local posix, stub = nil, setmetatable({ os = "Windows" }, { __index = real })
function stub.typeof(text)
    if text == "struct wsap_address" and not posix then error("not declared") end
    return real.typeof(text)
end
function stub.cdef(text)  -- what Windows calls otherwise is given the name that this system knows
    assert(text:find('__asm__("closesocket")', 1, true) and text:find('__asm__("ioctlsocket")', 1, true))
    text = text:gsub("closesocket", "close"):gsub("typedef intptr_t", "typedef int")
    text = text:gsub("intptr_t wsap_accept", "int wsap_accept")
    posix = real.cdef(text) or true
end
function stub.load(name)
    assert(name == "ws2_32")
    local again = false
    local function called(count)
        again = tonumber(count) < 0 and real.errno() == 11
        return count
    end
    return setmetatable({
        wsap_startup = function(version) assert(version == 0x0202) return 0 end,
        wsap_ioctl = function(handle, request, on)
            assert(request == -0x7ffb9982 and on[0] == 1)
            return real.C.wsap_fcntl(handle, 4, real.cast("int", 0x800))
        end,
        wsap_setsockopt = function(_, level, option) assert(level == 0xffff and option == -5) return 0 end,
        wsap_error = function() return again and 10035 or 10054 end,
        wsap_accept = function(handle) return real.C.wsap_accept2(handle, nil, nil) end,
        wsap_recv = function(...) return called(real.C.wsap_recv(...)) end,
        wsap_send = function(handle, bytes, count) return called(real.C.wsap_send(handle, bytes, count, 0x4000)) end,
    }, { __index = real.C })
end
package.loaded.ffi = stub
"""


def test_sockets_through_ffi_as_windows_has_them() -> None:
    server = LuaServer(settings={"transport": "ffi"}, before=WINDOWS)
    assert "listens by ffi" in server.log[-1]
    hello = json.dumps({"hello": {"token": TOKEN, "version": 1}}).encode() + b"\n"
    for number in (1, 2):
        with socket.create_connection(("127.0.0.1", port_of(server))) as client:
            replies = asked(server, client, hello + b'{"id":1,"op":"agents"}\n' * 200, 201)
            assert replies[0]["welcome"]["connection"] == number
            assert len(replies) == 201
        server.step(50, 3)
    mac = "package.loaded.ffi = setmetatable({ os = 'OSX' }, { __index = require('ffi') })"
    assert "for Linux or Windows" in LuaServer(settings={"transport": "ffi"}, before=mac).log[-1]


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


@LUAS
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


def test_a_mailbox_keeps_what_is_in_it_from_others_and_no_token_while_the_server_is_down(tmp_path: Path) -> None:
    hello: dict[str, JsonValue] = {"hello": {"token": TOKEN, "version": 1}}
    link = MailboxLink(tmp_path, SystemClock())
    link.send(hello)
    assert sorted(path.name.split(".", 1)[-1] for path in tmp_path.iterdir()) == ["hello", "in.1"]
    if os.name == "posix":
        assert {path.stat().st_mode & 0o007 for path in tmp_path.iterdir()} == {0}
    link.close()
    link.close()
    assert not list(tmp_path.iterdir())
    taken = MailboxLink(tmp_path, SystemClock())
    taken.send(hello)
    (tmp_path / "hello").unlink()  # the server has seen it
    taken.close()
    assert [path.read_bytes() for path in tmp_path.glob("*.in.2")] == [b""]


@pytest.mark.skipif(os.name != "posix", reason="Windows has other modes")
def test_a_mailbox_that_everybody_can_look_into_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    mailbox = tmp_path / "mailbox"
    mailbox.mkdir()
    for mode in (0o755, 0o771, 0o777):
        mailbox.chmod(mode)
        with pytest.raises(ConfigError, match=f"run: chmod o-rwx {mailbox}"):
            open_engine(tmp_path / "token", address=str(mailbox))
    mailbox.chmod(0o770)
    open_engine(tmp_path / "token", address=str(mailbox))


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

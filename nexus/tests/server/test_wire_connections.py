"""Connections over which nothing comes, and more of them than may be."""

from __future__ import annotations

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from wire_server import Served, problem, serving

from wsap_nexus.http import serving as connections
from wsap_nexus.http.access.guard import HttpLimits


def connected(served: Served) -> socket.socket:
    url = urlsplit(served.url)
    return socket.create_connection((url.hostname, url.port or 0), timeout=300)


def rest(connection: socket.socket) -> bytes:
    """All that comes until the other side closes the connection."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def until_it_answers(served: Served) -> None:
    """Ask how it is, on a connection of one's own, until it says so."""
    end = time.monotonic() + 300
    while True:
        with connected(served) as again:
            try:
                again.sendall(b"GET /nexus/health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                if rest(again).startswith(b"HTTP/1.1 200"):
                    return
            except ConnectionError:
                pass
        assert time.monotonic() < end


def test_a_connection_on_which_no_head_of_a_request_comes_is_closed(tmp_path: Path) -> None:
    with serving(tmp_path, limits=HttpLimits(head_seconds=0.2)) as served:
        for begun in (b"", b"GET /nexus HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "):
            with connected(served) as slow:
                slow.sendall(begun)
                assert rest(slow) == b""
        until_it_answers(served)  # whoever asks at once, if this machine lets them


def test_an_idle_connection_is_kept_for_longer_than_clients_keep_it_and_then_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 2 * (httpx2.Limits().keepalive_expiry or 0.0) < connections.KEEP_ALIVE
    monkeypatch.setattr(connections, "KEEP_ALIVE", 0)
    with serving(tmp_path) as served, connected(served) as idle:
        idle.sendall(b"GET /nexus/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert rest(idle).startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_an_answer_may_take_longer_than_the_head_of_a_request(tmp_path: Path) -> None:
    with serving(tmp_path, limits=HttpLimits(head_seconds=2, heartbeat=0.25)) as served, connected(served) as stream:
        stream.sendall(b"GET /nexus/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        came = b""
        while came.count(b": still here\n\n") < 10:  # signs of life, 0.25 s apart
            part = stream.recv(65536)
            assert part, f"it was closed after {came[-200:]!r}"
            came += part


def streaming(served: Served) -> socket.socket:
    """A connection with a request that lasts."""
    stream = connected(served)
    stream.sendall(b"GET /nexus/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert stream.recv(65536).startswith(b"HTTP/1.1 200")
    return stream


def test_one_connection_too_many_is_told_so_and_there_is_room_again_when_one_is_closed(tmp_path: Path) -> None:
    with serving(tmp_path, limits=HttpLimits(connections=3)) as served:
        held = [streaming(served) for _ in range(3)]
        with connected(served) as late:
            head, _, body = rest(late).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After: 1" in head
        error = json.loads(body)["error"]
        assert (error["code"], error["retry"]) == ("TOO_MANY_CONNECTIONS", True)
        for connection in held:
            connection.close()
        until_it_answers(served)  # once it is seen that they are gone


BEGUN = {
    "silent": b"",
    "part of a head": b"GET /nexus HTTP/1.1\r\nX-Slow: ",
    "part of a body": b"POST /nexus/agents HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n"
    b"Content-Type: application/json\r\n\r\n{",
}


@pytest.mark.parametrize("begun", BEGUN)
def test_a_connection_without_a_whole_request_gives_way_to_whoever_asks(tmp_path: Path, begun: str) -> None:
    with serving(tmp_path, limits=HttpLimits(connections=3, head_seconds=600, body_seconds=600)) as served:
        held = []
        for _ in range(9):
            held.append(connected(served))
            held[-1].sendall(BEGUN[begun])
        with served.client() as owner:
            assert owner.get("/nexus/health").status_code == 200
        refused = rest(held[0])  # the oldest was the first to go
        assert refused == b"" or b"TOO_MANY_CONNECTIONS" in refused
        for connection in held:
            connection.close()


def test_an_open_stream_and_the_body_of_a_known_caller_give_way_to_nobody(tmp_path: Path) -> None:
    with serving(tmp_path, limits=HttpLimits(connections=2, heartbeat=0.25)) as served:
        stream, slow = streaming(served), connected(served)
        head = "POST /nexus/agents HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        head += f"Authorization: Bearer {served.token}\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\n"
        slow.sendall(head.encode())
        assert slow.recv(65536).startswith(b"HTTP/1.1 100")  # its head has been read
        for _ in range(5):
            with connected(served) as late:
                assert b"TOO_MANY_CONNECTIONS" in rest(late)
        slow.sendall(b'{"id":"eva"}')
        assert slow.recv(65536).startswith(b"HTTP/1.1 201")
        assert stream.recv(65536)
        slow.close()
        stream.close()


@pytest.mark.slow
def test_whoever_waits_when_the_nexus_stops_is_told_so_and_nothing_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wait = {"name": "wait_for_game", "parameters": {"timeout": 600}}
    with ThreadPoolExecutor(1) as threads:
        with serving(tmp_path) as served:
            eve = served.register("eve")
            eve.get("/nexus/agents/eve/observation")
            act = "/nexus/agents/eve/act"

            def told(answer: httpx2.Response) -> Any:
                return answer.json().get("error", {}).get("code")

            def waiting() -> httpx2.Response:
                """Wait, as soon as the other's action is over."""
                while told(answer := eve.post(act, json=wait, params={"wait": 60})) == "ACTION_PENDING":
                    pass
                return answer

            answer = threads.submit(waiting)
            with served.client() as owner:  # until it waits, which is when another can't act
                while told(owner.post(act, json={"name": "nothing"})) != "ACTION_PENDING":
                    pass
        assert problem(answer.result()) == (503, "NEXUS_STOPPING")
        eve.close()
    assert caplog.records == []


@pytest.mark.parametrize(
    ("files", "most"), [(1024, 768), (300, 64), (128, 32), (64, 16), (1_048_576, 10_000), (-1, 10_000)]
)
def test_as_many_connections_as_files_may_be_open_less_what_the_nexus_needs(
    files: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource", reason="the system counts no files")
    monkeypatch.setattr(resource, "RLIM_INFINITY", -1)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (files, files))
    assert connections.most_connections() == most

"""A proxy before a real game in another process, which lies in its place: late, broken, foreign and impossible replies.

It stands between a nexus and a game that `serve_world` serves. `lie` makes it lie about a route, so many times or for
ever; everything else is passed on unchanged.
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Any, in this module: JSON.

PASSED_ON = ("content-type", "idempotency-key", "authorization")


@dataclass(frozen=True)
class Reply:
    """A reply of the game, as it is sent on."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    whole: bool = True
    """Whether the connection stays open and all of the body is sent."""


def _error(status: int, code: str, *, after: str = "") -> Reply:
    body = {"error": {"code": code, "message": "<b>boom</b>", "details": {}, "retry": bool(after)}}
    return Reply(status, json.dumps(body).encode(), (("retry-after", after),) if after else ())


BEFORE: Mapping[str, Reply] = {
    "malformed": Reply(200, b'{"action":'),
    "html": Reply(200, b"<html>hello</html>"),
    "list": Reply(200, b"[1]"),
    "empty": Reply(200, b"{}"),
    "deep": Reply(200, b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "500": _error(500, "INTERNAL_ERROR"),
    "500 again": _error(500, "INTERNAL_ERROR", after="1"),
    "429 again": _error(429, "RATE_LIMITED", after="1"),
    "503 again": _error(503, "NEXUS_STOPPING", after="1"),
    "400": _error(400, "VALIDATION_ERROR"),
    "404": _error(404, "UNKNOWN_NAME"),
    "plain 500": Reply(500, b"Internal Server Error"),
    "redirect": Reply(307, b"", (("location", "http://127.0.0.1:9/"),)),
    "202": Reply(202, b'{"pending": true}'),
}
"""Lies told without asking the game."""


def _changed(reply: Reply, change: Callable[[Any], object]) -> Reply:
    told = json.loads(reply.body)
    change(told)
    return Reply(reply.status, json.dumps(told).encode())


def _rewarded(value: str) -> Callable[[Reply], Reply]:
    def lie(reply: Reply) -> Reply:
        told = json.loads(reply.body)
        told.setdefault("result", {})["reward"] = 0.125
        text = json.dumps(told).replace('"reward": 0.125', f'"reward": {value}')
        return Reply(reply.status, text.encode())

    return lie


def _put(path: str, value: Any) -> Callable[[Reply], Reply]:
    def change(told: Any) -> None:
        *inner, last = path.split(".")
        for name in inner:
            told = told.setdefault(name, {})
        told[last] = value

    return lambda reply: _changed(reply, change)


def _items(change: Callable[[list[Any]], list[Any]]) -> Callable[[Reply], Reply]:
    def lie(told: Any) -> None:
        told["package"]["items"] = change(list(told["package"].get("items") or ()))

    return lambda reply: _changed(reply, lie)


def _made(number: int) -> list[Any]:
    return [
        {"item_id": f"made-{n}", "name": "Excalibur", "category": "weapon", "tier": 10, "origin": "x"}
        for n in range(number)
    ]


AFTER: Mapping[str, Callable[[Reply], Reply]] = {
    "reward NaN": _rewarded("NaN"),
    "reward 1e999": _rewarded("1e999"),
    "reward text": _put("result.reward", "much"),
    "no result": _put("result", None),
    "step backwards": _put("result.observation.step", -3),
    "observation list": _put("observation", []),
    "inventory list": _put("observation.inventory", [1]),
    "other transfer": _put("package.transfer_id", "transfer-99999999"),
    "other receipt": _put("receipt.transfer_id", "transfer-99999999"),
    "not base64": _put("state", "***"),
    "foreign state": _put("state", "e30="),
    "items twice": _items(lambda items: items + items),
    "no items": _items(lambda items: []),
    "items made up": _items(lambda items: items + _made(50)),
    "another request": _put("request", "another"),
    "no request": lambda reply: _changed(reply, lambda told: told.pop("request", None)),
    "cut": lambda reply: Reply(reply.status, reply.body, whole=False),
}
"""Lies about what the game has said."""


class Liar:
    """The proxy; `url` is its address."""

    def __init__(self, game: str) -> None:
        self._game = game
        self._lie, self._route, self._left = "", "", 0
        self._kept: dict[str, list[tuple[str, Reply]]] = {}
        self._over = threading.Event()
        self.asked: list[str] = []
        """The routes that were asked, in order."""
        liar = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Say nothing."""

            def handle_any(self) -> None:
                liar._handle(self)

            do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815 the names are the server's

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # broken connections are normal here
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def lie(self, route: str, how: str, times: int = 1) -> None:
        """Lie about the replies of a route from now on, so many times; -1 for ever."""
        self._route, self._lie, self._left = route, how, times

    def be_honest(self) -> None:
        """Lie no more, and end the lies that still go on."""
        self._left = 0
        over, self._over = self._over, threading.Event()
        over.set()

    @property
    def told(self) -> bool:
        """Whether the lie has been told as often as it was to be."""
        return self._left == 0

    def close(self) -> None:
        """Stop."""
        self.be_honest()
        self._server.shutdown()
        self._server.server_close()

    def _handle(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("content-length") or 0)) or None
        path = request.path.partition("?")[0]
        route = path.rsplit("/", 1)[-1] or "root"
        self.asked.append(route)
        how = self._lie if route == self._route and self._left != 0 else ""
        if how:
            self._left -= 1
        if how == "hang":
            self._over.wait(600)
            request.close_connection = True
            return
        if how == "unanswered":
            request.close_connection = True
            return
        if how in BEFORE:
            self._send(request, BEFORE[how])
            return
        reply = self._ask(request, body)
        if reply is None:
            request.close_connection = True
            return
        kept = self._kept.setdefault(route, [])
        if how == "of another":
            reply = next((one for where, one in reversed(kept) if where != path), Reply(200, b'{"x": 1}'))
        elif how == "an older one":
            reply = next((one for where, one in kept if where == path), Reply(200, b'{"x": 1}'))
        elif reply.status == 200 and len(kept) < 400:
            kept.append((path, reply))
        if how == "drip":
            self._drip(request, reply)
            return
        self._send(request, AFTER[how](reply) if how in AFTER else reply)

    def _ask(self, request: BaseHTTPRequestHandler, body: bytes | None) -> Reply | None:
        headers = {name: value for name, value in request.headers.items() if name.lower() in PASSED_ON}
        asked = urllib.request.Request(self._game + request.path, body, headers, method=request.command)
        try:
            with urllib.request.urlopen(asked, timeout=90) as told:
                return Reply(told.status, told.read())
        except urllib.error.HTTPError as error:
            return Reply(error.code, error.read())
        except OSError:
            return None

    def _send(self, request: BaseHTTPRequestHandler, reply: Reply) -> None:
        try:
            self._begin(request, reply)
            request.wfile.write(reply.body if reply.whole else reply.body[: len(reply.body) // 2])
        except OSError:
            request.close_connection = True
        if not reply.whole:
            request.close_connection = True

    def _drip(self, request: BaseHTTPRequestHandler, reply: Reply) -> None:
        try:
            self._begin(request, reply)
            for number in range(len(reply.body)):
                request.wfile.write(reply.body[number : number + 1])
                request.wfile.flush()
                if self._over.wait(1):
                    break
        except OSError:
            pass
        request.close_connection = True

    @staticmethod
    def _begin(request: BaseHTTPRequestHandler, reply: Reply) -> None:
        request.send_response(reply.status)
        for name, value in (
            ("content-type", "application/json"),
            ("content-length", str(len(reply.body))),
            *reply.headers,
        ):
            request.send_header(name, value)
        request.end_headers()


@contextmanager
def lying(game: str) -> Iterator[Liar]:
    """Give a proxy before the game at an address."""
    liar = Liar(game)
    try:
        yield liar
    finally:
        liar.close()

"""Checks of every request before a route handles it.

In this order: the path has no `..`; if reading needs no token, the Host header names this machine (against DNS
rebinding); a token, if sent, is known; the caller's request rate is within its limit; there is a token if the nexus
listens for other machines; the body arrives in time, is JSON, and not too large. Unexpected errors are logged, and the
response has their id.

Plain ASGI, because it runs for every request and framework middleware costs more.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import Response

from wsap_core.errors import WsapError
from wsap_nexus.http import errors, refusals
from wsap_nexus.http.access.auth import Caller, Holder, OneToken, Tokens
from wsap_nexus.http.listening import host_name, is_loopback
from wsap_nexus.http.strict import read_json

# The types of ASGI.
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Any]
Send = Callable[[Message], Any]
App = Callable[[Scope, Receive, Send], Any]

CALLER = "wsap.caller"
"""The scope's key of the caller."""
HOLDER = "wsap.holder"
"""The scope's key of the pass of a request that has one."""
PASSES = "/nexus/pass"
"""The path of what a pass opens, and the start of the others; it opens nothing else."""
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_CALLERS_KEPT = 10_000


@dataclass(frozen=True)
class HttpLimits:
    """Limits on requests, callers and connections."""

    body: int = 2**20
    """The maximum bytes of a body."""
    body_seconds: float = 10.0
    """Seconds within which a body must arrive."""
    rate: float = 200.0
    """Requests per second of an agent, or of an address without a token; the admin has five times that."""
    burst: float = 400.0
    """The maximum burst of requests."""
    streams: int = 256
    """The maximum number of open event streams, a quarter of them reserved for the admin."""
    streams_each: int = 64
    """The maximum for one agent, and for all clients without a token together."""
    send_seconds: float = 30.0
    """Seconds until a stream is closed whose client reads nothing."""
    heartbeat: float = 15.0
    """Seconds between heartbeats on an idle stream."""
    head_seconds: float = 15.0
    """Seconds from the connection or the last request within which the head of a request must arrive."""
    connections: int | None = None
    """The maximum number of open connections; None for the limit of open files minus `serving.OWN_FILES`."""


class Rates:
    """A token bucket for each caller: `rate` requests per second, and a bucket of `burst`.

    `refusal` is the sentence of the refusal when the bucket is empty.
    """

    def __init__(
        self,
        rate: float,
        burst: float,
        clock: Callable[[], float],
        refusal: str = "Too many requests; wait a moment.",
    ) -> None:
        self._refusal = refusal
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str, times: float = 1.0) -> None:
        """Count a request of a caller with `times` the usual rate; TooManyRequestsError if the bucket is empty."""
        now = self._clock()
        left, since = self._left.pop(who, (self._burst * times, now))
        left = min(self._burst * times, left + (now - since) * self._rate * times)
        enough = left >= 1
        self._left[who] = (left - 1 if enough else left, now)
        if len(self._left) > _CALLERS_KEPT:
            self._left.popitem(last=False)
        if not enough:
            raise refusals.TooManyRequestsError(self._refusal, (1 - left) / (self._rate * times))


@dataclass(eq=False)
class Guard:
    """Middleware that checks requests.

    Args:
        tokens: authenticates callers; None to ignore tokens.
        hosts: names allowed in the Host header besides loopback names; None for any.
        guarded: whether reading needs a token, too.
        data_paths: prefixes of the paths that need a token then.
    """

    app: App
    tokens: Tokens | OneToken | None
    limits: HttpLimits
    hosts: frozenset[str] | None
    guarded: bool
    clock: Callable[[], float]
    data_paths: tuple[str, ...] = ("/nexus", "/openapi.json")

    def __post_init__(self) -> None:
        self._rates = Rates(self.limits.rate, self.limits.burst, self.clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it; a web socket that is refused is closed before it is accepted."""
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            headers = self._admit(scope)
            if scope["method"] in _WITH_BODY:
                receive = await self._body(headers, receive)
            await self.app(scope, receive, sending)
        except WsapError as error:
            await self._refuse(errors.of_error(error), started, scope, receive, send)
        except Exception as error:
            answer = errors.unexpected(error, f"{scope['method']} {scope['path'][:200]!r}")
            await self._refuse(answer, started, scope, receive, send)

    async def _refuse(self, answer: Response, started: bool, scope: Scope, receive: Receive, send: Send) -> None:
        if not started:
            await answer(scope, receive, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._check_origin(self._admit(scope))
        except WsapError:
            await send({"type": "websocket.close", "code": 1008})
            return
        await self.app(scope, receive, send)

    def _admit(self, scope: Scope) -> Mapping[bytes, bytes]:
        """Return the headers of a request that may be handled."""
        headers = dict(reversed(scope["headers"]))
        if _climbs(scope):
            raise _Nowhere()
        self._check_host(headers)
        given = self._who(headers)
        if isinstance(given, Holder):
            self._admit_holder(scope, given)
            return headers
        scope[CALLER] = who = given
        client = scope.get("client")
        name = "address:" + str(client[0] if client else "?") if who is None else f"agent:{who.agent_id or ''}"
        self._rates.take(name, 5.0 if who is not None and who.agent_id is None else 1.0)
        if who is None and self.guarded and scope["path"].startswith(self.data_paths):
            raise refusals.UnauthorizedError(
                "Every request needs a token here: send the header Authorization: Bearer TOKEN."
            )
        return headers

    def _admit_holder(self, scope: Scope, holder: Holder) -> None:
        """Let a pass reach its own routes only, for which it is the caller of no agent."""
        self._rates.take(f"pass:{holder.shown.id}")
        if scope["type"] != "http" or not (scope["path"] == PASSES or scope["path"].startswith(PASSES + "/")):
            raise refusals.ForbiddenError(f"This pass is for the {holder.shown.scope} {holder.shown.target!r} only.")
        scope[CALLER], scope[HOLDER] = None, holder

    def _who(self, headers: Mapping[bytes, bytes]) -> Caller | Holder | None:
        given = headers.get(b"authorization")
        if given is None or self.tokens is None:
            return None
        return self.tokens.check(given.decode("latin-1"))

    def _check_host(self, headers: Mapping[bytes, bytes]) -> None:
        if self.hosts is None:
            return
        name = host_name(headers.get(b"host", b"").decode("latin-1"))
        if name is None or not (name in self.hosts or name.endswith(".localhost") or is_loopback(name)):
            raise refusals.HostRefusedError(
                "The Host header names another machine; use the address that the server printed."
            )

    def _check_origin(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a web socket that a page of another site opens: browsers let it, and say whose page it is."""
        origin, host = headers.get(b"origin"), headers.get(b"host", b"")
        if origin is not None and origin.rpartition(b"//")[2] != host:
            raise refusals.HostRefusedError("The Origin header names another site.")

    async def _body(self, headers: Mapping[bytes, bytes], receive: Receive) -> Receive:
        most = self.limits.body
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > most):
            raise refusals.TooLargeError(f"The body is larger than the maximum of {most} bytes.")
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise refusals.TooSlowError("The client disconnected before its body arrived.")
                    part = message.get("body", b"")
                    size += len(part)
                    if size > most:
                        raise refusals.TooLargeError(f"The body is larger than the maximum of {most} bytes.")
                    parts.append(part)
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise refusals.TooSlowError(f"The body did not arrive in {self.limits.body_seconds:g} seconds.") from None
        body = b"".join(parts)
        if body:
            kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise refusals.WrongTypeError("Send JSON, with the header Content-Type: application/json.")
            read_json(body)
        return _again(body, receive)


class _Nowhere(WsapError):
    """The path contains `..` or an encoded separator."""

    code = errors.CODES[404][0]
    http_status = 404

    def __init__(self) -> None:
        super().__init__(errors.CODES[404][1])


def _again(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            message: Message = await receive()
            return message
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _climbs(scope: Scope) -> bool:
    raw: bytes = scope.get("raw_path") or scope["path"].encode("utf-8", "replace")
    path = unquote_to_bytes(raw)
    if b"\x00" in path or b"\\" in path or b"//" in path or b"%" in path:
        return True
    return any(part in (b"..", b".") for part in path.split(b"/"))

"""The connection to a server of models, for every protocol over HTTP: requests, streams, limits and failures.

aiohttp takes the least processor time: with 500 requests in flight 0.3 ms a call; the openai package takes 5 times and
one httpx client 50 times as much (`benchmarks/bench_backends.py`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

from wsap_core.seams import model_errors as errors
from wsap_core.seams.model import Backend, OnText, Reply, Request
from wsap_llm.backends.failures import Advice, Asked, UnusableReplyError, error_of
from wsap_llm.backends.openai.wire import EventReader, ReplyReader, streams
from wsap_llm.backends.places import is_local
from wsap_llm.starting import StartingError
from wsap_llm.text.pictures import has_pictures
from wsap_llm.text.tokens import within_context

if TYPE_CHECKING:
    import aiohttp

LOCAL_SLOTS = 4
"""Requests in flight to a server on this machine or in its network that does not tell how many it processes at once."""

T = TypeVar("T")
Told = TypeVar("Told", bound="Connection")


class Connection(Protocol):
    """What the options of every protocol say about the connection."""

    @property
    def place(self) -> str:
        """The server's address without a trailing slash."""

    @property
    def api_key(self) -> str | None:
        """The key, if there is one."""

    @property
    def key_variable(self) -> str:
        """The environment variable of the key."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Additional headers."""

    @property
    def proxy(self) -> str | None:
        """The proxy that the environment sets for the server."""

    @property
    def stream(self) -> bool | None:
        """Whether replies are streamed; None for while they are shown."""

    @property
    def gather(self) -> float:
        """Seconds in which pieces of a reply are collected."""

    @property
    def concurrency(self) -> int | None:
        """Most requests in flight to the server; None for what the server says, or else a default."""

    @property
    def timeout(self) -> float:
        """Seconds for a whole reply."""

    @property
    def first_token_timeout(self) -> float | None:
        """Seconds for the first part of a streamed reply; None for as many as for the whole."""

    @property
    def connect_timeout(self) -> float:
        """Seconds for the connection."""

    @property
    def max_bytes(self) -> int:
        """Most bytes of a response."""


class StreamReader(Protocol):
    """Reads the parts of a streamed reply from pieces of bytes."""

    def feed(self, piece: bytes) -> Iterator[str]:
        """Yield the parts that are complete; UnicodeDecodeError if they are not UTF-8."""

    def close(self) -> Iterator[str]:
        """Yield the rest at the end of the stream; likewise."""


class ServerClient(ABC, Generic[Told]):
    """A model of a server; a subclass adds the body of requests and, if it differs, how replies are read.

    Retries are left to the middleware `Retry`. All requests share one unlimited connection pool, which `aclose` closes.
    """

    protocol: ClassVar[str]
    """The first word of addresses, which also names the options of single requests."""
    path: ClassVar[str]
    """Where replies are asked for, below the server's address."""
    events: ClassVar[Callable[[], StreamReader]] = EventReader
    """Reads the parts of a streamed reply."""
    reader: ClassVar[type[ReplyReader]] = ReplyReader
    """Reads a reply."""
    advice: ClassVar[Advice] = Advice()
    """What messages advise."""
    optional: ClassVar[Collection[str]] = ()
    """Optional fields of a request; see `Asked.fields`."""
    think_opened = False
    """Whether the chat template starts replies inside `<think>`."""

    def __init__(self, name: str, options: Told) -> None:
        self._name = name
        self.options = options
        self.model = f"{self.protocol}/{name}"
        """The address."""
        self.slots: int | None = LOCAL_SLOTS if is_local(options.place) else None
        """How many requests the server processes at a time; None for any number."""
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._answered = False

    @property
    def server(self) -> str:
        """The server's address, which limits of requests in flight are for."""
        return self.options.place

    @property
    def most_in_flight(self) -> int | None:
        """The maximum number of requests in flight to the server; None for no limit."""
        return self.options.concurrency or self.slots

    @abstractmethod
    def _body(self, request: Request, given: Mapping[str, Any], *, stream: bool) -> bytes:
        """Return the body of a request with its own options `given` (Any: values of any type). Raises BackendError if
        the server can't do what is asked."""

    async def _reply(self, request: Request, on_text: OnText | None) -> tuple[Reply, str]:
        """Return the reply to one request, and the server's name of the model."""
        request = within_context(request, cast(Backend, self).abilities.context)
        given = dict(request.options.get(self.protocol, {}))
        pieces = streams(given.pop("stream", self.options.stream), request, on_text)
        body = self._body(request, given, stream=pieces)
        asked = self._asked(constrained=request.constraint is not None, pictured=has_pictures(request))
        reader = self.reader(request, asked, opened=self.think_opened)
        try:
            if pieces:
                async with self._failures():
                    return await self._streamed(body, reader, asked, on_text), reader.model
            return reader.whole(await self._fetched(self.path, body, asked)), reader.model
        except UnusableReplyError as error:
            return error.reply(request), reader.model

    async def aclose(self) -> None:
        """Close the connections; later requests fail."""
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _send(self, path: str, body: bytes | None, *, streamed: bool = False) -> Any:
        # Any: aiohttp's context manager of a response.
        # llama.cpp's server promises to keep the connection of a stream, and closes it: the next request would fail.
        more = {"Connection": "close"} if streamed else None
        method, address = "GET" if body is None else "POST", f"{self.options.place}/{path}"
        session = self._open()
        return session.request(
            method, address, data=body, headers=more, proxy=self._proxy, allow_redirects=False,
            timeout=self._timeouts(),
        )  # fmt: skip

    async def _fetched(self, path: str, body: bytes | None = None, asked: Asked | None = None) -> bytes:
        async with self._failures(), self._send(path, body) as answer:
            content = await self._read(answer)
            if answer.status != 200:
                raise error_of(answer.status, answer.headers, content, asked or self._asked())
            self._answered = True
            return content

    async def _streamed(self, body: bytes, reader: ReplyReader, asked: Asked, on_text: OnText | None) -> Reply:
        seconds = self.options.first_token_timeout
        first = None if seconds is None else asyncio.get_running_loop().time() + seconds
        async with await self._by(first, self._send(self.path, body, streamed=True)) as answer:
            if answer.status != 200:
                raise error_of(answer.status, answer.headers, await self._read(answer), asked)
            self._answered = True
            if answer.content_type == "application/json":  # some servers do not stream although requested
                return reader.whole(await self._read(answer))
            events = type(self).events()
            size = 0
            gather = self.options.gather
            resume = _nothing
            try:
                while not reader.done and (piece := await self._by(first, answer.content.readany())):
                    size += len(piece)
                    self._check_size(size)
                    for data in events.feed(piece):
                        reader.event(data)
                    if not reader.begun:
                        continue
                    first = None
                    if on_text is not None:
                        on_text(reader.draft)
                    if gather and not reader.done:
                        resume = _pause(answer, gather)
            finally:
                resume()
            for data in () if reader.done else events.close():
                reader.event(data)
            return reader.close()

    async def _by(self, moment: float | None, waiting: Awaitable[T]) -> T:
        """Await with the deadline of the first part of a reply; None for no deadline."""
        if moment is None:
            return await waiting
        try:
            async with asyncio.timeout_at(moment) as limit:
                return await waiting
        except TimeoutError as error:
            if not limit.expired():
                raise
            seconds = self.options.first_token_timeout or 0.0
            raise errors.BackendTimeoutError(
                f"{self.options.place} sent no part of a reply of {self.model} within {seconds:g} s."
            ) from error

    async def _read(self, answer: aiohttp.ClientResponse) -> bytes:
        pieces: list[bytes] = []
        size = 0
        async for piece in answer.content.iter_any():
            size += len(piece)
            self._check_size(size)
            pieces.append(piece)
        return b"".join(pieces)

    def _check_size(self, size: int) -> None:
        if size > self.options.max_bytes:
            raise errors.ServerFailedError(
                f"{self.options.place} sent more than {self.options.max_bytes} bytes (the option max_bytes) for "
                f"one reply of {self.model}; the rest was not read."
            )

    def _asked(self, *, constrained: bool = False, pictured: bool = False) -> Asked:
        one = self.options
        return Asked(
            self.model, one.place, one.api_key, one.key_variable, constrained, pictured, self.optional, self.advice
        )

    def _timeouts(self) -> aiohttp.ClientTimeout:
        import aiohttp

        return aiohttp.ClientTimeout(total=self.options.timeout, sock_connect=self.options.connect_timeout)

    def _open(self) -> aiohttp.ClientSession:
        """Return the session of the running event loop."""
        import aiohttp  # deferred: takes as long to import as the whole command line

        if self._closed:
            raise errors.BadRequestError(f"{self.model} is closed and accepts no requests.")
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            one = self.options
            headers = {"Content-Type": "application/json", "User-Agent": "wsap", **one.headers}
            if one.api_key is not None:
                headers["Authorization"] = f"Bearer {one.api_key}"
            self._proxy = one.proxy
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), headers=headers, cookie_jar=aiohttp.DummyCookieJar()
            )
            self._loop = loop
        return self._session

    @asynccontextmanager
    async def _failures(self) -> AsyncIterator[None]:
        """Map the client's exceptions to error classes; no message contains a header."""
        import aiohttp

        place = self.options.place
        try:
            yield
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
                raise errors.BadRequestError(
                    f"Could not establish a secure connection to {place}: {type(error).__name__}."
                ) from error
            if self._answered and is_local(place):
                raise StartingError(f"{place} does not answer any more; it may be restarting.") from error
            raise errors.NoServerError(self.advice.absent.format(place=place)) from error
        except TimeoutError as error:
            raise errors.BackendTimeoutError(
                f"{place} did not finish a reply of {self.model} within {self.options.timeout:g} s."
            ) from error
        except UnicodeDecodeError as error:
            raise errors.ServerFailedError(f"{place} sent a reply of {self.model} that is not UTF-8.") from error
        except aiohttp.ClientError as error:
            raise errors.ServerFailedError(
                f"{place} closed the connection during a reply of {self.model} ({type(error).__name__})."
            ) from error


def _pause(answer: aiohttp.ClientResponse, seconds: float) -> Callable[[], None]:
    """Pause reading from the connection, and return a function that ends the pause early.

    Data waits in the system meanwhile. Wakeups per packet are the main cost of streaming: without pauses a reply of 40
    pieces takes 1.5 times the processor time.
    """
    transport = answer.connection.transport if answer.connection is not None else None
    if not isinstance(transport, asyncio.Transport) or transport.is_closing() or not transport.is_reading():
        return _nothing

    def resume() -> None:
        end.cancel()
        if not transport.is_closing():
            transport.resume_reading()

    transport.pause_reading()
    end = asyncio.get_running_loop().call_later(seconds, resume)
    return resume


def _nothing() -> None:
    pass

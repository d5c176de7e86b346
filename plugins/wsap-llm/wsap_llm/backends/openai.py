"""`openai/<model>`: any server that speaks OpenAI's chat completions, by a direct asynchronous client.

aiohttp takes the least processor time: with 500 requests in flight 0.3 ms a call; the openai package takes 5 times and
one httpx client 50 times as much (`benchmarks/bench_backends.py`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from wsap_core.errors import ConfigError
from wsap_core.seams import model_errors as errors
from wsap_core.seams.context import Context
from wsap_core.seams.listing import Listing, ModelInfo
from wsap_core.seams.model import Abilities, ChooseConstraint, Chunk, Request, ThinkingChunk
from wsap_core.untrusted import single_line
from wsap_llm.backends.dialects import request_bytes, without_system
from wsap_llm.backends.failures import Asked, FieldRefusedError, error_of
from wsap_llm.backends.openai_options import BASE_URL, KEY_VARIABLE, URL_VARIABLE, OpenAIOptions, options_of
from wsap_llm.backends.scoring import Scorer
from wsap_llm.backends.wire import EventReader, ReplyReader
from wsap_llm.pictures import has_pictures
from wsap_llm.tokens import reserve_of

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")
_OPTIONAL = (
    *("temperature", "top_p", "seed", "repeat_penalty", "repetition_penalty", "max_tokens", "max_completion_tokens"),
    *("chat_template_kwargs", "enable_thinking", "reasoning_effort", "stream_options", "stop", "system"),
    *("parallel_tool_calls", "tool_choice"),
)
"""Optional fields of a request; see `Asked.fields`."""


class OpenAIBackend:
    """A model of a server that speaks OpenAI's chat completions. Retries are left to the middleware `Retry`. All
    requests share one unlimited connection pool, which `aclose` closes."""

    def __init__(
        self, name: str, options: OpenAIOptions | None = None, *, tell: Callable[[str], None] | None = None
    ) -> None:
        self.options = options or OpenAIOptions()
        self._tell = tell or logging.getLogger("wsap.llm").warning
        self._left_out: set[str] = set()
        self._others: set[str] = set()
        self._thinks = False
        self.model = f"openai/{name}"
        """The address."""
        self._name = name
        self._dialect = self.options.dialect
        self.abilities = Abilities(
            json_schema=self.options.json_schema,
            schema_subset=self._dialect.subset,
            regex=self._dialect.regex is not None,
            calls=self._dialect.calls if self.options.calls is None else self.options.calls,
            prefill=self._dialect.prefill is not None,
            images=self.options.images,
            thinking=True,
            context=self.options.context,
        )
        """From the options and the kind of server."""
        self._scorer = (
            Scorer(name, self.options.choose, partial(self._fetched, "completions")) if self.options.choose else None
        )
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._proxy = self.options.proxy
        self._closed = False

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Yield the reply: in pieces if `stream` is set in the options or the request, otherwise once it is complete.
        Raises BackendError."""
        begun = False
        while True:
            left_out, dialect = frozenset(self._left_out), self._dialect
            try:
                async with aclosing(self._reply(request)) as chunks:
                    async for chunk in chunks:
                        begun = True
                        self._thinks = self._thinks or isinstance(chunk, ThinkingChunk)
                        yield chunk
                return
            except FieldRefusedError as error:
                field = "chat_template_kwargs" if error.field == "enable_thinking" else error.field
                if begun or field in left_out:
                    raise
                self._leave_out(field)
            except errors.ConstraintError as error:
                if begun or dialect.schema == "json_object" or "json_object" not in str(error):
                    raise
                self._dialect = replace(self._dialect, schema="json_object")

    async def _reply(self, request: Request) -> AsyncGenerator[Chunk, None]:
        if self._scorer is not None and isinstance(request.constraint, ChooseConstraint):
            for chunk in await self._scorer.choose(request, request.constraint):
                yield chunk
            return
        given = dict(request.options.get("openai", {}))
        pieces = bool(given.pop("stream", self.options.stream))
        if "system" in self._left_out:
            request = replace(request, messages=without_system(request.messages))
        body = request_bytes(
            self._name,
            request,
            self._dialect,
            images=self.options.images is not False,
            stream=pieces,
            options={**self.options.extra, **given},
            reserve=reserve_of(request, self.options.think_tokens, self.options.context, thinks=self._thinks),
            left_out=self._left_out,
        )
        asked = self._asked(constrained=request.constraint is not None, pictured=has_pictures(request))
        reader = ReplyReader(request, asked, opened=self.options.think_opened)
        if pieces:
            # Closed at once if the caller leaves early, so that the server stops generating.
            async with self._failures(), aclosing(self._in_pieces(body, reader, asked)) as chunks:
                async for chunk in chunks:
                    yield chunk
        else:
            for chunk in reader.whole(await self._fetched("chat/completions", body, asked)):
                yield chunk
        self._compare(reader.model)

    def _compare(self, model: str) -> None:
        """Warn once if another model replies; names may differ by a folder, version or file extension."""
        asked, replies = (name.lower().rstrip("/").rpartition("/")[2] for name in (self._name, model))
        if replies and asked not in replies and replies not in asked and replies not in self._others:
            self._others.add(replies)
            self._tell(f"{self.model}: the server replies with another model, {single_line(model)[:100]}.")

    async def prepare(self) -> None:
        """If the options enable `choose`, test whether the server supports it, and report the result. Raises
        AuthenticationError if a required key is missing."""
        self._open()
        if self._scorer is not None and not self.abilities.choose:
            reason = await self._scorer.unable()
            self.abilities = replace(self.abilities, choose=not reason)
            self._scorer = None if reason else self._scorer
            self._tell(f"{self.model} {f'cannot choose: {reason}' if reason else 'can choose (style choose)'}.")

    def _leave_out(self, field: str) -> None:
        """Leave a field out from now on, and report it."""
        if field in self._left_out:
            return  # a concurrent request was first
        other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}.get(field)
        self._left_out.add(field)
        if other is not None and other not in self._left_out:
            self._dialect = replace(self._dialect, max_tokens=other)  # type: ignore[arg-type]  # one of two words
        instead = {"system": "; its text precedes the first message"}.get(field, f"; {other} is sent" if other else "")
        self._tell(f"{self.model}: the server refuses {field}, which is left out from now on{instead}.")

    async def aclose(self) -> None:
        """Close the connections; later requests fail."""
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def models(self) -> list[dict[str, Any]]:
        """Return the entries of `/models` (Any: JSON)."""
        body = await self._fetched("models")
        try:
            rows = json.loads(body)["data"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise errors.ServerFailedError(f"{self.options.place}/models did not return a list of models.") from error
        return [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]

    # --- the connection ----------------------------------------------------------------------

    def _send(self, path: str, body: bytes | None) -> Any:
        # Any: aiohttp's context manager of a response.
        method, address = "GET" if body is None else "POST", f"{self.options.place}/{path}"
        return self._open().request(method, address, data=body, proxy=self._proxy, allow_redirects=False)

    async def _fetched(self, path: str, body: bytes | None = None, asked: Asked | None = None) -> bytes:
        async with self._failures(), self._send(path, body) as answer:
            content = await self._read(answer)
            if answer.status != 200:
                raise error_of(answer.status, answer.headers, content, asked or self._asked())
            return content

    async def _in_pieces(self, body: bytes, reader: ReplyReader, asked: Asked) -> AsyncGenerator[Chunk, None]:
        # No timeout may span a `yield`: it would expire in the caller's code.
        first: float | None = asyncio.get_running_loop().time() + self.options.first_token_timeout
        async with await self._by(first, self._send("chat/completions", body)) as answer:
            if answer.status != 200:
                raise error_of(answer.status, answer.headers, await self._read(answer), asked)
            if answer.content_type == "application/json":
                # Some servers do not stream although requested.
                for chunk in reader.whole(await self._read(answer)):
                    yield chunk
                return
            events = EventReader()
            size = 0
            gather = self.options.gather
            resume = _nothing
            try:
                while not reader.done and (piece := await self._by(first, answer.content.readany())):
                    size += len(piece)
                    self._check_size(size)
                    several = events.feed(piece)
                    for chunk in reader.events(several) if gather else chain.from_iterable(map(reader.event, several)):
                        first = None
                        yield chunk
                    if first is None and gather and not reader.done:
                        resume = _pause(answer, gather)
            finally:
                resume()
            rest = () if reader.done else events.close()
            for chunk in chain(chain.from_iterable(map(reader.event, rest)), reader.close()):
                yield chunk

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
            raise errors.BackendTimeoutError(
                f"{self.options.place} sent no part of a reply of {self.model} "
                f"within {self.options.first_token_timeout:g} s."
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
                f"{self.options.place} sent more than {self.options.max_bytes} bytes for one reply of {self.model}; "
                "the rest was not read."
            )

    def _asked(self, *, constrained: bool = False, pictured: bool = False) -> Asked:
        options = self.options
        return Asked(self.model, options.place, options.api_key, options.key_variable, constrained, pictured, _OPTIONAL)

    def _open(self) -> aiohttp.ClientSession:
        """Return the session of the running event loop."""
        import aiohttp  # deferred: takes as long to import as the whole command line

        if self._closed:
            raise errors.BadRequestError(f"{self.model} is closed and accepts no requests.")
        if self.options.api_key is None and self.options.place == BASE_URL and not self.options.headers:
            raise errors.AuthenticationError(  # works without a network, too
                f"{BASE_URL} requires a key; set {self.options.key_variable}, or {URL_VARIABLE} for another server."
            )
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            headers = {"Content-Type": "application/json", "User-Agent": "wsap", **self.options.headers}
            if self.options.api_key is not None:
                headers["Authorization"] = f"Bearer {self.options.api_key}"
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=self.options.timeout, sock_connect=self.options.connect_timeout),
                headers=headers,
                cookie_jar=aiohttp.DummyCookieJar(),
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
            raise errors.NoServerError(f"No server answers at {place}; is it running?") from error
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


# --- for the plugin host ---------------------------------------------------------------------


def create(context: Context) -> OpenAIBackend:
    """Return the backend for `openai/<model>`; raise ConfigError for an invalid option or a missing model name."""
    name = str(context.config.get("model") or "")
    if not name:
        raise ConfigError("Missing model name; expected openai/MODEL, with the server's name of the model.")
    return OpenAIBackend(name, options_of(context.config, os.environ), tell=context.services.progress)


async def listing(context: Context) -> Listing:
    """Return the models that the server lists at `/models`; if it can't be reached, a listing with the reason."""
    from wsap_core.errors import WsapError

    options = options_of(context.config, os.environ)
    if options.api_key is None and options.base_url == BASE_URL:
        reason = f"neither {KEY_VARIABLE} nor {URL_VARIABLE} is set"
        return Listing("openai", options.place, reason=reason)
    backend = OpenAIBackend("?", replace(options, max_bytes=4 * 1024 * 1024))
    try:
        rows = await backend.models()
    except WsapError as error:
        return Listing("openai", options.place, reason=str(error))
    finally:
        await backend.aclose()
    return Listing("openai", options.place, [_info(row, backend.abilities) for row in rows])


def _info(row: Mapping[str, Any], abilities: Abilities) -> ModelInfo:
    # vLLM gives the context as max_model_len, llama.cpp in `meta`, gateways as context_length.
    meta = row.get("meta") if isinstance(row.get("meta"), dict) else {}
    found = row.get("max_model_len") or row.get("context_length") or (meta or {}).get("n_ctx")
    context = found if isinstance(found, int) else abilities.context
    owner = row.get("owned_by")
    return ModelInfo(
        f"openai/{row['id']}", replace(abilities, context=context), owner if isinstance(owner, str) else ""
    )

"""`openai/<model>`: any server that speaks OpenAI's chat completions, by a direct asynchronous client.

aiohttp, because it takes the least of the processor: with 500 requests in flight 0.3 ms a call, where
the openai package takes five times and one httpx client fifty times as much (`benchmarks/bench_backends.py`).
"""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from wsap_core.errors import ConfigError, UnknownNameError
from wsap_core.seams.context import Context
from wsap_core.seams.model import Abilities, Chunk, Listing, ModelInfo, Request
from wsap_core.seams.model_errors import (
    AuthenticationError,
    BackendTimeoutError,
    BadRequestError,
    NoServerError,
    ServerFailedError,
)
from wsap_llm.backends.dialects import DIALECTS, Dialect, dialect_name
from wsap_llm.backends.failures import Asked, error_of
from wsap_llm.backends.openai_wire import ReplyReader, request_bytes
from wsap_llm.backends.pauses import Pauses
from wsap_llm.backends.sse import EventReader
from wsap_llm.pictures import has_pictures

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

BASE_URL = "https://api.openai.com/v1"
URL_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "OPENAI_API_KEY"
_LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class OpenAIOptions:
    """How the server is reached and what it can do."""

    base_url: str = BASE_URL
    """Without `/chat/completions`; usually ends in `/v1`."""
    api_key: str | None = field(default=None, repr=False)
    key_variable: str = KEY_VARIABLE
    """What messages say the key is kept in."""
    server: str | None = None
    """A name in `DIALECTS`; by the host when None."""
    stream: bool = False
    """Take replies in pieces; costs more processor time, so only where somebody waits for them."""
    gather: float = 0.05
    """Seconds over which the pieces after the first are gathered, to be handed on together; 0 to hand on each
    as it comes, which costs several times the processor time."""
    json_schema: bool = True
    """Whether the server constrains by JSON Schema."""
    schema_subset: bool | None = None
    """Whether it takes only OpenAI's strict subset of JSON Schema, as a gateway to OpenAI's models may;
    as is known of the host when None: OpenAI's own servers and Azure's do."""
    images: bool | None = None
    """Whether the model sees; None where that is not known: pictures are sent then, and the server says if it can't."""
    context: int | None = None
    """The model's context in tokens."""
    think_opened: bool = False
    """Whether the chat template begins replies inside `<think>`."""
    timeout: float = 600.0
    """Seconds for a whole reply."""
    first_token_timeout: float = 300.0
    """Seconds until a streamed reply begins."""
    connect_timeout: float = 10.0
    max_bytes: int = 16 * 1024 * 1024
    """Most bytes of an answer."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """More headers, such as those of gateways."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """More fields of every request (Any: JSON)."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"The base URL {self.base_url!r} is none; it looks like http://127.0.0.1:8000/v1.")
        if parts.username or parts.password:
            raise ConfigError(f"The base URL may hold no password; set {self.key_variable}.")
        if self.server is not None and self.server not in DIALECTS:
            raise UnknownNameError("server", self.server, DIALECTS, hint=f"There are: {', '.join(DIALECTS)}.")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise ConfigError(f"The key in {self.key_variable} holds characters that no key has.")

    @property
    def host(self) -> str:
        """The server's name."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def dialect(self) -> Dialect:
        """What kind of server it is."""
        known = DIALECTS[self.server or dialect_name(self.host)]
        return known if self.schema_subset is None else replace(known, subset=self.schema_subset)

    @property
    def place(self) -> str:
        """The address as messages show it."""
        return self.base_url.rstrip("/")


class OpenAIBackend:
    """A model behind a server that speaks OpenAI's chat completions.

    Never tries again by itself: wrappers do. All requests share one pool of connections without a
    limit, which `aclose` closes.

    Args:
        name: the model's name at the server.
        options: how it is reached.
    """

    def __init__(self, name: str, options: OpenAIOptions | None = None) -> None:
        self.options = options or OpenAIOptions()
        self._name = name
        self._dialect = self.options.dialect
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._proxy = _proxy(self.options)
        self._closed = False

    @property
    def model(self) -> str:
        """The address, `openai/NAME`."""
        return f"openai/{self._name}"

    @property
    def abilities(self) -> Abilities:
        """What the options and the kind of server say."""
        return Abilities(
            json_schema=self.options.json_schema,
            schema_subset=self._dialect.subset,
            regex=self._dialect.regex is not None,
            prefill=self._dialect.prefill is not None,
            images=self.options.images,
            thinking=True,
            context=self.options.context,
        )

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply: in pieces if the option `stream` or the request's own says so, else when it is whole.

        Raises:
            BackendError: by class.
        """
        given = dict(request.options.get("openai", {}))
        pieces = bool(given.pop("stream", self.options.stream))
        body = request_bytes(
            self._name,
            request,
            self._dialect,
            images=self.options.images is not False,
            stream=pieces,
            options={**self.options.extra, **given},
        )
        asked = self._asked(constrained=request.constraint is not None, pictured=has_pictures(request))
        reader = ReplyReader(request, asked, opened=self.options.think_opened)
        async with self._failures():
            if pieces:
                # Closed here and now if the caller leaves early, so that the server stops writing.
                async with aclosing(self._in_pieces(body, reader, asked)) as chunks:
                    async for chunk in chunks:
                        yield chunk
                return
            answer = await self._whole(body, asked)
        for chunk in reader.whole(answer):
            yield chunk

    async def aclose(self) -> None:
        """Close the connections; nothing can be asked afterwards."""
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def models(self) -> list[dict[str, Any]]:
        """Return what `/models` lists, as it comes (Any: JSON)."""
        async with self._failures():
            session = self._open()
            async with session.get(f"{self.options.place}/models", proxy=self._proxy, allow_redirects=False) as answer:
                body = await self._read(answer)
                if answer.status != 200:
                    raise error_of(answer.status, answer.headers, body, self._asked())
        try:
            rows = json.loads(body)["data"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ServerFailedError(f"{self.options.place}/models answered something that is no list.") from error
        return [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]

    # --- the connection ----------------------------------------------------------------------

    async def _whole(self, body: bytes, asked: Asked) -> bytes:
        async with self._post(body) as answer:
            content = await self._read(answer)
            if answer.status != 200:
                raise error_of(answer.status, answer.headers, content, asked)
            return content

    async def _in_pieces(self, body: bytes, reader: ReplyReader, asked: Asked) -> AsyncGenerator[Chunk, None]:
        # No deadline may span a `yield`: it would go off in whatever the caller does in between.
        first: float | None = asyncio.get_running_loop().time() + self.options.first_token_timeout
        async with await self._by(first, self._post(body)) as answer:
            if answer.status != 200:
                raise error_of(answer.status, answer.headers, await self._read(answer), asked)
            if answer.content_type == "application/json":
                # Some servers don't stream what they are asked to stream.
                for chunk in reader.whole(await self._read(answer)):
                    yield chunk
                return
            events = EventReader()
            size = 0
            gather = self.options.gather
            with Pauses(answer, gather) as pauses:
                while not reader.done and (piece := await self._by(first, answer.content.readany())):
                    size += len(piece)
                    self._check_size(size)
                    several = events.feed(piece)
                    chunks = reader.events(several) if gather else _each(reader, several)
                    for chunk in chunks:
                        first = None
                        yield chunk
                    if first is None and gather and not reader.done:
                        pauses.begin()
            if not reader.done:
                for event in events.close():
                    for chunk in reader.event(event):
                        yield chunk
            for chunk in reader.close():
                yield chunk

    async def _by(self, moment: float | None, waiting: Awaitable[T]) -> T:
        """Return what is waited for, unless the moment passes first at which a reply has to have begun."""
        if moment is None:
            return await waiting
        try:
            async with asyncio.timeout_at(moment) as limit:
                return await waiting
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise BackendTimeoutError(
                f"{self.options.place} sent nothing of a reply of {self.model} "
                f"within {self.options.first_token_timeout:g} s."
            ) from error

    def _post(self, body: bytes) -> Any:
        # Any: aiohttp's context manager of a response.
        return self._open().post(
            f"{self.options.place}/chat/completions",
            data=body,
            proxy=self._proxy,
            allow_redirects=False,
        )

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
            raise ServerFailedError(
                f"{self.options.place} sent more than {self.options.max_bytes} bytes for one reply of {self.model}; "
                "the rest was left there."
            )

    def _asked(self, *, constrained: bool = False, pictured: bool = False) -> Asked:
        options = self.options
        return Asked(self.model, options.place, options.api_key, options.key_variable, constrained, pictured)

    def _open(self) -> aiohttp.ClientSession:
        """Return the session, made in the event loop that runs now."""
        import aiohttp  # deferred for weight: it takes as long to import as all of the command line

        if self._closed:
            raise BadRequestError(f"{self.model} was closed; nothing can be asked of it.")
        if self.options.api_key is None and self.options.place == BASE_URL and not self.options.headers:
            raise AuthenticationError(  # known beforehand, also where there is no network to be told over
                f"{BASE_URL} wants a key and none is set; set {self.options.key_variable}, or {URL_VARIABLE} for "
                "another server."
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
        """Turn what the client raises into errors by class; none of them holds a header."""
        import aiohttp

        place = self.options.place
        try:
            yield
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
                raise BadRequestError(f"No safe connection to {place} can be made: {type(error).__name__}.") from error
            raise NoServerError(f"No server answers at {place}; is it running?") from error
        except TimeoutError as error:
            raise BackendTimeoutError(
                f"{place} did not give a whole reply of {self.model} within {self.options.timeout:g} s."
            ) from error
        except UnicodeDecodeError as error:
            raise ServerFailedError(f"{place} answered for {self.model} with text that is not UTF-8.") from error
        except aiohttp.ClientError as error:
            raise ServerFailedError(
                f"{place} broke off in the middle of a reply of {self.model} ({type(error).__name__})."
            ) from error


def _each(reader: ReplyReader, several: Iterable[str]) -> Iterator[Chunk]:
    """Give the chunks of each event by itself."""
    for event in several:
        yield from reader.event(event)


def _proxy(options: OpenAIOptions) -> str | None:
    """Return the proxy that the environment names for the server; never one for this machine itself."""
    if options.host in _LOCAL or urllib.request.proxy_bypass(options.host):
        return None
    return urllib.request.getproxies().get(urlsplit(options.base_url).scheme)


# --- for the plugin host ---------------------------------------------------------------------


def options_of(config: Mapping[str, Any], environ: Mapping[str, str]) -> OpenAIOptions:
    """Return options from a configuration and, for what it leaves out, the environment.

    Raises:
        ConfigError: an option is unknown or of the wrong kind.
    """
    known = {f.name: f for f in fields(OpenAIOptions)}
    values: dict[str, Any] = {}
    for name, value in config.items():
        if name == "model":
            continue
        if name not in known:
            raise ConfigError(str(UnknownNameError("option of the backend openai", name, known)))
        wanted = type(getattr(OpenAIOptions, name, None)) if name not in ("headers", "extra") else dict
        if wanted is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if wanted in (bool, float, int, str, dict) and type(value) is not wanted:
            raise ConfigError(f"The option {name} of the backend openai is a {wanted.__name__}, not {value!r:.40}.")
        if name == "images" and type(value) is not bool:
            raise ConfigError(f"The option images of the backend openai is a bool, not {value!r:.40}.")
        values[name] = value
    values.setdefault("base_url", environ.get(URL_VARIABLE, "").strip() or BASE_URL)
    if values.get("api_key") is None:
        variable = values.get("key_variable", KEY_VARIABLE)
        values["api_key"] = environ.get(variable, "").strip() or None
    return OpenAIOptions(**values)


def create(context: Context) -> OpenAIBackend:
    """Return the backend for `openai/<model>`.

    Raises:
        ConfigError: an option is wrong, or the model is not named.
    """
    name = str(context.config.get("model") or "")
    if not name:
        raise ConfigError("Name the model: openai/MODEL, as the server calls it.")
    return OpenAIBackend(name, options_of(context.config, os.environ))


async def listing(context: Context) -> Listing:
    """Return what the server lists at `/models`; a server that can't be asked is told, not raised."""
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
    # vLLM tells the context as max_model_len, llama.cpp in `meta`, gateways as context_length.
    meta = row.get("meta") if isinstance(row.get("meta"), dict) else {}
    found = row.get("max_model_len") or row.get("context_length") or (meta or {}).get("n_ctx")
    context = found if isinstance(found, int) else abilities.context
    owner = row.get("owned_by")
    return ModelInfo(
        f"openai/{row['id']}", replace(abilities, context=context), owner if isinstance(owner, str) else ""
    )

"""`litellm/<model>`: a hundred providers through litellm, if it is installed.

Importing litellm takes seconds and by default downloads a price list, so it is imported at the first request, with the
price list that it ships. One core handles about 200 calls a second, a tenth of the rate of `openai/<model>`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from wsap_core.errors import ConfigError, MissingServiceError
from wsap_core.installing import install_line
from wsap_core.seams.context import Context
from wsap_core.seams.listing import Listing
from wsap_core.seams.model import Abilities, OnText, Reply, Request
from wsap_core.seams.model_errors import BackendError, BadRequestError, ConstraintError, NoServerError
from wsap_core.untrusted import single_line
from wsap_llm.backends.failures import SHOWN, Asked, UnusableReplyError, error_of, hide_key
from wsap_llm.backends.faults import CODES
from wsap_llm.backends.openai.dialects import Dialect, dialect_name, request_body
from wsap_llm.backends.openai.wire import ReplyReader, streams
from wsap_llm.options.declared import option_defs, read_options
from wsap_llm.text.pictures import has_pictures
from wsap_llm.text.tokens import reserve_of

# Any, in this module: litellm's types depend on the provider, and it is not imported to check them.

_EXTRA = "wsap-llm[litellm]"
_PROVIDERS = ("anthropic", "deepseek", "gemini", "groq", "mistral", "openai", "openrouter", "xai")
KEYS: Mapping[str, str] = {f"{name.upper()}_API_KEY": f"litellm/{name}/..." for name in _PROVIDERS}
"""Environment variable of an API key -> addresses, for the most common providers."""


@dataclass(frozen=True)
class LiteLLMOptions:
    """How litellm is called."""

    api_base: str | None = field(default=None, metadata={"names": "address"})
    """The provider's address, if it is not the usual one."""
    api_key: str | None = field(default=None, repr=False, metadata={"names": "secret"})
    """The provider's API key; if None, from the provider's environment variable."""
    stream: bool | None = None
    """Stream replies; if None, while they are shown, except function calls."""
    json_schema: bool | None = None
    """Whether the model supports JSON Schema; if None, as litellm reports, else it is tried."""
    schema_subset: bool | None = None
    """Whether the provider supports only OpenAI's strict subset of JSON Schema; if None, OpenAI and Azure do."""
    calls: bool | None = None
    """Whether the model supports function calls (tool calling); if None, as litellm reports."""
    images: bool | None = None
    """Whether the model accepts images; if None, as litellm reports."""
    context: int | None = None
    """The model's context in tokens; if None, as litellm reports."""
    think_tokens: int = 1024
    """Tokens for thinking in addition to the reply's, once the model has been seen to think."""
    timeout: float = 120.0
    """Timeout for a whole reply in seconds."""
    extra: Mapping[str, Any] = field(default_factory=dict, metadata={"names": "address"})
    """Additional arguments of `litellm.acompletion`, as an object."""


DECLARED = option_defs(LiteLLMOptions)


class LiteLLMBackend:
    """A model of any provider by litellm's name for it, `anthropic/claude-...`. Does not retry by itself."""

    def __init__(self, name: str, options: LiteLLMOptions | None = None) -> None:
        self.options = options or LiteLLMOptions()
        self.model = f"litellm/{name}"
        """The address."""
        self._name = name
        self._library: Any = None
        self._thinks = False
        subset = _is_openai(name, self.options) if self.options.schema_subset is None else self.options.schema_subset
        self._dialect = Dialect(strict_schema=subset, subset=subset, prefill="trailing", thinking="reasoning_effort")
        self.abilities = self._abilities({})
        """From the options and, after `prepare` or the first request, from litellm."""

    async def prepare(self) -> None:
        """Import litellm and look up the model's abilities; raise MissingServiceError if litellm is not installed."""
        if self._library is None:
            self._library = await asyncio.to_thread(_import)
            with contextlib.suppress(Exception):  # models missing from litellm's map are fine
                self.abilities = self._abilities(self._library.get_model_info(self._name))

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the reply, streamed as the option `stream` of the backend or the request says. Raises BackendError,
        and MissingServiceError if litellm is not installed."""
        await self.prepare()
        given = dict(request.options.get("litellm", {}))
        pieces = streams(given.pop("stream", self.options.stream), request, on_text)
        arguments = request_body(
            self._name,
            request,
            self._dialect,
            images=self.abilities.images is not False,
            stream=pieces,
            options={**self.options.extra, **given},
            reserve=reserve_of(request, self.options.think_tokens, self.abilities.context, thinks=self._thinks),
        )
        arguments |= {"timeout": self.options.timeout, "num_retries": 0, "max_retries": 0, "drop_params": True}
        arguments |= {"api_base": self.options.api_base, "api_key": self.options.api_key}
        asked = Asked(
            self.model,
            self.options.api_base or "The provider",
            self.options.api_key,
            "the provider's own environment variable",
            constrained=request.constraint is not None,
            pictured=has_pictures(request),
        )
        try:
            reply = await self._reply(arguments, ReplyReader(request, asked), on_text)
        except UnusableReplyError as error:
            reply = error.reply(request)
        except BackendError:
            raise
        except Exception as error:
            failed = self._error(error, asked)
            if not isinstance(failed, UnusableReplyError):
                raise failed from error
            reply = failed.reply(request)
        self._thinks = self._thinks or bool(reply.thinking)
        return self._priced(reply)

    async def _reply(self, arguments: Mapping[str, Any], reader: ReplyReader, on_text: OnText | None) -> Reply:
        answer = await self._library.acompletion(**arguments)
        if "stream" not in arguments:
            return self._priced(reader.whole(answer.model_dump_json().encode()), answer.get("usage"))
        counted: Any = None
        try:
            async for part in answer:
                reader.event(part.model_dump_json())
                counted = part.get("usage") or counted
                if on_text is not None:
                    on_text(reader.draft)
        finally:
            if (close := getattr(answer, "aclose", None)) is not None:
                await close()
        return self._priced(reader.close(), counted)

    def cost_of(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Return the cost in US dollars by litellm's price list; None if unknown. litellm returns 0 for models without
        a price and for free models, so 0 counts as unknown."""
        return self._cost(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)

    def _cost(self, **counted: Any) -> float | None:
        if self._library is None:
            return None
        try:
            prompt, completion = self._library.cost_per_token(model=self._name, **counted)
            return (float(prompt) + float(completion)) or None
        except Exception:
            return None

    async def aclose(self) -> None:
        """Close litellm's HTTP clients."""
        close = getattr(self._library, "close_litellm_async_clients", None)
        if close is not None:
            await close()

    def _abilities(self, found: Mapping[str, Any]) -> Abilities:
        options = self.options
        # Of a model that litellm does not know, it is tried; a refusal is learned from.
        schema = found.get("supports_response_schema") if found else True
        # A model in litellm's map without this flag does not accept images; for other models it is unknown.
        images = bool(found.get("supports_vision")) if found else None
        context = found.get("max_input_tokens")
        return Abilities(
            json_schema=bool(schema if options.json_schema is None else options.json_schema),
            schema_subset=self._dialect.subset,
            calls=bool(found.get("supports_function_calling") if options.calls is None else options.calls),
            prefill=bool(found.get("supports_assistant_prefill")),
            images=images if options.images is None else options.images,
            thinking=True,
            context=options.context or (context if isinstance(context, int) else None),
        )

    def _priced(self, reply: Reply, counted: Any = None) -> Reply:
        """Return a reply with its cost, by the usage that litellm reports, in which tokens from a cache are cheaper."""
        usage = reply.usage
        if usage.cost is not None:
            return reply
        cost = None if counted is None else self._cost(usage_object=counted)
        if cost is None:
            cost = self.cost_of(usage.prompt_tokens, usage.completion_tokens)
        return replace(reply, finish=replace(reply.finish, usage=replace(usage, cost=cost)))

    def _error(self, error: Exception, asked: Asked) -> BackendError:
        """Map an error of litellm by its status; only its causes reveal an unreachable server or a refused redirect."""
        words = hide_key(single_line(getattr(error, "message", None) or error), asked.key)
        status = getattr(error, "status_code", None)
        status = status if isinstance(status, int) and status >= 300 else 500
        names = {cls.__name__ for cls in type(error).__mro__}
        if asked.constrained and "UnsupportedParamsError" in names:
            return ConstraintError(f"{self.model}: {words[:SHOWN]}")
        if "ContextWindowExceededError" in names:
            status = 413
        cause: BaseException | None = error
        for _ in range(10):
            if cause is None or status < 500:
                break
            if isinstance(cause, ConnectionRefusedError) or type(cause).__name__ == "ClientConnectorError":
                return NoServerError(f"The server of {self.model} does not respond; is it running?")
            if REDIRECTED in str(cause):
                return BadRequestError(f"{self.model}: {single_line(cause)[:SHOWN]}; nothing is sent there.")
            cause = cause.__cause__ or cause.__context__
        headers = getattr(error, "litellm_response_headers", None) if status == 429 else None
        # It quotes the provider's error, with its code, in its message.
        code = "content_filter" if "ContentPolicyViolationError" in names else " ".join(_codes_in(words))
        body = json.dumps({"error": {"message": words, "code": code}}).encode()
        return error_of(status, headers or {}, body, asked)


def _codes_in(words: str) -> list[str]:
    return [word for word in re.findall(r"[A-Za-z_]+", words) if word.lower() in CODES]


def _is_openai(name: str, options: LiteLLMOptions) -> bool:
    """Return whether the provider is OpenAI or Azure, not another server with their protocol."""
    provider, slash, _ = name.partition("/")
    if options.api_base is not None:
        return dialect_name(urlsplit(options.api_base).hostname or "") == "openai"
    return provider in ("openai", "azure") or (
        not slash and provider.startswith(("gpt-", "chatgpt-", "o1", "o3", "o4"))
    )


def _not_installed() -> str:
    return f"litellm is not installed; install it with: {install_line(_EXTRA)}"


def _import() -> Any:
    """Import litellm without network access, output or retries."""
    if importlib.util.find_spec("litellm") is None:
        raise MissingServiceError(_not_installed())
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm: Any = importlib.import_module("litellm")  # deferred: slow to import, and optional
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.num_retries = 0
    _refuse_redirects()
    return litellm


REDIRECTED = "redirects to another address"


def _refuse_redirects() -> None:
    """Make litellm's clients refuse redirects, which would send prompts and sometimes the key to another address."""
    import httpx  # deferred: slow to import; a dependency of litellm

    class Guard(httpx.AsyncBaseTransport):  # type: ignore[misc]  # skipped: installed or not, the same is checked
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            response: httpx.Response = await self._inner.handle_async_request(request)
            if response.has_redirect_location:
                raise httpx.RequestError(f"{request.url.host} {REDIRECTED} ({response.headers['Location'][:300]})")
            return response

        async def aclose(self) -> None:
            await self._inner.aclose()

    handler: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler").AsyncHTTPHandler
    make = handler.create_async_transport
    handler.create_async_transport = staticmethod(
        lambda *given, **named: Guard(make(*given, **named) or httpx.AsyncHTTPTransport())
    )


# --- for the plugin host ---------------------------------------------------------------------


def create(context: Context) -> LiteLLMBackend:
    """Return the backend for `litellm/<model>`. Raises ConfigError for an unknown option or a missing model name, and
    MissingServiceError if litellm is not installed."""
    name = str(context.config.get("model") or "")
    if not name:
        raise ConfigError("Missing model name; expected litellm/PROVIDER/MODEL.")
    options = read_options(LiteLLMOptions, context.config, "litellm")
    if importlib.util.find_spec("litellm") is None:
        raise MissingServiceError(_not_installed())
    return LiteLLMBackend(name, options)


async def listing(context: Context) -> Listing:
    """Return the providers that have a key, without importing litellm or sending requests."""
    if importlib.util.find_spec("litellm") is None:
        return Listing("litellm", reason=_not_installed())
    found = [where for variable, where in KEYS.items() if os.environ.get(variable)]
    if not found:
        return Listing("litellm", reason=f"no key is set, such as {', '.join(sorted(KEYS)[:3])}")
    return Listing("litellm", note=f"keys are set for {', '.join(found)}; litellm lists no models")

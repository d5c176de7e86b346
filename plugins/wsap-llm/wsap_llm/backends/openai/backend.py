"""`openai/<model>`: any server that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from wsap_core.errors import ConfigError
from wsap_core.seams import model_errors as errors
from wsap_core.seams.context import Context
from wsap_core.seams.listing import Listing, ModelInfo
from wsap_core.seams.model import Abilities, ChooseConstraint, OnText, Reply, Request
from wsap_core.untrusted import single_line
from wsap_llm.backends.failures import FieldRefusedError
from wsap_llm.backends.openai.client import ServerClient
from wsap_llm.backends.openai.dialects import request_bytes, without_prefill, without_system
from wsap_llm.backends.openai.options import BASE_URL, KEY_VARIABLE, URL_VARIABLE, OpenAIOptions, options_of
from wsap_llm.backends.scoring import Scorer
from wsap_llm.starting import StartingError
from wsap_llm.text.tokens import reserve_of

if TYPE_CHECKING:
    import aiohttp

_OPTIONAL = (
    "prefill",  # first: llama.cpp refuses it as incompatible with a field of the request
    *("temperature", "top_p", "seed", "repeat_penalty", "repetition_penalty", "max_tokens", "max_completion_tokens"),
    *("chat_template_kwargs", "enable_thinking", "reasoning_effort", "stream_options", "stop", "system"),
    *("parallel_tool_calls", "tool_choice"),
)
"""Optional fields of a request; see `Asked.fields`."""


LISTING_TIMEOUT = 10.0
"""Seconds to wait for the server's list of models before playing without what it tells."""


MANY_AT_ONCE = frozenset({"vllm", "sglang"})
"""Servers, by the owner that their lists name, which batch as many requests as they get."""


class OpenAIBackend(ServerClient[OpenAIOptions]):
    """A model of a server that speaks OpenAI's chat completions."""

    protocol = "openai"
    path = "chat/completions"
    optional = _OPTIONAL

    def __init__(
        self, name: str, options: OpenAIOptions | None = None, *, tell: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(name, options or OpenAIOptions())
        self._tell = tell or logging.getLogger("wsap.llm").warning
        self._left_out: set[str] = set()
        self._others: set[str] = set()
        self._thinks = False
        self._learned: asyncio.Task[None] | None = None
        self._dialect = self.options.dialect
        self.think_opened = self.options.think_opened
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

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the reply, streamed as the option `stream` of the backend or the request says. Raises BackendError."""
        if self._scorer is not None and isinstance(request.constraint, ChooseConstraint):
            return await self._scorer.choose(request, request.constraint)
        while True:
            left_out, dialect = frozenset(self._left_out), self._dialect
            try:
                reply, model = await self._reply(request, on_text)
            except FieldRefusedError as error:
                field = "chat_template_kwargs" if error.field == "enable_thinking" else error.field
                if field in left_out:
                    raise
                self._leave_out(field)
            except errors.ConstraintError as error:
                if dialect.schema == "json_object" or "json_object" not in str(error):
                    raise
                self._dialect = replace(self._dialect, schema="json_object")
            else:
                self._thinks = self._thinks or bool(reply.thinking)
                self._compare(model)
                return reply

    @override
    def _body(self, request: Request, given: Mapping[str, Any], *, stream: bool) -> bytes:
        if "system" in self._left_out:
            request = replace(request, messages=without_system(request.messages))
        if "prefill" in self._left_out:
            request = without_prefill(request)
        return request_bytes(
            self._name,
            request,
            self._dialect,
            images=self.options.images is not False,
            stream=stream,
            options={**self.options.extra, **given},
            reserve=reserve_of(request, self.options.think_tokens, self.options.context, thinks=self._thinks),
            left_out=self._left_out,
        )

    @override
    def _open(self) -> aiohttp.ClientSession:
        if self.options.api_key is None and self.options.place == BASE_URL and not self.options.headers:
            raise errors.AuthenticationError(  # works without a network, too
                f"{BASE_URL} requires a key; set {self.options.key_variable}, or {URL_VARIABLE} for another server."
            )
        return super()._open()

    def _compare(self, model: str) -> None:
        """Warn once if another model replies; names may differ by a folder, version or file extension."""
        asked, replies = _known_as(self._name), _known_as(model)
        if replies and asked not in replies and replies not in asked and replies not in self._others:
            self._others.add(replies)
            self._tell(f"{self.model}: the server replies with another model, {single_line(model)[:100]}.")

    async def prepare(self) -> None:
        """Learn the model's context and size from the server's list of models, where it tells them. If the options
        enable `choose`, test whether the server supports it, and report the result. Raises AuthenticationError if a
        required key is missing."""
        self._open()
        if self.options.base_url != BASE_URL:  # OpenAI's own list tells neither
            if self._learned is None:
                self._learned = asyncio.ensure_future(self._learn())
            learned = self._learned
            try:
                await asyncio.shield(learned)
            finally:
                if learned.done() and (learned.cancelled() or learned.exception() is not None):
                    self._learned = None  # next time it is asked again
        if self._scorer is not None and not self.abilities.choose:
            reason = await self._scorer.unable()
            self.abilities = replace(self.abilities, choose=not reason)
            self._scorer = None if reason else self._scorer
            self._tell(f"{self.model} {f'cannot choose: {reason}' if reason else 'can choose (style choose)'}.")

    async def _learn(self) -> None:
        try:
            async with asyncio.timeout(LISTING_TIMEOUT):
                rows = await self.models()
        except StartingError:
            raise
        except (errors.BackendError, TimeoutError):
            return  # the first request tells what is wrong with the server
        row = next((row for row in rows if row["id"] == self._name), rows[0] if len(rows) == 1 else None)
        if row is None:
            return
        self._others.add(_known_as(row["id"]))  # a server with one model takes any name for it
        told = _told(row, self.abilities)
        self.abilities = replace(told, context=self.options.context or told.context)
        if row.get("owned_by") in MANY_AT_ONCE:
            self.slots = None
        elif row.get("owned_by") == "llamacpp":
            self.slots = await self._slots_of_llama() or self.slots

    async def _slots_of_llama(self) -> int | None:
        """Return how many requests llama.cpp's server processes at a time, which it tells beside `/v1`."""
        with suppress(errors.BackendError, TimeoutError, ValueError, AttributeError, RecursionError):
            async with asyncio.timeout(LISTING_TIMEOUT):
                return _size(json.loads(await self._fetched("../props")).get("total_slots"))
        return None

    def _leave_out(self, field: str) -> None:
        """Leave a field out from now on, and report it."""
        if field in self._left_out:
            return  # a concurrent request was first
        other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}.get(field)
        self._left_out.add(field)
        if other is not None and other not in self._left_out:
            self._dialect = replace(self._dialect, max_tokens=other)  # type: ignore[arg-type]  # one of two words
        how = {"system": "its text precedes the first message", "prefill": "a message asks the model to go on"}
        instead = f"; {how[field]}" if field in how else f"; {other} is sent" if other else ""
        self._tell(f"{self.model}: the server refuses {field}, which is left out from now on{instead}.")

    async def models(self) -> list[dict[str, Any]]:
        """Return the entries of `/models` (Any: JSON)."""
        body = await self._fetched("models")
        try:
            rows = json.loads(body)["data"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise errors.ServerFailedError(f"{self.options.place}/models did not return a list of models.") from error
        return [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]


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


def _known_as(name: str) -> str:
    """Return a model's name without folders and capitals."""
    return name.lower().rstrip("/").rpartition("/")[2]


def _info(row: Mapping[str, Any], abilities: Abilities) -> ModelInfo:
    owner = row.get("owned_by")
    return ModelInfo(f"openai/{row['id']}", _told(row, abilities), owner if isinstance(owner, str) else "")


def _told(row: Mapping[str, Any], abilities: Abilities) -> Abilities:
    """Return the abilities with the context and the number of parameters that an entry of the list tells."""
    # vLLM gives the context as max_model_len, llama.cpp in `meta`, gateways as context_length.
    meta = row.get("meta")
    of_llama = meta if isinstance(meta, dict) else {}
    context = _size(row.get("max_model_len")) or _size(row.get("context_length")) or _size(of_llama.get("n_ctx"))
    parameters = _size(of_llama.get("n_params"))
    return replace(abilities, context=context or abilities.context, parameters=parameters or abilities.parameters)


def _size(found: object) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None

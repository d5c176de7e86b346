"""The check of a language model in `wsap doctor`: one real request to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wsap_core.errors import WsapError
from wsap_core.untrusted import single_line
from wsap_nexus.cli.model_options import VARIABLE, default_model

if TYPE_CHECKING:
    from wsap_core.host import PluginHost
    from wsap_core.seams.model import Abilities, Reply


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    check: str
    status: str
    """"ok", "warning" (it works, with a reservation) or "problem"."""
    detail: str
    """One sentence or figure."""
    hint: str = ""
    """How to fix it."""


WAIT = 120.0
"""Seconds to wait for the model's reply, loading it included."""

LISTING = 3.0
"""Seconds to wait for each provider to list its models."""

SLOW = 10.0
"""Seconds for a reply above which there is a warning: at 10, a thousand steps take three hours."""

SCHEMA = {
    "type": "object",
    "properties": {"action": {"enum": ["wait", "move_left"]}, "reasoning": {"type": "string", "maxLength": 120}},
    "required": ["action", "reasoning"],
    "additionalProperties": False,
}
RULES = 'You play a game. Reply with JSON alone: {"action": "wait" or "move_left", "reasoning": "a few words"}.'
SCENE = "There is a wall to your left. What do you do?"

TOLERANT = "WSAP parses such replies leniently and asks once more; --strict refuses this model."
ROOM = "A model that thinks may need more tokens: --agent-option max_tokens=1000, or --agent-option thinking=no."


@dataclass(frozen=True)
class _Chosen:
    address: str
    why: str
    must: bool
    """Whether its failure is a problem rather than a warning, because it was named."""


def examine_model(
    address: str | None, host: PluginHost, *, options: Mapping[str, Any] | None = None, wait: float = WAIT
) -> Iterator[Finding]:
    """Yield the finding about a model after one real request to it, whose reply may take `wait` seconds.

    Without an address, the default model is tested, else the first that a server on this machine lists: a model that
    may cost money is only used if it is named.
    """
    yield asyncio.run(_verdict(address, host, options or {}, wait))


async def _verdict(address: str | None, host: PluginHost, options: Mapping[str, Any], wait: float) -> Finding:
    from wsap_core.seams.model import JsonConstraint, Message, Request
    from wsap_llm.backends.pool import ModelPool, RequestPolicy

    chosen = await _choose(address, host)
    if isinstance(chosen, Finding):
        return chosen
    who = f"{single_line(chosen.address)} ({chosen.why})"
    failed = "problem" if chosen.must else "warning"
    async with ModelPool(host, policy=RequestPolicy(attempts=1)) as models:
        try:
            async with asyncio.timeout(wait):
                backend = await models.ready(chosen.address, options)
                constraint = JsonConstraint(SCHEMA) if backend.abilities.json_schema else None
                messages = (Message("system", RULES), Message("user", SCENE))
                reply = await backend.complete(Request(messages, constraint=constraint))
        except TimeoutError:
            hint = "Wait longer with --wait SECONDS, as a large model takes time to load, or use a smaller one."
            return Finding("model", failed, f"{who}: no reply within {wait:g} s", hint)
        except WsapError as error:
            return Finding("model", failed, f"{who}: {single_line(error)}", _hint(error, chosen.address))
        seconds = models.meter.of(chosen.address).seconds
    fault, hint = _fault(reply, backend.abilities, seconds)
    return Finding("model", "warning" if fault else "ok", f"{who} answers {_how(reply, backend, seconds)}{fault}", hint)


async def _choose(address: str | None, host: PluginHost) -> _Chosen | Finding:
    if address is not None:
        return _Chosen(address.strip(), "as requested", must=True)
    if (default := default_model()) is not None:
        return _Chosen(default, f"from {VARIABLE}", must=False)
    from wsap_llm.backends.places import is_here
    from wsap_llm.backends.pool import list_models

    listings = await list_models(host, within=LISTING)
    for listing in listings:
        if listing.place and is_here(listing.place) and listing.models:
            return _Chosen(listing.models[0].address, "the first on this machine", must=False)
    elsewhere = [listing.provider for listing in listings if listing.models and listing.place]
    none = "none is reachable; agents that need no model can play"
    if elsewhere:
        none = f"none on this machine; {', '.join(elsewhere)} could be used, which may cost money"
    return Finding("model", "ok", none, "Test a specific model: wsap doctor --model ADDRESS")


def _how(reply: Reply, backend: Any, seconds: float) -> str:
    from wsap_nexus.terminal.spending import speed

    tokens, context = reply.usage.completion_tokens, backend.abilities.context
    fast = f", {speed(tokens / seconds)} tokens/s" if tokens and seconds > 0 else ""
    room = "context unknown" if context is None else f"context {context} tokens"
    numbers = backend.abilities.dtype
    return f"in {seconds:.2f} s{fast}, {room}{f', in {single_line(numbers)}' if numbers else ''}"


def _fault(reply: Reply, abilities: Abilities, seconds: float) -> tuple[str, str]:
    """Return the fault of a reply, starting with a semicolon, and a hint; both empty if there is none."""
    said = single_line(reply.text)[:80]
    if not said.strip():
        return "; but the reply is empty", ROOM if reply.truncated or reply.thinking else ""
    if reply.truncated:
        return f"; but it was cut off after {reply.usage.completion_tokens} tokens: {said}", ROOM
    if not _is_decision(reply.text):
        what = "the server did not enforce the JSON Schema" if abilities.json_schema else "the reply is malformed"
        return f"; but {what}: {said}", TOLERANT
    if not abilities.json_schema:
        return "; but its replies can't be constrained to legal actions", TOLERANT
    if seconds > SLOW:
        return "; which is slow", "The first request loads the model; if it stays slow, use a smaller one."
    return "", ""


def _is_decision(text: str) -> bool:
    from wsap_core.protocol.values import validate_value

    try:
        return validate_value(json.loads(text), SCHEMA, "the reply") is None
    except (ValueError, RecursionError):
        return False


def _hint(error: Exception, address: str) -> str:
    from wsap_core.seams import model_errors as errors

    hints = {
        errors.ModelNotFoundError: "List the models: wsap models",
        errors.AuthenticationError: "The server can be reached; its key is missing or wrong.",
        errors.NoServerError: "Start the server, or set its address: OLLAMA_HOST, OPENAI_BASE_URL.",
        errors.ContextTooSmallError: "Give it more context: --model-option num_ctx=16384."
        if address.startswith("ollama/")
        else "Start its server with more context.",
        errors.RateLimitError: "The server can be reached and has the model; try again later.",
    }
    return next((hint for kind, hint in hints.items() if isinstance(error, kind)), "")

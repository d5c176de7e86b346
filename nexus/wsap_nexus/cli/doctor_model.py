"""What `wsap doctor` finds out about a model: one real request, as a game would make it, and a verdict on each part."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wsap_core.untrusted import one_line
from wsap_nexus.cli.findings import Finding
from wsap_nexus.models import remembered

if TYPE_CHECKING:
    from wsap_core.host import PluginHost
    from wsap_core.seams.model import Abilities, Listing, Reply, Request
    from wsap_llm.backends.meter import Meter
    from wsap_llm.backends.registry import Models
    from wsap_nexus.models.prompt_size import PromptSize

WAIT = 120.0
"""Seconds that a model has for its answer; loading a large one is part of it."""

LISTING = 3.0
"""Seconds that each provider has to say which models it has."""

STREAMING = ("ollama", "openai", "litellm")
"""Backends whose replies come in pieces when the option `stream` asks for it."""

SLOW = 10.0
"""Seconds for an answer above which there is a remark: a thousand steps take three hours then."""


@dataclass(frozen=True)
class _Chosen:
    """The model that is asked, and why that one."""

    address: str
    why: str
    must: bool
    """Whether it was named, so that its failure is the machine's problem rather than a remark."""


def examine_model(
    address: str | None, host: PluginHost, *, options: Mapping[str, Any] | None = None, wait: float = WAIT
) -> Iterator[Finding]:
    """Give what one real request to a model shows.

    The model is the one that is named, else the one that is remembered, else the first that a
    server on this machine lists: nobody's money is spent who did not name a model.

    Args:
        address: the model that was named.
        host: where backends and games come from.
        options: of the model's backend.
        wait: seconds that it has for its answer.
    """
    yield from asyncio.run(_findings(address, host, options or {}, wait))


async def _findings(address: str | None, host: PluginHost, options: Mapping[str, Any], wait: float) -> list[Finding]:
    chosen, findings = await _choose(address, host)
    if chosen is not None:
        findings += [finding async for finding in _ask(chosen, host, options, wait)]
    return findings


async def _choose(address: str | None, host: PluginHost) -> tuple[_Chosen | None, list[Finding]]:
    if address is not None:
        return _Chosen(address.strip(), "as asked for", must=True), []
    kept = remembered.read(os.environ)
    findings = []
    if kept.damage:
        findings.append(Finding("models file", "warning", kept.damage, "Write it anew with: wsap models forget"))
    if kept.default is not None:
        return _Chosen(kept.default, kept.how(), must=False), findings
    from wsap_llm.backends.fitting import is_here
    from wsap_llm.backends.registry import list_models

    listings = await list_models(host, within=LISTING)
    for listing in listings:
        if listing.place and is_here(listing.place) and listing.models:
            return _Chosen(listing.models[0].address, "the first on this machine", must=False), findings
    return None, [*findings, Finding("model", "ok", _none(listings), "Ask a certain one: wsap doctor --model ADDRESS")]


def _none(listings: list[Listing]) -> str:
    elsewhere = [listing.provider for listing in listings if listing.models and listing.place]
    if elsewhere:
        return f"none on this machine; {', '.join(elsewhere)} could be asked, which may cost money"
    return "none can be reached; games are played by rules and at random without one"


async def _ask(chosen: _Chosen, host: PluginHost, options: Mapping[str, Any], wait: float) -> AsyncIterator[Finding]:
    """Give the verdicts in the order in which things go wrong; the first that is fatal is the last."""
    from wsap_core.errors import WsapError
    from wsap_llm.backends.registry import Models, Policy

    name = one_line(chosen.address)
    async with Models(host, policy=Policy(attempts=1)) as models:
        models.configure(chosen.address, options)
        try:
            # Asked once and not again: what is to be found out is how it is now.
            async with asyncio.timeout(wait):
                abilities = (await models.ready(chosen.address)).abilities
                size, real = await _prompt(chosen.address, host, abilities)
                reply = await _reply(models, chosen.address, size)
        except TimeoutError:
            hint = "Wait longer with --wait SECONDS: loading a large model takes its time. Or take a smaller one."
            yield _bad(chosen, f"{name} ({chosen.why}): no answer within {wait:g} s", hint)
            return
        except WsapError as error:
            yield _bad(chosen, f"{name} ({chosen.why}): {one_line(error)}", _hint(error))
            return
        yield Finding("model", "ok", f"{name} ({chosen.why}) answers")
        yield _answered(reply, name)
        yield _constrained(reply, size.first, abilities)
        yield _speed(models.meter, chosen.address)
        yield _context(abilities, size, real, chosen.address)
        _keep(models.meter, chosen.address)


def _bad(chosen: _Chosen, detail: str, hint: str) -> Finding:
    return Finding("model", "problem" if chosen.must else "warning", detail, hint)


def _hint(error: Exception) -> str:
    """Return what to do about an error, where its own sentence does not say it."""
    from wsap_core.seams.model_errors import (
        AuthenticationError,
        ContextTooSmallError,
        ModelNotFoundError,
        NoServerError,
        RateLimitError,
    )

    match error:
        case ModelNotFoundError():
            return "See what there is: wsap models"
        case AuthenticationError():
            return "The server can be reached; its key is missing or wrong."
        case NoServerError():
            return "Start the server, or set its address: OLLAMA_HOST, OPENAI_BASE_URL."
        case ContextTooSmallError():
            return "Give it more context: --model-option num_ctx=16384, as far as the model was made for it."
        case RateLimitError():
            return "The server can be reached and has the model; try again in a while."
    return ""


async def _prompt(address: str, host: PluginHost, abilities: Abilities) -> tuple[PromptSize, str]:
    """Return the first prompt of a real game, and the game's name."""
    from wsap_core.references import load_adapter_spec
    from wsap_nexus.cli.models import game_for_size
    from wsap_nexus.models.prompt_size import measure
    from wsap_nexus.runs.plan import RunPlan, plan_seats
    from wsap_nexus.runs.session import load_parts

    game = game_for_size(host)
    seats = plan_seats(load_adapter_spec(game, host), agent="llm", options={"model": address, "plan": "no"})
    plan = RunPlan(game, seats)
    parts = load_parts(plan, host)
    seat = plan.seats[0]
    return await measure(plan, seat, parts.game, parts.agents[seat.name], host, abilities=abilities), game


async def _reply(models: Models, address: str, size: PromptSize) -> Reply:
    """Ask the model what a player would ask it, in pieces where that can be had."""
    from wsap_core.seams.model import collect

    kind = address.partition("/")[0]
    request = size.first
    if kind in STREAMING:
        request = replace(request, options={**request.options, kind: {**request.options.get(kind, {}), "stream": True}})
    return await collect(models.backend(address), request)


def _answered(reply: Reply, name: str) -> Finding:
    said = one_line(reply.text)[:80]
    if not reply.text.strip():
        hint = (
            "A model that thinks may need more room: --model-option think_tokens=4096, or --agent-option thinking=no."
        )
        return Finding("answer", "warning", f"{name} said nothing", hint if reply.truncated or reply.thinking else "")
    if reply.truncated:
        tokens = reply.usage.completion_tokens
        hint = "Allow longer replies: --agent-option max_tokens=1000."
        return Finding("answer", "warning", f"cut off after {tokens} tokens: {said}", hint)
    return Finding("answer", "ok", said)


def _constrained(reply: Reply, request: Request, abilities: Abilities) -> Finding:
    """Return whether the reply is what the constraint of the request allows, or at least what it asks for."""
    from wsap_core.seams.model import JsonConstraint

    tolerant = "WSAP reads replies with tolerance and asks once more; --strict would refuse this model."
    if not isinstance(request.constraint, JsonConstraint):
        fine = _is_decision(reply.text)
        shown = "and kept to the form without it" if fine else "and did not keep to the form that was asked for"
        return Finding("constraint", "warning", f"it can't be bound to legal actions, {shown}", tolerant)
    reason = _breach(reply.text, request.constraint.schema)
    if not reason:
        return Finding("constraint", "ok", "kept to the JSON Schema: only legal actions can be chosen")
    return Finding("constraint", "warning", f"the server did not keep to the JSON Schema: {reason}", tolerant)


def _is_decision(text: str) -> bool:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and isinstance(found.get("action"), str)


def _breach(text: str, schema: Mapping[str, Any]) -> str:
    """Return in what a reply breaks the schema of its constraint, in one sentence; empty if in nothing."""
    from wsap_core.protocol.values import validate_value

    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return "the reply is no JSON"
    # One branch for each kind of action; with several, the sentence is about the reply as a whole.
    branches = schema.get("anyOf", [schema])
    reasons = [validate_value(found, branch, "the reply") for branch in branches]
    if None in reasons:
        return ""
    if len(reasons) == 1:
        return one_line(reasons[0] or "")
    return f"no legal action has the form {one_line(json.dumps(found))[:80]}"


def _speed(meter: Meter, address: str) -> Finding:
    from wsap_nexus.terminal.spending import speed

    pace = meter.pace(address)
    whole, first = pace.seconds_a_call or 0.0, pace.first_token or 0.0
    written = whole - first
    shown = f"{whole:.2f} s for {pace.completion_tokens} tokens, the first after {first:.2f} s"
    # What comes after the first piece was written in that time, unless a server in between held it back.
    if written > 0.1 * whole and pace.completion_tokens > 1:
        shown += f", {speed((pace.completion_tokens - 1) / written)} tokens/s"
    elif pace.tokens_per_second is not None:
        shown += f", {speed(pace.tokens_per_second)} tokens/s in all"
    if whole > SLOW:
        hint = (
            "The first request loads the model; if it stays so slow, take a smaller one, or --agent-option thinking=no."
        )
        return Finding("speed", "warning", shown, hint)
    return Finding("speed", "ok", shown)


def _context(abilities: Abilities, size: PromptSize, game: str, address: str) -> Finding:
    from wsap_nexus.cli.estimate import reply_tokens

    context = abilities.context
    shown = one_line(game)
    if context is None:
        return Finding("context", "ok", f"not told; {shown} needs at least {size.least} tokens")
    if context < size.least:
        hint = "Give it more: --model-option num_ctx=16384, or take a model that was made for more."
        return Finding("context", "warning", f"{context} tokens; {shown} needs at least {size.least}", hint)
    reply, _ = reply_tokens(remembered.read(os.environ).known(address), size)
    whole = size.whole(round(reply))
    if context >= whole:
        return Finding("context", "ok", f"{context} tokens hold all that {shown}'s prompts need, {whole}")
    steps = int((context - size.least) / (size.turn + reply))
    kept = f"{context} tokens hold the rules and about {steps} step{'' if steps == 1 else 's'} of {shown}'s history"
    hint = f"All of it takes {whole}; where the model allows it: --model-option num_ctx=N (wsap models suggests one)."
    return Finding("context", "ok" if steps >= size.window else "warning", kept, hint)


def _keep(meter: Meter, address: str) -> None:
    """Keep the speed for estimates, where nothing better is known and the folder can be written."""
    import contextlib

    from wsap_core.errors import StorageError
    from wsap_nexus.cli.default_model import FOR_TESTS

    kept = remembered.read(os.environ)
    after = remembered.measured(kept, address, meter.pace(address))
    if after != kept and not address.startswith(FOR_TESTS):
        with contextlib.suppress(StorageError):
            remembered.write(after, os.environ)

"""`wsap replay --calls`: prints the recorded prompts and replies of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from wsap_core.errors import WireError
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line, strip_control

if TYPE_CHECKING:
    from wsap_core.seams.model import Reply
    from wsap_nexus.store.repository import Repository


@dataclass(frozen=True)
class ShownCall:
    """A recorded call as text."""

    number: int
    """From 1, over all seats."""
    seat: str
    """The seat that made the call, or "world" and the call's key."""
    shared: int
    """Number of leading messages that are the same as in the seat's previous call."""
    messages: tuple[tuple[str, str], ...]
    """The other messages: role and text, with the size of images."""
    prefill: str
    reply: Reply
    chances: tuple[tuple[str, float], ...] = ()
    """Each option and its probability, if the reply is a choice."""


def shown_calls(repository: Repository, run: str) -> Iterator[ShownCall]:
    """Yield the calls of a run, oldest first; WireError if an event is damaged."""
    from wsap_nexus.runs.record.journal import chances_of, read_reply, recorded_text

    for number, event in enumerate(repository.read_events(run, kinds=("call",)), start=1):
        data: dict[str, Any] = event.data  # Any: JSON
        try:
            # A world's own call is recorded without its prompt.
            where = f"world {data['key']}".rstrip() if event.seat is None else event.seat
            shared, messages, prefill = int(data.get("shared", 0)), data.get("messages", ()), data.get("prefill", "")
            said = tuple((str(message["role"]), recorded_text(message)) for message in messages)
            reply = read_reply(data["reply"])
            chances = tuple(chances_of(data))
        except (KeyError, TypeError, ValueError) as error:
            raise WireError(f"Event {event.seq} of the run is not a call: {error}.") from error
        yield ShownCall(number, where, shared, said, str(prefill), reply, chances)


def print_calls(repository: Repository, run: str, first: int, last: int | None, *, as_json: bool) -> None:
    """Print the calls from `first` to `last`, each with its new messages."""
    count = 0
    for call in shown_calls(repository, run):
        if call.number < first:
            continue
        if last is not None and call.number > last:
            break
        count += 1
        click.echo(json.dumps(_row(call)) if as_json else "\n".join(call_lines(call)) + "\n")
    if not count and not as_json:
        click.echo("There are no model calls in this range.")


def _row(call: ShownCall) -> dict[str, Any]:
    usage = call.reply.usage
    more = {"probabilities": dict(call.chances)} if call.chances else {}
    return {
        "call": call.number,
        "seat": call.seat,
        "shared": call.shared,
        "messages": [{"role": role, "text": text} for role, text in call.messages],
        "prefill": call.prefill,
        "thinking": call.reply.thinking,
        "reply": call.reply.message.text(),
        "finish": call.reply.finish.reason,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
    } | more


def call_lines(call: ShownCall) -> Iterator[str]:
    """Yield a call as lines."""
    usage, reply = call.reply.usage, call.reply
    tokens = f"{plural(usage.prompt_tokens, 'token')} in, {usage.completion_tokens} out"
    yield f"call {call.number}, {single_line(call.seat)}: {tokens}"
    if call.shared:
        yield f"  ({plural(call.shared, 'message')} as in the previous call)"
    begun = [("prefill", call.prefill)] if call.prefill else []
    thought = [("thinking", reply.thinking)] if reply.thinking else []
    cut = " (cut off)" if reply.truncated else ""
    for who, text in (*call.messages, *begun, *thought, (f"reply{cut}", reply.message.text())):
        yield f"  {single_line(who)}:"
        yield from (f"    {line}" if line else "" for line in strip_control(text).splitlines() or ["(nothing)"])
    if call.chances:
        yield "  probabilities:"
        yield from (f"    {chance:4.0%}  {single_line(option)}" for option, chance in call.chances)

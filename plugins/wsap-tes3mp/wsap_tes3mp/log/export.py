"""Commands as training data: conversations for fine-tuning, and rows of state, action and outcome."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Literal

from pydantic import BaseModel, JsonValue, ValidationError

from wsap_tes3mp.log.query import Logged
from wsap_tes3mp.log.records import CommandRecord, dump
from wsap_tes3mp.log.redact import Redaction, Redactor
from wsap_tes3mp.protocol.commands import PARAMS, CommandState

Form = Literal["chat", "steps"]
OPAQUE = frozenset({"raw_engine_data", "boot_id", "protocol_version"})
"""Fields of a perception that no decision may depend on; exports leave them out."""


class Message(BaseModel, frozen=True):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class _Line(BaseModel, frozen=True):
    format: str
    version: Literal[1] = 1
    agent: str
    episode: str | None
    command_id: str


class ChatLine(_Line, frozen=True):
    """One command as a conversation: what can be done, what was perceived, what was commanded."""

    format: Literal["wsap-tes3mp-chat"] = "wsap-tes3mp-chat"
    state: CommandState
    messages: tuple[Message, ...]


class ActionCell(BaseModel, frozen=True):
    """What was commanded."""

    command: str
    params: dict[str, JsonValue]
    """Those that the command knows, as the protocol types them."""
    reasoning: str
    heartbeat_cycle: int | None


class OutcomeCell(BaseModel, frozen=True):
    """What became of it."""

    state: CommandState
    code: str | None
    message: str
    sequence: int | None
    latency_seconds: float | None


class StepLine(_Line, frozen=True):
    """One command as a row of state, action and outcome."""

    format: Literal["wsap-tes3mp-step"] = "wsap-tes3mp-step"
    engine: str
    time: float
    """When the bridge received the command, seconds since 1970."""
    state_id: str | None
    """Names the perception; equal ones have one id. Time and sequence do not count."""
    state: dict[str, JsonValue] | None
    """The perception; None where the rows refer to a file of perceptions, or none is kept."""
    state_time: str | None
    state_sequence: int | None
    action: ActionCell
    outcome: OutcomeCell
    next_state_id: str | None
    """The perception that led to the agent's next command in the same episode."""


@dataclass
class Written:
    """What an export came to."""

    lines: int = 0
    perceptions: int = 0
    """Written into the file of perceptions."""
    without_perception: int = 0
    """Commands that a conversation can't be made of."""


def schema_of(form: Form) -> dict[str, Any]:
    """Return the JSON Schema of a form's lines. Any: JSON."""
    return (ChatLine if form == "chat" else StepLine).model_json_schema()


def write(
    logged: Iterable[Logged],
    form: Form,
    file: IO[str],
    *,
    redaction: Redaction | None = None,
    agents: Iterable[str] = (),
    perceptions: IO[str] | None = None,
    bare: bool = False,
) -> Written:
    """Write commands as JSON lines, in ASCII, so that no character in a text looks like the end of a line.

    Args:
        logged: the commands.
        form: `chat` for fine-tuning, `steps` for rows of state, action and outcome.
        file: where to.
        redaction: what is taken out.
        agents: ids of all agents of the log, for the redaction.
        perceptions: with `steps`, where each perception is written once; rows then have its id alone.
        bare: with `chat`, only the messages.
    """
    written, redactor = Written(), Redactor(redaction or Redaction(), agents)
    known: set[str] = set()
    for one in logged:
        seen = None if one.perception is None else {k: v for k, v in one.perception.items() if k not in OPAQUE}
        state = None if seen is None else redactor.line(seen)
        if form == "chat":
            if state is None:
                written.without_perception += 1
                continue
            line: BaseModel = _chat(one.record, state, redactor)
            file.write(dump(line.model_dump(mode="json", include={"messages"} if bare else None)) + "\n")
        else:
            step = _step(one, state, redactor)
            if perceptions is not None and step.state_id is not None:
                if step.state_id not in known:
                    known.add(step.state_id)
                    perceptions.write(dump({"state_id": step.state_id, "state": step.state}) + "\n")
                    written.perceptions += 1
                step = step.model_copy(update={"state": None})
            file.write(dump(step.model_dump(mode="json")) + "\n")
        written.lines += 1
    return written


_INTRODUCTION = (
    "You act in a game world. Each message is what you perceive, as JSON. Answer with one command as JSON: "
    '{"reasoning": why, "command": name, "params": {...}}. The commands:'
)


def system_prompt() -> str:
    """Return what a model is told of its commands."""
    lines = [_INTRODUCTION]
    for name, model in PARAMS.items():
        required = {field for field, about in model.model_fields.items() if about.is_required()}
        params = ", ".join(field if field in required else f"{field}?" for field in model.model_fields)
        lines.append(f"- {name}({params}): {(model.__doc__ or '').strip()}")
    return "\n".join(lines)


_SYSTEM = Message(role="system", content=system_prompt())


def _head(record: CommandRecord, redactor: Redactor) -> dict[str, Any]:
    episode = None if record.episode_id is None else redactor.word(record.episode_id)
    return {"agent": redactor.word(record.agent_id), "episode": episode, "command_id": record.id}


def _action(record: CommandRecord, redactor: Redactor) -> dict[str, Any]:
    """Return what was commanded, as the protocol types it, so that rows of one command have columns of one type."""
    try:
        params = PARAMS[record.command].model_validate(record.params).model_dump(mode="json", exclude_none=True)
    except (KeyError, ValidationError):
        params = {}
    return redactor.line({"command": record.command, "params": params, "reasoning": record.reasoning})


def _chat(record: CommandRecord, state: dict[str, JsonValue], redactor: Redactor) -> ChatLine:
    action = _action(record, redactor)
    answer = {"reasoning": action["reasoning"]} if action["reasoning"] else {}
    answer |= {"command": action["command"], "params": action["params"]}
    messages = (_SYSTEM, Message(role="user", content=_text(state)), Message(role="assistant", content=_text(answer)))
    return ChatLine(**_head(record, redactor), state=record.state, messages=messages)


def _step(one: Logged, state: dict[str, JsonValue] | None, redactor: Redactor) -> StepLine:
    record, moment = one.record, one.record.perception_moment
    if state is not None:
        state = {key: value for key, value in state.items() if key not in ("timestamp", "sequence")}
    outcome = {**redactor.line({"message": record.message}), "latency_seconds": record.latency}
    found = {
        **_head(record, redactor),
        "engine": record.engine,
        "time": record.received,
        "state_id": _short(record.perception_hash),
        "state": state,
        "state_time": moment.get("timestamp"),
        "state_sequence": moment.get("sequence"),
        "action": {**_action(record, redactor), "heartbeat_cycle": record.context.get("heartbeat_cycle")},
        "outcome": {**outcome, **record.model_dump(include={"state", "code", "sequence"})},
        "next_state_id": _short(one.next_hash),
    }
    return StepLine.model_validate(found)


def _short(perception_hash: str | None) -> str | None:
    return None if perception_hash is None else perception_hash[:16]


def _text(value: Mapping[str, JsonValue]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))

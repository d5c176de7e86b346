"""Commands as training data: conversations, or rows of state, action and outcome; with redaction."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from typing import IO, Any, Literal

from pydantic import BaseModel, JsonValue, ValidationError

from wsap_core.errors import UsageError
from wsap_tes3mp.log.query import Logged
from wsap_tes3mp.log.records import CommandRecord, dump
from wsap_tes3mp.protocol.commands import PARAMS, CommandState
from wsap_tes3mp.protocol.perception import OPAQUE

Form = Literal["chat", "steps"]
_LEFT_OUT = OPAQUE | {"protocol_version"}
GONE = "[redacted]"
_FREE = frozenset({"content", "message", "text", "choices", "tags"})
"""Fields with free text by agents, players and the game."""


@dataclass
class Redaction:
    """What to remove from an export; a name is replaced by the same word everywhere."""

    names: bool = False
    """Names of agents and players become `agent_1`, `player_1`, ... wherever they occur."""
    text: bool = False
    """Notes, messages and speech in dialogues."""
    reasoning: bool = False
    patterns: Sequence[str] = ()
    """Regular expressions whose matches are replaced. `UsageError` if one is invalid."""
    agents: InitVar[Iterable[str]] = ()
    """Ids of all agents in the log."""
    players: InitVar[Iterable[str]] = ()
    """Names and ids of all perceived players."""

    def __post_init__(self, agents: Iterable[str], players: Iterable[str]) -> None:
        self._words: dict[str, str] = {}
        self._spelled: set[str] = set()  # as written: `casefold` may change more than the case
        self._known: re.Pattern[str] | None = None  # matches any known name; None after one was added
        self._patterns = [_compiled(pattern) for pattern in self.patterns]
        for agent in sorted(agents) if self.names else ():
            self._add(agent, "agent")
        for player in players if self.names else ():
            self._add(player, "player")

    def line(self, value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return a perception, action or outcome, redacted."""
        entities = value.get("nearby_entities") if self.names else None
        for entity in entities if isinstance(entities, list) else []:
            if isinstance(entity, dict) and entity.get("entity_type") == "player":
                for name in (entity.get("name"), entity.get("entity_id")):
                    if isinstance(name, str):
                        self._add(name, "player")
        return {key: self._field(key, item) for key, item in value.items()}

    def word(self, text: str) -> str:
        """Return a text, redacted."""
        if self._words:
            if self._known is None:
                words = "|".join(map(re.escape, sorted(self._spelled, key=len, reverse=True)))
                self._known = re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])", re.IGNORECASE)
            text = self._known.sub(lambda found: self._words.get(found[0].casefold(), GONE), text)
        for pattern in self._patterns:
            text = pattern.sub(lambda found: GONE if found[0] else "", text)
        return text

    def _field(self, key: str, value: JsonValue) -> JsonValue:
        if key == "reasoning" and self.reasoning:
            return ""
        if self.text and key in _FREE:
            return [] if isinstance(value, list) else GONE if value else value
        if isinstance(value, str):
            return self.word(value)
        if isinstance(value, dict):
            return {name: self._field(name, item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._field(key, item) for item in value]
        return value

    def _add(self, name: str, kind: str) -> None:
        if not name or name in self._spelled:
            return
        number = sum(word.startswith(kind) for word in self._words.values()) + 1
        self._words.setdefault(name.casefold(), f"{kind}_{number}")
        self._spelled.add(name)
        self._known = None


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(f"The pattern {pattern!r} is invalid: {error}.") from None


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
    """One command as a conversation: the available commands, the perception, the command."""

    format: Literal["wsap-tes3mp-chat"] = "wsap-tes3mp-chat"
    state: CommandState
    messages: tuple[Message, ...]


class ActionCell(BaseModel, frozen=True):
    """The command."""

    command: str
    params: dict[str, JsonValue]
    """Only the command's own parameters, typed by the protocol."""
    reasoning: str
    heartbeat_cycle: int | None


class OutcomeCell(BaseModel, frozen=True):
    """The outcome of the command."""

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
    """Id of the perception; equal perceptions, apart from time and sequence, share one."""
    state: dict[str, JsonValue] | None
    """The perception; None if it is in a separate file, or none is stored."""
    state_time: str | None
    state_sequence: int | None
    action: ActionCell
    outcome: OutcomeCell
    next_state_id: str | None
    """The perception that led to the agent's next command in the same episode, in the same world since."""


def schema_of(form: Form) -> dict[str, Any]:
    """Return the JSON Schema of a line. Any: JSON."""
    return (ChatLine if form == "chat" else StepLine).model_json_schema()


def write(
    logged: Iterable[Logged],
    form: Form,
    file: IO[str],
    *,
    redaction: Redaction | None = None,
    perceptions: IO[str] | None = None,
    bare: bool = False,
) -> tuple[int, int]:
    """Write commands as JSON lines, in ASCII, so that no character in a text looks like a line break.

    Returns the number of lines written, and of commands left out because `chat` needs a perception and they have none.

    Args:
        form: `chat` for fine-tuning, `steps` for rows of state, action and outcome.
        perceptions: with `steps`, receives each perception once; rows then only have its id.
        bare: with `chat`, write only the messages.
    """
    lines, left_out, taken, known = 0, 0, redaction or Redaction(), set[str]()
    for one in logged:
        seen = None if one.perception is None else {k: v for k, v in one.perception.items() if k not in _LEFT_OUT}
        state = None if seen is None else taken.line(seen)
        if form == "steps":
            step = _step(one, state, taken)
            if perceptions is not None and step.state_id is not None:
                if step.state_id not in known:
                    known.add(step.state_id)
                    perceptions.write(dump({"state_id": step.state_id, "state": step.state}) + "\n")
                step = step.model_copy(update={"state": None})
            row = step.model_dump(mode="json")
        elif state is not None:
            row = _chat(one.record, state, taken).model_dump(mode="json", include={"messages"} if bare else None)
        else:
            left_out += 1
            continue
        file.write(dump(row) + "\n")
        lines += 1
    return lines, left_out


_INTRODUCTION = (
    "You act in a game world. Each message is what you perceive, as JSON. Answer with one command as JSON: "
    '{"reasoning": why, "command": name, "params": {...}}. The commands:'
)


def _usage(name: str, model: type[BaseModel]) -> str:
    params = ", ".join(field if about.is_required() else f"{field}?" for field, about in model.model_fields.items())
    return f"- {name}({params}): {(model.__doc__ or '').strip()}"


_SYSTEM = Message(role="system", content="\n".join([_INTRODUCTION, *(_usage(*one) for one in PARAMS.items())]))


def _head(record: CommandRecord, taken: Redaction) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the first columns of a line, and the action, typed by the protocol so that columns have one type."""
    try:
        params = PARAMS[record.command].model_validate(record.params).model_dump(mode="json", exclude_none=True)
    except (KeyError, ValidationError):
        params = {}
    episode = None if record.episode_id is None else taken.word(record.episode_id)
    head = {"agent": taken.word(record.agent_id), "episode": episode, "command_id": record.id}
    return head, taken.line({"reasoning": record.reasoning, "command": record.command, "params": params})


def _chat(record: CommandRecord, state: dict[str, JsonValue], taken: Redaction) -> ChatLine:
    head, action = _head(record, taken)
    if not action["reasoning"]:
        del action["reasoning"]
    user, answer = (json.dumps(one, ensure_ascii=False, separators=(", ", ": ")) for one in (state, action))
    messages = (_SYSTEM, Message(role="user", content=user), Message(role="assistant", content=answer))
    return ChatLine(**head, state=record.state, messages=messages)


def _step(one: Logged, state: dict[str, JsonValue] | None, taken: Redaction) -> StepLine:
    record, moment = one.record, one.record.perception_moment
    head, action = _head(record, taken)
    if state is not None:
        state = {key: value for key, value in state.items() if key not in ("timestamp", "sequence")}
    found = {
        **head,
        "engine": record.engine,
        "time": record.received,
        "state_id": record.perception_hash and record.perception_hash[:16],
        "state": state,
        "state_time": moment.get("timestamp"),
        "state_sequence": moment.get("sequence"),
        "action": {**action, "heartbeat_cycle": record.context.get("heartbeat_cycle")},
        "outcome": {
            **record.model_dump(include={"state", "code", "sequence"}),
            **taken.line({"message": record.message}),
            "latency_seconds": record.latency,
        },
        "next_state_id": one.next_hash and one.next_hash[:16],
    }
    return StepLine.model_validate(found)

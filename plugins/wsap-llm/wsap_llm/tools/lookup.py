"""Lookups within a turn, by the agent's own tools, which return at once, and by the world's tools.

A tool of the world is an action of the category `TOOL` (see `wsap_core.protocol.actions`) or a look by the body. Only
the runtime can execute it, so the style returns it as the decision, with a `PendingCall` from which the turn resumes
once the world has returned a result.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from wsap_core.protocol import Action, ActionDef, Tool
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import dumps
from wsap_core.protocol.words import ENGLISH, Words
from wsap_core.seams.model import FunctionCall, Message, Role
from wsap_core.seams.tool import AgentTool
from wsap_core.untrusted import error_line
from wsap_llm.reply import ToolCall

LONGEST_RESULT = 2000
"""Maximum length of a tool result shown to the model, in characters."""
NO_RESULT = "(no result)"
"""Shown to the model if a tool of the world returns nothing."""
LAST_CALL = "(The last call of this turn: now act.)"
"""Put before a result after which no call is left."""
_LOOKS = ("look", "inspect_self")
"""The avatar actions that only look."""


def is_lookup(action: ActionDef) -> bool:
    """Return whether an action looks something up."""
    return action.is_tool or (action.category == "avatar" and action.name in _LOOKS)


def split(legal: Sequence[ActionDef]) -> tuple[Sequence[ActionDef], Sequence[ActionDef]]:
    """Return the actions that end a turn, and the world's tools; if only tools are legal, they end the turn."""
    tools = [action for action in legal if is_lookup(action)]
    if not tools:
        return legal, ()
    finals = [action for action in legal if not is_lookup(action)]
    return (finals, tools) if finals else (legal, ())


_Kept: TypeAlias = tuple[Role, str] | tuple[Role, str, tuple[FunctionCall, ...]]


@dataclass(frozen=True)
class PendingCall:
    """A call to a tool of the world, with the data to resume its turn."""

    name: str
    """The tool of the world."""
    key: str
    """The call with its parameters; see `call_key`."""
    messages: tuple[_Kept, ...] = ()
    """Role, text and calls, if any, of the messages of this turn after the first one."""
    so_far: str = ""
    """In tags: the assistant's text up to the call, if the model continues it."""
    calls: int = 1
    """Number of calls in this turn, to both kinds of tools."""
    answered: Mapping[str, str] = field(default_factory=dict)
    """Results of the agent's own tools by call."""
    result: str | None = None
    """The world's result; None until it is known."""

    @property
    def said(self) -> list[Message]:
        """The messages of this turn after the first one."""
        return [Message(m[0], m[1], m[2] if len(m) == 3 else ()) for m in self.messages]


class ToolCalls:
    """The tool calls of one turn, at most `most` in all; `before` is the call from which the turn resumes."""

    def __init__(
        self, own: Mapping[str, AgentTool], world: Sequence[ActionDef], most: int, before: PendingCall | None
    ) -> None:
        self._own = own
        self._world = world
        self._most = most
        self._before = before
        self._answered = dict(before.answered) if before is not None else {}
        self.made = before.calls if before is not None else 0
        """Number of calls so far."""

    @property
    def left(self) -> int:
        """Number of calls left."""
        return max(0, self._most - self.made)

    @property
    def own(self) -> list[Tool]:
        """The agent's own tools that may be called now."""
        return [tool.definition for tool in self._own.values()] if self.left else []

    @property
    def world(self) -> Sequence[ActionDef]:
        """The world's tools that may be called now."""
        return self._world if self.left else ()

    async def answer(self, call: Action | ToolCall) -> str | None:
        """Count a call and return its result; None if the world must execute it.

        A repeated call returns the first result; for the world's tools only if repeated at once, because other calls
        may change the result.
        """
        self.made += 1
        key = call_key(call.name, call.parameters)
        if call.name in self._own:
            if key not in self._answered:
                self._answered[key] = await use(self._own[call.name], call.parameters)
            return self._answered[key]
        before = self._before
        return before.result if before is not None and before.key == key else None

    def told(self, result: str, words: Words = ENGLISH) -> str:
        """Return a result as it is shown, which says so if no call is left."""
        return words.say(result) if self.left else f"{words.say(LAST_CALL)} {words.say(result)}"

    def pending(self, call: Action | ToolCall, messages: Sequence[Message], so_far: str = "") -> PendingCall:
        """Return the data to resume the turn once the world has executed this call."""
        key = call_key(call.name, call.parameters)
        said = tuple(map(_kept, messages))
        return PendingCall(call.name, key, said, so_far, self.made, dict(self._answered))


def _kept(message: Message) -> _Kept:
    if message.calls:
        return message.role, str(message.content), tuple(message.calls)
    return message.role, message.text()


async def use(tool: AgentTool, parameters: Mapping[str, JsonValue]) -> str:
    """Return a tool's result, or one line with its error."""
    try:
        result: object = tool.run(parameters)
        return str(await result if inspect.isawaitable(result) else result)
    except Exception as error:
        return f"The tool failed: {error_line(error, 200, kind=True)}"


def written(parameters: Mapping[str, JsonValue], words: Words = ENGLISH) -> str:
    """Return parameters as JSON for a model; non-ASCII letters are escaped only in English."""
    text = dumps(dict(parameters))
    return text if words is ENGLISH else json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))


def call_key(name: str, parameters: Mapping[str, JsonValue]) -> str:
    """Return a key that is the same for equal calls."""
    return f"{name} {dumps(dict(parameters))}"

"""Looking things up in the middle of a turn: with the agent's own tools, which answer at once, and with the world's.

A tool of the world is an action of the category `TOOL` (see `wsap_core.protocol.actions`), or looks with the body.
Only the runtime can carry it out, so the style returns it as the decision, together with a `PendingCall`, from
which the same turn resumes once the world has answered.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wsap_core.protocol import Action, ActionDef, Tool
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import dumps
from wsap_core.protocol.words import ENGLISH, Words
from wsap_core.seams.model import Message, Role
from wsap_core.seams.tool import AgentTool
from wsap_core.untrusted import error_line
from wsap_llm.reply import ToolCall

LONGEST_RESULT = 2000
"""Longest tool result that is shown to the model, in characters."""
NO_RESULT = "(no result)"
"""Shown to the model if a tool of the world returns nothing."""
_LOOKS = ("look", "inspect_self")
"""The shared actions of bodies that only look."""


def is_lookup(action: ActionDef) -> bool:
    """Return whether an action looks something up."""
    return action.is_tool or (action.category == "avatar" and action.name in _LOOKS)


def split(legal: Sequence[ActionDef]) -> tuple[Sequence[ActionDef], Sequence[ActionDef]]:
    """Return the actions that end a turn, and the world's tools.

    Where nothing but tools is legal, one of these ends the turn like any other action.
    """
    tools = [action for action in legal if is_lookup(action)]
    if not tools:
        return legal, ()
    finals = [action for action in legal if not is_lookup(action)]
    return (finals, tools) if finals else (legal, ())


@dataclass(frozen=True)
class PendingCall:
    """A call to a tool of the world, with what is needed to resume the turn that made it."""

    name: str
    """The tool of the world."""
    key: str
    """The call, with its parameters."""
    messages: tuple[tuple[Role, str], ...] = ()
    """What was said in this turn after the message that began it, role and text."""
    so_far: str = ""
    """In tags: the assistant's text up to the call, where the model goes on with that very text."""
    calls: int = 1
    """Calls made in this turn, to both kinds of tools."""
    answered: Mapping[str, str] = field(default_factory=dict)
    """Results of the agent's own tools by call."""
    result: str | None = None
    """The world's answer; None until it has answered."""

    @property
    def said(self) -> list[Message]:
        """What was said in this turn as messages."""
        return [Message(role, text) for role, text in self.messages]


class ToolCalls:
    """The calls of one turn, at most `most` to the agent's own tools and the world's together; `before` is the call
    that the turn resumes from."""

    def __init__(
        self, own: Mapping[str, AgentTool], world: Sequence[ActionDef], most: int, before: PendingCall | None
    ) -> None:
        self._own = own
        self._world = world
        self._most = most
        self._before = before
        self._answered = dict(before.answered) if before is not None else {}
        self.made = before.calls if before is not None else 0
        """Calls made so far."""

    @property
    def left(self) -> int:
        """Calls that may still be made."""
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
        """Count a call and return its result; None where the world has to be asked.

        The same call again is answered from the first time. Of the world's tools that holds for
        two calls in a row alone, because another may have changed what the first one tells.
        """
        self.made += 1
        key = call_key(call.name, call.parameters)
        if call.name in self._own:
            if key not in self._answered:
                self._answered[key] = await use(self._own[call.name], call.parameters)
            return self._answered[key]
        before = self._before
        return before.result if before is not None and before.key == key else None

    def pending(self, call: Action | ToolCall, messages: Sequence[Message], so_far: str = "") -> PendingCall:
        """Return what the turn resumes from once the world has answered this call."""
        key = call_key(call.name, call.parameters)
        said = tuple((message.role, message.text()) for message in messages)
        return PendingCall(call.name, key, said, so_far, self.made, dict(self._answered))


async def use(tool: AgentTool, parameters: Mapping[str, JsonValue]) -> str:
    """Return what a tool gives, or in a line what it failed with."""
    try:
        result: object = tool.run(parameters)
        return str(await result if inspect.isawaitable(result) else result)
    except Exception as error:
        return f"The tool failed: {error_line(error, 200, kind=True)}"


def written(parameters: Mapping[str, JsonValue], words: Words = ENGLISH) -> str:
    """Return parameters as JSON for a model; the letters of other languages than English are not escaped."""
    text = dumps(dict(parameters))
    return text if words is ENGLISH else json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))


def call_key(name: str, parameters: Mapping[str, JsonValue]) -> str:
    """Return what equal calls have in common."""
    return f"{name} {dumps(dict(parameters))}"

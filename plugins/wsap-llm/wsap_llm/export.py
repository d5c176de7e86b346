"""Exports recorded turns of any agent as messages of a model, with the prompts of the agent `llm`, for data sets.

The reasoning of an agent without a model is exported as thinking, and its lookups as tool calls. Each reply is parsed
again by the agent's reader; turns that do not yield the recorded action are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from wsap_core.protocol import Action, ActionDef, ActionSpace, Tool
from wsap_core.untrusted import sanitize
from wsap_llm.agent import LLMAgent
from wsap_llm.decision.offers import not_looked_up
from wsap_llm.decision.styles import JsonStyle, TagStyle, said
from wsap_llm.options.llm import LLMOptions
from wsap_llm.prompts import Prompts
from wsap_llm.reply import NotUnderstood, ToolCall, Understood, read_reply
from wsap_llm.reply.schema import legal_actions
from wsap_llm.reply.tags import OPENING, TagLimits, TagTurn, continue_text, read_leg
from wsap_llm.scripted import ScriptedBackend
from wsap_llm.tools.lookup import LONGEST_RESULT, split

__all__ = [
    "Dialect",
    "PlayedTurn",
    "ToolUse",
    "TurnMessages",
    "legal_actions",
    "not_looked_up",
    "system_prompts",
    "turn_messages",
]

Dialect = Literal["tags", "json"]
PROMPTS = Prompts()
_LIMITS = TagLimits(calls=50)


@dataclass(frozen=True)
class ToolUse:
    """A call of a world's tool within a turn."""

    action: Action
    result: str
    """The text shown to the agent."""


class PlayedTurn(Protocol):
    """One turn of one agent."""

    @property
    def shown(self) -> str:
        """The observation as text."""

    @property
    def legal(self) -> Sequence[ActionDef]:
        """The legal actions, including tools of the world."""

    @property
    def uses(self) -> Sequence[ToolUse]:
        """The tool calls, in order."""

    @property
    def action(self) -> Action:
        """The final action."""


@dataclass(frozen=True)
class TurnMessages:
    """A turn in a dialect."""

    messages: Sequence[tuple[str, str]]
    """Role (user or assistant) and text, from the question to the end of the turn."""
    observations: Sequence[tuple[int, int]]
    """Start and end (exclusive) of each text in the last message that comes from the game, in characters."""


async def system_prompts(
    told: Sequence[tuple[str, ActionSpace]], dialect: Dialect, *, game_name: str, objective: str
) -> list[str]:
    """Return the system message for each pair of a game description and its actions."""
    options = LLMOptions(game_name, objective, window=0, plan=False, reflect=False, constrain=False)
    found = []
    for description, space in told:
        agent = LLMAgent(ScriptedBackend([]), options, style=_style(dialect), prompts=PROMPTS)
        await agent.initialize(description, space)
        found.append(agent.system_prompt)
    return found


def _style(dialect: Dialect) -> JsonStyle | TagStyle:
    return JsonStyle() if dialect == "json" else TagStyle(_LIMITS)


def turn_messages(
    turn: PlayedTurn, dialect: Dialect, *, inline: bool = True, begins: Sequence[tuple[str, str]] | None = None
) -> TurnMessages | None:
    """Return a turn in a dialect; None if parsing it would not yield the recorded action.

    Args:
        dialect: tags, as in seed 002, or JSON.
        inline: for tags: put tool results into the assistant's text, which continues after them, instead of into
            messages of their own.
        begins: roles and texts of the first messages; the agent's question if None.
    """
    question = _style(dialect).question(PROMPTS)
    if begins is None:
        begins = [("user", PROMPTS.render("user", observation=turn.shown, plan=[], memories=[], question=question))]
    return _in_json(turn, begins, question) if dialect == "json" else _in_tags(turn, begins, inline=inline)


# --- tags --------------------------------------------------------------------------------------


def _in_tags(turn: PlayedTurn, begins: Sequence[tuple[str, str]], *, inline: bool) -> TurnMessages | None:
    finals, world = split(turn.legal)
    tags = TagTurn([Tool(a.name, a.description, a.parameters) for a in world], finals, limits=_LIMITS)
    if turn.action.name not in tags.finals or any(u.action.name not in tags.tools for u in turn.uses):
        return None
    messages = list(begins)
    text, spans, opening = "", [], OPENING
    for use in turn.uses:
        leg = f"{opening}{_thought(use.action)}{said(use.action, tags)}"
        if not _comes_back(leg, use.action, tags, inside=not opening):
            return None
        if inline:
            begin = len((text + leg).rstrip()) + 1
            text = continue_text(text + leg, use.result, limit=LONGEST_RESULT)
            spans.append((begin, len(text) - 1))
        else:
            told = f"<observation>{sanitize(use.result, LONGEST_RESULT)}</observation>\nGo on thinking."
            messages += [("assistant", leg), ("user", told)]
        opening = ""
    leg = f"{opening}{_thought(turn.action)}</thinking>\n{said(turn.action, tags)}"
    if not _comes_back(leg, turn.action, tags, inside=not opening):
        return None
    messages.append(("assistant", text + leg))
    return TurnMessages(messages, spans)


def _thought(action: Action) -> str:
    thought = (action.reasoning or "").strip()
    return f"{thought}\n" if thought else ""


def _comes_back(leg: str, action: Action, tags: TagTurn, *, inside: bool) -> bool:
    """Return whether the agent's reader parses all of a leg as this action."""
    reading, whole = read_leg(tags, leg, inside_thinking=inside)
    if isinstance(reading, NotUnderstood) or whole != leg:
        return False
    return reading.choice.name == action.name and _same(reading.choice.parameters, action)


def _same(found: Mapping[str, Any], action: Action) -> bool:
    def plain(given: Mapping[str, Any]) -> dict[str, str]:
        return {name: str(value).strip() for name, value in given.items()}

    return plain(found) == plain(action.parameters)


# --- JSON --------------------------------------------------------------------------------------


def _in_json(turn: PlayedTurn, begins: Sequence[tuple[str, str]], question: str) -> TurnMessages | None:
    messages = list(begins)
    for use in turn.uses:
        reply = _as_json(use.action)
        if not _understood(reply, use.action, turn.legal):
            return None
        told = f"Result of {use.action.name}: {sanitize(use.result, LONGEST_RESULT)}\n\n{question}"
        messages += [("assistant", reply), ("user", told)]
    reply = _as_json(turn.action)
    if not _understood(reply, turn.action, turn.legal):
        return None
    return TurnMessages([*messages, ("assistant", reply)], ())


def _as_json(action: Action) -> str:
    head = {"action": action.name, "params": dict(action.parameters), "reasoning": action.reasoning or ""}
    return json.dumps(head, ensure_ascii=False)


def _understood(reply: str, action: Action, legal: Sequence[ActionDef]) -> bool:
    reading = read_reply(reply, legal)
    if not isinstance(reading, Understood) or isinstance(reading.choice, ToolCall):
        return False
    return reading.choice.name == action.name and _same(reading.choice.parameters, action)

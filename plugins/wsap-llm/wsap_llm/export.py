"""Played turns as the messages that a model reads and writes, in the words of the agent's own prompts.

For data sets of turns that anybody played. A player that is no model is put into the same words: its
reason stands where a model thinks, and what it looked up are calls of tools. Whatever is written is read
back by the agent's own reader, and a turn that does not come back as what was done is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from wsap_core.protocol import Action, ActionDef, ActionSpace, Tool
from wsap_core.untrusted import sanitize
from wsap_llm.agent import LLMAgent
from wsap_llm.lookup import LONGEST_RESULT, split
from wsap_llm.options import LLMOptions
from wsap_llm.prompts import Prompts
from wsap_llm.reply import NotUnderstood, ToolCall, Understood, read_reply
from wsap_llm.reply.schema import legal_actions
from wsap_llm.reply.tags import OPENING, TagLimits, TagTurn, continue_text, read_leg
from wsap_llm.scripted import ScriptedBackend
from wsap_llm.styles import JsonStyle, TagStyle, said

__all__ = ["Dialect", "PlayedTurn", "ToolUse", "TurnMessages", "legal_actions", "system_prompts", "turn_messages"]

Dialect = Literal["tags", "json"]
PROMPTS = Prompts()
_LIMITS = TagLimits(calls=50)


@dataclass(frozen=True)
class ToolUse:
    """A tool of the world that was used in mid-turn."""

    action: Action
    result: str
    """What the player was told."""


class PlayedTurn(Protocol):
    """One turn of one player, from being asked to its choice."""

    @property
    def shown(self) -> str:
        """The observation as a model reads it."""

    @property
    def legal(self) -> Sequence[ActionDef]:
        """What could be done, tools of the world included."""

    @property
    def uses(self) -> Sequence[ToolUse]:
        """The tools that were used, in order."""

    @property
    def action(self) -> Action:
        """What was done in the end."""


@dataclass(frozen=True)
class TurnMessages:
    """A turn in a dialect."""

    messages: Sequence[tuple[str, str]]
    """Role (user or assistant) and text, from the question to the end of the turn."""
    observations: Sequence[tuple[int, int]]
    """Where in the last message something stands that the game put there: from which character to which."""


async def system_prompts(
    told: Sequence[tuple[str, ActionSpace]], dialect: Dialect, *, game_name: str, objective: str
) -> list[str]:
    """Return the system messages of models that play, one for each description of the game and its actions."""
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
    """Return a turn in a dialect; None if it would not be read back as what was done.

    Args:
        turn: of a player.
        dialect: tags, as seed 002 has them, or JSON.
        inline: of tags: a tool's result stands in the assistant's text, which goes on after it; otherwise it comes as
            a message of its own.
        begins: roles and texts that the turn begins with; the agent's own question for None.
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
    """Return whether the agent's reader takes a leg for what it stands for, to its last character."""
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

"""The formats in which a model is asked for an action: JSON, function calls, and tags with tools within thinking."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from typing_extensions import override

from wsap_core.protocol import Action, ActionDef, Tool
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.words import ENGLISH, Words
from wsap_core.seams.agent import Resumption
from wsap_core.seams.model import (
    Abilities,
    CallConstraint,
    Constraint,
    FunctionCall,
    JsonConstraint,
    Message,
    RegexConstraint,
    Reply,
)
from wsap_core.seams.tool import AgentTool
from wsap_core.untrusted import sanitize
from wsap_llm.calling import call_in
from wsap_llm.decision.asking import Decision, DecisionTurn
from wsap_llm.prompts import Prompts
from wsap_llm.reply import NotUnderstood, Reading, ToolCall, read_reply, reask, why
from wsap_llm.reply.reading import MOST_LISTED
from wsap_llm.reply.schema import reply_functions, reply_schema
from wsap_llm.reply.steps import KEYS, tag_steps
from wsap_llm.reply.tags import OPENING, TagLimits, TagTurn, continue_text, read_leg
from wsap_llm.schemas.strict_schema import unwrapped
from wsap_llm.tools.lookup import LONGEST_RESULT, ToolCalls, split, written

MOST_CONSTRAINTS = 256
"""Maximum number of cached constraints of a style, one for each set of legal actions."""


class Style(Protocol):
    """The format of questions and replies."""

    name: str
    """The value of the option `style`."""
    looks_up: bool
    """Whether it can call tools and look-ups; if not, none are offered."""

    def how_to_answer(self, prompts: Prompts, space: Sequence[ActionDef], tools: Sequence[AgentTool]) -> str:
        """Return the end of the system message."""
        ...

    def question(self, prompts: Prompts) -> str:
        """Return the end of each user message."""
        ...

    def constrains(self, abilities: Abilities) -> bool:
        """Return whether a backend can constrain replies to legal actions in this style."""
        ...

    async def decide(self, turn: DecisionTurn) -> Decision:
        """Ask for an action."""
        ...


class JsonStyle(Style):
    """The seed's JSON reply: `{"action", "params", "reasoning"}`; a tool call is a separate branch. `decide` asks,
    executes tool calls, and asks again once after an unreadable reply."""

    name = "json"
    looks_up = True

    def __init__(self, *, reasoning_first: bool = False, steps: int = 1, reasoning_limit: int | None = None) -> None:
        self._first = reasoning_first
        self._reasoning_limit = reasoning_limit
        self._steps = steps
        self._constraints: dict[tuple[int, ...], tuple[Constraint, object]] = {}

    @override
    def how_to_answer(self, prompts: Prompts, space: Sequence[ActionDef], tools: Sequence[AgentTool]) -> str:
        text = prompts.render("json_answer", steps=self._steps)
        if split(space)[1]:
            lookup = "To look something up first, respond with that action: you are told and asked again."
            text += f" {prompts.words.say(lookup)}"
        use = prompts.words.say('To use a tool first, respond with {"tool": "name", "params": {}}.')
        return f"{text} {use}" if tools else text

    @override
    def question(self, prompts: Prompts) -> str:
        return prompts.render("json_question", steps=self._steps, first=self._first)

    @override
    def constrains(self, abilities: Abilities) -> bool:
        return abilities.json_schema

    @override
    async def decide(self, turn: DecisionTurn) -> Decision:
        finals, tools = split(turn.legal)
        world = {tool.name for tool in tools}
        before, most = turn.paused.pending, turn.asker.options.tool_calls
        calls = ToolCalls(turn.tools, tools, most, before)
        messages, used = [turn.opening], before is not None
        if before is not None:
            messages += [*before.said, self._told(turn, calls, before.name, before.result or "")]
        repaired, purpose = False, "tool" if used else "decide"
        shown: list[str] = []  # the numbered actions in the second question
        while True:
            legal = [*finals, *calls.world] if world else finals
            constraint = self._constraint(turn, legal, calls.own) if self.constrains(turn.abilities) else None
            reply = await turn.ask_constrained(purpose, messages, constraint)
            # Wrapped in an object, with null for omitted members, as OpenAI's strict mode requires.
            wrapped = turn.abilities.schema_subset and not turn.unconstrained and not reply.truncated
            text = self._plain(turn, reply, wrapped)
            reading = read_reply(text, legal, calls.own, declared=turn.declared, numbered=shown, steps=self._steps)
            if isinstance(reading, NotUnderstood):
                turn.misread(reply, reading.reason)
                if repaired:
                    return Decision(None)
                repaired, purpose = True, "re-ask"
                shown = [action.name for action in legal[:MOST_LISTED]]
                told = self._again(turn, reading.reason, legal, cut=reply.truncated)
                messages += [_short(reply.message), Message("user", told)]
                continue
            mended = repaired or (reading.repaired and not wrapped)
            if turn.bound and reading.repaired and not wrapped:
                turn.misread(reply, reading.how)
            resumption: Resumption | None = "turns" if used else None
            choice = reading.choice
            said = self._said(turn, choice, reading.steps.told())
            if isinstance(choice, Action) and choice.name not in world:
                return Decision(choice, mended, said, resumption, reading.steps)
            answer = await calls.answer(choice)
            messages.append(said)
            if answer is None and isinstance(choice, Action):
                pending = calls.pending(choice, messages[1:])
                return Decision(choice, mended, said, resumption, pending=pending)
            used, purpose = True, "tool"
            messages.append(self._told(turn, calls, choice.name, answer or ""))

    def _plain(self, turn: DecisionTurn, reply: Reply, wrapped: bool) -> str:
        """Return a reply's text in the seed's format; `wrapped` if it is wrapped in an object."""
        return unwrapped(reply.text) if wrapped else reply.text

    def _said(self, turn: DecisionTurn, choice: Action | ToolCall, steps: Mapping[str, JsonValue]) -> Message:
        """Return the model's choice for the conversation."""
        if isinstance(choice, ToolCall):
            form = {"tool": choice.name, "params": dict(choice.parameters)}
            return Message("assistant", json.dumps(form, ensure_ascii=turn.prompts.words is ENGLISH))
        reasons: dict[str, JsonValue] = {"reasoning": choice.reasoning or ""}
        head: dict[str, JsonValue] = {"action": choice.name, "params": dict(choice.parameters), **steps}
        whole = {**reasons, **head} if self._first else {**head, **reasons}
        return Message("assistant", json.dumps(whole, ensure_ascii=False))

    def _again(self, turn: DecisionTurn, reason: str, legal: Sequence[ActionDef], *, cut: bool) -> str:
        return reask(reason, legal, turn.prompts.words, cut=cut)

    def _told(self, turn: DecisionTurn, calls: ToolCalls, tool: str, result: str) -> Message:
        words = turn.prompts.words
        shown = f"{words.say(f'Result of {tool}:')} {sanitize(calls.told(result, words), LONGEST_RESULT)}"
        return Message("user", f"{shown}\n\n{self.question(turn.prompts)}")

    def _constraint(self, turn: DecisionTurn, legal: Sequence[ActionDef], offered: Sequence[Tool]) -> Constraint:
        """Return the constraint, the same object for the same legal actions, so that its encoding is cached."""
        # By identity, which is fast; the definitions are kept with the constraint, so that their ids stay unique.
        subset = turn.abilities.schema_subset
        key = (*map(id, legal), -1 - subset, *map(id, offered))
        found = self._constraints.get(key)
        if found is None:
            if len(self._constraints) >= MOST_CONSTRAINTS:
                self._constraints.clear()
            found = self._constraints[key] = self._made(legal, offered, subset), (*legal, *offered)
        return found[0]

    def _made(self, legal: Sequence[ActionDef], offered: Sequence[Tool], subset: bool) -> Constraint:
        first, steps = self._first, self._steps
        schema = reply_schema(
            legal,
            offered,
            reasoning_limit=self._reasoning_limit,
            reasoning_first=first,
            steps=steps,
            strict_openai=subset,
        )
        return JsonConstraint(schema, "action")


class CallStyle(JsonStyle):
    """The server's tool calling: each legal action and tool is a function, and the reply is a call of one. A reply
    without a call is parsed as in `JsonStyle`."""

    name = "calls"

    @override
    def how_to_answer(self, prompts: Prompts, space: Sequence[ActionDef], tools: Sequence[AgentTool]) -> str:
        return prompts.render("call_answer", steps=self._steps)

    @override
    def question(self, prompts: Prompts) -> str:
        return prompts.render("call_question")

    @override
    def constrains(self, abilities: Abilities) -> bool:
        return abilities.calls

    @override
    def _plain(self, turn: DecisionTurn, reply: Reply, wrapped: bool) -> str:
        said = reply.message if reply.calls else call_in(reply.text)  # some models write it as text
        call = said.calls[0] if said is not None and len(said.calls) == 1 else None
        if said is None or call is None or isinstance(call.arguments, str):
            return reply.message.text()
        kind = "tool" if call.name in turn.tools else "action"
        action = next((each for each in turn.legal if each.name == call.name), None)
        own = {p.name for p in action.parameters} if action is not None else set(KEYS)
        beside = {key: value for key, value in call.arguments.items() if key in KEYS and key not in own}
        params = {key: value for key, value in call.arguments.items() if key not in beside}
        told = {kind: call.name, "params": params, **beside, "reasoning": str(said.content).strip()}
        return json.dumps(told, ensure_ascii=False)

    @override
    def _said(self, turn: DecisionTurn, choice: Action | ToolCall, steps: Mapping[str, JsonValue]) -> Message:
        if isinstance(choice, ToolCall):
            return Message("assistant", "", (FunctionCall(choice.name, dict(choice.parameters)),))
        call = FunctionCall(choice.name, {**choice.parameters, **steps})
        return Message("assistant", (choice.reasoning or "").strip(), (call,))

    @override
    def _again(self, turn: DecisionTurn, reason: str, legal: Sequence[ActionDef], *, cut: bool) -> str:
        return reask(reason, legal, turn.prompts.words, cut=cut, question=self.question(turn.prompts))

    @override
    def _made(self, legal: Sequence[ActionDef], offered: Sequence[Tool], subset: bool) -> Constraint:
        return CallConstraint(reply_functions(legal, offered, steps=self._steps))


class TagStyle(Style):
    """Seed 002: tools inside `<thinking>`, generation stopped and continued, one final tag."""

    name = "tags"
    looks_up = True

    def __init__(self, limits: TagLimits | None = None, *, steps: int = 1) -> None:
        self._limits = limits or TagLimits()
        self._steps = steps

    @override
    def how_to_answer(self, prompts: Prompts, space: Sequence[ActionDef], tools: Sequence[AgentTool]) -> str:
        finals, of_world = split(space)
        final = finals[0] if finals else ActionDef("wait")
        examples: list[ActionDef | Tool] = [*(tool.definition for tool in tools), *of_world]
        return prompts.render(
            "tag_answer",
            example_tool=_example(examples[0]) if examples else "<tool>...</tool>",
            example_action=_example(final),
            steps=tag_steps(self._steps, [*(t.definition.name for t in tools), *(a.name for a in space)]),
        )

    @override
    def question(self, prompts: Prompts) -> str:
        return prompts.render("tag_question")

    @override
    def constrains(self, abilities: Abilities) -> bool:
        return abilities.regex

    @override
    async def decide(self, turn: DecisionTurn) -> Decision:
        finals, world = split(turn.legal)
        how: Resumption = "resume" if turn.abilities.resume else "prefill" if turn.abilities.prefill else "turns"
        before, most = turn.paused.pending, min(turn.asker.options.tool_calls, self._limits.calls)
        calls = ToolCalls(turn.tools, world, most, before)
        words = turn.prompts.words
        tags = TagTurn(
            [*(t.definition for t in turn.tools.values()), *(Tool(a.name, a.description, a.parameters) for a in world)],
            finals,
            limits=self._limits,
            steps=self._steps,
        )
        messages = [turn.opening]
        so_far = "" if how == "turns" else OPENING
        inside, used = bool(so_far), before is not None
        if before is not None:
            messages += before.said
            answer = calls.told(before.result or "", words)
            so_far = _gone_on(messages, before.so_far, answer, words, turns=how == "turns")
            inside = True
        repaired, purpose = False, "tool" if used else "decide"
        while True:
            reply, reading, text = await self._leg(turn, tags, messages, so_far, purpose, calls.left, inside=inside)
            if isinstance(reading, NotUnderstood):
                turn.misread(reply, reading.reason)
                if repaired:
                    return Decision(None)
                repaired, purpose = True, "re-ask"
                listed = words.say(f"End your turn with one of: {', '.join(map(_example, finals[:40]))}")
                again = f"{why(reading.reason, words, cut=reply.truncated)} {listed}"
                messages += [_short(Message("assistant", so_far + text)), Message("user", again)]
                so_far, inside = ("", False) if how == "turns" else (OPENING, True)
                continue
            resumption, choice = how if used else None, reading.choice
            if isinstance(choice, Action):
                told = "".join(f"<{name}>{value}</{name}>" for name, value in reading.steps.told().items())
                told += said(choice, tags, words)
                turned = Message("assistant", told)
                return Decision(choice, repaired or reading.repaired, turned, resumption, reading.steps)
            result = await calls.answer(choice)
            if how == "turns":
                messages.append(Message("assistant", text))
            else:
                so_far += text
            if result is None:
                action = Action(choice.name, choice.parameters, choice.reasoning)
                pending = calls.pending(choice, messages[1:], so_far)
                return Decision(action, repaired, resumption=resumption, pending=pending)
            used, purpose, inside = True, "tool", True
            so_far = _gone_on(messages, so_far, calls.told(result, words), words, turns=how == "turns")

    async def _leg(
        self,
        turn: DecisionTurn,
        tags: TagTurn,
        messages: Sequence[Message],
        so_far: str,
        purpose: str,
        left: int,
        *,
        inside: bool,
    ) -> tuple[Reply, Reading, str]:
        constraint = None
        if turn.constraint.wanted and self.constrains(turn.abilities):
            constraint = RegexConstraint(tags.continuation_pattern(left) if inside else tags.pattern(left))
        stop = tuple(f"</{name}>" for name in (*tags.tools, *tags.finals))
        reply = await turn.ask_constrained(purpose, messages, constraint, prefill=so_far, stop=stop)
        text = reply.text + (reply.finish.stop_sequence or _unfinished(reply, tags))
        return reply, *read_leg(tags, text, inside_thinking=inside, calls_left=left)


def said(action: Action, tags: TagTurn, words: Words = ENGLISH) -> str:
    """Return an action as its tag."""
    definition = tags.find(action.name)
    if definition is None or not definition.parameters:
        return f"<{action.name}/>"
    if len(definition.parameters) == 1:
        return f"<{action.name}>{next(iter(action.parameters.values()), '')}</{action.name}>"
    return f"<{action.name}>{written(action.parameters, words)}</{action.name}>"


def _gone_on(messages: list[Message], so_far: str, result: str, words: Words, *, turns: bool) -> str:
    """Add a tool's result to the messages or the text, and return the assistant text to continue."""
    if not turns:
        return continue_text(so_far, result, limit=LONGEST_RESULT)
    shown = f"<observation>{sanitize(result, LONGEST_RESULT)}</observation>\n{words.say('Go on thinking.')}"
    messages.append(Message("user", shown))
    return ""


def _unfinished(reply: Reply, tags: TagTurn) -> str:
    """Return the closing tag that a backend removed as a stop text without reporting it."""
    if reply.finish.reason not in ("stop", "stop_sequence"):
        return ""
    names = "|".join(re.escape(name) for name in (*tags.tools, *tags.finals))
    opened = re.findall(rf"<\s{{0,3}}(/?)\s{{0,3}}({names})\s{{0,3}}>", reply.text, re.IGNORECASE)
    if opened and not opened[-1][0]:
        return f"</{opened[-1][1]}>"
    return ""


def _example(of: ActionDef | Tool) -> str:
    return f"<{of.name}>...</{of.name}>" if of.parameters else f"<{of.name}/>"


def _short(said: Message) -> Message:
    """Return the turn of an unusable reply for the next question, of at most 2,000 characters."""
    text = said.text().strip()
    return said if said.calls and len(text) <= 2000 else Message("assistant", text[:2000] or "(nothing)")

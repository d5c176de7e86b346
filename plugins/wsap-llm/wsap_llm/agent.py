"""An agent that lets a language model decide."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from wsap_core.errors import SnapshotError, WireError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, HistoryEntry, Observation
from wsap_core.seams.agent import DecisionInfo, Look, ReflectionInfo
from wsap_core.seams.game import Snapshots
from wsap_core.seams.memory import AgentMemory
from wsap_core.seams.model import Backend, Constraint, Message, Reply, Request, collect
from wsap_core.seams.tool import AgentTool
from wsap_core.untrusted import Quoter, harmless, one_line
from wsap_llm.account import Account
from wsap_llm.constraint import ConstraintState
from wsap_llm.conversation import Conversation
from wsap_llm.lookup import split
from wsap_llm.open_turn import PausedTurn
from wsap_llm.options import LLMOptions
from wsap_llm.pace import Pace, fallback_action
from wsap_llm.prompts import Prompts
from wsap_llm.reflection import Reflector, read_lines
from wsap_llm.reply.schema import legal_actions
from wsap_llm.sight import Sight
from wsap_llm.speech import Voice
from wsap_llm.styles import Decision, DecisionTurn, JsonStyle, Style
from wsap_llm.toolbox import Toolbox
from wsap_llm.window import HistoryTurn

__all__ = ["Call", "LLMAgent", "LLMOptions"]

SPOKEN = ("speech", "message", "chat", "whisper")
"""Kinds of events whose text somebody else wrote."""


@dataclass(frozen=True)
class Call:
    """One request and its reply, for the log."""

    purpose: str
    """"decide", "re-ask", "tool", "plan" or "reflect"."""
    request: Request
    reply: Reply


class LLMAgent:
    """Shows a model each observation and takes what it answers for an action.

    Where the backend can constrain, the reply is bound to the actions that are legal now. Where
    it can't, or refuses to when it is asked, that is told once and counted, and replies are read
    with tolerance; one that can't be understood is asked for again once, with the error and the
    legal actions; after that the declared fallback is taken and the decision counts as forced.
    What a model thinks is never put into its conversation.

    Args:
        backend: the model, with whatever wrappers.
        options: how it is asked.
        style: JSON, or tags.
        prompts: the templates.
        memory: what it keeps beyond the window; None for nothing.
        tools: what it can use while it thinks.
        toolbox: more tools, opened when a session begins and closed by `aclose`.
        prepare: awaited when a session begins, before the backend is asked anything.
        on_call: told of each call, for the log.
        tell: told, in a sentence and once, that replies can't be bound; the log of warnings for None.
        generator: where the delimiters of quoted text are drawn from.
        account: where what it asks is added up, and what its memory asks, if that counts there too.
    """

    def __init__(
        self,
        backend: Backend,
        options: LLMOptions | None = None,
        *,
        style: Style | None = None,
        prompts: Prompts | None = None,
        memory: AgentMemory | None = None,
        tools: Sequence[AgentTool] = (),
        toolbox: Toolbox | None = None,
        prepare: Callable[[], Awaitable[object]] | None = None,
        on_call: Callable[[Call], None] | None = None,
        tell: Callable[[str], None] | None = None,
        generator: random.Random | None = None,
        account: Account | None = None,
    ) -> None:
        self.backend = backend
        self.options = options or LLMOptions()
        self.last_decision: DecisionInfo | None = None
        """How the last decision came about."""
        self.last_reflection: ReflectionInfo | None = None
        """The lessons that were drawn from the last result, if any were."""
        self.last_made: Decision | None = None
        """The last decision as its style made it."""
        self._style = style or JsonStyle()
        self._prompts = prompts or Prompts()
        self._memory = memory
        own = self.options
        self._reflector = (
            Reflector(memory, self._prompts, own.game_name, own.reflect_every, own.lessons)
            if memory is not None and own.reflect
            else None
        )
        self._tools = {tool.definition.name: tool for tool in tools}
        self._toolbox = toolbox
        self._prepare = prepare
        self._on_call = on_call
        self._binding = ConstraintState(backend, self._style, self.options, tell)
        self._random = generator or random.Random(0)
        self._sight = Sight(backend, self.options, tell)
        self._pace = Pace(own.pace, thinking=own.thinking, fallback=own.fallback)
        # The newest picture is in the question, the others are in the conversation.
        self._conversation = Conversation(backend, steps=own.window, pictures=max(0, own.pictures - 1), tell=tell)
        self._space = ActionSpace()
        self._plan: list[str] = []
        self._account = account or Account()
        self._seen: tuple[Observation, Action] | None = None
        self._open: PausedTurn | None = None

    async def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Make the system message: the prefix that never changes.

        Raises:
            ConstraintError: `strict`, and the backend can't bind its replies in this style.
            UsageError: pictures were asked for, and the model can't see.
        """
        if self._prepare is not None:
            await self._prepare()
        if self._toolbox is not None:
            for tool in await self._toolbox.open():
                self._tools[tool.definition.name] = tool
        self._sight.check()
        self._binding.check()
        self._space = action_space
        tools = list(self._tools.values())
        finals, lookups = split(action_space.actions)
        system = self._prompts.render(
            "system",
            game_name=one_line(self.options.game_name),
            persona=self.options.persona.strip(),
            objective=one_line(self.options.objective),
            game_description="\n".join(line.strip() for line in game_desc.strip().splitlines()),
            action_space=ActionSpace(finals).to_text(),
            lookups=ActionSpace(lookups).to_text(),
            tools="\n".join(f"- {t.definition.name}: {one_line(t.definition.description)}" for t in tools),
            how_to_answer=self._style.how_to_answer(self._prompts, action_space.actions, tools),
        )
        self._conversation.begin(system)
        self._pace.clear()
        self._seen = self._open = None

    async def plan(self, goals: list[Goal]) -> list[str]:
        """Return the model's plan for the goals, one step a line; empty without goals or when switched off."""
        self._plan = []
        if self._open is not None:  # an episode begins, or the turn was thought through for other goals
            self._open = replace(self._open, dropped=True)
        if not goals or not self.options.plan:
            return []
        text = self._prompts.render(
            "plan",
            observation="",
            goals=[harmless(g.description or g.id, 200) for g in goals],
            most=self.options.plan_lines,
        )
        reply = await self._ask("plan", [Message("user", text)])
        self._plan = list(read_lines(reply.text, self.options.plan_lines))
        if self._memory is not None:
            for line in self._plan:
                self._memory.note(line, kind="plan", world=self.options.game_name)
        return list(self._plan)

    def see_with(self, look: Look) -> None:
        """Take the means to see, which is used where pictures were asked for."""
        self._sight.eyes = look

    async def decide(self, observation: Observation) -> Action:
        """Return the action that the model chose, now or a few steps ago, or the fallback.

        Where that is a tool of the world, the same turn goes on at the next decision with what the
        tool gave, unless the game has moved on to another step meanwhile.
        """
        legal = legal_actions(self._space, observation)
        if not legal:  # as where the game was over before it was this agent's turn: there is nothing to ask
            action = Action(fallback_action(self._space.actions, self.options.fallback, self._random))
            self.last_decision = DecisionInfo(forced=True, usage=self._account.take())
            self._seen = (observation, action)
            return action
        opened = self._open
        if opened is not None and opened.goes_on(observation):
            opened = opened.hearing(observation)
        else:
            if opened is not None:
                self._open = None
                self._pace.put_off(opened.left_over(observation))
            if (carried_on := self._pace.go_on(observation, legal)) is not None:
                self.last_decision = DecisionInfo(usage=self._account.take(), continued=True)
                self._seen = (observation, carried_on)
                return carried_on
            caught_up = self._pace.caught_up(observation)
            opened = PausedTurn.begin(caught_up, self._show(caught_up), await self._sight.look())
        turn = DecisionTurn(
            opened.shown,
            legal,
            self._space.actions,
            self._tools,
            self.options.tool_calls,
            self.backend.abilities,
            self._binding.wanted,
            self._ask,
            self._prompts,
            self._binding.refused,
            picture=opened.picture,
            pending=opened.pending,
        )
        try:
            made = await self._style.decide(turn)
        except asyncio.CancelledError:  # it took too long: what it took until then is told all the same
            self.last_decision = DecisionInfo(forced=True, usage=self._account.take())
            raise
        action = made.action or Action(
            fallback_action(legal, self.options.fallback, self._random),
            reasoning="(the reply could not be understood)",
        )
        forced = made.action is None
        self.last_decision = DecisionInfo(
            made.repaired and not forced,
            forced,
            self._account.take(),
            turn.unconstrained,
            turn.cut,
            made.resumption,
        )
        self.last_made = made
        self._seen = (observation, action)
        if made.pending is not None:
            self._open = replace(opened, pending=made.pending)
            return action
        said = made.said or f'{{"action": "{action.name}", "params": {{}}}}'
        self._conversation.add(HistoryTurn(opened.shown, said, opened.picture))
        self._pace.begin(observation, legal, action, made.steps)
        self._pace.put_off(opened.late)
        self._open = None
        return action

    async def reflect(self, result: ActionResult) -> None:
        """Keep what came of the last action, and look back where it is time."""
        self.last_reflection = None
        if self._open is not None:
            self._open = self._open.with_result(result)
        else:
            self._pace.note(result)
        if self._seen is None or self._memory is None:
            return
        observation, action = self._seen
        self._memory.remember(
            HistoryEntry(observation, action, result, world=self.options.game_name, step=observation.step)
        )
        compacted = self._memory.compact()
        if inspect.isawaitable(compacted):
            await compacted
        if self._reflector is not None:
            self.last_reflection = await self._reflector.after(result, self._quoted, self._ask)
        self._take_over()

    async def conclude(self) -> None:
        """Look back because play ends here."""
        self.last_reflection = None
        if self._reflector is not None:
            self.last_reflection = await self._reflector.conclude(self._quoted, self._ask)
        self._take_over()

    def _take_over(self) -> None:
        """Put what was asked since the last decision down to it."""
        if self._account.pending.calls and self.last_decision is not None:
            decision = self.last_decision
            self.last_decision = replace(decision, usage=decision.usage + self._account.take())

    async def speak(self, purpose: str, facts: Sequence[str], said: str = "") -> str:
        """Return what it says in its own words; see `wsap_llm.speech.Speaks`. Its conversation stays as it is."""
        if self._prepare is not None:
            await self._prepare()
        voice = Voice(self.backend, self.options, self._prompts, self._memory, self._account, self._random)
        return await voice.speak(purpose, facts, said)

    @property
    def memory(self) -> AgentMemory | None:
        """What it keeps beyond the window."""
        return self._memory

    @property
    def system_prompt(self) -> str:
        """What the model is told at the start of a session; empty before that."""
        return self._conversation.system

    async def aclose(self) -> None:
        """Give back what its tools hold; the backend belongs to whoever made it."""
        if self._toolbox is not None:
            await self._toolbox.aclose()

    def snapshot(self) -> bytes:
        """Return the conversation, the plan, the memory, and what its tools keep."""
        version, state, gauss = self._random.getstate()
        data = {
            "turns": [turn.to_json() for turn in self._conversation.turns],
            "cut": self._conversation.cut,
            "plan": self._plan,
            "pace": self._pace.snapshot(),
            "open": self._open.to_json() if self._open is not None else None,
            "unbound": self._binding.reason,
            "memory": self._memory.snapshot().hex() if self._memory is not None else None,
            "looked_back": self._reflector.state() if self._reflector is not None else None,
            "random": [version, list(state), gauss],
            "tools": {n: t.snapshot().hex() for n, t in sorted(self._tools.items()) if isinstance(t, Snapshots)},
        }
        return json.dumps(data, separators=(",", ":")).encode()

    def restore(self, data: bytes) -> None:
        """Go on where the snapshot was taken.

        Raises:
            SnapshotError: the data is damaged.
        """
        try:
            found = json.loads(data)
            turns = [HistoryTurn.from_json(turn) for turn in found["turns"]]
            plan = [str(line) for line in found["plan"]]
            cut = int(found["cut"])
            unbound = str(found.get("unbound", ""))
            opened = PausedTurn.from_json(found["open"]) if found.get("open") is not None else None
            self._pace.restore(found.get("pace"))
            memory = bytes.fromhex(found["memory"]) if found["memory"] is not None else None
            tools = {str(name): bytes.fromhex(kept) for name, kept in found["tools"].items()}
            version, state, gauss = found["random"]
            if self._reflector is not None and found.get("looked_back") is not None:
                self._reflector.set_state(found["looked_back"])
            self._random.setstate((version, tuple(state), gauss))
        except (ValueError, KeyError, TypeError, AttributeError, WireError) as error:
            raise SnapshotError(f"The model's snapshot is damaged: {error}.") from error
        if self._memory is not None and memory is not None:
            self._memory.restore(memory)
        for name, kept in tools.items():
            tool: object = self._tools.get(name)
            if isinstance(tool, Snapshots):
                tool.restore(kept)
        self._conversation.restore(turns, cut)
        self._plan = plan
        self._open = opened
        self._binding.reason = unbound

    # --- asking ------------------------------------------------------------------------------

    def _show(self, observation: Observation) -> str:
        text, explanation = self._quoted(observation)
        memories: list[str] = []
        if self._memory is not None and self.options.recall_tokens:
            found = self._memory.recall(observation.to_text(), budget=self.options.recall_tokens)
            memories = [harmless(m.text, 400) for m in found]
        question = self._style.question(self._prompts)
        return self._prompts.render(
            "user",
            observation="\n\n".join(filter(None, (self._pace.report(self._prompts), text))),
            plan=self._plan,
            memories=memories,
            question=f"{explanation}\n\n{question}" if explanation else question,
        )

    def _quoted(self, observation: Observation) -> tuple[str, str]:
        """Return the observation's text with what others wrote in quotes, and the sentence that explains them."""
        if not observation.messages and not any(e.type in SPOKEN for e in observation.recent_events):
            return observation.to_text(), ""
        quoter = Quoter.draw(self._random)
        messages = tuple(
            replace(m, sender=harmless(m.sender, 60), content=quoter.quote(m.content)) for m in observation.messages
        )
        events = tuple(
            replace(e, description=quoter.quote(e.description)) if e.type in SPOKEN else e
            for e in observation.recent_events
        )
        return replace(observation, messages=messages, recent_events=events).to_text(), quoter.explain()

    async def _ask(
        self,
        purpose: str,
        messages: Sequence[Message],
        *,
        constraint: Constraint | None = None,
        prefill: str = "",
        stop: Sequence[str] = (),
    ) -> Reply:
        request = Request(
            self._conversation.with_messages(messages),
            prefill=prefill,
            stop=tuple(stop),
            constraint=constraint,
            sampling=self.options.sampling,
            thinking=self._pace.thinking(purpose),
            options=self.options.provider,
            purpose=purpose,
        )
        request = self._conversation.fitted(request, messages)
        reply = await collect(self.backend, request)
        self._account.add(reply.usage)
        if self._on_call is not None:
            self._on_call(Call(purpose, request, reply))
        return reply

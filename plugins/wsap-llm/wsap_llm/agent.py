"""An agent whose decisions are made by a language model."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from wsap_core.authoring.guarded import Guarded
from wsap_core.errors import SnapshotError, WireError
from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace, Goal, HistoryEntry, Observation
from wsap_core.protocol.lines import bullets, dedent
from wsap_core.protocol.wire import Codec, encode
from wsap_core.seams.agent import DecisionInfo, GetDefault, GetView, ReflectionInfo
from wsap_core.seams.game import Snapshots
from wsap_core.seams.memory import AgentMemory, Recollection
from wsap_core.seams.model import Abilities, Backend, Message
from wsap_core.seams.tool import AgentTool, ToolSource
from wsap_core.untrusted import sanitize, single_line
from wsap_core.worlds import GAME_OVER
from wsap_llm.decision.asking import Asker, Decision, DecisionTurn
from wsap_llm.decision.cadence import Cadence
from wsap_llm.decision.choosing import ChooseStyle, options_of
from wsap_llm.decision.constraint import ConstraintState
from wsap_llm.decision.fallback import Fallback, IdleActions
from wsap_llm.decision.offers import (
    brief_of,
    not_looked_up,
    offerable,
    only_refusals,
    phrased,
    possible_now,
    tool_lines,
    without_free_options,
)
from wsap_llm.decision.reflection import Reflector, read_lines
from wsap_llm.decision.speech import recalled, speak
from wsap_llm.decision.styles import JsonStyle, Style
from wsap_llm.decision.toolbox import Toolbox
from wsap_llm.decision.turn import Conversation, HistoryTurn, PausedTurn, Untold, lasting_of, quoted, report_of
from wsap_llm.middleware.measure import UsageCounter
from wsap_llm.options.llm import PROFILES, LLMOptions, Profile, objective_beside, profile_for
from wsap_llm.prompts import Prompts
from wsap_llm.reply.schema import legal_actions
from wsap_llm.text.pictures import Vision
from wsap_llm.tools.lookup import split

StyleFor = Callable[[Abilities, Profile, str], Style]
"""Returns the style for a backend's abilities and a profile; the last argument names the style of a resumed session and
is empty for a new one."""

SNAPSHOT_FORMAT = 1
"""The version of snapshots."""


class LLMAgent(Guarded, keeps={"memory": object, "last_decision": object, "last_reflection": object}):
    """Shows a model each observation and reads its reply as an action.

    Backends that can constrain replies limit them to the legal actions. If the backend can't, or refuses to, this is
    reported once and counted, and replies are parsed leniently. After an unreadable reply the model is asked once more,
    with the error and the legal actions; if that fails, the fallback is taken and the decision counts as forced. The
    model's thinking never becomes part of the conversation.

    Args:
        tools: tools and tool sources; sources are opened when a session starts and closed by `aclose`.
        prepare: awaited when a session starts, before the first request.
        tell: receives each warning once, as a sentence; the log by default.
        generator: source of randomness, such as for the delimiters of quoted text.
        counter: adds up the usage of the agent's requests, and of its memory's if they share it.
    """

    def __init__(
        self,
        backend: Backend,
        options: LLMOptions | None = None,
        *,
        style: Style | StyleFor | None = None,
        prompts: Prompts | None = None,
        memory: AgentMemory | None = None,
        tools: Sequence[AgentTool | ToolSource] = (),
        prepare: Callable[[], Awaitable[object]] | None = None,
        tell: Callable[[str], None] | None = None,
        generator: random.Random | None = None,
        counter: UsageCounter | None = None,
    ) -> None:
        self.backend = backend
        self.options = own = options or LLMOptions()
        self.last_decision: DecisionInfo | None = None
        """How the last decision was made."""
        self.last_reflection: ReflectionInfo | None = None
        """The lessons drawn from the last result, if any."""
        self._style_for = style if callable(style) else _always(style or JsonStyle())
        self._style: Style = JsonStyle()
        self._profile: Profile = own.profile or "full"
        self._prompts = prompts or Prompts()
        self.memory = memory
        """What it keeps beyond the conversation."""
        self._tools: dict[str, AgentTool] = {}
        self._toolbox = Toolbox(tools)
        self._prepare = prepare
        self._constraint = ConstraintState(backend, own, tell)
        self._random = generator or random.Random(0)
        self._vision = Vision(backend, own, tell)
        self._cadence = Cadence()
        # The question holds the newest picture, the conversation the others.
        self._conversation = Conversation(backend, pictures=max(0, own.pictures - 1), tell=tell)
        self._description, self._space = "", ActionSpace()
        self._plan: list[str] = []
        self._beginning: Observation | None = None
        self._counter = counter or UsageCounter()
        self._asker = Asker(backend, own, self._prompts, self._conversation, self._counter, self._random)
        self._reflector = Reflector(memory, self._asker) if memory is not None and own.reflect else None
        self._seen: tuple[Observation, Action] | None = None
        self._paused: PausedTurn | None = None
        self._untold = Untold()
        self._report = ""
        self._lasting: list[str] = []
        self._reported: int | None = None
        self._idle = IdleActions()
        self._fallback = Fallback(own.fallback, self._random)

    async def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Build the system message, the constant prefix of the session.

        Raises:
            ConfigError: the fallback is not an action of the game.
            ConstraintError: `strict` is set and the backend can't constrain replies in this style.
            UsageError: pictures were requested and the model does not accept images.
        """
        self._fallback.check(action_space)
        if self._prepare is not None:
            await self._prepare()
        self._tools = {tool.definition.name: tool for tool in await self._toolbox.open()}
        self._vision.check()
        self._description, self._space = game_desc, offerable(action_space)
        self._begin(self.options.profile or profile_for(self.backend.abilities))
        self._cadence = Cadence()
        self._seen = self._paused = None
        self._untold = Untold()
        self._report = ""
        self._lasting = []
        self._idle = IdleActions()

    def _begin(self, profile: Profile, style: str = "") -> None:
        """Set style and profile, and build the system message."""
        self._profile = profile
        self._style = self._style_for(self.backend.abilities, profile, style)
        self._constraint.check(self._style.constrains(self.backend.abilities))
        description = (profile == "brief" and self.options.brief) or dedent(self._description)
        tools = list(self._offered_tools.values())
        declared = self._space.listed().actions
        finals, lookups = split(without_free_options(declared) if profile == "brief" else declared)
        listed = [*finals, *lookups] if self._looks_up else finals
        words = self._prompts.words
        system = self._prompts.render(
            "brief_system" if profile == "brief" else "system",
            game_name=single_line(self.options.game_name),
            persona=self.options.persona.strip(),
            objective=single_line(objective_beside(description, self.options.objective, words)),
            game_description=description,
            action_space=ActionSpace(finals).to_text(words),
            lookups=ActionSpace(lookups if self._looks_up else ()).to_text(words),
            tools=tool_lines([tool.definition for tool in tools], words),
            how_to_answer=self._style.how_to_answer(self._prompts, listed, tools),
        )
        self._conversation.begin(system, steps=self.options.window_for(profile))

    def plan_from(self, observation: Observation) -> None:
        """Take the observation that the next plan starts from."""
        self._beginning = observation

    async def plan(self, goals: list[Goal]) -> list[str]:
        """Return the model's plan for the goals, one step a line; empty without goals or unless planning is on. It is
        made from the observation given to `plan_from`, and is not remembered: a plan is nothing that has happened."""
        self._plan = []
        if self._paused is not None:  # a new episode, or the paused turn was decided for other goals
            self._paused = replace(self._paused, dropped=True)
        if not goals or not self.options.plan:
            return []
        seen, self._beginning = self._beginning, None
        text = self._prompts.render(
            "plan",
            observation="" if seen is None else self._told_before(seen),
            goals=[sanitize(g.description or g.id, 200) for g in goals],
            most=self.options.plan_lines,
        )
        reply = await self._asker.ask("plan", [Message("user", text)])
        self._plan = list(read_lines(reply.text, self.options.plan_lines))
        return list(self._plan)

    def _told_before(self, observation: Observation) -> str:
        """Return an observation as the text before a plan; the goals follow it."""
        seen, explanation = quoted(replace(observation, current_goals=()), self._random)
        return "\n\n".join(filter(None, (seen.to_text(), explanation)))

    def see_with(self, get_view: GetView) -> None:
        """Set the function that gets pictures, used if the options request them."""
        self._vision.get_view = get_view

    def take_default_from(self, get_default: GetDefault) -> None:
        """Set the function that gets the seat's default action, the fallback unless the options name one."""
        self._fallback.get_default = get_default

    async def decide(self, observation: Observation) -> Action:
        """Return the action that the model chose, now or a few steps ago, or the fallback.

        After a tool of the world, the next decision continues the same turn with the tool's result, unless the game
        has moved on to another step.
        """
        if self.options.hidden:
            observation = replace(observation, available_actions=None)
        action = await self._decide(observation, self._offered(observation))
        self._seen = (observation, action)
        return action

    async def _decide(self, observation: Observation, legal: Sequence[ActionDef]) -> Action:
        if not legal:  # for example if the game ended before this agent's turn
            self.last_decision = DecisionInfo(forced=True, usage=self._counter.flush(), cause="no action was legal")
            return await self._fallback.action(self._space.actions, observation)
        paused, chooses = self._paused, self._chooses
        phrases = observation.phrases() if chooses or self._profile == "brief" else {}
        options = options_of(legal, phrases) if chooses else {}
        if paused is not None and paused.resumes(observation):
            paused = paused.hearing(observation)
        else:
            if paused is not None:
                self._paused = None
                self._untold = replace(paused.left_over(observation), left_out=self._untold.left_out)
            if (repeated := self._cadence.next_action(observation, legal)) is not None:
                self._untold = self._untold.missing(observation)
                self.last_decision = DecisionInfo(usage=self._counter.flush(), continued=True)
                return repeated
            caught_up = self._untold.before(observation)
            shown, kept = self._show(caught_up, legal, phrases, options)
            picture = await self._vision.picture()
            paused = PausedTurn(shown, caught_up.step, picture, told=Untold.of(caught_up), kept=kept)
        decision = await self._ask_for_action(paused, legal, options)
        action = decision.action or await self._fallback.action(legal, observation)
        if decision.pending is not None:
            self._paused = replace(paused, pending=decision.pending)
            return action
        said = decision.said or Message("assistant", f'{{"action": "{action.name}", "params": {{}}}}')
        self._conversation.add(
            HistoryTurn(paused.kept or paused.shown, str(said.content), paused.picture, tuple(said.calls), paused.step)
        )
        self._cadence.begin(observation, legal, action, decision.steps)
        self._untold = paused.late
        self._paused = None
        return action

    async def _ask_for_action(
        self, paused: PausedTurn, legal: Sequence[ActionDef], options: Mapping[str, Action]
    ) -> Decision:
        declared, tools = self._space.actions, self._offered_tools
        turn = DecisionTurn(paused, legal, declared, tools, self._constraint, self._asker, options)
        self._constraint.asks(self._style.name, self._profile)
        try:
            decision = await self._asking(options).decide(turn)
        except asyncio.CancelledError:  # on a timeout the usage so far is reported all the same
            self.last_decision = DecisionInfo(forced=True, usage=self._counter.flush())
            raise
        self.last_decision = turn.info(decision)
        return decision

    async def reflect(self, result: ActionResult) -> None:
        """Remember the result of the last action, and reflect if it is time."""
        self.last_reflection = None
        seen, self._seen = self._seen, None
        if (paused := self._paused) is not None:
            self._paused = paused.with_result(result)
        else:
            self._cadence.note(result)
        if seen is None and not result.done:
            self._report = ""
            return  # the default action was taken at the deadline
        observation, action = seen or (result.observation, GAME_OVER)
        told = not (self.options.complete_turns and result.success)
        self._report = report_of(action, result, self._prompts.words) if told else ""
        self._reported = observation.step
        if paused is None:
            self._idle.note(observation, action, result)
        if self.memory is None:
            return
        entry = HistoryEntry(observation, action, result, world=self.options.game_name, step=observation.step)
        self.memory.remember(entry)
        compacted = self.memory.compact()
        if inspect.isawaitable(compacted):
            await compacted
        if self._reflector is not None:
            self.last_reflection = await self._reflector.after(entry, result)
        self._take_over()

    async def conclude(self) -> None:
        """Reflect at the end of play."""
        self.last_reflection = None
        if self._reflector is not None:
            self.last_reflection = await self._reflector.conclude()
        self._take_over()

    def _take_over(self) -> None:
        """Add the usage since the last decision to it."""
        if self._counter.pending.calls and self.last_decision is not None:
            decision = self.last_decision
            self.last_decision = replace(decision, usage=decision.usage + self._counter.flush())

    async def speak(self, purpose: str, facts: Sequence[str], said: str = "") -> str:
        """Return a text by the model; see `wsap_llm.decision.speech.Speaks`. The conversation does not change."""
        if self._prepare is not None:
            await self._prepare()
        return await speak(self._asker, self.memory, purpose, facts, said)

    @property
    def system_prompt(self) -> str:
        """The system message; empty before the first session."""
        return self._conversation.system

    async def aclose(self) -> None:
        """Close the tools; the backend belongs to the caller."""
        await self._toolbox.aclose()

    def snapshot(self) -> bytes:
        """Return the conversation, the plan, the memory and the state of the tools."""
        version, state, gauss = self._random.getstate()
        data = {
            "format": SNAPSHOT_FORMAT,
            "asked": [self._style.name, self._profile],
            "turns": [turn.to_json() for turn in self._conversation.turns],
            "plan": self._plan,
            "pace": {**self._cadence.snapshot(), **encode(self._untold)},
            "report": self._report,
            "lasting": self._lasting,
            "reported": self._reported,
            "idle": dict(self._idle.counts),
            "open": self._paused.to_json() if self._paused is not None else None,
            "unbound": self._constraint.reason,
            "memory": self.memory.snapshot().hex() if self.memory is not None else None,
            "looked_back": self._reflector.state() if self._reflector is not None else None,
            "random": [version, list(state), gauss],
            "requests": self._asker.number.made,
            "refused_size": self._conversation.refused_size,
            "tools": {n: t.snapshot().hex() for n, t in sorted(self._tools.items()) if isinstance(t, Snapshots)},
        }
        return json.dumps(data, separators=(",", ":")).encode()

    def restore(self, data: bytes) -> None:
        """Continue from a snapshot; raise SnapshotError if the data is damaged."""
        try:
            found = json.loads(data)
            if found["format"] > SNAPSHOT_FORMAT:
                raise ValueError("a newer version of WSAP took it")
            style, profile = found["asked"]
            if profile not in PROFILES:
                raise ValueError(f"there is no profile {profile!r}")
            turns = [HistoryTurn.from_json(turn) for turn in found["turns"]]
            plan = [str(line) for line in found["plan"]]
            unbound = str(found["unbound"])
            paused = PausedTurn.from_json(found["open"]) if found["open"] is not None else None
            untold = Codec().decode(Untold, found["pace"])
            self._cadence.restore(found["pace"])
            idle = {str(name): int(count) for name, count in found["idle"].items()}
            report = str(found["report"])
            lasting = [str(line) for line in found["lasting"]]
            reported = found["reported"]
            memory = bytes.fromhex(found["memory"]) if found["memory"] is not None else None
            tools = {str(name): bytes.fromhex(kept) for name, kept in found["tools"].items()}
            version, state, gauss = found["random"]
            requests = int(found["requests"])
            refused = found["refused_size"]
            refused_size = None if refused is None else int(refused)
            if self._reflector is not None and found["looked_back"] is not None:
                self._reflector.set_state(found["looked_back"])
            self._random.setstate((version, tuple(state), gauss))
        except (ValueError, KeyError, TypeError, AttributeError, WireError) as error:
            raise SnapshotError(f"The model's snapshot is damaged: {error}.") from error
        if self.memory is not None and memory is not None:
            self.memory.restore(memory)
        for name, kept in tools.items():
            tool: object = self._tools.get(name)
            if isinstance(tool, Snapshots):
                tool.restore(kept)
        if self.system_prompt and (style, profile) != (self._style.name, self._profile):
            self._begin(self.options.profile or profile, style)
        self._conversation.restore(turns)
        self._plan = plan
        self._paused = paused
        self._untold = untold
        self._report = report
        self._lasting = lasting
        self._reported = None if reported is None else int(reported)
        self._idle.counts.update(idle)
        self._asker.number.made = requests
        self._conversation.refused_size = refused_size
        self._constraint.reason = unbound

    @property
    def _looks_up(self) -> bool:
        return self._style.looks_up and self.options.tool_calls > 0

    @property
    def _offered_tools(self) -> Mapping[str, AgentTool]:
        return self._tools if self._looks_up else {}

    def _offered(self, observation: Observation) -> Sequence[ActionDef]:
        """Return the legal actions, which are both told and bound."""
        legal = self._idle.without(legal_actions(self._space, observation))
        legal = legal if self._looks_up else split(legal)[0]
        return without_free_options(legal) if self._profile == "brief" else legal

    @property
    def _chooses(self) -> bool:
        return isinstance(self._style, ChooseStyle) and self._constraint.wanted and self.backend.abilities.choose

    def _asking(self, options: Mapping[str, Action]) -> Style:
        return self._style if options or not isinstance(self._style, ChooseStyle) else self._style.written

    def _stands_in_prompt(self, found: Recollection) -> bool:
        """Return whether a memory is of a step in the conversation, or of the last one, whose result is told."""
        shown = self._conversation.steps_shown | ({self._reported} if self._report else set())
        here = found.kind == "event" and found.world in ("", self.options.game_name)
        return here and found.step in shown - {None} and found.run == getattr(self.memory, "run", "")

    def _tells_what_is_possible(self, observation: Observation, legal: Sequence[ActionDef]) -> bool:
        """Return whether the system message alone does not tell what is legal now, nor does the game's own text."""
        if self.options.complete_turns or self.options.hidden:
            return False
        return observation.available_actions is not None or len(legal) < len(self._space.listed().actions)

    def _show(
        self,
        observation: Observation,
        legal: Sequence[ActionDef],
        phrases: Mapping[str, str],
        options: Mapping[str, Action],
    ) -> tuple[str, str]:
        """Return the message about an observation, and what later requests contain of it."""
        words = self._prompts.words
        seen, explanation = quoted(observation, self._random)
        question = self._asking(options).question(self._prompts)
        brief = self._profile == "brief"
        listed = brief or self._chooses
        missing = not_looked_up(self._space, legal, words) if self._looks_up else ""
        if listed:
            offer = phrased(legal, phrases, options, words)
            question = "\n\n".join(filter(None, (offer, missing, question)))
        elif self.options.complete_turns and missing:
            question = f"{missing}\n\n{question}"
        steps = self._cadence.report(self._prompts, self._untold.left_out)
        news = [event for event in seen.recent_events if not (self._report and event.type == "achievement")]
        events = bullets(event.description for event in news)
        now = only_refusals(replace(seen, recent_events=()))
        told = brief_of(now) if brief else now.to_text()
        if not listed and self._tells_what_is_possible(observation, legal):
            told = f"{told}\n\n{possible_now(self._space, legal, observation, words)}"
        about = "" if self.memory is None else observation.to_text()
        opening = (steps, self._report, f"{words.say('RECENT EVENTS')}:\n{events}" if events else "")
        shown = self._prompts.render(
            "user",
            # Events come first; the rest of the text describes the current state.
            observation="\n\n".join(filter(None, (*opening, told))),
            plan=self._plan,
            memories=recalled(self.memory, about, self.options.recall_tokens, words, self._stands_in_prompt),
            question=f"{explanation}\n\n{question}" if explanation else question,
        )
        changed = "\n".join(filter(None, (*opening, *self._changes(seen), explanation)))
        return shown, changed or words.say("Nothing changed.")

    def _changes(self, seen: Observation) -> list[str]:
        """Return the lines of an observation that differ from those of the last one."""
        before, self._lasting = self._lasting, lasting_of(seen) if self._conversation.keeps else []
        return [line for line in self._lasting if line not in set(before)]


def _always(style: Style) -> StyleFor:
    return lambda abilities, profile, name: style

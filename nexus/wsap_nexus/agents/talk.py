"""Conversations between people and agents, and the agents' diaries."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from wsap_core.errors import WsapError
from wsap_core.factories import build
from wsap_core.host import PluginHost
from wsap_core.references import load_agent_spec
from wsap_core.seams.clock import Clock
from wsap_core.seams.context import Context, derive_seed
from wsap_core.seams.memory import OutlivesRuns
from wsap_core.seams.options import Options
from wsap_core.seams.services import Services
from wsap_core.untrusted import error_line, single_line
from wsap_core.worlds.mailbox import MAX_WAITING
from wsap_llm.decision.speech import Speaks
from wsap_llm.secrets import with_secrets
from wsap_nexus.agents import lore
from wsap_nexus.agents.chronicle import SECONDS, composed, entries, news, session_facts, time_of, write_entry
from wsap_nexus.agents.identity import seat_plan
from wsap_nexus.agents.memory import SavedMemories
from wsap_nexus.agents.messages import HUMAN_SENDER, checked, present
from wsap_nexus.agents.metagoals import pursuits
from wsap_nexus.runs.memory import kind_of, memory_of, take_in
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.record.journal import SeatJournal
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.store import Store
from wsap_nexus.store.entities import AgentIdentity, Answered, DiaryEntry, Exchange, Policy, SessionRecord
from wsap_nexus.store.errors import is_passing
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.events.agents import MessageSent, Talked, Whispered
from wsap_nexus.store.events.sessions import Left
from wsap_nexus.store.nexus_store import NexusStore, Transaction
from wsap_nexus.store.records import NewRun
from wsap_nexus.store.repository import NEXUS

_LOG = logging.getLogger(__name__)
_BY_RULES = " Rules decide for it there, so it can't answer."


def exchanges(
    tx: Transaction, agent_id: str, *, before: int | None = None, after: int = 0, limit: int = 50
) -> list[Exchange]:
    """Return at most `limit` exchanges of people with an agent, newest first, with numbers in (after, before)."""
    return [
        Exchange(event.seq, time_of(event), event.text, event.reply, event.how)
        for event in tx.latest(agent_id, Talked, Whispered, limit=limit, before=before)
        if event.seq > after
    ]


def leave_message(tx: Transaction, agent_id: str, text: str) -> None:
    """Store a message from a person to an agent."""
    tx.add_messages(HUMAN_SENDER, [agent_id], "talk", text, most=MAX_WAITING)
    # Wakes an agent that waits, like any other message.
    tx.note(MessageSent(to=agent_id, form="direct", recipients=1))


def known_facts(tx: Transaction, agent_id: str) -> list[str]:
    """Return facts about an agent, as sentences in the first person."""
    agent = tx.agent(agent_id)
    place = "in the nexus, the place between the worlds"
    if agent.session_id is not None:
        place = f"in {tx.session(agent.session_id).game}, which is paused now"
    facts = [f"I am {single_line(agent.name)}, and I am {place}."]
    facts.append(f"I have made {agent.lifetime_steps} decisions in worlds so far.")
    skills = [f"{domain} {level:.2f}" for domain, level in sorted(tx.skills(agent_id).items())]
    facts.append(f"My skills, from 0 to 1: {', '.join(skills)}." if skills else "I have no skills yet.")
    carried = [single_line(record.item.name) for record in tx.items(agent_id, place="escrow")]
    facts.append(f"I carry {', '.join(carried[:20])}." if carried else "I carry nothing.")
    goals = [f"{p.goal.description} ({p.progress})" for p in pursuits(tx, agent_id, "active")]
    facts += [f"My goals: {'; '.join(single_line(goal) for goal in goals)}."] if goals else []
    facts += [f"I keep in mind: {line}" for line in lore.told(agent)]
    for number, session in enumerate(s for s in tx.sessions(agent_id=agent_id, limit=4) if s.closed):
        told = session_facts(tx, session)
        facts.append(("Most recently, " if number == 0 else "Before that, ") + " ".join(told))
    others = present(tx, agent_id, limit=20)
    facts += [f"Other agents here: {', '.join(others)}."] if others else []
    return facts + [f"News: {event.description}" for event in news(tx, agent_id)[:5] if event.type != "speech"]


def speaking_plans(agent: AgentIdentity, first: Sequence[str]) -> list[SeatPlan]:
    """Return the seat plans of an agent that may be able to speak: those for `first`, and every model."""
    games = [*first, *sorted(g for g, p in agent.policies.items() if p.agent == "llm" and g not in first)]
    plans: list[SeatPlan] = []
    for game in games:
        policy = agent.policies.get(game) or Policy("external")
        if not policy.external:
            plan = seat_plan(agent.id, agent, game, policy.agent)
            plans += [plan] if plan not in plans else []
    return plans


@dataclass(eq=False, kw_only=True)
class AgentTalk:
    """Lets agents answer people and write diaries.

    Args:
        store: records their model calls.
        title: the name of the nexus for models.
        visit_of: returns the run of an agent in the nexus.
        ring: makes an agent in a world check for whispers.
    """

    nexus_store: NexusStore
    store: Store
    host: PluginHost
    services: Services
    clock: Clock
    seed: int
    title: str
    visit_of: Callable[[str], str | None]
    ring: Callable[[str], None]

    async def talk(self, agent_id: str, text: str) -> Answered:
        """Send a person's message to an agent and return its answer.

        Raises:
            UnknownNameError: there is no such agent.
            UsageError: the message is empty or too long.
        """
        text = checked(text)
        with self.nexus_store.look() as tx:
            agent = tx.agent(agent_id)
            facts = known_facts(tx, agent_id)
            session = None if agent.session_id is None else tx.session(agent.session_id)
        policy = agent.policy(NEXUS)
        away = agent.place != "nexus"
        if away or (policy is not None and policy.external):
            how = "will hear it at its next decision" if away else "will find it among its messages"
            silent = "" if not away or await self._has_words(agent, session) else _BY_RULES
            answer = Answered(f"{agent.name} {how}.{silent}", "whisper" if away else "letter")
            with self.nexus_store.change() as tx:
                leave_message(tx, agent_id, text)
                _note_talk(tx, Whispered, agent_id, text, answer)
            self.ring(agent_id)
            return answer
        answer = await self._answer(agent, facts, text)
        with self.nexus_store.change() as tx:
            _note_talk(tx, Talked, agent_id, text, answer)
        return answer

    def diary(self, agent_id: str, *, limit: int = 50) -> list[DiaryEntry]:
        """Return an agent's newest diary entries, newest first; UnknownNameError if there is no such agent."""
        with self.nexus_store.look() as tx:
            tx.agent(agent_id)
            return entries(tx, agent_id, limit=limit)

    async def on_event(self, event: NexusEvent) -> None:
        """Write the diary entry of an ended session; called as the listener `nexus:diary`."""
        if isinstance(event, Left) and event.session_id is not None:
            with self.nexus_store.look() as tx:
                session = tx.session(event.session_id)
            await self._write_diary(session)

    async def _answer(self, agent: AgentIdentity, facts: Sequence[str], text: str) -> Answered:
        hindered = ""
        for plan in speaking_plans(agent, (NEXUS, "*")):
            try:
                words = await self._speak(agent, plan, self._run_for(agent, plan), "talk", facts, text)
            except WsapError as error:
                if is_passing(error):
                    raise
                hindered = f" (I can't answer in my own words now: {error_line(error, 200)})"
                break
            if words:
                return Answered(words, "words")
        rules = f"Rules decide for {agent.name}, so it can't answer. The nexus knows: "
        return Answered(("" if hindered else rules) + " ".join(facts) + hindered, "facts")

    async def _has_words(self, agent: AgentIdentity, session: SessionRecord | None) -> bool:
        """Return whether an agent in a world can answer in words; True if unknown."""
        if session is None:
            return True
        policy = agent.policy(session.game)
        if policy is None or policy.external:  # without a policy, the game's default agent decides
            return policy is not None
        try:
            plan = seat_plan(agent.id, agent, session.game, policy.agent)
            async with self._voice(agent, plan, session.run_id, "talk") as speaker:
                return speaker is not None
        except WsapError:
            return True

    async def _speak(
        self, agent: AgentIdentity, plan: SeatPlan, run_id: str, purpose: str, facts: Sequence[str], said: str = ""
    ) -> str:
        async with self._voice(agent, plan, run_id, purpose) as speaker:
            return "" if speaker is None else await speaker.speak(purpose, facts, said)

    @asynccontextmanager
    async def _voice(
        self, agent: AgentIdentity, plan: SeatPlan, run_id: str, purpose: str
    ) -> AsyncIterator[Speaks | None]:
        """Yield the speaker of an agent, with its memories; None if it can't speak; WsapError if it can't be created.

        Its model calls are recorded for the seat `SEAT:voice`.
        """
        with self.nexus_store.look() as tx:
            number, saved = tx.last_seq(), SavedMemories.from_bytes(tx.memories(agent.id))
        spec = load_agent_spec(plan.agent, self.host)
        if spec.interactive:
            yield None
            return
        journal = SeatJournal(Recorder(self.store.writer, run_id), f"{plan.name}:voice")
        own = Context.create(
            derive_seed(self.seed, purpose, agent.id, number),
            "voice",
            agent.id,
            config=Options(with_secrets(plan.options, os.environ)),
            clock=self.clock,
            services=replace(self.services, journal=journal),
            agent_id=agent.id,
            world=self.title,
        )
        made = build(spec.factory, own)
        try:
            if not isinstance(made, Speaks):
                yield None
                return
            memory = memory_of(made)
            if memory is not None and (kept := saved.of(kind_of(plan, memory)).snapshot):
                take_in(memory, kept, agent.id)
                if isinstance(memory, OutlivesRuns):
                    memory.begin_run("")
            yield made
        finally:
            close = getattr(made, "aclose", None)
            if close is not None:
                await close()

    def _run_for(self, agent: AgentIdentity, plan: SeatPlan) -> str:
        run_id = self.visit_of(agent.id)
        if run_id is None:
            own = RunPlan(NEXUS, (plan,), derive_seed(self.seed, "talk", agent.id))
            new = NewRun(game=NEXUS, agent=plan.agent, seed=own.seed, step_limit=None, config=own.to_config())
            run_id = self.store.repository.create_run(new).id
        return run_id

    async def _write_diary(self, session: SessionRecord) -> None:
        words, hindered = "", ""
        try:
            with self.nexus_store.look() as tx:
                agent, facts = tx.agent(session.agent_id), session_facts(tx, session)
            if session.steps:
                plans = speaking_plans(agent, (session.game, "*", NEXUS))
                async with asyncio.timeout(SECONDS):
                    for plan in plans:
                        words = words or await self._speak(agent, plan, session.run_id, "diary", facts)
        except asyncio.CancelledError:
            hindered = "the nexus was stopped"
        except TimeoutError:
            hindered = f"it took longer than {SECONDS:g} s"
        except Exception as error:  # must not stop the nexus
            if is_passing(error):
                raise
            hindered = str(error)
        with self.nexus_store.change() as tx:
            text = words or composed(tx, session)
            write_entry(tx, session, text, own_words=bool(words), error=hindered)
        if words and session.steps >= lore.LEAST_STEPS:
            await self._look_back(session)

    async def _look_back(self, session: SessionRecord) -> None:
        """Let an agent write anew what it keeps in mind; nothing changes if it can't."""
        with self.nexus_store.look() as tx:
            agent = tx.agent(session.agent_id)
            facts = [*session_facts(tx, session), *(f"I keep in mind: {line}" for line in lore.told(agent))]
        text = ""
        try:
            async with asyncio.timeout(SECONDS):
                for plan in speaking_plans(agent, (session.game, "*", NEXUS)):
                    text = text or await self._speak(agent, plan, session.run_id, "keep", facts)
        except Exception as error:  # must not stop the nexus; another agent may not know this purpose
            if is_passing(error):
                raise
            _LOG.info("%s could not look back at %s: %s", agent.id, session.game, error_line(error, 200))
            return
        memories, ways = lore.read_lines(text)
        if memories or ways:
            with self.nexus_store.change() as tx:
                lore.keep(
                    tx, agent.id, core_memories=memories, strategies=ways, session_id=session.id, game=session.game
                )


def _note_talk(tx: Transaction, kind: type[Talked | Whispered], agent_id: str, text: str, answer: Answered) -> None:
    tx.note(kind(agent_id=agent_id, by=HUMAN_SENDER, text=text, reply=answer.text, how=answer.how))

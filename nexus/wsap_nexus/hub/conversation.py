"""What agents of a nexus say to people, and what they write in their diaries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from wsap_core.errors import WsapError
from wsap_core.seams.context import derive_seed
from wsap_core.untrusted import one_line
from wsap_nexus.agents.chronicle import session_facts
from wsap_nexus.agents.diary import SECONDS, Entry, composed, entries, write_entry
from wsap_nexus.agents.memory import SavedMemories
from wsap_nexus.agents.messages import PERSON
from wsap_nexus.agents.talk import Answer, checked, known_facts, leave_letter
from wsap_nexus.agents.voices import speaking_plans, voice_of
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.place import GAME, NEXUS_SPEC
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.recorder import Recorder
from wsap_nexus.store.book import Book
from wsap_nexus.store.entities import AgentIdentity, SessionRecord
from wsap_nexus.store.events import Left, NexusEvent, Talked, Whispered
from wsap_nexus.store.records import NewRun


class Words:
    """What agents say and write.

    Args:
        context: of the nexus.
        mind: gives what an agent remembers.
        ring: has an agent in a world look for whispers.
    """

    def __init__(self, context: HubContext, mind: Callable[[str], SavedMemories], ring: Callable[[str], None]) -> None:
        self._context = context
        self._mind = mind
        self._ring = ring

    async def talk(self, agent_id: str, text: str) -> Answer:
        """Say something to an agent and return what it answers; see `Answer`.

        Raises:
            UnknownNameError: there is no such agent.
            UsageError: nothing was said, or too much.
        """
        text = checked(text)
        with self._context.ledger.look() as book:
            agent = book.agent(agent_id)
            facts = known_facts(book, agent_id)
        policy = agent.policy(GAME)
        away = agent.place != "nexus"
        if away or (policy is not None and policy.external):
            how = "hears it at its next decision" if away else "finds it among its messages"
            answer = Answer(f"{agent.name} {how}.", "whisper" if away else "letter")
            with self._context.ledger.change() as book:
                leave_letter(book, agent_id, text)
                _note_talk(book, Whispered, agent_id, text, answer)
            self._ring(agent_id)
            return answer
        answer = await self._answer(agent, facts, text)
        with self._context.ledger.change() as book:
            _note_talk(book, Talked, agent_id, text, answer)
        return answer

    def diary(self, agent_id: str, *, before: int | None = None, limit: int = 50) -> list[Entry]:
        """Return an agent's diary, newest first, a page at a time.

        Raises:
            UnknownNameError: there is no such agent.
        """
        with self._context.ledger.look() as book:
            book.agent(agent_id)
            return entries(book, agent_id, before=before, limit=limit)

    async def on_event(self, event: NexusEvent) -> None:
        """Write in the diary of an agent that has left a world: the listener `nexus:diary`."""
        if isinstance(event, Left) and event.session_id is not None:
            with self._context.ledger.look() as book:
                session = book.session(event.session_id)
            await self._write_diary(session)

    async def _answer(self, agent: AgentIdentity, facts: Sequence[str], text: str) -> Answer:
        hindered = ""
        for plan in speaking_plans(agent, (GAME, "*")):
            try:
                words = await self._speak(agent, plan, self._run_for(agent, plan), "talk", facts, text)
            except WsapError as error:
                hindered = f" (In my own words I can't say it now: {one_line(error)[:200]})"
                break
            if words:
                return Answer(words, "words")
        return Answer(" ".join(facts) + hindered, "facts")

    async def _speak(
        self, agent: AgentIdentity, plan: SeatPlan, run_id: str, purpose: str, facts: Sequence[str], said: str = ""
    ) -> str:
        context = self._context
        with context.ledger.look() as book:
            number = book.last_seq()
        voice = voice_of(
            agent,
            plan,
            host=context.host,
            services=context.services,
            clock=context.clock,
            recorder=Recorder(context.store.writer, run_id),
            mind=self._mind(agent.id),
            seed=derive_seed(context.settings.seed, purpose, agent.id, number),
            title=NEXUS_SPEC.display_title,
        )
        async with voice as speaker:
            return "" if speaker is None else await speaker.speak(purpose, facts, said)

    def _run_for(self, agent: AgentIdentity, plan: SeatPlan) -> str:
        """Return the run in which an agent's words are recorded: of its visit, or else one of their own."""
        run_id = self._context.live.visits.get(agent.id)
        if run_id is None:
            own = RunPlan(GAME, (plan,), derive_seed(self._context.settings.seed, "talk", agent.id))
            new = NewRun(game=GAME, agent=plan.agent, seed=own.seed, step_limit=None, config=own.to_config())
            run_id = self._context.store.repository.create_run(new).id
        return run_id

    async def _write_diary(self, session: SessionRecord) -> None:
        """Write an entry about a session: in the agent's words, or else from the log."""
        words, hindered = "", ""
        try:
            with self._context.ledger.look() as book:
                agent, facts = book.agent(session.agent_id), session_facts(book, session)
            if session.steps:
                plans = speaking_plans(agent, (session.game, "*", GAME))
                async with asyncio.timeout(SECONDS):
                    for plan in plans:
                        words = words or await self._speak(agent, plan, session.run_id, "diary", facts)
        except asyncio.CancelledError:
            hindered = "the nexus was stopped"
        except TimeoutError:
            hindered = f"it took longer than {SECONDS:g} s"
        except Exception as error:  # a diary is no reason for anything to end
            hindered = str(error)
        with self._context.ledger.change() as book:
            text = words or composed(book, session)
            write_entry(book, session, text, own_words=bool(words), error=hindered)


def _note_talk(book: Book, kind: type[Talked | Whispered], agent_id: str, text: str, answer: Answer) -> None:
    book.note(kind(agent_id=agent_id, by=PERSON, text=text, reply=answer.text, how=answer.how))

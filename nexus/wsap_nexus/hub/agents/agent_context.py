"""Memories, talk, diaries, whispers and next destinations of agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wsap_core.errors import UnknownNameError, WsapError
from wsap_nexus.agents import messages
from wsap_nexus.agents.memory import AgentMemories, SavedMemories
from wsap_nexus.agents.talk import AgentTalk
from wsap_nexus.hub.agents.place import NEXUS_SPEC
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.listeners import Delivery
from wsap_nexus.hub.lobby import Entrance
from wsap_nexus.hub.transit.leaving import WorldExit
from wsap_nexus.runs.memory import MemorySnapshot
from wsap_nexus.runs.plan import SeatPlan
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.resume import Checkpoint, read_call_events
from wsap_nexus.runs.visitor_seat import (
    EXIT_GAME,
    WHISPER,
    Exit,
    Hearing,
    VisitorSeat,
    read_whispers,
    seat_again,
)
from wsap_nexus.store.entities import EntryRequest, SessionRecord
from wsap_nexus.store.events.sessions import Entered, Left, OnwardRefused, TransferCancelled, VisitStarted
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.store.records import RunStatus
from wsap_nexus.worlds.seats import SeatPort

# Any, in this module: JSON.

DIARIES = 100
"""Diary entries written concurrently."""


class AgentContext:
    """The memories, talk, whispers and diaries of a nexus' agents."""

    def __init__(self, context: HubContext, entrance: Entrance) -> None:
        self._context = context
        self._entrance = entrance
        self._guests: dict[str, VisitorSeat] = {}
        self._memories: dict[str, AgentMemories] = {}
        self._onward: dict[str, str] = {}
        self._looked: set[str] = set()
        self.words = AgentTalk(
            nexus_store=context.nexus_store,
            store=context.store,
            host=context.host,
            services=context.services,
            clock=context.clock,
            seed=context.settings.seed,
            title=NEXUS_SPEC.display_title,
            visit_of=context.live.visits.get,
            ring=self.ring,
        )
        """What agents say and write."""
        self._diary = Delivery(
            context.nexus_store,
            "nexus:diary",
            self.words.on_event,
            kinds=("left",),
            at_once=DIARIES,
            seconds=None,
            new_after="diary",
        )

    def memories(
        self, run_id: str, owners: Mapping[str, str], past: Mapping[str, MemorySnapshot] | None, recorder: Recorder
    ) -> AgentMemories:
        """Return the memories of a run's seats; `owners` maps seats to agents of the nexus."""
        self._memories[run_id] = AgentMemories(self.saved, owners, past, recorder=recorder, run_id=run_id)
        return self._memories[run_id]

    def remembered(self, run_id: str, seat: str) -> bytes | None:
        """Return the current memories of a seat's agent, ready to be stored; None if it has none."""
        memories = self._memories.get(run_id)
        return None if memories is None else memories.remembered(seat)

    def guests(
        self, sessions: Mapping[str, SessionRecord], past: Checkpoint | None, recorder: Recorder
    ) -> Callable[[SeatPort, Mapping[str, Any]], VisitorSeat]:
        """Return a function that wraps the seat of each recorded arrival; `sessions` are the open ones, by seat."""
        whispered = self.whispered(next(iter(sessions.values())).run_id) if past is not None else {}

        def wrap_seat(seat: SeatPort, arrival: Mapping[str, Any]) -> VisitorSeat:
            name = seat.agent_id
            return self.guest(
                seat,
                arrival,
                recorder,
                present=name in sessions,
                hearing=Hearing()
                if past is None
                else Hearing(
                    decision=past.next_decision(name, past.tallies[name].steps),
                    fresh=past.tallies[name].steps,
                    unheard=past.decided(name),
                    whispered=whispered.get(name, {}),
                ),
            )

        return wrap_seat

    def whispered(self, run_id: str) -> dict[str, dict[int, dict[int, str]]]:
        """Return the whispers of a run: seat -> decision -> whispers."""
        logged = self._context.store.repository.read_events(run_id, kinds=(WHISPER,))
        return read_whispers(event.data for event in logged)

    def guest(
        self,
        seat: SeatPort,
        arrival: Mapping[str, Any],
        recorder: Recorder,
        *,
        present: bool,
        hearing: Hearing,
    ) -> VisitorSeat:
        """Return the seat of a recorded arrival; whether its agent is `present` decides only whether it hears more."""
        agent_id = str(arrival["agent"])
        if not present:
            return seat_again(seat, arrival, recorder=recorder, hearing=hearing)
        hearing = replace(
            hearing,
            waiting=lambda: self._whispers(agent_id),
            read=lambda letters: self._mark_read(agent_id, letters),
        )
        self._guests[agent_id] = guest = seat_again(seat, arrival, recorder=recorder, hearing=hearing)
        return guest

    def exit_of(self, agent_id: str) -> Exit | None:
        """Return how an agent left its world by `exit_game`; None if it did not."""
        guest = self._guests.get(agent_id)
        return None if guest is None else guest.exit

    def save_memories(self, tx: Transaction, session: SessionRecord) -> None:
        """Store an agent's memories after a session that ended without an exit."""
        memories = self._memories.get(session.run_id)
        now = None if memories is None else memories.remembered_by(session.agent_id)
        if now is not None:
            tx.save_memories(session.agent_id, now)

    def with_memories(self, world_exit: WorldExit, session: SessionRecord, seat: str) -> WorldExit:
        """Return an exit with the agent's memories and its reason for leaving added."""
        chosen = self.exit_of(session.agent_id)
        details = {} if chosen is None else {"exit_reason": chosen.reason, "destination": chosen.destination}
        return replace(
            world_exit, memories=self.remembered(session.run_id, seat), details={**world_exit.details, **details}
        )

    def gone(self, agent_id: str) -> None:
        """Forget an agent's seat after it has left."""
        self._guests.pop(agent_id, None)

    def over(self, run_id: str) -> None:
        """Forget the memories of a run that has ended."""
        self._memories.pop(run_id, None)

    def came_back(self, session: SessionRecord) -> None:
        """Note where a returned agent wants to go next, if it left for another world."""
        destination = str(session.stats.get("destination") or "")
        if session.reason == "exit_game" and destination:
            self._onward[session.agent_id] = destination

    def go_on(self, agent_id: str) -> None:
        """Send an agent to the destination it left for, if any; a refusal becomes an event that it is shown."""
        destination = self._onward.pop(agent_id, None)
        if agent_id not in self._looked:
            self._looked.add(agent_id)
            destination = destination or self._unfinished(agent_id)
        if not destination:
            return
        try:
            self._entrance.request_enter(agent_id, destination, EntryRequest())
        except WsapError as error:
            if self._context.storage.is_passing(error):
                self._onward[agent_id] = destination
                raise
            with self._context.nexus_store.change() as tx:
                tx.note(OnwardRefused(agent_id=agent_id, destination=destination[:80], why=str(error)[:500]))

    def _unfinished(self, agent_id: str) -> str:
        """Return the destination an agent had when the nexus stopped; empty if none."""
        with self._context.nexus_store.look() as tx:
            sessions = tx.sessions(agent_id=agent_id, limit=1)
            if not sessions or sessions[0].reason != EXIT_GAME.name:
                return ""
            left = tx.latest(agent_id, Left, limit=1)
            since = tx.latest(agent_id, Entered, OnwardRefused, TransferCancelled, limit=1)
        if not left or left[0].session_id != sessions[0].id:
            return ""
        if since and since[0].seq > left[0].seq:
            return ""
        return str(sessions[0].stats.get("destination") or "")

    def earlier_calls(self, agent_id: str, seat: SeatPlan, run_id: str) -> Checkpoint | None:
        """Return the model calls of the agent's last visit if it was interrupted; None otherwise.

        An interrupted visit starts over; repeated model calls are answered from the log and not paid for twice.
        """
        if "model" not in seat.options:
            return None
        with self._context.nexus_store.change() as tx:
            before = tx.latest(agent_id, VisitStarted, limit=1)
            tx.note(VisitStarted(agent_id=agent_id, run=run_id))
        repository = self._context.store.repository
        try:
            earlier = repository.get_run(before[0].run) if before else None
        except UnknownNameError:
            return None  # it was pruned
        if earlier is None or earlier.status in (RunStatus.FINISHED, RunStatus.FAILED):
            return None
        return Checkpoint(calls=read_call_events(repository, earlier.id))

    def end_visit(self, agent_id: str, run_id: str) -> None:
        """Store an agent's memories after a visit."""
        now = self.remembered(run_id, agent_id)
        self._memories.pop(run_id, None)
        if now is not None:
            with self._context.nexus_store.change() as tx:
                tx.save_memories(agent_id, now)

    def start(self) -> None:
        """Start writing diaries, first the entries still missing when the nexus stopped."""
        self._diary.start()

    async def aclose(self) -> None:
        """Stop writing; unfinished entries are compiled from the log."""
        await self._diary.aclose()

    def _whispers(self, agent_id: str) -> dict[int, str]:
        with self._context.nexus_store.look() as tx:
            return {
                letter.id: letter.message.content
                for letter in messages.inbox(tx, agent_id, sender=messages.HUMAN_SENDER)
            }

    def _mark_read(self, agent_id: str, ids: Sequence[int]) -> None:
        with self._context.nexus_store.change() as tx:
            messages.mark_read(tx, agent_id, ids)

    def ring(self, agent_id: str) -> None:
        """Make an agent in a world check for whispers at its next decision."""
        if (guest := self._guests.get(agent_id)) is not None:
            guest.ring()

    def saved(self, agent_id: str) -> SavedMemories:
        """Return an agent's saved memories; StorageError if they are damaged."""
        with self._context.nexus_store.look() as tx:
            return SavedMemories.from_bytes(tx.memories(agent_id))

"""What makes agents live: what they perceive in the nexus and can ask for there, remember, say and write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wsap_core.errors import UnknownNameError, UsageError, WsapError
from wsap_core.protocol import AvatarState
from wsap_core.untrusted import single_line
from wsap_nexus.agents import messages, metagoals
from wsap_nexus.agents.chronicle import latest, news, ways_back
from wsap_nexus.agents.memory import AgentMemories, SavedMemories
from wsap_nexus.agents.skills import GameEntry, suggestions
from wsap_nexus.agents.talk import AgentTalk
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.leaving import WorldExit
from wsap_nexus.hub.listeners import Delivery
from wsap_nexus.hub.lobby import Entrance
from wsap_nexus.hub.place import NEXUS_SPEC, NexusState
from wsap_nexus.hub.visitor_seat import EXIT_GAME, WHISPER, Exit, VisitorSeat, Whispers, read_whispers
from wsap_nexus.runs.memory import MemorySnapshot
from wsap_nexus.runs.plan import SeatPlan
from wsap_nexus.runs.recorder import Recorder
from wsap_nexus.runs.resume import Checkpoint, read_call_events
from wsap_nexus.store.entities import AvatarRecord, EntryRequest, SessionRecord
from wsap_nexus.store.events.sessions import Entered, Left, OnwardRefused, TransferCancelled, VisitStarted
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.store.records import RunStatus
from wsap_nexus.worlds.seats import SeatPort

# Any, in this module: parameters of actions, and statistics as JSON.


DIARIES = 100
"""Entries of diaries that are written at a time."""


class AgentContext:
    """The inner side of a nexus: a `Desk` for the agents in it, and their memories, words and diaries."""

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
            saved=self.saved,
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

    # --- the desk: what agents in the nexus ask for -----------------------------------------------

    def surroundings(self, agent_id: str) -> NexusState:
        """Return what an agent in the nexus perceives."""
        infos = self._entrance.games()
        with self._context.nexus_store.look() as tx:
            agent = tx.agent(agent_id)
            skills = tx.skills(agent_id)
            sessions = tx.sessions(agent_id=agent_id, limit=5)
            visits, bodies = tx.visits(agent_id), tx.avatars(agent_id)
            worlds = [
                GameEntry(
                    info.id,
                    info.name,
                    info.description,
                    info.status,
                    info.active_agents,
                    info.capacity,
                    visits.get(info.id, 0),
                    _told_bodies([body for body in bodies if body.game == info.id]),
                )
                for info in infos
            ]
            pursuits = metagoals.pursuits(tx, agent_id, "active")
            return NexusState(
                agent,
                skills,
                [record.item.name for record in tx.items(agent_id, place="escrow")],
                [f"{row.name} ({row.game})" for row in tx.achievements(agent_id)],
                worlds,
                suggestions(
                    worlds, infos, skills=skills, pursuits=pursuits, sessions=sessions, specs=self._entrance.specs()
                ),
                sessions,
                messages.present(tx, agent_id),
                [pursuit.to_goal() for pursuit in pursuits],
                news(tx, agent_id),
                messages.inbox(tx, agent_id),
                messages.team_of(tx, agent_id),
            )

    def game_details(self, agent_id: str, game: str) -> str:
        """Return what there is to know of a game, for this agent; UnknownNameError if there is no such game."""
        info = self._entrance.game_info(game)
        spec = self._entrance.specs()[game]
        with self._context.nexus_store.look() as tx:
            bodies, dead = tx.avatars(agent_id, game), ways_back(tx, agent_id, game)
            skills = tx.skills(agent_id)
        parts = [
            f"{info.name}: {info.description} Genre: {info.genre or 'unknown'}. Seats: {info.capacity}.",
            f"Skills used there: {', '.join(info.skill_domains) or 'none declared'}. It is {info.status}.",
        ]
        for rule in spec.transfer_rules:
            met = "you have it" if skills.get(rule.domain, 0.0) >= rule.threshold else f"from {rule.threshold:g} on"
            parts.append(f"{rule.domain} is worth {rule.description or rule.bonus.name} there ({met}).")
        for body in bodies:
            avatar = body.avatar
            way = f" {dead.get(avatar.avatar_id, '')}" if avatar.state is AvatarState.DESTROYED else ""
            parts.append(f"Your body {avatar.avatar_id} in {body.world_id} is {avatar.state.value}.{way}")
        return single_line(" ".join(parts))

    def request_enter(self, agent_id: str, game: str, terms: EntryRequest) -> str:
        """Prepare the agent's way into a game."""
        return self._entrance.request_enter(agent_id, game, terms)

    async def wait(self, agent_id: str, seconds: float) -> bool:
        """Wait for some seconds, or until a message comes or a world stands otherwise."""
        return await self._context.wakeups.wait(agent_id, min(max(seconds, 0.0), 600.0))

    def say(self, agent_id: str, kind: str, text: str, to: str | None) -> str:
        """Send a message to others."""
        with self._context.nexus_store.change() as tx:
            hearers = messages.send(tx, agent_id, kind, text, to=to)
        return f"{len(hearers)} will hear it." if kind != "direct" else f"{to} will hear it."

    def mark_read(self, agent_id: str, ids: Sequence[int]) -> None:
        """Take messages as read."""
        with self._context.nexus_store.change() as tx:
            messages.mark_read(tx, agent_id, ids)

    def set_goal(self, agent_id: str, wanted: Mapping[str, Any]) -> str:
        """Give the agent a meta-goal: a template by its name, or one in its own terms."""
        name = str(wanted["goal"]).strip()
        goal = metagoals.TEMPLATES.get(name)
        if goal is not None and wanted.get("about"):
            raise UsageError(f"{name!r} is a goal that there is already; take another name for your own.")
        if goal is None:
            if not wanted.get("about"):
                known = "; ".join(f"{g.id} ({g.description})" for g in metagoals.TEMPLATES.values())
                raise UsageError(
                    f"There is no goal {name[:60]!r}. There are: {known}. For your own, say what it is about."
                )
            about, count = str(wanted["about"]), float(wanted.get("count") or 1)
            goal = metagoals.own_goal(
                name if name.isidentifier() and name.islower() else "",
                name,
                about,
                what=str(wanted.get("what") or ""),
                count=count / 100 if about == "reach_skill_level" else count,
                games=str(wanted.get("games") or "any"),
                worlds=int(wanted.get("worlds") or 0),
            )
            if goal.id in metagoals.TEMPLATES:
                raise UsageError(f"{goal.id!r} is a goal that there is already; take another name for your own.")
        with self._context.nexus_store.change() as tx:
            pursuit = metagoals.set_goal(tx, agent_id, goal, [info.id for info in self._entrance.games()])
        state = "you have reached it already" if pursuit.state == "reached" else f"so far {pursuit.progress}"
        return f"Your goal {goal.id!r}: {goal.description}; {state}."

    def abandon_goal(self, agent_id: str, goal: str) -> str:
        """Take a meta-goal from the agent."""
        with self._context.nexus_store.change() as tx:
            metagoals.abandon_goal(tx, agent_id, goal)
        return f"You have given up {goal!r}."

    # --- playing ----------------------------------------------------------------------------------

    def memories(
        self, run_id: str, owners: Mapping[str, str], past: Mapping[str, MemorySnapshot] | None, recorder: Recorder
    ) -> AgentMemories:
        """Return the memories of a run's seats; `owners` says which agent of the nexus sits in which."""
        self._memories[run_id] = AgentMemories(self.saved, owners, past, recorder=recorder, run_id=run_id)
        return self._memories[run_id]

    def remembered(self, run_id: str, seat: str) -> bytes | None:
        """Return what a seat's agent remembers now, for its row."""
        memories = self._memories.get(run_id)
        return None if memories is None else memories.remembered(seat)

    def guests(
        self, sessions: Mapping[str, SessionRecord], past: Checkpoint | None, recorder: Recorder
    ) -> Callable[[str, SeatPort], SeatPort]:
        """Return what puts the agents of open sessions, by seat, into their seats.

        Args:
            sessions: the open sessions, by seat.
            past: what was recorded before, for a session that is resumed.
        """
        whispered = self.whispered(next(iter(sessions.values())).run_id) if past is not None else {}

        def wrap_seat(name: str, seat: SeatPort) -> SeatPort:
            session = sessions.get(name)
            if session is None:  # whoever sat there has left
                return VisitorSeat(seat)
            return self.guest(
                session,
                seat,
                recorder,
                decision=0 if past is None else past.next_decision(name, past.tallies[name].steps),
                fresh=0 if past is None else past.tallies[name].steps,
                unheard=0 if past is None else past.decided(name),
                whispered=whispered.get(name),
            )

        return wrap_seat

    def whispered(self, run_id: str) -> dict[str, dict[int, dict[int, str]]]:
        """Return what was whispered in a run: seat -> decision -> whispers."""
        logged = self._context.store.repository.read_events(run_id, kinds=(WHISPER,))
        return read_whispers(event.data for event in logged)

    def guest(
        self, session: SessionRecord, seat: SeatPort, recorder: Recorder, *, decision: int, fresh: int, unheard: int,
        whispered: Mapping[int, Whispers] | None = None,
    ) -> VisitorSeat:  # fmt: skip
        """Return the seat of an agent in a world, with what it has to do with besides; see `VisitorSeat`."""
        agent_id = session.agent_id
        self._guests[agent_id] = guest = VisitorSeat(
            seat,
            goals=session.terms.goals,
            recorder=recorder,
            decision=decision,
            fresh=fresh,
            unheard=unheard,
            whispered=whispered,
            waiting=lambda: self._whispers(agent_id),
            read=lambda ids: self.mark_read(agent_id, ids),
        )
        return guest

    def exit_of(self, agent_id: str) -> Exit | None:
        """Return how an agent left its world, if it did so by `exit_game`."""
        guest = self._guests.get(agent_id)
        return None if guest is None else guest.exit

    def save_memories(self, tx: Transaction, session: SessionRecord) -> None:
        """Keep what an agent remembers of a stay that ended without a departure."""
        memories = self._memories.get(session.run_id)
        now = None if memories is None else memories.remembered_by(session.agent_id)
        if now is not None:
            tx.save_memories(session.agent_id, now)

    def with_memories(self, world_exit: WorldExit, session: SessionRecord, seat: str) -> WorldExit:
        """Return a departure with what the agent remembers, and with how it left."""
        way = self.exit_of(session.agent_id)
        told = {} if way is None else {"exit_reason": way.reason, "destination": way.destination}
        return replace(
            world_exit, memories=self.remembered(session.run_id, seat), details={**world_exit.details, **told}
        )

    def gone(self, agent_id: str) -> None:
        """Forget a seat that is empty now."""
        self._guests.pop(agent_id, None)

    def over(self, run_id: str) -> None:
        """Forget a run that nobody plays any more."""
        self._memories.pop(run_id, None)

    def came_back(self, session: SessionRecord) -> None:
        """Take in that an agent is back: it may go straight on."""
        destination = str(session.stats.get("destination") or "")
        if session.reason == "exit_game" and destination:
            self._onward[session.agent_id] = destination

    def go_on(self, agent_id: str) -> None:
        """Send an agent straight on to where it wanted to go, if it did; what hinders that is told as news."""
        destination = self._onward.pop(agent_id, None)
        if agent_id not in self._looked:
            self._looked.add(agent_id)
            destination = destination or self._unfinished(agent_id)
        if not destination:
            return
        try:
            self._entrance.request_enter(agent_id, destination, EntryRequest())
        except WsapError as error:
            with self._context.nexus_store.change() as tx:
                tx.note(OnwardRefused(agent_id=agent_id, destination=destination[:80], why=str(error)[:500]))

    def _unfinished(self, agent_id: str) -> str:
        """Return where an agent wanted to go straight on to when the nexus ended, empty if nowhere."""
        with self._context.nexus_store.look() as tx:
            sessions = tx.sessions(agent_id=agent_id, limit=1)
            if not sessions or sessions[0].reason != EXIT_GAME.name:
                return ""
            left = latest(tx, agent_id, Left, limit=1)
            since = latest(tx, agent_id, Entered, OnwardRefused, TransferCancelled, limit=1)
        if not left or left[0].session_id != sessions[0].id:
            return ""
        if since and since[0].seq > left[0].seq:
            return ""
        return str(sessions[0].stats.get("destination") or "")

    def earlier_calls(self, agent_id: str, seat: SeatPlan, run_id: str) -> Checkpoint | None:
        """Return what the agent's last visit asked of models, if that was cut short; None otherwise.

        A visit that was cut short begins anew. What it asked, and asks again, is not bought twice.
        """
        if "model" not in seat.options:
            return None
        with self._context.nexus_store.change() as tx:
            before = latest(tx, agent_id, VisitStarted, limit=1)
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
        """Keep what an agent remembers of a visit."""
        now = self.remembered(run_id, agent_id)
        self._memories.pop(run_id, None)
        if now is not None:
            with self._context.nexus_store.change() as tx:
                tx.save_memories(agent_id, now)

    def start(self) -> None:
        """Write diaries from now on, those first that were not written when the nexus ended."""
        self._diary.start()

    async def aclose(self) -> None:
        """End what is being written: entries that are not done are put together from the log."""
        await self._diary.aclose()

    def _whispers(self, agent_id: str) -> dict[int, str]:
        with self._context.nexus_store.look() as tx:
            return {
                letter.id: letter.message.content
                for letter in messages.inbox(tx, agent_id, sender=messages.HUMAN_SENDER)
            }

    def ring(self, agent_id: str) -> None:
        """Have an agent in a world look for whispers at its next decision."""
        if (guest := self._guests.get(agent_id)) is not None:
            guest.ring()

    def saved(self, agent_id: str) -> SavedMemories:
        """Return what an agent remembers, as it was saved; StorageError if it is damaged."""
        with self._context.nexus_store.look() as tx:
            return SavedMemories.from_bytes(tx.memories(agent_id))


def _told_bodies(bodies: Sequence[AvatarRecord]) -> list[str]:
    """Return an agent's bodies in a game as they are shown, those that live first."""
    ordered = sorted(bodies, key=lambda body: body.avatar.state is AvatarState.DESTROYED)
    return [f"{body.avatar.avatar_id} ({body.avatar.state.value})" for body in ordered[:10]]

"""Checks of agents: declared actions, unchanged observations, one life per seed, snapshots."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from wsap_check.play import Table, settle
from wsap_check.raised import describe
from wsap_check.steps import fresh_text, text_of
from wsap_check.subject import Notes, NothingToCheck, Subject, check
from wsap_core.errors import SnapshotError
from wsap_core.factories import build
from wsap_core.protocol import Action, Observation
from wsap_core.seams.context import Context
from wsap_core.seams.game import Snapshots
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_core.worlds import Seat
from wsap_core.worlds.legality import check_action, index_actions


@dataclass(frozen=True)
class AgentSubject:
    """An agent under check, and the world it is put into."""

    kind: ClassVar[str] = "agent"
    spec: AgentSpec
    game: AdapterSpec
    """A world that it can play."""
    seed: int = 0
    steps: int = 50
    config: Mapping[str, Any] = field(default_factory=dict)
    """Options for the agent. Any: as the user gave them."""
    patience: float = 30.0
    """Seconds that it may take over one decision."""

    def can(self, ability: str) -> bool:
        """Return whether the agent declares an ability."""
        return ability in self.spec.abilities

    def world(self) -> Subject:
        """Return the world as a subject."""
        return Subject(self.game, self.seed, self.steps, patience=self.patience)

    def agent(self) -> Any:
        """Return a fresh agent (Any: whatever the author made)."""
        return build(self.spec.factory, Context.create(self.seed, "agent", config=self.config, agent_id="agent"))


class _Session:
    """An agent in the first seat of a world; copies of it, or nobody, in the others."""

    def __init__(self, subject: AgentSubject, table: Table) -> None:
        self.subject = subject
        self.table = table
        self.agents = {seat.agent_id: subject.agent() for seat in table.seats}

    @classmethod
    async def begin(cls, subject: AgentSubject) -> _Session:
        session = cls(subject, await Table(subject.world()).begin())
        for seat in session.table.seats:
            agent = session.agents[seat.agent_id]
            await settle(agent.initialize(seat.game_description, seat.action_space), subject.world())
        return session

    async def play(self, steps: int, notes: Notes | None = None) -> list[str]:
        """Let the agents play in turn, one round after another, and return what the first one did.

        Args:
            steps: how many rounds.
            notes: where to write what is wrong with decisions; nobody asks when None.
        """
        done: list[str] = []

        async def choose(seat: Seat, observation: Observation) -> Action:
            return await self.decide(seat, observation, done, notes)

        for _ in range(steps):
            if self.table.over:
                break
            await self.table.play(choose, len(self.table.seats))
        return done

    async def decide(self, seat: Seat, observation: Observation, done: list[str], notes: Notes | None) -> Action:
        """Return a seat's decision, and look at it if somebody wants to know."""
        before = fresh_text(observation) if notes else ""
        decision: Any = self.agents[seat.agent_id].decide(observation)
        if inspect.isawaitable(decision):
            decision = await asyncio.wait_for(decision, self.subject.patience)
        if not isinstance(decision, Action):
            if notes:
                notes.error(f"decide() returned a {type(decision).__name__}, not an Action.", self.table.where())
            raise NothingToCheck("it does not return actions, see `agent-decisions`")
        if notes and fresh_text(observation) != before:
            notes.error("decide() changed the observation that it was given.", self.table.where(), about="mutation")
        if notes and (reason := check_action(decision, index_actions(seat.action_space))[1]):
            notes.error(f"It chose an action that is not declared so: {reason}", self.table.where(), about="undeclared")
        if seat is self.table.seat:
            done.append(text_of(decision))
        return decision


@check()
async def agent_members(notes: Notes, subject: AgentSubject) -> None:
    """The four members exist, and so does everything declared."""
    agent = subject.agent()
    for name in ("initialize", "decide", "reflect", "plan"):
        if not callable(getattr(agent, name, None)):
            notes.error(f"There is no {name}(); an agent has initialize, decide, reflect and plan.")
    there = all(callable(getattr(agent, name, None)) for name in ("snapshot", "restore"))
    if subject.can("snapshot") and not there:
        notes.error("The ability 'snapshot' is declared, but there is no snapshot and restore.")
    elif there and not subject.can("snapshot"):
        notes.warn("It has snapshot and restore, but the ability 'snapshot' is not declared.")
    if callable(getattr(agent, "plan", None)):
        plan: Any = await settle(agent.plan([]), subject.world())
        if not isinstance(plan, list | tuple) or not all(isinstance(line, str) for line in plan):
            notes.error(f"plan() returned {plan!r:.80}; it returns a list of texts.")


@check()
async def agent_decisions(notes: Notes, subject: AgentSubject) -> None:
    """Every decision is a declared action, and the observation stays unchanged."""
    session = await _Session.begin(subject)
    if not await session.play(subject.steps, notes):
        notes.error("It did nothing.")


@check()
async def agent_reflection(notes: Notes, subject: AgentSubject) -> None:
    """reflect() takes any result and leaves it unchanged."""
    session = await _Session.begin(subject)
    table = session.table
    agent = session.agents[table.seat.agent_id]
    for _ in range(min(10, subject.steps)):
        trace = await table.play(lambda seat, o: session.decide(seat, o, [], None), len(table.seats))
        for step in trace:
            if step.seat == table.seat.agent_id:
                before = fresh_text(step.result)
                await settle(agent.reflect(step.result), subject.world())
                if fresh_text(step.result) != before:
                    notes.error("reflect() changed the result that it was given.", step.where, about="mutation")
        if table.over:
            break


@check("seed")
async def agent_seed(notes: Notes, subject: AgentSubject) -> None:
    """The same seed gives the same decisions."""
    one = await (await _Session.begin(subject)).play(subject.steps)
    other = await (await _Session.begin(subject)).play(subject.steps)
    if one != other:
        at = next(i for i in range(max(len(one), len(other))) if one[i : i + 1] != other[i : i + 1])
        notes.error(f"With the same seed it decided differently at step {at}.")


@check("snapshot")
async def agent_snapshot(notes: Notes, subject: AgentSubject) -> None:
    """An agent restored from a snapshot continues identically."""
    session = await _Session.begin(subject)
    await session.play(max(1, min(5, subject.steps // 4)))
    if session.table.over or not session.table.world.can_snapshot:
        raise NothingToCheck("the world it plays in has no snapshots, or is over at once")
    again = await _Session.begin(subject)
    for name, agent in session.agents.items():
        saved: Any = cast(Snapshots, agent).snapshot()
        if not isinstance(saved, bytes):
            notes.error(f"snapshot() returned a {type(saved).__name__}, not bytes.")
            return
        again.agents[name].restore(saved)
    again.table.world.restore(session.table.world.snapshot())
    one = await session.play(subject.steps)
    other = await again.play(subject.steps)
    if one != other:
        notes.error("An agent restored from a snapshot decides differently.")
    if cast(Snapshots, session.agents[session.table.seat.agent_id]).snapshot():
        _refuse_garbage(notes, again.agents[again.table.seat.agent_id])


def _refuse_garbage(notes: Notes, agent: Snapshots) -> None:
    before = agent.snapshot()
    for data in (b"", b"\xff\xfenonsense", b"{}", b"null"):
        try:
            agent.restore(data)
        except SnapshotError:
            if agent.snapshot() != before:
                notes.error("A refused snapshot changed the agent.", about="changed")
        except Exception as error:
            notes.error(f"{describe(error)}, not SnapshotError.", about="raised")
        else:
            notes.error(f"restore() took {data!r} for a snapshot.", about="took")
            agent.restore(before)

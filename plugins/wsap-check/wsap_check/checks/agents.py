"""Checks of agents: declared actions, unchanged observations, determinism, snapshots."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from wsap_check.checks.trajectory import first_different
from wsap_check.play import Table, settle
from wsap_check.raised import describe
from wsap_check.steps import fresh_text, text_of
from wsap_check.subject import Notes, NothingToCheck, Subject, check
from wsap_core.errors import SnapshotError
from wsap_core.factories import build
from wsap_core.protocol import Action, Observation
from wsap_core.seams.context import Context
from wsap_core.seams.game import Snapshots, has_methods
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_core.worlds import Seat
from wsap_core.worlds.legality import check_action, index_actions


@dataclass(frozen=True)
class AgentSubject:
    """An agent under check; see `run_agent_checks` for the fields."""

    kind: ClassVar[str] = "agent"
    spec: AgentSpec
    game: AdapterSpec
    seed: int = 0
    steps: int = 50
    config: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 120.0
    """Most seconds of one check."""
    patience: float = 30.0
    """Timeout of a decision, in seconds."""

    def can(self, ability: str) -> bool:
        """Return whether the agent declares an ability."""
        return ability in self.spec.abilities

    def world(self) -> Subject:
        """Return the game as a subject."""
        return Subject(self.game, self.seed, self.steps, patience=self.patience)

    def agent(self) -> Any:
        """Return a fresh agent."""
        return build(self.spec.factory, Context.create(self.seed, "agent", config=self.config, agent_id="agent"))


class _Session:
    """A world with an agent in the first seat and copies of it in the others; `notes` collects wrong decisions."""

    def __init__(self, subject: AgentSubject, notes: Notes | None = None) -> None:
        self.subject, self.notes = subject, notes
        self.table = Table(subject.world())
        self.agents = {seat.agent_id: subject.agent() for seat in self.table.seats}
        self.done: list[str] = []
        """The actions of the first agent."""

    async def begin(self) -> _Session:
        await self.table.begin()
        for seat in self.table.seats:
            agent = self.agents[seat.agent_id]
            await settle(agent.initialize(seat.game_description, seat.action_space), self.table.subject)
        return self

    @property
    def agent(self) -> Any:
        return self.agents[self.table.seat.agent_id]

    async def play(self, rounds: int) -> list[str]:
        """Let the agents play, and return the actions of the first one."""
        before = len(self.done)
        for _ in range(rounds):
            if self.table.over:
                break
            await self.table.play(self.decide, len(self.table.seats))
        return self.done[before:]

    async def decide(self, seat: Seat, observation: Observation) -> Action:
        notes, table, before = self.notes, self.table, fresh_text(observation)
        decision: Any = self.agents[seat.agent_id].decide(observation)
        if inspect.isawaitable(decision):
            decision = await asyncio.wait_for(decision, self.subject.patience)
        if not isinstance(decision, Action):
            if notes:
                notes.error(f"decide() returned a {type(decision).__name__}, not an Action.", table.where())
            raise NothingToCheck("it does not return actions, see `agent-decisions`")
        if notes:
            same = fresh_text(observation) == before
            notes.expect(same, "decide() changed the observation that it was given.", table.where(), "mutation")
            reason = check_action(decision, index_actions(seat.action_space))[1]
            undeclared = f"It chose an undeclared action: {reason}"
            notes.expect(not reason, undeclared, table.where(), "undeclared")
        if seat is table.seat:
            self.done.append(text_of(decision))
        return decision


@check()
async def agent_members(notes: Notes, subject: AgentSubject) -> None:
    """The four members and all declared abilities exist."""
    agent = subject.agent()
    for name in ("initialize", "decide", "reflect", "plan"):
        there = callable(getattr(agent, name, None))
        notes.expect(there, f"There is no {name}(); an agent has initialize, decide, reflect and plan.")
    there = has_methods(agent, "snapshot")
    if subject.can("snapshot") and not there:
        notes.error("The ability 'snapshot' is declared, but there is no snapshot and restore.")
    elif there and not subject.can("snapshot"):
        notes.warn("It has snapshot and restore, but the ability 'snapshot' is not declared.")
    if callable(getattr(agent, "plan", None)):
        plan: Any = await settle(agent.plan([]), subject.world())
        texts = isinstance(plan, list | tuple) and all(isinstance(line, str) for line in plan)
        notes.expect(texts, f"plan() returned {plan!r:.80}; it must return a list of texts.")


@check()
async def agent_decisions(notes: Notes, subject: AgentSubject) -> None:
    """Every decision is a declared action, and the observation stays unchanged."""
    session = await _Session(subject, notes).begin()
    notes.expect(await session.play(subject.steps), "It did nothing.")


@check()
async def agent_reflection(notes: Notes, subject: AgentSubject) -> None:
    """reflect() accepts any result and leaves it unchanged."""
    session = await _Session(subject).begin()
    table = session.table
    for _ in range(min(10, subject.steps)):
        for step in await table.play(session.decide, len(table.seats)):
            if step.seat == table.seat.agent_id:
                before = fresh_text(step.result)
                await settle(session.agent.reflect(step.result), subject.world())
                same = fresh_text(step.result) == before
                notes.expect(same, "reflect() changed the result that it was given.", step, "mutation")
        if table.over:
            break


@check("seed")
async def agent_seed(notes: Notes, subject: AgentSubject) -> None:
    """The same seed gives the same decisions."""
    one, other = [await (await _Session(subject).begin()).play(subject.steps) for _ in range(2)]
    at = first_different(one, other)
    notes.expect(at is None, f"With the same seed it decided differently at step {at}.")


@check("snapshot")
async def agent_snapshot(notes: Notes, subject: AgentSubject) -> None:
    """An agent restored from a snapshot continues identically."""
    session = await _Session(subject).begin()
    await session.play(max(1, min(5, subject.steps // 4)))
    if session.table.over or not session.table.world.can_snapshot:
        raise NothingToCheck("its world has no snapshots, or is over at once")
    again = await _Session(subject).begin()
    for name, agent in session.agents.items():
        saved: Any = cast(Snapshots, agent).snapshot()
        if not notes.expect(isinstance(saved, bytes), f"snapshot() returned a {type(saved).__name__}, not bytes."):
            return
        again.agents[name].restore(saved)
    again.table.world.restore(session.table.world.snapshot())
    one, other = [await each.play(subject.steps) for each in (session, again)]
    notes.expect(one == other, "An agent restored from a snapshot decides differently.")
    if session.agent.snapshot():
        _refuse_garbage(notes, again.agent)


def _refuse_garbage(notes: Notes, agent: Snapshots) -> None:
    before = agent.snapshot()
    for data in (b"", b"\xff\xfenonsense", b"{}", b"null"):
        try:
            agent.restore(data)
        except SnapshotError:
            notes.expect(agent.snapshot() == before, "A refused snapshot changed the agent.", about="changed")
        except Exception as error:
            notes.error(f"{describe(error)}, not SnapshotError.", about="raised")
        else:
            notes.error(f"restore() accepted {data!r} as a snapshot.", about="took")
            agent.restore(before)

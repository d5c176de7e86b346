"""The seats of a world: the decider of each, and the venue of a nexus run."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import override

from wsap_core.protocol.wire import encode
from wsap_core.references import load_agent_spec
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_nexus.agents.identity import seat_plan
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.outside.external import ExternalAgent
from wsap_nexus.hub.transit.entering import PreparedEntry, WorldEntry, entry_seed
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.play.recorded_agent import GONE
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.record.world_calls import JournalledModels, WorldJournal
from wsap_nexus.runs.venue import Venue
from wsap_nexus.runs.visitor_seat import seat_again
from wsap_nexus.store.entities import EXTERNAL
from wsap_nexus.store.events.endings import SILENT
from wsap_nexus.worlds.port import LocalWorld, WorldPort, let_in_again
from wsap_nexus.worlds.seats import SeatPort


def run_plan(context: HubContext, entries: Sequence[PreparedEntry], names: Sequence[str], spec: AdapterSpec) -> RunPlan:
    """Return the plan of a run that agents enter together."""
    seats = []
    with context.nexus_store.look() as tx:
        for number, name in enumerate(names):
            agent = tx.agent(entries[number].agent_id) if number < len(entries) else None
            seats.append(seat_plan(name, agent, spec.name, spec.default_agent))
    seed = entry_seed(context.settings.seed, entries[0])
    steps, every = entries[0].terms.steps, context.settings.snapshot_every
    return RunPlan(spec.name, tuple(seats), seed, steps, {}, every, irreversible="irreversible" in spec.abilities)


def deciders_for(
    context: HubContext, plan: RunPlan, agents: Mapping[str, str], gone: Collection[str] = ()
) -> dict[str, AgentSpec]:
    """Return the decider of each seat; `agents` maps seats to agents of the nexus, and those of `gone` have left."""
    deadline = patience_with(context.catalog.spec(plan.game), context.settings.patience)
    # A seat that no agent of the nexus has taken gets an id in parentheses, which none can have.
    return {
        s.name: GONE if s.name in gone else decider(context, agents.get(s.name, f"({s.name})"), s.agent, deadline)
        for s in plan.seats
    }


def patience_with(spec: AdapterSpec, patience: float) -> float | None:
    """Return the seconds that a client has for a decision: the game's deadline, or `patience` where others wait for it.

    None for a world of its own: a client may come back to that at any time.
    """
    waited_for = "lives" in spec.abilities or spec.seats[1] > 1
    return spec.deadline if spec.deadline is not None or not waited_for else patience


def within_reason(spec: AdapterSpec, most: float) -> AdapterSpec:
    """Return the spec of a world in which no seat's agent decides without a deadline, if others wait for it."""
    return replace(spec, deadline=patience_with(spec, most))


def decider(context: HubContext, agent_id: str, agent: str, deadline: float | None = None) -> AgentSpec:
    """Return an agent's decider by name; UnknownNameError if there is none, PluginError if it can't be loaded."""
    if agent != EXTERNAL.agent:
        return load_agent_spec(agent, context.host)

    def let_go() -> bool:
        stay = context.live.sessions.get(agent_id)
        if stay is None:
            return False
        # At once: this decision follows everything that is recorded.
        stay.stop(stay.stopped or SILENT, at_once=True)
        return True

    def create() -> ExternalAgent:
        context.live.external[agent_id] = ExternalAgent(deadline, let_go)
        return context.live.external[agent_id]

    # Interactive: the client is not asked while recorded steps are replayed.
    return AgentSpec(agent, "An external client decides.", create, interactive=True)


def seat_names(entries: Sequence[PreparedEntry], spec: AdapterSpec) -> list[str]:
    """Return the names of a world's seats for arriving agents; a single seat has its agent's id."""
    if spec.seats[1] == 1:
        return [entries[0].agent_id]
    return list(spec.names_of_seats(max(len(entries), spec.seats[0])))


START = "start"
"""The kind of the first event in a session's run."""


def arrival_body(arrived: WorldEntry, games: Sequence[str]) -> dict[str, Any]:
    """Return what is recorded of an arrival, to let the agent in and to seat it again; `games` are those it can go on
    to. Any: JSON."""
    return {
        "agent": arrived.prepared.agent_id,
        "avatar": arrived.avatar.avatar_id,
        "wanted": encode(arrived.wanted),
        "entry": encode(arrived.entry),
        "receipt": encode(arrived.receipt),
        "goals": list(arrived.prepared.terms.goals),
        "destinations": list(games),
    }


def record_start(recorder: Recorder, arrivals: Mapping[str, Mapping[str, Any]], world: bytes | None) -> None:
    """Record the start of a session, so that it can be replayed: the world's state, and the arrivals by seat."""
    recorder.write(
        START,
        {
            "world": None if world is None else base64.b64encode(world).decode("ascii"),
            "arrivals": [{"seat": seat, **body} for seat, body in arrivals.items()],
        },
    )


class KeptVenue(Venue):
    """A world of the nexus with its seats.

    Args:
        seats: the open seats of agents that have just arrived; None to start again from `start`.
        arrivals: the bodies of these agents' arrivals, as recorded, by seat.
        start: the body of the event `start` of a resumed session.
        wrap_seat: wraps a seat of the world for the agent of a recorded arrival.
    """

    def __init__(
        self,
        port: WorldPort,
        *,
        seed: int,
        seats: Mapping[str, SeatPort] | None = None,
        arrivals: Mapping[str, Mapping[str, Any]] | None = None,
        start: bytes | None = None,
        wrap_seat: Callable[[SeatPort, Mapping[str, Any]], SeatPort] = seat_again,
    ) -> None:
        # Any: the event's JSON.
        self.port = port
        self._wrap_seat = wrap_seat
        self._arrivals = dict(arrivals or {})
        self._seed = seed
        self._seats = dict(seats or {})
        self._start = start

    @override
    async def open(self, seats: Sequence[str], seed: int) -> Mapping[str, SeatPort]:
        if self._start is not None:
            start = json.loads(self._start)
            self._arrivals = {arrival["seat"]: arrival for arrival in start["arrivals"]}
            await self._begin_again(start, seats)
        for name in seats:
            if name not in self._seats:
                self._seats[name] = await self.port.open_seat(name)
        for name, arrival in self._arrivals.items():
            self._seats[name] = self._wrap_seat(self._seats[name], arrival)
        return self._seats

    @override
    def keep_calls(self, journal: WorldJournal) -> None:
        models = self.port.services.models if isinstance(self.port, LocalWorld) else None
        if isinstance(models, JournalledModels):
            models.journal = journal

    def seat(self, name: str) -> SeatPort:
        """Return an open seat by name."""
        return self._seats[name]

    async def _begin_again(self, start: Mapping[str, Any], seats: Sequence[str]) -> None:
        # Any: the event's JSON.
        await self.port.begin(self._seed)
        if start["world"] is not None:
            for name in seats:
                self._seats[name] = await self.port.open_seat(name)
            await self.port.restore(base64.b64decode(start["world"]))
            return
        for arrival in start["arrivals"]:
            self._seats[arrival["seat"]] = await let_in_again(self.port, arrival["seat"], arrival)

"""The seats of a world: who decides in each, and the world with its seats as the place of a run."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from typing_extensions import override

from wsap_core.references import load_agent_spec
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_nexus.agents.identity import seat_plan
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.entering import PreparedEntry, WorldEntry, entry_seed
from wsap_nexus.hub.external import ExternalAgent
from wsap_nexus.hub.visitor_seat import VisitorSeat
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.recorder import Recorder
from wsap_nexus.runs.venue import Venue
from wsap_nexus.runs.world_calls import JournalledModels, WorldJournal
from wsap_nexus.store.entities import EXTERNAL
from wsap_nexus.worlds.port import LocalWorld, WorldPort, let_in_again
from wsap_nexus.worlds.seats import SeatPort


def run_plan(context: HubContext, entries: Sequence[PreparedEntry], names: Sequence[str], spec: AdapterSpec) -> RunPlan:
    """Return what is played where agents arrive together: who sits in each seat, and how long."""
    seats = []
    with context.nexus_store.look() as tx:
        for number, name in enumerate(names):
            agent = tx.agent(entries[number].agent_id) if number < len(entries) else None
            seats.append(seat_plan(name, agent, spec.name, spec.default_agent))
    seed = entry_seed(context.settings.seed, entries[0])
    steps, every = entries[0].terms.steps, context.settings.snapshot_every
    return RunPlan(spec.name, tuple(seats), seed, steps, {}, every, live="live" in spec.abilities)


def deciders_for(context: HubContext, plan: RunPlan, agents: Mapping[str, str]) -> dict[str, AgentSpec]:
    """Return who decides in each seat; `agents` says which agent of the nexus sits there."""
    # Somebody outside may be gone for good: the world's deadline holds for it, too.
    deadline = context.catalog.spec(plan.game).deadline
    # Whoever sat in another seat is elsewhere now; no agent has such an id.
    return {s.name: decider(context, agents.get(s.name, f"({s.name})"), s.agent, deadline) for s in plan.seats}


def decider(context: HubContext, agent_id: str, agent: str, deadline: float | None = None) -> AgentSpec:
    """Return who decides for an agent, by the name of the decider.

    Raises:
        UnknownNameError: there is none of that name.
        PluginError: it can't be loaded.
    """
    if agent != EXTERNAL.agent:
        return load_agent_spec(agent, context.host)

    def create() -> ExternalAgent:
        context.live.external[agent_id] = ExternalAgent(deadline)
        return context.live.external[agent_id]

    # Interactive: while recorded steps are gone through again, nobody is asked.
    return AgentSpec(agent, "Somebody outside decides.", create, interactive=True)


def seat_names(entries: Sequence[PreparedEntry], spec: AdapterSpec) -> list[str]:
    """Return the seats of a world for those who come: in a world of one seat, the agent's id is its name there."""
    if spec.seats[1] == 1:
        return [entries[0].agent_id]
    return list(spec.names_of_seats(max(len(entries), spec.seats[0])))


START = "start"
"""The kind of the event that a stay's run begins with."""


def record_start(recorder: Recorder, arrivals: Sequence[WorldEntry], world: bytes | None) -> None:
    """Write what a stay begins with, so that it can be begun again: the world's state, and who came with what."""
    recorder.write(
        START,
        {
            "world": None if world is None else base64.b64encode(world).decode("ascii"),
            "arrivals": [
                {
                    "seat": a.seat_name,
                    "agent": a.prepared.agent_id,
                    "avatar": a.avatar.avatar_id,
                    "wanted": a.wanted,
                    "entry": a.entry,
                    "receipt": a.receipt,
                    "goals": list(a.prepared.terms.goals),
                }
                for a in arrivals
            ],
        },
    )


class KeptVenue(Venue):
    """A world of the nexus with its seats.

    Args:
        seats: the open seats, when the agents have just come in; None to begin again from `start`.
        start: the body of the event `start`, when a session is resumed.
    """

    def __init__(
        self, port: WorldPort, *, seed: int, seats: Mapping[str, SeatPort] | None = None, start: bytes | None = None
    ) -> None:
        self.port = port
        self.wrap_seat: Callable[[str, SeatPort], SeatPort] = self._guest
        """Puts an agent of the nexus into a seat: gives what it has to do with in place of the world's own."""
        self._guests: dict[str, Sequence[str]] = dict.fromkeys(seats or {}, ())
        self._seed = seed
        self._seats = dict(seats or {})
        self._start = start

    @override
    async def open(self, seats: Sequence[str], seed: int) -> Mapping[str, SeatPort]:
        # After going back to where the stay began, if need be.
        if self._start is not None:
            start = json.loads(self._start)
            self._guests = {arrival["seat"]: arrival.get("goals", ()) for arrival in start["arrivals"]}
            await self._begin_again(start, seats)
        for name in seats:
            if name not in self._seats:
                self._seats[name] = await self.port.open_seat(name)
        for name in self._guests:
            self._seats[name] = self.wrap_seat(name, self._seats[name])
        return self._seats

    def keep_calls(self, journal: WorldJournal) -> None:
        """Keep the world's own calls to models from here on in the journal of a run."""
        models = self.port.services.models if isinstance(self.port, LocalWorld) else None
        if isinstance(models, JournalledModels):
            models.journal = journal

    def seat(self, name: str) -> SeatPort:
        """Return an open seat."""
        return self._seats[name]

    def _guest(self, name: str, seat: SeatPort) -> SeatPort:
        return VisitorSeat(seat, goals=self._guests[name])

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

"""Who sits where in a world, and who decides for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wsap_core.references import load_agent_spec
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_nexus.agents.persons import seat_plan
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.external import ExternalAgent
from wsap_nexus.hub.transit import Way, way_seed
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.store.entities import EXTERNAL


class Casting:
    """Puts agents of a nexus, and those who fill the other seats, into the seats of worlds.

    Args:
        context: of the nexus.
    """

    def __init__(self, context: HubContext) -> None:
        self._context = context

    def plan_of(self, ways: Sequence[Way], names: Sequence[str], spec: AdapterSpec) -> RunPlan:
        """Return what is played where agents arrive together: who sits in each seat, and how long."""
        seats = []
        with self._context.ledger.look() as book:
            for number, name in enumerate(names):
                agent = book.agent(ways[number].agent_id) if number < len(ways) else None
                seats.append(seat_plan(name, agent, spec.name, spec.default_agent))
        seed = way_seed(self._context.settings.seed, ways[0])
        return RunPlan(spec.name, tuple(seats), seed, ways[0].terms.steps, {}, self._context.settings.snapshot_every)

    def agents_of(self, plan: RunPlan, agents: Mapping[str, str]) -> dict[str, AgentSpec]:
        """Return who decides in each seat; `agents` says which agent of the nexus sits there."""
        # Somebody outside may be gone for good; where others wait for it, the world's deadline holds for it, too.
        deadline = self._context.catalog.spec(plan.game).deadline if len(plan.seats) > 1 else None
        # Whoever sat in another seat is elsewhere now; no agent has such an id.
        return {s.name: self.agent_spec(agents.get(s.name, f"({s.name})"), s.agent, deadline) for s in plan.seats}

    def agent_spec(self, agent_id: str, agent: str, deadline: float | None = None) -> AgentSpec:
        """Return who decides for an agent, by the name of the decider.

        Raises:
            UnknownNameError: there is none of that name.
            PluginError: it can't be loaded.
        """
        if agent != EXTERNAL.agent:
            return load_agent_spec(agent, self._context.host)

        def create() -> ExternalAgent:
            self._context.live.external[agent_id] = ExternalAgent(deadline)
            return self._context.live.external[agent_id]

        # Interactive: while recorded steps are gone through again, nobody is asked.
        return AgentSpec(agent, "Somebody outside decides.", create, interactive=True)


def seat_names(ways: Sequence[Way], spec: AdapterSpec) -> list[str]:
    """Return the seats of a world for those who come: in a world of one seat, the agent's id is its name there."""
    if spec.seats[1] == 1:
        return [ways[0].agent_id]
    return list(spec.names_of_seats(max(len(ways), spec.seats_with({})[0])))

"""The agent of a seat, made of its spec or speaking from the record, and the loop that it plays in."""

from __future__ import annotations

import os

from wsap_core.errors import UsageError
from wsap_core.factories import build
from wsap_core.seams.agent import Agent
from wsap_core.seams.clock import Clock
from wsap_core.seams.context import Context
from wsap_core.seams.options import Options
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_llm.secrets import with_secrets
from wsap_nexus.runs.checkpoint import Checkpoint
from wsap_nexus.runs.controls import Controls
from wsap_nexus.runs.loop import SeatLoop
from wsap_nexus.runs.plan import SeatPlan
from wsap_nexus.runs.recorded_agent import RecordedAgent
from wsap_nexus.runs.recorder import Recorder
from wsap_nexus.runs.replay_order import ReplayOrder
from wsap_nexus.runs.tally import SeatTally
from wsap_nexus.worlds.seats import SeatPort


def make_agent(
    seat: SeatPlan,
    spec: AgentSpec,
    game: AdapterSpec,
    seed: int,
    past: Checkpoint,
    given: list[Options],
    clock: Clock,
    services: Services,
) -> Agent:
    """Return the agent of a seat; its options are added to those `given`, to check later that all were used.

    Raises:
        UsageError: what the spec makes is no agent.
        PluginError: it can't be made.
    """
    # Where nobody outside is asked, nothing is needed to be let in.
    options = Options(seat.options if past.offline else with_secrets(seat.options, os.environ))
    context = Context.create(
        seed, "agent", seat.name,
        config=options, clock=clock, services=services, agent_id=seat.name, world=game.display_title, game=game,
    )  # fmt: skip
    if (script := past.script.get(seat.name)) is not None:
        agent: object = RecordedAgent(script)
    else:
        agent = build(spec.factory, context)
        given.append(options)
    if not isinstance(agent, Agent):
        raise UsageError(f"{seat.agent!r} is not an agent: it needs initialize, decide, reflect and plan.")
    return agent


def make_loop(
    seat: SeatPort,
    agent: Agent,
    game: AdapterSpec,
    spec: AgentSpec,
    past: Checkpoint,
    order: ReplayOrder | None,
    limit: int | None,
    tally: SeatTally,
    recorder: Recorder,
    controls: Controls,
) -> SeatLoop:
    """Return the loop of a seat, with what is recorded of it to go through again; among others there is an order."""
    name = seat.agent_id
    return SeatLoop(
        seat,
        agent,
        tally,
        recorder,
        controls,
        limit=limit,
        deadline=None if spec.interactive else game.deadline,
        history=past.history.get(name),
        order=order,
        looked=past.looked.get(name),
        lessons=past.lessons.get(name),
        decide_along=not spec.interactive,
    )

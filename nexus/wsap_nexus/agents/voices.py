"""Agents of the nexus that are asked for words: put together as they decide, with what they remember."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from wsap_core.factories import build
from wsap_core.host import PluginHost
from wsap_core.references import load_agent_spec
from wsap_core.seams.clock import Clock
from wsap_core.seams.context import Context
from wsap_core.seams.memory import OutlivesRuns
from wsap_core.seams.options import Options
from wsap_core.seams.services import Services
from wsap_llm.secrets import with_secrets
from wsap_llm.speech import Speaks
from wsap_nexus.agents.identity import seat_plan
from wsap_nexus.agents.memory import SavedMemories, kind_of, memory_of, take_in
from wsap_nexus.runs.journal import SeatJournal
from wsap_nexus.runs.plan import SeatPlan
from wsap_nexus.runs.recorder import Recorder
from wsap_nexus.store.entities import AgentIdentity, Policy


@asynccontextmanager
async def voice_of(
    agent: AgentIdentity,
    plan: SeatPlan,
    *,
    host: PluginHost,
    services: Services,
    clock: Clock,
    recorder: Recorder,
    mind: SavedMemories,
    seed: int,
    title: str,
) -> AsyncIterator[Speaks | None]:
    """Give an agent that speaks for an identity, with its memories; None if it has no words of its own.

    What it asks its model is recorded as calls of the seat `SEAT:voice`, beside the seat's own.

    Args:
        agent: who speaks.
        plan: how it decides.
        host: where agents come from.
        services: what they are handed.
        clock: for waiting.
        recorder: of the run that the words belong to.
        mind: what it remembers.
        seed: what is decided by chance follows from it.
        title: of the place that it decides in.

    Raises:
        WsapError: it can't be made.
    """
    spec = load_agent_spec(plan.agent, host)
    if spec.interactive:
        yield None
        return
    own = Context.create(
        seed,
        "voice",
        agent.id,
        config=Options(with_secrets(plan.options, os.environ)),
        clock=clock,
        services=replace(services, journal=SeatJournal(recorder, f"{plan.name}:voice")),
        agent_id=agent.id,
        world=title,
    )
    made = build(spec.factory, own)
    try:
        if not isinstance(made, Speaks):
            yield None
            return
        memory = memory_of(made)
        if memory is not None and (kept := mind.of(kind_of(plan, memory)).snapshot):
            take_in(memory, kept, agent.id)
            if isinstance(memory, OutlivesRuns):
                memory.begin_run("")
        yield made
    finally:
        close = getattr(made, "aclose", None)
        if close is not None:
            await close()


def speaking_plans(agent: AgentIdentity, first: Sequence[str]) -> list[SeatPlan]:
    """Return how an agent decides where it may have words: in `first`, and wherever a model decides."""
    games = [*first, *sorted(g for g, p in agent.policies.items() if p.agent == "llm" and g not in first)]
    plans: list[SeatPlan] = []
    for game in games:
        policy = agent.policies.get(game) or Policy("external")
        if not policy.external:
            plan = seat_plan(agent.id, agent, game, policy.agent)
            plans += [plan] if plan not in plans else []
    return plans

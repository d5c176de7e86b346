"""Creates the agent of a seat and its loop."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from wsap_core.errors import UsageError
from wsap_core.factories import build
from wsap_core.seams.agent import Agent
from wsap_core.seams.clock import Clock
from wsap_core.seams.context import Context
from wsap_core.seams.options import Options
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_llm.secrets import with_secrets
from wsap_nexus.runs.plan import SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.loop import SeatLoop, SeatTerms
from wsap_nexus.runs.play.recorded_agent import GONE
from wsap_nexus.runs.record.journal import PictureBook, SeatJournal
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.record.replay_order import ReplayOrder
from wsap_nexus.runs.record.tally import SeatTally
from wsap_nexus.runs.resume import Checkpoint
from wsap_nexus.worlds.seats import SeatPort


@dataclass(frozen=True)
class Seating:
    """Creates the agents and loops of a run's seats."""

    game: AdapterSpec
    seed: int
    past: Checkpoint
    clock: Clock
    services: Services
    tallies: Mapping[str, SeatTally]
    recorder: Recorder
    pictures: PictureBook

    def loop(
        self, plan: SeatPlan, spec: AgentSpec, seat: SeatPort, order: ReplayOrder | None, limit: int | None,
        controls: Controls, given: list[Options],
    ) -> SeatLoop:  # fmt: skip
        """Return the loop of a seat with its agent, whose options are appended to `given` to check that all are used.

        Raises:
            UsageError: the spec's factory does not return an agent.
            PluginError: the agent can't be created.
        """
        deadline = None if spec.interactive else self.game.deadline
        agent, tally = self._agent(plan, spec, given), self.tallies[plan.name]
        terms = SeatTerms(limit, deadline, decide_along=not spec.interactive)
        return SeatLoop(seat, agent, tally, self.recorder, controls, self.past, order, terms)

    def _agent(self, plan: SeatPlan, spec: AgentSpec, given: list[Options]) -> Agent:
        past, game = self.past, self.game
        calls = past.calls.get(plan.name, ())
        journal = SeatJournal(self.recorder, plan.name, calls, offline=past.offline, pictures=self.pictures)
        if spec is GONE:  # nobody decides, so the options and their secrets are not needed
            plan = replace(plan, options={})
        # Offline, no secrets are needed.
        options = Options(plan.options if past.offline else with_secrets(plan.options, os.environ))
        context = Context.create(
            self.seed, "agent", plan.name, config=options, clock=self.clock,
            services=replace(self.services, journal=journal), agent_id=plan.name, world=game.display_title, game=game,
        )  # fmt: skip
        agent: object = build(spec.factory, context)
        given.append(options)
        if not isinstance(agent, Agent):
            raise UsageError(f"{plan.agent!r} is not an agent: it needs initialize, decide, reflect and plan.")
        return agent

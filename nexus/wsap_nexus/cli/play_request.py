"""The options of `wsap play`, and which exclude each other."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wsap_core.cli.grouped import first_given, refuse_given
from wsap_core.cli.params import pairs
from wsap_nexus.cli.common import has_room, is_dumb
from wsap_nexus.cli.default_model import with_default
from wsap_nexus.cli.model_options import ModelRequest
from wsap_nexus.cli.seat_options import Seating

if TYPE_CHECKING:
    from wsap_core.specs import AgentSpec
    from wsap_nexus.runs.plan import RunPlan
    from wsap_nexus.runs.session import ResolvedSpecs

_SEATED = (
    *("agent", "fill", "model", "style", "persona", "memory", "tools", "pictures", "strict"),
    *("backend_options", "agent_options"),
)
"""Options, by Python name, that are for whoever takes a seat."""
_FIXED = ("game", "seed", "steps", "episodes", "seats", "options", "seat_options", "agents", "no_record", *_SEATED)
"""Options, by Python name, that a run keeps for good."""


@dataclass(frozen=True)
class Request:
    """The options of one command line."""

    models: ModelRequest
    game: str | None
    agent: str | None
    seed: int
    steps: int | None
    episodes: int | None
    seats: tuple[str, ...]
    fill: str | None
    seat_options: tuple[str, ...]
    options: tuple[str, ...]
    agent_options: tuple[str, ...]
    agents: tuple[str, ...]
    resume: str | None
    replay: str | None
    database: str | None
    no_record: bool
    as_json: bool
    watch: bool | None
    fps: int
    pace: int

    def check(self) -> None:
        """Refuse options that exclude each other or have no effect.

        Raises:
            UsageError: there is one; the message says what to leave out.
        """
        from wsap_core.errors import UsageError

        if self.resume is None and self.replay is None and self.game is None:
            raise UsageError("Say which game to play, for instance: wsap play crafter (`wsap games` lists them).")
        if self.resume is not None and self.replay is not None:
            raise UsageError("--resume continues a run, and --replay repeats one; choose one.")
        if self.resume is not None or self.replay is not None:
            does = "--resume continues" if self.resume is not None else "--replay repeats"
            if label := first_given(*_FIXED):
                raise UsageError(f"{does} a run as it was started; leave out {label}.")
        self.models.check()
        if self.watch and self.as_json:
            raise UsageError("--watch draws on the terminal, and --json prints JSON and nothing else; choose one.")
        if self.no_record and self.agents:
            raise UsageError("--no-record records nothing, and --as has an agent remember the run; leave one out.")
        if self.fill is not None:
            refuse_given("with --fill, which says who takes the same seats", "agent")
        if self.no_record:
            refuse_given("with --no-record", "database")
        if self.replay is not None:
            refuse_given("with --replay, which asks no model", "limits", "price_in", "price_out")
        if self.as_json or self.watch is False:
            refuse_given(f"with {'--json' if self.as_json else '--no-watch'}, as there is no live view", "fps", "pace")

    def check_plan(self, plan: RunPlan, parts: ResolvedSpecs) -> None:
        """Refuse limits and prices of models in a run that asks none, and what is for seats where there are none.

        Raises:
            UsageError: there is one.
        """
        asked = plan.addresses
        if not asked:
            refuse_given("where no seat has a model's address", "price_in", "price_out")
        # An agent that follows from its seed asks no model.
        seeded = all("seed" in agent.abilities for agent in parts.agents.values())
        if seeded and not asked and not parts.game.asks_models:
            refuse_given("where no agent asks a model", "limits")
        if not plan.seats:
            own = " (the world's own model is --option model=ADDRESS)" if parts.game.asks_models else ""
            refuse_given(f"where nobody takes a seat{own}", *_SEATED)
        if plan.seats and all(seat.name in self.seating().seats for seat in plan.seats):
            refuse_given("where --seat names every seat", "agent", "fill")

    def check_people(self, plan: RunPlan, agents: Mapping[str, AgentSpec]) -> None:
        """Refuse a person where there is no terminal, before anything is recorded.

        Raises:
            UsageError: there is none, or two would share it.
        """
        from wsap_core.errors import UsageError
        from wsap_nexus.terminal.keys import has_keyboard

        people = [seat.name for seat in plan.seats if agents[seat.name].interactive]
        if people and (self.as_json or not has_keyboard()):
            why = "--json leaves no place for it" if self.as_json else "the standard input is no terminal"
            raise UsageError(f"Seat {people[0]!r} is played by a person, who needs a terminal, but {why}.")
        if len(people) > 1:
            raise UsageError(f"Seats {people[0]!r} and {people[1]!r} can't both be played at one keyboard.")

    def watches(self) -> bool:
        """Return whether the live view is shown; if only the size is too small, say so.

        Raises:
            UsageError: it was asked for, and there is no terminal.
        """
        from wsap_core.errors import UsageError

        if self.as_json or self.watch is False:
            return False
        if not sys.stdout.isatty() or is_dumb():
            if self.watch:
                raise UsageError("--watch needs a terminal, and the standard output is none; leave it out.")
            return False
        return has_room("Going on in plain lines.")

    def with_model(self) -> Request:
        """Return the request with the default model in it, if it asks for one and names none."""
        if self.resume is not None or self.replay is not None:
            return self
        seating = self.seating()
        named = "model" in pairs("--agent-option", self.agent_options)
        own = any(name.endswith(".model") for name in seating.options)
        agents = (self.agent, self.fill, *seating.seats.values())
        return replace(self, models=with_default(self.models, agents, named=named or own))

    def seating(self) -> Seating:
        """Return who was asked to sit where.

        Raises:
            UsageError: what was typed is not of its form.
        """
        return Seating.taken_from(self.seats, self.fill, self.seat_options)

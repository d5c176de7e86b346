"""The options of `wsap play`, and which exclude each other."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.params import first_given, pairs, refuse_given, typed_pairs
from wsap_core.errors import UsageError
from wsap_core.loading import names_model
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import has_room, is_dumb
from wsap_nexus.cli.model_options import ModelRequest, refuse_key, with_default

if TYPE_CHECKING:
    from wsap_core.specs import AgentSpec
    from wsap_nexus.runs.plan import RunPlan, SeatPlan
    from wsap_nexus.runs.session import ResolvedSpecs

seat_option = click.option(
    "--seat-option", "seat_options", multiple=True, metavar="SEAT.KEY=VALUE",
    help="An option of one seat's agent; overrides --agent-option.",
)  # fmt: skip


def agents_by_seat(given: Iterable[str]) -> dict[str, str]:
    """Return seat (empty if not named) -> agent from the values of `--as`; UsageError if a seat has two agents."""
    chosen: dict[str, str] = {}
    for text in given:
        seat, _, agent = text.rpartition("=")
        if seat in chosen:
            where = f"the seat {single_line(seat)[:60]!r}" if seat else "one seat"
            raise UsageError(f"--as gives {where} to two agents; leave one out, or write SEAT=NAME.")
        chosen[seat] = agent
    return chosen


@dataclass(frozen=True)
class Seating:
    """The agents, or addresses of models, that were requested for seats."""

    seats: Mapping[str, str]
    """Seat -> agent."""
    fill: str | None
    """The agent of the other seats."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """SEAT.KEY -> value (Any: options have every kind of value)."""

    @classmethod
    def taken_from(cls, seats: Iterable[str], fill: str | None, options: Iterable[str]) -> Seating:
        """Parse `--seat`, `--fill` and `--seat-option`; UsageError if a value is malformed, or contains an API key."""
        given = pairs("--seat", seats, example="NAME=AGENT")
        own = typed_pairs("--seat-option", options)
        refuse_key({name.partition(".")[2]: value for name, value in own.items()})
        return cls(given, fill, own)

    @property
    def names_a_model(self) -> bool:
        """Whether a model is requested for a seat."""
        named = map(names_model, (*self.seats.values(), self.fill or ""))
        return any(named) or any(n.endswith(".model") for n in self.options)

    def furnished(self, seats: Sequence[SeatPlan]) -> tuple[SeatPlan, ...]:
        """Return the seats with their own options; UsageError if an option is for an unknown seat."""
        names = [seat.name for seat in seats]
        own: dict[str, dict[str, Any]] = {name: {} for name in names}
        for key, value in self.options.items():
            # The longest match, because a seat's name may contain a dot.
            found = max((n for n in names if key.startswith(f"{n}.") and len(key) > len(n) + 1), key=len, default=None)
            if found is None:
                shown = ", ".join(map(single_line, names[:20])) + (", ..." if len(names) > 20 else "")
                raise UsageError(f"--seat-option takes SEAT.KEY=VALUE with one of the seats {shown}, not {key!r}.")
            own[found][key[len(found) + 1 :]] = value
        return tuple(replace(seat, options={**seat.options, **own[seat.name]}) for seat in seats)


_SEATED = (
    *("agent", "fill", "model", "style", "persona", "memory", "tools", "pictures", "strict"),
    *("backend_options", "agent_options"),
)
"""Options, by Python name, that only apply to seats."""
_FIXED = ("game", "seed", "steps", "episodes", "seats", "options", "seat_options", "agents", "no_record", *_SEATED)
"""Options, by Python name, that can't change once a run has started."""


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
    reload: bool

    def check(self) -> None:
        """Raise UsageError if options exclude each other or have no effect."""
        if self.resume is None and self.replay is None and self.game is None:
            raise UsageError("Name the game to play, for example: wsap play crafter (`wsap games` lists them).")
        if self.resume is not None and self.replay is not None:
            raise UsageError("--resume continues a run, and --replay repeats one; choose one.")
        if self.resume is not None or self.replay is not None:
            does = "--resume continues" if self.resume is not None else "--replay repeats"
            if label := first_given(*_FIXED):
                raise UsageError(f"{does} a run as it was started; leave out {label}.")
        if self.reload and (label := first_given("resume", "replay", "as_json")):
            raise UsageError(f"--reload starts a game again and again, and {label} is about one run; choose one.")
        self.models.check()
        if self.watch and self.as_json:
            raise UsageError("--watch draws on the terminal, and --json prints JSON and nothing else; choose one.")
        if self.no_record and self.agents:
            raise UsageError("--no-record records nothing, and --as has an agent remember the run; leave one out.")
        if self.fill is not None:
            refuse_given("with --fill, which names the agent of the same seats", "agent")
        if self.no_record:
            refuse_given("with --no-record", "database")
        if self.replay is not None:
            refuse_given("with --replay, which calls no model", "limits", "price_in", "price_out")
        if self.as_json or self.watch is False:
            refuse_given(f"with {'--json' if self.as_json else '--no-watch'}, as there is no live view", "fps", "pace")

    def check_plan(self, plan: RunPlan, parts: ResolvedSpecs) -> None:
        """Raise UsageError for model limits and prices without models, and for seat options without seats."""
        asked = plan.addresses
        if not asked:
            refuse_given("where no seat has a model's address", "price_in", "price_out")
        # An agent that is determined by its seed calls no model.
        seeded = all("seed" in agent.abilities for agent in parts.agents.values())
        if seeded and not asked and not parts.game.asks_models:
            refuse_given("where no agent calls a model", "limits")
        if not plan.seats:
            own = " (the world's own model is --option model=ADDRESS)" if parts.game.asks_models else ""
            refuse_given(f"in a run without seats{own}", *_SEATED)
        if plan.seats and all(seat.name in self.seating().seats for seat in plan.seats):
            refuse_given("where --seat names every seat", "agent", "fill")

    def check_people(self, plan: RunPlan, agents: Mapping[str, AgentSpec]) -> None:
        """Raise UsageError if a person would play without a terminal, or two would share it."""
        from wsap_nexus.terminal.keyboard.keys import has_keyboard

        people = [seat.name for seat in plan.seats if agents[seat.name].interactive]
        if people and (self.as_json or not has_keyboard()):
            why = "--json can't use one" if self.as_json else "the standard input is not one"
            raise UsageError(f"Seat {people[0]!r} is played by a person, who needs a terminal, but {why}.")
        if len(people) > 1:
            raise UsageError(f"Seats {people[0]!r} and {people[1]!r} can't both be played at one keyboard.")

    def watches(self) -> bool:
        """Return whether to show the live view; UsageError for --watch without a terminal."""
        if self.as_json or self.watch is False:
            return False
        if not sys.stdout.isatty() or is_dumb():
            if self.watch:
                raise UsageError("--watch needs a terminal, and the standard output is not one; leave it out.")
            return False
        return has_room("Printing plain lines.")

    def with_model(self) -> Request:
        """Return the request with the default model if it needs a model and names none."""
        if self.resume is not None or self.replay is not None:
            return self
        seating = self.seating()
        named = "model" in pairs("--agent-option", self.agent_options)
        own = any(name.endswith(".model") for name in seating.options)
        agents = (self.agent, self.fill, *seating.seats.values())
        return replace(self, models=with_default(self.models, agents, named=named or own))

    def seating(self) -> Seating:
        """Return the requested agents of seats; UsageError if an option is malformed."""
        return Seating.taken_from(self.seats, self.fill, self.seat_options)

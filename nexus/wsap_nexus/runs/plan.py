"""The plan of a run: the game, its agents and limits; everything needed to start it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wsap_core.errors import UnknownNameError, UsageError, WireError
from wsap_core.host import PluginHost
from wsap_core.installing import install_line
from wsap_core.loading import MODEL_AGENT, names_model
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import SEED_LIMIT
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import single_line
from wsap_llm.secrets import redacted
from wsap_nexus.runs.record.tally import SeatTally
from wsap_nexus.runs.record.trajectory import WORLD
from wsap_nexus.store.records import RunRecord

FORMAT = 1
"""The version of recorded plans and of the events that follow them."""

LONGEST_LABEL = 200
"""Maximum length of the label of a run's agents, in characters."""


def game_of(run: RunRecord, host: PluginHost) -> AdapterSpec:
    """Return the game of a recorded run, with its options; WsapError if it can't be loaded."""
    spec = load_adapter_spec(str(run.config.get("game", run.game)), host)
    try:
        return spec.with_options(run.config.get("options") or {})
    except UsageError:
        return spec  # a newer version without these options; what does not depend on options still holds


def with_model(agent: str, model: object) -> str:
    """Return an agent's label, with its model if it has one."""
    return f"{agent} ({model})" if model else agent


@dataclass(frozen=True)
class SeatPlan:
    """A seat and its agent."""

    name: str
    """The seat, and the agent's id in the world."""
    agent: str
    """A registered agent, or `./file.py:Name`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    identity: str | None = None
    """The agent of the database in the seat, which remembers the run and is credited with its achievements."""

    @property
    def model(self) -> str | None:
        """The address of the language model that decides, if any."""
        model = self.options.get("model")
        return model if isinstance(model, str) and model else None

    @property
    def label(self) -> str:
        """The agent with its model, if it has one: `llm (openai/gpt-5)`."""
        return with_model(self.agent, self.model)


@dataclass(frozen=True)
class RunPlan:
    """Everything needed to start a run again."""

    game: str
    """A registered game, or `./file.py:Name`."""
    seats: tuple[SeatPlan, ...]
    seed: int = 0
    """From 0 to 2**31 - 1."""
    steps: int | None = None
    """Decisions for each seat, over all episodes; None for no limit."""
    options: Mapping[str, Any] = field(default_factory=dict)
    snapshot_every: int = 500
    """Decisions between two records of the totals, and of the state if game and agents have snapshots; 0 for none."""
    episodes: int | None = None
    """Episodes; None for as many as the steps allow, or for one if these are not limited either."""
    irreversible: bool = False
    """Whether the world can't be rewound, so that a choice is committed before the world is told."""
    lives: bool = False
    """Whether the world goes on by itself; `steps` limits its ticks, too."""
    open: bool = False
    """Whether agents enter and leave the world in play; the seats are those taken so far."""
    branched_from: Mapping[str, Any] | None = None
    """The `run`, its tick (`step`) and its number of events then (`seq`) from which a branch began; None otherwise."""

    def __post_init__(self) -> None:
        if not _is_whole(self.seed) or not 0 <= self.seed <= SEED_LIMIT:
            raise UsageError(f"The seed must be a whole number from 0 to {SEED_LIMIT}, not {self.seed!r}.")
        for what, limit in (("steps", self.steps), ("episodes", self.episodes)):
            if limit is not None and (not _is_whole(limit) or limit < 1):
                raise UsageError(f"The number of {what} must be a whole number of at least 1, not {limit!r}.")
        names = [seat.name for seat in self.seats]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise UsageError(f"The seat {twice[0]!r} is given to two agents.")
        if self.lives and self.episodes not in (None, 1):
            raise UsageError("A world that lives is played for one episode; limit its ticks, or play it several times.")
        if self.lives and WORLD in names:
            raise UsageError(f"A world that lives can't have a seat named {WORLD!r}; that name is reserved.")

    def tallies(self) -> dict[str, SeatTally]:
        """Return the empty totals of a new run, by seat."""
        seats = [*self.seats, SeatPlan(WORLD, "")] if self.lives else self.seats
        return {seat.name: self.tally(seat) for seat in seats}

    def tally(self, seat: SeatPlan) -> SeatTally:
        """Return the empty totals of a seat."""
        return SeatTally(seat.name, seat.agent, redacted(seat.options))

    def for_game(self, game: AdapterSpec) -> RunPlan:
        """Return the plan with `lives` and `irreversible` set from the game's abilities."""
        return replace(self, lives="lives" in game.abilities, irreversible="irreversible" in game.abilities)

    @property
    def asked_episodes(self) -> int | None:
        """The requested number of episodes; None for as many as the steps allow."""
        return 1 if self.episodes is None and (self.steps is None or self.lives) else self.episodes

    @property
    def in_order(self) -> bool:
        """Whether the order of actions matters: with several seats, or in a world that lives or is irreversible."""
        return len(self.seats) > 1 or self.open or ((self.lives or self.irreversible) and bool(self.seats))

    @property
    def identities(self) -> dict[str, str]:
        """Seat -> agent of the database, for the seats that have one."""
        return {seat.name: seat.identity for seat in self.seats if seat.identity is not None}

    @property
    def addresses(self) -> list[str]:
        """The distinct addresses of the models of agents and of the world (`model`, `scene.model`)."""
        found = [seat.model for seat in self.seats if seat.agent == MODEL_AGENT and seat.model is not None]
        found += [str(value) for name, value in self.options.items() if name == "model" or name.endswith(".model")]
        return list(dict.fromkeys(found))

    @property
    def agent_label(self) -> str:
        """The agents: `llm (openai/gpt-5)`, or if they differ `row=random, column=openai/gpt-5` or, shorter, counts."""
        if not self.seats:
            return WORLD
        if len({seat.label for seat in self.seats}) == 1:
            label = self.seats[0].label
        else:
            agents = [seat.model or seat.agent for seat in self.seats]
            label = ", ".join(f"{seat.name}={agent}" for seat, agent in zip(self.seats, agents, strict=True))
            if len(label) > LONGEST_LABEL:
                label = ", ".join(f"{agents.count(agent)} {agent}" for agent in dict.fromkeys(agents))
        return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 3]}..."

    def to_config(self) -> dict[str, Any]:
        """Return the plan as JSON-ready data for the database, with absolute paths and without confidential options."""
        return {
            "format": FORMAT,
            "game": _anchored(self.game),
            "seats": [
                {"name": s.name, "agent": _anchored(s.agent), "options": redacted(s.options), **_identity(s)}
                for s in self.seats
            ],
            "seed": self.seed,
            "steps": self.steps,
            "episodes": self.episodes,
            "options": redacted(self.options),
            "snapshot_every": self.snapshot_every,
            **({"irreversible": True} if self.irreversible else {}),
            **({"lives": True} if self.lives else {}),
            **({"open": True} if self.open else {}),
            **({} if self.branched_from is None else {"branched_from": dict(self.branched_from)}),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> RunPlan:
        """Return a recorded plan; WireError if it is damaged, or of a newer version."""
        try:
            if config["format"] > FORMAT:
                upgrade = install_line("wsap-nexus", newer=True)
                raise WireError(f"This run was recorded by a newer version of WSAP; update with: {upgrade}")
            return cls(
                game=config["game"],
                seats=tuple(SeatPlan(s["name"], s["agent"], s["options"], s.get("mind")) for s in config["seats"]),
                seed=config["seed"],
                steps=config["steps"],
                episodes=config["episodes"],
                options=config["options"],
                snapshot_every=config["snapshot_every"],
                irreversible=is_irreversible(config),
                lives=bool(config.get("lives")),
                open=bool(config.get("open")),
                branched_from=config.get("branched_from"),
            )
        except (KeyError, TypeError) as error:
            raise WireError(f"The recorded plan of this run is incomplete: {error}.") from error


def _identity(seat: SeatPlan) -> dict[str, str]:
    return {} if seat.identity is None else {"mind": seat.identity}


def is_irreversible(config: Mapping[str, Any]) -> bool:
    """Return whether the world of a recorded plan can't be rewound."""
    return bool(config.get("irreversible"))


def _anchored(reference: str) -> str:
    """Make the path in a reference to a file absolute; return any other reference unchanged."""
    path, colon, name = reference.rpartition(":")
    return f"{Path(path).expanduser().resolve()}:{name}" if colon and path.endswith(".py") else reference


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def agent_named(reference: str, host: PluginHost | None = None) -> tuple[str, dict[str, Any]]:
    """Return the agent that a text names, and its options; a model's address means the agent `llm` with that model.

    Raises:
        UsageError: the text has the form of an address, BACKEND/MODEL, and no such backend is installed.
    """
    if not names_model(reference):
        return reference, {}
    from wsap_llm.backends.pool import find_backend  # deferred for weight

    try:
        find_backend(host or PluginHost.discovered(), reference)
    except UnknownNameError as error:
        shown = single_line(reference)[:80]
        raise UsageError(
            f"{shown!r} is neither an agent (one in a file is ./file.py:Name) nor a model: {error}"
        ) from None
    return MODEL_AGENT, {"model": reference}


def plan_seats(
    spec: AdapterSpec,
    *,
    agent: str | None = None,
    seats: Mapping[str, str] | None = None,
    fill: str | None = None,
    options: Mapping[str, Any] | None = None,
    game_options: Mapping[str, Any] | None = None,
    host: PluginHost | None = None,
) -> tuple[SeatPlan, ...]:
    """Return the seats of a run with their agents.

    A model's address in place of an agent means the agent `llm` with that model, which overrides the option `model`.

    Args:
        agent: the agent of all seats that are not named; by default the game's default agent.
        seats: seat name -> agent.
        fill: takes precedence over `agent`.
        options: options for every agent.
        game_options: the game's options, on which its seats may depend.
        host: has the model backends; by default all installed ones.

    Raises:
        UsageError: an unknown seat, too many seats, invalid options of the game, a model of an unknown backend, or
            two models for one seat.
    """
    with_these = spec.with_options(game_options or {})
    low, high = with_these.seats
    named = dict(seats or {})
    wanted = min(max(low, len(named)), high)
    names = list(with_these.names_of_seats(high))
    such = "" if with_these.seats == spec.seats else " with these options"
    for name in named:
        if name not in names:
            raise UsageError(
                f"{spec.name!r} has no seat {name!r}{such}; its seats are: {', '.join(names[:20])}"
                f"{', ...' if len(names) > 20 else ''}."
            )
    chosen = [n for n in names if n in named]
    for name in names:
        if len(chosen) >= wanted:
            break
        if name not in chosen:
            chosen.append(name)
    other = fill or agent or with_these.default_agent
    ordered = [n for n in names if n in chosen]
    agents = {n: agent_named(named.get(n, other), host) for n in ordered}
    model = (options or {}).get("model")
    if agent is not None and names_model(agent) and model not in (None, agent):
        raise UsageError(f"Two models are given: {single_line(agent)} and {single_line(str(model))}; leave one out.")
    return tuple(SeatPlan(n, who, {**(options or {}), **own}) for n, (who, own) in agents.items())

"""The plan of a run: the game, who plays, for how long; everything needed to start it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wsap_core.errors import UnknownNameError, UsageError, WireError
from wsap_core.host import PluginHost
from wsap_core.loading import MODEL_AGENT, names_model
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import SEED_LIMIT
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import single_line
from wsap_llm.secrets import redacted
from wsap_nexus.runs.tally import SeatTally
from wsap_nexus.runs.trajectory import CHAINED, CHAINED_KEY, WORLD, TrajectoryHash, is_chained
from wsap_nexus.store.records import RunRecord

LONGEST_LABEL = 200
"""Characters of who plays: what a record of a run has room for."""


def game_of(run: RunRecord, host: PluginHost) -> AdapterSpec:
    """Return the game of a recorded run, as it was with its options.

    Raises:
        WsapError: it is not installed any more, or can't be loaded.
    """
    spec = load_adapter_spec(str(run.config.get("game", run.game)), host)
    try:
        return spec.with_options(run.config.get("options") or {})
    except UsageError:
        return spec  # of a newer version, which has no such options: what is told of all of them still holds


def with_model(agent: str, model: object) -> str:
    """Return an agent with its model, if it has one, for a reader."""
    return f"{agent} ({model})" if model else agent


@dataclass(frozen=True)
class SeatPlan:
    """Who sits where."""

    name: str
    """The seat, which is also the agent's id in the world."""
    agent: str
    """A registered agent, or `./file.py:Name`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    identity: str | None = None
    """The agent of the database who sits there: it remembers the run, and is credited with what it achieves."""

    @property
    def model(self) -> str | None:
        """The address of the language model that decides; None where none does."""
        model = self.options.get("model")
        return model if isinstance(model, str) and model else None

    @property
    def label(self) -> str:
        """The agent with its model, if it has one: `llm (openai/gpt-5)`."""
        return with_model(self.agent, self.model)


@dataclass(frozen=True)
class RunPlan:
    """Everything that determines a run, so that it can be started again."""

    game: str
    """A registered game, or `./file.py:Name`."""
    seats: tuple[SeatPlan, ...]
    seed: int = 0
    """From 0 to 2**31 - 1."""
    steps: int | None = None
    """Decisions for each seat, over as many episodes as it takes; None for no such limit."""
    options: Mapping[str, Any] = field(default_factory=dict)
    snapshot_every: int = 500
    """Decisions between two records of the totals, and of the state where game and agents can be saved; 0 for none."""
    chained: bool = True
    """Whether the trajectory hash is chained from step to step; False for runs recorded by earlier versions."""
    episodes: int | None = None
    """Episodes; None for as many as the steps allow, or for one where these are not limited either."""
    whole: bool = True
    """Whether a step limit lets the open episode of several seats come to its end; False for runs recorded by earlier
    versions."""
    live: bool = False
    """Whether the world can't be rewound, so that a choice is committed before it hears of it."""
    lives: bool = False
    """Whether the world goes on by itself; `steps` limits its ticks, too."""
    open: bool = False
    """Whether agents come into the world in play and leave it; the seats are those that have been taken so far."""
    branched_from: Mapping[str, Any] | None = None
    """The `run` and its tick, the `step`, that the run began with, and the number of events (`seq`) that it had then;
    None for the beginning of the world."""

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
            raise UsageError(f"A world that lives can't have a seat of the name {WORLD!r}; that is its own.")

    def tallies(self) -> dict[str, SeatTally]:
        """Return seat -> totals of a run that begins."""
        seats = [*self.seats, SeatPlan(WORLD, "")] if self.lives else self.seats
        return {seat.name: self.tally(seat) for seat in seats}

    def tally(self, seat: SeatPlan) -> SeatTally:
        """Return the totals of a seat that begins."""
        hash_ = TrajectoryHash(chained=self.chained)
        return SeatTally(seat.name, seat.agent, redacted(seat.options), hash=hash_)

    def for_game(self, game: AdapterSpec) -> RunPlan:
        """Return the plan with what the game's abilities say of it."""
        return replace(self, lives="lives" in game.abilities, live="live" in game.abilities)

    @property
    def asked_episodes(self) -> int | None:
        """How many episodes were asked for; None for as many as the steps allow."""
        return 1 if self.episodes is None and (self.steps is None or self.lives) else self.episodes

    @property
    def in_order(self) -> bool:
        """Whether what is done has an order that matters: among several seats, or in a world that lives or is live."""
        return len(self.seats) > 1 or self.open or ((self.lives or self.live) and bool(self.seats))

    @property
    def identities(self) -> dict[str, str]:
        """Seat -> the agent of the database who sits there, for the seats that have one."""
        return {seat.name: seat.identity for seat in self.seats if seat.identity is not None}

    @property
    def addresses(self) -> list[str]:
        """The addresses of the models that the agents and the world (`model`, `scene.model`) ask, each once."""
        found = [seat.model for seat in self.seats if seat.agent == MODEL_AGENT and seat.model is not None]
        found += [str(value) for name, value in self.options.items() if name == "model" or name.endswith(".model")]
        return list(dict.fromkeys(found))

    @property
    def agent_label(self) -> str:
        """Return who plays, for a reader: `llm (openai/gpt-5)`, or `row=random, column=openai/gpt-5` where they differ,
        counted where there are too many to name.
        """
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
        """Return the plan as JSON-ready data, for the database.

        Files are found again from any folder. Nothing confidential is in it; see `confidential`.
        """
        return {
            "game": _anchored(self.game),
            "seats": [
                {"name": s.name, "agent": _anchored(s.agent), "options": redacted(s.options), **_identity(s)}
                for s in self.seats
            ],
            "seed": self.seed,
            "steps": self.steps,
            **({"episodes": self.episodes} if self.whole else {}),
            "options": redacted(self.options),
            "snapshot_every": self.snapshot_every,
            **({CHAINED_KEY: CHAINED} if self.chained else {}),
            **({"live": True} if self.live else {}),
            **({"lives": True} if self.lives else {}),
            **({"open": True} if self.open else {}),
            **({} if self.branched_from is None else {"branched_from": dict(self.branched_from)}),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> RunPlan:
        """Return the plan that was recorded; WireError if it is not a plan."""
        try:
            return cls(
                game=config["game"],
                seats=tuple(SeatPlan(s["name"], s["agent"], s["options"], s.get("mind")) for s in config["seats"]),
                seed=config["seed"],
                steps=config["steps"],
                episodes=config.get("episodes"),
                whole="episodes" in config,
                options=config["options"],
                snapshot_every=config["snapshot_every"],
                chained=is_chained(config),
                live=bool(config.get("live")),
                lives=bool(config.get("lives")),
                open=bool(config.get("open")),
                branched_from=config.get("branched_from"),
            )
        except (KeyError, TypeError) as error:
            raise WireError(f"What was recorded of how this run was started is incomplete: {error}.") from error


def _identity(seat: SeatPlan) -> dict[str, str]:
    return {} if seat.identity is None else {"mind": seat.identity}


def _anchored(reference: str) -> str:
    """Return a reference to something in a file with the file's whole path, and any other as it is."""
    path, colon, name = reference.rpartition(":")
    return f"{Path(path).expanduser().resolve()}:{name}" if colon and path.endswith(".py") else reference


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def agent_named(reference: str, host: PluginHost | None = None) -> tuple[str, dict[str, Any]]:
    """Return the agent that a text names, and its options that follow: a model's address is `llm` with that model.

    Raises:
        UsageError: it has the form of an address, BACKEND/MODEL, and no such backend is installed.
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
    """Return who sits where: named seats first, the rest filled.

    Wherever an agent is named, a model's address may stand: it is the agent `llm` with that model, whichever model
    the options name for all.

    Args:
        agent: who takes every seat that is not named.
        seats: seat name -> agent.
        fill: who takes the seats that are not named; the agent, or the game's default agent, when None.
        options: options handed to every agent.
        game_options: the game's own, on which the number of its seats may depend.
        host: has the model backends; everything installed when None.

    Raises:
        UsageError: a seat that the game does not have, more seats than it has, or options with which it
            can't say what it is like; a model of an unknown backend, or two models for one seat.
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
        raise UsageError(f"Two models are to play: {single_line(agent)} and {single_line(str(model))}; leave one out.")
    return tuple(SeatPlan(n, who, {**(options or {}), **own}) for n, (who, own) in agents.items())

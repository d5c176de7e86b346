"""What plugins register: small frozen descriptions, with factories that are resolved when used.

Nothing here imports a game or a model client. A factory is a `"module:attribute"` text or a
callable (`wsap_core.factories`); it takes a `Context`, or nothing.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from wsap_core.errors import UnknownNameError, UsageError, WsapError
from wsap_core.factories import Reference, load
from wsap_core.protocol import Achievement, Action, TransferRule
from wsap_core.untrusted import error_line, single_line
from wsap_core.version import PROTOCOL_VERSION

Ability = Literal[
    "seed", "snapshot", "render", "avatars", "multi-seat", "transit", "messages", "lives", "influence", "live"
]  # fmt: skip
"""What a game or agent can do beyond the required members."""

Timing = Literal["free", "alternating", "simultaneous", "phased"]
"""When a world resolves an action: at once, when it is this seat's turn, when all have acted, or, phased, when
all have acted whom it waits for just then (one speaker by day, many by night)."""


@dataclass(frozen=True)
class EpisodeSummary:
    """What one episode of one seat came to; scores are computed from these."""

    seed: int
    steps: int
    reward: float
    achievements: tuple[str, ...]
    """Names unlocked in this episode, sorted."""
    done: bool
    """False if it was cut short by a step limit or an interruption; no score counts it then."""
    seat: str = ""
    episode: int = 0
    forced: int = 0
    """Decisions that were forced, because the agent's own could not be read or were illegal."""
    repaired: int = 0
    """Decisions that were repaired."""


@dataclass(frozen=True)
class ScoreMetric:
    """A number by which a game measures play."""

    name: str
    summary: str
    compute: Reference
    """`(episodes: Sequence[EpisodeSummary]) -> float`."""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    of_set: bool = False
    """Whether it is one of a set of episodes, such as a geometric mean of rates, so that a single one has no value."""

    def of(self, episodes: Sequence[EpisodeSummary]) -> float:
        """Return the metric over episodes."""
        return float(load(self.compute)(episodes))


@dataclass(frozen=True)
class OptionDef:
    """An option that a game, an agent or another part takes, as `wsap games NAME` lists it."""

    name: str
    summary: str
    default: str = ""
    """What holds where it is not given, in words; empty where nothing does."""
    values: str = ""
    """What may be given: `yes|no`, `1-10`, or a word such as `file`; empty for any text."""


@dataclass(frozen=True)
class Spec:
    """What every plugin says of what it offers."""

    name: str
    """What the user types: lower case, digits and dashes."""
    summary: str
    """One line."""
    factory: Reference
    """Gives the thing itself."""


@dataclass(frozen=True)
class AdapterSpec(Spec):
    """A game, as a plugin offers it; the factory gives a `GameAdapter` (or `AvatarGameAdapter`)."""

    title: str = ""
    """The game's name for people; the name when empty."""
    abilities: tuple[Ability, ...] = ()
    seats: tuple[int, int] = (1, 1)
    """Fewest and most seats; the fewest are 0 only with the ability `lives`."""
    seat_names: tuple[str, ...] = ()
    """Names of the seats, in order; `seat-1`, `seat-2`, ... when empty."""
    variant: Reference | None = None
    """`(spec: AdapterSpec, options: Mapping[str, Any]) -> AdapterSpec`: the spec as it is with these options, such as
    other abilities, seats (within `seats`), seat names, or a title of its own; a `WsapError` says what is wrong with
    the options. It gets them as they were given: of a secret the name of its variable. None where nothing depends on
    them."""
    family: str = ""
    """The option, such as "template", that is NAME where somebody plays `game:NAME`; empty for a game that is one."""
    members: Reference | None = None
    """`() -> Iterable[str]`: every NAME of a family; None where the game alone can say what is one."""
    preset: Mapping[str, Any] = field(default_factory=dict)
    """Options that are decided already, as the name of a family's member decides one."""
    language: str = "en"
    """Code of the language that the game speaks, such as "ru"; the kernel and agents speak it with whoever plays."""
    timing: Timing = "free"
    deadline: float | None = None
    """Seconds a seat has for a decision before its default action is taken; None for as long as it likes."""
    default_action: Action | None = None
    """What is done for a seat that misses its deadline, unless the seat has a `default_action()` of its own."""
    default_agent: str = "random"
    score_metrics: tuple[ScoreMetric, ...] = ()
    achievements: tuple[Achievement, ...] = ()
    """The catalogue: what can be achieved, with description and rarity."""
    wire_types: tuple[Reference, ...] = ()
    """Subclasses of protocol types that the game sends, so that they can be decoded."""
    skills: Mapping[str, tuple[str, ...]] | None = None
    """Skill domain (of `SKILL_DOMAINS`) -> achievements and actions that are evidence for it."""
    transfer_rules: tuple[TransferRule, ...] = ()
    """What an agent's skills are worth in this game."""
    max_avatars: int = 3
    """Living avatars that one agent may have in this game."""
    max_worlds: int | None = None
    """Worlds of it that can be played at once, at least 1; None for as many as are wanted. Where all are taken, the
    nexus lets nobody else in, and calls the game busy."""
    genre: str = ""
    dimensions: str = ""
    """"2D", "3D", "text"."""
    persistent: bool = False
    """Whether the world goes on when nobody is in it."""
    blocking: bool = False
    """True if its synchronous methods take long; they then get a thread of their own."""
    asks_models: bool = False
    """Whether its worlds ask language models themselves: they stay in the process that has the models, never in a
    worker or behind HTTP."""
    complete_turns: bool = False
    """Each observation tells all that its seat needs to know, so that models are shown no earlier turns and asked
    for no plan, unless somebody wants it so."""
    brief: str = ""
    """The game in a few sentences, for models that are told little; the whole description when empty."""
    vocabulary: tuple[str, ...] = ()
    """Words, in the singular, that name what is in the game and what is done there: they are made-up ones where the
    game is played under another skin, so that nothing is known of it but what it shows."""
    objective: str = ""
    """What models are told their goal is, in a sentence or two; the usual sentence when empty."""
    look_back: str = ""
    """A command that shows more of a finished run than `wsap replay` does, with `{run}` for the run's name, such as
    "wsap mygame replay {run}". People are told it when a run is over; empty where there is none."""
    run_views: Reference | None = None
    """`(runs: RunReader, run: str, selection: Mapping[str, str]) -> View`: what people see of a recorded run, also of
    one that is being played, with what they selected (name -> what is chosen; see `Selection`). A selection that does
    not fit is ignored. None where a run is shown by the steps of its seats alone."""
    options: tuple[OptionDef, ...] = ()
    """What can be given with `--option NAME=VALUE`."""
    protocol_version: str = PROTOCOL_VERSION

    @property
    def stays_home(self) -> bool:
        """Whether its worlds stay in the process that runs the agents."""
        return self.asks_models or "live" in self.abilities

    @property
    def display_title(self) -> str:
        """The game's name for people."""
        return self.title or self.name

    def look_back_at(self, run: str) -> str:
        """Return the command that shows more of a finished run; empty where there is none."""
        return self.look_back.replace("{run}", run)

    def names_of_seats(self, count: int) -> tuple[str, ...]:
        """Return the names of the first `count` seats."""
        named = self.seat_names[:count]
        return named + tuple(f"seat-{i + 1}" for i in range(len(named), count))

    def options_with(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options that a world is made with: the given ones, below those that are preset."""
        return ChainMap(dict(self.preset), cast(Any, options)) if self.preset else options

    def with_options(self, options: Mapping[str, Any]) -> AdapterSpec:
        """Return the spec as it is for a world with these options; it has no `variant` any more.

        Raises:
            UsageError: the game can't say, because of the options or a fault of its own.
        """
        if self.variant is None:
            return self
        about = f"What {self.name!r} is like with these options is not known"
        try:
            found: AdapterSpec = load(self.variant)(self, self.options_with(options))
            low, high = found.seats
        except UsageError:
            raise
        except WsapError as error:
            raise UsageError(str(error)) from error
        except Exception as error:
            detail = error_line(error, kind=True).rstrip(". ")
            raise UsageError(f"{about}: {detail}. Look at the game's own options, or tell its author.") from error
        least, most = self.seats
        if {type(low), type(high)} != {int} or not least <= low <= high <= most:
            says = single_line(f"{low!r}" if low == high else f"{low!r} to {high!r}")[:60]
            raise UsageError(f"{about}: it says {says}, and declares {least} to {most} seats. Tell its author.")
        return replace(found, name=self.name, factory=self.factory, variant=None)

    def member(self, name: str) -> AdapterSpec:
        """Return the game `family:NAME` of a family.

        Raises:
            UnknownNameError: it is no family, or has none of that name.
            PluginError: its names can't be loaded.
        """
        known, wanted = self.member_names(), f"{self.name}:{name}"
        if not self.family:
            raise UnknownNameError("game", wanted, [self.name])
        if not name or (self.members is not None and name not in known):
            shown = f"There are: {', '.join(known[:30])}{', ...' if len(known) > 30 else ''}."
            raise UnknownNameError(f"game of the family {self.name!r}", name, known, hint=shown if known else "")
        return replace(self, name=wanted, preset={**self.preset, self.family: name}, family="", members=None)

    def member_names(self) -> list[str]:
        """Return every NAME of a family; none where the game alone can say what is one."""
        return [] if self.members is None else [str(name) for name in load(self.members)()]


@dataclass(frozen=True)
class AgentSpec(Spec):
    """An agent, as a plugin offers it; the factory gives an `Agent`."""

    abilities: tuple[Ability, ...] = ()
    games: tuple[str, ...] = ()
    """The games it knows how to play; empty for any."""
    interactive: bool = False
    """True if it needs a person at the terminal."""
    options: tuple[OptionDef, ...] = ()
    """What can be given with `--agent-option NAME=VALUE`."""

    def plays(self, game: str) -> bool:
        """Return whether it knows how to play a game, or the family that the game is of."""
        return not self.games or not {game, game.partition(":")[0]}.isdisjoint(self.games)


@dataclass(frozen=True)
class BackendSpec(Spec):
    """A language-model backend, named by the prefix of a model address (`ollama` in `ollama/qwen3:8b`).

    The factory gives a `wsap_core.seams.model.Backend`; the context's option `model` is the rest of the address.
    """

    abilities: tuple[str, ...] = ()
    models: Reference | None = None
    """`async (context) -> wsap_core.seams.model.Listing`: what can be asked now; None where nothing can be listed."""


@dataclass(frozen=True)
class MemorySpec(Spec):
    """A kind of memory for agents."""


@dataclass(frozen=True)
class ToolSpec(Spec):
    """A tool that agents can invoke while they think."""


@dataclass(frozen=True)
class CommandSpec(Spec):
    """A subcommand of `wsap`, whose help shows the summary; the factory is a click command, or gives one."""

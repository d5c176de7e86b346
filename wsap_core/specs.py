"""Specs: the small frozen descriptions that plugins register.

A factory is a callable or a `"module:attribute"` string that is imported on first use (`wsap_core.factories`);
it takes a `Context` or no argument.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from wsap_core.errors import UnknownNameError, UsageError, WorldError, WsapError
from wsap_core.factories import Reference, load
from wsap_core.protocol import Achievement, Action, TransferRule
from wsap_core.untrusted import error_line, single_line
from wsap_core.version import PROTOCOL_VERSION

Ability = Literal[
    "seed", "snapshot", "render", "avatars", "multi-seat", "transit", "messages", "lives", "influence", "irreversible"
]  # fmt: skip
"""What a game or agent can do beyond the required members."""

Timing = Literal["free", "alternating", "simultaneous", "phased"]
"""When a world resolves an action: at once (free), in the seat's turn (alternating), when all seats have acted
(simultaneous), or when those of the phase have (phased: one speaker by day, many by night)."""

STAYS = {"wsap": "stays"}
"""Metadata of a field that is not told to another process."""
NAMES_CODE = {"wsap": "names code"}
"""Metadata of a text that names an agent or a command; like a reference, it may not be trusted from elsewhere."""


@dataclass(frozen=True)
class EpisodeSummary:
    """The outcome of one episode of one seat, from which scores are computed."""

    seed: int
    steps: int
    reward: float
    achievements: tuple[str, ...]
    """Names unlocked in this episode, sorted."""
    done: bool
    """False if a step limit or an interruption cut it short; it then counts in no score."""
    seat: str = ""
    episode: int = 0
    forced: int = 0
    """Decisions replaced by a fallback, because the agent's own was unreadable or illegal."""
    repaired: int = 0
    """Decisions for which the agent was asked again."""
    truncated: bool = False
    """Whether the game ended it at a limit of steps or time; it counts in scores, as it is `done`."""


LARGEST_SCORE = 1e15
"""The largest score; the smallest is its negative."""


@dataclass(frozen=True)
class ScoreMetric:
    """A score of a game."""

    name: str
    """The name under which it is reported."""
    summary: str
    """One line."""
    compute: Reference
    """`(episodes: Sequence[EpisodeSummary]) -> float`."""
    unit: str = ""
    """Shown after the value, such as "%"; empty if there is none."""
    low: float | None = None
    """The lowest possible value; None if it is not known."""
    high: float | None = None
    """The highest possible value; None if it is not known."""
    of_set: bool = False
    """Whether it is defined for a set of episodes only, such as a geometric mean of rates."""
    better: Literal["higher", "lower"] = "higher"
    """Whether a higher or a lower value is better."""

    @property
    def worst(self) -> float | None:
        """The worst possible value; None if it is not declared."""
        return self.low if self.better == "higher" else self.high

    @property
    def best(self) -> float | None:
        """The best possible value; None if it is not declared."""
        return self.high if self.better == "higher" else self.low

    def of(self, episodes: Sequence[EpisodeSummary]) -> float:
        """Return the score of these episodes; WorldError if it fails, or is not within `LARGEST_SCORE` of zero."""
        try:
            value = float(load(self.compute)(episodes))
        except WsapError:
            raise
        except (Exception, SystemExit) as error:
            raise WorldError(f"The score {self.name!r} can't be computed: {error_line(error, kind=True)}") from error
        if not abs(value) <= LARGEST_SCORE:
            raise WorldError(f"The score {self.name!r} is {value:g}, not a number within {LARGEST_SCORE:g} of zero.")
        return value


Named = Literal["", "path", "program", "secret", "address", "model"]
"""What the value of an option names: nothing, a file or folder, a program, a secret (or the variable that has it), the
address of a server, the address of a model."""


@dataclass(frozen=True)
class OptionDef:
    """An option of a game, an agent or another part, as `wsap games NAME` lists it."""

    name: str
    """The name that users type before the `=`."""
    summary: str
    """One line."""
    default: str = ""
    """The default, in words; empty if there is none."""
    values: str = ""
    """The valid values: `yes|no`, `1-10`, or a word such as `file`; empty for any text."""
    names: Named = ""
    """What the value names; an option that names anything but a model can't be set over HTTP."""


@dataclass(frozen=True)
class Spec:
    """Base of all specs."""

    name: str
    """The name that users type: a-z, digits and dashes."""
    summary: str
    """One line."""
    factory: Reference = field(metadata=STAYS)
    """Creates the thing described."""


@dataclass(frozen=True)
class AdapterSpec(Spec):
    """A game; the factory returns a `GameAdapter` (or `AvatarGameAdapter`)."""

    title: str = ""
    """Display name; `name` when empty."""
    abilities: tuple[Ability, ...] = ()
    seats: tuple[int, int] = (1, 1)
    """Minimum and maximum number of seats; the minimum is 0 only with the ability `lives`."""
    seat_names: tuple[str, ...] = ()
    """Names of the seats, in order; `seat-1`, `seat-2`, ... when empty."""
    variant: Reference | None = None
    """`(spec: AdapterSpec, options: Mapping[str, Any]) -> AdapterSpec`: the spec of a world with these options, such
    as other abilities, seats (within `seats`), seat names or title; a `WsapError` reports invalid options. For a secret
    it gets the name of its variable. None if the spec depends on no option."""
    family: str = ""
    """The option, such as "template", that NAME in `game:NAME` sets; empty for a single game."""
    members: Reference | None = None
    """`() -> Iterable[str]`: every NAME of a family, perhaps to be followed by parameters in parentheses; or a mapping
    of each to why it can't be played, empty if it can. None if only the game can tell."""
    preset: Mapping[str, Any] = field(default_factory=dict)
    """Options with a fixed value, such as the one set by the name of a family's member."""
    language: str = "en"
    """Language code of the game, such as "ru"; the kernel and agents use it with the players."""
    timing: Timing = "free"
    deadline: float | None = None
    """Seconds that a seat has to bring the game on before its default action is taken; None for no limit."""
    default_action: Action | None = None
    """The action of a seat that misses its deadline, unless the seat has a `default_action()` of its own."""
    default_agent: str = field(default="random", metadata=NAMES_CODE)
    """The agent of a seat to which the user gives none: an installed one's name."""
    score_metrics: tuple[ScoreMetric, ...] = ()
    """The scores of the game, as `wsap games NAME` lists them and `wsap eval` reports them."""
    achievements: tuple[Achievement, ...] = ()
    """The catalogue of achievements, as `wsap games NAME` shows it."""
    meters: Mapping[str, float] = field(default_factory=dict)
    """Numbers of an observation's status that pages draw as bars, such as health -> the highest value of each; the
    lowest is 0."""
    wire_types: tuple[Reference, ...] = ()
    """Subclasses of protocol types that the game sends, for decoding."""
    skills: Mapping[str, tuple[str, ...]] | None = None
    """Skill domain (of `SKILL_DOMAINS`) -> achievements and actions that are evidence for it."""
    transfer_rules: tuple[TransferRule, ...] = ()
    """The bonuses of an agent's skills in this game."""
    terms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The terms of an entry that it takes, `spawn`, `loadout` and `difficulty` -> the values besides the protocol's
    default; the nexus refuses others."""
    max_avatars: int = 3
    """Most living avatars of one agent in this game."""
    max_worlds: int | None = None
    """Most worlds that can run at once, at least 1; None for no limit. When all are taken, the nexus reports the game
    as busy."""
    genre: str = ""
    """Such as "survival", for people who choose a game."""
    dimensions: str = ""
    """"2D", "3D", "text"."""
    persistent: bool = False
    """Whether the world goes on when nobody is in it."""
    blocking: bool = False
    """Whether its synchronous methods are slow, so that they run in a thread."""
    asks_models: bool = False
    """Whether its worlds call language models; they then run in the process that has the models, never behind HTTP, and
    in a worker only if they live."""
    complete_turns: bool = False
    """Whether each observation contains all that its seat needs, so that by default models get no earlier turns and
    are asked for no plan."""
    brief: str = ""
    """The game in a few sentences, for short prompts; the whole description when empty."""
    vocabulary: tuple[str, ...] = ()
    """Nouns (in the singular) and verbs of the game, which are made up when it is played under another skin, so that
    models know nothing about it in advance."""
    objective: str = ""
    """The goal that models are given, in a sentence or two; the protocol's sentence when empty."""
    look_back: str = field(default="", metadata=NAMES_CODE)
    """The command that shows a finished run in detail, such as "wsap mygame replay {run}", with `{run}` for the run's
    name; shown to the user when a run ends. Empty if there is none."""
    run_views: Reference | None = None
    """`(runs: RunReader, run: str, selection: Mapping[str, str]) -> View`: the view of a recorded run, or of one in
    progress, for what the viewer selected (name -> value; see `Selection`); invalid selections are ignored. None to
    show only the steps of the seats."""
    options: tuple[OptionDef, ...] = ()
    """The options for `--option NAME=VALUE`."""
    former_names: tuple[str, ...] = ()
    """The names that the game had before: whoever uses one, such as a recorded run, gets this game. A name that another
    game has now means that game."""
    protocol_version: str = PROTOCOL_VERSION
    """The version of the protocol that the game was written for; one of another major version is refused."""

    @property
    def stays_home(self) -> bool:
        """Whether its worlds run in the process of the agents."""
        return self.asks_models or "irreversible" in self.abilities

    @property
    def display_title(self) -> str:
        """The title, or the name if there is none."""
        return self.title or self.name

    def renamed(self, asked: str) -> str:
        """Return the sentence about a new name if the game was asked for by a former one; empty if it was not."""
        now = f"The game {asked!r} is called {self.name!r} now."
        return now if asked.partition(":")[0] in self.former_names else ""

    def look_back_at(self, run: str) -> str:
        """Return the `look_back` command for a run; empty if there is none."""
        return self.look_back.replace("{run}", run)

    def names_of_seats(self, count: int) -> tuple[str, ...]:
        """Return the names of the first `count` seats."""
        named = self.seat_names[:count]
        return named + tuple(f"seat-{i + 1}" for i in range(len(named), count))

    def options_with(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options of a world: the given ones, overridden by the preset ones."""
        return ChainMap(dict(self.preset), cast(Any, options)) if self.preset else options

    def with_options(self, options: Mapping[str, Any]) -> AdapterSpec:
        """Return the spec of a world with these options, without a `variant`; `UsageError` if there is none."""
        if self.variant is None:
            return self
        about = f"{self.name!r} can't be played with these options"
        try:
            found: AdapterSpec = load(self.variant)(self, self.options_with(options))
            low, high = found.seats
        except UsageError:
            raise
        except WsapError as error:
            raise UsageError(str(error)) from error
        except (Exception, SystemExit) as error:
            detail = error_line(error, kind=True).rstrip(". ")
            raise UsageError(f"{about}: {detail}. Check the options, or report this to the game's author.") from error
        least, most = self.seats
        if {type(low), type(high)} != {int} or not least <= low <= high <= most:
            says = single_line(f"{low!r}" if low == high else f"{low!r} to {high!r}")[:60]
            raise UsageError(f"{about}: the seats ({says}) are not in {least} to {most}. Report this to its author.")
        return replace(found, name=self.name, factory=self.factory, variant=None)

    def member(self, name: str) -> AdapterSpec:
        """Return the game `family:NAME` of a family.

        Raises:
            UnknownNameError: this is not a family, or has no such member.
            PluginError: the names of its members can't be loaded.
        """
        known, wanted = list(self.known_members()), f"{self.name}:{name}"
        if not self.family:
            raise UnknownNameError("game", wanted, [self.name])
        if not name or (self.members is not None and name.partition("(")[0] not in known):
            shown = f"There are: {', '.join(known[:30])}{', ...' if len(known) > 30 else ''}."
            raise UnknownNameError(f"game of the family {self.name!r}", name, known, hint=shown if known else "")
        return replace(self, name=wanted, preset={**self.preset, self.family: name}, family="", members=None)

    def known_members(self) -> dict[str, str]:
        """Return every NAME of a family -> why it can't be played, empty if it can."""
        known = () if self.members is None else load(self.members)()
        return {str(name): str(known[name]) if isinstance(known, Mapping) else "" for name in known}


@dataclass(frozen=True)
class AgentSpec(Spec):
    """An agent; the factory returns an `Agent`."""

    abilities: tuple[Ability, ...] = ()
    games: tuple[str, ...] = ()
    """The games that it can play; empty for any."""
    interactive: bool = False
    """Whether it needs a person at the terminal."""
    options: tuple[OptionDef, ...] = ()
    """The options for `--agent-option NAME=VALUE`."""

    def plays(self, game: str) -> bool:
        """Return whether it can play a game, given by its name or as `family:NAME`."""
        return not self.games or not {game, game.partition(":")[0]}.isdisjoint(self.games)


PartOptions = tuple[OptionDef, ...] | str
"""The options of a part of an agent, or the `module:attribute` that holds them; others can't be set over HTTP."""


def part_options(spec: BackendSpec | MemorySpec | ToolSpec) -> dict[str, OptionDef]:
    """Return the options that a part of an agent declares, by name."""
    return {known.name: known for known in (load(spec.options) if isinstance(spec.options, str) else spec.options)}


@dataclass(frozen=True)
class BackendSpec(Spec):
    """A model backend; its name is the first word of addresses (`ollama` in `ollama/qwen3:8b`). The factory returns a
    `wsap_core.seams.model.Backend`; the context's option `model` is the rest of the address."""

    abilities: tuple[str, ...] = ()
    """Names of the fields of `wsap_core.seams.model.Abilities` that any of its models may have, for listings."""
    models: Reference | None = None
    """`async (context) -> wsap_core.seams.listing.Listing`: the models that are available now; None if they can't be
    listed."""
    options: PartOptions = ()
    """Its options; `model` is among them if the rest of the address can name a file."""


@dataclass(frozen=True)
class MemorySpec(Spec):
    """A kind of memory for agents."""

    options: PartOptions = ()


@dataclass(frozen=True)
class ToolSpec(Spec):
    """A tool that agents can use while they think."""

    options: PartOptions = ()


@dataclass(frozen=True)
class CommandSpec(Spec):
    """A subcommand of `wsap`; the factory is a click command, or returns one."""


def problems_of(spec: Spec) -> list[str]:
    """Return what is wrong with the values of a spec, one sentence each, without importing what it refers to."""
    found = []
    for name, kind in types_of(cast(Any, type(spec))).items():
        value = getattr(spec, name)
        if not _fits(value, kind):
            found.append(f"{name} is {single_line(repr(value))[:80]}; it must be {_named(kind)}.")
    if found or not isinstance(spec, AdapterSpec):
        return found
    low, high = spec.seats
    lives = "lives" in spec.abilities
    if not (0 if lives else 1) <= low <= high:
        found.append(f"seats is {spec.seats}; it must be (minimum, maximum), from 1, or 0 for a world that lives.")
    if not all(name.strip() for name in spec.seat_names):
        found.append("seat_names has an empty name.")
    if spec.deadline is not None and not 0 < spec.deadline < float("inf"):
        found.append(f"deadline is {spec.deadline:g}; it must be a number of seconds above 0, or None.")
    found += [
        f"{name} is {value}; it must be at least 1."
        for name, value in (("max_avatars", spec.max_avatars), ("max_worlds", spec.max_worlds))
        if value is not None and value < 1
    ]
    if spec.protocol_version.split(".")[0] != PROTOCOL_VERSION.split(".")[0]:
        found.append(f"It uses version {spec.protocol_version} of the protocol, and this is {PROTOCOL_VERSION}.")
    return found


@cache
def types_of(cls: Any) -> dict[str, Any]:
    """Return the types of a dataclass' fields; any text is an ability, so that newer plugins can be listed."""
    hints = get_type_hints(cls)
    return {f.name: tuple[str, ...] if f.name == "abilities" else hints[f.name] for f in fields(cls)}


def _fits(value: object, kind: Any) -> bool:
    arguments = get_args(kind)
    match get_origin(kind):
        case None:
            if kind is Any:
                return True
            if kind in (int, float):
                return type(value) is int or (kind is float and isinstance(value, float))
            if isinstance(value, ScoreMetric | OptionDef) and isinstance(value, kind):
                return all(_fits(getattr(value, name), each) for name, each in types_of(kind).items())
            return isinstance(value, kind)
        case origin if origin is Literal:
            return value in arguments
        case origin if origin in (Union, UnionType):
            return any(_fits(value, each) for each in arguments)
        case origin if origin is tuple and isinstance(value, tuple):
            parts = arguments[:1] * len(value) if arguments[-1] is ... else arguments
            return len(parts) == len(value) and all(map(_fits, value, parts))
        case origin if origin is Mapping and isinstance(value, Mapping):
            return all(_fits(k, arguments[0]) and _fits(v, arguments[1]) for k, v in value.items())
        case origin if origin is Callable:
            return callable(value)
    return False


def _named(kind: Any) -> str:
    """Return a type as it is written in Python, or the words of a literal."""
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    return kind.__name__ if isinstance(kind, type) else re.sub(r"\w+\.(?=\w)", "", str(kind))

"""Suites: the games, seeds, metrics and entrants of an evaluation.

A suite is bundled, a TOML file, or given on the command line. Its hash covers everything that a score depends on, but
not the entrants or the number of seeds, so that both can be added to existing results.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError, model_validator

from wsap_core.errors import UnknownNameError, UsageError
from wsap_core.seams.context import SEED_LIMIT
from wsap_core.textfile import read_text
from wsap_core.untrusted import single_line

FORMAT = 1
"""The supported version of the suite format."""
FORFEIT = 0.2
"""The default share of forced decisions above which an episode is forfeited."""
Legal = Literal["bound", "shown", "hidden"]
"""How a model gets legal actions: its reply is bound to them, they are only listed, or neither. Scores of different
modes are not comparable."""
Label = Annotated[str, StringConstraints(strip_whitespace=True), Field(max_length=120, pattern=r"^[^\x00-\x1f\x7f]*$")]
Tag = Annotated[str, Field(max_length=60, pattern=r"^[\w][\w.:/=+@-]*$")]
"""A word by which results are filtered; it has no influence on scores."""
Seed = Annotated[int, Field(ge=0, le=SEED_LIMIT)]

Reduce = Annotated[str, Field(pattern=r"^(mean|max|min|median|pass[@^][1-9][0-9]{0,2})$")]
REDUCERS = "mean, max, min, median, pass@K or pass^K"

P = TypeVar("P", bound="_Part")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Entrant(_Part):
    """An agent or model to be measured, with its options."""

    agent: str
    """A registered agent, a model's address such as `openai/gpt-5`, or `./file.py:Name`."""
    label: Label = ""
    """The name of its row. Default: the agent with its options."""
    options: Mapping[str, JsonValue] = {}
    tags: tuple[Tag, ...] = ()

    @property
    def name(self) -> str:
        """The name of its row in the table."""
        given = ",".join(f"{key}={value}" for key, value in self.options.items())
        return self.label or (f"{self.agent},{given}" if given else self.agent)


class GameEntry(_Part):
    """A game as configured in a suite: a column of the table."""

    game: str
    """A registered game, or `./file.py:Name`."""
    label: Label = ""
    """The name of its column. Default: the game."""
    options: Mapping[str, JsonValue] = {}
    steps: Annotated[int, Field(ge=1)] | None = None
    """Maximum decisions of each seat in an episode; None for no limit."""
    metric: str = ""
    """The game's metric that is the score, or `reward`. Default: the game's first metric of single episodes."""
    legal: Legal = "bound"
    skin: str = ""
    """A seed for renaming the game's contents in texts for models; empty for the original names."""
    against: str = ""
    """The agent in the other seats; empty if the entrant takes all seats."""
    seat: str = ""
    """The entrant's seat if there is an opponent: by default the first; "each" alternates by seed."""
    pairs: Literal["", "round-robin"] = ""
    """"round-robin": in a game of two seats, each entrant meets each, including itself, with a column for each
    opponent. On each seed each of the two has the first seat once. The entrants are rated."""

    seating: Literal["", "square"] = ""
    """"square": all entrants play each game together, with seats by Latin square: on each seed there are as many games
    as entrants, in which each entrant has each seat once. The entrants are rated."""

    tags: tuple[Tag, ...] = ()

    @model_validator(mode="after")
    def _one_opponent(self) -> GameEntry:
        if self.pairs and (self.against or self.seat):
            raise ValueError("a round robin determines opponents and seats; leave out against and seat")
        if self.seating and (self.pairs or self.against or self.seat):
            raise ValueError("a Latin square determines opponents and seats; leave out pairs, against and seat")
        return self

    @property
    def name(self) -> str:
        """The name of its column in the table."""
        return self.label or self.game


class Seeds(_Part):
    """The seeds of a suite."""

    first: Seed = 0
    count: Annotated[int, Field(ge=1, le=1_000_000)] = 20
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    """Episodes of each seed and entrant; more than one is useful only for models."""
    salt: str = ""
    """Draws a private range: seeds derived from this secret text and the numbers from `first`."""

    def numbers(self) -> tuple[int, ...]:
        """Return the seeds in playing order, each once."""
        if not self.salt:
            return tuple(range(self.first, self.first + self.count))
        found, index = dict[int, None](), self.first
        while len(found) < self.count:  # two numbers may draw the same seed
            found[_salted(self.salt, index)] = None
            index += 1
        return tuple(found)


class EpisodeLimits(_Part):
    """Limits of each episode, at which it ends with what it has; None for no limit."""

    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    tokens: Annotated[int, Field(ge=1)] | None = None
    """Prompts and replies of all its seats together."""
    calls: Annotated[int, Field(ge=1)] | None = None
    cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """US dollars."""

    def given(self) -> dict[str, float]:
        """Return kind -> limit, of those that are set."""
        return self.model_dump(exclude_none=True)

    def told(self, kind: str) -> str:
        """Return a limit in words, such as "60 seconds" or "$0.5"."""
        most = self.given()[kind]
        return f"${most:g}" if kind == "cost" else f"{most:,.15g} {kind}"


class Limits(_Part):
    """The limits of a suite."""

    episode: EpisodeLimits = EpisodeLimits()


class Suite(_Part):
    """The definition of an evaluation."""

    format: Literal[1] = 1
    name: Annotated[Label, Field(min_length=1)]
    summary: str = ""
    version: int = 1
    """Raised if games are played in another way: scores of different versions are not comparable."""
    games: tuple[GameEntry, ...] = Field(min_length=1)
    entrants: tuple[Entrant, ...] = ()
    seeds: Seeds = Seeds()
    forfeit: Annotated[float, Field(ge=0, le=1)] = FORFEIT
    """An episode is forfeited if more than this share of the entrant's decisions was forced because replies were
    unreadable or illegal."""
    limit: Limits = Limits()
    tags: tuple[Tag, ...] = ()
    baseline: str = ""
    """The entrant that the others are compared to. Default: the first."""

    reduce: Reduce = "mean"
    """The value of a seed that is played several times: mean, max, min or median of its repeats; `pass@K`, the
    probability that at least one of K repeats has the metric's best value; or `pass^K`, that all K have."""

    @model_validator(mode="after")
    def _labels_differ(self) -> Suite:
        for what, names in (("game", [g.name for g in self.games]), ("entrant", [e.name for e in self.entrants])):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"two {what}s are called {twice[0]!r}; give one another label")
        return self

    @property
    def digest(self) -> str:
        """The SHA-256 of everything that scores depend on: games, rules, how seeds are drawn."""
        body = self.model_dump(
            mode="json",
            include={"format", "games", "forfeit", "limit"},
            exclude={"games": {"__all__": {"tags"}}},
            exclude_defaults=True,
        )
        return hashlib.sha256(json.dumps([body, self.seeds.salt], sort_keys=True).encode()).hexdigest()

    def why_apart(self, other: Suite) -> str:
        """Return in words why results of another suite are not comparable with its own; empty if they are.

        Suites may differ in games, but not in how a game of the same label is played; in metrics, since scores are
        computed from what was played; and in entrants and seeds.
        """
        if other.version != self.version:
            return f"version {other.version} of the suite {other.name!r}, and this is version {self.version}"
        own, others = ({game.name: _played(game) for game in suite.games} for suite in (self, other))
        what = [f"{key} of {name!r}" for name in own if name in others for key in own[name]
                if own[name][key] != others[name][key]]  # fmt: skip
        what += [name for name in ("forfeit",) if getattr(self, name) != getattr(other, name)]
        what += ["the limit of an episode"] * (self.limit != other.limit)
        what += ["the salt"] * (self.seeds.salt != other.seeds.salt)
        return f"an earlier form of the suite {other.name!r} with another value for {', '.join(what)}" if what else ""


def _played(game: GameEntry) -> dict[str, Any]:
    return game.model_dump(mode="json", exclude={"metric", "tags"})


def load_suite(name: str) -> Suite:
    """Return a bundled suite by its name, or the suite of a TOML file.

    Raises UnknownNameError if there is none of that name; UsageError if the suite is invalid or of another version;
    ConfigError if the file can't be read.
    """
    known = shipped_suites()
    if name in known:
        text = resources.files("wsap_eval").joinpath("suites", f"{name}.toml").read_text("utf-8")
    elif name.endswith(".toml"):
        text = read_text(Path(name), "The suite")
    else:
        raise UnknownNameError("suite", name, known, hint="For your own suite give its file: wsap eval mine.toml.")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"The suite {name!r} is not valid TOML: {single_line(error)}.") from error
    except RecursionError as error:
        raise UsageError(f"The suite {name!r} is nested too deeply.") from error
    given = data.get("format", FORMAT)
    if given != FORMAT:
        raise UsageError(f"The suite {name!r} has format {single_line(given)[:20]}; this version reads {FORMAT}.")
    return made(f"The suite {name!r}", Suite, {"name": Path(name).stem, **data})


def shipped_suites() -> tuple[str, ...]:
    """Return the names of the bundled suites."""
    folder = resources.files("wsap_eval").joinpath("suites")
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


def composed(
    name: Suite | str | None,
    *,
    games: Sequence[str] = (),
    entrants: Sequence[Entrant] = (),
    seeds: int | None = None,
    first_seed: int | None = None,
    repeats: int | None = None,
    steps: int | None = None,
    legal: Legal = "bound",
    baseline: str | None = None,
    reduce: str | None = None,
    limit: Mapping[str, float] | None = None,
) -> Suite:
    """Return a suite, by name or made of `games`, with additional entrants and changed seeds.

    `steps` and `legal` apply to `games`; None keeps the suite's value, as does a kind of limit of an episode that
    `limit` does not have. Raises UsageError if there is nothing to play or nobody to play it, both a suite and games
    are given, or a value is out of range; UnknownNameError if the suite or the baseline is unknown.
    """
    if (name is None) == (not games):
        raise UsageError("Name a suite or games, for instance: wsap eval --game minigrid --entrant random.")
    chosen: dict[str, Any] = (
        {"name": "+".join(games), "games": [{"game": game, "steps": steps, "legal": legal} for game in games]}
        if name is None
        else (name if isinstance(name, Suite) else load_suite(name)).model_dump(mode="json", exclude_unset=True)
    )
    changed = {"count": seeds, "first": first_seed, "repeats": repeats}
    numbers = chosen.get("seeds", {}) | {key: value for key, value in changed.items() if value is not None}
    own = [entrant.model_dump(mode="json") for entrant in entrants]
    if reduce is not None:
        chosen["reduce"] = reduce
    if limit:
        chosen["limit"] = {"episode": {**chosen.get("limit", {}).get("episode", {}), **limit}}
    whole = {**chosen, "seeds": numbers, "entrants": [*chosen.get("entrants", []), *own]}
    suite = made("The evaluation", Suite, whole)
    if not suite.entrants:
        raise UsageError("Name at least one entrant, for instance: --entrant random.")
    if baseline is None:
        return suite
    picked([entrant.name for entrant in suite.entrants], [baseline], "entrant")
    return suite.model_copy(update={"baseline": baseline})


def folder_of(suite: Suite, name: str | None) -> Path:
    """Return the default folder of a suite's results, below `wsap-eval`; `name` is None for a suite made of games."""
    label = suite.name if name is not None else f"{suite.name}-{suite.digest[:8]}"
    return Path("wsap-eval") / (re.sub(r"[^\w .,=+@-]+", "-", label).strip(" .-") or "suite")


def read_entrant(text: str) -> Entrant:
    """Return the entrant of `NAME[,OPTION=VALUE...]`, where `label=` names its row. Raises UsageError."""
    agent, *given = text.split(",")
    options = dict(part.partition("=")[::2] for part in given)
    if not agent or any("=" not in part for part in given):
        raise UsageError(f"Invalid entrant {text!r}; expected for example random or ollama/qwen3:8b,temperature=0.")
    if len(options) < len(given):
        raise UsageError(f"{text!r} gives an option twice.")
    label = options.pop("label", "")
    return made("The entrant", Entrant, {"agent": agent, "options": options, **({"label": label} if label else {})})


def tags_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return tags, each once. Raises UsageError if one is invalid."""
    found = tuple(dict.fromkeys(words))
    made("--tag", _Tags, {"tags": found})
    return found


class _Tags(_Part):
    tags: tuple[Tag, ...]


_WHY = {
    "extra_forbidden": "there is no such key",
    "string_pattern_mismatch": "it has a forbidden character",
}


def made(what: str, kind: type[P], data: Mapping[str, Any]) -> P:
    """Return a validated part of a suite. Raises UsageError, whose message starts with `what`."""
    try:
        text = json.dumps(data, default=str, allow_nan=False)
    except ValueError as error:
        raise UsageError(f"{what} has a number that is not finite (inf, nan).") from error
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        why = (
            f"expected {REDUCERS}"
            if where == "reduce"
            else _WHY.get(first["type"]) or single_line(first["msg"])[:200].removeprefix("Value error, ")
        )
        raise UsageError(f"{what} is invalid{f' at {where}' if where else ''}: {why}.") from error


def _salted(salt: str, index: int) -> int:
    drawn = hashlib.sha256(f"{salt}\0{index}".encode()).digest()
    return int.from_bytes(drawn[:8], "big") % (SEED_LIMIT + 1)


def picked(labels: Sequence[str], wanted: Sequence[str], what: str) -> list[str]:
    """Return the wanted labels, or all if none are given. Raises UnknownNameError."""
    for label in wanted:
        if label not in labels:
            raise UnknownNameError(what, label, labels, hint=f"There are: {', '.join(labels)}.")
    return list(wanted or labels)

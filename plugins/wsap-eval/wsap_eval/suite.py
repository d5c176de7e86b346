"""Suites: which games are played on which seeds, how they are measured, and by whom they are played.

A suite is a TOML file, one that is shipped, or what the command line says. Its hash covers everything that a figure
depends on; entrants and the number of seeds are not in it, so that both can be added to results that are there.
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

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from wsap_core.errors import UnknownNameError, UsageError
from wsap_core.seams.context import SEED_LIMIT
from wsap_core.textfile import read_text
from wsap_core.untrusted import single_line

FORMAT = 1
"""The version of suites that this package reads."""
FORFEIT = 0.2
"""The share of forced decisions above which an episode is forfeited, unless a suite says another."""
Legal = Literal["bound", "shown", "hidden"]
"""How legal actions are given to a model: its reply is bound to them, they are only listed, or neither. Figures across
these modes do not compare."""
Label = Annotated[str, Field(max_length=120, pattern=r"^[^\x00-\x1f\x7f]*$")]
Seed = Annotated[int, Field(ge=0, le=SEED_LIMIT)]


P = TypeVar("P", bound="_Part")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Entrant(_Part):
    """Who is measured: an agent, or a model with what it is asked with."""

    agent: str
    """A registered agent, a model's address such as `openai/gpt-5`, or `./file.py:Name`."""
    label: Label = ""
    """The row of the table; the agent with its options when empty."""
    options: Mapping[str, JsonValue] = {}
    """The agent's own options."""

    @property
    def name(self) -> str:
        """The row of the table."""
        given = ",".join(f"{key}={value}" for key, value in self.options.items())
        return self.label or (f"{self.agent},{given}" if given else self.agent)


class GameEntry(_Part):
    """A game as it is played in a suite: a column of the table."""

    game: str
    """A registered game, or `./file.py:Name`."""
    label: Label = ""
    """The column of the table; the game when empty."""
    options: Mapping[str, JsonValue] = {}
    """The game's own options."""
    steps: Annotated[int, Field(ge=1)] | None = None
    """Decisions after which an episode is cut off, for each seat; None for none."""
    metric: str = ""
    """Which of the game's metrics is the figure, or `reward`; the game's first of an episode when empty."""
    legal: Legal = "bound"
    """How legal actions are given."""
    skin: str = ""
    """A seed by which what is in the game is renamed in all that models are told of it; empty for its own words."""
    against: str = ""
    """Who takes the seats that the entrant does not; the entrant takes all when empty."""
    seat: str = ""
    """The entrant's seat where there is somebody to play against; the game's first when empty, and "each" for one
    after the other, by seed."""
    pairs: Literal["", "round-robin"] = ""
    """"round-robin" lets each entrant of a game of two seats meet each, itself included: a column for each opponent.
    Of two entrants each has the first seat on each seed; the entrants are rated."""

    @model_validator(mode="after")
    def _one_opponent(self) -> GameEntry:
        if self.pairs and (self.against or self.seat):
            raise ValueError("a round robin says itself who plays against whom, and from which seat")
        return self

    @property
    def name(self) -> str:
        """The column of the table."""
        return self.label or self.game


class Seeds(_Part):
    """Which seeds are played."""

    first: Seed = 0
    count: Annotated[int, Field(ge=1, le=1_000_000)] = 20
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often each is played by each entrant: more than once only where a model decides."""
    salt: str = ""
    """Draws a private range: seeds that follow from this secret text and the numbers from `first` on."""

    def numbers(self) -> tuple[int, ...]:
        """Return the seeds, in the order in which they are played."""
        indices = range(self.first, self.first + self.count)
        return tuple(_salted(self.salt, index) if self.salt else index for index in indices)


class Suite(_Part):
    """An evaluation without its entrants' results."""

    format: Literal[1] = 1
    name: Annotated[Label, Field(min_length=1)]
    summary: str = ""
    version: int = 1
    """Raised with every change: figures of different versions do not compare."""
    games: tuple[GameEntry, ...] = Field(min_length=1)
    entrants: tuple[Entrant, ...] = ()
    seeds: Seeds = Seeds()
    forfeit: Annotated[float, Field(ge=0, le=1)] = FORFEIT
    """An episode is forfeited where more than this share of the entrant's decisions had to be forced, because no reply
    could be read or none was legal."""
    baseline: str = ""
    """The entrant that the others are compared to; the first when empty."""

    @model_validator(mode="after")
    def _labels_differ(self) -> Suite:
        for what, names in (("game", [g.name for g in self.games]), ("entrant", [e.name for e in self.entrants])):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"two {what}s are called {twice[0]!r}; give one a label of its own")
        return self

    @property
    def digest(self) -> str:
        """The SHA-256 of what figures depend on: games, rules, how seeds are drawn; not entrants or their number."""
        body = self.model_dump(mode="json", include={"format", "games", "forfeit"}, exclude_defaults=True)
        return hashlib.sha256(json.dumps([body, self.seeds.salt], sort_keys=True).encode()).hexdigest()


def load_suite(name: str) -> Suite:
    """Return a shipped suite by its name, or one of a TOML file.

    Raises:
        UnknownNameError: none of that name is shipped, and there is no such file.
        UsageError: it is no suite, or of another version; the message says where it is wrong.
        ConfigError: the file can't be read.
    """
    known = shipped_suites()
    if name in known:
        text = resources.files("wsap_eval").joinpath("suites", f"{name}.toml").read_text("utf-8")
    elif name.endswith(".toml"):
        text = read_text(Path(name), "The suite")
    else:
        raise UnknownNameError("suite", name, known, hint="A suite of your own is a file: wsap eval mine.toml.")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"The suite {name!r} is not valid TOML: {single_line(error)}.") from error
    given = data.get("format", FORMAT)
    if given != FORMAT:
        raise UsageError(f"The suite {name!r} has format {single_line(given)[:20]}, and this version reads {FORMAT}.")
    return made(f"The suite {name!r}", Suite, {"name": Path(name).stem, **data})


def shipped_suites() -> tuple[str, ...]:
    """Return the names of the suites that come with this package."""
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
) -> Suite:
    """Return a suite of this name, or one of games, with more entrants and other seeds.

    Args:
        name: as `load_suite` takes it, or a suite; None where there are games.
        games: each played with `steps` and `legal`, which a suite says itself.
        entrants: besides those of the suite.
        seeds: how many; as the suite says when None, and so for the others.
        first_seed: the first seed.
        repeats: how often each seed is played.
        steps: decisions after which an episode is cut off.
        legal: how legal actions are given.
        baseline: whom the others are compared to.

    Raises:
        UsageError: nothing or nobody to play is named, both a suite and games are, or something is out of range.
        UnknownNameError: there is no such suite, or no such entrant to be the baseline.
    """
    if (name is None) == (not games):
        raise UsageError("Name a suite or games, for instance: wsap eval --game minigrid --entrant random.")
    chosen: dict[str, Any] = (
        {"name": "+".join(games), "games": [{"game": game, "steps": steps, "legal": legal} for game in games]}
        if name is None
        else (name if isinstance(name, Suite) else load_suite(name)).model_dump(mode="json")
    )
    changed = {"count": seeds, "first": first_seed, "repeats": repeats}
    numbers = chosen.get("seeds", {}) | {key: value for key, value in changed.items() if value is not None}
    own = [entrant.model_dump(mode="json") for entrant in entrants]
    whole = {**chosen, "seeds": numbers, "entrants": [*chosen.get("entrants", []), *own]}
    suite = made("The evaluation", Suite, whole)
    if not suite.entrants:
        raise UsageError("Say who is measured, for instance: --entrant random.")
    if baseline is None:
        return suite
    picked([entrant.name for entrant in suite.entrants], [baseline], "entrant")
    return suite.model_copy(update={"baseline": baseline})


def folder_of(suite: Suite, name: str | None) -> Path:
    """Return where the results of a suite go if nothing else is said: in `wsap-eval`, whatever its name holds.

    `name` is that of a suite, None for games.
    """
    label = suite.name if name is not None else f"{suite.name}-{suite.digest[:8]}"
    return Path("wsap-eval") / (re.sub(r"[^\w .,=+@-]+", "-", label).strip(" .-") or "suite")


def read_entrant(text: str) -> Entrant:
    """Return the entrant that a person typed: `NAME[,OPTION=VALUE...]`, of which `label=` names its row.

    Raises:
        UsageError: it is none.
    """
    agent, *given = text.split(",")
    options = dict(part.partition("=")[::2] for part in given)
    if not agent or any("=" not in part for part in given):
        raise UsageError(f"{text!r} is no entrant; it looks like random or ollama/qwen3:8b,temperature=0.")
    label = options.pop("label", "")
    return made("The entrant", Entrant, {"agent": agent, "options": options, **({"label": label} if label else {})})


_WHY = {
    "extra_forbidden": "there is no such key",
    "string_pattern_mismatch": "it has a character that can't stand there",
}


def made(what: str, kind: type[P], data: Mapping[str, Any]) -> P:
    """Return a part of a suite.

    Raises:
        UsageError: the data does not fit; begins with `what`.
    """
    try:
        text = json.dumps(data, default=str, allow_nan=False)
    except ValueError as error:
        raise UsageError(f"{what} has a number that is infinite or none (inf, nan); give a finite one.") from error
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        why = _WHY.get(first["type"]) or single_line(first["msg"])[:200].removeprefix("Value error, ")
        raise UsageError(f"{what} is wrong{f' at {where}' if where else ''}: {why}.") from error


def _salted(salt: str, index: int) -> int:
    drawn = hashlib.sha256(f"{salt}\0{index}".encode()).digest()
    return int.from_bytes(drawn[:8], "big") % (SEED_LIMIT + 1)


def picked(labels: Sequence[str], wanted: Sequence[str], what: str) -> list[str]:
    """Return the labels that were asked for, or all.

    Raises:
        UnknownNameError: there is no such label.
    """
    for label in wanted:
        if label not in labels:
            raise UnknownNameError(what, label, labels, hint=f"There are: {', '.join(labels)}.")
    return list(wanted or labels)

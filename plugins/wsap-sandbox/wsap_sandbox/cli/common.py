"""Shared code of the story commands: options, finding a story, and printing ticks."""

from __future__ import annotations

import asyncio
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

import click

from wsap_core.cli.grouped import GroupedCommand, Sections
from wsap_core.cli.output import print_json
from wsap_core.errors import UnknownNameError, UsageError
from wsap_core.untrusted import single_line, strip_control
from wsap_sandbox.options import SandboxOptions

if TYPE_CHECKING:
    from wsap_core.protocol.values import JsonValue
    from wsap_core.seams.agent import Usage
    from wsap_core.seams.model import Price, SpendingLimit
    from wsap_core.seams.services import Runner, RunReader, Services
    from wsap_sandbox.model import World
    from wsap_sandbox.story.chapters import Chapter
    from wsap_sandbox.world import Sandbox

Told = tuple[Any, str]
"""A command's output: as JSON-ready data (Any), and as text."""

_WIDEST = 96
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


_SHARED = (
    click.Option(["--database"], metavar="PATH",
                 help="The database: a path or URL. Default: WSAP_DATABASE, else wsap.db in the data folder."),
    click.Option(["--json", "as_json"], is_flag=True, help="Print JSON and nothing else."),
)  # fmt: skip


def story_command(
    *examples: str,
    sections: Sections | None = None,
    params: Sequence[click.Parameter] = (),
    opens: bool = True,
    story: bool = True,
) -> Callable[[Callable[..., Told | None]], click.Command]:
    """Decorate a function that returns its output or None: make it a command with STORY, --database and --json.

    The function receives the database's `Stories` and the parsed arguments, with `story` resolved to the run id. With
    `opens=False` it receives `database` and `as_json` instead and opens the database itself.
    """

    def made(function: Callable[..., Told | None]) -> click.Command:
        @wraps(function)
        def called(as_json: bool, database: str | None, **given: Any) -> None:
            if not opens:
                function(database=database, as_json=as_json, **given)
                return
            with opened(database) as stories:
                if given.get("story"):
                    given["story"] = stories.find(given["story"])
                told = function(stories, **given)
            if told is not None:
                print_told(told, as_json)

        command = click.command(cls=GroupedCommand, examples=examples, sections=sections)(called)
        command.params = [*([click.Argument(["story"])] if story else []), *command.params, *params, *_SHARED]
        return command

    return made


def print_told(told: Told, as_json: bool) -> None:
    """Print a command's output."""
    if as_json:
        print_json(told[0])
    else:
        click.echo(told[1])


class Stories:
    """The stories of a database, for one command."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.runs = cast("RunReader", services.require("runs"))
        self.runner = cast("Runner", services.require("runner"))

    def find(self, name: str) -> str:
        """Return the run id of a story; raises like `about`."""
        return str(self.about(name)["run"])

    def about(self, name: str) -> Mapping[str, Any]:
        """Return the run record of a story.

        Raises UnknownNameError if there is no such run; UsageError if it is not a story.
        """
        from wsap_sandbox.templates.loader import template_names  # deferred for weight: it validates templates

        about = self.runs.about(name)
        if str(about["game"]).partition(":")[0] not in ("sandbox", *template_names()):
            raise UsageError(
                f"Run {about['run']!r} is a run of {about['game']!r}, not a story; start one with: wsap sandbox new"
            )
        return about

    def options(self, name: str) -> SandboxOptions:
        """Return the options that a story was started with; raises like `about`."""
        return SandboxOptions.read(self.about(name)["config"]["options"])

    def spent(self, run: str) -> Usage:
        """Return the usage of models in a story from its recorded calls, which one that was killed has, too."""
        from wsap_core.seams.agent import NO_USAGE, Usage  # deferred for weight

        calls = self.runs.events(run, "call")
        return sum((Usage(**event["body"]["reply"]["finish"]["usage"]) for event in calls), NO_USAGE)

    def check_new(self, name: str) -> None:
        """Raise UsageError if a new story can't have this name because it is invalid or taken by a run."""
        if not _NAME.fullmatch(name) or name == "last":
            raise UsageError(
                f"Invalid story name {single_line(name)[:60]!r}; use a lower-case letter followed by at most 39 "
                "lower-case letters, digits, - and _."
            )
        try:
            taken = self.runs.about(name)["run"] == name
        except UsageError:  # there is none, or the prefix is ambiguous
            return
        if taken:
            raise UsageError(f"Run {name!r} already exists; choose another name, or continue: wsap sandbox run {name}")

    def world(self, run: str, tick: int | None = None) -> Sandbox:
        """Return the world of a story after a tick, by default the newest. Raises UsageError if it does not exist."""
        if tick is not None:
            self.check_tick(run, tick)
        return cast("Sandbox", asyncio.run(self.runs.restored(run, tick)))

    def check_tick(self, run: str, tick: int) -> None:
        """Raise UsageError if a story does not have this tick."""
        newest = self.runs.ticks(run)
        if tick and not newest:
            raise UsageError(f"{run} has no ticks yet; continue: wsap sandbox run {run}")
        if not 0 <= tick <= newest:
            raise UsageError(f"{run} has no tick {tick}; choose 0 (its beginning) to {newest}.")

    def chapters(self, run: str, first: int = 1, last: int | None = None) -> Iterator[Chapter]:
        """Yield the ticks of a story from the first to the last."""
        from wsap_sandbox.story.chapters import KINDS, read_chapters

        return read_chapters(self.runs.history(run, *KINDS, first=first, last=last))


@contextmanager
def opened(
    database: str | None, *, budgets: Sequence[SpendingLimit] = (), prices: dict[str, Price] | None = None
) -> Iterator[Stories]:
    """Yield the stories of a database. Raises StorageError if it can't be used."""
    from wsap_core.seams.services import runtime_services

    with runtime_services(database, budgets=budgets, prices=prices) as services:
        yield Stories(services)


def part_id(world: World, word: str, *kinds: str) -> str:
    """Return the id of the part with this id or name, of these kinds or of any; an id comes before a name.

    Raises UnknownNameError if there is none, or the name is ambiguous; UsageError if the id is of another kind.
    """
    known = [(part.id, part.name) for part in world.parts if not kinds or part.kind in kinds]
    ids = [one for one, _ in known]
    for part in world.parts:
        if part.id == word:
            if word in ids:
                return word
            named = [one for one, name in known if name.casefold() == word.casefold()]
            hint = f"; to name {named[0]}, write its id" if len(named) == 1 else ""
            raise UsageError(f"{word!r} is a {part.kind}, and a {' or '.join(kinds)} is wanted{hint}.")
    found = [one for one, name in known if word.casefold() in (one.casefold(), name.casefold())]
    if len(found) != 1:
        shown = f"There are: {', '.join(ids[:20])}{', ...' if len(ids) > 20 else ''}."
        raise UnknownNameError(" or ".join(kinds) or "part of this world", single_line(word)[:60], ids, hint=shown)
    return found[0]


# --- printing ------------------------------------------------------------------------------------


def width() -> int:
    """Return the width of texts: the terminal's, up to 96 columns."""
    return min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)


def wrapped(text: str, indent: str = "") -> str:
    """Return an untrusted text without control characters, wrapped to the width."""
    lines = strip_control(text).split("\n")
    return "\n".join(
        textwrap.fill(line, width(), initial_indent=indent, subsequent_indent=indent) if line.strip() else ""
        for line in lines
    )


def headline(text: str) -> str:
    """Return a section heading."""
    title = single_line(text)
    return click.style(f"── {title} {'─' * max(3, width() - len(title) - 4)}", bold=True)


def chapter_text(chapter: Chapter, events: bool = False) -> str:
    """Return a tick as text for the terminal."""
    from wsap_sandbox.languages import words_of

    words, name = words_of(chapter.cast.language).page, chapter.cast.name
    lines = ["", headline(f"{words['tick']} {chapter.tick}")]
    for scene in chapter.scenes():
        people = ", ".join(single_line(name(one)) for one in scene.people)
        if not scene.told and not people:
            continue
        lines += ["", click.style(f"{single_line(name(scene.place))}{f' · {people}' if people else ''}", bold=True)]
        lines.append(wrapped(scene.told, "  "))
        if events:
            lines += [wrapped(chapter.line(event), "    ") for event in scene.events]
    if kinds := [one.kind for one in chapter.degraded]:
        said = f"{len(kinds)} {'result' if len(kinds) == 1 else 'results'} replaced: {', '.join(sorted({*kinds}))}"
        lines += ["", click.style(wrapped(f"! {said}"), fg="yellow")]
    return "\n".join(lines)


def chapter_data(chapter: Chapter) -> dict[str, JsonValue]:
    """Return a tick's record and stories as JSON-ready data."""
    from wsap_sandbox.model import dump

    stories: dict[str, JsonValue] = {place: str(note.get("text", "")) for place, note in chapter.stories.items()}
    return {"tick": chapter.tick, "stories": stories, "record": dump(chapter.record)}

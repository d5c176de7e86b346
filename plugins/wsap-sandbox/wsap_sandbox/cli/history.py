"""`wsap sandbox rewind`, `branch`, `diff`, `reset`: other ways that a story may go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import print_json
from wsap_core.untrusted import single_line
from wsap_sandbox.cli.common import Stories, opened, story_options, wrapped

_SHOWN = 200


@click.command(cls=GroupedCommand, examples=("wsap sandbox rewind village 12",))
@click.argument("story")
@click.argument("tick", type=int)
@story_options
def rewind(story: str, tick: int, *, as_json: bool, database: str | None) -> None:
    """Let the STORY go on from an earlier TICK; 0 is its beginning.

    The ticks after it stay in the log, but no longer belong to the story; to keep both, use branch.
    """
    _rewind(story, tick, as_json, database)


@click.command(cls=GroupedCommand, examples=("wsap sandbox reset village",))
@click.argument("story")
@story_options
def reset(story: str, *, as_json: bool, database: str | None) -> None:
    """Let the STORY begin anew; what was recorded stays in its log."""
    _rewind(story, None, as_json, database)


def _rewind(story: str, tick: int | None, as_json: bool, database: str | None) -> None:
    """Rewind a story to a tick; to its first, which may be that of its branching, if none is given."""
    with opened(database) as stories:
        about = stories.about(story)
        name = str(about["run"])
        to = int((about["config"].get("branched_from") or {}).get("step", 0)) if tick is None else tick
        stories.check_tick(name, to)
        before = stories.runs.ticks(name)
        asyncio.run(stories.runner.rewind(name, to))
    where = f"at tick {to} again; it was at" if tick is not None else "at its beginning again; it was at tick"
    _say(as_json, {"run": name, "tick": to, "was": before}, f"{name} is {where} {before}.")


@click.command(cls=GroupedCommand, examples=("wsap sandbox branch village flood --at 12",))
@click.argument("story")
@click.argument("name")
@click.option("--at", "tick", type=int, metavar="TICK", help="The tick to begin from; the newest if not given.")
@story_options
def branch(story: str, name: str, *, tick: int | None, as_json: bool, database: str | None) -> None:
    """Begin the story NAME from a tick of the STORY, memories included; nobody sits in a character there."""
    with opened(database) as stories:
        source = stories.find(story)
        at = stories.runs.ticks(source) if tick is None else tick
        stories.check_tick(source, at)
        stories.check_new(name)
        asyncio.run(stories.runner.branch(source, at, name))
    _say(as_json, {"run": name, "from": source, "tick": at},
         f"{name} begins at tick {at} of {source}. Go on: wsap sandbox run {name}")  # fmt: skip


@click.command(
    cls=GroupedCommand, examples=("wsap sandbox diff village flood", "wsap sandbox diff village flood --at 20")
)
@click.argument("one")
@click.argument("other")
@click.option("--at", "tick", type=int, metavar="TICK", help="The tick to compare at; the newest that both have.")
@story_options
def diff(one: str, other: str, *, tick: int | None, as_json: bool, database: str | None) -> None:
    """Compare the stories ONE and OTHER: since when, and in what, they differ."""
    with opened(database) as stories:
        first, second = stories.find(one), stories.find(other)
        newest = min(stories.runs.ticks(first), stories.runs.ticks(second))
        at = newest if tick is None else tick
        for name in (first, second):
            stories.check_tick(name, at)
        since = _first_difference(stories, first, second, at)
        found = list(_differences(stories.world(first, at).state, stories.world(second, at).state))
    if as_json:
        rows = [{"part": part, "field": field, "one": a, "other": b} for part, field, a, b in found]
        print_json({"one": first, "other": second, "tick": at, "since": since, "differences": rows})
        return
    if not found and since is None:
        click.echo(f"{first} and {second} are the same up to tick {at}.")
        return
    if since is not None:
        click.echo(f"They differ since tick {since}; at tick {at}:")
    for part, field, a, b in found:
        click.echo(wrapped(f"{part}, {field}"))
        click.echo(click.style(wrapped(f"- {_short(a)}", "  "), fg="red"))
        click.echo(click.style(wrapped(f"+ {_short(b)}", "  "), fg="green"))


def _first_difference(stories: Stories, one: str, other: str, last: int) -> int | None:
    """Return the first tick that went differently; None if all that both have are the same."""
    ours, theirs = (iter(stories.runs.history(name, "tick", last=last)) for name in (one, other))
    a, b = next(ours, None), next(theirs, None)
    while a is not None and b is not None:
        if a["step"] < b["step"]:  # one of them begins later
            a = next(ours, None)
        elif b["step"] < a["step"]:
            b = next(theirs, None)
        elif a["body"] != b["body"]:
            return int(a["step"])
        else:
            a, b = next(ours, None), next(theirs, None)
    return None


def _differences(one: Any, other: Any) -> Iterator[tuple[str, str, Any, Any]]:
    """Give part, field and both values of everything in which two worlds differ."""
    for field in ("premise", "cells", "seed"):
        if getattr(one, field) != getattr(other, field):
            yield one.title, field, getattr(one, field), getattr(other, field)
    for group in ("places", "characters", "objects"):
        ours, theirs = ({part.id: part for part in getattr(world, group)} for world in (one, other))
        for part in [*ours, *(part for part in theirs if part not in ours)]:
            if part not in ours or part not in theirs:
                yield part, "exists", part in ours, part in theirs
                continue
            for name in (field.name for field in fields(ours[part])):
                a, b = getattr(ours[part], name), getattr(theirs[part], name)
                if a != b and name != "past":
                    yield from _memories(part, a, b) if name == "memory" else [(part, name, a, b)]


def _memories(part: str, one: Any, other: Any) -> Iterator[tuple[str, str, Any, Any]]:
    if one.summary != other.summary:
        yield part, "summary", one.summary, other.summary
    ours, theirs = ([cell.text for cell in memory.cells] for memory in (one, other))
    if ours != theirs:
        yield part, "memory", ours[0] if ours else "", theirs[0] if theirs else ""


def _short(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    text = single_line(text) or "nothing"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _say(as_json: bool, data: dict[str, Any], sentence: str) -> None:
    if as_json:
        print_json(data)
    else:
        click.echo(sentence)

"""`wsap sandbox rewind`, `branch`, `diff`, `reset`: other ways that a story may go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import fields
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any

import click

from wsap_core.untrusted import single_line
from wsap_sandbox.cli.common import Stories, Told, story_command, wrapped

_SHOWN = 200


@story_command("wsap sandbox rewind village 12")
@click.argument("story")
@click.argument("tick", type=int)
def rewind(stories: Stories, story: str, tick: int) -> Told:
    """Let the STORY go on from an earlier TICK; 0 is its beginning.

    The ticks after it stay in the log, but no longer belong to the story; to keep both, use branch.
    """
    return _rewind(stories, story, tick, f"at tick {tick} again; it was at")


@story_command("wsap sandbox reset village")
@click.argument("story")
def reset(stories: Stories, story: str) -> Told:
    """Let the STORY begin anew; what was recorded stays in its log."""
    first = int((stories.about(story)["config"].get("branched_from") or {}).get("step", 0))
    return _rewind(stories, story, first, "at its beginning again; it was at tick")


def _rewind(stories: Stories, story: str, tick: int, where: str) -> Told:
    stories.check_tick(story, tick)
    before = stories.runs.ticks(story)
    asyncio.run(stories.runner.rewind(story, tick))
    return {"run": story, "tick": tick, "was": before}, f"{story} is {where} {before}."


@story_command("wsap sandbox branch village flood --at 12")
@click.argument("story")
@click.argument("name")
@click.option("--at", "tick", type=int, metavar="TICK", help="The tick to begin from; the newest if not given.")
def branch(stories: Stories, story: str, name: str, tick: int | None) -> Told:
    """Begin the story NAME from a tick of the STORY, memories included; nobody sits in a character there."""
    at = stories.runs.ticks(story) if tick is None else tick
    stories.check_tick(story, at)
    stories.check_new(name)
    asyncio.run(stories.runner.branch(story, at, name))
    said = f"{name} begins at tick {at} of {story}. Go on: wsap sandbox run {name}"
    return {"run": name, "from": story, "tick": at}, said


@story_command("wsap sandbox diff village flood", "wsap sandbox diff village flood --at 20")
@click.argument("one")
@click.argument("other")
@click.option("--at", "tick", type=int, metavar="TICK", help="The tick to compare at; the newest that both have.")
def diff(stories: Stories, one: str, other: str, tick: int | None) -> Told:
    """Compare the stories ONE and OTHER: since when, and in what, they differ."""
    one, other = stories.find(one), stories.find(other)
    at = min(map(stories.runs.ticks, (one, other))) if tick is None else tick
    for name in (one, other):
        stories.check_tick(name, at)
    since = _first_difference(stories, one, other, at)
    found = list(_differences(stories.world(one, at).state, stories.world(other, at).state))
    rows = [dict(zip(("part", "field", "one", "other"), each, strict=True)) for each in found]
    lines = [] if since is None else [f"They differ since tick {since}; at tick {at}:"]
    for part, field, a, b in found:
        lines += [wrapped(f"{part}, {field}"), click.style(wrapped(f"- {_short(a)}", "  "), fg="red"),
                  click.style(wrapped(f"+ {_short(b)}", "  "), fg="green")]  # fmt: skip
    said = "\n".join(lines) or f"{one} and {other} are the same up to tick {at}."
    return {"one": one, "other": other, "tick": at, "since": since, "differences": rows}, said


def _first_difference(stories: Stories, one: str, other: str, last: int) -> int | None:
    """Return the first tick that went differently; None if all that both have are the same."""
    step = itemgetter("step")
    events = merge(*(stories.runs.history(name, "tick", last=last) for name in (one, other)), key=step)
    for tick, both in groupby(events, step):
        bodies = [event["body"] for event in both]
        if bodies[0] != bodies[-1]:  # there is one where one of them begins later
            return int(tick)
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
    text = single_line(", ".join(map(str, value)) if isinstance(value, tuple) else value) or "nothing"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."

"""`wsap sandbox status` and `watch`: where a story stands, and reading it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import print_json
from wsap_core.errors import UsageError
from wsap_core.untrusted import single_line
from wsap_sandbox.cli.common import chapter_data, opened, print_chapters, story_options, wrapped
from wsap_sandbox.cli.run import Printer

if TYPE_CHECKING:
    from wsap_sandbox.cli.common import Stories
    from wsap_sandbox.story.chapters import Chapter

_LATELY = 100
"""Ticks whose degraded results are counted."""


@click.command(cls=GroupedCommand, examples=("wsap sandbox status village",))
@click.argument("story", required=False)
@story_options
def status(story: str | None, *, as_json: bool, database: str | None) -> None:
    """Show where the STORY stands: its tick, who is where, what it took; without STORY all stories."""
    with opened(database) as stories:
        if story is None:
            _list(stories, as_json=as_json)
            return
        about = stories.about(story)
        name = str(about["run"])
        tick = stories.runs.ticks(name)
        lately = list(stories.chapters(name, max(1, tick - _LATELY + 1)))
        title, where = _whereabouts(stories, name, lately[-1] if lately else None)
    kinds = Counter(one.kind for chapter in lately for one in chapter.record.degraded)
    kinds += Counter(
        str(one["kind"]) for c in lately for note in c.stories.values() for one in note.get("degraded", ())
    )
    calls = sum(chapter.record.calls for chapter in lately)
    reasked = sum(chapter.record.reasked for chapter in lately)
    usage = (about["summary"] or {}).get("usage") or {}
    data = {
        "run": name, "title": title, "status": about["status"], "tick": tick,
        "places": {place: list(people) for place, people in where.items()},
        "calls": usage.get("calls"), "tokens": usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0),
        "cost": usage.get("cost"), "lately": {"ticks": len(lately), "calls": calls, "reasked": reasked},
        "degraded": dict(sorted(kinds.items())),
    }  # fmt: skip
    if as_json:
        print_json(data)
        return
    click.echo(f"{single_line(title)} ({name}), {about['status']}, tick {tick}")
    for place, people in where.items():
        here = ", ".join(map(single_line, people.values()))
        click.echo(wrapped(f"{place}: {here or '-'}", "  "))
    cost = usage.get("cost")
    click.echo(f"Asked of models: {usage.get('calls', 0)} calls, {data['tokens']} tokens"
               + (f", ${cost:.4f}" if cost else ""))  # fmt: skip
    if lately:
        listed = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
        told = f"{sum(kinds.values())} results replaced{f' ({listed})' if listed else ''}"
        click.echo(wrapped(f"Last {len(lately)} ticks: {calls} calls, {reasked} asked again, {told}"))


def _whereabouts(stories: Stories, name: str, newest: Chapter | None) -> tuple[str, dict[str, dict[str, str]]]:
    """Return a story's title, and who is in each place: after its newest tick, or at its beginning; ids and names."""
    if newest is None:
        world = stories.world(name).state
        return world.title, {p.name: {one.id: one.name for one in world.present(p.id)} for p in world.places}
    called = newest.cast.name
    return newest.cast.title, {
        called(place): {one: called(one) for one in people} for place, people in newest.where().items()
    }


def _list(stories: Any, *, as_json: bool) -> None:
    rows = []
    for run in stories.runs.runs():
        try:
            about = stories.about(run)
        except UsageError:
            continue
        rows.append({"run": run, "status": about["status"], "tick": stories.runs.ticks(run), "game": about["game"]})
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo("There is no story yet; begin one with: wsap sandbox new village")
    else:
        for row in rows:
            click.echo(f"{row['run']:20}  tick {row['tick']:<6}  {row['status']}")


@click.command(
    cls=GroupedCommand, examples=("wsap sandbox watch village", "wsap sandbox watch village --from 1 --to 20")
)
@click.argument("story")
@click.option(
    "--from", "first", type=click.IntRange(1), metavar="TICK", help="The first tick; the newest if not given."
)
@click.option(
    "--to", "last", type=click.IntRange(1), metavar="TICK", help="The last tick; follows the story if not given."
)
@click.option("--events", is_flag=True, help="Also print the events of the ledger.")
@story_options
def watch(
    story: str, *, first: int | None, last: int | None, events: bool, as_json: bool, database: str | None
) -> None:
    """Read the STORY, and follow it while another process lets it go on; Ctrl-C ends that.

    With --json each tick is a line of its own.
    """
    with opened(database) as stories:
        name = stories.find(story)
        newest = stories.runs.ticks(name)
        begin = first if first is not None else max(1, newest)
        if last is not None or stories.runs.about(name)["status"] != "running":
            chapters = stories.chapters(name, begin, last)
            if as_json:
                for chapter in chapters:
                    click.echo(json.dumps(chapter_data(chapter), ensure_ascii=False))
            elif not print_chapters(chapters, events=events):
                click.echo(f"{name} has no tick {begin} yet; go on: wsap sandbox run {name}")
            return
        printer = Printer(stories, name, events=events, as_json=False, first=begin)
        try:
            asyncio.run(printer.follow())
        except KeyboardInterrupt:
            click.get_current_context().exit(130)

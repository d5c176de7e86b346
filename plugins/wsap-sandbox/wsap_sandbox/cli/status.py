"""`wsap sandbox status` and `watch`: where a story stands, and reading it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import TYPE_CHECKING

import click

from wsap_core.errors import UsageError
from wsap_core.untrusted import single_line
from wsap_sandbox.cli.common import Stories, Told, chapter_data, chapter_text, story_command, wrapped
from wsap_sandbox.cli.run import Printer

if TYPE_CHECKING:
    from wsap_sandbox.story.chapters import Chapter

_LATELY = 100
"""Ticks whose degraded results are counted."""
_STATUS = {"interrupted": "stopped"}
"""A story that can go on has not been cut short."""


@story_command("wsap sandbox status village")
@click.argument("story", required=False)
def status(stories: Stories, story: str | None) -> Told:
    """Show where the STORY stands: its tick, who is where, what it took; without STORY all stories."""
    if story is None:
        return _list(stories)
    about, tick = stories.about(story), stories.runs.ticks(story)
    lately = list(stories.chapters(story, max(1, tick - _LATELY + 1)))
    title, where = _whereabouts(stories, story, lately[-1] if lately else None)
    kinds = Counter(one.kind for chapter in lately for one in chapter.degraded)
    calls, reasked = (sum(getattr(c.record, what) for c in lately) for what in ("calls", "reasked"))
    usage = (about["summary"] or {}).get("usage") or {}
    tokens, cost = usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0), usage.get("cost")
    data = {
        "run": story, "title": title, "status": about["status"], "tick": tick,
        "places": {place: list(people) for place, people in where.items()},
        "calls": usage.get("calls"), "tokens": tokens, "cost": cost,
        "lately": {"ticks": len(lately), "calls": calls, "reasked": reasked}, "degraded": dict(sorted(kinds.items())),
    }  # fmt: skip
    lines = [f"{single_line(title)} ({story}), {_STATUS.get(about['status'], about['status'])}, tick {tick}"]
    for place, people in where.items():
        here = ", ".join(map(single_line, people.values()))
        lines.append(wrapped(f"{place}: {here or '-'}", "  "))
    paid = f", ${cost:.4f}" if cost else ""
    lines.append(f"Asked of models: {usage.get('calls', 0)} calls, {tokens} tokens{paid}")
    if lately:
        listed = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
        told = f"{kinds.total()} results replaced{f' ({listed})' if listed else ''}"
        lines.append(wrapped(f"Last {len(lately)} ticks: {calls} calls, {reasked} asked again, {told}"))
    return data, "\n".join(lines)


def _whereabouts(stories: Stories, name: str, newest: Chapter | None) -> tuple[str, dict[str, dict[str, str]]]:
    """Return a story's title, and who is in each place: after its newest tick, or at its beginning; ids and names."""
    if newest is None:
        world = stories.world(name).state
        return world.title, {p.name: {one.id: one.name for one in world.present(p.id)} for p in world.places}
    called, where = newest.cast.name, newest.where()
    return newest.cast.title, {called(at): {one: called(one) for one in people} for at, people in where.items()}


def _list(stories: Stories) -> Told:
    rows = []
    for run in stories.runs.runs():
        try:
            about = stories.about(run)
        except UsageError:
            continue
        rows.append({"run": run, "status": about["status"], "tick": stories.runs.ticks(run), "game": about["game"]})
    listed = "\n".join(
        f"{row['run']:20}  tick {row['tick']:<6}  {_STATUS.get(row['status'], row['status'])}" for row in rows
    )
    return rows, listed or "There is no story yet; begin one with: wsap sandbox new village"


@story_command("wsap sandbox watch village", "wsap sandbox watch village --from 1 --to 20")
@click.argument("story")
@click.option(
    "--from", "first", type=click.IntRange(1), metavar="TICK", help="The first tick; the newest if not given."
)
@click.option(
    "--to", "last", type=click.IntRange(1), metavar="TICK", help="The last tick; follows the story if not given."
)
@click.option("--events", is_flag=True, help="Also print the events of the ledger.")
def watch(stories: Stories, story: str, first: int | None, last: int | None, events: bool) -> None:
    """Read the STORY, and follow it while another process lets it go on; Ctrl-C ends that.

    With --json each tick is a line of its own.
    """
    context = click.get_current_context()
    as_json = context.params["as_json"]
    begin = max(1, stories.runs.ticks(story)) if first is None else first
    if last is None and stories.runs.about(story)["status"] == "running":
        try:
            asyncio.run(Printer(stories, story, events=events, as_json=False, first=begin).follow())
        except KeyboardInterrupt:
            context.exit(130)
    chapter = None
    for chapter in stories.chapters(story, begin, last):
        text = json.dumps(chapter_data(chapter), ensure_ascii=False) if as_json else chapter_text(chapter, events)
        click.echo(text)
    if chapter is None and not as_json:
        click.echo(f"{story} has no tick {begin} yet; go on: wsap sandbox run {story}")

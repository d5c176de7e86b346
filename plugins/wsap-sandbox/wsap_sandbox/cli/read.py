"""`wsap sandbox status`, `watch`, `inspect` and `export`."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import click

from wsap_core.cli.params import WholeNumber
from wsap_core.errors import UsageError
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line
from wsap_sandbox.cli.change import WORLD_FORMAT
from wsap_sandbox.cli.common import Stories, Told, chapter_data, chapter_text, headline, part_id, story_command, wrapped
from wsap_sandbox.cli.run import Printer

if TYPE_CHECKING:
    from wsap_sandbox.model import TickRecord, World
    from wsap_sandbox.story.chapters import Chapter
    from wsap_sandbox.tick.facts import Facts

_LATELY = 100
"""Newest ticks whose degraded results are counted."""
_STATUS = {"interrupted": "stopped"}
"""Run status -> word for a story."""


@story_command("wsap sandbox status village", story=False)
@click.argument("story", required=False)
def status(stories: Stories, story: str | None) -> Told:
    """Show the STORY's tick, who is where, and the resources used; without STORY list all stories."""
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
    lines.append(f"Models: {plural(usage.get('calls', 0), 'call')}, {tokens} tokens{paid}")
    if lately:
        listed = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
        told = f"{plural(kinds.total(), 'result')} replaced{f' ({listed})' if listed else ''}"
        lines.append(wrapped(f"Last {plural(len(lately), 'tick')}: {plural(calls, 'call')}, {reasked} repeats, {told}"))
    return data, "\n".join(lines)


def _whereabouts(stories: Stories, name: str, newest: Chapter | None) -> tuple[str, dict[str, dict[str, str]]]:
    """Return a story's title, and place -> id -> name of who is there after `newest`, or at the beginning if None."""
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
    return rows, listed or "There are no stories yet; start one with: wsap sandbox new village"


@story_command("wsap sandbox watch village", "wsap sandbox watch village --from 1 --to 20")
@click.option("--from", "first", type=WholeNumber(1), metavar="TICK", help="The first tick. Default: the newest.")
@click.option("--to", "last", type=WholeNumber(1), metavar="TICK", help="The last tick. Default: follow the story.")
@click.option("--events", is_flag=True, help="Also print the ledger's events.")
def watch(stories: Stories, story: str, first: int | None, last: int | None, events: bool) -> None:
    """Read the STORY, and follow it while another process runs it, until Ctrl-C.

    With --json each tick is one line.
    """
    context = click.get_current_context()
    as_json = context.params["as_json"]
    begin = max(1, stories.runs.ticks(story)) if first is None else first
    if last is None and stories.runs.about(story)["status"] == "running":
        try:
            asyncio.run(Printer(stories, story, events, as_json=False, next=begin).follow())
        except KeyboardInterrupt:
            context.exit(130)
    chapter = None
    for chapter in stories.chapters(story, begin, last):
        text = json.dumps(chapter_data(chapter), ensure_ascii=False) if as_json else chapter_text(chapter, events)
        click.echo(text)
    if chapter is None and not as_json:
        click.echo(f"{story} has no tick {begin} yet; continue: wsap sandbox run {story}")


_REMEMBERED = 500
"""Ticks before the newest whose events are compared with memories."""
_KEY = re.compile(r"(?:(\d+):)?(\d+)/(intent|scene|story|memory)/([^/]+)(?:/(\d+))?")


@story_command(
    "wsap sandbox inspect village anna",
    "wsap sandbox inspect village 12",
    "wsap sandbox inspect village 12/scene/dam",
)
@click.argument("what")
@click.option(
    "--at", "tick", type=WholeNumber(0), metavar="TICK", help="Show the state after this tick. Default: the newest."
)
@click.option("--find", "words", metavar="TEXT", help="For a character: list witnessed events that contain TEXT.")
def inspect(stories: Stories, story: str, what: str, tick: int | None, words: str | None) -> Told:
    """Show WHAT in the STORY.

    WHAT is a character, a place or an object; a tick number; or a model call, TICK/PHASE/WHO, whose prompt and
    reply are shown: 12/intent/anna, 12/scene/dam, 12/story/dam, 12/memory/anna.
    """
    if (key := _KEY.fullmatch(what)) is not None:
        return _call(stories, story, key)
    if re.match(r"(?:\d+:)?\d+/", what):
        raise UsageError(
            f"{single_line(what)[:60]!r} is no model call; write TICK/PHASE/WHO with the phase intent, scene, story or "
            "memory."
        )
    if not what.isdecimal():
        return _part(stories, story, what, tick, words)
    number = int(what)
    stories.check_tick(story, number)
    chapters = list(stories.chapters(story, number, number))
    text = "\n".join(chapter_text(chapter, events=True) for chapter in chapters)
    return [*map(chapter_data, chapters)], text or "Tick 0 is the beginning: nothing has happened yet."


def _part(stories: Stories, name: str, what: str, tick: int | None, words: str | None) -> Told:
    from wsap_sandbox.model import Character, adapter_of
    from wsap_sandbox.story.chapters import Distortion, drift

    world = stories.world(name, tick).state
    found = part_id(world, what)
    part = next(part for part in world.parts if part.id == found)
    shown = adapter_of(type(part)).dump_python(part, mode="json")
    lines = [headline(f"{part.name} ({found}), tick {world.tick}")]
    names = {one.id: f"{one.name} ({one.id})" for one in world.parts}
    for field, value in shown.items():
        if field in ("inventory", "objects", "exits"):
            value = [names[one] for one in value]
        if value and field not in ("id", "name", "memory"):
            lines.append(wrapped(f"{field}: {'; '.join(map(str, value)) if isinstance(value, list) else value}"))
    data = {"tick": world.tick, part.kind: shown}
    if isinstance(part, Character):
        begin = 1 if words is not None else max(1, world.tick - _REMEMBERED)
        ledger = [event for chapter in stories.chapters(name, begin, world.tick) for event in chapter.record.events]
        lines += [wrapped(f"{cell.tick}: {cell.text}", "  ") for cell in part.memory.cells]
        if part.memory.summary:
            lines.append(wrapped(f"before: {part.memory.summary}", "  "))
        every = [measure for _, measure in drift(part, ledger)] or [Distortion(0, 0)]
        invented, forgotten = fmean(one.invented for one in every), fmean(one.forgotten for one in every)
        data["drift"] = {"invented": round(invented, 4), "forgotten": round(forgotten, 4)}
        said = f"{invented:.0%} of its words occur in no event, {forgotten:.0%} of the events are missing from it"
        lines.append(wrapped(f"drift of memory from events: {said}"))
        if words is not None:
            data["found"] = [f"{event.tick}: {event.text}" for event in ledger
                             if found in event.witnesses and words.casefold() in event.text.casefold()]  # fmt: skip
            lines += [wrapped(line, "  ") for line in data["found"]]
    elif words is not None:
        raise UsageError("--find searches the events that a character witnessed; leave it out, or name a character.")
    return data, "\n".join(lines)


def _call(stories: Stories, name: str, key: re.Match[str]) -> Told:
    """Return the prompt of a call, rebuilt from the state before its tick, and the recorded reply."""
    from wsap_sandbox.tick.prompts import request_for

    number, phase, subject, attempt = int(key[2]), key[3], key[4], int(key[5] or 0)
    stories.check_tick(name, number)
    if number < 1:
        raise UsageError("There are no model calls before the first tick, which is 1.")
    world = stories.world(name, number - 1)
    # Influences before the tick are part of its prompts.
    for event in stories.runs.history(name, "influence", first=number, last=number):
        if not event["body"].get("refused"):
            world.influence(event["body"]["body"])
    record = next(iter(stories.chapters(name, number, number))).record
    options = stories.options(name)
    facts = _facts(world.state, record, phase, subject)
    request = request_for(world.state, facts, subject, options, attempt=attempt)
    calls = [event["body"] for event in stories.runs.events(name, "call")
             if event["seat"] is None and event["body"].get("key") == request.key]  # fmt: skip
    reply = calls[-1]["reply"] if calls else None
    model = calls[-1]["model"] if calls else options.models[phase]
    text = str(reply.get("text", "") if isinstance(reply, dict) else reply or "") or "No reply is recorded."
    messages = [{"role": message.role, "content": message.text()} for message in request.messages]
    parts = [*(tuple(message.values()) for message in messages), ("reply", text)]
    lines = [f"{headline(title)}\n{wrapped(content)}" for title, content in parts]
    return {"key": request.key, "model": model, "messages": messages, "reply": reply}, "\n".join(lines)


def _facts(world: World, record: TickRecord, phase: str, subject: str) -> Facts:
    from wsap_sandbox.model import falling
    from wsap_sandbox.tick.engine import MOST_SUMMED_UP
    from wsap_sandbox.tick.facts import intent_facts, memory_facts, scene_facts, stories_of

    subject = part_id(world, subject, "place" if phase in ("scene", "story") else "character")
    if phase == "scene":
        intentions = {change.id: change.intention for change in record.characters}
        return scene_facts(world, world.place(subject), intentions)
    if phase == "story":
        return next(facts for facts in stories_of(world, record) if facts.place.id == subject)
    one = world.character(subject)
    if phase == "intent":
        return intent_facts(world, one)
    if not (cells := falling(world.cells, one)[:MOST_SUMMED_UP]):
        raise UsageError(
            f"{single_line(one.name)} had nothing to summarize in tick {record.tick}: its memory was not full."
        )
    return memory_facts(world, one, cells)


FORMATS = {"markdown": "md", "html": "html", "json": "ticks", "world": "world.json"}


@story_command(
    "wsap sandbox export village --format html --out village.html",
    "wsap sandbox export village --format json --out ticks",
    "wsap sandbox export village --format world --at 12 --out village.world.json",
)
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="markdown", show_default=True,
              help="markdown, html: the story. json: a folder with the JSON and story of each tick. "
              "world: the current world, for wsap sandbox new --from.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="PATH",
              help="The output file, or the folder for json. Default: STORY with a suffix.")  # fmt: skip
@click.option("--from", "first", type=WholeNumber(1), default=1, metavar="TICK", help="The first tick.")
@click.option("--at", "--to", "last", type=WholeNumber(0), metavar="TICK",
              help="The last tick, or the tick of the world. Default: the newest.")  # fmt: skip
@click.option("--events", is_flag=True, help="In Markdown, also list the ledger's events.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def export(
    stories: Stories, story: str, form: str, out: Path | None, first: int, last: int | None, events: bool, force: bool
) -> Told:
    """Write the STORY to a file."""
    if last is not None:
        stories.check_tick(story, last)
    target = out or Path(f"{story}.{FORMATS[form]}")
    if target.exists() and not force:
        raise UsageError(f"{target} already exists; choose another with --out, or overwrite it with --force.")
    try:
        written = _write(stories, story, form, target, first, last, events=events)
    except OSError as error:
        raise UsageError(f"{target} can't be written: {error.strerror or error}.") from error
    return {"run": story, "format": form, "path": str(target), "ticks": written}, f"Wrote {target}."


def _write(stories: Stories, name: str, form: str, target: Path, first: int, last: int | None, *, events: bool) -> int:
    from wsap_sandbox.model import dump
    from wsap_sandbox.story.views import html, markdown

    if form == "world":
        world = {"format": WORLD_FORMAT, "world": dump(stories.world(name, last).state)}
        target.write_text(json.dumps(world, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        return 0
    if form == "json":
        return _ticks(stories, name, target, first, last)
    # Counted while written: a story may not fit into memory.
    number = count()
    chapters = (chapter for chapter, _ in zip(stories.chapters(name, first, last), number, strict=False))
    parts = html(chapters) if form == "html" else markdown(chapters, events=events)
    with target.open("w", encoding="utf-8") as file:
        file.writelines(parts)
    return next(number)


def _ticks(stories: Stories, name: str, target: Path, first: int, last: int | None) -> int:
    """Write `tick-000001.json` and `tick-000001.md` for each tick, and the JSON's schema."""
    from wsap_sandbox.model import TickRecord, adapter_of
    from wsap_sandbox.story.views import markdown

    target.mkdir(parents=True, exist_ok=True)
    schema = adapter_of(TickRecord).json_schema()
    (target / "tick.schema.json").write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")
    written = 0
    for written, chapter in enumerate(stories.chapters(name, first, last), 1):  # noqa: B007  # returned
        stem = f"tick-{chapter.tick:06}"
        text = json.dumps(chapter_data(chapter), ensure_ascii=False, indent=1)
        (target / f"{stem}.json").write_text(text + "\n", encoding="utf-8")
        (target / f"{stem}.md").write_text("".join(markdown([chapter])), encoding="utf-8")
    return written

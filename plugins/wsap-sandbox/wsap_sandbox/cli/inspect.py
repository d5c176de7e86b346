"""`wsap sandbox inspect`: a character, a place, a tick, or the prompt behind a line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import print_json
from wsap_core.errors import UsageError
from wsap_core.untrusted import single_line
from wsap_sandbox.cli.common import (
    Stories,
    chapter_data,
    headline,
    opened,
    part_id,
    print_chapters,
    story_options,
    wrapped,
)

if TYPE_CHECKING:
    from wsap_sandbox.model import TickRecord, World
    from wsap_sandbox.tick.facts import Facts

_REMEMBERED = 500
"""Ticks before the newest whose events memories are compared with."""
_KEY = re.compile(r"(?:(\d+):)?(\d+)/(intent|scene|story|memory)/([^/]+)(?:/(\d+))?")


@click.command(
    cls=GroupedCommand,
    examples=(
        "wsap sandbox inspect village anna",
        "wsap sandbox inspect village 12",
        "wsap sandbox inspect village 12/scene/dam",
    ),
)
@click.argument("story")
@click.argument("what")
@click.option("--at", "tick", type=int, metavar="TICK", help="After which tick; the newest if not given.")
@click.option("--find", "words", metavar="TEXT", help="Of a character: what it witnessed with these words in it.")
@story_options
def inspect(story: str, what: str, *, tick: int | None, words: str | None, as_json: bool, database: str | None) -> None:
    """Look at WHAT in the STORY.

    WHAT is a character, a place or an object; the number of a tick; or the prompt and reply of a call, as
    TICK/PHASE/WHO: 12/intent/anna, 12/scene/dam, 12/story/dam, 12/memory/anna.
    """
    with opened(database) as stories:
        name = stories.find(story)
        if what.isdecimal():
            number = int(what)
            stories.check_tick(name, number)
            chapters = list(stories.chapters(name, number, number))
            if as_json:
                print_json([chapter_data(chapter) for chapter in chapters])
            elif not print_chapters(chapters, events=True):
                click.echo("Tick 0 is the beginning: nothing has happened yet.")
        elif (key := _KEY.fullmatch(what)) is not None:
            _call(stories, name, key, as_json=as_json)
        else:
            _part(stories, name, what, tick, words, as_json=as_json)


def _part(stories: Stories, name: str, what: str, tick: int | None, words: str | None, *, as_json: bool) -> None:
    from wsap_sandbox.model import Character, adapter_of

    world = stories.world(name, tick).state
    found = part_id(world, what)
    part = next(part for part in world.parts if part.id == found)
    shown = adapter_of(type(part)).dump_python(part, mode="json")
    more: dict[str, Any] = {}
    if isinstance(part, Character):
        begin = 1 if words is not None else max(1, world.tick - _REMEMBERED)
        ledger = [event for chapter in stories.chapters(name, begin, world.tick) for event in chapter.record.events]
        more["drift"] = _drift(part, ledger)
        if words is not None:
            more["found"] = [f"{event.tick}: {event.text}" for event in ledger
                             if found in event.witnesses and words.casefold() in event.text.casefold()]  # fmt: skip
    elif words is not None:
        raise UsageError("--find searches what a character witnessed; leave it out, or name a character.")
    if as_json:
        print_json({"tick": world.tick, part.kind: shown, **more})
        return
    click.echo(headline(f"{part.name} ({found}), tick {world.tick}"))
    memory = shown.pop("memory", None)
    for field, value in shown.items():
        if value and field not in ("id", "name"):
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            click.echo(wrapped(f"{field}: {text}"))
    if memory is not None:
        for cell in memory["cells"]:
            click.echo(wrapped(f"{cell['tick']}: {cell['tried']} {cell['came_of_it']} {cell['interpretation']}", "  "))
        if memory["summary"]:
            click.echo(wrapped(f"before: {memory['summary']}", "  "))
        drift = more["drift"]
        said = f"{drift['invented']:.0%} of its words are in none of the events, {drift['forgotten']:.0%} of these"
        click.echo(wrapped(f"drift of memory from what happened: {said} missing"))
    for line in more.get("found", ()):
        click.echo(wrapped(line, "  "))


def _drift(one: Any, ledger: Any) -> dict[str, float]:
    from wsap_sandbox.tick.distortion import drift

    found = drift(one, ledger)
    every = [measure for _, measure in found.cells] + ([found.summary] if one.memory.summary else [])
    return {
        key: round(sum(getattr(measure, key) for measure in every) / len(every), 4) if every else 0.0
        for key in ("invented", "forgotten")
    }


def _call(stories: Stories, name: str, key: re.Match[str], *, as_json: bool) -> None:
    """Print the prompt of a call, rebuilt from the state before its tick, and the recorded reply."""
    from wsap_sandbox.options import SandboxOptions
    from wsap_sandbox.tick.prompts import language
    from wsap_sandbox.tick.requests import call_key, request_for

    number, phase, subject, attempt = int(key[2]), key[3], key[4], int(key[5] or 0)
    stories.check_tick(name, number)
    if number < 1:
        raise UsageError("Nobody was asked anything before the first tick; the first is 1.")
    world = stories.world(name, number - 1)
    # What was done from outside before the tick is part of its prompts.
    for event in stories.runs.history(name, "influence", first=number, last=number):
        if not event["body"].get("refused"):
            world.influence(event["body"]["body"])
    record = next(iter(stories.chapters(name, number, number))).record
    options = SandboxOptions.read(stories.runs.about(name)["config"]["options"])
    facts = _facts(world.state, record, phase, subject)
    spoken = language(world.state.language, compact=options.compact)
    asked = call_key(world.state, facts, subject, attempt)
    request = request_for(asked, facts, spoken, seed=world.state.seed, text=options.text)
    calls = [event["body"] for event in stories.runs.events(name, "call")
             if event["seat"] is None and event["body"].get("key") == asked]  # fmt: skip
    reply = calls[-1]["reply"] if calls else None
    messages = [{"role": message.role, "content": message.text()} for message in request.messages]
    if as_json:
        model = calls[-1]["model"] if calls else options.models[phase]
        print_json({"key": asked, "model": model, "messages": messages, "reply": reply})
        return
    for message in messages:
        click.echo(headline(message["role"]))
        click.echo(wrapped(message["content"]))
    click.echo(headline("reply"))
    text = reply.get("text", "") if isinstance(reply, dict) else reply
    click.echo(wrapped(str(text)) if text else "No reply to it is recorded.")


def _facts(world: World, record: TickRecord, phase: str, subject: str) -> Facts:
    from wsap_sandbox.model import falling
    from wsap_sandbox.tick.engine import MOST_SUMMED_UP
    from wsap_sandbox.tick.facts import intent_facts, memory_facts, scene_facts, stories_of

    kind = "place" if phase in ("scene", "story") else "character"
    subject = part_id(world, subject, kind)
    if phase == "scene":
        intentions = {change.id: change.intention for change in record.characters}
        return scene_facts(world, world.place(subject), intentions)
    if phase == "story":
        return next(facts for facts in stories_of(world, record) if facts.place.id == subject)
    one = world.character(subject)
    if phase == "intent":
        return intent_facts(world, one)
    cells = falling(world.cells, one)[:MOST_SUMMED_UP]
    if not cells:
        raise UsageError(
            f"{single_line(one.name)} had nothing to sum up in tick {record.tick}: its memory was not full."
        )
    return memory_facts(world, one, cells)

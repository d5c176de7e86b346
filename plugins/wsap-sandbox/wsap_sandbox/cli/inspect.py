"""`wsap sandbox inspect`: a character, a place, a tick, or the prompt behind a line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from wsap_core.errors import UsageError
from wsap_core.untrusted import single_line
from wsap_sandbox.cli.common import (
    Stories,
    Told,
    chapter_data,
    chapter_text,
    headline,
    part_id,
    story_command,
    wrapped,
)

if TYPE_CHECKING:
    from wsap_sandbox.model import TickRecord, World
    from wsap_sandbox.tick.facts import Facts

_REMEMBERED = 500
"""Ticks before the newest whose events memories are compared with."""
_KEY = re.compile(r"(?:(\d+):)?(\d+)/(intent|scene|story|memory)/([^/]+)(?:/(\d+))?")


@story_command(
    "wsap sandbox inspect village anna",
    "wsap sandbox inspect village 12",
    "wsap sandbox inspect village 12/scene/dam",
)
@click.argument("story")
@click.argument("what")
@click.option("--at", "tick", type=int, metavar="TICK", help="After which tick; the newest if not given.")
@click.option("--find", "words", metavar="TEXT", help="Of a character: what it witnessed with these words in it.")
def inspect(stories: Stories, story: str, what: str, tick: int | None, words: str | None) -> Told:
    """Look at WHAT in the STORY.

    WHAT is a character, a place or an object; the number of a tick; or the prompt and reply of a call, as
    TICK/PHASE/WHO: 12/intent/anna, 12/scene/dam, 12/story/dam, 12/memory/anna.
    """
    if (key := _KEY.fullmatch(what)) is not None:
        return _call(stories, story, key)
    if not what.isdecimal():
        return _part(stories, story, what, tick, words)
    number = int(what)
    stories.check_tick(story, number)
    chapters = list(stories.chapters(story, number, number))
    text = "\n".join(chapter_text(chapter, events=True) for chapter in chapters)
    return [*map(chapter_data, chapters)], text or "Tick 0 is the beginning: nothing has happened yet."


def _part(stories: Stories, name: str, what: str, tick: int | None, words: str | None) -> Told:
    from wsap_sandbox.model import Character, adapter_of

    world = stories.world(name, tick).state
    found = part_id(world, what)
    part = next(part for part in world.parts if part.id == found)
    shown = adapter_of(type(part)).dump_python(part, mode="json")
    lines = [headline(f"{part.name} ({found}), tick {world.tick}")]
    for field, value in shown.items():
        if value and field not in ("id", "name", "memory"):
            lines.append(wrapped(f"{field}: {'; '.join(map(str, value)) if isinstance(value, list) else value}"))
    data = {"tick": world.tick, part.kind: shown}
    if isinstance(part, Character):
        begin = 1 if words is not None else max(1, world.tick - _REMEMBERED)
        ledger = [event for chapter in stories.chapters(name, begin, world.tick) for event in chapter.record.events]
        lines += [wrapped(f"{cell.tick}: {cell.text}", "  ") for cell in part.memory.cells]
        if part.memory.summary:
            lines.append(wrapped(f"before: {part.memory.summary}", "  "))
        data["drift"] = drift = _drift(part, ledger)
        said = f"{drift['invented']:.0%} of its words are in none of the events, {drift['forgotten']:.0%} of these"
        lines.append(wrapped(f"drift of memory from what happened: {said} missing"))
        if words is not None:
            data["found"] = [f"{event.tick}: {event.text}" for event in ledger
                             if found in event.witnesses and words.casefold() in event.text.casefold()]  # fmt: skip
            lines += [wrapped(line, "  ") for line in data["found"]]
    elif words is not None:
        raise UsageError("--find searches what a character witnessed; leave it out, or name a character.")
    return data, "\n".join(lines)


def _drift(one: Any, ledger: Any) -> dict[str, float]:
    from wsap_sandbox.tick.distortion import drift

    every = [measure for _, measure in drift(one, ledger)]
    return {
        key: round(sum(getattr(measure, key) for measure in every) / len(every), 4) if every else 0.0
        for key in ("invented", "forgotten")
    }


def _call(stories: Stories, name: str, key: re.Match[str]) -> Told:
    """Return the prompt of a call, rebuilt from the state before its tick, and the recorded reply."""
    from wsap_sandbox.options import SandboxOptions
    from wsap_sandbox.tick.prompts import request_for

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
    request = request_for(world.state, facts, subject, options, attempt=attempt)
    calls = [event["body"] for event in stories.runs.events(name, "call")
             if event["seat"] is None and event["body"].get("key") == request.key]  # fmt: skip
    reply = calls[-1]["reply"] if calls else None
    model = calls[-1]["model"] if calls else options.models[phase]
    text = str(reply.get("text", "") if isinstance(reply, dict) else reply or "") or "No reply to it is recorded."
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
            f"{single_line(one.name)} had nothing to sum up in tick {record.tick}: its memory was not full."
        )
    return memory_facts(world, one, cells)

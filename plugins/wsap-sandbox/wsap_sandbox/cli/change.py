"""`wsap sandbox new`, `rewind`, `branch`, `diff`, `reset`, and the commands that influence the next tick."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Iterator
from contextlib import aclosing, suppress
from dataclasses import fields
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.params import WholeNumber, typed_pairs
from wsap_core.errors import SnapshotError, UsageError
from wsap_core.protocol.lines import plural
from wsap_core.specs import OptionDef
from wsap_core.untrusted import single_line
from wsap_sandbox.cli.common import Stories, Told, part_id, story_command, wrapped
from wsap_sandbox.languages import words_of
from wsap_sandbox.options import SandboxOptions, packed_world
from wsap_sandbox.plugin import OPTIONS

if TYPE_CHECKING:
    from wsap_core.protocol.values import JsonValue
    from wsap_sandbox.model import World

WORLD_FORMAT = "wsap-sandbox-world"
_SNAPSHOT_EVERY = 20
"""Ticks between snapshots, and so the most that are replayed to restore a tick."""
_WORLD = ("language", "cells")
_TAKEN = [known for known in OPTIONS if known.name not in ("template", "world", "model.KEY")]
"""Game options that are also options of the command."""


def _option(known: OptionDef) -> click.Option:
    flag = f"--{known.name.replace('_', '-')}"
    if known.values == "yes|no":
        return click.Option([flag], is_flag=True, help=known.summary)
    low, between, high = known.values.partition("-")
    one_of = click.Choice(known.values.split("|")) if "|" in known.values else None
    kind = WholeNumber(int(low), int(high)) if between else one_of
    shown = "ADDRESS" if known.name.endswith("model") else None
    return click.Option([flag], type=kind, metavar=shown, help=f"{known.summary} Default: {known.default}.")


@story_command(
    "wsap sandbox new village",
    "wsap sandbox new brod --template village --language ru --model ollama/qwen3:8b",
    "wsap sandbox new copy --from village.world.json",
    sections={
        "World": ("template", *_WORLD, "seed", "source"),
        "Model": (*(known.name for known in _TAKEN if known.name not in _WORLD), "backend_options"),
    },
    params=list(map(_option, _TAKEN)),
    story=False,
)
@click.argument("name")
@click.option("--template", metavar="NAME_OR_FILE",
              help="village, lighthouse, or your own template. Default: the template called NAME, else "
              "village.")  # fmt: skip
@click.option("--from", "source", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Start from a world file of wsap sandbox export, at its tick.")  # fmt: skip
@click.option("--seed", type=WholeNumber(0, 2**31 - 1), default=0, show_default=True,
              help="Random seed; the same seed gives the same story.")  # fmt: skip
@click.option("--model-option", "backend_options", multiple=True, metavar="KEY=VALUE",
              help="An option of the model backend, such as num_ctx=16384; may be repeated.")  # fmt: skip
def new(
    stories: Stories, name: str, template: str | None, source: Path | None, seed: int,
    backend_options: tuple[str, ...], **given: Any,
) -> Told:  # fmt: skip
    """Start the story NAME, without running a tick.

    Continue it with wsap sandbox run NAME. The story is a recorded run with that id, so wsap runs, replay and
    export work on it too. The models are stored with the story; their API keys are not.
    """
    from wsap_core.host import PluginHost  # deferred for weight
    from wsap_llm.kit import find_backend

    options = {key: value for key, value in given.items() if value not in (None, False)}
    options |= {f"model.{key}": value for key, value in typed_pairs("--model-option", backend_options).items()}
    if source is not None:
        if template is not None or "language" in options:
            raise UsageError("--from already defines the world; leave out --template and --language.")
        options["world"] = packed_world(read_world(source))
    else:
        options |= _template(template, name)
    for address in SandboxOptions.read(options).asked:
        find_backend(PluginHost.discovered(), address)
    stories.check_new(name)
    asyncio.run(_begin(stories, name, seed, options))
    world = stories.world(name).state
    note = words_of(world.language).foreign(_texts_of(world))
    data = {"run": name, "title": world.title, "language": world.language, "tick": world.tick, "note": note,
            "characters": [one.id for one in world.characters], "places": [one.id for one in world.places]}  # fmt: skip
    counted = f"{plural(len(world.characters), 'character')}, {plural(len(world.places), 'place')}"
    said = f"{wrapped(f'{world.title}. {world.premise}')}\n\n{counted}. Continue: wsap sandbox run {name}"
    return data, said + wrapped(_noted(note))


def _texts_of(world: World) -> Iterator[str]:
    yield world.premise
    yield from (text for one in world.places for text in (one.description, one.moment))
    for one in world.characters:
        yield from (one.appearance, one.description, one.secret, one.internal_state, one.external_intent, *one.triggers)
    yield from (text for one in world.objects for text in (one.description, one.condition))


_TEXTS = ("text", "name", "description")
"""The keys of an influence with texts for the world."""


def _noted(note: str) -> str:
    return f"\n\nNote: {note}" if note else ""


async def _begin(stories: Stories, name: str, seed: int, options: dict[str, Any]) -> None:
    models: Any = stories.services.models
    async with aclosing(models):
        await stories.runner.play(
            "sandbox", {}, seed=seed, options=options, run=name, steps=0, snapshot_every=_SNAPSHOT_EVERY
        )


def _template(template: str | None, name: str) -> dict[str, Any]:
    from wsap_sandbox.templates.loader import template_names

    if template is None:
        if name in template_names():
            return {"template": name}
        if near := difflib.get_close_matches(name, template_names(), n=1, cutoff=0.8):
            raise UsageError(
                f"{name!r} is no template; for a world of the template {near[0]!r}, give it that name or "
                f"`--template {near[0]}`, and for any other `--template`."
            )
        return {}
    path = Path(template).expanduser()
    is_file = template not in template_names() and (path.suffix == ".toml" or "/" in template)
    return {"template": str(path.resolve()) if is_file else template}


def read_world(path: Path) -> dict[str, Any]:
    """Return the world in a file of `wsap sandbox export --format world`.

    Raises UsageError if the file can't be read or is invalid.
    """
    from wsap_core.textfile import read_text
    from wsap_sandbox.model import World, load
    from wsap_sandbox.names import name_faults

    try:
        data = json.loads(read_text(path, "The world file"))
        if data["format"] != WORLD_FORMAT:
            raise ValueError
        world: dict[str, Any] = data["world"]
        if fault := next(name_faults(load(world, World)), None):
            raise SnapshotError(fault)
    except SnapshotError as error:
        raise UsageError(f"{path} is invalid: {error}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"{path} is not a world file; write one with wsap sandbox export --format world.") from error
    return world


_SHOWN = 200


@story_command("wsap sandbox rewind village 12")
@click.argument("tick", type=WholeNumber(0))
def rewind(stories: Stories, story: str, tick: int) -> Told:
    """Go back to an earlier TICK of the STORY; 0 is its beginning.

    Later ticks stay in the log but no longer belong to the story; to keep both, use branch.
    """
    return _rewind(stories, story, tick, f"at tick {tick} again; it was at")


@story_command("wsap sandbox reset village")
def reset(stories: Stories, story: str) -> Told:
    """Go back to the beginning of the STORY; everything recorded stays in its log."""
    first = int((stories.about(story)["config"].get("branched_from") or {}).get("step", 0))
    return _rewind(stories, story, first, "at its beginning again; it was at tick")


def _rewind(stories: Stories, story: str, tick: int, where: str) -> Told:
    stories.check_tick(story, tick)
    before = stories.runs.ticks(story)
    asyncio.run(stories.runner.rewind(story, tick))
    return {"run": story, "tick": tick, "was": before}, f"{story} is {where} {before}."


@story_command("wsap sandbox branch village flood --at 12")
@click.argument("name")
@click.option("--at", "tick", type=WholeNumber(0), metavar="TICK", help="The tick to start from. Default: the newest.")
def branch(stories: Stories, story: str, name: str, tick: int | None) -> Told:
    """Start the story NAME from a tick of the STORY, including memories; all its seats are free."""
    at = stories.runs.ticks(story) if tick is None else tick
    stories.check_tick(story, at)
    stories.check_new(name)
    asyncio.run(stories.runner.branch(story, at, name))
    said = f"{name} starts at tick {at} of {story}. Continue: wsap sandbox run {name}"
    return {"run": name, "from": story, "tick": at}, said


@story_command("wsap sandbox diff village flood", "wsap sandbox diff village flood --at 20", story=False)
@click.argument("one")
@click.argument("other")
@click.option(
    "--at", "tick", type=WholeNumber(0), metavar="TICK", help="The tick to compare. Default: the newest of both."
)
def diff(stories: Stories, one: str, other: str, tick: int | None) -> Told:
    """Show the first tick that differs between the stories ONE and OTHER, and their differences."""
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
    """Return the first tick that differs; None if there is none."""
    step = itemgetter("step")
    events = merge(*(stories.runs.history(name, "tick", last=last) for name in (one, other)), key=step)
    for tick, both in groupby(events, step):
        bodies = [event["body"] for event in both]
        if bodies[0] != bodies[-1]:  # only one body if one story starts later
            return int(tick)
    return None


def _differences(one: Any, other: Any) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield part, field and both values of every difference between two worlds."""
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


Word = tuple[str, str, tuple[str, ...] | None]
"""An argument, its key in the influence, and the kinds of parts that it may name; None for a text."""
_WHO: Word = ("CHARACTER", "character", ("character",))


def _command(name: str, kind: str, words: tuple[Word, ...], text: str, example: str, *options: click.Option) -> Any:
    """Return a command that checks an influence against the story's newest state, with what waits for the next tick,
    and submits it."""

    def handed_in(stories: Stories, story: str, **given: Any) -> Told:
        world = stories.world(story)
        for waiting in stories.runs.waiting(story):
            with suppress(UsageError):  # told when the tick comes
                world.influence(waiting)
        body: dict[str, JsonValue] = {"kind": kind}
        for word, key, kinds in words:
            typed = given.pop(word.lower())
            typed = typed.replace("-", "_") if key == "field" else typed
            found = typed if kinds is None else part_id(world.state, typed, *kinds)
            # The target of an object is a place or a character.
            body[key or next(part.kind for part in world.state.parts if part.id == found)] = found
        body |= {key: value for key, value in given.items() if value}
        said = world.influence(body)
        stories.runner.influence(story, body)
        note = words_of(world.state.language).foreign(str(body[key]) for key in _TEXTS if key in body)
        data = {"run": story, "influence": body, "before_tick": world.state.tick + 1, "said": said, "note": note}
        at = world.state.influences[-1].place
        where = f" in {world.state.place(at).name}" if at else ""
        return data, wrapped(f"Before the next tick of {story}{where}: {said}{_noted(note)}")

    handed_in.__name__, handed_in.__doc__ = name, text
    arguments = [click.Argument([word.lower()], metavar=word) for word, _, _ in words]
    return story_command(f"wsap sandbox {name} {example}", params=(*arguments, *options))(handed_in)


whisper = _command(
    "whisper", "whisper", (_WHO, ("TEXT", "text", None)), "Whisper TEXT to a CHARACTER, who alone hears it.",
    'village anna "The dam will not hold."',
)  # fmt: skip
event = _command(
    "event", "event", (("PLACE", "place", ("place",)), ("TEXT", "text", None)), "Make TEXT happen in a PLACE.",
    'village dam "A beam cracks."',
)  # fmt: skip
put_object = _command(
    "object", "object", (("PLACE_OR_CHARACTER", "", ("place", "character")), ("NAME", "name", None)),
    "Add a new object NAME to a place or to a character's inventory.", 'village mill "a red lantern"',
    click.Option(["--description"], metavar="TEXT", help="What it is."),
)  # fmt: skip
edit = _command(
    "edit", "edit", (("PART", "id", ()), ("FIELD", "field", None), ("TEXT", "text", None)),
    """Change a FIELD of a place, a character or an object to TEXT.

    Of a place: name, description, moment. Of a character: name, appearance, description, secret,
    internal_state, external_intent. Of an object: name, description, condition.
    """,
    'village anna external_intent "To leave the village."',
)  # fmt: skip
move = _command(
    "move", "move", (("WHAT", "id", ("character", "object")), ("TO", "to", ("place", "character"))),
    "Move a character or an object to a place, or an object to a character.", "village anna dam",
)  # fmt: skip
takeover = _command(
    "takeover", "take_over", (_WHO, ("INTENTION", "text", None)),
    """Set the INTENTION of a CHARACTER for the next tick.

    To play a character for longer: wsap play GAME --seat CHARACTER=human.
    """,
    'village anna "I walk to the dam and open it."',
)  # fmt: skip

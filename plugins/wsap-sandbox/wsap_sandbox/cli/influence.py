"""`wsap sandbox whisper`, `event`, `object`, `edit`, `move`, `takeover`: meddle in a story, before its next tick."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import print_json
from wsap_sandbox.cli.common import opened, part_id, story_options, wrapped

if TYPE_CHECKING:
    from wsap_core.protocol.values import JsonValue
    from wsap_sandbox.model import World

Body = dict[str, "JsonValue"]


def _influence(story: str, database: str | None, as_json: bool, body_of: Callable[[World], Body]) -> None:
    """Check an influence against the story as it stands, hand it in, and say what will be done."""
    with opened(database) as stories:
        name = stories.find(story)
        world = stories.world(name)
        body = body_of(world.state)
        said = world.influence(body)
        stories.runner.influence(name, body)
    if as_json:
        print_json({"run": name, "influence": body, "before_tick": world.state.tick + 1, "said": said})
    else:
        click.echo(wrapped(f"Before the next tick of {name}: {said}"))


@click.command(cls=GroupedCommand, examples=('wsap sandbox whisper village anna "The dam will not hold."',))
@click.argument("story")
@click.argument("character")
@click.argument("text")
@story_options
def whisper(story: str, character: str, text: str, *, as_json: bool, database: str | None) -> None:
    """Whisper TEXT to a CHARACTER, who alone hears it."""
    _influence(
        story,
        database,
        as_json,
        lambda w: {"kind": "whisper", "character": part_id(w, character, "character"), "text": text},
    )


@click.command(cls=GroupedCommand, examples=('wsap sandbox event village dam "A beam cracks."',))
@click.argument("story")
@click.argument("place")
@click.argument("text")
@story_options
def event(story: str, place: str, text: str, *, as_json: bool, database: str | None) -> None:
    """Let TEXT happen in a PLACE."""
    _influence(
        story,
        database,
        as_json,
        lambda w: {"kind": "event", "place": part_id(w, place, "place"), "text": text},
    )


@click.command("object", cls=GroupedCommand, examples=('wsap sandbox object village mill "a red lantern"',))
@click.argument("story")
@click.argument("where", metavar="PLACE_OR_CHARACTER")
@click.argument("name")
@click.option("--description", metavar="TEXT", help="What it is.")
@story_options
def put_object(
    story: str, where: str, name: str, *, description: str | None, as_json: bool, database: str | None
) -> None:
    """Put a new object NAME into a place, or into the hands of a character."""

    def body(world: World) -> Body:
        found = part_id(world, where, "place", "character")
        kind = "place" if any(place.id == found for place in world.places) else "character"
        return {"kind": "object", kind: found, "name": name, **({"description": description} if description else {})}

    _influence(story, database, as_json, body)


@click.command(cls=GroupedCommand, examples=('wsap sandbox edit village anna external_intent "To leave the village."',))
@click.argument("story")
@click.argument("part")
@click.argument("field")
@click.argument("text")
@story_options
def edit(story: str, part: str, field: str, text: str, *, as_json: bool, database: str | None) -> None:
    """Change a FIELD of a place, a character or an object to TEXT.

    Of a place: name, description, moment. Of a character: name, appearance, description, secret,
    internal_state, external_intent. Of an object: name, description, condition.
    """
    _influence(
        story,
        database,
        as_json,
        lambda w: {"kind": "edit", "id": part_id(w, part), "field": field.replace("-", "_"), "text": text},
    )


@click.command(cls=GroupedCommand, examples=("wsap sandbox move village anna dam",))
@click.argument("story")
@click.argument("what")
@click.argument("to")
@story_options
def move(story: str, what: str, to: str, *, as_json: bool, database: str | None) -> None:
    """Move a character or an object to a place; an object also to a character."""
    _influence(
        story,
        database,
        as_json,
        lambda w: {
            "kind": "move",
            "id": part_id(w, what, "character", "object"),
            "to": part_id(w, to, "place", "character"),
        },
    )


@click.command(cls=GroupedCommand, examples=('wsap sandbox takeover village anna "I walk to the dam and open it."',))
@click.argument("story")
@click.argument("character")
@click.argument("intention")
@story_options
def takeover(story: str, character: str, intention: str, *, as_json: bool, database: str | None) -> None:
    """Decide what a CHARACTER means to do in the next tick, in its place.

    To be a character for longer: wsap play GAME --seat CHARACTER=human.
    """
    _influence(
        story,
        database,
        as_json,
        lambda w: {"kind": "take_over", "character": part_id(w, character, "character"), "text": intention},
    )

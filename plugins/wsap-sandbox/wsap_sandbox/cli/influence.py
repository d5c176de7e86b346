"""`wsap sandbox whisper`, `event`, `object`, `edit`, `move`, `takeover`: meddle in a story, before its next tick."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import print_json
from wsap_sandbox.cli.common import opened, part_id, story_options, wrapped

if TYPE_CHECKING:
    from wsap_core.protocol.values import JsonValue
    from wsap_sandbox.model import World

Body = dict[str, "JsonValue"]


def _command(
    name: str, words: str, body_of: Callable[..., Body], text: str, example: str, *options: click.Option
) -> click.Command:
    """Return a command that checks an influence against the story as it stands, hands it in, and says what will be."""

    def handed_in(story: str, as_json: bool, database: str | None, **given: Any) -> None:
        with opened(database) as stories:
            run = stories.find(story)
            world = stories.world(run)
            body = body_of(world.state, **given)
            said = world.influence(body)
            stories.runner.influence(run, body)
        if as_json:
            print_json({"run": run, "influence": body, "before_tick": world.state.tick + 1, "said": said})
        else:
            click.echo(wrapped(f"Before the next tick of {run}: {said}"))

    arguments = [click.Argument([word.lower()], metavar=word) for word in ("STORY", *words.split())]
    examples = (f"wsap sandbox {name} {example}",)
    params = [*arguments, *options]
    return story_options(GroupedCommand(name, callback=handed_in, params=params, help=text, examples=examples))


def _whisper(world: World, character: str, text: str) -> Body:
    return {"kind": "whisper", "character": part_id(world, character, "character"), "text": text}


def _event(world: World, place: str, text: str) -> Body:
    return {"kind": "event", "place": part_id(world, place, "place"), "text": text}


def _object(world: World, place_or_character: str, name: str, description: str | None) -> Body:
    found = part_id(world, place_or_character, "place", "character")
    kind = "place" if any(place.id == found for place in world.places) else "character"
    return {"kind": "object", kind: found, "name": name, **({"description": description} if description else {})}


def _edit(world: World, part: str, field: str, text: str) -> Body:
    return {"kind": "edit", "id": part_id(world, part), "field": field.replace("-", "_"), "text": text}


def _move(world: World, what: str, to: str) -> Body:
    moved = part_id(world, what, "character", "object")
    return {"kind": "move", "id": moved, "to": part_id(world, to, "place", "character")}


def _takeover(world: World, character: str, intention: str) -> Body:
    return {"kind": "take_over", "character": part_id(world, character, "character"), "text": intention}


whisper = _command(
    "whisper", "CHARACTER TEXT", _whisper, "Whisper TEXT to a CHARACTER, who alone hears it.",
    'village anna "The dam will not hold."',
)  # fmt: skip
event = _command("event", "PLACE TEXT", _event, "Let TEXT happen in a PLACE.", 'village dam "A beam cracks."')
put_object = _command(
    "object", "PLACE_OR_CHARACTER NAME", _object,
    "Put a new object NAME into a place, or into the hands of a character.", 'village mill "a red lantern"',
    click.Option(["--description"], metavar="TEXT", help="What it is."),
)  # fmt: skip
edit = _command(
    "edit", "PART FIELD TEXT", _edit,
    """Change a FIELD of a place, a character or an object to TEXT.

    Of a place: name, description, moment. Of a character: name, appearance, description, secret,
    internal_state, external_intent. Of an object: name, description, condition.
    """,
    'village anna external_intent "To leave the village."',
)  # fmt: skip
move = _command(
    "move", "WHAT TO", _move, "Move a character or an object to a place; an object also to a character.",
    "village anna dam",
)  # fmt: skip
takeover = _command(
    "takeover", "CHARACTER INTENTION", _takeover,
    """Decide what a CHARACTER means to do in the next tick, in its place.

    To be a character for longer: wsap play GAME --seat CHARACTER=human.
    """,
    'village anna "I walk to the dam and open it."',
)  # fmt: skip

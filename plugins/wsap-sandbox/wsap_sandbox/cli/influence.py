"""`wsap sandbox whisper`, `event`, `object`, `edit`, `move`, `takeover`: meddle in a story, before its next tick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from wsap_sandbox.cli.common import Stories, Told, part_id, story_command, wrapped

if TYPE_CHECKING:
    from wsap_core.protocol.values import JsonValue

Word = tuple[str, str, tuple[str, ...] | None]
"""An argument, the key of the influence that it gives, and which kinds of parts it names; None for a text."""
_WHO: Word = ("CHARACTER", "character", ("character",))


def _command(name: str, kind: str, words: tuple[Word, ...], text: str, example: str, *options: click.Option) -> Any:
    """Return a command that checks an influence against the story as it stands, hands it in, and says what will be."""

    def handed_in(stories: Stories, story: str, **given: Any) -> Told:
        world = stories.world(story)
        body: dict[str, JsonValue] = {"kind": kind}
        for word, key, kinds in words:
            typed = given.pop(word.lower())
            typed = typed.replace("-", "_") if key == "field" else typed
            found = typed if kinds is None else part_id(world.state, typed, *kinds)
            # An object is put into a place or into somebody's hands.
            body[key or next(part.kind for part in world.state.parts if part.id == found)] = found
        body |= {key: value for key, value in given.items() if value}
        said = world.influence(body)
        stories.runner.influence(story, body)
        data = {"run": story, "influence": body, "before_tick": world.state.tick + 1, "said": said}
        return data, wrapped(f"Before the next tick of {story}: {said}")

    handed_in.__name__, handed_in.__doc__ = name, text
    arguments = [click.Argument([word.lower()], metavar=word) for word in ("STORY", *(word for word, _, _ in words))]
    return story_command(f"wsap sandbox {name} {example}", params=(*arguments, *options))(handed_in)


whisper = _command(
    "whisper", "whisper", (_WHO, ("TEXT", "text", None)), "Whisper TEXT to a CHARACTER, who alone hears it.",
    'village anna "The dam will not hold."',
)  # fmt: skip
event = _command(
    "event", "event", (("PLACE", "place", ("place",)), ("TEXT", "text", None)), "Let TEXT happen in a PLACE.",
    'village dam "A beam cracks."',
)  # fmt: skip
put_object = _command(
    "object", "object", (("PLACE_OR_CHARACTER", "", ("place", "character")), ("NAME", "name", None)),
    "Put a new object NAME into a place, or into the hands of a character.", 'village mill "a red lantern"',
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
    "Move a character or an object to a place; an object also to a character.", "village anna dam",
)  # fmt: skip
takeover = _command(
    "takeover", "take_over", (_WHO, ("INTENTION", "text", None)),
    """Decide what a CHARACTER means to do in the next tick, in its place.

    To be a character for longer: wsap play GAME --seat CHARACTER=human.
    """,
    'village anna "I walk to the dam and open it."',
)  # fmt: skip

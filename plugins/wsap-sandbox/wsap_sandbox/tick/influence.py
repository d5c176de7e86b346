"""Influences from outside, and people who come and go: each makes another world of a world, between two ticks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from wsap_core.errors import UsageError
from wsap_core.protocol.values import JsonValue
from wsap_core.untrusted import sanitize
from wsap_sandbox.model import RESERVED, Character, Influence, Place, World, WorldObject, faults
from wsap_sandbox.tick.prompts import Language

FIELDS: Mapping[str, tuple[str, ...]] = {
    "place": ("name", "description", "moment"),
    "character": ("name", "appearance", "description", "secret", "internal_state", "external_intent"),
    "object": ("name", "description", "condition"),
}
"""What `edit` can change."""
KINDS: Mapping[str, str] = {
    "whisper": "character, text",
    "event": "place, text",
    "object": "name, place or character, description (optional)",
    "edit": "id, field, text",
    "move": "id, to",
    "take_over": "character, text",
}
"""Kinds of influences -> the keys that each takes beside `kind`."""
MOST_WAITING = 50
"""Most influences that one tick takes up."""

P = TypeVar("P", Place, Character)

_PUBLIC = frozenset({"name", "appearance", "condition", "moment"})
_LONGEST = 1000


def influenced(world: World, body: Mapping[str, JsonValue], language: Language) -> tuple[World, str]:
    """Return the world under an influence, and a sentence in its language that says what was done.

    `body` has `kind` and the keys that `KINDS` names for it. Raises UsageError if there is no such kind, place,
    character, object or field, or a text is missing.
    """
    kind = body.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise UsageError(f"There is no influence {kind!r}; choose one of {', '.join(KINDS)}.")
    if len(world.influences) >= MOST_WAITING:
        raise UsageError(f"{MOST_WAITING} influences wait for the next tick already; let it happen first.")
    if unknown := sorted(set(body) - {"kind", *re.findall(r"[a-z_]+", KINDS[kind])}):
        raise UsageError(f"{kind} takes {KINDS[kind]}, and not {', '.join(map(repr, unknown))}.")
    match kind:
        case "whisper" | "take_over":
            one, text = _character(world, _text(body, "character")), _text(body, "text")
            influence = Influence(kind, text, character=one.id)
            return _waiting(world, influence), language.influenced(kind, who=one.name, what=text)
        case "event":
            text = _text(body, "text")
            return _noticed(world, Influence("event", text, _place(world, _text(body, "place")).id))
        case "object":
            return _object_put(world, body, language)
        case "edit":
            return _edited(world, _text(body, "id"), _text(body, "field"), _text(body, "text"), language)
        case _:
            return _moved(world, _text(body, "id"), _text(body, "to"), language)


def with_character(world: World, one: Character, language: Language) -> World:
    """Return the world with somebody new in it.

    Raises UsageError if somebody has the id, or the place does not exist.
    """
    grown = replace(world, characters=(*world.characters, one))
    if wrong := next(faults(grown), None):
        raise UsageError(f"{one.name} can't come: {wrong}")
    return _noticed(grown, Influence("move", language.influenced("move", who=one.name), one.place))[0]


def without_character(world: World, character_id: str) -> World:
    """Return the world without somebody; what they carried lies where they were.

    Raises UsageError if there is nobody of that id.
    """
    gone = _character(world, character_id)
    places = tuple(
        replace(place, objects=(*place.objects, *gone.inventory)) if place.id == gone.place else place
        for place in world.places
    )
    others = tuple(one for one in world.characters if one.id != gone.id)
    waiting = tuple(one for one in world.influences if one.character != gone.id)
    return replace(world, places=places, characters=others, influences=waiting)


def _object_put(world: World, body: Mapping[str, JsonValue], language: Language) -> tuple[World, str]:
    name = _text(body, "name")
    description = _text(body, "description") if "description" in body else ""
    where = _text(body, "character" if "character" in body else "place")
    used = {part.id for group in (world.places, world.characters, world.objects) for part in group}
    base = "-".join(re.findall(r"[a-z0-9]+", name.casefold())) or "object"
    names = (base if number == 1 else f"{base}-{number}" for number in range(1, len(used) + 3))
    thing = WorldObject(next(one for one in names if one not in used and one not in RESERVED), name, description)
    grown = _put(replace(world, objects=(*world.objects, thing)), thing.id, where, "character" not in body)
    who = "" if "character" not in body else _character(world, where).name
    at = where if not who else _character(world, where).place
    return _noticed(grown, Influence("object", language.influenced("object", who=who, what=name), at))


def _edited(world: World, part_id: str, field: str, text: str, language: Language) -> tuple[World, str]:
    what, part = _part(world, part_id)
    if field not in FIELDS[what]:
        raise UsageError(f"The {field!r} of a {what} can't be edited; choose one of {', '.join(FIELDS[what])}.")
    fields: dict[str, Any] = {field: text}
    changed = _with(world, replace(part, **fields))
    who, name = (part.name, "") if isinstance(part, Character) else ("", part.name)
    said = language.influenced("edit", who=who, what=name)
    if isinstance(part, Character) and field not in _PUBLIC:
        return _waiting(changed, Influence("edit", said, character=part.id)), said
    return _noticed(changed, Influence("edit", said, _whereabouts(world, part)))


def _moved(world: World, part_id: str, to: str, language: Language) -> tuple[World, str]:
    part = _part(world, part_id)[1]
    if isinstance(part, Place):
        raise UsageError(f"{part.id} is a place, and can't be moved.")
    if isinstance(part, Character):
        at = _place(world, to).id
        changed = _with(world, replace(part, place=at, came_from=""))
        return _noticed(changed, Influence("move", language.influenced("move", who=part.name), at))
    in_place = any(place.id == to for place in world.places)
    changed = _put(_taken(world, part.id), part.id, to, in_place)
    at = to if in_place else _character(world, to).place
    return _noticed(changed, Influence("move", language.influenced("move", what=part.name), at))


def _noticed(world: World, influence: Influence) -> tuple[World, str]:
    return _waiting(world, influence), influence.text


def _waiting(world: World, influence: Influence) -> World:
    return replace(world, influences=(*world.influences, influence))


def _text(body: Mapping[str, JsonValue], key: str) -> str:
    value = body.get(key)
    text = sanitize(value, _LONGEST) if isinstance(value, str) else ""
    if not text:
        raise UsageError(f"The influence needs {key!r}, a text that is not empty.")
    return text


def _place(world: World, place_id: str) -> Place:
    return _known(world.places, place_id, "place")


def _character(world: World, character_id: str) -> Character:
    return _known(world.characters, character_id, "character")


def _part(world: World, part_id: str) -> tuple[str, Place | Character | WorldObject]:
    for what, parts in (("place", world.places), ("character", world.characters), ("object", world.objects)):
        for part in parts:
            if part.id == part_id:
                return what, part
    raise UsageError(f"There is no place, character or object {part_id!r} in this world.")


def _known(parts: tuple[P, ...], wanted: str, what: str) -> P:
    for part in parts:
        if part.id == wanted:
            return part
    ids = ", ".join(part.id for part in parts) or "none"
    raise UsageError(f"There is no {what} {wanted!r} in this world; there are {ids}.")


def _whereabouts(world: World, part: Place | Character | WorldObject) -> str:
    """The id of the place where a change of something can be noticed."""
    if isinstance(part, Place):
        return part.id
    if isinstance(part, Character):
        return part.place
    holder = _holder(world, part.id)
    return holder.id if isinstance(holder, Place) else holder.place


def _with(world: World, part: Place | Character | WorldObject) -> World:
    """The world with a part in the place of the one of its kind and id."""
    if isinstance(part, Place):
        return replace(world, places=tuple(part if one.id == part.id else one for one in world.places))
    if isinstance(part, Character):
        return replace(world, characters=tuple(part if one.id == part.id else one for one in world.characters))
    return replace(world, objects=tuple(part if one.id == part.id else one for one in world.objects))


def _holder(world: World, thing: str) -> Place | Character:
    for place in world.places:
        if thing in place.objects:
            return place
    return next(one for one in world.characters if thing in one.inventory)


def _things(holder: Place | Character) -> tuple[str, ...]:
    return holder.objects if isinstance(holder, Place) else holder.inventory


def _holding(holder: Place | Character, things: tuple[str, ...]) -> Place | Character:
    return replace(holder, objects=things) if isinstance(holder, Place) else replace(holder, inventory=things)


def _put(world: World, thing: str, to: str, in_place: bool) -> World:
    holder = _place(world, to) if in_place else _character(world, to)
    return _with(world, _holding(holder, (*_things(holder), thing)))


def _taken(world: World, thing: str) -> World:
    holder = _holder(world, thing)
    return _with(world, _holding(holder, tuple(one for one in _things(holder) if one != thing)))

"""Influences from outside and newcomers, applied to a world between two ticks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wsap_core.errors import UsageError
from wsap_core.protocol.values import JsonValue
from wsap_core.untrusted import sanitize
from wsap_sandbox.languages import words_of
from wsap_sandbox.model import Character, Influence, InfluenceKind, Place, World, WorldObject, faults
from wsap_sandbox.names import name_faults

FIELDS: Mapping[str, tuple[str, ...]] = {
    "place": ("name", "description", "moment"),
    "character": ("name", "appearance", "description", "secret", "internal_state", "external_intent"),
    "object": ("name", "description", "condition"),
}
"""Fields that `edit` can change, by kind of part."""
KINDS: Mapping[str, str] = {
    "whisper": "character, text",
    "event": "place, text",
    "object": "name, place or character, description (optional)",
    "edit": "id, field, text",
    "move": "id, to",
    "take_over": "character, text",
}
"""Kind of influence -> its keys besides `kind`."""
MOST_WAITING = 50
"""Maximum influences per tick."""

Holder = Place | Character
Part = Holder | WorldObject

_PUBLIC = frozenset({"name", "appearance", "condition", "moment"})
_LONGEST = 1000
_THINGS = {"place": "objects", "character": "inventory"}
"""The field with the objects of each kind of holder."""


def influenced(world: World, body: Mapping[str, JsonValue]) -> tuple[World, str]:
    """Return the world under an influence, and a sentence in its language that describes the influence.

    `body` has `kind` and its keys in `KINDS`. Raises UsageError if the kind, place, character, object or field does
    not exist, a text is missing, a name looks like another, or a fixed object is to be moved.
    """
    kind = body.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise UsageError(f"Unknown influence {kind!r}; choose one of {', '.join(KINDS)}.")
    if len(world.influences) >= MOST_WAITING:
        raise UsageError(f"{MOST_WAITING} influences already wait for the next tick; run it first.")
    if unknown := sorted(set(body) - {"kind", *re.findall(r"[a-z_]+", KINDS[kind])}):
        raise UsageError(f"{kind} takes {KINDS[kind]}, not {', '.join(map(repr, unknown))}.")
    match kind:
        case "whisper" | "take_over":
            one, text = _named(world, body, "character", "character"), _text(body, "text")
            changed, _ = _under(world, Influence(kind, text, character=one.id))
            return changed, words_of(world.language).influenced(kind, who=one.name, what=text)
        case "event":
            text = _text(body, "text")
            return _under(world, Influence("event", text, _named(world, body, "place", "place").id))
        case _:
            return {"object": _object_put, "edit": _edited, "move": _moved}[kind](world, body)


def with_character(world: World, one: Character) -> World:
    """Return the world with a new character.

    Raises UsageError if its id is taken, its name looks like another's, or its place does not exist.
    """
    grown = replace(world, characters=(*world.characters, one))
    if wrong := next(faults(grown), None) or _new_fault(world, grown):
        raise UsageError(f"{one.name} can't enter: {wrong}")
    return _noticed(grown, "move", one, one)[0]


def _object_put(world: World, body: Mapping[str, JsonValue]) -> tuple[World, str]:
    name = _text(body, "name")
    description = _text(body, "description") if "description" in body else ""
    where = "character" if "character" in body else "place"
    holder = _named(world, body, where, where)
    thing = WorldObject(world.free_id(name, "object"), name, description)
    grown = _holding(replace(world, objects=(*world.objects, thing)), holder, (*_things(holder), thing.id))
    _refuse_names(world, grown)
    return _noticed(grown, "object", holder, thing, holder)


def _edited(world: World, body: Mapping[str, JsonValue]) -> tuple[World, str]:
    part, field, text = _named(world, body, "id"), _text(body, "field"), _text(body, "text")
    if field not in (known := FIELDS[part.kind]):
        raise UsageError(f"The {field!r} of a {part.kind} can't be edited; choose one of {', '.join(known)}.")
    changed = _with(world, replace(part, **{field: text}))
    _refuse_names(world, changed)
    if isinstance(part, Character) and field not in _PUBLIC:
        said = words_of(world.language).influenced("edit", who=part.name)
        return _under(changed, Influence("edit", said, character=part.id))
    return _noticed(changed, "edit", _holder(world, part) if isinstance(part, WorldObject) else part, part)


def _moved(world: World, body: Mapping[str, JsonValue]) -> tuple[World, str]:
    part = _named(world, body, "id")
    if isinstance(part, Place):
        raise UsageError(f"{part.id} is a place and can't be moved.")
    if isinstance(part, Character):
        at = _named(world, body, "to", "place")
        return _noticed(_with(world, replace(part, place=at.id, came_from="")), "move", at, part)
    if part.id in world.fixed:
        raise UsageError(f"{part.name!r} ({part.id}) can't be carried; move another object, or edit its condition.")
    holder = _holder(world, part)
    left = _holding(world, holder, tuple(one for one in _things(holder) if one != part.id))
    receiver = _named(left, body, "to", "place", "character")
    return _noticed(_holding(left, receiver, (*_things(receiver), part.id)), "move", receiver, part)


def _noticed(
    world: World, kind: InfluenceKind, where: Holder, part: Part, receiver: Part | None = None
) -> tuple[World, str]:
    """The world under an influence on a part, noticed in the place `where` or where the character `where` is."""
    who = next((one.name for one in (part, receiver) if isinstance(one, Character)), "")
    what = "" if isinstance(part, Character) else part.name
    said = words_of(world.language).influenced(kind, who=who, what=what)
    return _under(world, Influence(kind, said, where.id if isinstance(where, Place) else where.place))


def _under(world: World, influence: Influence) -> tuple[World, str]:
    return replace(world, influences=(*world.influences, influence)), influence.text


def _new_fault(before: World, changed: World) -> str:
    """What a change makes wrong with the names of a world; worlds that were begun long ago may have such names."""
    known = set(name_faults(before))
    return next((fault for fault in name_faults(changed) if fault not in known), "")


def _refuse_names(before: World, changed: World) -> None:
    if fault := _new_fault(before, changed):
        raise UsageError(fault[0].upper() + fault[1:])


def _text(body: Mapping[str, JsonValue], key: str) -> str:
    value = body.get(key)
    text = sanitize(value, _LONGEST) if isinstance(value, str) else ""
    if not text:
        raise UsageError(f"The influence needs {key!r}, a non-empty text.")
    return text


def _named(world: World, body: Mapping[str, JsonValue], key: str, *kinds: str) -> Any:
    """The part that an influence names, of these kinds or of any (Any: the caller knows which)."""
    wanted = _text(body, key)
    known = {part.id: part for part in world.parts if not kinds or part.kind in kinds}
    if wanted not in known:
        what = " or ".join(kinds) or "place, character or object"
        raise UsageError(f"There is no {what} {wanted!r} in this world; there are {', '.join(known) or 'none'}.")
    return known[wanted]


def _with(world: World, part: Part) -> World:
    """The world with the part of the same kind and id replaced."""
    group = f"{part.kind}s"
    parts: dict[str, Any] = {group: tuple(part if one.id == part.id else one for one in getattr(world, group))}
    return replace(world, **parts)


def _holder(world: World, thing: WorldObject) -> Holder:
    holders: tuple[Holder, ...] = (*world.places, *world.characters)
    return next(one for one in holders if thing.id in _things(one))


def _things(holder: Holder) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(holder, _THINGS[holder.kind])
    return found


def _holding(world: World, holder: Holder, things: tuple[str, ...]) -> World:
    changed: dict[str, Any] = {_THINGS[holder.kind]: things}
    return _with(world, replace(holder, **changed))

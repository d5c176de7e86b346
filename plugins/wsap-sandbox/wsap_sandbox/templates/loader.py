"""Loads templates by name or file, validates them, and builds their worlds."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from importlib import resources
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from wsap_core.errors import ConfigError, UnknownNameError
from wsap_core.textfile import read_text
from wsap_sandbox.model import LANGUAGES, Character, Place, World, WorldObject, adapter_of, faults
from wsap_sandbox.names import DISTINCT, name_faults, skeleton
from wsap_sandbox.phrases.grammar import grammar_of
from wsap_sandbox.templates import shape as shapes
from wsap_sandbox.templates.shape import CharacterShape, ObjectShape, PlaceShape, TemplateShape

_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


def template_names() -> tuple[str, ...]:
    """Return the names of the bundled worlds."""
    return tuple(sorted({file.name.split(".")[0] for file in _home().iterdir() if file.name.endswith(".toml")}))


def read_template(name: str, language: str = "en") -> TemplateShape:
    """Return a validated template: a bundled one in a language, or a file (its path ends in `.toml`).

    Raises UnknownNameError if there is none of that name; ConfigError if the language is not in `LANGUAGES` or the
    file is invalid: the message names the file, the key, and what to do.
    """
    if "/" in name or "\\" in name or name.endswith(".toml"):
        return parse_template(read_text(Path(name), "The template"), name)
    if language not in LANGUAGES:
        raise ConfigError(f"There is no language {language!r}; choose {' or '.join(LANGUAGES)}.")
    if name not in template_names():
        known = template_names()
        hint = f"There are {', '.join(known)}; the path of your own file ends in .toml."
        raise UnknownNameError("template", name, known, hint=hint)
    return _bundled(name, language)


@cache
def _bundled(name: str, language: str) -> TemplateShape:
    file = f"{name}.{language}.toml"
    return parse_template((_home() / file).read_text("utf-8"), file)


def places_drawn(name: str, language: str) -> dict[str, PlaceShape]:
    """Return place id -> the place of a template; raises like `read_template`."""
    return {one.id: one for one in read_template(name, language).places}


def bundled_templates() -> tuple[TemplateShape, ...]:
    """Return every bundled template in every language."""
    return tuple(_bundled(name, language) for name in template_names() for language in LANGUAGES)


def parse_template(text: str, file: str) -> TemplateShape:
    """Return the validated template of a TOML text; raises ConfigError, whose message names it `file`."""
    from pydantic import ValidationError  # deferred for weight: the command line loads this module

    try:
        shape: TemplateShape = adapter_of(TemplateShape).validate_python(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise ConfigError(f"{file} is nested too deeply.") from error
    except ValidationError as error:
        # Unknown keys first: a misspelt key is also reported as missing.
        first = min(error.errors(include_url=False), key=lambda one: one["type"] not in _UNKNOWN)
        raise ConfigError(_told(first, text, file)) from error
    if fault := next(template_faults(shape), None):
        raise ConfigError(f"{file}: {fault}")
    world = world_of(shape)
    if fault := next(chain(faults(world), name_faults(world)), None):
        raise ConfigError(f"{file}: {fault}")
    return shape


def template_schema() -> dict[str, Any]:
    """Return the JSON Schema of a template."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **adapter_of(TemplateShape).json_schema()}


def world_of(shape: TemplateShape, seed: int = 0) -> World:
    """Return the world of a validated template before its first tick."""
    exits, objects = exits_of(shape), shape.objects
    places = (
        Place(
            one.id, one.name, _plain(one.description), _plain(one.moment), exits[one.id],
            tuple(thing.id for thing in objects if thing.place == one.id),
        )
        for one in shape.places
    )  # fmt: skip
    characters = (
        Character(
            one.id, one.name, _plain(one.appearance), _plain(one.description), one.place, one.triggers,
            _plain(one.secret), one.state, one.intent, tuple(thing.id for thing in objects if thing.holder == one.id),
        )
        for one in shape.characters
    )  # fmt: skip
    things = (WorldObject(one.id, one.name, _plain(one.description), (*one.stages, "")[0]) for one in objects)
    about = shape.world
    return World(
        about.name, about.language, tuple(places), tuple(characters), tuple(things), _plain(about.about), about.cells,
        seed=seed, fixed=tuple(one.id for one in objects if one.fixed),
    )  # fmt: skip


def exits_of(shape: TemplateShape) -> dict[str, tuple[str, ...]]:
    """Return place id -> ids of the places that can be reached from it."""
    topology = shape.world.topology
    if topology.kind == "graph":
        return {one.id: (*one.exits, *one.one_way) for one in shape.places}
    order = topology.places or tuple(one.id for one in shape.places)
    width = topology.width if topology.kind == "field" else len(order)
    found: dict[str, list[str]] = {one: [] for one in order}
    for at, one in enumerate(order):
        beside = order[at + 1 : at + 2] if at % width + 1 < width else ()
        for other in (*beside, *order[at + width : at + width + 1]):
            found[one].append(other)
            found[other].append(one)
    one_way = {one.id: one.one_way for one in shape.places}
    return {one: (*found[one], *one_way[one]) for one in order}


def _told(error: Any, text: str, file: str) -> str:
    where, keys, shape = _where(error["loc"], tomllib.loads(text))
    kind, key = error["type"], str(error["loc"][-1]) if error["loc"] else ""
    if kind in ("missing", "missing_argument"):
        return f"{file}: {where}has no {key!r}; write {_as_toml(shape, key)}."
    if kind in _UNKNOWN:
        near = difflib.get_close_matches(key, keys, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(keys)}."
        return f"{file}: {where}has no key {key!r}; {hint}"
    said = str(error["msg"]).removeprefix("Input should be ").removeprefix("a valid ").split(", unable")[0]
    said = {"string": "text in quotes", "integer": "a whole number", "boolean": "true or false"}.get(said, said)
    return f"{file}: {where}{key!r} must be {said}."


def _as_toml(shape: type, key: str) -> str:
    """Return how a key of a shape is written in TOML."""
    if shape is TemplateShape and key in _SHAPES:
        return f"[{key}]" if key == "world" else f"[[{key}]]"
    written = {one.name: str(one.type) for one in fields(shape)}[key]
    return f'{key} = ["..."]' if written.startswith("tuple") else f'{key} = "..."'


def _where(path: tuple[int | str, ...], data: Any) -> tuple[str, list[str], type]:
    """Return the part of the file at a path (`characters 'anna': `), its valid keys, and its shape."""
    words: list[str] = []
    kind: Any = TemplateShape
    for step in path[:-1]:
        data = data[step]
        if isinstance(step, str):
            words.append(step)
            kind = _SHAPES.get(step, kind)
        elif isinstance(data, dict):
            words.append(repr(data["id"]) if isinstance(data.get("id"), str) else f"number {step + 1}")
    keys = [str(one.metadata.get("alias", one.name)) for one in fields(kind)]
    return (" ".join(words) + ": " if words else ""), keys, kind


def _plain(text: str) -> str:
    return " ".join(text.split())


def _home() -> Any:  # importlib.resources' Traversable
    return resources.files("wsap_sandbox") / "templates"


_SHAPES: dict[str, type] = {
    "world": shapes.WorldShape, "topology": shapes.TopologyShape, "places": shapes.PlaceShape, "aims": shapes.Aim,
    "characters": shapes.CharacterShape, "objects": shapes.ObjectShape, "stakes": shapes.StakeShape,
}  # fmt: skip


# --- errors in a template beyond the types of its keys ---------------------------------------------

_ID = re.compile(r"[a-z][a-z0-9_-]{0,39}")


def template_faults(shape: TemplateShape) -> Iterator[str]:
    """Yield each error in a template as a sentence; `faults` and `name_faults` find those in its world."""
    if not shape.places:
        yield "there are no places; add one under [[places]]."
    yield from _ids(shape)
    for one in shape.places:
        if one.spot is not None and not all(0 <= part <= 1 for part in one.spot):
            yield f"the spot of the place {one.id!r} is off the map; write two numbers from 0 to 1."
    yield from _ways(shape)
    yield from _whereabouts(shape)
    yield from _for_the_storyteller(shape)


def _parts(shape: TemplateShape) -> dict[str, Sequence[PlaceShape | CharacterShape | ObjectShape]]:
    return {"places": shape.places, "characters": shape.characters, "objects": shape.objects}


def _ids(shape: TemplateShape) -> Iterator[str]:
    kinds = [(what, part.id) for what, parts in _parts(shape).items() for part in parts]
    for what, one in kinds:
        if not _ID.fullmatch(one):
            rule = "use a lower-case Latin letter, then at most 39 lower-case Latin letters, digits, - and _."
            yield f"{what}: the id {one!r} is invalid; {rule}"
    for (what, one), (other_what, other) in combinations(kinds, 2):
        if one == other:
            yield f"{other_what}: the id {other!r} is already used in {what}; choose another."
        if skeleton(one) == skeleton(other):
            yield f"{other_what}: the id {other!r} looks like {one!r} in {what}; {DISTINCT}"


def _ways(shape: TemplateShape) -> Iterator[str]:
    places = {one.id: one for one in shape.places}
    topology = shape.world.topology
    for one in shape.places:
        for to in (*one.exits, *one.one_way):
            if to not in places:
                yield f"places {one.id!r}: an exit leads to {to!r}, which is not a place; there are {_list(places)}."
            if to == one.id:
                yield f"places {one.id!r}: an exit leads back to itself; remove it."
        for to in (*one.exits,) if topology.kind == "graph" else ():
            back = places[to]
            if one.id not in (*back.exits, *back.one_way):
                yield (
                    f"places {one.id!r}: there is an exit to {to!r} but none back; add {one.id!r} to the exits of "
                    f"{to!r}, or move {to!r} from exits to one_way."
                )
        if topology.kind != "graph" and one.exits:
            yield f"places {one.id!r}: in a {topology.kind} the exits follow from the order; remove exits."
    if topology.kind == "graph":
        if topology.places or topology.width or topology.height:
            yield "world topology: places, width and height are for a chain or a field; remove them."
        return
    order = topology.places or tuple(places)
    if sorted(order) != sorted(places):
        yield f"world topology: places must name each place once; there are {_list(places)}."
    if topology.kind == "field" and (topology.width < 1 or topology.width * topology.height != len(order)):
        yield (
            f"world topology: a field of {topology.width} by {topology.height} has {topology.width * topology.height} "
            f"places, but there are {len(order)}; add places, or change width and height."
        )


def _whereabouts(shape: TemplateShape) -> Iterator[str]:
    places, people = {one.id for one in shape.places}, {one.id for one in shape.characters}
    named = [("characters", one.id, "place", one.place) for one in shape.characters]
    for thing in shape.objects:
        if bool(thing.place) == bool(thing.holder):
            yield f"objects {thing.id!r}: give either place or holder."
        named += [("objects", thing.id, "place", thing.place), ("objects", thing.id, "holder", thing.holder)]
    for what, one, key, value in named:
        known, noun = (places, "place") if key == "place" else (people, "character")
        if value not in known and (value or what == "characters"):
            yield f"{what} {one!r}: {key} = {value!r} is not a {noun}; there are {_list(known)}."


def _for_the_storyteller(shape: TemplateShape) -> Iterator[str]:
    for what, parts in (("characters", shape.characters), ("objects", shape.objects)):
        for part in parts:
            if part.cases and len(part.cases) != 6:
                six = "give six (nominative, genitive, dative, accusative, instrumental, prepositional)."
                yield f"{what} {part.id!r}: cases has {len(part.cases)} forms; {six}"
    known = {"at": "places", "person": "characters", "object": "objects"}
    ids = {key: [part.id for part in _parts(shape)[what]] for key, what in known.items()}
    aims = [(one.id, number, aim) for one in shape.characters for number, aim in enumerate(one.aims, 1)]
    for one, number, aim in aims:
        for key in known:
            if (value := getattr(aim, key)) and value not in ids[key]:
                where = f"characters {one!r}: {key} = {value!r} in aim {number}"
                yield f"{where} does not exist; there are {_list(ids[key])}."
    stages = {one.id: len(one.stages) for one in shape.objects}
    for stake in shape.stakes:
        wanted, given, where = stages.get(stake.object, 0), len(stake.worse), f"stakes {stake.object!r}:"
        if not wanted:
            yield f"{where} object must be the id of an object with stages."
        elif given != wanted:
            yield f"{where} worse has {given} clauses; give {wanted}, one for each stage."
        if not stake.work:
            yield f"{where} work is empty; list what can be done."
    yield from _truths(shape)
    yield from _guests(shape)
    yield from _words(shape)


def _truths(shape: TemplateShape) -> Iterator[str]:
    for one in shape.characters:
        for number, aim in enumerate(one.aims, 1):
            if aim.truth and not (aim.person and one.truth):
                needs = "it needs a person, and the character a truth."
                yield f"characters {one.id!r}: aim {number} has truth = true; {needs}"


def _guests(shape: TemplateShape) -> Iterator[str]:
    places = [one.id for one in shape.places]
    for guest in shape.guests:
        if guest.place not in places:
            yield f"guests {guest.name!r}: place = {guest.place!r} does not exist; there are {_list(places)}."


_GIVEN = {"way_first", "way_mid", "way_last"}
"""Lists of phrases that a character has."""


def _words(shape: TemplateShape) -> Iterator[str]:
    """The faults of the lists of phrases."""
    if not shape.words:
        return
    lists = {**grammar_of(shape.world.language).rules, **shape.words}
    for name, phrases in shape.words.items():
        if not phrases:
            yield f"words: {name} is empty; write at least one phrase, or remove it."
        unknown = sorted({one for one in _meant(phrases) if one not in lists and one not in _GIVEN})
        yield from (f"words: {name} mentions <{one}>, and there is no list {one}; add it." for one in unknown)
        if _within_itself(name, lists):
            yield f"words: {name} contains itself by way of its <...>; remove the circle."
    for name, form in (("pasts", "carve|carved"), ("builds", "put up|There is {x} here now")):
        for wrong in (one for one in shape.words.get(name, ()) if "|" not in one or "" in one.split("|")):
            yield f"words: {name} has {wrong!r}; write it like {form!r}."


def _meant(phrases: Iterable[str]) -> set[str]:
    """The lists that phrases mention."""
    return {one[:1].lower() + one[1:] for phrase in phrases for one in re.findall(r"<(\w+)>", phrase)}


def _within_itself(name: str, lists: Mapping[str, Sequence[str]]) -> bool:
    seen: set[str] = set()
    left = list(_meant(lists[name]))
    while left:
        one = left.pop()
        if one == name:
            return True
        if one not in seen:
            seen.add(one)
            left += _meant(lists.get(one, ()))
    return False


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))

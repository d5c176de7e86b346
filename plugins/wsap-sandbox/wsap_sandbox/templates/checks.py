"""What a template can get wrong beyond the types of its keys; each fault is a sentence with what to do."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from wsap_sandbox.templates.shape import CharacterShape, ObjectShape, PlaceShape, TemplateShape

_ID = re.compile(r"[a-z][a-z0-9_-]{0,39}")
# Letters and digits that look like a Latin letter: Cyrillic ones, Greek ones, digits.
_ALIKE = str.maketrans("аԁеһіїјкӏмноорсѕтухгαεικνορτυχ01|", "adehiijklmhoopcstyxraeiknoptyxoll")

_DISTINCT = "choose one that is easily told apart."


def template_faults(shape: TemplateShape) -> Iterator[str]:
    """Give each thing that is wrong with a template, as a sentence, but for what `faults` finds in its world."""
    if not shape.places:
        yield "there is no place; add one under [[places]]."
    yield from _ids(shape)
    yield from _names(shape)
    yield from _ways(shape)
    yield from _whereabouts(shape)
    yield from _for_the_storyteller(shape)


def skeleton(text: str) -> str:
    """Return what a name looks like: two names that a reader can't tell apart have the same skeleton."""
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    text = "".join(c for c in text if not unicodedata.combining(c) and unicodedata.category(c) not in ("Cf", "Zs"))
    return text.translate(_ALIKE).replace("rn", "m").replace("vv", "w").replace("-", "").replace("_", "")


def _parts(shape: TemplateShape) -> dict[str, Sequence[PlaceShape | CharacterShape | ObjectShape]]:
    return {"places": shape.places, "characters": shape.characters, "objects": shape.objects}


def _ids(shape: TemplateShape) -> Iterator[str]:
    kinds = [(what, part.id) for what, parts in _parts(shape).items() for part in parts]
    for what, one in kinds:
        if not _ID.fullmatch(one):
            rule = "take small Latin letters, digits, - and _, at most 40, beginning with a letter."
            yield f"{what}: the id {one!r} can't be used; {rule}"
    for (what, one), (other_what, other) in combinations(kinds, 2):
        if one == other:
            yield f"{other_what}: the id {other!r} is already used in {what}; give each its own."
        if skeleton(one) == skeleton(other):
            yield f"{other_what}: the id {other!r} looks like {one!r} in {what}; {_DISTINCT}"


def _names(shape: TemplateShape) -> Iterator[str]:
    for what, parts in _parts(shape).items():
        yield from (f"{what} {one.id!r}: the name is empty; write one." for one in parts if not one.name.strip())
        for one, other in combinations(parts, 2):
            if skeleton(one.name) == skeleton(other.name):
                yield f"{what} {other.id!r}: the name {other.name!r} looks like that of {one.id!r}; {_DISTINCT}"


def _ways(shape: TemplateShape) -> Iterator[str]:
    places = {one.id: one for one in shape.places}
    topology = shape.world.topology
    for one in shape.places:
        for to in (*one.exits, *one.one_way):
            if to not in places:
                yield f"places {one.id!r}: an exit leads to {to!r}, which is no place; there are {_list(places)}."
            if to == one.id:
                yield f"places {one.id!r}: an exit leads back to itself; remove it."
        for to in (*one.exits,) if topology.kind == "graph" else ():
            back = places[to]
            if one.id not in (*back.exits, *back.one_way):
                yield (
                    f"places {one.id!r}: there is an exit to {to!r} and none back; add {one.id!r} to the exits of "
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
        yield f"world topology: places has to name each place once; there are {_list(places)}."
    if topology.kind == "field" and (topology.width < 1 or topology.width * topology.height != len(order)):
        yield (
            f"world topology: a field of {topology.width} by {topology.height} has {topology.width * topology.height} "
            f"places, and there are {len(order)}; add places, or change width and height."
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
            yield f"{what} {one!r}: {key} = {value!r} is no {noun}; there are {_list(known)}."


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
            yield f"{where} object has to be the id of an object with stages."
        elif given != wanted:
            yield f"{where} worse has {given} clauses; give {wanted}, one a stage."
        if not stake.work:
            yield f"{where} work is empty; say what can be done."


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))

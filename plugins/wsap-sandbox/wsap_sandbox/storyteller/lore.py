"""What the storyteller knows of a world beyond a request's facts: its template's material, or rules for any world."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib import resources
from tomllib import loads

from wsap_core.protocol.values import JsonValue
from wsap_sandbox.languages import LANGUAGES
from wsap_sandbox.storyteller.grammar import Form, Grammar, Lists
from wsap_sandbox.templates.loader import bundled_templates, exits_of
from wsap_sandbox.templates.shape import Aim, CharacterShape, ObjectShape, PlaceShape, StakeShape, TemplateShape

Data = Mapping[str, JsonValue]

# A participle in Russian, or a comparison, which stand between commas.
_CLAUSE = re.compile(r"^(?:не )?(?:\w+ )?\w+(?:в|вши|вшись|[чшжщ]а|я|ясь)\b|^(?:будто|как|словно) |\bглядя$")

ARC = 30
"""Ticks from the first sign that something can be lost to its good or bad end."""
_WORSE_AT = (2, 4, 6, 9, 11, 13, 16, 18, 20, 22, 24, 25)
_LOST = 3
"""The stage from which an arc ends badly."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place as sentences need it."""

    id: str
    name: str
    at: str
    to: str
    from_: str


@dataclass(frozen=True)
class Lore:
    """What is known of one world."""

    grammar: Grammar
    language: str
    shape: TemplateShape | None = None
    """None for a world that the storyteller has never heard of."""

    # --- people --------------------------------------------------------------------------------

    def person(self, one: Data) -> Form:
        """Return the name of a person of the facts."""
        known = self._people.get(str(one["id"]))
        if known is not None and known.name == one["name"]:
            return Form(known.cases or declined(known.name, self.language), known.gender)
        return self.stranger(str(one["name"]))

    def stranger(self, name: str) -> Form:
        """Return a name of which nothing is known; its gender is guessed from its ending."""
        return Form(declined(name, self.language), "f" if name[-1:] in "ая" and self.language == "ru" else "m")

    def named_by_id(self, one: str) -> Form:
        """Return the name of somebody in the template, by id."""
        return self.person({"id": one, "name": self._people[one].name})

    def ways(self, name: str) -> Sequence[str]:
        """Return how somebody, known by name, does things."""
        one = next((one for one in self._people.values() if one.name == name), None)
        return (one.ways if one is not None else ()) or self.grammar.rules["any_way"]

    def manner(self, name: str) -> Lists:
        """Return how somebody does things, with the commas that it takes first, last and in the middle of a clause."""
        found: dict[str, list[str]] = {"way_first": [], "way_mid": [], "way_last": []}
        for way in self.ways(name):
            comma = "," if self.language != "ru" or _CLAUSE.search(way) else ""
            found["way_first"].append(f"{way}{comma or (',' if ', ' in way else '')}")
            found["way_mid"].append(f"{comma} {way}{comma or (',' if ', ' in way else '')}")
            found["way_last"].append(f"{comma} {way}")
        return found

    def lines(self, name: str) -> Sequence[str]:
        """Return what somebody, known by name, might say."""
        one = next((one for one in self._people.values() if one.name == name), None)
        return (one.says if one is not None else ()) or self.grammar.rules["any_line"]

    def aims(self, one: str) -> Sequence[Aim]:
        """Return what somebody pursues, by id."""
        known = self._people.get(one)
        return known.aims if known is not None and known.aims else self._any_aims

    @cached_property
    def _any_aims(self) -> Sequence[Aim]:
        rules = self.grammar.rules
        return tuple(Aim(want, do) for want, do in zip(rules["any_want"], rules["any_do"], strict=True))

    # --- places --------------------------------------------------------------------------------

    def spot(self, place_id: str, name: str) -> Spot:
        """Return a place as sentences need it."""
        known = self._places.get(place_id)
        if known is not None and known.at:
            return Spot(place_id, name, known.at, known.to or name, known.from_ or "")
        if self.language == "ru":
            return Spot(place_id, name, f"в месте «{name}»", f"в место «{name}»", f"из места «{name}»")
        name = f"the {name[4:]}" if name.startswith("The ") else name
        return Spot(place_id, name, f"at {name}", f"to {name}", f"from {name}")

    def spots(self) -> tuple[Spot, ...]:
        """Return every place of the template."""
        return tuple(self.spot(one.id, one.name) for one in self._places.values())

    def details(self, place_id: str) -> Sequence[str]:
        """Return what is noticed in a place."""
        known = self._places.get(place_id)
        return (known.details if known is not None else ()) or self.grammar.rules["any_detail"]

    def alone(self, place_id: str) -> Sequence[str]:
        """Return what happens in a place while nobody is there."""
        known = self._places.get(place_id)
        return (known.alone if known is not None else ()) or self.grammar.rules["any_alone"]

    def step(self, start: str, end: str) -> str:
        """Return the next place on the shortest way; empty if there is none."""
        return self._ways.get((start, end), "")

    @cached_property
    def _ways(self) -> Mapping[tuple[str, str], str]:
        if self.shape is None:
            return {}
        exits, found = exits_of(self.shape), {}
        for start in exits:
            seen, edge = {start}, [(one, one) for one in exits[start]]
            while edge:
                (here, first), edge = edge[0], edge[1:]
                if here not in seen:
                    seen.add(here)
                    found[start, here] = first
                    edge += [(one, first) for one in exits[here]]
        return found

    # --- things --------------------------------------------------------------------------------

    def thing(self, one: Data) -> Form:
        """Return the name of an object of the facts."""
        known = self._things.get(str(one["id"]))
        name = str(one["name"])
        if known is not None and known.name == name:
            return Form(known.cases or declined(name, self.language), known.gender)
        if self.language == "ru":
            return Form(tuple(f"{case} «{name}»" for case in ("вещь", "вещи", "вещи", "вещь", "вещью", "вещи")), "f")
        return Form((name,))

    def thing_by_id(self, thing_id: str) -> Form:
        """Return the name of an object of the template, by id."""
        return self.thing({"id": thing_id, "name": self._things[thing_id].name})

    def stages(self, thing_id: str) -> Sequence[str]:
        """Return what can become of an object, from the best to the worst."""
        known = self._things.get(thing_id)
        return known.stages if known is not None else ()

    def stage(self, one: Data) -> int:
        """Return at which of its stages an object is."""
        stages = self.stages(str(one["id"]))
        return stages.index(str(one["condition"])) if one["condition"] in stages else 0

    def every(self, thing_id: str) -> int:
        """Return in how many ticks an object comes to its next stage; 0 for never."""
        known = self._things.get(thing_id)
        return known.every if known is not None else 0

    def fixed(self, thing_id: str) -> bool:
        """Whether an object can't be carried."""
        known = self._things.get(thing_id)
        return known.fixed if known is not None else False

    # --- stakes --------------------------------------------------------------------------------

    def stake(self, tick: int) -> StakeShape | None:
        """Return what can be lost in a tick."""
        stakes = self.shape.stakes if self.shape is not None else ()
        return stakes[(tick - 1) // ARC % len(stakes)] if stakes else None

    def stake_of(self, thing_id: str) -> StakeShape | None:
        """Return what is at stake with an object, now or at another time; None if nothing is."""
        stakes = self.shape.stakes if self.shape is not None else ()
        return next((stake for stake in stakes if stake.object == thing_id), None)

    def stake_place(self, stake: StakeShape) -> str:
        """Return where it is."""
        return next((one.place for one in self._things.values() if one.id == stake.object), "")

    @staticmethod
    def phase(tick: int) -> int:
        """Return how far the arc has come, from 0 to `ARC` - 1."""
        return (tick - 1) % ARC

    @staticmethod
    def worsens(tick: int) -> bool:
        """Whether things get worse in a tick unless somebody keeps them."""
        return (tick - 1) % ARC in _WORSE_AT

    @staticmethod
    def ends(tick: int) -> bool:
        """Whether an arc ends in a tick."""
        return (tick - 1) % ARC == ARC - 4

    @staticmethod
    def lost(stage: int) -> bool:
        """Whether an arc that ends at this stage ends badly."""
        return stage >= _LOST

    @cached_property
    def works(self) -> tuple[str, ...]:
        """Everything that can be done about something."""
        stakes = self.shape.stakes if self.shape is not None else ()
        return tuple(work for stake in stakes for work in stake.work)

    @cached_property
    def _people(self) -> Mapping[str, CharacterShape]:
        return {one.id: one for one in self.shape.characters} if self.shape is not None else {}

    @cached_property
    def _places(self) -> Mapping[str, PlaceShape]:
        return {one.id: one for one in self.shape.places} if self.shape is not None else {}

    @cached_property
    def _things(self) -> Mapping[str, ObjectShape]:
        return {one.id: one for one in self.shape.objects} if self.shape is not None else {}


@cache
def grammar_of(language: str) -> Grammar:
    """Return the rules of a language; English for one that the storyteller does not speak."""
    home = resources.files("wsap_sandbox") / "storyteller"
    file = home / (f"{language if language in LANGUAGES else 'en'}.toml")
    return Grammar(loads(file.read_text("utf-8")))


def lore_of(facts: Data, own: TemplateShape | None = None) -> Lore:
    """Return what is known of the world that facts are of, from its own template or one that comes with the plugin."""
    premise = str(facts.get("premise", ""))
    # What somebody remembers is summed up without the premise.
    me = ("", "") if premise else (str(facts["me"]["id"]), str(facts["me"]["name"]))
    return _lore(str(facts["language"]), premise, me, own)


@lru_cache(maxsize=256)
def _lore(language: str, premise: str, me: tuple[str, str], own: TemplateShape | None) -> Lore:
    known = (own,) if own is not None else bundled_templates()
    for shape in known:
        same = (language, premise) == (shape.world.language, " ".join(shape.world.about.split()))
        if same or (not premise and any((one.id, one.name) == me for one in shape.characters)):
            return Lore(grammar_of(language), language, shape)
    return Lore(grammar_of(language), language)


def declined(name: str, language: str) -> tuple[str, ...]:
    """Return a name in its cases; a Russian one by its ending, where that tells them."""
    if language != "ru" or not name or " " in name:
        return (name,)
    stem, end = name[:-1], name[-1]
    soft = stem[-1:] in "гкхжшчщ"
    if end == "а":
        return name, stem + ("и" if soft else "ы"), f"{stem}е", f"{stem}у", f"{stem}ой", f"{stem}е"
    if end == "я":
        dative = "и" if stem.endswith("и") else "е"
        return name, f"{stem}и", stem + dative, f"{stem}ю", f"{stem}ей", stem + dative
    if end in "йь":
        prepositional = "и" if stem.endswith("и") else "е"
        return name, f"{stem}я", f"{stem}ю", f"{stem}я", f"{stem}ем", stem + prepositional
    if end in "бвгджзклмнпрстфхцчшщ":
        return name, f"{name}а", f"{name}у", f"{name}а", f"{name}ом", f"{name}е"
    return (name,)

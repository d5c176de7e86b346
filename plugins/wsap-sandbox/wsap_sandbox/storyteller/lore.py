"""The storyteller's knowledge beyond a request's facts: the template's material, or rules for any world."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from wsap_sandbox.model import WorldObject
from wsap_sandbox.phrases.grammar import Form, Grammar, Lists, grammar_of
from wsap_sandbox.templates import shape as shapes
from wsap_sandbox.templates.loader import bundled_templates, exits_of
from wsap_sandbox.templates.shape import Aim, GuestShape, ObjectShape, StakeShape, TemplateShape
from wsap_sandbox.tick.facts import Facts, MemoryFacts, Person

# A Russian participle or comparison, which is set off by commas.
_CLAUSE = re.compile(r"^(?:не )?(?:\w+ )?\w+(?:в|вши|вшись|[чшжщ]а|я|ясь)\b|^(?:будто|как|словно) |\bглядя$")

ARC = 30
"""Length of a stake's story arc in ticks."""
WORSE_AT = (2, 4, 6, 9, 11, 13, 16, 18, 20, 22, 24, 25)
"""Ticks of an arc at which the stake gets worse unless somebody works on it."""
LOST = 3
"""The stage from which an arc ends badly."""


VISITS, COMES, STAYS = 18, 6, 4
"""Ticks between two guests, the tick of the first one's arrival, and how many ticks a guest stays."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place's name and its phrases."""

    id: str
    name: str
    at: str
    to: str
    from_: str


_NOBODY, _NOWHERE = shapes.CharacterShape("", "", "", ""), shapes.PlaceShape("", "", "")
_NOTHING, _UNKNOWN = ObjectShape("", ""), TemplateShape(shapes.WorldShape("", ""), ())


@dataclass(eq=False)
class Lore:
    """The storyteller's knowledge of one world."""

    grammar: Grammar
    language: str
    shape: TemplateShape = _UNKNOWN
    """Empty for an unknown world."""

    def __post_init__(self) -> None:
        self._people = {one.id: one for one in self.shape.characters}
        self._places = {one.id: one for one in self.shape.places}
        self._things = {one.id: one for one in self.shape.objects}
        self._called = {one.name: one for one in reversed(self.shape.characters)}
        rules = self.grammar.rules
        self._any_aims = tuple(Aim(want, do) for want, do in zip(rules["any_want"], rules["any_do"], strict=True))
        self.works = tuple(work for stake in self.shape.stakes for work in stake.work)
        """Everything that can be done about any stake."""

    # --- people --------------------------------------------------------------------------------

    def person(self, one: Person) -> Form:
        """Return the name of a person of the facts; a stranger's gender is guessed from the ending."""
        known, name = self._people.get(one.id, _NOBODY), one.name
        if known.name == name:
            return Form(known.cases or declined(name, self.language), known.gender)
        return Form(declined(name, self.language), "f" if name[-1:] in "ая" and self.language == "ru" else "m")

    def named_by_id(self, one: str) -> Form:
        """Return the name of a character of the template."""
        return self.person(Person(one, self._people[one].name, ""))

    def manner(self, name: str) -> Lists:
        """Return how a character does things, with commas for the start, middle and end of a clause."""
        found: dict[str, list[str]] = {"way_first": [], "way_mid": [], "way_last": []}
        for way in self._called.get(name, _NOBODY).ways or self.grammar.rules["any_way"]:
            comma = "," if self.language != "ru" or _CLAUSE.search(way) else ""
            closed = f"{way}{comma or (',' if ', ' in way else '')}"
            found["way_first"].append(closed)
            found["way_mid"].append(f"{comma} {closed}")
            found["way_last"].append(f"{comma} {way}")
        return found

    def lines(self, name: str) -> Sequence[str]:
        """Return what the character of this name might say."""
        return self._called.get(name, _NOBODY).says or self.grammar.rules["any_line"]

    def aims(self, one: str) -> Sequence[Aim]:
        """Return a character's aims."""
        return self._people.get(one, _NOBODY).aims or self._any_aims

    def people(self) -> tuple[Person, ...]:
        """Return the characters of the template."""
        return tuple(Person(one.id, one.name, "") for one in self.shape.characters)

    def home(self, one: str) -> str:
        """Return the id of the place where a character of the template lives; empty if it is unknown."""
        return self._people.get(one, _NOBODY).place

    def truth(self, one: str) -> str:
        """Return a character's secret in words in which it can be told; empty if it has none."""
        return self._people.get(one, _NOBODY).truth

    def exposed(self, said: str) -> str:
        """Return the id of the character whose secret this is; empty if it is nobody's."""
        known = said.strip(" .!?…").casefold()
        return next((one.id for one in self.shape.characters if one.truth and one.truth.casefold() == known), "")

    def craft_of(self, goal: str) -> str:
        """Return the work that a goal consists of, as an infinitive; empty for another goal."""
        head = self.grammar.rules["craft_goal"][0].split("{")[0]
        return goal.removeprefix(head) if goal.startswith(head) else ""

    # --- places --------------------------------------------------------------------------------

    def spot(self, place_id: str, name: str) -> Spot:
        """Return a place's name and phrases."""
        known = self._place(place_id)
        if known.at:
            return Spot(place_id, name, known.at, known.to or name, known.from_)
        if self.language == "ru":
            return Spot(place_id, name, f"в месте «{name}»", f"в место «{name}»", f"из места «{name}»")
        name = f"the {name[4:]}" if name.startswith("The ") else name
        return Spot(place_id, name, f"at {name}", f"to {name}", f"from {name}")

    def spots(self) -> tuple[Spot, ...]:
        """Return all places of the template."""
        return tuple(self.spot(one.id, one.name) for one in self.shape.places)

    def description(self, place_id: str) -> str:
        """Return a place's first description; empty if it is unknown."""
        return " ".join(self._place(place_id).description.split())

    def details(self, place_id: str) -> Sequence[str]:
        """Return what can be noticed in a place."""
        return self._place(place_id).details or self.grammar.rules["any_detail"]

    def alone(self, place_id: str) -> Sequence[str]:
        """Return what happens in a place while nobody is there."""
        return self._place(place_id).alone or self.grammar.rules["any_alone"]

    def sky(self, place_id: str, tick: int) -> Lists:
        """Return phrases for the time of day and the weather in a place."""
        rules, inside = self.grammar.rules, "_in" if self._place(place_id).indoors else ""
        sky = rules[f"sky{inside}_{(tick // 5 * 7 + tick // 11) % 5}"]
        return {"tod": rules[f"tod_{tick % 4}"], "sky": sky, "weather_bad": rules[f"weather_bad{inside}"]}

    def step(self, start: str, end: str) -> str:
        """Return the next place on the shortest path; empty if there is none."""
        return self._ways.get((start, end), "")

    @cached_property
    def _ways(self) -> Mapping[tuple[str, str], str]:
        exits, found = exits_of(self.shape) if self.shape.places else {}, {}
        for start in exits:
            seen, edge = {start}, [(one, one) for one in exits[start]]
            while edge:
                (here, first), edge = edge[0], edge[1:]
                if here not in seen:
                    seen.add(here)
                    found[start, here] = first
                    edge += [(one, first) for one in exits[here]]
        return found

    def _place(self, place_id: str) -> shapes.PlaceShape:
        return self._places.get(place_id, _NOWHERE)

    # --- things --------------------------------------------------------------------------------

    def known(self, thing_id: str) -> ObjectShape:
        """Return the template's object; for an unknown id one that is portable and has no stages."""
        return self._things.get(thing_id, _NOTHING)

    def thing(self, one: WorldObject) -> Form:
        """Return the name of an object of the facts."""
        known, name = self.known(one.id), one.name
        if known.name == name:
            return Form(known.cases or declined(name, self.language), known.gender)
        if self.language == "ru":
            return Form(tuple(f"{case} «{name}»" for case in ("вещь", "вещи", "вещи", "вещь", "вещью", "вещи")), "f")
        return Form((name,))

    def thing_by_id(self, thing_id: str) -> Form:
        """Return the name of an object of the template."""
        return self.thing(WorldObject(thing_id, self._things[thing_id].name))

    def stage(self, one: WorldObject) -> int:
        """Return the index of an object's stage."""
        stages = self.known(one.id).stages
        return stages.index(one.condition) if one.condition in stages else 0

    # --- stakes --------------------------------------------------------------------------------

    def stake(self, tick: int) -> StakeShape | None:
        """Return the stake of a tick."""
        stakes = self.shape.stakes
        return stakes[(tick - 1) // ARC % len(stakes)] if stakes else None

    def guest(self, tick: int) -> tuple[GuestShape | None, int]:
        """Return who comes by at a tick, and for how many ticks it has been here; None if there is nobody."""
        guests, phase = self.shape.guests, (tick - COMES) % VISITS
        if not guests or tick < COMES or phase > STAYS:
            return None, 0
        return guests[(tick - COMES) // VISITS % len(guests)], phase

    def stake_of(self, thing_id: str) -> StakeShape | None:
        """Return the stake of an object at any time; None if there is none."""
        return next((stake for stake in self.shape.stakes if stake.object == thing_id), None)


def phase_of(tick: int) -> int:
    """Return a tick's position in its arc, 0 to `ARC` - 1."""
    return (tick - 1) % ARC


def lore_of(facts: Facts, own: TemplateShape | None = None) -> Lore:
    """Return the knowledge of the world of facts, from its own or a bundled template."""
    if isinstance(facts, MemoryFacts):  # they lack the premise
        return _lore(facts.language, None, (facts.me.id, facts.me.name), own)
    return _lore(facts.language, facts.premise, None, own)


@lru_cache(maxsize=256)
def _lore(language: str, premise: str | None, me: tuple[str, str] | None, own: TemplateShape | None) -> Lore:
    known = (own,) if own is not None else bundled_templates()
    for shape in known:
        same = (language, premise) == (shape.world.language, " ".join(shape.world.about.split()))
        if same or any((one.id, one.name) == me for one in shape.characters):
            return Lore(grammar_of(language).with_rules(shape.words), language, shape)
    return Lore(grammar_of(language), language)


_ENDINGS = (
    ("(?:^|[гкхжшчщ])а", "и е у ой е"), ("а", "ы е у ой е"), ("ия", "и и ю ей и"), ("я", "и е ю ей е"),
    ("и[йь]", "я ю я ем и"), ("[йь]", "я ю я ем е"), ("[бвгджзклмнпрстфхцчшщ]", "а у а ом е"),
)  # fmt: skip
"""Ending of a Russian name -> endings of the other cases, which replace a final vowel, й or ь."""


def declined(name: str, language: str) -> tuple[str, ...]:
    """Return a name in its cases, for a Russian name by its ending if that is known."""
    if language == "ru" and " " not in name:
        for ends, cases in _ENDINGS:
            if re.search(f"{ends}$", name):
                stem = name[:-1] if name[-1] in "аяйь" else name
                return (name, *(stem + case for case in cases.split()))
    return (name,)

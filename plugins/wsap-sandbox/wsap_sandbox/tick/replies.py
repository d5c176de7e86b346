"""JSON Schemas of the replies in each phase, and a tolerant reader: unusable parts are left out and noted.

    intent   {"intention": str}
    scene    {"characters": {ID: {"order", "event", "outcome", "triggers", "unnoticed_by", "to",
                                  "state", "goal", "tried", "came_of_it", "interpretation"}},
              "objects": [{"id", "holder", "condition"}],
              "happenings": [str],
              "place": {"moment", "description", "cause"}}
    story    {"story": str}
    memory   {"summary": str}

In a scene, `event` says in the third person what the character did and how it ended; `order` and `triggers` (numbers
of the character's triggers) count from 1; `to` is an exit's id or `stay`; `state` and `goal` are the new internal state
and external intent; `tried`, `came_of_it` and `interpretation` are its memory, in the first person. `objects` lists
those that change; `holder` is `here` or the id of a character present. `happenings` are events without an actor, such
as a fire that burns down. `description` is empty unless the place itself has changed; then `cause` is the id of the
character who changed it, or `happening`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache

from wsap_core.protocol.values import JsonValue
from wsap_core.untrusted import sanitize, single_line
from wsap_llm.kit import find_object
from wsap_sandbox.languages import words_of
from wsap_sandbox.model import LANGUAGES, Degraded, Outcome, TickRecord
from wsap_sandbox.tick.facts import PHASES, Actor, Facts, SceneFacts

STAY = "stay"
HERE = "here"
NOBODY = "none"
HAPPENING = "happening"
OUTCOMES: tuple[Outcome, ...] = ("success", "partial", "failure")
INNER = ("state", "goal", "tried", "came_of_it", "interpretation")
"""Texts for the character alone."""
MOST_HAPPENINGS = 3

REASKED = frozenset({"unreadable", "missing", "doubled", "outcome", "language", "empty"})
"""Kinds of degraded results that cause the call to be repeated."""

ALARMING = 0.25
"""The share of calls without a usable result from which the tick's summary carries a warning."""

_LONGER = 4
"""How many times the limit a text may have before private passages are removed; it is cut afterwards."""

Schema = dict[str, JsonValue]

_TEXTS = {"intent": ("intention", 1), "story": ("story", 3), "memory": ("summary", 3)}
"""For phases with a single text: its key, and the factor of its maximum length."""


def schema_of(facts: Facts, limit: int) -> Schema:
    """Return the JSON Schema of the reply to facts, with texts of at most `limit` characters."""
    if not isinstance(facts, SceneFacts):
        key, times = _TEXTS[PHASES[type(facts)]]
        return _object({key: {"type": "string", "maxLength": times * limit}})
    text: Schema = {"type": "string", "maxLength": limit}
    present, things = facts.present, [thing.id for thing in facts.things]
    exits = [STAY, *(way.id for way in facts.place.exits)]
    characters = {}
    for actor in facts.actors:
        others = [one for one in present if one != actor.person.id]
        numbers: Schema = {"type": "integer", "minimum": 1, "maximum": max(1, len(actor.triggers))}
        characters[actor.person.id] = _object(
            {
                "order": {"type": "integer", "minimum": 1, "maximum": len(present)},
                "event": text,
                "outcome": _one_of(OUTCOMES),
                "triggers": _list(numbers, len(actor.triggers)),
                "unnoticed_by": _list(_one_of(others), len(others)),
                "to": _one_of(exits),
                **dict.fromkeys(INNER, text),
            }
        )
    thing = _object({"id": _one_of(things), "holder": _one_of([HERE, *present]), "condition": text})
    place = _object({"moment": text, "description": text, "cause": _one_of([NOBODY, HAPPENING, *present])})
    return _object(
        {
            "characters": _object(characters),
            "objects": _list(thing, len(things)),
            "happenings": _list(text, MOST_HAPPENINGS),
            "place": place,
        }
    )


def _object(properties: dict[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Schema, most: int) -> Schema:
    return {"type": "array", "items": items, "maxItems": most}


def _one_of(ids: Sequence[str]) -> Schema:
    return {"type": "string", "enum": list(ids) or [NOBODY]}


@dataclass(frozen=True, slots=True)
class Doing:
    """The game master's result for one character; unusable texts are empty."""

    order: int
    event: str = ""
    outcome: Outcome = "failure"
    triggers: tuple[str, ...] = ()
    unnoticed_by: tuple[str, ...] = ()
    to: str = ""
    """The id of the place it goes to; empty if it stays."""
    refused: bool = False
    """Whether no exit leads to its destination."""
    inner: Mapping[str, str] = field(default_factory=lambda: dict.fromkeys(INNER, ""))


@dataclass(frozen=True, slots=True)
class Handling:
    """The game master's result for one object."""

    id: str
    holder: str
    """`here` or the id of a character present."""
    condition: str
    """Empty if unchanged."""


@dataclass(frozen=True, slots=True)
class SceneReply:
    """A scene as the game master resolved it, without impossible parts."""

    characters: Mapping[str, Doing] = field(default_factory=dict)
    handlings: tuple[Handling, ...] = ()
    missed: tuple[str, ...] = ()
    """Ids of characters who were given an object that they can't have."""
    happenings: tuple[str, ...] = ()
    moment: str = ""
    description: str = ""
    """Empty if unchanged."""
    cause: str = ""
    """The id of the character who changed the description, or `happening`."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A parsed reply."""

    text: str = ""
    """The text of an intention, a story or a summary; empty if unusable."""
    scene: SceneReply = field(default_factory=SceneReply)
    degraded: tuple[Degraded, ...] = ()

    @property
    def worst(self) -> int:
        """The number of degraded results that justify repeating the call."""
        return sum(one.kind in REASKED for one in self.degraded)


def read(reply: str, facts: Facts, subject: str, *, text: int) -> Reading:
    """Return the parsed reply to facts about a subject; never raises.

    `text` is the maximum characters of a text; a scene's texts may be longer, since they are cut after filtering.
    """
    reader = _Reader(facts, subject, _LONGER * text if isinstance(facts, SceneFacts) else text)
    found = find_object(reply, schema_of(facts, text))
    if found is None:
        reader.note("unreadable")
        return Reading(degraded=reader.noted)
    if isinstance(facts, SceneFacts):
        return Reading(scene=reader.scene(found, facts), degraded=reader.noted)
    key, times = _TEXTS[reader.phase]
    return Reading(text=reader.text(found.get(key), key, times=times), degraded=reader.noted)


def unusable(record: TickRecord) -> int:
    """Return how many results of a tick were unusable, after repetition."""
    return len({(one.phase, one.subject) for one in record.degraded if one.kind in REASKED})


def alarming(record: TickRecord) -> bool:
    """Return whether the share of a tick's unusable results reaches `ALARMING`."""
    return unusable(record) >= ALARMING * record.calls > 0


class _Reader:
    def __init__(self, facts: Facts, subject: str, limit: int) -> None:
        self.phase = PHASES[type(facts)]
        self._subject, self._limit = subject, limit
        self._words = words_of(facts.language)
        self._noted: list[Degraded] = []

    @property
    def noted(self) -> tuple[Degraded, ...]:
        return tuple(dict.fromkeys(self._noted))

    def note(self, kind: str, subject: str = "", detail: object = "") -> None:
        self._noted.append(Degraded(self.phase, subject or self._subject, kind, single_line(detail)[:60]))

    def text(self, value: JsonValue, name: str, subject: str = "", *, times: int = 1, needed: bool = True) -> str:
        """The sanitized text; empty if it is not a text, has no letters, or is in another language."""
        text = sanitize(value, times * self._limit) if isinstance(value, str) else ""
        # Dots and a choice of outcomes are copied from the form that the reply was to have.
        if not any(map(str.isalnum, text)) or set(re.split(r"[\W_]+", text)) <= {"", *OUTCOMES}:
            if needed:
                self.note("empty", subject, name)
            elif value is not None and not isinstance(value, str):
                self.note("value", subject, f"{name}: {value}")
            return ""
        if not self._words.reads(text):
            self.note("language", subject, name)
            return ""
        return text

    def scene(self, found: Mapping[str, JsonValue], facts: SceneFacts) -> SceneReply:
        characters, repeated = _by_id(found.get("characters"), facts)
        place = _entries(found.get("place"))
        present = facts.present
        doings: dict[str, Doing] = {}
        for one in characters:
            if one not in present:
                self.note("unknown_id", detail=one)
        for actor in facts.actors:
            mine, entry = actor.person.id, characters.get(actor.person.id)
            if mine in repeated:
                self.note("doubled", mine)
            elif isinstance(entry, dict):
                doings[mine] = self._doing(entry, actor, facts)
            else:
                self.note("missing", mine)
        handlings, missed = self._handlings(found.get("objects"), facts)
        happenings = _items(found.get("happenings"))
        texts = [self.text(one, "happenings", needed=False) for one in happenings[:MOST_HAPPENINGS]]
        if len(happenings) > MOST_HAPPENINGS:
            self.note("value", detail=f"happenings: {len(happenings)}")
        description, moment = (self.text(place.get(key), key, needed=False) for key in ("description", "moment"))
        cause = _meant(place.get("cause"), (HAPPENING, *present)) or ""
        return SceneReply(doings, handlings, missed, tuple(filter(None, texts)), moment, description, cause)

    def _doing(self, entry: Mapping[str, JsonValue], actor: Actor, facts: SceneFacts) -> Doing:
        mine = actor.person.id
        others = [one for one in facts.present if one != mine]
        exits = [way.id for way in facts.place.exits]
        leaves = _meant(entry.get("to"), ("", STAY, facts.place.id, *exits))
        if leaves is None and isinstance(entry.get("to"), str):
            leaves = str(entry.get("to"))
        elif leaves is None and entry.get("to") is not None:
            self.note("value", mine, f"to: {entry.get('to')}")
        leaves = "" if leaves in (None, STAY, facts.place.id) else leaves
        refused = bool(leaves) and leaves not in exits
        if refused:
            self.note("impossible_place", mine, leaves)
        found = [self._number(one, len(actor.triggers), "triggers", mine) for one in _items(entry.get("triggers"))]
        numbers = {number for number in found if number}
        unnoticed = {_meant(one, others) or one for one in _items(entry.get("unnoticed_by")) if isinstance(one, str)}
        for one in _items(entry.get("unnoticed_by")):
            if _meant(one, others) is None:
                self.note("unknown_id", mine, one)
        most = len(facts.actors)
        order = self._number(entry.get("order"), most, "order", mine) if most > 1 else 1
        return Doing(
            order=order or most,
            event=self.text(entry.get("event"), "event", mine),
            outcome=self._outcome(entry.get("outcome"), mine),
            triggers=tuple(actor.triggers[n - 1] for n in sorted(numbers)),
            unnoticed_by=tuple(one for one in others if one in unnoticed),
            to="" if refused else leaves,
            refused=refused,
            inner={key: self.text(entry.get(key), key, mine, needed=key not in ("state", "goal")) for key in INNER},
        )

    def _outcome(self, value: JsonValue, subject: str) -> Outcome:
        """The outcome that a value means; noted if it means none for certain."""
        meant = outcome_of(value) if isinstance(value, str) else None
        if meant is None:
            self.note("outcome", subject, "" if value is None else value)
        return meant or "failure"

    def _number(self, value: JsonValue, most: int, name: str, subject: str) -> int:
        """A whole number from 1 to `most`, also written in digits; 0, and noted, for any other value."""
        number = int(value) if isinstance(value, str) and re.fullmatch(r"\s*\d{1,4}\s*", value) else value
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        if type(number) is int and 1 <= number <= most:
            return number
        self.note("value", subject, f"{name}: {value}")
        return 0

    def _handlings(self, value: JsonValue, facts: SceneFacts) -> tuple[tuple[Handling, ...], tuple[str, ...]]:
        present, things = facts.present, [thing.id for thing in facts.things]
        entries = [one for one in _items(value) if isinstance(one, dict)]
        named = [_meant(one.get("id"), things) for one in entries]
        kept: list[Handling] = []
        missed: list[str] = []
        for entry, thing in zip(entries, named, strict=True):
            holder = _meant(entry.get("holder"), (HERE, *present)) or ""
            known = thing is not None and bool(holder)
            if thing is not None and holder and named.count(thing) == 1:
                kept.append(Handling(thing, holder, self.text(entry.get("condition"), "condition", needed=False)))
            else:
                self.note("doubled" if known else "unknown_id", detail=f"{entry.get('id')} -> {entry.get('holder')}")
                missed += [holder] if holder in present else []
        return tuple(kept), tuple(dict.fromkeys(missed))


def _by_id(value: JsonValue, facts: SceneFacts) -> tuple[dict[str, JsonValue], Set[str]]:
    """The entries of characters by id, also from a list or by names, and the ids that have several."""
    if isinstance(value, list):
        entries = [one for one in value if isinstance(one, dict)]
        pairs = [(next((one[key] for key in _NAMED if key in one), ""), one) for one in entries]
    else:
        pairs = list(_entries(value).items())
    ids: dict[str, set[str]] = {}
    for actor in facts.actors:
        for known in (actor.person.id, actor.person.name):
            ids.setdefault(known.casefold(), set()).add(actor.person.id)

    def meant(said: object) -> str:
        one = str(said).strip()
        named = ids.get(one.casefold(), set())
        return one if one in facts.present or len(named) != 1 else next(iter(named))

    repeated = set(map(meant, getattr(value, "repeated", ())))
    found: dict[str, JsonValue] = {}
    for said, entry in pairs:
        one = meant(said)
        if one in found and found[one] != entry:
            repeated.add(one)
        found[one] = entry
    return found, repeated


_NAMED = ("id", "character", "name")
"""Keys that name the character in an entry of a list."""


def _meant(value: JsonValue, known: Sequence[str]) -> str | None:
    """Return the known word that a value means for certain: itself, or the only one that differs in case or quotes."""
    if not isinstance(value, str):
        return None
    if value in known:
        return value
    plain = value.strip(" \t\r\n.,;:!\"'`«»").casefold()
    alike = {one for one in known if one and one.casefold() == plain}
    return alike.pop() if len(alike) == 1 else None


_SEVERAL = re.compile(r"[|/\\]|\.\.\.")
"""Separates outcomes that are copied from the form of the reply."""


def outcome_of(said: str) -> Outcome | None:
    """Return the outcome that a text means for certain, in any of the languages; None if it does not say one."""
    table, words = _outcome_words(), re.findall(r"[^\W\d_]+", said.casefold())
    meant = [table.get(word) for word in words]
    if not meant or None in meant or _SEVERAL.search(said):
        return None
    kinds = {kind for kind in meant if kind != "filler"}
    if len(kinds) == 2 and "partial" in kinds:
        kinds = {"partial"}  # a partial success, or a partial failure
    return next((known for known in OUTCOMES if kinds == {known}), None)


@cache
def _outcome_words() -> Mapping[str, str]:
    tables = (words_of(code).outcomes for code in LANGUAGES)
    return {word: kind for table in tables for kind, words in table.items() for word in words}


def _entries(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _items(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []

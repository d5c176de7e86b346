"""What a model is asked to reply with in each phase: JSON Schemas with the ids of the scene listed out.

    intent   {"intention": str}
    scene    {"characters": {ID: {"order", "event", "outcome", "triggers", "unnoticed_by", "to",
                                  "state", "goal", "tried", "came_of_it", "interpretation"}},
              "objects": [{"id", "holder", "condition"}],
              "happenings": [str],
              "place": {"moment", "description", "cause"}}
    story    {"story": str}
    memory   {"summary": str}

In a scene, `event` says in the third person what the character did and what came of it, `order` when, from 1;
`triggers` are numbers of the character's triggers, from 1; `to` is an exit's id or `stay`. `state` and `goal` are the
new internal state and external intent. `tried`, `came_of_it` and `interpretation` are its memory, in the first person.
An object's `holder` is `here` or the id of somebody present; only objects that change are listed. `happenings` are
events without an actor, such as a fire that burns down. `description` is empty unless the place itself has changed;
then `cause` is the id of whoever changed it, or `happening`.
"""

from __future__ import annotations

from collections.abc import Sequence

from wsap_core.protocol.values import JsonValue
from wsap_sandbox.model import Outcome
from wsap_sandbox.tick.facts import Facts, IntentFacts, MemoryFacts, SceneFacts, StoryFacts

STAY = "stay"
HERE = "here"
NOBODY = "none"
HAPPENING = "happening"
OUTCOMES: tuple[Outcome, ...] = ("success", "partial", "failure")
INNER = ("state", "goal", "tried", "came_of_it", "interpretation")
"""What only the character itself gets to know."""
MOST_HAPPENINGS = 3

Schema = dict[str, JsonValue]


def schema_of(facts: Facts, limit: int) -> Schema:
    """Return the JSON Schema of the reply to facts; a text has at most `limit` characters."""
    text: Schema = {"type": "string", "maxLength": limit}
    match facts:
        case IntentFacts():
            return _object({"intention": text})
        case StoryFacts():
            return _object({"story": {"type": "string", "maxLength": 3 * limit}})
        case MemoryFacts():
            return _object({"summary": {"type": "string", "maxLength": 3 * limit}})
        case SceneFacts():
            return _scene(facts, text)


def _scene(facts: SceneFacts, text: Schema) -> Schema:
    present = [actor.person.id for actor in facts.actors]
    exits = [STAY, *(way.id for way in facts.place.exits)]
    things = [thing.id for thing in facts.place.objects]
    things += [thing.id for actor in facts.actors for thing in actor.inventory]
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

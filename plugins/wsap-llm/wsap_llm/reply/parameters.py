"""Parameters as a model gave them, brought into the form that was declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wsap_core.protocol import ActionDef, ParamDef
from wsap_core.protocol.values import JsonValue, same_json
from wsap_core.worlds.legality import check_parameters
from wsap_llm.reply.choices import LegalChoices, joined, names_of, split_words
from wsap_llm.reply.repair import JsonObject, Truncated, Unreadable, bare_value, read_loose
from wsap_llm.reply.shapes import REASON_WORDS

_NOTHING = frozenset({"", "none", "null", "na", "nil", "empty", "noparams", "noparameters", "undefined"})
# What models put beside or among parameters, and what never is one unless it is declared.
REMARKS = frozenset({
    *REASON_WORDS,
    *("comment", "description", "confidence", "note", "notes", "id", "type", "step", "goal", "plan"),
    *("expectedoutcome", "nextstep", "nextsteps", "observation", "status", "state", "priority", "calltype", "role"),
})  # fmt: skip


@dataclass(frozen=True)
class Settled:
    """Parameters in declared form, or why they can't be brought into it."""

    values: dict[str, JsonValue]
    reason: str = ""
    """What is wrong; empty when nothing is."""
    repaired: bool = False
    """True if they were not given just so."""


def settle(definition: ActionDef, given: JsonValue, choices: LegalChoices) -> Settled:
    """Return the parameters that a model meant by what stood in their place.

    `choices` is everything that could have been meant, to tell a contradiction from a superfluity.
    """
    broken_off = _broken_off(given)
    given = _as_mapping(definition, given)
    if given is None:
        return Settled({}, f"The parameters of {definition.name} could not be read.")
    if isinstance(given, JsonObject) and given.repeated & {p.name for p in definition.parameters}:
        return Settled({}, f"A parameter of {definition.name} was given twice, with different values.")
    if broken_off and definition.parameters and not _complete(definition, given):
        return Settled({}, f"The parameters of {definition.name} broke off before their end.")
    given = {
        key: value for key, value in given.items() if not (isinstance(value, Truncated) and not definition.parameters)
    }
    values, reason = check_parameters(definition, given)
    if not reason:
        return Settled(values, repaired=not same_json(values, dict(given)))
    return _mend(definition, given, choices)


def _broken_off(given: JsonValue) -> bool:
    if isinstance(given, Truncated) or (isinstance(given, JsonObject) and given.cut):
        return True
    if isinstance(given, Mapping):
        return any(map(_broken_off, given.values()))
    return isinstance(given, list) and any(map(_broken_off, given))


def _complete(definition: ActionDef, given: Mapping[str, JsonValue]) -> bool:
    """Whether nothing can be missing although the reply broke off."""
    return all(p.name in given and not _broken_off(given[p.name]) for p in definition.parameters)


def _as_mapping(definition: ActionDef, given: JsonValue) -> Mapping[str, JsonValue] | None:
    if isinstance(given, Mapping):
        return given
    if given is None or (isinstance(given, str) and joined(given) in _NOTHING):
        return {}
    if isinstance(given, str) and given.lstrip().startswith("{"):
        try:
            given = read_loose(given.strip())
        except Unreadable:
            return None
        return given if isinstance(given, Mapping) else None
    if isinstance(given, bool) and not definition.parameters:
        return {}
    # Positions count only for what must be given, unless that is nothing.
    places = [p for p in definition.parameters if not p.optional] or list(definition.parameters)
    values = given if isinstance(given, list) else [given]
    if len(values) > len(places):
        places = list(definition.parameters)
    if values and all(isinstance(v, Mapping) and {"name", "value"} <= v.keys() for v in values):
        return JsonObject([(str(v["name"]), v["value"]) for v in values])
    if len(values) == 1 and isinstance(values[0], Mapping):
        return values[0]
    if not places:
        return {f"value{i}": value for i, value in enumerate(values)}
    if len(values) > len(places) or (len(places) > 1 and not isinstance(given, list)):
        return None
    return {place.name: value for place, value in zip(places, values, strict=False)}


def _mend(definition: ActionDef, given: Mapping[str, JsonValue], choices: LegalChoices) -> Settled:
    own = names_of(tuple(p.name for p in definition.parameters))
    kept: dict[str, JsonValue] = {}
    left: dict[str, JsonValue] = {}
    for key, value in given.items():
        name = own.resolve(key)
        if name is None or (name != key and name in given) or name in kept:
            left[key] = value
        else:
            kept[name] = value
    missing = [p for p in definition.parameters if not p.optional and p.name not in kept]
    candidates = [key for key in left if joined(key) not in REMARKS]
    if len(missing) == 1 and len(candidates) == 1:
        kept[missing[0].name] = left.pop(candidates[0])
    values = {p.name: _value(kept[p.name], p) for p in definition.parameters if p.name in kept}
    accepted, reason = check_parameters(definition, values)
    if reason:
        return Settled({}, reason)
    for key, value in left.items():
        if contradiction := _contradiction(definition, key, value, choices):
            return Settled({}, contradiction)
    return Settled(accepted, repaired=True)


def _contradiction(definition: ActionDef, key: str, value: JsonValue, choices: LegalChoices) -> str:
    """Return why something superfluous can't be left out: it speaks of another action than the one named.

    `move_left` with `{"direction": "right"}` is a contradiction where there is a `move_right`.
    """
    if joined(key) in REMARKS or not isinstance(value, str) or len(value) > 60:
        return ""
    own = set(split_words(definition.name))
    others = {word for name, words in choices.names.words.items() if name != definition.name for word in words}
    if (set(split_words(value)) & others) - own:
        return f"{definition.name} takes no {key!r}, and {value!r} there speaks of another action."
    return ""


def _value(value: JsonValue, parameter: ParamDef) -> JsonValue:
    """Return a value in the type that the parameter asks for, where it is only written otherwise."""
    if isinstance(value, Truncated):
        return value
    if isinstance(value, list) and len(value) == 1 and parameter.json_schema().get("type") != "array":
        value = value[0]
    if (choices := parameter.choices()) is not None and isinstance(value, str):
        return names_of(choices).resolve(value) or value
    kind = parameter.json_schema().get("type")
    if isinstance(value, str) and isinstance(kind, str) and kind in _READ_AS:
        read = _read(value)
        return (
            read if isinstance(read, _READ_AS[kind]) and not (kind != "boolean" and isinstance(read, bool)) else value
        )
    if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


_READ_AS: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def _read(text: str) -> JsonValue:
    text = text.strip()
    if not text.startswith(("{", "[")):
        return bare_value(text)
    try:
        return read_loose(text)
    except Unreadable:
        return text

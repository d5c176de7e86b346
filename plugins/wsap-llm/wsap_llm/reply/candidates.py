"""One action in a reply with its parameters in declared form, and the result of parsing a reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from wsap_core.protocol import Action, ActionDef, ParamDef
from wsap_core.protocol.values import JsonValue
from wsap_core.worlds.legality import check_action, check_parameters
from wsap_llm.reply.choices import LegalChoices, joined, names_of, split_words
from wsap_llm.reply.json_text.repair import JsonObject, Truncated, bare_value, read_loose
from wsap_llm.reply.shapes import REASON_WORDS
from wsap_llm.reply.steps import NOTHING_SAID, Steps

_NOTHING = frozenset({"", "none", "null", "na", "nil", "empty", "noparams", "noparameters", "undefined"})
# Keys that models add to parameters; not parameters unless declared.
REMARKS = frozenset({
    *REASON_WORDS,
    *("comment", "description", "confidence", "note", "notes", "id", "type", "step", "goal", "plan"),
    *("expectedoutcome", "nextstep", "nextsteps", "observation", "status", "state", "priority", "calltype", "role"),
})  # fmt: skip


@dataclass(frozen=True)
class ToolCall:
    """A tool call by the model, before it acts."""

    name: str
    """The tool's declared name."""
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    """Values by parameter name, in declared form."""
    reasoning: str | None = None


@dataclass(frozen=True)
class Understood:
    """The only action or tool call in a reply, legal and with valid parameters."""

    choice: Action | ToolCall
    repaired: bool = False
    """Whether the reply differed from the requested format, one JSON object with a declared name and valid
    parameters."""
    how: str = "as asked"
    """How it was found: "as asked", "JSON in text", "mended JSON", "tags", "label" or "name alone"."""
    steps: Steps = NOTHING_SAID
    """The number of steps in the reply, if any."""


@dataclass(frozen=True)
class NotUnderstood:
    """The reply contains no action, several actions, or an action that can't be taken."""

    reason: str
    """One sentence for the model when it is asked again."""


Reading = Understood | NotUnderstood
"""The result of `read_reply`."""


@dataclass(frozen=True)
class Candidate:
    """A part of a reply that asks for one action or tool, legal or not."""

    name: str
    """The declared name; if there is none, the name in the reply."""
    values: dict[str, JsonValue] = field(default_factory=dict)
    reason: str = ""
    """Why it can't be taken; empty if it can."""
    reasoning: str | None = None
    how: str = "JSON in text"
    start: int = 0
    end: int = 0

    def at(self, start: int, end: int, how: str) -> Candidate:
        """Return the candidate with its position in the reply and how it was found."""
        return replace(self, start=start, end=end, how=how)

    @property
    def meaning(self) -> tuple[str, str]:
        """A value that is equal for equivalent candidates."""
        return (self.name, "" if self.reason else repr(sorted(self.values.items())))


def candidate(name: str, given: JsonValue, choices: LegalChoices, reasoning: str | None = None) -> Candidate:
    """Return the candidate for a known name and its unchecked parameters."""
    definition = choices.definition(name)
    if definition is None:
        return refuse(name, f"{name} is not possible now.", reasoning)
    return replace(_settled(definition, given, choices), reasoning=reasoning)


def refuse(name: str, reason: str, reasoning: str | None = None) -> Candidate:
    """Return a candidate that can't be taken."""
    return Candidate(name[:80], reason=reason, reasoning=reasoning)


def unknown(said: str, choices: LegalChoices, reasoning: str | None = None) -> Candidate:
    """Return a candidate with an unknown name."""
    return refuse(said, check_action(Action(said[:80]), choices.actions)[1], reasoning)


def _settled(definition: ActionDef, given: JsonValue, choices: LegalChoices) -> Candidate:
    broken_off = _broken_off(given)
    given = _as_mapping(definition, given)
    if given is None:
        return refuse(definition.name, f"The parameters of {definition.name} could not be read.")
    if isinstance(given, JsonObject) and given.repeated & {p.name for p in definition.parameters}:
        return refuse(definition.name, f"A parameter of {definition.name} was given twice, with different values.")
    if broken_off and definition.parameters and not _complete(definition, given):
        return refuse(definition.name, f"The parameters of {definition.name} broke off before their end.")
    given = {
        key: value for key, value in given.items() if not (isinstance(value, Truncated) and not definition.parameters)
    }
    values, reason = check_parameters(definition, given)
    return _mend(definition, given, choices) if reason else Candidate(definition.name, values)


def _broken_off(given: JsonValue) -> bool:
    if isinstance(given, Truncated) or (isinstance(given, JsonObject) and given.cut):
        return True
    if isinstance(given, Mapping):
        return any(map(_broken_off, given.values()))
    return isinstance(given, list) and any(map(_broken_off, given))


def _complete(definition: ActionDef, given: Mapping[str, JsonValue]) -> bool:
    return all(p.name in given and not _broken_off(given[p.name]) for p in definition.parameters)


def _as_mapping(definition: ActionDef, given: JsonValue) -> Mapping[str, JsonValue] | None:
    if isinstance(given, Mapping):
        return given
    if given is None or (isinstance(given, str) and joined(given) in _NOTHING):
        return {}
    if isinstance(given, str) and given.lstrip().startswith("{"):
        given = read_loose(given.strip())
        return given if isinstance(given, Mapping) else None
    if isinstance(given, bool) and not definition.parameters:
        return {}
    # Positional values are for required parameters, or for all if none is required.
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


def _mend(definition: ActionDef, given: Mapping[str, JsonValue], choices: LegalChoices) -> Candidate:
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
        return refuse(definition.name, reason)
    for key, value in left.items():
        if contradiction := _contradiction(definition, key, value, choices):
            return refuse(definition.name, contradiction)
    return Candidate(definition.name, accepted)


def _contradiction(definition: ActionDef, key: str, value: JsonValue, choices: LegalChoices) -> str:
    """Return why an unknown parameter can't be ignored: it refers to another action, as in `move_left` with
    `{"direction": "right"}` if there is a `move_right`."""
    if joined(key) in REMARKS or not isinstance(value, str) or len(value) > 60:
        return ""
    own = set(split_words(definition.name))
    others = {word for name, words in choices.names.words.items() if name != definition.name for word in words}
    if (set(split_words(value)) & others) - own:
        return f"{definition.name} takes no {key!r}, and {value!r} there speaks of another action."
    return ""


def _value(value: JsonValue, parameter: ParamDef) -> JsonValue:
    """Return a value in the parameter's type if only its notation differs."""
    if isinstance(value, Truncated):
        return value
    if isinstance(value, list) and len(value) == 1 and parameter.json_schema().get("type") != "array":
        value = value[0]
    if (choices := parameter.choices()) is not None and isinstance(value, str):
        return names_of(choices).resolve(value) or value
    kind = parameter.json_schema().get("type")
    if isinstance(value, str) and isinstance(kind, str) and kind in _READ_AS:
        text = value.strip()
        read = read_loose(text) if text.startswith(("{", "[")) else bare_value(text)
        return read if isinstance(read, _READ_AS[kind]) and isinstance(read, bool) == (kind == "boolean") else value
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

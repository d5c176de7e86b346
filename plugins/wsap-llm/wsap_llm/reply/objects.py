"""The actions in a JSON value of any shape that models use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from wsap_core.protocol.values import JsonValue
from wsap_llm.reply.calls import read_call
from wsap_llm.reply.candidates import REMARKS, Candidate, candidate, refuse, unknown
from wsap_llm.reply.choices import LegalChoices, joined
from wsap_llm.reply.json_text.repair import JsonObject, Truncated
from wsap_llm.reply.shapes import ACTION_WORDS, ANSWER_WORDS, PARAMETER_WORDS, PLACEHOLDERS, REASON_WORDS

# Keys, without case and separators, in order of weight.
_NAME_KEYS = (
    *("action", "actionname", "actiontype", "tool", "toolname", "function", "functionname"),
    *(word for word in ACTION_WORDS if word not in ("action", "move", "act")),
)
_WEAK_NAME_KEYS = (
    *("name", "type", "method", "command", "cmd", "move", "choice", "decision", "answer", "act", "operation", "op"),
    *("nextaction", "finalaction", "chosenaction", "selectedaction", "selected", "chosen", "bestaction", "nextmove"),
    *("finalanswer", "response", "output", "result", "value", "const", "recipientname", *ANSWER_WORDS),
)
_WRAPPERS = (
    *("toolcall", "toolcalls", "functioncall", "functioncalls", "function", "call", "actions", "response", "reply"),
    *("output", "result", "answer", "decision", "json", "data", "final", "finalanswer", "properties", "object"),
    *("nextaction", "chosenaction", "selectedaction", "message", "content", "tooluses", "calls", "choice"),
)
_PARAMETER_KEYS = (
    *(*PARAMETER_WORDS, "param", "argument", "arg"),
    *("actioninput", "actionparams", "actionparameters", "actionargs", "actionarguments", "toolinput", "toolargs"),
    *("toolparams", "toolparameters", "functionargs", "kwargs", "options", "payload"),
)
_DEFINITION_KEYS = {"description", "preconditions", "category", "required"}


def candidates_in(value: JsonValue, choices: LegalChoices, depth: int = 0) -> list[Candidate]:
    """Return the candidates in a JSON value."""
    if depth > 6:
        return []
    if isinstance(value, Mapping):
        return _Object(value, choices, depth).candidates()
    if not isinstance(value, list):
        return []
    if value and all(isinstance(item, str) for item in value):
        met = [choices.names.resolve(item) for item in value]
        return [candidate(name, {}, choices) for name in met if name] if all(met) else []
    return [found for item in value for found in candidates_in(item, choices, depth + 1)]


class _Object:
    """One JSON object, whose keys are matched without case and separators."""

    def __init__(self, value: Mapping[str, JsonValue], choices: LegalChoices, depth: int) -> None:
        self._value = value
        self._choices = choices
        self._depth = depth
        self._keys: dict[str, str] = {}
        for key in value:
            self._keys.setdefault(joined(key), key)
        self._reasoning = next((str(text) for key in REASON_WORDS if isinstance(text := self._get(key), str)), None)

    def candidates(self) -> list[Candidate]:
        if self._is_definition():
            return []
        named = [key for key in _NAME_KEYS if not self._empty(self._get(key))]
        # A tool beside an action, or an action in another language, is a second candidate; `action_type` is not.
        second = ("tool", "function", *ACTION_WORDS)
        named = [k for k in named if k == named[0] or k.removesuffix("name") in second]
        if named:
            return [found for key in named for found in self._named(key)]
        for key in _WEAK_NAME_KEYS:
            if isinstance(said := self._get(key), str) and (found := self._weakly(key, said)):
                return [found]
        for key in _WRAPPERS:
            if inner := candidates_in(self._get(key), self._choices, self._depth + 1):
                return [self._with_reasoning(c) for c in inner]
        return self._by_key()

    def _get(self, key: str) -> JsonValue:
        return self._value[self._keys[key]] if key in self._keys else None

    def _is_definition(self) -> bool:
        """Return whether the object repeats the definition of an action or of the reply."""
        keys = self._keys.keys()
        if "name" in keys and _DEFINITION_KEYS & keys and not {"reasoning", "thought", "arguments"} & keys:
            return True
        parts = self._value.get("properties")
        return isinstance(parts, Mapping) and any(isinstance(p, Mapping) and "type" in p for p in parts.values())

    def _empty(self, value: JsonValue) -> bool:
        if isinstance(value, str):
            return joined(value) in PLACEHOLDERS and self._choices.names.resolve(value) is None
        return value is None or value == {} or value == []

    def _named(self, key: str) -> list[Candidate]:
        said = self._get(key)
        if isinstance(self._value, JsonObject) and self._keys[key] in self._value.repeated:
            return [refuse(str(said), f"{self._keys[key]!r} was given twice, with different values.")]
        if isinstance(said, str) or (self._choices.numbered and type(said) is int):
            return [self._one(said if isinstance(said, str) else str(said), key)]
        if isinstance(said, list):
            return [
                found
                for item in said
                for found in (
                    [self._one(item, key)]
                    if isinstance(item, str)
                    else candidates_in(item, self._choices, self._depth + 1)
                )
            ]
        if isinstance(said, Mapping):
            outer = self._given()
            inner = candidates_in(said, self._choices, self._depth + 1)
            if outer and len(inner) == 1 and not inner[0].values:
                inner = [candidate(inner[0].name, outer, self._choices, inner[0].reasoning)]
            return [self._with_reasoning(c) for c in inner] or [refuse(key, f"{self._keys[key]!r} names no action.")]
        return [refuse(str(said), f"{self._keys[key]!r} must be the name of an action, not {str(said)[:40]}.")]

    def _weakly(self, key: str, said: str) -> Candidate | None:
        """Read a key such as `name`, which counts only if its value is known or the object has parameters."""
        if self._empty(said):
            return None
        if self._choices.names.resolve(said) is None and read_call(said, self._choices, marked=True) is None:
            with_parameters = {"arguments", "args", "params", "parameters"} & self._keys.keys()
            return unknown(said, self._choices) if with_parameters and key == "name" else None
        return self._one(said, key)

    def _one(self, said: str, key: str) -> Candidate:
        given = self._given()
        if isinstance(said, Truncated):
            return self._broken_name(said, given)
        name, called = self._choices.names.resolve(said), None
        if name is None:
            if (call := read_call(said, self._choices, marked=True)) is None:
                return unknown(said, self._choices, self._reasoning)
            name, called = call.name, call.given
        definition = self._choices.definition(name)
        if definition is not None:
            given = self._inline(key, given, {p.name for p in definition.parameters})
        made = candidate(name, given or called or {}, self._choices, self._reasoning)
        if given and called:
            other = candidate(name, called, self._choices)
            if not other.reason and other.meaning != made.meaning:
                return refuse(name, f"{name} was given different parameters in two places.", self._reasoning)
        return made

    def _broken_name(self, said: Truncated, given: JsonValue) -> Candidate:
        """Read a name without its closing quote: complete only if no other name starts with it and it has no
        parameters."""
        definition = self._choices.definition(said)
        longer = [name for name in self._choices.names.words if name.startswith(said) and name != said]
        if definition is None or longer or definition.parameters:
            return refuse(said, "The reply broke off before the action was complete.", self._reasoning)
        return candidate(said, given, self._choices, self._reasoning)

    def _given(self) -> JsonValue:
        return next((v for key in _PARAMETER_KEYS if (v := self._get(key)) not in (None, "", {}, [])), {})

    def _inline(self, named_by: str, given: JsonValue, own: set[str]) -> JsonValue:
        """Add parameters that are beside the name rather than in a separate object."""
        if given and not isinstance(given, Mapping):
            return given
        wanted = {joined(name): name for name in own}
        beside = {
            wanted[key]: self._value[original]
            for key, original in self._keys.items()
            if key in wanted and key not in (named_by, *_PARAMETER_KEYS, *REASON_WORDS) and wanted[key] not in given
        }
        if not own <= {*beside, *given}:
            # With other names: {"action": "say", "message": "hello"}. Unknown ones are removed later.
            reserved = {*REMARKS, *REASON_WORDS, *_PARAMETER_KEYS, *_NAME_KEYS, named_by, *wanted}
            spare = {original: self._value[original] for key, original in self._keys.items() if key not in reserved}
            beside |= {key: spared for key, spared in spare.items() if isinstance(spared, str | int | float)}
        if not beside:
            return given
        merged = JsonObject([*given.items(), *beside.items()])
        merged.cut = isinstance(given, JsonObject) and given.cut
        return merged

    def _by_key(self) -> list[Candidate]:
        """Read names as keys: {"move": {"direction": "north"}}, {"noop": true}."""
        named = {
            key: self._choices.names.resolve(key, exactly=True) for key in self._value if joined(key) not in REMARKS
        }
        if not named or not all(named.values()):
            return []
        flags = all(isinstance(self._value[key], bool) for key in named)
        return [
            candidate(name, {} if flags else self._value[key], self._choices, self._reasoning)
            for key, name in named.items()
            if name and (not flags or self._value[key])
        ]

    def _with_reasoning(self, found: Candidate) -> Candidate:
        return found if found.reasoning else replace(found, reasoning=self._reasoning)

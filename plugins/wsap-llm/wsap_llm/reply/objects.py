"""What a JSON value asks for, in whatever shape a model gave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wsap_core.protocol import Action
from wsap_core.worlds.legality import check_action
from wsap_llm.reply.calls import read_call
from wsap_llm.reply.candidates import Candidate, claim, refuse
from wsap_llm.reply.choices import LegalChoices
from wsap_llm.reply.parameters import REMARKS
from wsap_llm.reply.repair import JsonObject, Truncated
from wsap_llm.reply.words import joined, split_words

# Keys, without case and separators, in order of weight.
_NAME_KEYS = ("action", "actionname", "actiontype", "tool", "toolname", "function", "functionname")
_WEAK_NAME_KEYS = (
    *("name", "type", "method", "command", "cmd", "move", "choice", "decision", "answer", "act", "operation", "op"),
    *("nextaction", "finalaction", "chosenaction", "selectedaction", "selected", "chosen", "bestaction", "nextmove"),
    *("finalanswer", "response", "output", "result", "value", "const", "recipientname"),
)
_WRAPPERS = (
    *("toolcall", "toolcalls", "functioncall", "functioncalls", "function", "call", "actions", "response", "reply"),
    *("output", "result", "answer", "decision", "json", "data", "final", "finalanswer", "properties", "object"),
    *("nextaction", "chosenaction", "selectedaction", "message", "content", "tooluses", "calls", "choice"),
)
_PARAMETER_KEYS = (
    *("params", "parameters", "arguments", "args", "param", "parameter", "argument", "arg", "input", "inputs"),
    *("actioninput", "actionparams", "actionparameters", "actionargs", "actionarguments", "toolinput", "toolargs"),
    *("toolparams", "toolparameters", "functionargs", "kwargs", "options", "payload"),
)
_REASONS = ("reasoning", "reason", "thought", "thoughts", "rationale", "explanation", "why", "analysis", "thinking")
_DEFINITION_KEYS = {"description", "preconditions", "category", "required"}
# What stands in examples of the format where the name belongs.
PLACEHOLDERS = frozenset({
    *("name", "actionname", "youraction", "string", "action", "theaction", "nameofaction", "nameoftheaction", "xxx"),
    *("actionnamehere", "chosenaction", "insertaction", "toolname", "nameoftool", "none", "null", "na", "tool", ""),
    *("actionyouchoose", "youractionhere", "functionname", "oneoftheactions", "anyaction"),
})  # fmt: skip


def claims_in(value: Any, offer: LegalChoices, depth: int = 0) -> list[Candidate]:
    """Return what a JSON value asks for: nothing if it speaks of something else, several if it lists them."""
    if depth > 6:
        return []
    if isinstance(value, list):
        return _listed(value, offer, depth)
    if isinstance(value, Mapping):
        return _object(value, offer, depth)
    return []


def _listed(items: list[Any], offer: LegalChoices, depth: int) -> list[Candidate]:
    if items and all(isinstance(item, str) for item in items):
        met = [offer.names.resolve(item) for item in items]
        return [claim(name, {}, offer) for name in met if name] if all(met) else []
    return [found for item in items for found in claims_in(item, offer, depth + 1)]


def _object(value: Mapping[str, Any], offer: LegalChoices, depth: int) -> list[Candidate]:
    keys: dict[str, str] = {}
    for key in value:
        keys.setdefault(joined(key), key)
    if _is_definition(value, keys):
        return []
    named = [key for key in _NAME_KEYS if key in keys and not _empty(value[keys[key]], offer)]
    # A tool beside an action is a second thing, `action_type` beside `action` is not.
    named = [k for k in named if k == named[0] or k.removesuffix("name") in ("tool", "function")]
    if named:
        return [found for key in named for found in _named(value, keys, key, offer, depth)]
    for key in _WEAK_NAME_KEYS:
        if key in keys and isinstance(value[keys[key]], str) and (found := _weakly(value, keys, key, offer)):
            return [found]
    for key in _WRAPPERS:
        if key in keys and isinstance(value[keys[key]], Mapping | list):
            inner = claims_in(value[keys[key]], offer, depth + 1)
            if inner:
                return [_with_reasoning(c, value, keys) for c in inner]
    return _by_key(value, offer)


def _is_definition(value: Mapping[str, Any], keys: Mapping[str, str]) -> bool:
    """Whether it is the definition of an action, or of the reply, echoed back."""
    if "name" in keys and _DEFINITION_KEYS & keys.keys() and not {"reasoning", "thought", "arguments"} & keys.keys():
        return True
    properties = value.get("properties")
    return isinstance(properties, Mapping) and any(isinstance(p, Mapping) and "type" in p for p in properties.values())


def _empty(value: Any, offer: LegalChoices) -> bool:
    if isinstance(value, str):
        return joined(value) in PLACEHOLDERS and offer.names.resolve(value) is None
    return value is None or value == {} or value == []


def _named(
    value: Mapping[str, Any], keys: Mapping[str, str], key: str, offer: LegalChoices, depth: int
) -> list[Candidate]:
    said = value[keys[key]]
    if isinstance(value, JsonObject) and keys[key] in value.repeated:
        return [refuse(str(said), f"{keys[key]!r} was given twice, with different values.")]
    if isinstance(said, str):
        return [_one(said, value, keys, key, offer)]
    if isinstance(said, list):
        return [
            found
            for item in said
            for found in (
                [_one(item, value, keys, key, offer)] if isinstance(item, str) else claims_in(item, offer, depth + 1)
            )
        ]
    if isinstance(said, Mapping):
        outer = _given(value, keys)
        inner = claims_in(said, offer, depth + 1)
        if outer and len(inner) == 1 and not inner[0].values:
            inner = [claim(inner[0].name, outer, offer, inner[0].reasoning)]
        return [_with_reasoning(c, value, keys) for c in inner] or [refuse(key, f"{keys[key]!r} names no action.")]
    return [refuse(str(said), f"{keys[key]!r} must be the name of an action, not {str(said)[:40]}.")]


def _weakly(value: Mapping[str, Any], keys: Mapping[str, str], key: str, offer: LegalChoices) -> Candidate | None:
    """A key such as `name` makes a claim only if its value is known, or parameters stand beside it."""
    said = value[keys[key]]
    if _empty(said, offer):
        return None
    if offer.names.resolve(said) is None and read_call(said, offer) is None:
        with_parameters = any(k in keys for k in ("arguments", "args", "params", "parameters"))
        return refuse(said, _unknown(said, offer)) if with_parameters and key == "name" else None
    return _one(said, value, keys, key, offer)


def _one(said: str, value: Mapping[str, Any], keys: Mapping[str, str], key: str, offer: LegalChoices) -> Candidate:
    reasoning = _reasoning(value, keys)
    given = _given(value, keys)
    if isinstance(said, Truncated):
        return _broken_name(said, given, offer, reasoning)
    name = offer.names.resolve(said)
    called: Any = {}
    if name is None:
        if (call := read_call(said, offer)) is None:
            return refuse(said, _unknown(said, offer), reasoning)
        name, called = call.name, call.given
    definition = offer.definition(name)
    if definition is not None:
        given = _inline(value, keys, key, given, {p.name for p in definition.parameters})
    made = claim(name, given or called, offer, reasoning, mended=said != name or not _plain(value))
    if given and called:
        other = claim(name, called, offer)
        if not other.reason and other.meaning != made.meaning:
            return refuse(name, f"{name} was given different parameters in two places.", reasoning)
    return made


def _broken_name(said: Truncated, given: Any, offer: LegalChoices, reasoning: str | None) -> Candidate:
    """A name without its closing quote is whole only if no other name begins so and nothing can follow it."""
    definition = offer.definition(said)
    longer = [name for name in offer.names.words if name.startswith(said) and name != said]
    if definition is None or longer or definition.parameters:
        return refuse(said, "The reply broke off before the action was complete.", reasoning)
    return claim(said, {} if given is None else given, offer, reasoning)


def _plain(value: Mapping[str, Any]) -> bool:
    """Whether it has the form that was asked for, and nothing else."""
    return set(value) <= {"action", "params", "reasoning"} or set(value) <= {"tool", "params", "reasoning"}


def _given(value: Mapping[str, Any], keys: Mapping[str, str]) -> Any:
    for key in _PARAMETER_KEYS:
        if key in keys and value[keys[key]] not in (None, "", {}, []):
            return value[keys[key]]
    return {}


def _inline(value: Mapping[str, Any], keys: Mapping[str, str], named_by: str, given: Any, own: set[str]) -> Any:
    """Add parameters that stand beside the name rather than in an object of their own."""
    if given and not isinstance(given, Mapping):
        return given
    wanted = {joined(name): name for name in own}
    beside = {
        wanted[key]: value[original]
        for key, original in keys.items()
        if key in wanted and key != named_by and key not in _PARAMETER_KEYS and wanted[key] not in given
        and not (key in REMARKS and key in _REASONS)
    }  # fmt: skip
    if not set(own) <= {*beside, *(given or ())}:
        # Under names of their own: {"action": "say", "message": "hello"}. What is not wanted is left out later.
        reserved = {*REMARKS, *_REASONS, *_PARAMETER_KEYS, *_NAME_KEYS, named_by, *wanted}
        spare = {original: value[original] for key, original in keys.items() if key not in reserved}
        beside |= {key: spared for key, spared in spare.items() if isinstance(spared, str | int | float)}
    if not beside:
        return given
    merged = JsonObject([*given.items(), *beside.items()])
    merged.cut = isinstance(given, JsonObject) and given.cut
    return merged


def _by_key(value: Mapping[str, Any], offer: LegalChoices) -> list[Candidate]:
    """The name as the key: {"move": {"direction": "north"}}, {"noop": true}."""
    named = [(key, offer.names.resolve(key)) for key in value if joined(key) not in REMARKS]
    if not named or not all(name and split_words(key) == split_words(name) for key, name in named):
        return []
    if all(isinstance(value[key], bool) for key, _ in named):
        return [claim(name, {}, offer) for key, name in named if name and value[key]]
    return [
        claim(name, value[key], offer, _reasoning(value, {joined(k): k for k in value})) for key, name in named if name
    ]


def _reasoning(value: Mapping[str, Any], keys: Mapping[str, str]) -> str | None:
    for key in _REASONS:
        if key in keys and isinstance(value[keys[key]], str):
            return str(value[keys[key]])
    return None


def _with_reasoning(found: Candidate, value: Mapping[str, Any], keys: Mapping[str, str]) -> Candidate:
    return found if found.reasoning else replace(found, reasoning=_reasoning(value, keys))


def _unknown(said: str, offer: LegalChoices) -> str:
    return check_action(Action(said[:80]), offer.actions)[1]

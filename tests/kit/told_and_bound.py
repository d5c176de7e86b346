"""A model that replies at random within each constraint, and compares what the prompt names with what is accepted.

The prompts are read by code that has nothing in common with what writes them.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from wsap_core.protocol import AVATAR_ACTIONS, ActionDef, ActionSpace, ParamDef, Tool
from wsap_core.seams.model import (
    Abilities,
    CallConstraint,
    ChooseConstraint,
    Constraint,
    FunctionCall,
    JsonConstraint,
    RegexConstraint,
    Reply,
    Request,
)
from wsap_llm.scripted import ScriptedBackend
from wsap_llm.tools.calculator import Calculator
from wsap_llm.tools.notes import Notes

Offered = dict[str, dict[str, frozenset[str] | None]]
"""Action or tool -> parameter -> the words to choose from, None if it has none."""

KINDS = "number|string|integer|boolean|list|object|text|words"
ABILITIES = {
    "json": Abilities(json_schema=True),
    "calls": Abilities(calls=True),
    "tags": Abilities(regex=True, prefill=True),
    "choose": Abilities(choose=True, json_schema=True),
}


class Player(ScriptedBackend):
    """Replies at random within each constraint, and compares what the prompt names with it."""

    def __init__(self, style: str, seed: int, by_name: Sequence[str] = ()) -> None:
        """Play in a style; of look-ups with a parameter in `by_name`, the words to choose from stand elsewhere."""
        super().__init__(self._reply, abilities=ABILITIES[style])
        self._random = random.Random(seed)
        self.decided = 0
        self._by_name = by_name
        self.problems: list[str] = []
        self.spaces: list[ActionSpace] = []
        """The action spaces of its games."""

    def _reply(self, request: Request) -> Reply:
        bound = request.constraint
        if bound is None:
            self.problems.append("a request is not constrained")
            return Reply("")
        first = not any(m.role == "user" for m in request.messages[:-1])
        if first and request.purpose == "decide":
            self.decided += 1
            told = named(request)
            accepted = accepted_by(bound, self.spaces, told)
            for name, parameters in told.items():
                elsewhere = [p for p in parameters if p in self._by_name and parameters[p] is None]
                accepted.get(name, {}).update(dict.fromkeys(elsewhere))
            if told != accepted:
                self.problems.append(f"named {told}\nbound to {accepted}\n{request.messages[-1].text()[-800:]}")
        return self._chosen(bound, named(request))

    def _chosen(self, bound: Constraint, told: Offered) -> Reply:
        if isinstance(bound, ChooseConstraint):
            return Reply(self._random.choice(list(bound.options)))
        if isinstance(bound, JsonConstraint):
            branches = bound.schema.get("anyOf", [bound.schema])
            return Reply(
                json.dumps({k: self._value(s) for k, s in self._random.choice(branches)["properties"].items()})
            )
        if isinstance(bound, CallConstraint):
            function = self._random.choice(list(bound.functions))
            given = {k: self._value(s) for k, s in function.parameters["properties"].items()}
            return Reply("", calls=(FunctionCall(function.name, given),))
        some = [text for name, given in accepted_tags(bound.pattern, self.spaces, told).items() for text in given]
        return Reply(self._random.choice(some))

    def _value(self, schema: Mapping[str, Any]) -> Any:
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        if "properties" in schema:
            return {name: self._value(part) for name, part in schema["properties"].items()}
        kinds = schema.get("type", "string")
        kind = kinds if isinstance(kinds, str) else kinds[0]
        low = schema.get("minimum", 1)
        some: dict[str, Any] = {"integer": low, "number": low, "boolean": True, "null": None, "array": [low] * 3}
        if kind == "array":
            return [self._value(schema.get("items", {})) for _ in range(schema.get("minItems", 0))]
        return some.get(kind, "word")


# --- what the prompt names -------------------------------------------------------------------------------


def named(request: Request) -> Offered:
    """Return what a request's messages name."""
    system, shown = request.messages[0].text(), [m for m in request.messages if m.role == "user"][-1].text()
    described = _lines(_section(system, "Available actions:"))
    lookups = _lines(_section(system, "To look things up before you act:"))
    tools = _lines(_section(system, "Tools you may use before you act:"), between="; ")
    barred = re.search(r"^Not to be looked up now: (.*)\.$", shown, re.MULTILINE)
    lookups = {n: p for n, p in lookups.items() if barred is None or n not in barred[1].split(", ")}
    listed = _section(shown, "POSSIBLE NOW:")
    if listed.startswith("- "):
        if isinstance(request.constraint, ChooseConstraint):
            return {line.removeprefix("- "): {} for line in listed.splitlines()}
        return _lines(listed, between="; ") | lookups | tools
    if listed:
        possible = {}
        for line in listed.splitlines()[:1]:
            for name, choices in re.findall(r"([\w-]+)(?:\(((?:[^()]|\([^()]*\))*)\))?(?:, |$)", line):
                possible[name] = (
                    described.get(name, {})
                    | lookups.get(name, {})
                    | {
                        parameter: frozenset(words.split("|"))
                        for parameter, _, words in (given.partition(": ") for given in choices.split("; ") if given)
                    }
                )
        return possible | tools
    if now := re.search(r"^You can now: (.*)\.$", shown, re.MULTILINE):
        town = {}
        for name, whom in re.findall(r"(\w+)(?: \(([^)]*)\))?(?:, | or |$)", now[1]):
            town[name] = dict(described[name]) | dict.fromkeys(
                [p for p in described[name] if p not in ("text",)][:1] if whom else (), frozenset(whom.split(", "))
            )
        return town | lookups | tools
    return described | lookups | tools


def _numbers(low: int, high: int) -> frozenset[str] | None:
    """Return the numbers of a range that is short enough to be listed."""
    return frozenset(map(str, range(low, high + 1))) if high - low < 64 else None


def _section(text: str, title: str) -> str:
    found = re.search(rf"^{re.escape(title)}\n(.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def _lines(section: str, between: str = ", ") -> Offered:
    found: Offered = {}
    for line in section.splitlines():
        if match := re.match(r"- ([\w-]+)(?:\((.*?)\))?(?:: | \[|$)", line):
            found[match[1]] = _parameters(match[2] or "", between)
    return found


def _parameters(signature: str, between: str) -> dict[str, frozenset[str] | None]:
    found: dict[str, frozenset[str] | None] = {}
    for part in re.split(rf"{re.escape(between)}(?=\w+\??(?::|,|;|$))", signature) if signature else ():
        name, _, kind = part.partition(": ")
        # An only word to choose from stands alone, like a kind of value.
        words = re.match(rf"[^ ,]*(?:[^,]*\|[^,]*)+|(?!(?:{KINDS})$)[a-z0-9]\w*$", kind)
        numbers = (
            _numbers(*map(int, limits.groups())) if (limits := re.match(r"(?:integer )?(\d+)-(\d+)", kind)) else None
        )
        found[name.removesuffix("?")] = frozenset(words[0].split("|")) if words else numbers
    return found


# --- what the constraint accepts -------------------------------------------------------------------------


def accepted_by(bound: Constraint, spaces: Sequence[ActionSpace], told: Offered) -> Offered:
    """Return what a constraint accepts; of a pattern, by trying all that the games declare and the prompt tells."""
    if isinstance(bound, ChooseConstraint):
        return {option: {} for option in bound.options}
    if isinstance(bound, CallConstraint):
        return {f.name: _of(f.parameters["properties"]) for f in bound.functions}
    found: Offered = {}
    if isinstance(bound, JsonConstraint):
        for branch in bound.schema.get("anyOf", [bound.schema]):
            kind = branch["properties"].get("action") or branch["properties"]["tool"]
            for name in kind.get("enum", [kind.get("const")]):
                found[name] = _of(branch["properties"]["params"]["properties"])
        return found
    assert isinstance(bound, RegexConstraint)
    for name, given in accepted_tags(bound.pattern, spaces, told).items():
        definition = declared(spaces)[name]
        found[name] = {
            p.name: frozenset(str(values[p.name]) for values in given.values() if p.name in values)
            if _words(p, told.get(name, {}))
            else None
            for p in definition.parameters
            if not (p.optional and _is_text(p)) or any(p.name in values for values in given.values())
        }
    return found


def declared(spaces: Sequence[ActionSpace]) -> dict[str, ActionDef | Tool]:
    """Return all that the games and the tools declare, and what the runtime has for all of them."""
    tools: list[Tool] = [Calculator.definition, Notes.definition]
    return {
        each.name: each for each in (*(a for space in spaces for a in space.actions), *AVATAR_ACTIONS.actions, *tools)
    }


def accepted_tags(
    pattern: str, spaces: Sequence[ActionSpace], told: Offered
) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return name -> text -> parameters for what fits the pattern of a continued thought."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name, definition in declared(spaces).items():
        words = {p.name: _words(p, told.get(name, {})) for p in definition.parameters}
        usual = [p for p in definition.parameters if not p.optional or words[p.name]]
        texts = [p for p in definition.parameters if p not in usual and _is_text(p)]  # these may not be offered
        raw = {len(definition.parameters) == 1, len(definition.parameters) - len(texts) == 1}
        for tried in (usual, [p for p in definition.parameters if p in usual or p in texts]):
            for values, alone in product(product(*([*words[p.name], _example(p)] for p in tried)), raw):
                given = {p.name: _typed(value, p) for p, value in zip(tried, values, strict=True)}
                one = alone and len(tried) == 1  # stands in its tag as it is
                content = "" if not tried else str(values[0]) if one else json.dumps(given)
                for opening in ("</thinking>\n", ""):
                    text = f"{opening}<{name}>{content}</{name}>"
                    if re.fullmatch(pattern, text):
                        found.setdefault(name, {})[text] = given
    return found


def _words(parameter: ParamDef, told: Mapping[str, frozenset[str] | None]) -> Sequence[str]:
    """Return the words to choose from that are declared or told."""
    limits = parameter.integer_range()
    numbers = (_numbers(*limits) if limits else None) or ()
    return sorted({*(parameter.choices() or ()), *numbers, *(told.get(parameter.name) or ())})


def _is_text(parameter: ParamDef) -> bool:
    return parameter.json_schema().get("type", "string") == "string"


def _typed(value: Any, parameter: ParamDef) -> Any:
    return int(value) if parameter.json_schema().get("type") == "integer" else value


def _example(parameter: ParamDef) -> Any:
    schema = parameter.json_schema()
    kinds = schema.get("type", "string")
    return schema.get("minimum", 1) if "integer" in kinds or "number" in kinds else "word"


def _of(properties: Mapping[str, Any]) -> dict[str, frozenset[str] | None]:
    return {
        name: frozenset(map(str, schema["enum"])) if "enum" in schema and schema.get("type") in KINDS else None
        for name, schema in properties.items()
    }

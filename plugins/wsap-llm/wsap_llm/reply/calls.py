"""Calls in a text: `move(direction=north)` alone, `Action: wait` after a label, `<move>north</move>` in tags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from wsap_core.protocol import ActionDef, ParamDef
from wsap_core.protocol.values import JsonValue
from wsap_llm.reply.candidates import Candidate, candidate, unknown
from wsap_llm.reply.choices import LegalChoices, joined, names_of, split_words
from wsap_llm.reply.json_text.repair import Found, bare_value, read_loose
from wsap_llm.reply.shapes import ACTIONS, ANSWERS, CHOSEN, PARAMETERS, PLACEHOLDERS, WHOSE

LONGEST = 4_000
"""Maximum length of a call in characters."""

_DECORATION = " \t\r\n`*_~\"'“”‘’«»<>[]|#"
_ENUMERATOR = re.compile(r"^(?:\(?\d{1,3}[.):]|[-•–—>/!])\s{0,3}")
_PARENTHESES = re.compile(
    r"([^\W\d][\w .\-]{0,60}?)\s{0,2}\(((?:[^()\"']|\"[^\"]{0,500}\"|'[^']{0,500}'|\([^()]{0,200}\)){0,800})\)[ .;!]*"
)
_NUMBER = re.compile(r"\(?(\d{1,3})(?:[.):]|$)(?P<rest>.*)", re.DOTALL)
_BRACES = re.compile(r"([^\W\d][\w .\-]{0,60}?)[\s:]{0,3}(\{.{0,4000}\})[ .;!]*", re.DOTALL)
_UNREADABLE = "{"  # instead of parameters
_PAIR = re.compile(
    r"""\s{0,9}([A-Za-z_]\w{0,40})\s{0,3}[=:]\s{0,3}("[^"]{0,500}"|'[^']{0,500}'|[^,\s]{1,200})\s{0,9},?"""
)
_WORD = re.compile(r"[^\W_]+")
# An explanation, the only prose that may follow a call.
_EXPLANATION = re.compile(r"(?:\s(?:because|since)\s|\s\((?:to|because|since)\s).*", re.DOTALL)
_QUOTED = re.compile(r"""\s{0,3}(["'“])(.{1,2000})["'”]\s{0,3}""", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """A known name with its unchecked parameters."""

    name: str
    # Any JSON value: a mapping, a list or a single value.
    given: JsonValue


def undecorated(text: str) -> str:
    """Return a name without surrounding quotes, asterisks, numbering and punctuation."""
    text = text.strip(_DECORATION)
    text = _ENUMERATOR.sub("", text).strip(_DECORATION)
    return text.rstrip(".!,;:").strip(_DECORATION)


def read_call(text: str, choices: LegalChoices, *, marked: bool) -> Call | None:
    """Parse a short text as one call, such as `move(direction="north")`; None if it is anything else.

    An explanation that starts with `because` may follow. Near misses of a name count only if the text is `marked` as an
    action by its place, such as in JSON or after a label.
    """
    if len(text) > LONGEST or text.rstrip(_DECORATION).endswith(("?", "？")):
        return None
    text = _EXPLANATION.sub("", text)
    if choices.numbered and (number := _NUMBER.match(text.strip(_DECORATION))):
        name = dict(enumerate(choices.numbered, 1)).get(int(number[1]))
        if name is None or not number["rest"]:
            return Call(name, {}) if name else None
        if not joined(number["rest"]).startswith(joined(name)):
            return None
    plain = undecorated(text)
    if name := choices.names.resolve(plain, exactly=not marked):
        return Call(name, {})
    for form in (_PARENTHESES, _BRACES):
        if match := form.fullmatch(plain):
            name = choices.names.resolve(match[1].split(".")[-1], exactly=not marked)
            definition = choices.definition(name) if name else None
            # In `sleep (blocked)` the parentheses are a remark, because the action has no parameters.
            remark = definition is not None and not definition.parameters and match[2].strip(" {}")
            return None if name is None or remark else Call(name, _arguments(match[2]))
    # The end is unchanged because it may be part of a quoted value.
    return _name_and_value(_ENUMERATOR.sub("", text.strip().lstrip(_DECORATION)).lstrip(_DECORATION), choices, marked)


def _arguments(inside: str) -> JsonValue:
    inside = inside.strip()
    if not inside:
        return {}
    if inside.startswith("{"):
        return read_loose(inside, [inside])
    return _pairs(inside) or read_loose(f"[{inside}]", [inside])


def _pairs(text: str) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    at = 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None:
            return {}
        value = match[2]
        found[match[1]] = value[1:-1] if value[0] in "\"'" else bare_value(value)
        at = match.end()
    return found


def _name_and_value(text: str, choices: LegalChoices, marked: bool) -> Call | None:
    """Parse a name followed by the value of its only parameter: `move north`, `vote 7`, `say "hello"`."""
    said: list[str] = []
    best: tuple[str, int] | None = None
    for match in _WORD.finditer(text[:200]):
        said.extend(split_words(match[0]))
        leading = choices.names.leading(tuple(said))
        if leading and leading[1] == len(said):
            best = (leading[0], match.end())
    definition = choices.definition(best[0]) if best else None
    if best is None or definition is None:
        return None
    value = _value(definition, text[best[1] :], marked)
    return None if value is None else Call(best[0], [value])


def _value(definition: ActionDef, rest: str, marked: bool) -> JsonValue:
    places = [p for p in definition.parameters if not p.optional] or list(definition.parameters)
    if len(places) != 1:
        return None
    if (quoted := _QUOTED.fullmatch(rest)) and not _closed(places[0]):
        return quoted[2]
    colon = rest.lstrip()[:1] in (":", "=")
    if _closed(places[0]):
        return None if colon and not marked else _closed_value(places[0], rest.strip(" \t\n:=->_`*]\"'“”.!"))
    # Free text requires a marked place and a colon: `attack: blocked` in a sentence is not a call.
    return rest.lstrip(" :=").rstrip(_DECORATION) or None if colon and marked else None


def _closed(parameter: ParamDef) -> bool:
    return parameter.choices() is not None or parameter.integer_range() is not None


def _closed_value(parameter: ParamDef, text: str) -> JsonValue:
    if (choices := parameter.choices()) is not None:
        return names_of(choices).resolve(text)
    value = bare_value(text)
    return value if isinstance(value, int) else None


# --- behind labels ---

_LABEL = re.compile(
    rf"^[ \t\-*#_`\"'•+\d.)(]{{0,12}}{WHOSE}(?:(?P<strong>(?:action|tool)[ _]name|tool|function|{ACTIONS})|{ANSWERS})"
    rf"{CHOSEN}[ \u00a0\u202f\t*_`\"']{{0,6}}(?:[:：=]|->|→)[ \t]{{0,5}}(?P<value>[^\n]{{0,2000}})$",
    re.IGNORECASE | re.MULTILINE,
)
_NEXT_LINE = re.compile(r"\s{1,20}(?:```\w{0,10}\s{1,5})?([^\n]{1,2000})")
_INPUT = re.compile(
    rf"^[ \t\-*#_`\"'•+]{{0,12}}(?:action|tool|function)?[ _]?(?:{PARAMETERS})"
    r"[ \u00a0\u202f\t*_`\"']{0,6}[:：=][ \t*_`]{0,5}(?P<value>[^\n]{0,4000})$",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"^[ \t\-*_`\"']{0,12}(?P<key>[A-Za-z][\w ]{0,40}?)[*_`\"']{0,4}[ \t]{0,3}[:：=]"
    r"[ \t*_`]{0,4}(?P<value>[^\n]{1,2000})$"
)


def labelled(text: str, choices: LegalChoices, objects: list[Found]) -> Iterator[Candidate]:
    """Yield the candidates after labels, outside of JSON objects."""
    for match in _LABEL.finditer(text):
        if any(o.start < match.start() < o.end for o in objects):
            continue
        value, end = match["value"].strip(), match.end()
        if not undecorated(value) and (following := _NEXT_LINE.match(text, end)):
            value, end = following[1].strip(), following.end()
        if value.lstrip("`* \t").startswith(("{", "[")):
            continue
        if joined(value) in PLACEHOLDERS and not choices.names.resolve(value):
            continue
        if (call := read_call(value, choices, marked=True)) is not None:
            found = _with_fields(call, text[end : end + 6_000], choices)
        elif match["strong"]:
            found = unknown(undecorated(value), choices)
        else:
            continue
        yield found.at(match.start(), end, "label")


def _with_fields(call: Call, following: str, choices: LegalChoices) -> Candidate:
    """Read parameters from the following lines: `Action Input: {...}`, `params:`, `  direction: north`."""
    if call.given:
        return candidate(call.name, call.given, choices)
    definition = choices.definition(call.name)
    own = names_of(tuple(p.name for p in definition.parameters)) if definition else names_of(())
    given: dict[str, JsonValue] = {}
    at = 0
    for line in following.split("\n")[:30]:
        start, at = at, at + len(line) + 1
        if not line.strip(" \t`\"',}"):
            continue
        if match := _INPUT.match(line):
            value = match["value"].strip()
            if value.startswith("{"):
                return candidate(call.name, read_loose(following[start + line.index("{") :], _UNREADABLE), choices)
            if value.strip("\"',`"):
                return candidate(call.name, value.strip("\"',`") if own.words else {}, choices)
            continue
        match = _FIELD.match(line)
        if match is None:
            break
        if name := own.resolve(match["key"]):
            given[name] = bare_value(match["value"].strip(" \"',`*"))
    return candidate(call.name, given, choices)


# --- between tags ---

_TAG = re.compile(
    r"<\|?(?P<tag>action|final_action|act|answer|move|command|tool_call|tool|function_call|choice|decision)\|?>"
    r"(?P<value>[^<>]{1,2000}?)<(?:\|?/|/\|)(?P=tag)\|?>",
    re.IGNORECASE,
)
_FUNCTION = re.compile(
    r"<(?:function|invoke)(?:=|\s{1,3}name\s?=\s?)[\"']?(?P<name>[\w\-. ]{1,60})[\"']?\s{0,3}>(?P<inside>.{0,4000}?)"
    r"(?:</(?:function|invoke)>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_PARAMETER = re.compile(
    r"<(?:parameter|param|arg)(?:=|\s{1,3}name\s?=\s?)[\"']?(?P<key>[\w\-]{1,60})[\"']?\s{0,3}>"
    r"\s{0,9}(?P<value>[^<>]{0,2000}?)\s{0,9}</(?:parameter|param|arg)>",
    re.IGNORECASE,
)
_ELEMENT = re.compile(
    r"<(?P<name>[A-Za-z][\w\-]{0,60})(?P<attributes>(?:\s{1,3}[\w\-]{1,40}\s?=\s?\"[^\"<>]{0,400}\"){0,8})\s{0,3}"
    r"(?:/>|>(?P<inside>[^<>]{0,2000})</(?P=name)\s{0,3}>)"
)
_NAMED = re.compile(
    r"<(?:function|name|tool|tool_name|action|action_name|tool_call)>\s{0,9}(?P<name>[\w\-.]{1,60})\s{0,9}"
    r"(?:</(?:function|name|tool|tool_name|action|action_name)>)?(?P<rest>\s{0,20}(?:<\w{1,30}>\s{0,20}){0,2})",
    re.IGNORECASE,
)
_KEY_AND_VALUE = re.compile(
    r"\s{0,9}(?:<\w{1,30}>\s{0,9})?<arg_key>(?P<key>[^<>]{1,60})</arg_key>"
    r"\s{0,9}<arg_value>(?P<value>[^<>]{0,2000})</arg_value>"
    r"|\s{0,9}(?:<(?:params|parameters|arguments|args)>\s{0,9})?<(?P<tag>\w{1,60})>(?P<inside>[^<>]{0,2000})</(?P=tag)>",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"([\w\-]{1,40})\s?=\s?\"([^\"<>]{0,400})\"")


def tagged(text: str, choices: LegalChoices, objects: list[Found]) -> Iterator[Candidate]:
    """Yield the candidates between tags, outside of JSON objects."""
    taken: list[tuple[int, int]] = [(o.start, o.end) for o in objects]
    for form, read in ((_FUNCTION, _function), (_NAMED, _named), (_ELEMENT, _element), (_TAG, _between)):
        for match in form.finditer(text):
            if any(start <= match.start() < end for start, end in taken):
                continue
            if (found := read(match, choices, objects)) is not None:
                found = found.at(match.start(), found.end or match.end(), "tags")
                taken.append((found.start, found.end))
                yield found


def _function(match: re.Match[str], choices: LegalChoices, objects: list[Found]) -> Candidate:
    name = choices.names.resolve(match["name"])
    if name is None:
        return unknown(match["name"], choices)
    given: JsonValue = {p["key"]: bare_value(p["value"]) for p in _PARAMETER.finditer(match["inside"])}
    if not given and match["inside"].lstrip().startswith("{"):
        given = read_loose(match["inside"].strip(), _UNREADABLE)
    return candidate(name, given, choices)


def _named(match: re.Match[str], choices: LegalChoices, objects: list[Found]) -> Candidate | None:
    """Read a name between tags and the parameters after it, as an object or as elements."""
    name = choices.names.resolve(match["name"])
    definition = choices.definition(name) if name else None
    if name is None or definition is None:
        return None
    for found in objects:
        if found.start == match.end() and isinstance(found.value, dict):
            return candidate(name, found.value, choices).at(match.start(), found.end, "tags")
    given: dict[str, JsonValue] = {}
    at = match.start("rest")
    own = names_of(tuple(p.name for p in definition.parameters))
    while pair := _KEY_AND_VALUE.match(match.string, at):
        key = own.resolve((pair["key"] or pair["tag"]).strip())
        if key is None:
            break
        given[key] = bare_value(pair["value"] or pair["inside"] or "")
        at = pair.end()
    return candidate(name, given, choices).at(match.start(), at, "tags") if given else None


def _element(match: re.Match[str], choices: LegalChoices, objects: list[Found]) -> Candidate | None:
    """Read `<move_left/>`, `<move>north</move>`, `<move direction="north"/>` or `<action name="move"/>`."""
    given: JsonValue = {key: bare_value(value) for key, value in _ATTRIBUTE.findall(match["attributes"])}
    written = match["name"]
    if joined(written) in ("action", "tool") and "name" in given:
        written = str(given.pop("name"))
    name = choices.names.resolve(written, exactly=True)
    return None if name is None else candidate(name, given or (match["inside"] or "").strip(), choices)


def _between(match: re.Match[str], choices: LegalChoices, objects: list[Found]) -> Candidate | None:
    value = match["value"].strip()
    if value.startswith(("{", "[")):
        return None
    if (call := read_call(value, choices, marked=True)) is not None:
        return candidate(call.name, call.given, choices)
    return unknown(value, choices)

"""Actions between tags: `<action>move_left</action>`, `<move>north</move>`, `<invoke name="say">`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wsap_core.protocol.values import JsonValue
from wsap_llm.reply.calls import read_call
from wsap_llm.reply.candidates import Candidate, candidate, unknown
from wsap_llm.reply.choices import LegalChoices, joined, names_of
from wsap_llm.reply.labels import object_at
from wsap_llm.reply.repair import Found, bare_value

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
    """Yield what stands between tags, outside of JSON objects."""
    taken: list[tuple[int, int]] = [(o.start, o.end) for o in objects]
    for form, read in ((_FUNCTION, _function), (_NAMED, _named), (_ELEMENT, _element), (_TAG, _value)):
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
        given = object_at(match["inside"].strip())
    return candidate(name, given, choices)


def _named(match: re.Match[str], choices: LegalChoices, objects: list[Found]) -> Candidate | None:
    """A name between tags whose parameters follow, as an object or as elements of their own."""
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
    """`<move_left/>`, `<move>north</move>`, `<move direction="north"/>`, `<action name="move"/>`."""
    given: JsonValue = {key: bare_value(value) for key, value in _ATTRIBUTE.findall(match["attributes"])}
    written = match["name"]
    if joined(written) in ("action", "tool") and "name" in given:
        written = str(given.pop("name"))
    name = choices.names.resolve(written, exactly=True)
    return None if name is None else candidate(name, given or (match["inside"] or "").strip(), choices)


def _value(match: re.Match[str], choices: LegalChoices, objects: list[Found]) -> Candidate | None:
    value = match["value"].strip()
    if value.startswith(("{", "[")):
        return None
    if (call := read_call(value, choices, marked=True)) is not None:
        return candidate(call.name, call.given, choices)
    return unknown(value, choices)

"""Actions behind a label, `Action: move_left`, and between tags, `<action>move_left</action>`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from wsap_core.protocol import Action
from wsap_core.worlds.legality import check_action
from wsap_llm.reply.calls import Call, read_call, undecorated
from wsap_llm.reply.candidates import Candidate, claim, refuse
from wsap_llm.reply.choices import LegalChoices
from wsap_llm.reply.objects import PLACEHOLDERS
from wsap_llm.reply.prose import sentence_claim
from wsap_llm.reply.repair import Found, Unreadable, bare_value, read_loose
from wsap_llm.reply.words import joined, names_of

_ADJECTIVES = r"(?:(?:my|the|next|final|chosen|selected|best|recommended|current|immediate)[ _]){0,3}"
_LABEL = re.compile(
    r"^[ \t\-*#_`\"'•+\d.)(]{0,12}(?:" + _ADJECTIVES + r")"
    r"(?P<label>action[ _]name|action|move|decision|choice|command|answer|output|response|tool[ _]name|tool|function"
    r"|act)"
    r"(?:[ _](?:to take|taken|is|would be|i take|i choose|chosen|selected|this turn|for this turn|now)){0,2}"
    r"[ \t*_`\"']{0,6}(?:[:：=]|->|→)[ \t]{0,5}(?P<value>[^\n]{0,2000})$",
    re.IGNORECASE | re.MULTILINE,
)
_STRONG = frozenset({"action", "action name", "action_name", "tool", "tool name", "tool_name", "function"})
_INPUT = re.compile(
    r"^[ \t\-*#_`\"'•+]{0,12}(?:action|tool|function)?[ _]?(?:input|inputs|params|parameters|args"
    r"|arguments|parameter)"
    r"[ \t*_`\"']{0,6}[:：=][ \t*_`]{0,5}(?P<value>[^\n]{0,4000})$",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"^[ \t\-*_`\"']{0,12}(?P<key>[A-Za-z][\w ]{0,40}?)[*_`\"']{0,4}[ \t]{0,3}[:：=]"
    r"[ \t*_`]{0,4}(?P<value>[^\n]{1,2000})$"
)
_TAG = re.compile(
    r"<\|?(?P<tag>action|final_action|act|answer|move|command|tool_call|tool|function_call|choice|decision)\|?>"
    r"(?P<value>[^<>]{1,2000}?)<\|?/(?P=tag)\|?>",
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
    r"\s{0,9}(?:<\w{1,30}>\s{0,9})?<arg_key>(?P<key>[^<>]{1,60})</arg_key>\s{0,9}<arg_value>(?P<value>[^<>]{0,2000})</arg_value"
    r">"
    r"|\s{0,9}(?:<(?:params|parameters|arguments"
    r"|args)>\s{0,9})?<(?P<tag>\w{1,60})>(?P<inside>[^<>]{0,2000})</(?P=tag)>",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"([\w\-]{1,40})\s?=\s?\"([^\"<>]{0,400})\"")


def labelled(text: str, offer: LegalChoices, objects: list[Found]) -> Iterator[Candidate]:
    """Yield what stands behind labels, outside of JSON objects."""
    for match in _LABEL.finditer(text):
        if any(o.start < match.start() < o.end for o in objects):
            continue
        value, end = match["value"].strip(), match.end()
        if not undecorated(value):
            value, end = _next_line(text, end)
        strong = match["label"].lower() in _STRONG
        if value.lstrip("`* \t").startswith(("{", "[")) or (
            joined(value) in PLACEHOLDERS and not offer.names.resolve(value)
        ):
            continue
        found = _value(value, text[end : end + 6_000], offer, strong=strong)
        if found is not None:
            yield found.at(match.start(), end, "label")


def _next_line(text: str, end: int) -> tuple[str, int]:
    match = re.compile(r"\s{1,20}(?:```\w{0,10}\s{1,5})?([^\n]{1,2000})").match(text, end)
    return (match[1].strip(), match.end()) if match else ("", end)


def _value(value: str, following: str, offer: LegalChoices, *, strong: bool) -> Candidate | None:
    call = read_call(value, offer, free_text=strong)
    if call is not None:
        return _with_fields(call, following, offer)
    if (spoken := sentence_claim(value, offer, alone=True)) is not None:
        return spoken
    if not strong or len(value.split()) > 12:
        return None
    return refuse(undecorated(value), check_action(Action(undecorated(value)[:80]), offer.actions)[1])


def _with_fields(call: Call, following: str, offer: LegalChoices) -> Candidate:
    """Take parameters from the lines below: `Action Input: {...}`, `params:`, `  direction: north`."""
    if call.given:
        return claim(call.name, call.given, offer)
    definition = offer.definition(call.name)
    own = names_of(tuple(p.name for p in definition.parameters)) if definition else names_of(())
    given: dict[str, Any] = {}
    at = 0
    for line in following.split("\n")[:30]:
        start, at = at, at + len(line) + 1
        if not line.strip(" \t`\"',}"):
            continue
        if match := _INPUT.match(line):
            value = match["value"].strip()
            if value.startswith("{"):
                return claim(call.name, _object_at(following, start + line.index("{")), offer)
            if value.strip("\"',`"):
                return claim(call.name, value.strip("\"',`") if own.words else {}, offer)
            continue
        match = _FIELD.match(line)
        if match is None:
            break
        if name := own.resolve(match["key"]):
            given[name] = bare_value(match["value"].strip(" \"',`*"))
    return claim(call.name, given, offer)


def _object_at(text: str, start: int) -> Any:
    try:
        return read_loose(text[start:])
    except Unreadable:
        return "{"


def tagged(text: str, offer: LegalChoices, objects: list[Found]) -> Iterator[Candidate]:
    """Yield what stands between tags, outside of JSON objects."""
    taken: list[tuple[int, int]] = [(o.start, o.end) for o in objects]

    def free(match: re.Match[str]) -> bool:
        return not any(start <= match.start() < end for start, end in taken)

    for match in _FUNCTION.finditer(text):
        if free(match):
            taken.append(match.span())
            yield _function(match, offer).at(*match.span(), "tags")
    for match in _NAMED.finditer(text):
        if free(match) and (named := _named(match, text, offer, objects)) is not None:
            taken.append((named.start, named.end))
            yield named
    for form, read in ((_ELEMENT, _element), (_TAG, _tag_value)):
        for match in form.finditer(text):
            if free(match) and (found := read(match, offer)):
                taken.append(match.span())
                yield found.at(*match.span(), "tags")


def _named(match: re.Match[str], text: str, offer: LegalChoices, objects: list[Found]) -> Candidate | None:
    """A name between tags whose parameters follow, as an object or as elements of their own."""
    name = offer.names.resolve(match["name"])
    definition = offer.definition(name) if name else None
    if name is None or definition is None:
        return None
    for found in objects:
        if found.start == match.end() and isinstance(found.value, dict):
            return claim(name, found.value, offer).at(match.start(), found.end, "tags")
    given: dict[str, Any] = {}
    at = match.start("rest")
    own = names_of(tuple(p.name for p in definition.parameters))
    while pair := _KEY_AND_VALUE.match(text, at):
        key = own.resolve((pair["key"] or pair["tag"]).strip())
        if key is None:
            break
        given[key] = bare_value(pair["value"] or pair["inside"] or "")
        at = pair.end()
    return claim(name, given, offer).at(match.start(), at, "tags") if given else None


def _function(match: re.Match[str], offer: LegalChoices) -> Candidate:
    name = offer.names.resolve(match["name"])
    if name is None:
        return refuse(match["name"], check_action(Action(match["name"]), offer.actions)[1])
    given: Any = {p["key"]: bare_value(p["value"]) for p in _PARAMETER.finditer(match["inside"])}
    if not given and match["inside"].lstrip().startswith("{"):
        given = _object_at(match["inside"].strip(), 0)
    return claim(name, given, offer)


def _tag_value(match: re.Match[str], offer: LegalChoices) -> Candidate | None:
    value = match["value"].strip()
    if value.startswith(("{", "[")):
        return None
    call = read_call(value, offer)
    if call is not None:
        return claim(call.name, call.given, offer)
    if (spoken := sentence_claim(value, offer, alone=True)) is not None:
        return spoken
    return refuse(value, check_action(Action(value[:80]), offer.actions)[1]) if len(value.split()) < 6 else None


def _element(match: re.Match[str], offer: LegalChoices) -> Candidate | None:
    """`<move_left/>`, `<move>north</move>`, `<move direction="north"/>`, `<action name="move"/>`."""
    given: Any = {key: bare_value(value) for key, value in _ATTRIBUTE.findall(match["attributes"])}
    written = match["name"]
    if joined(written) in ("action", "tool") and "name" in given:
        written = str(given.pop("name"))
    name = offer.names.resolve(written)
    if name is None or joined(name) != joined(written):
        return None
    inside = (match["inside"] or "").strip()
    return claim(name, given or inside, offer)

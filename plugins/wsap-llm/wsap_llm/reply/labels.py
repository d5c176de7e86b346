"""Actions behind a label at the beginning of a line: `Action: move_left`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wsap_core.protocol.values import JsonValue
from wsap_llm.reply.calls import Call, read_call, undecorated
from wsap_llm.reply.candidates import Candidate, candidate, unknown
from wsap_llm.reply.choices import LegalChoices, joined, names_of
from wsap_llm.reply.objects import PLACEHOLDERS
from wsap_llm.reply.repair import Found, Unreadable, bare_value, read_loose
from wsap_llm.reply.shapes import ACTIONS, ANSWERS, CHOSEN, PARAMETERS, WHOSE

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
    """Yield what stands behind labels, outside of JSON objects."""
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
    """Take parameters from the lines below: `Action Input: {...}`, `params:`, `  direction: north`."""
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
                return candidate(call.name, object_at(following[start + line.index("{") :]), choices)
            if value.strip("\"',`"):
                return candidate(call.name, value.strip("\"',`") if own.words else {}, choices)
            continue
        match = _FIELD.match(line)
        if match is None:
            break
        if name := own.resolve(match["key"]):
            given[name] = bare_value(match["value"].strip(" \"',`*"))
    return candidate(call.name, given, choices)


def object_at(text: str) -> JsonValue:
    """Return the object that a text begins with, or what makes the parameters unreadable."""
    try:
        return read_loose(text)
    except Unreadable:
        return "{"

"""An action and its parameters written in one breath: `move(direction=north)`, `move north`, `say: hello`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wsap_core.protocol import ActionDef, ParamDef
from wsap_core.protocol.values import JsonValue
from wsap_llm.reply.choices import LegalChoices, joined, names_of, split_words
from wsap_llm.reply.repair import Unreadable, bare_value, read_loose

LONGEST = 4_000
"""Characters; a longer text is no call."""

_DECORATION = " \t\r\n`*_~\"'“”‘’«»<>[]|#"
_ENUMERATOR = re.compile(r"^(?:\(?\d{1,3}[.):]|[-•–—>/!])\s{0,3}")
_PARENTHESES = re.compile(
    r"([^\W\d][\w .\-]{0,60}?)\s{0,2}\(((?:[^()\"']|\"[^\"]{0,500}\"|'[^']{0,500}'|\([^()]{0,200}\)){0,800})\)[ .;!]*"
)
_NUMBER = re.compile(r"\(?(\d{1,3})(?:[.):]|$)(?P<rest>.*)", re.DOTALL)
_BRACES = re.compile(r"([^\W\d][\w .\-]{0,60}?)[\s:]{0,3}(\{.{0,4000}\})[ .;!]*", re.DOTALL)
_PAIR = re.compile(
    r"""\s{0,9}([A-Za-z_]\w{0,40})\s{0,3}[=:]\s{0,3}("[^"]{0,500}"|'[^']{0,500}'|[^,\s]{1,200})\s{0,9},?"""
)
_WORD = re.compile(r"[^\W_]+")
# Why it is done, after what is done: the only prose that a call may end in.
_EXPLANATION = re.compile(r"(?:\s(?:because|since)\s|\s\((?:to|because|since)\s).*", re.DOTALL)
_QUOTED = re.compile(r"""\s{0,3}(["'“])(.{1,2000})["'”]\s{0,3}""", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """A known name, and what stood where its parameters belong."""

    name: str
    # A mapping, a list or a value: models put everything there.
    given: JsonValue


def undecorated(text: str) -> str:
    """Return a name without the quotes, asterisks, numbering and punctuation around it."""
    text = text.strip(_DECORATION)
    text = _ENUMERATOR.sub("", text).strip(_DECORATION)
    return text.rstrip(".!,;:").strip(_DECORATION)


def read_call(text: str, choices: LegalChoices, *, marked: bool) -> Call | None:
    """Return the one call that a short text consists of, such as `move(direction="north")`; None if it is anything
    else.

    An explanation that begins with `because` may follow. Where the text is `marked`, standing where an action belongs,
    as in JSON or behind a label, near misses of a name count.
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
            # `sleep (blocked)` explains; only what takes parameters can be given any.
            remark = definition is not None and not definition.parameters and match[2].strip(" {}")
            return None if name is None or remark else Call(name, _arguments(match[2]))
    # The end is left as it is: it may be that of a quoted value.
    return _name_and_value(_ENUMERATOR.sub("", text.strip().lstrip(_DECORATION)).lstrip(_DECORATION), choices, marked)


def _arguments(inside: str) -> JsonValue:
    inside = inside.strip()
    if not inside:
        return {}
    try:
        if inside.startswith("{"):
            return read_loose(inside)
        return _pairs(inside) or read_loose(f"[{inside}]")
    except Unreadable:
        return [inside]


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
    """A name, then the value of its only parameter: `move north`, `vote 7`, `say "hello"`."""
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
    # Free text is only read where an action belongs, after a colon: `attack: blocked` in a sentence is none.
    return rest.lstrip(" :=").rstrip(_DECORATION) or None if colon and marked else None


def _closed(parameter: ParamDef) -> bool:
    return parameter.choices() is not None or parameter.integer_range() is not None


def _closed_value(parameter: ParamDef, text: str) -> JsonValue:
    if (choices := parameter.choices()) is not None:
        return names_of(choices).resolve(text)
    value = bare_value(text)
    return value if isinstance(value, int) else None

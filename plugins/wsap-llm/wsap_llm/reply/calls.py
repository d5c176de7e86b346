"""An action and its parameters written in one breath: `move(direction=north)`, `move north`, `say: hello`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from wsap_core.protocol import ActionDef, ParamDef
from wsap_llm.reply.choices import LegalChoices
from wsap_llm.reply.mentions import mentioned
from wsap_llm.reply.repair import Unreadable, bare_value, read_loose
from wsap_llm.reply.words import names_of, split_words

_DECORATION = " \t\r\n`*_~\"'“”‘’«»<>[]|#"
_ENUMERATOR = re.compile(r"^(?:\(?\d{1,3}[.):]|[-•–—>/!])\s{0,3}")
_PARENTHESES = re.compile(
    r"([^\W\d][\w .\-]{0,60}?)\s{0,2}\(((?:[^()\"']|\"[^\"]{0,500}\"|'[^']{0,500}'|\([^()]{0,200}\)){0,800})\)"
)
_BRACES = re.compile(r"([^\W\d][\w .\-]{0,60}?)[\s:]{0,3}(\{.{0,4000}\})", re.DOTALL)
_PAIR = re.compile(
    r"""\s{0,9}([A-Za-z_]\w{0,40})\s{0,3}[=:]\s{0,3}("[^"]{0,500}"|'[^']{0,500}'|[^,\s]{1,200})\s{0,9},?"""
)
_WORD = re.compile(r"[^\W_]+")
_EXPLAINS = re.compile(
    r"\s{0,3}(?:[.;,]?\s{0,3}(?:because|since|as|so that|so|in order to|to|for|due to|given)\b"
    r"|[.;]\s|[-–—]{1,2}\s|\((?=[^)]{3})|//|#|—)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Call:
    """A known name, and what stood where its parameters belong."""

    name: str
    given: Any


def undecorated(text: str) -> str:
    """Return a name without the quotes, asterisks, numbering and punctuation around it."""
    text = text.strip(_DECORATION)
    text = _ENUMERATOR.sub("", text).strip(_DECORATION)
    return text.rstrip(".!,;:").strip(_DECORATION)


def read_call(text: str, offer: LegalChoices, *, free_text: bool = True) -> Call | None:
    """Return the one call that a short text consists of, or None if it is anything else.

    Args:
        text: such as `move(direction="north")`; an explanation may follow.
        offer: what can be named.
        free_text: whether `say hello` may give `hello` to a parameter of free text.
    """
    if len(text) > 4_000:
        return None
    plain = undecorated(text)
    if name := offer.names.resolve(plain):
        return Call(name, {})
    if (call := _delimited(plain, offer)) is not None:
        return call
    # The end is left as it is: it may be that of a quoted value.
    led = _ENUMERATOR.sub("", text.strip().lstrip(_DECORATION)).lstrip(_DECORATION)
    return _spoken(led, offer, free_text=free_text)


def _delimited(text: str, offer: LegalChoices) -> Call | None:
    for form in (_PARENTHESES, _BRACES):
        match = form.match(text)
        if match is None or (name := offer.names.resolve(match[1].split(".")[-1])) is None:
            continue
        rest = text[match.end() :]
        if rest.strip(" .;!") and (not _EXPLAINS.match(rest) or mentioned(rest, offer) - {name}):
            return None
        definition = offer.definition(name)
        if form is _PARENTHESES and definition and not definition.parameters and _is_remark(match[2], offer):
            return Call(name, {})
        return Call(name, _arguments(match[2]))
    return None


def _is_remark(inside: str, offer: LegalChoices) -> bool:
    """Whether what is in parentheses explains rather than gives: `move_left (to reach the tree)`."""
    return len(inside.split()) > 1 and "=" not in inside and ":" not in inside and not mentioned(inside, offer)


def _arguments(inside: str) -> Any:
    inside = inside.strip()
    if not inside:
        return {}
    try:
        if inside.startswith("{"):
            return read_loose(inside)
        if pairs := _pairs(inside):
            return pairs
        return read_loose(f"[{inside}]")
    except Unreadable:
        return [inside]


def _pairs(text: str) -> dict[str, Any]:
    """Return `a=1, b="x"` by name, or nothing if the text is not all of that form."""
    found: dict[str, Any] = {}
    at = 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None:
            return {}
        value = match[2]
        found[match[1]] = value[1:-1] if value[0] in "\"'" else bare_value(value)
        at = match.end()
    return found


def _spoken(text: str, offer: LegalChoices, *, free_text: bool) -> Call | None:
    """A name first, then its parameters or an explanation."""
    said: list[str] = []
    best: tuple[str, int] | None = None
    for match in _WORD.finditer(text[:200]):
        said.extend(split_words(match[0]))
        leading = offer.names.leading(tuple(said))
        if leading and leading[1] == len(said):
            best = (leading[0], match.end())
    if best is None:
        return None
    name, end = best
    definition = offer.definition(name)
    rest = text[end:]
    if _EXPLAINS.match(rest) and not (definition and definition.parameters and _value_first(rest)):
        return None if mentioned(rest, offer) - {name} else Call(name, {})
    if definition is None or not definition.parameters:
        return None
    given = _given(definition, rest, offer, free_text=free_text)
    return None if given is None else Call(name, given)


def _value_first(rest: str) -> bool:
    """Whether a colon or arrow follows, so that the rest is a value and not an explanation."""
    return rest.lstrip()[:1] in (":", "=")


def _given(definition: ActionDef, rest: str, offer: LegalChoices, *, free_text: bool) -> Any:
    marked = rest.lstrip("`*\"' _-").startswith((":", "="))
    rest = rest.strip(" \t\n:=->_`*]")
    if pairs := _pairs(rest):
        return pairs
    places = [p for p in definition.parameters if not p.optional] or list(definition.parameters)
    if len(places) != 1:
        words = rest.strip("\"'").replace(",", " ").split()
        if len(words) == len(places) and all(_closed(p) for p in places):
            return [bare_value(word.strip("\"'")) for word in words]
        return None
    quoted = len(rest) > 2 and rest[0] in "\"'“" and rest[-1] in "\"'”"
    value = rest.strip("\"'“”.!") if quoted or _closed(places[0]) else rest
    if _closed(places[0]):
        return _closed_value(places[0], value)
    if not (free_text or marked or quoted) or not value:
        return None
    # Free text that names other actions may be a second action: `say hello, then attack`.
    if not quoted and mentioned(value, offer):
        return None
    return [value]


def _closed(parameter: ParamDef) -> bool:
    return parameter.choices() is not None or parameter.integer_range() is not None


def _closed_value(parameter: ParamDef, text: str) -> Any:
    if (choices := parameter.choices()) is not None:
        choice = names_of(choices).resolve(text)
        return None if choice is None else [choice]
    value = bare_value(text)
    return [value] if isinstance(value, int) else None

"""A lenient reader for JSON as language models write it.

It accepts single, smart and missing quotes, unquoted keys, trailing and missing commas, comments, `True` and `None`,
unescaped quotes and line breaks in text, and missing closing braces. Nothing is evaluated, nesting is bounded, and time
is linear.

Incomplete values are marked, so that they are not taken for complete ones: a text without its closing quote is a
`Truncated`, and an object without its closing brace has `cut` set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from wsap_core.protocol.values import JsonValue

DEEPEST = 40
"""Maximum nesting; deeper values are unreadable."""


class Truncated(str):
    """Text without its closing quote."""

    __slots__ = ()


class JsonObject(dict[str, JsonValue]):
    """An object that also records repeated keys and a missing end."""

    def __init__(self, pairs: Sequence[tuple[str, JsonValue]] = ()) -> None:
        super().__init__()
        self.repeated: set[str] = set()
        """Keys with several different values."""
        self.cut = False
        """Whether the reply ended before the object did."""
        for key, value in pairs:
            self.put(key, value)

    def put(self, key: str, value: JsonValue) -> None:
        """Set a key; if it has a different value already, it is added to `repeated`."""
        if key in self and self[key] != value:
            self.repeated.add(key)
        self[key] = value


@dataclass(frozen=True)
class Found:
    """A JSON value in a text."""

    value: JsonValue
    start: int
    end: int
    """The value is at `text[start:end]`."""
    strict: bool
    """Whether it is valid JSON."""
    broken: bool = False
    """Whether it could not be read; the text after it was not searched."""


class _Unreadable(ValueError):
    """The text starts like JSON but can't be read."""


_STRICT = json.JSONDecoder(object_pairs_hook=JsonObject)
# Also the keywords of a call: dict(action="noop", params={}).
_OPENING = re.compile(r"[{｛\[]|(?<=\w)\((?=\s{0,20}(?:action|name|tool|reasoning)\s{0,5}=)")
_OPENS = {'"': '"', "'": "'", "“": '”“"', "„": '”“"', "‘": "’'", "’": "’'", "`": "`", "«": "»", "＂": "＂"}
_KEY_AHEAD = r"""(?:["'“‘`][\w \-]{1,40}["'”’`]\s{0,20}[:：=]|[A-Za-z_]\w{0,40}\s{0,5}[:：=])"""
_OBJECT_AHEAD = re.compile(
    r"\s{0,200}(?:[}｝]|"
    + _KEY_AHEAD
    + r"""|\\"|"[^"\n]{1,60}"\s{0,20}[}｝]|"\w{1,40}\s?:\s?"|//|#|/\*|['"]\w{1,40}["']\s{0,20}=>)"""
)
_LIST_AHEAD = re.compile(r"""\s{0,200}(?:[{｛\[\]"'“]|[A-Za-z_]\w{0,60}\s{0,5}[\],])""")
_BARE_KEY = re.compile(r"[^\s:：=,，{}\[\]\"'“”]{1,80}")
_BARE_VALUE = re.compile(r"[^,，{}｝\[\]\n\"“”]{0,400}")
# What may follow the closing quote of a value; before anything else the quote is part of the text.
_AFTER_TEXT = re.compile(
    r"\s{0,200}(?:$|[}｝\])]|[,，;][\s,]{0,200}(?:$|[}｝\]]|//|#|/\*|\.\.\.|" + _KEY_AHEAD + r")"
    r"|\n\s{0,200}" + _KEY_AHEAD + r"""|\s{1,20}["']\w{1,40}["']\s{0,20}:|//|/\*|#|```|<\|)"""
)
_AFTER_ITEM = re.compile(r"\s{0,200}(?:$|[,，;\]}]|//|/\*|```|<\|)")
# One word whose closing quote is missing or wrong; not for prose, which would be cut.
_LOST_QUOTE = re.compile(
    r"""([\w\-]{1,60})['’”`]?\s{0,5}(?:[\s,]{1,200}(?=["']\w{1,40}["']\s{0,20}:)|,?(?=\s{0,200}\}\s{0,20}(?:\}|$)))"""
)
_LOST_KEY_QUOTE = re.compile(r"""["'](\w{1,40})\s{0,5}(?=:\s{0,20}["'{\[])""")
_SKIPPED = re.compile(r"(?:\s+|//[^\n]*|/\*.{0,2000}?\*/|#[^\n]*|\.\.\.|…)+", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_WORDS = {
    "true": True, "false": False, "null": None, "none": None, "undefined": None, "nil": None,
}  # fmt: skip
_NUMBER = re.compile(r"[+-]?\d{1,18}(\.\d{0,18})?([eE][+-]?\d{1,3})?")


def find_values(text: str) -> list[Found]:
    """Return the outermost JSON objects and lists in a text, in order."""
    found: list[Found] = []
    reader = _Reader(text)
    at = 0
    while opening := _OPENING.search(text, at):
        start = opening.start()
        value = _at(text, start, reader)
        if value is None:
            at = start + 1
            continue
        found.append(value)
        if value.broken:
            break
        at = max(value.end, start + 1)
    return found


def _at(text: str, start: int, reader: _Reader) -> Found | None:
    in_list, in_call = text[start] == "[", text[start] == "("
    if not in_call and not (_LIST_AHEAD if in_list else _OBJECT_AHEAD).match(text, start + 1):
        return None
    try:
        value, end = _STRICT.raw_decode(text, start)
        if text.count("{", start, end) + text.count("[", start, end) <= DEEPEST or not _is_deep(value):
            return Found(value, start, end, strict=True)
    except (ValueError, RecursionError):
        pass
    try:
        value, end = reader.read(start)
    except _Unreadable:
        return Found(None, start, len(text), strict=False, broken=True)
    return Found(value, start, end, strict=False)


def _is_deep(value: JsonValue) -> bool:
    """Return whether a value is nested beyond `DEEPEST`."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return bool(level)


def read_loose(text: str, otherwise: JsonValue = None) -> JsonValue:
    """Return the value of a whole text: an object, a list, quoted text, a number or a word; `otherwise` if it starts
    like JSON but can't be read."""
    try:
        return _Reader(text).read(0)[0]
    except _Unreadable:
        return otherwise


def bare_value(word: str) -> JsonValue:
    """Return the value of an unquoted word: a number, true, false, null, or the word."""
    word = word.strip()
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    if match := _NUMBER.fullmatch(word):
        return float(word) if match[1] or match[2] else int(word)
    return word


class _Reader:
    """Reads a text in one pass; the position never moves back."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def read(self, start: int) -> tuple[JsonValue, int]:
        self.at = start
        return self._value(0, in_list=False), self.at

    def _peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def _skip(self) -> None:
        if match := _SKIPPED.match(self.text, self.at):
            self.at = match.end()

    def _value(self, depth: int, *, in_list: bool) -> JsonValue:
        self._skip()
        c = self._peek()
        if c and (c in "{｛" or (c == "(" and depth == 0)):
            return self._object(depth + 1, closing=")" if c == "(" else "}｝")
        if c == "[":
            return self._list(depth + 1)
        if c and c in _OPENS:
            return self._text(c, in_list=in_list)
        match = _BARE_VALUE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        # A comment after an unquoted value is not part of it.
        value = bare_value(re.split(r"\s(?://|#)", match[0], maxsplit=1)[0])
        # A number or word at the end of the reply may be incomplete.
        unsure = depth and self.at >= len(self.text) and value is not None and not isinstance(value, bool)
        return Truncated(match[0].strip()) if unsure else value

    def _object(self, depth: int, *, closing: str = "}｝") -> JsonObject:
        if depth > DEEPEST:
            raise _Unreadable
        self.at += 1
        made, junk = JsonObject(), 0
        while True:
            self._skip()
            c = self._peek()
            if not c:
                made.cut = True
                return made
            if c in closing:
                self.at += 1
                return made
            if (key := self._key()) is None:
                self.at += 1
                junk += c not in ",，;])"
                if junk > 10:
                    raise _Unreadable
                continue
            self._pair(made, key, depth)

    def _key(self) -> str | None:
        c = self._peek()
        if c in _OPENS:
            if lost := _LOST_KEY_QUOTE.match(self.text, self.at):
                self.at = lost.end()
                return lost[1]
            closing = _OPENS[c]
            end = self.at + 1
            limit = min(len(self.text), end + 200)
            while end < limit and self.text[end] not in closing:
                end += 1
            key, self.at = self.text[self.at + 1 : end], end + 1
            return key.replace("\\", "")
        match = _BARE_KEY.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match[0]

    def _pair(self, made: JsonObject, key: str, depth: int) -> None:
        self._skip()
        c = self._peek()
        if c and c in ":：=":
            self.at += 2 if self.text.startswith("=>", self.at) else 1
        elif not c or c not in "\"'“‘{[":
            # A key without a value, as in a set: {"move_left"}.
            made.put(key, None)
            return
        self._skip()
        if not self._peek():
            made.cut = True
            made.put(key, Truncated(""))
            return
        made.put(key, self._value(depth, in_list=False))

    def _list(self, depth: int) -> list[JsonValue]:
        if depth > DEEPEST:
            raise _Unreadable
        self.at += 1
        items: list[JsonValue] = []
        while True:
            self._skip()
            c = self._peek()
            if not c or c == "}":
                items.append(Truncated(""))  # the rest of the list is unknown
                return items
            if c == "]":
                self.at += 1
                return items
            if c in ",，;)":
                self.at += 1
                continue
            before = self.at
            items.append(self._value(depth, in_list=True))
            if self.at == before:
                raise _Unreadable

    def _text(self, quote: str, *, in_list: bool) -> str:
        if self.text.startswith('"""', self.at):
            return self._triple()
        start = self.at + 1
        after = _AFTER_ITEM if in_list else _AFTER_TEXT
        if lost := _LOST_QUOTE.match(self.text, start):
            self.at = lost.end()
            return lost[1]
        closing, at, parts, piece = _OPENS[quote], start, [], start
        while at < len(self.text):
            c = self.text[at]
            if c == "\\":
                parts.append(self.text[piece:at])
                parts.append(self._escape(at))
                at += 6 if self.text.startswith("u", at + 1) and len(parts[-1]) == 1 else 2
                piece = at
            elif c in closing and after.match(self.text, at + 1):
                self.at = at + 1
                return "".join([*parts, self.text[piece:at]])
            else:
                at += 1
        self.at = len(self.text)
        return Truncated("".join([*parts, self.text[piece:]]))

    def _triple(self) -> str:
        start = self.at + 3
        end = self.text.find('"""', start)
        if end < 0:
            self.at = len(self.text)
            return Truncated(self.text[start:])
        self.at = end + 3
        return self.text[start:end].strip()

    def _escape(self, at: int) -> str:
        c = self.text[at + 1 : at + 2]
        if c == "u":
            digits = self.text[at + 2 : at + 6]
            if len(digits) == 4 and all(d in "0123456789abcdefABCDEF" for d in digits):
                return chr(int(digits, 16))
            return "\\u"
        # Markdown escapes, as in move\_left, and unknown escapes.
        return _ESCAPES.get(c, c)

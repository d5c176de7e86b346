"""Regular expressions as GBNF, the notation of llama.cpp's grammars."""

from __future__ import annotations

import re

_QUANTIFIER = re.compile(r"[?*+]|\{\d+(?:,\d*)?\}")
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\n\r\x0b\x0c"}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}


def grammar_of(pattern: str) -> str:
    """Return the grammar of the texts that a regular expression matches as a whole.

    The expression uses what those of `wsap_llm.schemas.patterns` use: literals, escapes, character classes, groups,
    alternatives and greedy repetition. Raises ValueError for anything else. The notation is described in llama.cpp's
    `grammars/README.md`.
    """
    return f"root ::= {' '.join(_Reader(pattern).items())}"


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def items(self) -> list[str]:
        """Return the items of the grammar's only rule."""
        found: list[str] = []
        text = ""
        while self._at < len(self._pattern):
            item, literal = self._item()
            many = _QUANTIFIER.match(self._pattern, self._at)
            if many is not None:
                self._at = many.end()
            if literal and many is None:
                text += item
                continue
            if text:
                found.append(_quoted(text))
                text = ""
            shown = _quoted(item) if literal else item
            found.append(shown if many is None else shown + many[0])
        return [*found, *([_quoted(text)] if text else [])]

    def _item(self) -> tuple[str, bool]:
        """Return the next item, and whether it is a character that stands for itself."""
        start, character = self._at, self._pattern[self._at]
        self._at += 1
        if character == "\\":
            name, self._at = self._pattern[self._at], self._at + 1
            if name in _CLASSES:
                return f"[{_CLASSES[name]}]", False
            return self._escaped(name), True
        if character == "[":
            return self._class(), False
        if character == "(":
            if self._pattern.startswith("?:", self._at):
                self._at += 2
            elif self._pattern.startswith("?", self._at):
                raise ValueError(f"{self._pattern[start : start + 4]!r} has no counterpart in a grammar.")
            return "(", False
        if character == ".":
            return r"[^\n]", False
        if character in "^$?*+{":  # a quantifier after a quantifier makes it lazy or possessive
            raise ValueError(f"{character!r} has no counterpart in a grammar.")
        return (character, False) if character in "|)" else (character, True)

    def _escaped(self, name: str) -> str:
        """Return the character that an escape stands for; its name was read."""
        if name == "x":
            self._at += 2
            return chr(int(self._pattern[self._at - 2 : self._at], 16))
        if name == "u":
            self._at += 4
            return chr(int(self._pattern[self._at - 4 : self._at], 16))
        if name.isalnum() and name not in _ESCAPED:
            raise ValueError(f"'\\{name}' has no counterpart in a grammar.")
        return _ESCAPED.get(name, name)

    def _class(self) -> str:
        """Return a character class; its bracket was read."""
        parts = ["["]
        if self._pattern[self._at] == "^":
            parts.append("^")
            self._at += 1
        first = True
        while (character := self._pattern[self._at]) != "]" or first:
            self._at += 1
            first = False
            if character == "\\":
                name, self._at = self._pattern[self._at], self._at + 1
                parts.append(_CLASSES[name] if name in _CLASSES else _in_class(self._escaped(name)))
            else:
                parts.append("-" if character == "-" else _in_class(character))
        self._at += 1
        return "".join((*parts, "]"))


def _quoted(text: str) -> str:
    return '"' + "".join(_shown(character, '"\\') for character in text) + '"'


def _in_class(character: str) -> str:
    # Unescaped, a dash makes a range and a caret negates.
    return f"\\x{ord(character):02X}" if character in "-^" else _shown(character, "[]\\")


def _shown(character: str, special: str) -> str:
    if character in special:
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    named = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}.get(character)
    return named or (f"\\x{code:02X}" if code < 256 else f"\\u{code:04X}" if code < 65536 else f"\\U{code:08X}")

"""How long a match of a regular expression can be, for the kernel's kind of expressions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wsap_core.llm.errors import ConstraintError

_REPEAT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")


def most_characters(pattern: str) -> int | None:
    """Return the characters of the longest match; None if a repetition has no bound.

    Raises:
        ConstraintError: the expression is not well formed.
    """
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConstraintError(f"{pattern[:80]!r} is not a regular expression: {error}.") from error
    return _Reader(pattern).alternatives()


@dataclass
class _Reader:
    text: str
    at: int = 0

    def alternatives(self) -> int | None:
        """Read up to the end or the closing bracket; the longest alternative counts."""
        longest: int | None = 0
        while True:
            length = self.sequence()
            longest = None if longest is None or length is None else max(longest, length)
            if self.text[self.at : self.at + 1] != "|":
                return longest
            self.at += 1

    def sequence(self) -> int | None:
        """Read up to `|`, `)` or the end."""
        total: int | None = 0
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            length = self.atom()
            times = self.times()
            # Nothing, without end, is still nothing.
            part = 0 if length == 0 or times == 0 else None if length is None or times is None else length * times
            total = None if total is None or part is None else total + part
        return total

    def atom(self) -> int | None:
        """Read one piece without its repetition."""
        character = self.text[self.at]
        self.at += 1
        if character == "(":
            if self.text.startswith("?:", self.at):
                self.at += 2
            length = self.alternatives()
            self.at += 1
            return length
        if character == "\\":
            kind = self.text[self.at]
            self.at += {"x": 3, "u": 5, "U": 9}.get(kind, 1)
            return 0 if kind in "bBAZ" else 1
        if character == "[":
            # A bracket right at the beginning is one of the characters.
            self.at += self.text.startswith("^", self.at)
            self.at += self.text.startswith("]", self.at)
            while self.text[self.at] != "]":
                self.at += 2 if self.text[self.at] == "\\" else 1
            self.at += 1
            return 1
        return 0 if character in "^$" else 1

    def times(self) -> int | None:
        """Read a repetition: how often at most; 1 without one, None without a bound."""
        sign = self.text[self.at : self.at + 1]
        if sign in ("*", "+"):
            self.at += 1
            return None
        if sign == "?":
            self.at += 1
            return 1
        repeat = _REPEAT.match(self.text, self.at)
        if repeat is None:
            return 1
        self.at = repeat.end()
        least, comma, most = repeat.groups()
        return int(least) if not comma else int(most) if most else None

"""Parses regular expressions of the kernel's kind, and computes the length of their longest match."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wsap_core.seams.model_errors import ConstraintError

_REPEAT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")


@dataclass(frozen=True)
class Atom:
    """One character, as an expression."""

    text: str


@dataclass(frozen=True)
class Row:
    """A sequence of parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Branch:
    """Alternatives."""

    choices: tuple[Node, ...]


@dataclass(frozen=True)
class Many:
    """A repetition; `most` is None without a bound."""

    part: Node
    least: int
    most: int | None


Node = Atom | Row | Branch | Many
NOTHING = Row(())


def parse(pattern: str) -> Node:
    """Parse an expression; `ConstraintError` if it is invalid."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConstraintError(f"{pattern[:80]!r} is not a regular expression: {error}.") from error
    return _Reader(pattern).alternatives()


def most_characters(pattern: str) -> int | None:
    """Return the length of the longest match in characters, or None if there is no bound."""
    return _longest(parse(pattern))


def _longest(node: Node) -> int | None:
    match node:
        case Atom():
            return 1
        case Many(part, _, most):
            length = _longest(part)
            # Unbounded repetition of nothing is nothing.
            if length == 0 or most == 0:
                return 0
            return None if length is None or most is None else length * most
        case Row(parts):
            lengths = [_longest(part) for part in parts]
            return None if None in lengths else sum(length or 0 for length in lengths)
        case Branch(choices):
            lengths = [_longest(choice) for choice in choices]
            return None if None in lengths else max((length or 0 for length in lengths), default=0)


@dataclass
class _Reader:
    text: str
    at: int = 0

    def alternatives(self) -> Node:
        """Read up to the end or the closing bracket."""
        choices = [self.sequence()]
        while self.text[self.at : self.at + 1] == "|":
            self.at += 1
            choices.append(self.sequence())
        return choices[0] if len(choices) == 1 else Branch(tuple(choices))

    def sequence(self) -> Node:
        """Read up to `|`, `)` or the end."""
        parts: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            part = self.atom()
            least, most = self.times()
            parts.append(part if (least, most) == (1, 1) else Many(part, least, most))
        return parts[0] if len(parts) == 1 else Row(tuple(parts))

    def atom(self) -> Node:
        """Read one piece without its repetition."""
        start = self.at
        character = self.text[self.at]
        self.at += 1
        if character == "(":
            if self.text.startswith("?:", self.at):
                self.at += 2
            inner = self.alternatives()
            self.at += 1
            return inner
        if character == "\\":
            kind = self.text[self.at]
            self.at += {"x": 3, "u": 5, "U": 9}.get(kind, 1)
            return NOTHING if kind in "bBAZ" else Atom(self.text[start : self.at])
        if character == "[":
            # A bracket at the start is a character of the set.
            self.at += self.text.startswith("^", self.at)
            self.at += self.text.startswith("]", self.at)
            while self.text[self.at] != "]":
                self.at += 2 if self.text[self.at] == "\\" else 1
            self.at += 1
            return Atom(self.text[start : self.at])
        if character in "^$":
            return NOTHING
        return Atom("." if character == "." else re.escape(character))

    def times(self) -> tuple[int, int | None]:
        """Read a repetition: minimum and maximum."""
        sign = self.text[self.at : self.at + 1]
        if sign in ("*", "+", "?"):
            self.at += 1
            return (1 if sign == "+" else 0), (1 if sign == "?" else None)
        repeat = _REPEAT.match(self.text, self.at)
        if repeat is None:
            return 1, 1
        self.at = repeat.end()
        least, comma, most = repeat.groups()
        return int(least), int(least) if not comma else int(most) if most else None

"""The shortest end of a constrained reply, so that the token limit does not cut it in the middle.

The constraint's expression is converted to an automaton over characters, with the shortest path from each state to the
end. The generator reserves that many tokens; when they are needed, it writes the shortest end instead of running the
model. A token has at least one byte, and there is a token for each byte, so the path's number of bytes is enough.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wsap_core.seams.model_errors import ConstraintError
from wsap_outlines.guiding.lengths import Atom, Branch, Many, Node, Row, parse

__all__ = ["Closing", "Reserve"]

MARGIN = 4
"""Additional reserved tokens: a character whose first byte is written may need three more."""
_CHEAP = "".join(chr(code) for code in range(33, 127)) + " \n\t"
"""Characters of one byte, preferred ones first."""
_END = 0
_FAR = 1 << 30


@dataclass(frozen=True)
class _Edge:
    accepts: re.Pattern[str]
    cheapest: str
    target: int


class Closing:
    """The automaton of an expression of the kind that `wsap_llm.kit.json_pattern` returns; `ConstraintError` if it is
    invalid."""

    def __init__(self, pattern: str) -> None:
        self._silent: list[list[int]] = [[]]
        self._edges: list[list[_Edge]] = [[]]
        self._atoms: dict[str, tuple[re.Pattern[str], str]] = {}
        self._first = self._build(parse(pattern), _END)
        self._left, self._next = self._measure()

    def start(self) -> frozenset[int]:
        """Return the states before the first character."""
        return self._closed({self._first})

    def step(self, states: frozenset[int], text: str) -> frozenset[int]:
        """Return the states after a text; empty if it does not match."""
        for character in text:
            reached = {e.target for s in states for e in self._edges[s] if e.accepts.fullmatch(character)}
            states = self._closed(reached)
        return states

    def left(self, states: frozenset[int]) -> int:
        """Return the bytes of the shortest end."""
        return min((self._left[state] for state in states), default=_FAR)

    def shortest(self, states: frozenset[int]) -> str:
        """Return the shortest end."""
        text: list[str] = []
        at = min(states, key=lambda state: (self._left[state], state))
        while at != _END:
            said, at = self._next[at]
            text.append(said)
        return "".join(text)

    def _closed(self, states: set[int]) -> frozenset[int]:
        waiting = list(states)
        while waiting:
            for state in self._silent[waiting.pop()]:
                if state not in states:
                    states.add(state)
                    waiting.append(state)
        return frozenset(states)

    # --- construction --------------------------------------------------------------------------

    def _new(self) -> int:
        self._silent.append([])
        self._edges.append([])
        return len(self._silent) - 1

    def _build(self, node: Node, end: int) -> int:
        """Return the state from which a node leads to `end`."""
        match node:
            case Atom(text):
                accepts, cheapest = self._atom(text)
                state = self._new()
                self._edges[state].append(_Edge(accepts, cheapest, end))
                return state
            case Row(parts):
                for part in reversed(parts):
                    end = self._build(part, end)
                return end
            case Branch(choices):
                state = self._new()
                self._silent[state] += [self._build(choice, end) for choice in choices]
                return state
            case Many(part, least, most):
                return self._repeat(part, least, most, end)

    def _repeat(self, part: Node, least: int, most: int | None, end: int) -> int:
        at = self._new()
        self._silent[at].append(end)
        if most is None:
            self._silent[at].append(self._build(part, at))
        else:
            for _ in range(most - least):
                here = self._build(part, at)
                at = self._new()
                self._silent[at] += [here, end]
        for _ in range(least):
            at = self._build(part, at)
        return at

    def _atom(self, text: str) -> tuple[re.Pattern[str], str]:
        if text not in self._atoms:
            accepts = re.compile(text, re.DOTALL)
            cheapest = next((c for c in _CHEAP if accepts.fullmatch(c)), "")
            if not cheapest:  # another script, or a control character
                cheapest = next((chr(c) for c in range(0xD800) if accepts.fullmatch(chr(c))), "")
            if not cheapest:
                raise ConstraintError(f"No character matches {text[:80]!r}.")
            self._atoms[text] = accepts, cheapest
        return self._atoms[text]

    def _measure(self) -> tuple[list[int], dict[int, tuple[str, int]]]:
        """Return each state's distance from the end in bytes, and its first step to it."""
        before: list[list[tuple[int, int, str]]] = [[] for _ in self._silent]
        for state, (silent, edges) in enumerate(zip(self._silent, self._edges, strict=True)):
            for target in silent:
                before[target].append((0, state, ""))
            for edge in edges:
                before[edge.target].append((len(edge.cheapest.encode()), state, edge.cheapest))
        left = [_FAR] * len(self._silent)
        steps: dict[int, tuple[str, int]] = {}
        left[_END] = 0
        waiting = [(0, _END)]
        while waiting:
            length, state = heapq.heappop(waiting)
            if length > left[state]:
                continue
            for more, previous, said in before[state]:
                if length + more < left[previous]:
                    left[previous] = length + more
                    steps[previous] = (said, state)
                    heapq.heappush(waiting, (length + more, previous))
        return left, steps


class Reserve:
    """The reserve of tokens for the end of one reply, of which `said` is written; `pieces` are tokens by bytes."""

    def __init__(self, closing: Closing, pieces: Mapping[bytes, Sequence[int]], said: str) -> None:
        self._closing = closing
        self._pieces = pieces
        self._states = closing.step(closing.start(), said)
        self._rest: bytes | None = None

    @property
    def through(self) -> bool:
        """Whether the end is written."""
        return self._rest == b""

    def affords(self, text: str, tokens: int) -> bool:
        """Return whether a text can be written with that many tokens left after it."""
        if self._rest is not None:
            return False
        states = self._closing.step(self._states, text)
        # The engine decides about texts that the automaton does not match.
        return not states or self._closing.left(states) + MARGIN <= tokens

    def said(self, text: str) -> None:
        """Append text to the reply."""
        if self._rest is None and self._states:
            self._states = self._closing.step(self._states, text)

    def token(self, mask: Any) -> int | None:
        """Return the next token of the shortest end, or None if the engine's mask allows none."""
        if self._rest is None:
            self._rest = self._closing.shortest(self._states).encode() if self._states else b""
        for length in range(len(self._rest), 0, -1):
            for token in self._pieces.get(self._rest[:length], ()):
                if int(mask[token // 32]) >> token % 32 & 1:
                    self._rest = self._rest[length:]
                    return token
        return None

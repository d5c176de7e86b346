"""Decodes tokens incrementally, and finds stop texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


class Decoder:
    """Decodes tokens one at a time, holding back incomplete characters. `before` are the last tokens of the prompt,
    because some tokenizers decode a token differently at the start of a text."""

    def __init__(self, tokenizer: Any, before: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._ids = list(before)
        self._start = 0
        self._said = len(self._ids)

    def add(self, token: int) -> str:
        """Return the text that a token completes, perhaps empty."""
        self._ids.append(token)
        text = self._new()
        if text.endswith("�"):
            return ""
        self._start, self._said = self._said, len(self._ids)
        return text

    def peek(self, token: int) -> str:
        """Return what `add` would return."""
        self._ids.append(token)
        text = self._new()
        self._ids.pop()
        return "" if text.endswith("�") else text

    def end(self) -> str:
        """Return the rest, even if incomplete."""
        text = self._new()
        self._start = self._said = len(self._ids)
        return text

    def _new(self) -> str:
        before = self._decode(self._ids[self._start : self._said])
        return self._decode(self._ids[self._start :])[len(before) :]

    def _decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))


class Stops:
    """Passes text on up to the first stop text, holding back possible beginnings of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""
        self.found: str | None = None
        """The stop text that ended the reply."""

    def feed(self, text: str) -> str:
        """Return the text that can be passed on."""
        if self.found is not None:
            return ""
        self._held += text
        hits = [(at, stop) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if hits:
            at, self.found = min(hits)
            said, self._held = self._held[:at], ""
            return said
        keep = max(self._beginnings(), default=0)
        said, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return said

    def end(self) -> str:
        """Return the held-back text at the end."""
        held, self._held = self._held, ""
        return held

    def _beginnings(self) -> Iterator[int]:
        for stop in self._stops:
            for size in range(min(len(stop) - 1, len(self._held)), 0, -1):
                if stop.startswith(self._held[-size:]):
                    yield size
                    break

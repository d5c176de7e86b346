"""Telling `<think>` blocks from the reply while both are still coming."""

from __future__ import annotations

from collections.abc import Iterator

from wsap_core.seams.model import TextChunk, ThinkingChunk

_OPEN = "<think>"
_CLOSE = "</think>"


class ThinkSplitter:
    """Takes a reply piece by piece and gives it back as text and thinking.

    Only a block at the very beginning is thinking, as models write it: the same letters further on,
    say in a quotation, are text, and so is the tag `<thinking>` of the tag style, which agents read
    themselves. A block that is never closed is thinking to its end. White space around the block
    goes with it.

    Args:
        opened: the chat template has written the opening tag into the prompt already, so that the
            reply begins in the middle of the block.
    """

    def __init__(self, *, opened: bool = False) -> None:
        self._held = ""
        self._thinking = opened
        self._saying = False
        self._starting = not opened  # nothing but white space so far
        self._trimming = False  # between the block and the text

    @property
    def saying(self) -> bool:
        """Whether everything from here on is text."""
        return self._saying

    def feed(self, piece: str) -> Iterator[TextChunk | ThinkingChunk]:
        """Give what can be told of everything so far; a tag that may be incomplete is kept back."""
        if self._saying:
            if piece:
                yield TextChunk(piece)
            return
        self._held += piece
        if self._starting:
            self._start()
        if self._thinking:
            yield from self._think()
        if self._trimming:
            self._held = self._held.lstrip()
            self._saying = bool(self._held)
        if self._saying and self._held:
            held, self._held = self._held, ""
            yield TextChunk(held)

    def close(self) -> Iterator[TextChunk | ThinkingChunk]:
        """Give what was kept back; the reply is at its end."""
        held, self._held = self._held, ""
        if held and self._thinking:
            yield ThinkingChunk(held)
        elif held and not self._trimming:
            yield TextChunk(held)

    def _start(self) -> None:
        bare = self._held.lstrip()
        if bare.startswith(_OPEN):
            self._starting, self._thinking = False, True
            self._held = bare[len(_OPEN) :]
        elif not _OPEN.startswith(bare):
            self._starting, self._saying = False, True

    def _think(self) -> Iterator[ThinkingChunk]:
        thought, tag, rest = self._held.partition(_CLOSE)
        if tag:
            self._thinking, self._trimming, self._held = False, True, rest
        else:
            kept = _overlap(thought)
            thought, self._held = thought[: len(thought) - kept], thought[len(thought) - kept :]
        if thought:
            yield ThinkingChunk(thought)


def _overlap(text: str) -> int:
    """Return how many characters at the end of a text may be the beginning of the closing tag."""
    for size in range(min(len(text), len(_CLOSE) - 1), 0, -1):
        if _CLOSE.startswith(text[-size:]):
            return size
    return 0

"""Separating a model's thinking from its reply, in a whole reply and while it is still streamed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from wsap_core.seams.model import TextChunk, ThinkingChunk

_TAG = re.compile(
    r"(?P<open><\s*(?:think|thinking|thought|reasoning|reflection|scratchpad)\s*>|\[THINK\]|◁think▷"
    r"|<\|channel\|>\s*(?:analysis|commentary)\s*<\|message\|>)"
    r"|(?P<close><\s*/\s*(?:think|thinking|thought|reasoning|reflection|scratchpad)\s*>|\[/THINK\]|◁/think▷"
    r"|<\|(?:end|start)\|>(?:\s*assistant)?(?:<\|channel\|>\s*final\s*<\|message\|>)?"
    r"|<\|channel\|>\s*final\s*<\|message\|>)",
    re.IGNORECASE,
)
# Ends of turns, as the families of chat templates write them, that leak into a reply.
TEMPLATE_TOKEN = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|return|call|endoftext|end_of_text|end_of_turn|assistant|message|begin_of_text"
    r"|python_tag|end_of_role)\|>|<end_of_turn>|</s>|<s>|<eos>|<bos>|\[/?INST\]|<\|END_OF_TURN_TOKEN\|>"
    r"|<｜end▁of▁sentence｜>|\[TOOL_CALLS\]"
)
_OPEN = "<think>"
_CLOSE = "</think>"


@dataclass(frozen=True)
class Split:
    """A reply with the thinking taken out."""

    said: str
    """What is left."""
    thought: str
    """The thinking, without its tags."""
    unfinished: bool
    """True if the last thinking was never closed, so that nothing follows it."""


def split_thinking(text: str) -> Split:
    """Return what was said and what was thought, in time proportional to the text.

    Knows the tags of the common families (`<think>`, `<thinking>`, `[THINK]`, the channels of
    gpt-oss), a closing tag without an opening one (the template wrote that into the prompt), and
    an opening tag without a closing one (the model ran out of tokens).
    """
    said: list[str] = []
    thought: list[str] = []
    depth, at = 0, 0
    for tag in _TAG.finditer(text):
        piece, at = text[at : tag.start()], tag.end()
        if tag["open"]:
            (thought if depth else said).append(piece)
            depth += 1
        elif depth:
            thought.append(piece)
            depth -= 1
        elif tag["close"].startswith("<|end|>") or tag["close"].startswith("<|start|>"):
            said.append(piece)
        else:
            # Everything up to here was thinking: it was opened in the prompt.
            thought.extend([*said, piece])
            said.clear()
    (thought if depth else said).append(text[at:])
    return Split("".join(said).strip(), "".join(thought).strip(), depth > 0)


class ThinkSplitter:
    """Takes a reply piece by piece and gives it back as text and thinking.

    Only a `<think>` block at the very beginning is thinking, as models write it: the same letters further on, say in a
    quotation, are text, and so is the tag `<thinking>` of the tag style, which agents read themselves. A block that is
    never closed is thinking to its end. White space around the block goes with it. `opened` if the chat template has
    written the opening tag into the prompt.
    """

    def __init__(self, *, opened: bool = False) -> None:
        self._held = ""
        self._place: Literal["start", "thinking", "gap", "text"] = "thinking" if opened else "start"
        """At the start there was nothing but white space, in the gap nothing but that after the block."""

    @property
    def saying(self) -> bool:
        """Whether everything from here on is text."""
        return self._place == "text"

    def feed(self, piece: str) -> Iterator[TextChunk | ThinkingChunk]:
        """Give what can be told of everything so far; a tag that may be incomplete is kept back."""
        self._held += piece
        if self._place == "start":
            bare = self._held.lstrip()
            if bare.startswith(_OPEN):
                self._place, self._held = "thinking", bare[len(_OPEN) :]
            elif not _OPEN.startswith(bare):
                self._place = "text"
        if self._place == "thinking":
            thought, tag, rest = self._held.partition(_CLOSE)
            if tag:
                self._place, self._held = "gap", rest
            else:
                kept = _overlap(thought)
                thought, self._held = thought[: len(thought) - kept], thought[len(thought) - kept :]
            if thought:
                yield ThinkingChunk(thought)
        if self._place == "gap":
            self._held = self._held.lstrip()
            if self._held:
                self._place = "text"
        if self._place == "text":
            yield from self.close()

    def close(self) -> Iterator[TextChunk | ThinkingChunk]:
        """Give what was kept back; the reply is at its end."""
        held, self._held = self._held, ""
        if held and self._place != "gap":
            yield ThinkingChunk(held) if self._place == "thinking" else TextChunk(held)


def _overlap(text: str) -> int:
    """Return how many characters at the end of a text may be the beginning of the closing tag."""
    sizes = range(min(len(text), len(_CLOSE) - 1), 0, -1)
    return next((size for size in sizes if _CLOSE.startswith(text[-size:])), 0)

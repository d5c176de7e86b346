"""Separates a model's thinking from its reply, in a whole reply and in a stream."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from wsap_core.seams.model import Draft

_TAG = re.compile(
    r"(?P<open><\s*(?:think|thinking|thought|reasoning|reflection|scratchpad)\s*>|\[THINK\]|◁think▷"
    r"|<\|channel\|>\s*(?:analysis|commentary)\s*<\|message\|>)"
    r"|(?P<close><\s*/\s*(?:think|thinking|thought|reasoning|reflection|scratchpad)\s*>|\[/THINK\]|◁/think▷"
    r"|<\|(?:end|start)\|>(?:\s*assistant)?(?:<\|channel\|>\s*final\s*<\|message\|>)?"
    r"|<\|channel\|>\s*final\s*<\|message\|>)",
    re.IGNORECASE,
)
# A call of gpt-oss whose server left it as it was written: its header, with the function either side of the channel.
_CHANNEL_CALL = re.compile(
    r"(?:<\|start\|>\s{0,3}assistant\s{0,3})?(?:to=(?:functions\.)?(?P<before>[\w-]{1,80})\s{0,3})?"
    r"<\|channel\|>\s{0,3}commentary\s{0,3}(?:to=(?:functions\.)?(?P<after>[\w-]{1,80})\s{0,3})?"
    r"(?:<\|constrain\|>\s{0,3})?(?:json\s{0,3})?<\|message\|>\s{0,20}"
    r"(?P<given>\{.{0,4000}?\})\s{0,20}(?:<\|call\|>|<\|end\|>|\Z)",
    re.DOTALL,
)
# The same format where a server has dropped the tokens, but not the words in them.
_WORDS_LEFT = re.compile(r"\s*analysis(?P<thought>.*?)assistantfinal(?P<said>.*)", re.DOTALL)
# Tokens of chat templates that leak into replies.
TEMPLATE_TOKEN = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|return|call|endoftext|end_of_text|end_of_turn|assistant|message|begin_of_text"
    r"|python_tag|end_of_role)\|>|<end_of_turn>|</s>|<s>|<eos>|<bos>|\[/?INST\]|<\|END_OF_TURN_TOKEN\|>"
    r"|<｜end▁of▁sentence｜>|\[TOOL_CALLS\]"
)
_OPEN = "<think>"
_CLOSE = "</think>"


@dataclass(frozen=True)
class Split:
    """A reply separated from its thinking."""

    said: str
    """The reply without the thinking."""
    thought: str
    """The thinking, without its tags."""
    unfinished: bool
    """Whether the last thinking was not closed."""


def split_thinking(text: str) -> Split:
    """Split a reply into text and thinking, in linear time.

    Supports the tags of the common families (`<think>`, `<thinking>`, `[THINK]`, the channels of gpt-oss), a closing
    tag alone (if the template opened it in the prompt), and an opening tag alone (if the model ran out of tokens). A
    call that gpt-oss wrote in its channel for calls is text, as JSON with `name` and `arguments`.
    """
    if (bare := _WORDS_LEFT.fullmatch(text)) is not None:
        return Split(bare["said"].strip(), bare["thought"].strip(), False)
    if "<|channel|>" in text:
        text = _CHANNEL_CALL.sub(_as_json, text)
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
            # Everything so far was thinking: it was opened in the prompt.
            thought.extend([*said, piece])
            said.clear()
    (thought if depth else said).append(text[at:])
    return Split("".join(said).strip(), "".join(thought).strip(), depth > 0)


def _as_json(call: re.Match[str]) -> str:
    name = call["after"] or call["before"]
    return f'{{"name": "{name}", "arguments": {call["given"]}}}' if name else call["given"]


class ThinkSplitter:
    """Gathers a streamed reply, split into text and thinking.

    Only a `<think>` block at the start is thinking: a later one, for example in a quotation, is text, and so is the tag
    `<thinking>` of the tag style, which agents parse. A block that is not closed is thinking to its end. White space
    around the block is removed. `opened` if the chat template puts the opening tag into the prompt.
    """

    def __init__(self, *, opened: bool = False) -> None:
        self._held = ""
        self._place: Literal["start", "thinking", "gap", "text"] = "thinking" if opened else "start"
        """At the start and in the gap after the block there was only white space so far."""
        self._text: list[str] = []
        self._thinking: list[str] = []

    @property
    def draft(self) -> Draft:
        """The text and thinking so far; a tag that may be incomplete is held back."""
        return Draft("".join(self._text), "".join(self._thinking))

    def think(self, piece: str) -> None:
        """Add a piece of thinking that the server separates from the reply."""
        self._thinking.append(piece)

    def feed(self, piece: str) -> None:
        """Add a piece of the reply."""
        if self._place == "text":
            self._text.append(piece)
            return
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
            self._thinking.append(thought)
        if self._place == "gap":
            self._held = self._held.lstrip()
            if self._held:
                self._place = "text"
        if self._place == "text":
            self.close()

    def close(self) -> Draft:
        """Add the rest at the end of the reply, and return the whole."""
        held, self._held = self._held, ""
        if held and self._place != "gap":
            (self._thinking if self._place == "thinking" else self._text).append(held)
        return self.draft


def _overlap(text: str) -> int:
    """Return how many characters at the end of a text may be the start of the closing tag."""
    sizes = range(min(len(text), len(_CLOSE) - 1), 0, -1)
    return next((size for size in sizes if _CLOSE.startswith(text[-size:])), 0)

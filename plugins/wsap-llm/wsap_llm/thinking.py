"""Telling what a model thought aloud from what it replied."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    r"|<｜end▁of▁sentence｜>|\[TOOL_CALLS\]",
)


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

"""Prompts as text, by the model's chat template, and as tokens whose prefix stays the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wsap_core.seams.model import Message, Request
from wsap_core.seams.model_errors import BadRequestError

PLAIN_TEMPLATE = """\
{% for message in messages %}{{ '### ' + message['role'] + '\\n' + message['content'] + '\\n\\n' }}{% endfor %}\
{{ '### assistant\\n' }}"""
"""For models without a chat template."""
_OPEN = "<think>"


def render(tokenizer: Any, request: Request) -> str:
    """Return the prompt in the model's chat template, followed by the prefill (or a trailing assistant message).

    Special tokens within messages are broken up, so that no message can pass for another. `BadRequestError` if the
    template does not accept the messages.
    """
    messages, prefill = list(request.messages), request.prefill
    if messages and messages[-1].role == "assistant":
        prefill = messages.pop().text() + prefill
    turns = _turns(messages, [token for token in tokenizer.all_special_tokens if len(token) > 2])
    more = {} if request.thinking is None else {"enable_thinking": request.thinking}
    template = None if getattr(tokenizer, "chat_template", None) else PLAIN_TEMPLATE
    try:
        text = _apply(tokenizer, turns, template, more)
    except Exception as first:  # templates raise anything
        # Some templates have no system message; it then starts the user's first turn.
        if not turns or turns[0]["role"] != "system":
            raise BadRequestError(f"The model's chat template can't be filled in: {first}.") from first
        joined = _turns([Message("user", turn["content"]) if i == 0 else Message(turn["role"], turn["content"])  # type: ignore[arg-type]
                         for i, turn in enumerate(turns)], ())  # fmt: skip
        try:
            text = _apply(tokenizer, joined, template, more)
        except Exception as error:
            raise BadRequestError(f"The model's chat template can't be filled in: {error}.") from error
    if request.thinking and not prefill and _OPEN in (tokenizer.chat_template or "") and not opened(text):
        text += f"{_OPEN}\n"
    return text + prefill


def opened(prompt: str) -> bool:
    """Return whether the reply starts inside a block of thinking."""
    return prompt.rstrip().endswith(_OPEN)


def _apply(tokenizer: Any, turns: list[dict[str, str]], template: str | None, more: dict[str, Any]) -> str:
    return str(
        tokenizer.apply_chat_template(turns, chat_template=template, tokenize=False, add_generation_prompt=True, **more)
    )


def _turns(messages: Sequence[Message], special: Sequence[str]) -> list[dict[str, str]]:
    """Return messages for templates; adjacent ones of one role are merged, because many templates require turns."""
    turns: list[dict[str, str]] = []
    for message in messages:
        role = "user" if message.role == "observation" else message.role
        text = message.text()
        for token in special:
            text = text.replace(token, f"{token[0]} {token[1:]}")
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{text}"
        else:
            turns.append({"role": role, "content": text})
    return turns


@dataclass
class Transcript:
    """A text with its tokens, and the places where both may be cut.

    A tokenizer can merge text on both sides of a cut into one token, so that the tokens of a longer text don't start
    with those of a shorter one. Here a text that continues an earlier one keeps its tokens, and only the rest is
    tokenized.
    """

    text: str = ""
    ids: list[int] = field(default_factory=list)
    cuts: list[tuple[int, int]] = field(default_factory=list)
    """(characters, tokens) before each place, ascending."""

    def tokens(self, tokenizer: Any, text: str) -> list[int]:
        """Become the transcript of a text and return its tokens; `BadRequestError` if there are none."""
        characters, count = self._common(text)
        if count:
            kept = self.ids[:count]
            # Templates contain special tokens; added text may contain an observation, in which they are plain text.
            new = encode(tokenizer, text[characters:], special=False) if characters < len(text) else []
            self.cuts = [cut for cut in self.cuts if cut[1] <= count]
        else:
            kept, new, self.cuts = [], encode(tokenizer, text, special=True), []
        if not kept and not new:
            raise BadRequestError("The prompt is empty.")
        self.text, self.ids = text, [*kept, *new]
        self._cut()
        return list(self.ids)

    def said(self, token: int, text: str) -> None:
        """Append a token of the reply and the text that it completes."""
        self.ids.append(token)
        if text:
            self.text += text
            self._cut()

    def _cut(self) -> None:
        self.cuts.append((len(self.text), len(self.ids)))

    def _common(self, text: str) -> tuple[int, int]:
        """Return the last cut up to which a text starts with this one; the first cut is the end of the prompt."""
        low, high = 0, len(self.cuts)
        while low < high:
            middle = (low + high) // 2
            if text.startswith(self.text[: self.cuts[middle][0]]):
                low = middle + 1
            else:
                high = middle
        return self.cuts[low - 1] if low else (0, 0)


def encode(tokenizer: Any, text: str, *, special: bool) -> list[int]:
    """Return the tokens of a text, without any that the tokenizer would add."""
    return list(tokenizer.encode(text, add_special_tokens=False, split_special_tokens=not special))

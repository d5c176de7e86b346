"""How many tokens a text has, as far as that can be told without the model's own tokenizer."""

from __future__ import annotations

import re
from functools import lru_cache

from wsap_core.llm.pictures import size_of
from wsap_core.llm.types import ImagePart, Message, Request

_TOKEN = re.compile(r"[A-Za-z]{1,6}|\d|[^\sA-Za-z\d]")
_CACHE = "_tokens"
IMAGE_TOKENS = 1200
"""What a picture is counted as at least; models take from 85 to 2,880 tokens for a small one."""
PIXELS_A_TOKEN = 750
"""Pixels that a token stands for in large pictures, as Anthropic counts them; Qwen's models take 784."""
MESSAGE_TOKENS = 4
"""What a chat template adds to each message."""


@lru_cache(maxsize=4096)
def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has, rather too many than too few.

    A word counts one token for every six letters begun, a digit and any other mark one each,
    and a character beyond ASCII one; common tokenizers need less for all but random text.
    """
    if not text.isascii():
        extra = sum(1 for c in text if ord(c) > 127)
        return extra + estimate_tokens("".join(c if ord(c) < 128 else " " for c in text))
    return len(_TOKEN.findall(text))


def estimate_picture(part: ImagePart) -> int:
    """Return about how many tokens a picture takes: 1,200, or one for every 750 pixels where that is more."""
    size = size_of(part)
    return IMAGE_TOKENS if size is None else max(IMAGE_TOKENS, -(-size[0] * size[1] // PIXELS_A_TOKEN))


def estimate_message(message: Message) -> int:
    """Return about how many tokens a message takes, its pictures and its place in the chat template included."""
    # Kept with the message: the same ones are in every request of a conversation, and a cache for all
    # conversations would have to be as large as all of them.
    known: int | None = message.__dict__.get(_CACHE)
    if known is None:
        known = _counted(message)
        object.__setattr__(message, _CACHE, known)
    return known


def _counted(message: Message) -> int:
    if isinstance(message.content, str):
        return MESSAGE_TOKENS + estimate_tokens(message.content)
    # What a picture shows, in words, is only said where the picture is not, and takes less.
    parts = (estimate_picture(p) if isinstance(p, ImagePart) else estimate_tokens(p.text) for p in message.content)
    return MESSAGE_TOKENS + sum(parts)


def estimate_request(request: Request) -> int:
    """Return about how many tokens the prompt of a request has."""
    return estimate_tokens(request.prefill) + sum(map(estimate_message, request.messages))

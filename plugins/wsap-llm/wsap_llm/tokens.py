"""How many tokens a text has, as far as that can be told without the model's own tokenizer."""

from __future__ import annotations

from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import ImagePart, Message, Request
from wsap_llm.pictures import size_of

_CACHE = "_tokens"
IMAGE_TOKENS = 1200
"""What a picture is counted as at least; models take from 85 to 2,880 tokens for a small one."""
PIXELS_A_TOKEN = 750
"""Pixels that a token stands for in large pictures, as Anthropic counts them; Qwen's models take 784."""
MESSAGE_TOKENS = 4
"""What a chat template adds to each message."""


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


def reserve_of(request: Request, tokens: int, context: int | None, *, thinks: bool) -> int:
    """Return how many of so many tokens for thinking are added to those of the reply: none where the model is told not
    to think, or has neither been told nor seen to; no more than the context has room for."""
    if request.thinking is False or not (thinks or request.thinking):
        return 0
    if context is None:
        return tokens
    return max(0, min(tokens, context - estimate_request(request) - (request.sampling.max_tokens or 0)))

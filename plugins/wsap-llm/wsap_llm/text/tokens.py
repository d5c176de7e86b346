"""Estimates of tokens without the model's tokenizer."""

from __future__ import annotations

from dataclasses import replace

from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import ImagePart, Message, Request
from wsap_llm.text.pictures import size_of

_CACHE = "_tokens"
IMAGE_TOKENS = 1200
"""Minimum estimate for a picture; models take from 85 to 2,880 tokens for a small one."""
PIXELS_A_TOKEN = 750
"""Pixels per token of large pictures, by Anthropic's formula; Qwen's models have 784."""
MESSAGE_TOKENS = 4
"""Tokens that a chat template adds to each message."""


def estimate_picture(part: ImagePart) -> int:
    """Return the estimated tokens of a picture: one for every 750 pixels, at least 1,200."""
    size = size_of(part)
    return IMAGE_TOKENS if size is None else max(IMAGE_TOKENS, -(-size[0] * size[1] // PIXELS_A_TOKEN))


def estimate_message(message: Message) -> int:
    """Return the estimated tokens of a message, with its pictures and the overhead of the chat template."""
    # Cached on the message, which is in every request of a conversation; a shared cache would have to hold all.
    known: int | None = message.__dict__.get(_CACHE)
    if known is None:
        known = _counted(message)
        object.__setattr__(message, _CACHE, known)
    return known


def _counted(message: Message) -> int:
    if isinstance(message.content, str):
        return MESSAGE_TOKENS + estimate_tokens(message.text())
    # The alternative text of a picture only replaces it, and takes fewer tokens.
    parts = (estimate_picture(p) if isinstance(p, ImagePart) else estimate_tokens(p.text) for p in message.content)
    return MESSAGE_TOKENS + sum(parts)


def estimate_request(request: Request) -> int:
    """Return the estimated tokens of a request's prompt."""
    return estimate_tokens(request.prefill) + sum(map(estimate_message, request.messages))


LEAST_REPLY = 256
"""The tokens of a reply that a request keeps if its prompt leaves less than it asks for."""


def within_context(request: Request, context: int | None) -> Request:
    """Return a request whose reply has at most the tokens that the prompt leaves of a context; unchanged if it leaves
    less than `LEAST_REPLY`, so that it does not fit."""
    most = request.sampling.max_tokens
    if context is None or most is None:
        return request
    left = context - estimate_request(request)
    if left >= most or left < LEAST_REPLY:
        return request
    return replace(request, sampling=replace(request.sampling, max_tokens=left))


def reserve_of(request: Request, tokens: int, context: int | None, *, thinks: bool) -> int:
    """Return the tokens for thinking to add to those of the reply: at most `tokens` and the rest of the context; 0 if
    thinking is off, or neither on nor seen before."""
    if request.thinking is False or not (thinks or request.thinking):
        return 0
    if context is None:
        return tokens
    return max(0, min(tokens, context - estimate_request(request) - (request.sampling.max_tokens or 0)))

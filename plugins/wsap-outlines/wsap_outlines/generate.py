"""The loop that generates a reply: tokens from the model, masked by the constraint."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wsap_core.seams.agent import Usage
from wsap_core.seams.constraints import ChooseConstraint, WrittenConstraint
from wsap_core.seams.model import Finish, FinishReason, OnText, Reply, Request
from wsap_core.seams.model_errors import ConstraintError, ContextTooSmallError
from wsap_llm.kit import ThinkSplitter
from wsap_outlines.choose import choose
from wsap_outlines.guiding.closing import Reserve
from wsap_outlines.guiding.guides import Guide, Guides
from wsap_outlines.models.cached import Cancelled
from wsap_outlines.models.loading import Loaded
from wsap_outlines.options import Options
from wsap_outlines.prompts import Transcript, encode, opened, render
from wsap_outlines.sampling import Chooser, only
from wsap_outlines.text import Decoder, Stops

_CLOSE = "</think>"
EARLY = 128
"""Remaining tokens at which the reserve for a reply's end starts; half of all tokens if those are more."""


@dataclass(frozen=True)
class Work:
    """The tokens of a request."""

    prompt: int
    """Tokens of the prompt."""
    reused: int
    """Tokens of the prompt that were in the cache."""
    completion: int = 0
    """Tokens of the reply."""


class Generator:
    """Generates replies of one model, one at a time, with the key-value cache kept between them; not thread-safe."""

    def __init__(self, loaded: Loaded, options: Options) -> None:
        self.loaded = loaded
        self.cached = loaded.sequence()
        self.work: Work | None = None
        """The work of the last request."""
        self._options = options
        self._guides: Guides | None = None
        self._transcript = Transcript()

    def reply(self, request: Request, cancel: threading.Event, on_text: OnText | None = None) -> Reply:
        """Return the reply (see `Backend`); `Cancelled` if `cancel` is set before the end."""
        prompt = render(self.loaded.tokenizer, request)
        ids = self._transcript.tokens(self.loaded.tokenizer, prompt)
        size = len(ids)
        most = self._room(request, size)
        guide = self._guide(request)
        reused = self.cached.rewind(ids)
        self.work = Work(size, reused)
        splitter = ThinkSplitter(opened=opened(prompt) and not request.prefill)
        stops = Stops(request.stop)
        run = _Run(self, ids, guide, cancel, request, thinking=opened(prompt), most=most)
        for text in run.texts():
            said = stops.feed(text)
            if said:
                splitter.feed(said)
                if on_text is not None:
                    on_text(splitter.draft)
            if stops.found is not None:
                break
        if held := stops.end():
            splitter.feed(held)
        draft = splitter.close()
        self.work = Work(size, reused, run.count)
        reason: FinishReason = "stop_sequence" if stops.found is not None else run.reason
        ended = Finish(reason, stops.found, Usage(1, size, run.count, 0.0), run.probabilities)
        return Reply(draft.text, draft.thinking, ended)

    def remember(self, token: int, text: str) -> None:
        """Append a token of the reply to the transcript, so that the next request can continue after it."""
        self._transcript.said(token, text)

    def clear(self) -> None:
        """Release the cache's memory."""
        self.cached.clear()
        self._transcript = Transcript()

    def _guide(self, request: Request) -> Guide | None:
        if request.constraint is None or isinstance(request.constraint, ChooseConstraint):
            return None
        if not isinstance(request.constraint, WrittenConstraint):
            raise ConstraintError("This backend does not support the constraint.")
        if self._guides is None:
            self._guides = self.loaded.guides(self._options)
        return self._guides.guide(request.constraint)

    def reserve(self, constraint: WrittenConstraint, said: str) -> Reserve | None:
        """See `Guides.reserve`."""
        return None if self._guides is None else self._guides.reserve(constraint, said)

    def _room(self, request: Request, prompt: int) -> int:
        """Return the token limit of the reply."""
        context, wanted = self.loaded.context, request.sampling.max_tokens
        if context is None:
            return wanted or 2**31
        if prompt + (wanted or 1) > context:
            raise ContextTooSmallError(
                f"The model has a context of {context} tokens; the prompt has {prompt} and the reply may have "
                f"{wanted or 1}. Shorten the prompt, or limit the reply."
            )
        return wanted or context - prompt


class _Run:
    """The generation of one reply."""

    def __init__(
        self, owner: Generator, ids: list[int], guide: Guide | None, cancel: threading.Event, request: Request, *,
        thinking: bool, most: int,
    ) -> None:  # fmt: skip
        self.count = 0
        self.reason: FinishReason = "length"
        self.probabilities: tuple[float, ...] = ()
        self._owner = owner
        self._ids = ids
        self._guide = guide
        self._cancel = cancel
        self._most = most
        self._request = request
        self._said = ""  # the reply so far, without thinking
        self._reserve: Reserve | None = None
        # Thinking before a constrained reply is free, up to a number of tokens.
        self._free = thinking and request.constraint is not None
        self._think = owner._options.think or most // 2
        self._decoder = Decoder(owner.loaded.tokenizer, ids[-4:])
        self._chooser = Chooser.of(
            request.sampling, getattr(owner.loaded.model, "generation_config", None), owner.cached.device
        )

    def texts(self) -> Iterator[str]:
        """Yield the reply's text, token by token."""
        if self._free:
            yield from self._thoughts()
        if isinstance(self._request.constraint, ChooseConstraint):
            yield self._choose(self._request.constraint)
            return
        while self.count < self._most:
            if self._guide is not None and self._guide.complete:
                self.reason = "stop"
                break
            token = self._next(self._guide) if self._guide is None else self._affordable(self._guide)
            if token is None or token in self._owner.loaded.ends:
                self.reason = "stop"
                break
            if self._guide is not None:
                self._guide.advance(token)
            text = self._take(token)
            if self._guide is not None:
                self._said += text
                if self._reserve is not None:
                    self._reserve.said(text)
            yield text
        else:
            # The reply reached the limit exactly at its end.
            if self._guide is not None and self._guide.complete:
                self.reason = "stop"
        if rest := self._decoder.end():
            yield rest

    def _thoughts(self) -> Iterator[str]:
        """Yield free text up to the closing tag, which is inserted if the model does not write it in time."""
        thought = ""
        while self.count < min(self._think, self._most):
            token = self._next(None)
            if token in self._owner.loaded.ends:
                break
            # A token that continues after the tag would start the reply without the constraint.
            tail = thought[-len(_CLOSE) :] + self._owner.loaded.tokenizer.decode([token])
            if _CLOSE in tail and not tail.endswith(_CLOSE) and tail.split(_CLOSE)[-1].strip():
                break
            text = self._take(token)
            thought += text
            yield text
            if _CLOSE in thought[-2 * len(_CLOSE) - len(text) :]:
                return
        for token in self._owner.loaded.tokenizer.encode(f"\n{_CLOSE}\n\n", add_special_tokens=False):
            yield self._take(token)

    def _choose(self, constraint: ChooseConstraint) -> str:
        tokenizer = self._owner.loaded.tokenizer
        options = [encode(tokenizer, option, special=False) for option in constraint.options]
        choice = choose(
            self._owner.cached,
            self._ids,
            options,
            temperature=self._chooser.temperature,
            seed=self._request.sampling.seed,
            go_on=lambda: not self._cancel.is_set(),
        )
        self.count += choice.tokens
        self.probabilities, self.reason = choice.probabilities, "stop"
        return constraint.options[choice.index]

    def _affordable(self, guide: Guide) -> int | None:
        """Return the model's next token, or the next one of the reply's end if too few are left; None after the end."""
        left = self._most - self.count
        bound = self._request.constraint
        if self._reserve is None and left <= max(self._most // 2, EARLY) and isinstance(bound, WrittenConstraint):
            self._reserve = self._owner.reserve(bound, self._said)
        reserve = self._reserve
        if reserve is None:
            return self._next(guide)
        if reserve.through and guide.accepting:
            return None
        token = self._next(guide)
        if token in self._owner.loaded.ends or reserve.affords(self._decoder.peek(token), left - 1):
            return token
        forced = reserve.token(guide.mask())
        return token if forced is None else forced

    def _next(self, guide: Guide | None) -> int:
        if self._cancel.is_set():
            raise Cancelled
        mask: Any = guide.mask() if guide is not None else None
        if mask is not None and (forced := only(mask)) is not None:
            return forced  # the model sees it with the next token that it chooses
        cached = self._owner.cached
        logits = cached.feed(self._ids[len(cached.ids) :], lambda: not self._cancel.is_set())
        return self._chooser.choose(logits, mask, self._ids)

    def _take(self, token: int) -> str:
        self.count += 1
        self._ids.append(token)
        text = self._decoder.add(token)
        self._owner.remember(token, text)
        return text

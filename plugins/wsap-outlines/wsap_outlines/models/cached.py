"""A model with a key-value cache that is kept from request to request."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

CHUNK = 512
"""Tokens of a prompt that are computed at once; a request can be cancelled between chunks."""


class Cancelled(Exception):
    """The request was cancelled."""


class CachedModel:
    """A sequence of tokens with the cache of a causal language model of transformers."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._cache: Any = None
        self.ids: list[int] = []
        """The tokens in the cache."""
        self.computed = 0
        """Number of tokens computed so far."""

    @property
    def device(self) -> Any:
        """The model's device."""
        return self._model.device

    def rewind(self, ids: Sequence[int]) -> int:
        """Cut the cache back to the common prefix with a sequence, without its last token, and return its length. The
        last token must be computed again, because the next one depends on its logits."""
        most = min(len(ids) - 1, len(self.ids))
        same = most if self.ids[:most] == list(ids[:most]) else _same(self.ids, ids, most)
        surplus = len(self.ids) - same
        if surplus and not self._crop(surplus):
            same = 0
        if not same:
            self.clear()
        del self.ids[same:]
        return same

    def feed(self, ids: Sequence[int], go_on: Callable[[], bool] = lambda: True) -> Any:
        """Append tokens and return the logits after the last one, a tensor of the vocabulary's size.

        Raises:
            Cancelled: `go_on` returned False before the end; what was computed is kept.
        """
        import torch  # deferred for weight, here and below

        if self._cache is None:
            self._cache = self._new_cache()
        logits: Any = None
        with torch.inference_mode():
            for start in range(0, len(ids), CHUNK):
                if not go_on():
                    raise Cancelled
                part = list(ids[start : start + CHUNK])
                tokens = torch.tensor([part], device=self.device)
                output = self._model(tokens, use_cache=True, logits_to_keep=1, **{self._cache_name: self._cache})
                logits = output.logits[0, -1]
                self.ids += part
                self.computed += len(part)
        return logits

    def feed_forks(
        self, ids: Sequence[int], forks: Sequence[tuple[int, ...]], go_on: Callable[[], bool] = lambda: True
    ) -> Any:
        """Become a sequence, and return the logits after it followed by each of several endings, one row for each.

        The first ending is empty, and each comes after its own prefixes. All are computed in one pass, in which each
        token of an ending sees only the sequence and its own prefix; the endings are not kept. See also `feed`.
        """
        import torch

        if not self._forks:
            whole = [[*ids, *fork] for fork in reversed(forks)]  # the sequence itself last, to be kept
            return torch.stack([self.feed(one[self.rewind(one) :], go_on) for one in whole][::-1])
        new = list(ids[self.rewind(ids) :])
        head = (len(new) - 1) // CHUNK * CHUNK
        if head:
            self.feed(new[:head], go_on)
        if not go_on():
            raise Cancelled
        kept, new = len(self.ids), new[head:]
        ends = forks[1:]
        size = len(new) + len(ends)
        sees = torch.zeros(size, kept + size, dtype=torch.bool)
        sees[: len(new), : kept + len(new)] = True
        sees[: len(new)].tril_(kept)
        column = {fork: kept + len(new) + i for i, fork in enumerate(ends)}
        for row, fork in enumerate(ends, len(new)):
            sees[row, : kept + len(new)] = True
            sees[row, [column[fork[:i]] for i in range(1, len(fork) + 1)]] = True
        dtype = self._model.dtype
        mask = torch.where(sees, 0.0, torch.finfo(dtype).min).to(dtype)[None, None].to(self.device)
        places = [*range(kept, kept + len(new)), *(kept + len(new) + len(fork) - 1 for fork in ends)]
        tokens = [*new, *(fork[-1] for fork in ends)]
        if self._cache is None:
            self._cache = self._new_cache()
        with torch.inference_mode():
            output = self._model(
                torch.tensor([tokens], device=self.device),
                attention_mask=mask,
                position_ids=torch.tensor([places], device=self.device),
                use_cache=True,
                logits_to_keep=len(forks),
                **{self._cache_name: self._cache},
            )
        self.computed += size
        self.ids += tokens
        if ends and not self._crop(len(ends)):
            self.clear()
        del self.ids[kept + len(new) :]
        return output.logits[0]

    @cached_property
    def _cache_name(self) -> str:
        """The name of the model's parameter for the cache, which changed in transformers 5.24."""
        return "cache" if "cache" in inspect.signature(type(self._model).forward).parameters else "past_key_values"

    @cached_property
    def _forks(self) -> bool:
        """Whether attention masks and positions determine what each token sees."""
        config = self._model.config.get_text_config()
        everything = set(getattr(config, "layer_types", None) or ["full_attention"]) == {"full_attention"}
        return (
            everything
            and getattr(config, "sliding_window", None) is None
            and config._attn_implementation in ("sdpa", "eager")
            and "position_ids" in inspect.signature(self._model.forward).parameters
        )

    def clear(self) -> None:
        """Clear the cache and release its memory."""
        self._cache = None
        self.ids = []

    def _new_cache(self) -> Any:
        from transformers import DynamicCache

        return DynamicCache(config=self._model.config)

    def _crop(self, surplus: int) -> bool:
        """Cut tokens off the end; return False if the cache does not support it."""
        if self._cache is None or not getattr(self._cache, "is_croppable", True):
            return False
        try:
            self._cache.crop(-surplus)
        except (RuntimeError, NotImplementedError, ValueError):
            return False  # a sliding window has dropped the tokens needed
        return int(self._cache.get_seq_length()) == len(self.ids) - surplus


def _same(one: Sequence[int], other: Sequence[int], most: int) -> int:
    """Return the length of the common prefix of two sequences, at most `most`."""
    return next((i for i in range(most) if one[i] != other[i]), most)

"""A model with its key-value cache kept from request to request: no token is computed twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

CHUNK = 512
"""Tokens of a prompt that are computed at once; between chunks a request can be given up."""


class Cancelled(Exception):
    """Nobody waits for the reply any more."""


class CachedModel:
    """One sequence of tokens and what the model computed of it.

    Args:
        model: a causal language model of transformers'.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._cache: Any = None
        self.ids: list[int] = []
        """The tokens that the cache holds."""
        self.computed = 0
        """Tokens computed so far, over all sequences."""

    @property
    def device(self) -> Any:
        """Where the model's numbers are."""
        return self._model.device

    def rewind(self, ids: Sequence[int]) -> int:
        """Cut the cache back to the longest beginning that it has in common with a sequence.

        At least the sequence's last token is left to be computed, because the next token depends
        on what the model puts out for it.

        Args:
            ids: the sequence that will be fed.

        Returns:
            How many of its tokens need not be computed.
        """
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
        """Append tokens and return the logits after the last one, as a tensor of the vocabulary's size.

        Raises:
            Cancelled: `go_on` said no before all was computed; what was computed is kept.
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
                output = self._model(tokens, past_key_values=self._cache, use_cache=True, logits_to_keep=1)
                logits = output.logits[0, -1]
                self.ids += part
                self.computed += len(part)
        return logits

    def clear(self) -> None:
        """Forget everything and give its memory back."""
        self._cache = None
        self.ids = []

    def _new_cache(self) -> Any:
        from transformers import DynamicCache

        return DynamicCache(config=self._model.config)

    def _crop(self, surplus: int) -> bool:
        """Cut tokens off the end; False where the model's kind of cache can't be cut."""
        if self._cache is None or not getattr(self._cache, "is_croppable", True):
            return False
        try:
            self._cache.crop(-surplus)
        except (RuntimeError, NotImplementedError, ValueError):
            return False  # a sliding window has forgotten what it would need
        return int(self._cache.get_seq_length()) == len(self.ids) - surplus


def _same(one: Sequence[int], other: Sequence[int], most: int) -> int:
    """Return how many tokens two sequences begin with in common, at most `most`."""
    return next((i for i in range(most) if one[i] != other[i]), most)

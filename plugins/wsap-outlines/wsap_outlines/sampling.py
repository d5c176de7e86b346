"""Samples the next token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wsap_core.seams.model import Sampling

LOOK_BACK = 64
"""Number of last tokens that the repeat penalty applies to, as in Ollama's default."""


@dataclass(frozen=True)
class Chooser:
    """Samples tokens; with the same seed and logits the same ones, on the same kind of device."""

    temperature: float
    top_p: float
    repeat_penalty: float
    generator: Any
    """A random generator of torch on the model's device."""

    @classmethod
    def of(cls, sampling: Sampling, defaults: Any, device: Any) -> Chooser:
        """Return the chooser for a request's sampling, with defaults from the model's generation configuration."""
        import torch  # deferred for weight, here and below

        generator = torch.Generator(device=device)
        if sampling.seed is None:
            generator.seed()
        else:
            generator.manual_seed(sampling.seed)

        def value(given: float | None, name: str) -> float:
            return float(given if given is not None else getattr(defaults, name, None) or 1.0)

        return cls(
            value(sampling.temperature, "temperature"),
            value(sampling.top_p, "top_p"),
            value(sampling.repeat_penalty, "repetition_penalty"),
            generator,
        )

    def choose(self, logits: Any, mask: Any, recent: Sequence[int]) -> int:
        """Return the next token.

        Args:
            logits: a tensor of the vocabulary's size.
            mask: the allowed tokens as bits of 32-bit words (numpy); None for all.
            recent: the tokens so far, for the repeat penalty.
        """
        import torch

        scores = logits.float()
        if self.repeat_penalty != 1.0 and recent:
            seen = torch.tensor(sorted(set(recent[-LOOK_BACK:])), device=scores.device)
            value = scores[seen]
            scores = scores.clone()
            scores[seen] = torch.where(value > 0, value / self.repeat_penalty, value * self.repeat_penalty)
        if mask is not None:
            scores = torch.where(_bits(mask, scores), scores, float("-inf"))
        if self.temperature <= 0:
            return int(scores.argmax())
        chances = torch.softmax(scores / self.temperature, dim=-1)
        if self.top_p < 1.0:
            chances, order = chances.sort(descending=True, stable=True)
            # The token that crosses the threshold may still be chosen.
            chances[chances.cumsum(-1) - chances >= self.top_p] = 0
            return int(order[torch.multinomial(chances, 1, generator=self.generator)])
        return int(torch.multinomial(chances, 1, generator=self.generator))


def _bits(mask: Any, scores: Any) -> Any:
    """Return a mask as one boolean per score."""
    import torch

    words = torch.from_numpy(mask).to(scores.device)
    shifts = torch.arange(32, dtype=torch.int32, device=scores.device)
    bits = ((words[:, None] >> shifts) & 1).bool().flatten()
    # A model's output may be wider than the vocabulary.
    missing = max(0, scores.shape[-1] - bits.shape[0])
    return torch.nn.functional.pad(bits, (0, missing))[: scores.shape[-1]]


def only(mask: Any) -> int | None:
    """Return the only token that a mask allows, or None if there are several."""
    words = mask.nonzero()[0]
    if len(words) != 1:
        return None
    value = int(mask[words[0]]) & 0xFFFFFFFF
    return None if value & (value - 1) else int(words[0]) * 32 + value.bit_length() - 1

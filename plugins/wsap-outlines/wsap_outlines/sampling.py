"""Choosing the next token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wsap_core.seams.model import Sampling

LOOK_BACK = 64
"""Tokens that the repeat penalty looks back on, as Ollama's default."""


@dataclass(frozen=True)
class Chooser:
    """Chooses tokens by a request's sampling.

    The same seed chooses the same tokens from the same logits, on the same kind of device.
    """

    temperature: float
    top_p: float
    repeat_penalty: float
    generator: Any
    """A random generator of torch's, on the model's device."""

    @classmethod
    def of(cls, sampling: Sampling, defaults: Any, device: Any) -> Chooser:
        """Return the chooser for a request.

        Args:
            sampling: as asked.
            defaults: the model's generation configuration, for what was not asked.
            device: where the logits are.
        """
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
            logits: after the last token, a tensor of the vocabulary's size.
            mask: the tokens allowed, a bit for each in 32-bit words (numpy); None for all.
            recent: tokens so far; the last of them are those that the penalty is for.
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
            # The token that crosses the threshold is still among those that may be chosen.
            chances[chances.cumsum(-1) - chances >= self.top_p] = 0
            return int(order[torch.multinomial(chances, 1, generator=self.generator)])
        return int(torch.multinomial(chances, 1, generator=self.generator))


def _bits(mask: Any, scores: Any) -> Any:
    """Return the words of a mask as one boolean for each score."""
    import torch

    words = torch.from_numpy(mask).to(scores.device)
    shifts = torch.arange(32, dtype=torch.int32, device=scores.device)
    bits = ((words[:, None] >> shifts) & 1).bool().flatten()
    # An output that is wider than the vocabulary has numbers that no token stands for.
    missing = max(0, scores.shape[-1] - bits.shape[0])
    return torch.nn.functional.pad(bits, (0, missing))[: scores.shape[-1]]


def only(mask: Any) -> int | None:
    """Return the one token that a mask allows; None if it allows several."""
    words = mask.nonzero()[0]
    if len(words) != 1:
        return None
    value = int(mask[words[0]]) & 0xFFFFFFFF
    return None if value & (value - 1) else int(words[0]) * 32 + value.bit_length() - 1

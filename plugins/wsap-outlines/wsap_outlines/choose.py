"""Chooses one of a few texts by their likelihood after the prompt."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wsap_core.seams.constraints import ChooseConstraint
from wsap_core.seams.model_errors import BackendError, BadRequestError
from wsap_outlines.models.cached import CachedModel


@dataclass(frozen=True)
class Choice:
    """The chosen option."""

    index: int
    probabilities: tuple[float, ...]
    """Of each option; their sum is 1."""
    tokens: int
    """Tokens of all options, with common beginnings counted once."""


def choose(
    cached: CachedModel,
    ids: Sequence[int],
    options: Sequence[Sequence[int]],
    *,
    temperature: float,
    seed: int | None,
    go_on: Callable[[], bool] = lambda: True,
) -> Choice:
    """Draw an option (see `ChooseConstraint`) after the prompt `ids`, which `cached` contains afterwards.

    Raises:
        BadRequestError: there is no option, or one has no token.
        BackendError: the model's numbers are out of range.
        Cancelled: `go_on` returned False.
    """
    import torch  # deferred for weight

    if not options or not all(options):
        raise BadRequestError("A choice requires at least one text, none of them empty.")
    # The model computes the prompt, followed by each beginning of an option that another token follows.
    rows: dict[tuple[int, ...], int] = {}
    steps = [[(rows.setdefault(tuple(o[:i]), len(rows)), token) for i, token in enumerate(o)] for o in options]
    logits = cached.feed_forks(ids, list(rows), go_on)
    chances = torch.log_softmax(logits.float(), dim=-1)
    at = torch.tensor([step for option in steps for step in option], device=chances.device)
    found = iter(chances[at[:, 0], at[:, 1]].tolist())
    scores = [sum(next(found) for _ in option) / len(option) for option in steps]
    if not all(map(math.isfinite, scores)):
        raise BackendError("The model's numbers are out of range; dtype=float32 may help.")
    index, probabilities = ChooseConstraint.draw(scores, temperature, seed)
    tokens = len({*rows, *map(tuple, options)}) - 1  # without the empty beginning
    return Choice(index, probabilities, tokens)

"""Choosing one of a few texts by how likely the model finds each after the prompt."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wsap_core.seams.constraints import ChooseConstraint
from wsap_core.seams.model_errors import BackendError, BadRequestError
from wsap_outlines.cached import CachedModel


@dataclass(frozen=True)
class Choice:
    """One of the options, drawn."""

    index: int
    probabilities: tuple[float, ...]
    """Of each option; adds up to 1."""
    tokens: int
    """Tokens of all options, common beginnings counted once."""


def choose(
    cached: CachedModel,
    ids: Sequence[int],
    options: Sequence[Sequence[int]],
    *,
    temperature: float,
    seed: int | None,
    go_on: Callable[[], bool] = lambda: True,
) -> Choice:
    """Draw an option from the softmax of their mean log-probabilities per token; the best one at temperature 0.

    The same seed draws the same option from the same scores.

    Args:
        cached: the model; afterwards it holds the prompt and none of the options.
        ids: the prompt.
        options: as tokens.
        temperature: what the scores are divided by.
        seed: of the draw; None for another one each time.
        go_on: whether somebody still waits.

    Raises:
        BadRequestError: there is no option, or one has no token.
        BackendError: the model's numbers are out of range.
        Cancelled: `go_on` said no.
    """
    import torch  # deferred for weight

    if not options or not all(options):
        raise BadRequestError("A model chooses between at least one text, none of them empty.")
    # What the model has to look at: the prompt, and behind it each beginning of an option that another token follows.
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

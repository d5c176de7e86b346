"""What a reply of a language model is bound to."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wsap_core.protocol.base import Frozen


@dataclass(frozen=True)
class JsonConstraint:
    """The reply is one JSON value that fits a schema."""

    schema: Mapping[str, Any]
    name: str = "reply"


@dataclass(frozen=True)
class RegexConstraint:
    """The reply matches a regular expression, as a whole."""

    pattern: str


@dataclass(frozen=True)
class ChooseConstraint(Frozen):
    """The reply is one of a few texts, which the model scores after the prompt instead of writing.

    Each is scored by its mean log-probability per token; one is drawn by the request's seed from the softmax of the
    scores at the request's temperature (the best one at temperature 0).
    """

    options: Sequence[str]
    """Different texts; at least one."""

    @staticmethod
    def draw(scores: Sequence[float], temperature: float, seed: int | None) -> tuple[int, tuple[float, ...]]:
        """Return the place of the option that is drawn by its score, and the probability of each, which add up to 1.

        The same seed draws the same option from the same scores; None draws another one each time.
        """
        best = max(scores)
        if temperature <= 0:
            weights = [float(i == scores.index(best)) for i in range(len(scores))]
        else:
            weights = [math.exp((score - best) / temperature) for score in scores]
        [index] = random.Random(seed).choices(range(len(weights)), weights)
        whole = sum(weights)
        return index, tuple(weight / whole for weight in weights)


@dataclass(frozen=True)
class FunctionDef:
    """A function that a model may call."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """The JSON Schema of its arguments: an object."""


@dataclass(frozen=True)
class CallConstraint(Frozen):
    """The reply is one call of a declared function, made by the server's own tool calling.

    The backend gives it as the text `{"name": ..., "arguments": {...}}`, with what the model wrote beside the call
    as the third member `content`.
    """

    functions: Sequence[FunctionDef]


WrittenConstraint = JsonConstraint | RegexConstraint
"""A constraint on what a model writes token by token."""
Constraint = WrittenConstraint | ChooseConstraint | CallConstraint

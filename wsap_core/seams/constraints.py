"""Constraints on the replies of language models."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wsap_core.protocol.base import Frozen


@dataclass(frozen=True)
class JsonConstraint:
    """The reply is a JSON value that fits the schema."""

    schema: Mapping[str, Any]
    name: str = "reply"


@dataclass(frozen=True)
class RegexConstraint:
    """The whole reply matches the regular expression."""

    pattern: str


@dataclass(frozen=True)
class ChooseConstraint(Frozen):
    """The reply is one of a few options, which the model scores instead of writing.

    The score of an option is its mean log-probability per token after the prompt. The request's seed draws one from
    the softmax of the scores at the request's temperature (the best one at temperature 0).
    """

    options: Sequence[str]
    """At least one; all different."""

    @staticmethod
    def draw(scores: Sequence[float], temperature: float, seed: int | None) -> tuple[int, tuple[float, ...]]:
        """Return the index of the option drawn by score, and the probability of each; without a seed, at random."""
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
    """The reply is one call of a function, by the server's tool calling. The backend returns it as the text
    `{"name": ..., "arguments": {...}}`, with any text beside the call as `content`."""

    functions: Sequence[FunctionDef]


WrittenConstraint = JsonConstraint | RegexConstraint
"""A constraint on what a model writes token by token."""
Constraint = WrittenConstraint | ChooseConstraint | CallConstraint

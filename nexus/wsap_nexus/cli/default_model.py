"""The default model: the environment variable `WSAP_MODEL`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

import click

from wsap_core.loading import MODEL_AGENT
from wsap_core.untrusted import single_line
from wsap_nexus.cli.model_options import ModelRequest

VARIABLE = "WSAP_MODEL"
"""The environment variable with the address of the default model."""


def default_model() -> str | None:
    """Return the address of the default model; None if none is set."""
    return os.environ.get(VARIABLE, "").strip() or None


def with_default(request: ModelRequest, agents: Iterable[str | None], *, named: bool) -> ModelRequest:
    """Return the request with the default model if the agent `llm` plays and no model is named, and say which it is.

    Args:
        agents: the agents that were named.
        named: whether a model is named in another way.
    """
    if request.model is not None or named or MODEL_AGENT not in agents:
        return request
    model = default_model()
    if model is None:
        return request
    click.echo(f"Model: {single_line(model)}, from {VARIABLE}; use --model ADDRESS for another.", err=True)
    return replace(request, model=model)

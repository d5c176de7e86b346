"""The model that is meant where none is named: taken for a run that asks for one, remembered after one that used it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from wsap_core.errors import StorageError
from wsap_core.untrusted import one_line
from wsap_nexus.cli.model_options import AGENT, ModelRequest
from wsap_nexus.models import remembered

if TYPE_CHECKING:
    from wsap_llm.backends.meter import Meter
    from wsap_nexus.runs.plan import RunPlan

FOR_TESTS = "scripted/"
"""What these backends answer is made up beforehand; none of them is remembered."""


def with_default(request: ModelRequest, agents: Iterable[str | None], *, named: bool) -> ModelRequest:
    """Return what was typed with the remembered model in it, where the agent `llm` is asked for and no model.

    Says which model that is. Where nobody asked for the agent, nothing is changed.

    Args:
        request: what was typed about models.
        agents: the agents that were named.
        named: whether a model is named in another way.
    """
    if request.model is not None or named or AGENT not in agents:
        return request
    kept = remembered.read(os.environ)
    if kept.damage:
        click.echo(kept.damage, err=True)
    if kept.default is None:
        return request
    click.echo(f"Model: {one_line(kept.default)}, {kept.how()}; --model ADDRESS takes another.", err=True)
    return replace(request, model=kept.default)


def addresses(plan: RunPlan) -> list[str]:
    """Return the addresses of the models that a plan's agents ask, each once."""
    found = [str(seat.options["model"]) for seat in plan.seats if seat.agent == AGENT and "model" in seat.options]
    return list(dict.fromkeys(found))


def remember(meter: Meter | None, asked: Iterable[str]) -> None:
    """Remember the models that answered; one that never did is not taken for the next run.

    A file that can't be written is told in a line: the run itself went well.

    Args:
        meter: what was measured in the run.
        asked: the addresses of the models that decided, the most important last.
    """
    if meter is None:
        return
    kept = before = remembered.read(os.environ)
    for address in asked:
        pace = meter.paces.get(address)
        if pace is not None and pace.calls and not address.startswith(FOR_TESTS):
            kept = remembered.used(kept, address, pace)
    if kept == before:
        return
    try:
        remembered.write(kept, os.environ)
    except StorageError as error:
        click.echo(f"The model is not remembered: {error}", err=True)

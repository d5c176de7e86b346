"""The option of `wsap play` that gives agents a mind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from wsap_core.host import PluginHost
    from wsap_nexus.minds import Minds
    from wsap_nexus.runs.plan import SeatPlan

F = TypeVar("F", bound=Callable[..., Any])
MEMORY = "fulltext"
"""What a new mind remembers with, unless `--memory` says otherwise."""


def mind_option(command: F) -> F:
    """Add `--mind`."""
    return click.option(
        "--mind", "minds", multiple=True, metavar="NAME",
        help="What the agent remembers from run to run, under this name; SEAT=NAME where there are several.",
    )(command)  # fmt: skip


def seated(seats: Sequence[SeatPlan], given: Iterable[str], host: PluginHost) -> tuple[SeatPlan, ...]:
    """Return the seats with the minds in them that `--mind` names.

    An agent with a model remembers as its mind does, or by full text, unless it was told how, and
    is the persona that NAME.md beside the mind describes, unless it was given one.

    Raises:
        UsageError: a seat that there is not, two minds for one, or a name that is none.
        StorageError: a mind can't be read.
    """
    from wsap_core.errors import UsageError
    from wsap_core.untrusted import one_line
    from wsap_nexus.runs.minds import with_minds
    from wsap_nexus.runs.session import usual_minds

    chosen: dict[str, str] = {}
    for text in given:
        seat, _, mind = text.rpartition("=")
        if seat in chosen:
            where = f"the seat {one_line(seat)[:60]!r}" if seat else "the agent"
            raise UsageError(f"--mind gives {where} two minds; leave one out.")
        chosen[seat] = mind
    minds = usual_minds()
    return tuple(_equipped(seat, minds, host) for seat in with_minds(seats, chosen))


def _equipped(seat: SeatPlan, minds: Minds, host: PluginHost) -> SeatPlan:
    from wsap_nexus.cli.model_options import AGENT

    if seat.mind is None or seat.agent != AGENT:
        return seat
    options = dict(seat.options)
    if "memory" not in options:
        known = minds.find(seat.mind)
        if known is not None and known.kind in host.memories.names():
            own = {f"memory.{name}": value for name, value in known.options.items()}
            options = {**own, **options, "memory": known.kind}
        else:
            options["memory"] = MEMORY
    if "persona" not in options and (persona := minds.persona(seat.mind)) is not None:
        options["persona"] = f" {persona}"  # with a space, because @ in front would mean a file
    return replace(seat, options=options)

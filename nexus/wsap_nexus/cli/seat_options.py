"""What `wsap play` gives single seats: a model of their own, and options of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.params import pairs, typed_pairs
from wsap_core.errors import UsageError
from wsap_core.loading import names_model
from wsap_core.untrusted import single_line
from wsap_nexus.cli.model_options import refuse_key

if TYPE_CHECKING:
    from wsap_nexus.runs.plan import SeatPlan


seat_option = click.option(
    "--seat-option", "seat_options", multiple=True, metavar="SEAT.KEY=VALUE",
    help="An option of one seat's agent; overrides --agent-option.",
)  # fmt: skip


def agents_by_seat(given: Iterable[str]) -> dict[str, str]:
    """Return seat -> agent of what was typed after `--as`; the seat is empty where none was named.

    Raises:
        UsageError: a seat is given two agents.
    """
    chosen: dict[str, str] = {}
    for text in given:
        seat, _, agent = text.rpartition("=")
        if seat in chosen:
            where = f"the seat {single_line(seat)[:60]!r}" if seat else "one seat"
            raise UsageError(f"--as gives {where} to two agents; leave one out, or say SEAT=NAME.")
        chosen[seat] = agent
    return chosen


@dataclass(frozen=True)
class Seating:
    """Who was asked to sit where: agents, or models by their addresses."""

    seats: Mapping[str, str]
    """Seat -> agent."""
    fill: str | None
    """Who takes the other seats."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """SEAT.KEY -> value (Any: options have every kind of value)."""

    @classmethod
    def taken_from(cls, seats: Iterable[str], fill: str | None, options: Iterable[str]) -> Seating:
        """Return it from what was typed after `--seat`, `--fill` and `--seat-option`.

        Raises:
            UsageError: one is not of its form, or a key would be recorded.
        """
        given = pairs("--seat", seats, example="NAME=AGENT")
        own = typed_pairs("--seat-option", options)
        refuse_key({name.partition(".")[2]: value for name, value in own.items()})
        return cls(given, fill, own)

    @property
    def names_a_model(self) -> bool:
        """Whether some seat is given a model here."""
        named = map(names_model, (*self.seats.values(), self.fill or ""))
        return any(named) or any(n.endswith(".model") for n in self.options)

    def furnished(self, seats: Sequence[SeatPlan]) -> tuple[SeatPlan, ...]:
        """Return the seats with their own options.

        Raises:
            UsageError: an option is for a seat that nobody takes.
        """
        names = [seat.name for seat in seats]
        own: dict[str, dict[str, Any]] = {name: {} for name in names}
        for key, value in self.options.items():
            # The longest, because a seat's name may have a dot in it.
            found = max((n for n in names if key.startswith(f"{n}.") and len(key) > len(n) + 1), key=len, default=None)
            if found is None:
                shown = ", ".join(map(single_line, names[:20])) + (", ..." if len(names) > 20 else "")
                raise UsageError(f"--seat-option takes SEAT.KEY=VALUE with one of the seats {shown}, not {key!r}.")
            own[found][key[len(found) + 1 :]] = value
        return tuple(replace(seat, options={**seat.options, **own[seat.name]}) for seat in seats)

"""What this package registers. Light: nothing of it is imported before it is used."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import CommandSpec


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Offer `wsap eval`."""
    return [CommandSpec("eval", "Evaluate entrants on games, on the same seeds, with intervals.", "wsap_eval.cli:main")]

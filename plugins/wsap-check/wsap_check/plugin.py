"""The hooks of this package."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import CommandSpec


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Register `wsap check`."""
    return [CommandSpec("check", "Check that a game conforms to the protocol.", "wsap_check.command:check")]

"""The hooks of this package."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import CommandSpec


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Register `wsap check` and `wsap new`."""
    return [
        CommandSpec("check", "Check that a game conforms to the protocol.", "wsap_check.command:check"),
        CommandSpec("new", "Make a package with a game, an agent or another plugin.", "wsap_check.new.command:new"),
    ]

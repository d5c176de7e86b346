"""The plugin's registrations. Light: neither bridge nor engine is imported here."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import CommandSpec


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Offer `wsap tes3mp`."""
    summary = "Serve, check and read Perception/Command bridges to Morrowind and other engines."
    return [CommandSpec("tes3mp", summary, "wsap_tes3mp.cli:tes3mp")]

"""The plugin's registrations; imports nothing else of the package."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import BackendSpec, CommandSpec


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Register `wsap eval`."""
    return [CommandSpec("eval", "Evaluate entrants on games, on the same seeds, with intervals.", "wsap_eval.cli:main")]


@hookimpl
def wsap_backends() -> Iterable[BackendSpec]:
    """Register the models of Inspect's providers."""
    return [
        BackendSpec(
            "inspect",
            "The models of Inspect's providers; needs wsap-eval[inspect].",
            "wsap_eval.inspect_backend:create",
            options="wsap_eval.inspect_backend:DECLARED",
        )
    ]

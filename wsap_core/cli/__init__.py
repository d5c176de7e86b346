"""The command line: `app` is `wsap` itself, `listing` has the kernel's commands; all are imported on first use."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command (by default the process's arguments) and return its exit status."""
    from wsap_core.cli.app import run  # deferred for weight: other modules import from this package, too

    return run(arguments)

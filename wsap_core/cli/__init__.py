"""The command line: `app` is `wsap` itself, `listing` holds the kernel's commands; all is imported at first use."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command (`arguments`, or the process's own) and return its exit status."""
    # Deferred so that `wsap_core.cli.params` and the like can be imported without it.
    from wsap_core.cli.app import run

    return run(arguments)

"""The command line: `wsap`.

`app` is the group and what all commands have in common; the kernel's own commands have a module
each; everything else comes from plugins. Nothing here is imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command (`arguments`, or the process's own) and return its exit status."""
    # Deferred so that `wsap_core.cli.params` and the like can be imported without it.
    from wsap_core.cli.app import run

    return run(arguments)

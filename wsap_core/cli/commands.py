"""The commands that belong to `wsap` itself, and those that the runtime brings.

Names and references only, so that both the command line and the kernel's own plugin can read
them without importing any command.
"""

from __future__ import annotations

KERNEL_COMMANDS: dict[str, tuple[str, str]] = {
    "agents": ("wsap_core.cli.listing:agents", "List the agents that can play."),
    "games": ("wsap_core.cli.listing:games", "List the games that can be played."),
    "help": ("wsap_core.cli.app:help_command", "Show the help of a command."),
    "plugins": ("wsap_core.cli.listing:plugins", "List what is installed, from where, and whether it works."),
}
"""Name -> where its click command is, and its summary. No plugin can take one of these names."""

RUNTIME = "wsap-nexus"
"""The distribution with the commands that play, record and read back."""

DISTRIBUTION_OF: dict[str, str] = {
    "check": "wsap-check",
    **dict.fromkeys(("doctor", "export", "models", "nexus", "play", "replay", "runs", "schema"), RUNTIME),
}
"""Command -> the distribution that brings it, so that `wsap` can say what to install where it is missing."""

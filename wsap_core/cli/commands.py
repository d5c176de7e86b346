"""The names of the commands of `wsap` itself and of other distributions, without imports."""

from __future__ import annotations

KERNEL_COMMANDS: dict[str, tuple[str, str]] = {
    "agents": ("wsap_core.cli.listing:agents", "List the installed agents."),
    "games": ("wsap_core.cli.listing:games", "List the installed games."),
    "help": ("wsap_core.cli.app:help_command", "Show the help of a command."),
    "plugins": ("wsap_core.cli.listing:plugins", "List the installed plugins with their packages and status."),
}
"""Name -> reference of its click command, and its summary. Plugins can't use these names."""

DISTRIBUTION_OF: dict[str, str] = {
    **dict.fromkeys(("check", "new"), "wsap-check"),
    "mcp": "wsap-mcp",
    "serve": "wsap-openenv",
    **dict.fromkeys(("doctor", "export", "models", "nexus", "play"), "wsap-nexus"),
    **dict.fromkeys(("preview", "replay", "runs", "schema"), "wsap-nexus"),
}
"""Command -> the distribution to install for it."""

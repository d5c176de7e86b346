"""`wsap nexus`: the commands about the nexus. Each is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.cli.grouped import lazy_group

_HERE = "wsap_nexus.cli.nexus"
COMMANDS: Mapping[str, tuple[str, str]] = {
    "start": (f"{_HERE}.start:start", "Start the nexus: agents, worlds, HTTP API, dashboard."),
    "stop": (f"{_HERE}.stop:stop", "Stop a running nexus in good order."),
    "status": (f"{_HERE}.status:status", "Show where the agents are, whether the nexus is running or not."),
    "watch": (f"{_HERE}.watch:watch", "Watch a running nexus live in the terminal."),
    "agents": (f"{_HERE}.agents:agents", "Add, list, send, pause, remove, export and import agents."),
    "games": (f"{_HERE}.games:games", "List the games that agents can enter, and their status."),
    "backup": (f"{_HERE}.backup:backup", "Copy the database, also while the nexus is running."),
    "restore": (f"{_HERE}.backup:restore", "Replace the database by a copy."),
    "prune": (f"{_HERE}.prune:prune", "Delete old recordings and events."),
}
"""Name -> where it is, and its line in the help."""


nexus = lazy_group(
    "nexus",
    "The nexus: agents live there, and enter worlds from there.",
    COMMANDS,
    examples=("wsap nexus start", "wsap nexus watch ada", "wsap nexus agents send ada crafter"),
)

"""`wsap nexus`: what there is to do with the hub. Each command is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.cli.lazy import lazy_group

_HERE = "wsap_nexus.cli.nexus"
COMMANDS: Mapping[str, tuple[str, str]] = {
    "start": (f"{_HERE}.start:start", "Bring the hub up: agents, worlds, wire API, dashboard."),
    "stop": (f"{_HERE}.stop:stop", "Let a running nexus end in good order."),
    "status": (f"{_HERE}.status:status", "Who is where, whether it runs or not."),
    "watch": (f"{_HERE}.watch:watch", "See what happens, live, in the terminal."),
    "agents": (f"{_HERE}.agents:agents", "Add, list, send, pause, remove, export and import agents."),
    "games": (f"{_HERE}.games:games", "List the games that agents can enter, and how they stand."),
    "backup": (f"{_HERE}.backup:backup", "Copy the database, also while the nexus runs."),
    "restore": (f"{_HERE}.backup:restore", "Put a copy back in place."),
    "prune": (f"{_HERE}.prune:prune", "Forget what is old."),
}
"""Name -> where it is, and its line in the help."""


nexus = lazy_group("nexus", "The nexus: where agents live, and from where they go into worlds.", COMMANDS)

"""`wsap nexus` and `wsap nexus agents`; each command is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.cli.grouped import lazy_group

_HERE = "wsap_nexus.cli.nexus"
AGENT_COMMANDS: Mapping[str, tuple[str, str]] = {
    "list": (f"{_HERE}.agent_registry:list_agents", "List the agents, where they are and how much they have played."),
    "show": (f"{_HERE}.agent_registry:show", "Show one agent: skills, items, avatars, achievements, sessions."),
    "add": (f"{_HERE}.agent_registry:add", "Add an agent."),
    "change": (f"{_HERE}.agent_registry:change", "Change an agent's model, persona, name or team."),
    "remove": (f"{_HERE}.agent_registry:remove", "Remove an agent permanently."),
    "pause": (f"{_HERE}.agent_registry:pause", "Pause an agent where it is."),
    "resume": (f"{_HERE}.agent_registry:resume", "Let a paused agent continue."),
    "send": (f"{_HERE}.agent_transit:send", "Send an agent into a game."),
    "recall": (f"{_HERE}.agent_transit:recall", "Bring an agent back into the nexus."),
    "settle": (f"{_HERE}.agent_transit:settle", "Set the outcome of an unresolved transfer."),
    "talk": (f"{_HERE}.talk:talk", "Talk with an agent."),
    "diary": (f"{_HERE}.talk:diary", "Show an agent's entries about its sessions."),
    "memory": (f"{_HERE}.talk:memory", "Show what an agent remembers."),
    "forget": (f"{_HERE}.talk:forget", "Delete what an agent remembers."),
    "export": (f"{_HERE}.agent_registry:export", "Copy an agent to a file."),
    "import": (f"{_HERE}.agent_registry:import_agent", "Add an agent from a file."),
}
COMMANDS: Mapping[str, tuple[str, str]] = {
    "start": (f"{_HERE}.start:start", "Start the nexus: agents, worlds, HTTP API, dashboard."),
    "stop": (f"{_HERE}.start:stop", "Stop a running nexus gracefully."),
    "status": (f"{_HERE}.status:status", "Show the state of the nexus and its agents."),
    "watch": (f"{_HERE}.watching.command:watch", "Watch a running nexus live in the terminal."),
    "share": ("wsap_nexus.cli.sharing:share", "Let others watch an agent or a world, by an address with a pass."),
    "key": ("wsap_nexus.cli.sharing:key", "Print an address that unlocks the page once."),
    "agents": (f"{_HERE}.group:agents", "Add, list, send, pause, remove, export and import agents."),
    "games": (f"{_HERE}.games:games", "List the games that agents can enter; set their status."),
    "backup": (f"{_HERE}.backup:backup", "Copy the database, also while the nexus is running."),
    "restore": (f"{_HERE}.backup:restore", "Replace the database with a copy."),
    "prune": (f"{_HERE}.backup:prune", "Delete old recordings and events."),
}
"""Name -> reference of the command, and its line in the help."""

agents = lazy_group(
    "agents",
    "The agents of a nexus, whether it is running or not.",
    AGENT_COMMANDS,
    examples=("wsap nexus agents list", "wsap nexus agents send ada crafter", "wsap nexus agents talk ada 'Hello!'"),
)

nexus = lazy_group(
    "nexus",
    "The nexus, where agents live and from which they enter worlds.",
    COMMANDS,
    examples=("wsap nexus start", "wsap nexus watch ada", "wsap nexus agents send ada crafter"),
)

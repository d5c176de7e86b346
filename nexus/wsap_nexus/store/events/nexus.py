"""Events about the nexus itself and its games."""

from __future__ import annotations

from typing import Literal

from typing_extensions import override

from wsap_nexus.store.events.base import BY_ID, GameEvent, Names, NexusEvent, count, place, short


class NexusStarted(NexusEvent):
    """The nexus started."""

    PUBLIC = frozenset({"agents"})
    kind: Literal["started"] = "started"
    agents: int = 0
    """The number of active agents."""

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        return f"The nexus started with {count(self.agents, 'agent')}"


class NexusStopped(NexusEvent):
    """The nexus was shut down cleanly."""

    PUBLIC = frozenset()
    TOLD = "The nexus stopped"
    kind: Literal["stopped"] = "stopped"


class RecordsPruned(NexusEvent):
    """Old records were deleted."""

    PUBLIC = frozenset({"runs", "run_events", "nexus_events", "worlds", "bytes"})
    kind: Literal["pruned"] = "pruned"
    runs: int = 0
    run_events: int = 0
    nexus_events: int = 0
    worlds: int = 0
    bytes: int = 0

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        return f"Deleted old records: {count(self.runs, 'run')} and {count(self.nexus_events, 'event')}"


class PruneFailed(NexusEvent):
    """Old records could not be deleted; the nexus retries a day later."""

    PUBLIC = frozenset()
    TOLD = "Old records could not be deleted{because}"
    kind: Literal["prune_failed"] = "prune_failed"
    error: str = ""


class AgentsHeld(NexusEvent):
    """A fault of the machine is over, such as a full disk or another program's lock on the database."""

    PUBLIC = frozenset({"seconds", "why"})
    TOLD = "Agents were held for {seconds:g} seconds{because}"
    kind: Literal["held"] = "held"
    seconds: float = 0.0
    """How long agents were held."""
    why: str = ""
    """What the fault was."""


class PruneHeld(NexusEvent):
    """Nothing is deleted by age: the clock has moved on by more than the age limit since the nexus knew the time."""

    PUBLIC = frozenset()
    TOLD = "Nothing is deleted by age: the clock says {clock}, and the time was last known on {known}"
    kind: Literal["prune_held"] = "prune_held"
    clock: str
    """The day that the clock says: `2026-11-27`."""
    known: str
    """The last day on which the nexus ran with a clock that it could trust."""
    keep_days: float


class ListenerFailed(NexusEvent):
    """A listener raised an error or timed out; reported once per listener while the nexus runs."""

    PUBLIC = frozenset({"listener"})
    TOLD = "The listener {listener:80} failed{because}"
    kind: Literal["listener_failed"] = "listener_failed"
    listener: str
    error: str = ""


class GameJoined(GameEvent):
    """A game in another process was connected."""

    PUBLIC = frozenset()
    kind: Literal["game_joined"] = "game_joined"
    url: str = ""
    before: str | None = None
    """The previous address."""

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        where = short(self.url.partition("#")[0], 200)
        return f"{place(self.game)} was connected{f' at {where}' if where else ''}"


class GameFailed(GameEvent):
    """A world of a game failed."""

    PUBLIC = frozenset({"world", "recent"})
    TOLD = "A world of {place} failed{because}"
    kind: Literal["game_failed"] = "game_failed"
    world: str = ""
    error: str = ""
    recent: int = 0
    """The number of recent failures of the game's worlds."""


class GameStatus(GameEvent):
    """The status of a game changed."""

    PUBLIC = frozenset({"before"})
    reason: str = ""
    before: str = ""
    """The previous status."""


class GameAvailable(GameStatus):
    """A game can be entered."""

    TOLD = "{place} is available{because}"
    kind: Literal["game_available"] = "game_available"


class GameInMaintenance(GameStatus):
    """A game can't be entered during maintenance."""

    TOLD = "{place} is in maintenance{because}"
    kind: Literal["game_maintenance"] = "game_maintenance"


class WorldRewound(GameEvent):
    """A world that lives could not be repeated as recorded and went back by itself; its agents are in the nexus."""

    PUBLIC = frozenset({"world", "tick", "before"})
    kind: Literal["world_rewound"] = "world_rewound"
    world: str = ""
    tick: int = 0
    """The tick it went back to."""
    before: int = 0
    """Its last tick before."""
    error: str = ""
    """Why it could not be repeated."""

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        return (
            f"{short(self.world)} could not be repeated as recorded, so it went back from tick {self.before} to tick "
            f"{self.tick}; the ticks after that stay in its log: {short(self.error, 300)}"
        )


class GameOffline(GameStatus):
    """A game was taken offline, by a person or because it failed too often."""

    TOLD = "{place} was taken offline{because}"
    kind: Literal["game_offline"] = "game_offline"

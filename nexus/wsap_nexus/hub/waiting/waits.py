"""Who waits for whom: worlds for the agents that decide in them and for models, and agents for games."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from wsap_nexus.hub.context import LiveState
from wsap_nexus.worlds.remote.remote_world import RemoteWorld

TOLD_AFTER = 3.0
"""Seconds after which a wait is reported."""
ATTENTION_AFTER = 10.0
"""Seconds after which it needs attention."""
TICK_AFTER = 60.0
"""The same for a tick of a world that lives, which lasts as long as its models take."""


@dataclass(frozen=True)
class Wait:
    """One who waits, and for whom."""

    who: str
    """A world or an agent."""
    whom: str
    """The agent or game that it waits for, or "its model"."""
    kind: Literal["agent", "game", "model"]
    """What `whom` is."""
    what: str
    """What it waits for: "its decision"."""
    seconds: float

    @property
    def text(self) -> str:
        """The wait as one line: `village waits for ext-0 (its decision, 12 s)`."""
        return f"{self.who} waits for {self.whom} ({self.what}, {self.seconds:.0f} s)"


def waits(live: LiveState, after: float = TOLD_AFTER) -> list[Wait]:
    """Return the waits of at least `after` seconds, longest first."""
    found = [wait for wait in _all(live) if wait.seconds >= after]
    return sorted(found, key=lambda wait: (-wait.seconds, wait.who, wait.whom))


def _all(live: LiveState) -> Iterator[Wait]:
    now = time.monotonic()
    for agent_id, entry in live.entering.items():
        yield Wait(agent_id, entry.game, "game", "to be let in", now - entry.since)
    for world, wait in live.models.items():
        yield Wait(world, "its model", "model", wait.why, now - wait.since)
    in_run: dict[str, list[str]] = {}
    for agent_id, stay in live.sessions.items():
        session = stay.session
        in_run.setdefault(session.run_id, []).append(agent_id)
        if stay.leaving_since is not None:
            yield Wait(agent_id, session.game, "game", "to be let go", now - stay.leaving_since)
    for run_id, run in live.runs.items():
        agents = in_run.get(run_id, [])
        world = live.worlds.get(run_id, run_id)
        seats = {stay.seat_name: agent for agent, stay in live.sessions.items() if stay.session.run_id == run_id}
        deciding = run.deciding() if len(run.plan.seats) > 1 or run.plan.lives else {}
        for seat, seconds in deciding.items():
            yield Wait(world, seats.get(seat, seat), "agent", "its decision", seconds)
        if deciding:
            continue
        if run.ticking is not None and run.ticking >= TICK_AFTER:
            yield Wait(world, run.spec.name, "game", "its tick", run.ticking)
        port = live.ports.get(run_id)
        asked = port.asked if isinstance(port, RemoteWorld) else None
        leaving = any(live.sessions[agent].leaving_since is not None for agent in agents)
        if asked is not None and not leaving:
            who = agents[0] if len(agents) == 1 else world
            yield Wait(who, run.spec.name, "game", asked[0], asked[1])

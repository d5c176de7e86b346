"""The state of a nexus for `wsap nexus watch`, read from its database without load on its process."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.errors import WsapError
from wsap_core.host import PluginHost
from wsap_core.protocol import Observation
from wsap_core.untrusted import single_line
from wsap_nexus import state
from wsap_nexus.cli.nexus.connection import NexusHttp
from wsap_nexus.cli.nexus.report import AgentRow, WorldLine, agent_rows, worlds_of
from wsap_nexus.cli.nexus.watching.thoughts import Heard, Thoughts
from wsap_nexus.runs.record.tally import SeatTally
from wsap_nexus.store.database import Database
from wsap_nexus.store.events import Names, NexusEvent
from wsap_nexus.store.nexus_store import NexusStore, Transaction
from wsap_nexus.store.records import RunRecord
from wsap_nexus.store.repository import Repository
from wsap_nexus.store.upkeep.prune import size_of
from wsap_nexus.terminal.recorded import game_to_read, note_of_event
from wsap_nexus.terminal.story import Note, SeatStory, Stage

KEPT = 200
"""Maximum number of events to show."""

ASK_EVERY = 2.0
"""Seconds between two requests for the nexus' health, which says why agents are held."""

_LONG = 4000
# Maximum number of a recording's events that are read, from the end.


@dataclass(frozen=True)
class Sight:
    """A nexus at one moment."""

    running: state.Running | None
    agents: tuple[AgentRow, ...]
    worlds: tuple[WorldLine, ...]
    events: tuple[NexusEvent, ...]
    """The last ones, oldest first."""
    bytes: int | None
    held: str = ""
    """Why all agents are held, such as a full disk; empty if they are not."""
    thoughts: Mapping[str, Heard] = field(default_factory=dict)
    """Agent -> what its model is asked now."""

    @property
    def names(self) -> Names:
        """The names of the agents."""
        return Names({row.id: row.name for row in self.agents})


class WatchClient:
    """Reads the state of a nexus repeatedly, from its database and its state file (`path`)."""

    def __init__(self, database: Database, path: Any) -> None:
        self.database = database
        self._nexus_store = NexusStore(database)
        self._path = path
        self._events: deque[NexusEvent] = deque(maxlen=KEPT)
        self._seq = -1
        self._asked = -ASK_EVERY
        self._held = ""
        self._thoughts = Thoughts()

    def look(self, *, recent: int = KEPT) -> tuple[Sight, list[NexusEvent]]:
        """Return the current state and the events since the last call; on the first call, the last `recent` ones.

        So too if the log has been replaced by an older one. DatabaseReplacedError if its file has.
        """
        self.database.check_file()
        running = state.read(self._path)
        with self._nexus_store.look() as tx:
            last = tx.last_seq()
            if not 0 <= self._seq <= last:
                self._seq = max(0, last - recent)
            new = _events(tx, self._seq)
            rows, worlds = agent_rows(tx), worlds_of(tx)
        if new:
            self._seq = new[-1].seq
        self._events.extend(new)
        held, thoughts = self._why_held(running), self._thoughts.now(running)
        sight = Sight(running, tuple(rows), tuple(worlds), tuple(self._events), size_of(self.database), held, thoughts)
        return sight, new

    def _why_held(self, running: state.Running | None) -> str:
        # Only the process knows: the reason may be that the database can't be written.
        if running is None:
            return ""
        if time.monotonic() - self._asked >= ASK_EVERY:
            self._asked = time.monotonic()
            reason = (NexusHttp(running).health() or {}).get("reason")
            self._held = f"Agents are held: {single_line(reason)}" if reason else ""
        return self._held

    def run_of(self, agent_id: str) -> str | None:
        """Return the id of an agent's current recording, in a game or in the nexus; None if there is none."""
        with self._nexus_store.look() as tx:
            agent = tx.agent(agent_id)
            if agent.session_id is not None:
                return tx.session(agent.session_id).run_id
        return Repository(self.database).newest_visit(agent_id)

    def seat_of(self, agent_id: str, run: RunRecord) -> str:
        """Return the agent's seat in a recording."""
        names = [str(seat.get("name")) for seat in run.config.get("seats", ())]
        if agent_id in names or not names:
            return agent_id
        for event in Repository(self.database).read_events(run.id, to_seq=16, kinds=("start",)):
            for arrival in event.data.get("arrivals", ()):
                if arrival.get("agent") == agent_id:
                    return str(arrival["seat"])
        return names[0]


def _events(tx: Transaction, after: int) -> list[NexusEvent]:
    found: list[NexusEvent] = []
    while batch := tx.events(after=after):
        found += batch
        after = batch[-1].seq
    return found


class Following:
    """One agent in one recording, read while it is written; `host` has the game's types of observation."""

    def __init__(self, repository: Repository, run: RunRecord, seat: str, host: PluginHost) -> None:
        self.run = run
        self._repository = repository
        self.spec, self._codec, self.remark = game_to_read(run, host)
        """`remark` says why something can't be shown."""
        self._story = SeatStory(SeatTally(seat, run.agent))
        last = repository.last_event(run.id)
        self._next = max(0, last.seq - _LONG) if last is not None and last.seq > _LONG else 0
        for event in repository.read_events(run.id, to_seq=64, kinds=("observation",), seat=seat):
            self._story.see(self._decode(event.data))
            break

    def refresh(self) -> list[Note]:
        """Return the steps recorded since the last call."""
        new: list[Note] = []
        seen: Any = None  # Any: an observation as JSON
        seat = self._story.now.name
        for event in self._repository.read_events(self.run.id, from_seq=self._next, kinds=("step",), seat=seat):
            note = note_of_event(event)
            self._story.take(note)
            new.append(note)
            seen, self._next = event, event.seq + 1
        if seen is not None:
            self._story.see(self._decode(seen.data["step"]["observation"]))
        return new

    def stage(self, title: str = "") -> Stage:
        """Return the current state for the terminal."""
        game = self.spec.display_title if self.spec is not None else self.run.game
        catalogue = self.spec.achievements if self.spec is not None else ()
        scene = self._story.scene()
        return Stage(
            f"{title} in {game}" if title else game,
            self.run.id,
            self.run.seed,
            self.run.step_limit,
            (replace(scene, agent=""),),
            catalogue=catalogue,
        )

    def _decode(self, data: Any) -> Observation:
        # Any: recorded data; decoding validates it.
        return self._codec.decode(Observation, data, where="recorded observation")


def following(look: WatchClient, agent_id: str, host: PluginHost, before: Following | None = None) -> Following | None:
    """Return an agent's current recording: `before` if it is unchanged, None if there is none yet."""
    name = look.run_of(agent_id)
    if name is None:
        return None
    if before is not None and before.run.id == name:
        return before
    repository = Repository(look.database)
    try:
        run = repository.get_run(name)
        return Following(repository, run, look.seat_of(agent_id, run), host)
    except WsapError:
        return None  # just deleted, or not written yet

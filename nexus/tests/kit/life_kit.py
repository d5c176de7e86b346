"""A nexus for tests of what agents live through in it: scripted models, and waiting for events rather than time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from wsap_core import PluginHost
from wsap_core.host import Registration
from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.seams.context import Context
from wsap_core.seams.model import Request
from wsap_core.specs import AdapterSpec, AgentSpec, BackendSpec
from wsap_llm.scripted import Answer, ScriptedBackend
from wsap_nexus.agents.chronicle import every
from wsap_nexus.agents.metagoals import Pursuit
from wsap_nexus.agents.requirements import KINDS, Tally, fold
from wsap_nexus.hub.agents.desk import NexusAdapter
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import Policy
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.store.records import EventRecord
from wsap_nexus.store.repository import Repository

Answers = Callable[[Request], Answer]


class Hasty(SystemClock):
    """Waits hardly at all, and notes how long it should have."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        await asyncio.sleep(min(seconds, 0.01))


def at_desk(nexus: Nexus, agent_id: str) -> NexusAdapter:
    """Return the nexus as an agent in it perceives it."""
    return NexusAdapter(nexus.context, nexus.entrance, agent_id)


class Script:
    """A model that answers as a function says, and keeps what it was asked.

    Args:
        answers: purpose -> what to answer, a text or a function of the request.
    """

    def __init__(self, answers: Mapping[str, Answer | Answers]) -> None:
        self.answers = dict(answers)
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Answer:
        self.requests.append(request)
        answer = self.answers.get(request.purpose, "nothing")
        return answer(request) if callable(answer) else answer

    def asked(self, purpose: str) -> list[str]:
        """Return the whole text of each request for a purpose."""
        return ["\n".join(m.text() for m in r.messages) for r in self.requests if r.purpose == purpose]


def host_with(*specs: AdapterSpec | AgentSpec, script: Script | None = None, installed: bool = True) -> PluginHost:
    """Return a host with games and agents besides what is installed, and a model `script/it`."""
    host = PluginHost.discovered()
    for spec in specs:
        registry: Any = host.games if isinstance(spec, AdapterSpec) else host.agents
        registry.add(Registration(spec, "kit", "tests"))
    if script is not None:
        held = script

        def make(context: Context) -> ScriptedBackend:
            return ScriptedBackend(held, model="script/it")

        host.backends.add(Registration(BackendSpec("script", "A scripted model.", make), "kit", "tests"))
    return host


class Place:
    """A nexus with means to wait for what happens in it."""

    def __init__(self, nexus: Nexus) -> None:
        self.nexus = nexus
        self.is_open = True
        """Whether its database is open."""
        self._changed = asyncio.Event()
        nexus.nexus_store.listen(lambda event: self._changed.set())
        nexus.on_step(lambda stay, step: self._changed.set())

    def events(self, *kinds: str, agent: str | None = None) -> list[NexusEvent]:
        """Return events so far, oldest first."""
        with self.nexus.nexus_store.look() as tx:
            return tx.events(agent=agent, kinds=kinds, limit=100_000)

    def logged(self, run: str, *kinds: str) -> list[EventRecord]:
        """Return the events of a run so far, also after the database was closed."""
        database = self.nexus.store.database
        if self.is_open:
            self.nexus.store.writer.flush()
            return list(self.nexus.store.repository.read_events(run, kinds=kinds))
        with Database.open(database.where, create=False, read_only=True) as again:
            return list(Repository(again).read_events(run, kinds=kinds))

    async def until(self, holds: Callable[[], object], *, seconds: float = 300.0) -> None:
        """Wait until something holds; looked at after each event and decision, and now and then in between."""
        async with asyncio.timeout(seconds):
            while not holds():
                with suppress(TimeoutError):
                    # `asyncio.wait_for` of Python 3.11 may swallow the cancellation by which the time-out ends it.
                    async with asyncio.timeout(0.02):
                        await self._changed.wait()
                self._changed.clear()

    async def until_events(self, kind: str, count: int = 1, *, agent: str | None = None) -> list[NexusEvent]:
        """Wait until there are so many events of a kind, and return them."""
        await self.until(lambda: len(self.events(kind, agent=agent)) >= count)
        return self.events(kind, agent=agent)


@asynccontextmanager
async def nexus_at(
    path: Path,
    agents: Mapping[str, Mapping[str, Policy]],
    *,
    host: PluginHost,
    games: tuple[str, ...] | None = ("crafter", "echo"),
    personas: Mapping[str, str] | None = None,
    start: bool = True,
    clock: Clock | None = None,
    **settings: Any,
) -> AsyncIterator[Place]:
    """Give a nexus with agents by id and their policies; stopped at the end of the block."""
    with open_store(str(path / "nexus.db")) as store:
        given = {"seed": 5, "games": games, "lobby_seconds": 0.05, **settings}
        nexus = Nexus(host, store, Settings(**given), clock=clock)
        with nexus.nexus_store.change() as tx:
            for agent_id, policies in agents.items():
                tx.register(agent_id, policies=policies, persona=(personas or {}).get(agent_id, ""))
        place = Place(nexus)
        if start:
            await nexus.start()
        try:
            yield place
        finally:
            if start:
                await nexus.stop()
            place.is_open = False


def recounted(tx: Transaction, agent_id: str, pursuit: Pursuit) -> tuple[Tally, ...]:
    """Return the tallies of a goal, counted from the whole log up to the last event that they include."""
    tallies: tuple[Tally, ...] = tuple({} for _ in pursuit.goal.requirements)
    for event in every(tx, *KINDS, agent=agent_id):
        for requirement, tally in zip(pursuit.goal.requirements, tallies, strict=True):
            since = 0 if requirement.type == "reach_skill_level" else pursuit.since
            if since < event.seq <= pursuit.seq:
                fold(requirement, tally, event)
    return tallies


def conversations(calls: Iterable[Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield all messages of each recorded call of one seat."""
    conversation: list[dict[str, Any]] = []
    for call in calls:
        conversation = [*conversation[: call["shared"]], *call["messages"]]
        yield conversation

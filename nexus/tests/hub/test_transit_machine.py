"""Whatever agents, people and crashes do, one after the other: everybody and everything is in exactly one place."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import hub_checks
import hub_kit
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from wsap_core.errors import WsapError
from wsap_core.protocol import Action
from wsap_nexus.errors import NexusRunningError
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import Store, open_store
from wsap_nexus.store.entities import EXTERNAL, EntryRequest

T = TypeVar("T")
AGENTS = ("ada", "bob", "cyd")
agents = st.sampled_from(AGENTS)
deeds = st.lists(st.sampled_from(("dig", "dig", "forge", "climb", "rest")), min_size=1, max_size=12)


class Nexuses(RuleBasedStateMachine):
    """A nexus with three agents that are decided for from here, which is stopped, dropped and started again."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="wsap-machine-"))
        self.loop = asyncio.new_event_loop()
        self.opened = open_store(str(self.folder / "nexus.db"), environ={"WSAP_HOME": str(self.folder)})
        self.store: Store = self.opened.__enter__()
        self.host = hub_kit.host(quarry=hub_kit.deadly(40))
        self.nexus = self.new_nexus()

    def new_nexus(self) -> Nexus:
        return Nexus(self.host, self.store, Settings(games=("quarry",), snapshot_every=5))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(coroutine, 300))

    @initialize()
    def begin(self) -> None:
        with self.nexus.nexus_store.change() as tx:
            for name in AGENTS:
                tx.register(name, policies={"*": EXTERNAL})
        self.run(self.nexus.start())

    def place(self, agent: str) -> str:
        with self.nexus.nexus_store.look() as tx:
            found = tx.agent(agent)
        return found.place if found.state == "active" else found.state

    # --- what agents do -----------------------------------------------------------------------------

    @rule(agent=agents, avatar=st.sampled_from((None, "new", "digger-1", "quarry-000001", "quarry-000002")))
    def enter(self, agent: str, avatar: str | None) -> None:
        before = self.place(agent)
        try:
            stay = self.run(self.nexus.enter(agent, "quarry", EntryRequest(avatar=avatar)))
        except WsapError:
            assert self.place(agent) == before
        else:
            assert before == "nexus"
            assert stay.session.agent_id == agent
            assert self.place(agent) == "world"

    @rule(agent=agents, count=st.integers(2, 4))
    def enter_several_times_at_once(self, agent: str, count: int) -> None:
        before = self.place(agent)

        async def all_at_once() -> list[Any]:
            ways = [self.nexus.enter(agent, "quarry", EntryRequest()) for _ in range(count)]
            return await asyncio.gather(*ways, return_exceptions=True)

        outcomes = self.run(all_at_once())
        arrived = [o for o in outcomes if not isinstance(o, BaseException)]
        assert all(isinstance(o, WsapError) for o in outcomes if isinstance(o, BaseException))
        assert len(arrived) <= (1 if before == "nexus" else 0)

    @rule(agent=agents, actions=deeds)
    def act(self, agent: str, actions: list[str]) -> None:
        if self.place(agent) == "world":
            self.run(self._act(agent, [Action(name) for name in actions]))

    @rule(agent=agents, mode=st.sampled_from(("dormant", "suspend", "despawn")), climb=st.booleans())
    def leave_by_choice(self, agent: str, mode: str, climb: bool) -> None:
        if self.place(agent) != "world":
            return
        way = [Action("climb" if climb else "rest"), Action("jack_out", {"mode": mode})]
        done = self.run(self._act(agent, way))
        # Hanging on a rope, it may have fallen; but it has not left.
        with self.nexus.nexus_store.look() as tx:
            session = tx.sessions(agent_id=agent, limit=1)[0]
        assert session.closed is None if not done else session.reason == ("death" if climb else "jack_out")

    async def _act(self, agent: str, actions: list[Action]) -> bool:
        leaving = self.nexus.await_exit(agent)
        for action in actions:
            seat, _ = await self.nexus.live.external.observation(agent)
            result = await seat.act(action)
            if result.done:
                await leaving
                return True
        return False

    @rule(agent=agents)
    def recall(self, agent: str) -> None:
        if self.place(agent) == "world":
            session = self.run(self.nexus.exit(agent))
            assert session.closed is not None
            assert self.place(agent) == "nexus"

    @rule(agent=agents)
    def pause_and_resume(self, agent: str) -> None:
        before = self.place(agent)
        if before in ("nexus", "world"):
            self.nexus.pause(agent)
            self.run(asyncio.sleep(0))
            self.nexus.resume(agent)
            assert self.place(agent) == before

    # --- what happens to the nexus --------------------------------------------------------------------

    @rule()
    def stop_and_start(self) -> None:
        self.run(self.nexus.stop())
        with self.store.database.read():
            assert hub_checks.problems(self.store.database, settled=True) == []
        self.start_again()

    @rule(agent=agents, going=st.booleans())
    def drop_and_start(self, agent: str, going: bool) -> None:
        """Drop everything that is in memory, perhaps in the middle of somebody's way."""

        async def drop() -> None:
            if going and self.place(agent) == "nexus":
                self.nexus.entrance.request_enter(agent, "quarry", EntryRequest())
            tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
            self.nexus.live.stopping = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.store.writer.flush()  # the log's thread lives on

        self.loop.run_until_complete(drop())
        self.nexus._lock.release()
        self.start_again()

    def start_again(self) -> None:
        before = {name: self.place(name) for name in AGENTS}
        self.nexus = self.new_nexus()
        self.run(self.nexus.start())
        assert {name: self.place(name) for name in AGENTS} == before
        self.run(self._caught_up())

    async def _caught_up(self) -> None:
        for name in AGENTS:
            if self.place(name) == "world":
                await self.nexus.live.external.observation(name)

    @precondition(lambda self: self.nexus is not None)
    @rule()
    def a_second_nexus_is_refused(self) -> None:
        second = self.new_nexus()
        with pytest.raises(NexusRunningError, match="Another nexus runs"):
            self.run(second.start())

    @invariant()
    def everything_is_in_one_place(self) -> None:
        assert hub_checks.problems(self.store.database) == []

    def teardown(self) -> None:
        try:
            self.run(self.nexus.stop())
            assert hub_checks.problems(self.store.database, settled=True) == []
        finally:
            self.opened.__exit__(None, None, None)
            self.loop.close()
            shutil.rmtree(self.folder, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.every_database
def test_whatever_happens_everything_is_in_one_place(request: pytest.FixtureRequest) -> None:
    given = settings(
        max_examples=8 if "postgresql" in request.node.name else 25,  # there each takes three times as long
        stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    run_state_machine_as_test(Nexuses, settings=given)

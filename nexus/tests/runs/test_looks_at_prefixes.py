"""Whatever part of a living world's log is there, each tick in it can be looked at, as after a kill at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from life_kit import host_with, nexus_at

from wsap_core import Action, ActionResult, ActionSpace, AgentSpec, Context, Observation
from wsap_core.protocol import Goal
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.runs.store import open_store
from wsap_nexus.runs.views.restoring import Runs
from wsap_nexus.store.entities import EntryRequest, Policy

RUN = "nexus-village"
VILLAGE = KeptWorld("village", "sandbox:village", {"language": "en"})

ENDS = ("tick", "snapshot", "joined", "arrived", "departed", "influence", "left", "whisper")
"""The kinds of events with which a log ends that is looked at; what each seat did shows at the next tick."""


class Villager:
    """Waits in the nexus; in the village intends things, does what is not possible now and then, and leaves if told."""

    def __init__(self, context: Context) -> None:
        self._away, self._asked = False, 0

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        self._away = "intend" in action_space.names

    def decide(self, observation: Observation) -> Action:
        if not self._away:
            return Action("wait_for_game", {"timeout": 600})
        self._asked += 1
        if any("home" in message.text for message in observation.messages):
            return Action("exit_game", {"reason": "I was told to."})
        return Action("fly") if self._asked % 3 == 1 else Action("intend", {"text": f"I count to {self._asked}."})

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        return []

    def snapshot(self) -> bytes:
        return str(self._asked).encode()

    def restore(self, data: bytes) -> None:
        self._asked = int(data)


@pytest.mark.slow
def test_each_tick_in_any_first_part_of_a_log_can_be_looked_at(tmp_path: Path) -> None:
    host = host_with(AgentSpec("villager", "Counts.", Villager, abilities=("snapshot",)))
    agents = {name: {"*": Policy("villager"), "nexus": Policy("villager")} for name in ("ada", "bob")}

    async def record() -> None:
        given: dict[str, Any] = {
            "worlds": (VILLAGE,),
            "games": ("sandbox:village",),
            "pace": 500.0,
            "snapshot_every": 3,
        }
        async with nexus_at(tmp_path, agents, host=host, **given) as place:
            nexus = place.nexus

            def chosen() -> int:
                nexus.store.writer.flush()
                return sum(1 for event in nexus.store.repository.read_events(RUN, kinds=("chosen",)))

            await nexus.enter("bob", "sandbox:village", EntryRequest(world="village", goals=("count",)))
            for turns in range(3):
                await nexus.enter("ada", "sandbox:village", EntryRequest(world="village", goals=("be kind",)))
                before = chosen()
                await place.until(lambda before=before: chosen() > before + 2)
                for _ in range(turns):
                    await asyncio.sleep(0)
                text = f"Thunder {turns}."
                nexus.store.repository.add_to_inbox(RUN, {"kind": "event", "place": "square", "text": text})
                nexus.recall("ada")
                await place.until_events("left", turns + 1, agent="ada")
            await nexus.agent_context.words.talk("bob", "Come home.")
            await place.until_events("left", agent="bob")

    async def looked_at() -> None:
        with open_store(str(tmp_path / "nexus.db")) as store:
            runs, repository = Runs(host, store.repository), store.repository
            kinds = [event.kind for event in repository.read_events(RUN)]
            assert {"joined", "arrived", "departed", "whisper", "influence", "left", "snapshot"} <= {*kinds}
            for size in range(len(kinds) - 1, 0, -1):
                with store.database.write() as connection:
                    where = f"WHERE run_id = '{RUN}' AND seq >= {size}"
                    connection.execute(sqlalchemy.text(f"DELETE FROM event {where}"))
                newest = runs.ticks(RUN)
                if newest and kinds[size - 1] in ENDS:
                    world: Any = await runs.restored(RUN, newest)
                    assert world.state.tick == newest

    asyncio.run(record())
    asyncio.run(looked_at())

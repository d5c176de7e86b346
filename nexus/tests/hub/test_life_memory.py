"""Minds of agents: kept by kind, given as they were, and told when they can't be."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from life_kit import at_desk, host_with, nexus_at

from wsap_core.errors import StorageError, UsageError
from wsap_core.protocol import Action
from wsap_core.seams.context import Context
from wsap_llm.memory.facts import FactsMemory
from wsap_llm.memory.fulltext import create as fulltext
from wsap_nexus.agents.memory import AgentMemories, SavedMemories
from wsap_nexus.runs.plan import SeatPlan
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import EXTERNAL, EntryRequest, Policy
from wsap_nexus.store.nexus_store import NexusStore

pytestmark = pytest.mark.every_database

TEXT = SeatPlan("ida", "llm", {"memory": "fulltext"})
FACTS = SeatPlan("ida", "llm", {"memory": "facts"})


class Minded:
    """An agent with a memory, which is all that matters here."""

    def __init__(self, memory: object) -> None:
        self.memory = memory


@pytest.fixture
def nexus_store(tmp_path: Path) -> Iterator[NexusStore]:
    with Database.open(str(tmp_path / "a.db")) as database:
        found = NexusStore(database)
        with found.change() as tx:
            tx.register("ida")
        yield found


def read(nexus_store: NexusStore, agent_id: str) -> SavedMemories:
    with nexus_store.look() as tx:
        return SavedMemories.from_bytes(tx.memories(agent_id))


def live(nexus_store: NexusStore, plan: SeatPlan, memory: object, *notes: str) -> AgentMemories:
    """Begin a run, note something, and keep it as leaving does."""
    minds = AgentMemories(lambda agent_id: read(nexus_store, agent_id), {"ida": "ida"})
    minds.begin(plan, Minded(memory))
    for note in notes:
        memory.note(note, world="echo")  # type: ignore[attr-defined]
    kept = minds.remembered("ida")
    assert kept is not None
    with nexus_store.change() as tx:
        tx.save_memories("ida", kept)
    return minds


def test_each_kind_of_memory_is_kept_beside_the_others(nexus_store: NexusStore) -> None:
    live(nexus_store, TEXT, fulltext(Context()), "walls are hard")
    live(nexus_store, FACTS, FactsMemory(), "doors open")
    again, facts = fulltext(Context()), FactsMemory()
    live(nexus_store, TEXT, again)
    live(nexus_store, FACTS, facts)
    assert [found.text for found in again.browse()] == ["(echo, run 1) walls are hard"]
    assert any("doors open" in found.text for found in facts.recall("doors", budget=100))
    assert read(nexus_store, "ida").lives == 4


def test_things_say_in_which_of_the_agents_runs_they_were(nexus_store: NexusStore) -> None:
    for number in range(3):
        live(nexus_store, TEXT, fulltext(Context()), f"thing {number}")
    memory = fulltext(Context())
    live(nexus_store, TEXT, memory)
    assert [(found.text, found.run) for found in memory.browse()][::-1] == [
        (f"(echo, run {number + 1}) thing {number}", f"run {number + 1}") for number in range(3)
    ]


def test_an_agent_without_a_memory_has_nothing_to_keep(nexus_store: NexusStore) -> None:
    minds = AgentMemories(lambda agent_id: read(nexus_store, agent_id), {"ida": "ida"})
    minds.begin(TEXT, object())
    assert minds.remembered("ida") is None
    assert minds.remembered_by("ida") is None
    assert minds.remembered_by("udo") is None


def test_a_seat_that_nobody_of_the_nexus_takes_remembers_nothing_of_an_agent(nexus_store: NexusStore) -> None:
    live(nexus_store, TEXT, fulltext(Context()), "a secret")
    minds = AgentMemories(lambda agent_id: read(nexus_store, agent_id), {"ida": "ida"})
    filler = fulltext(Context())
    minds.begin(SeatPlan("column", "llm", {"memory": "fulltext"}), Minded(filler))
    assert not filler.browse()


def test_a_mind_that_cannot_be_taken_in_is_told_and_stays_as_it_is(nexus_store: NexusStore) -> None:
    live(nexus_store, TEXT, fulltext(Context()), "walls are hard")
    before = read(nexus_store, "ida")
    other = SeatPlan("ida", "llm", {"memory": "fulltext"})
    minds = AgentMemories(lambda agent_id: read(nexus_store, agent_id), {"ida": "ida"})
    with pytest.raises(UsageError, match="The saved memory of 'ida' can't be restored"):
        minds.begin(other, Minded(FactsMemory()))
    assert read(nexus_store, "ida") == before


@pytest.mark.parametrize("data", [b"", b"[]", b'{"version": 1, "lives": "x", "memories": {}}', b"\xff\x00"])
def test_what_is_damaged_says_so(data: bytes) -> None:
    with pytest.raises(StorageError, match="damaged"):
        SavedMemories.from_bytes(data)


def test_a_goal_is_reached_by_living_and_its_reward_is_in_the_agents_keeping(tmp_path: Path) -> None:
    async def test() -> None:
        policies = {"nexus": EXTERNAL, "*": Policy("random-legal")}
        async with nexus_at(tmp_path, {"ida": policies}, host=host_with(), games=("echo", "crafter")) as place:
            assert (await at_desk(place.nexus, "ida").act(Action("set_meta_goal", {"goal": "traveller"}))).success
            for number, game in enumerate(("echo", "crafter"), start=1):
                await place.nexus.enter("ida", game, EntryRequest(steps=2, exit_when="step >= 2"))
                await place.until_events("left", number)
                await place.until(lambda: "ida" not in place.nexus.live.sessions)
            (reached,) = place.events("meta_goal_reached")
            # In the very transaction of entering the last world.
            entered = place.events("entered")[-1]
            assert entered.seq < reached.seq < place.events("left")[-1].seq
            desk = at_desk(place.nexus, "ida")
            assert "Token of travel" in desk.observe().carried
            assert "well-travelled (nexus)" in (await desk.act(Action("review_achievements"))).message
            assert not desk.observe().current_goals

    asyncio.run(test())

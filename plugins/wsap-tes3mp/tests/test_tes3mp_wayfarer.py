from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from seed_bridge import SeedBridge

import wsap_tes3mp.agent
from wsap_check import run_agent_checks, run_checks
from wsap_check.hosts import ManualClock
from wsap_core.builtin.random_agents import RandomAgent
from wsap_core.errors import SnapshotError
from wsap_core.protocol import Action, ActionResult, AvatarSpec, Observation
from wsap_core.seams.context import Context
from wsap_tes3mp.agent.wayfarer import Wayfarer
from wsap_tes3mp.client import BridgeClient
from wsap_tes3mp.protocol.perception import ActiveQuest, NearbyEntity, OpenDialogue, PerceptionOutput
from wsap_tes3mp.world.actions import availability, refusal
from wsap_tes3mp.world.game import MorrowindWorld
from wsap_tes3mp.world.observation import MorrowindObservation


async def played(
    seed: int, agent: Wayfarer | RandomAgent, most: int = 500
) -> tuple[list[str], list[MorrowindObservation]]:
    """Return the quests that an agent completes in the embedded world of a seed, and what it saw."""
    game = MorrowindWorld(Context.create(seed, config={"length": most}))
    await game.reset(seed)
    avatar = game.create_avatar("me", AvatarSpec(name="me"))
    game.jack_in("me", avatar.avatar_id)
    agent.initialize("", game.action_space)
    path, quests = [], set[str]()
    while True:
        observation = await game.observe()
        assert isinstance(observation, MorrowindObservation)
        path.append(observation)
        quests |= {quest.quest_id for quest in observation.seen.completed_quests or ()}
        result = await game.act(agent.decide(observation))
        if result.done:
            last = result.observation
            assert isinstance(last, MorrowindObservation)
            return sorted(quests | {q.quest_id for q in last.seen.completed_quests or ()}), path


@pytest.mark.slow
def test_the_wayfarer_finishes_both_quests_and_random_finishes_none() -> None:
    assert asyncio.run(played(2000, Wayfarer()))[0] == ["fever", "lamp"]
    assert asyncio.run(played(2000, RandomAgent(random.Random(1), legal_only=True), 60))[0] == []


@pytest.mark.slow
def test_the_wayfarer_decides_the_same_without_the_engine_s_own_data() -> None:
    path = asyncio.run(played(2001, Wayfarer(), 80))[1]
    one, other = Wayfarer(), Wayfarer()
    for observation in path:
        assert "raw_engine_data" not in observation.perception
        seen = observation.seen
        assert seen.raw_engine_data == {}
        full = seen.model_copy(update={"raw_engine_data": {"culprit": "piper"}, "boot_id": "other"})
        assert one.act_on(seen) == other.act_on(full)


def test_whom_the_wayfarer_left_for_somebody_else_is_approached_again() -> None:
    agent = Wayfarer()
    agent.initialize("", MorrowindWorld(Context.create(0)).action_space)

    def acts(**distances: float) -> tuple[str, str]:
        near = [
            NearbyEntity(entity_id=one, name=one, entity_type="npc", distance=far) for one, far in distances.items()
        ]
        seen = overloaded(0.5).model_copy(update={"protocol_version": "1.1.0", "nearby_entities": tuple(near)})
        action = agent.act_on(seen)
        return action.name, str(action.parameters.get("entity_id") or action.parameters.get("target_entity_id"))

    assert acts(ann=20.0) == ("move_to", "ann")
    assert acts(ann=25.0, bet=2.0) == ("interact", "bet")
    assert acts(ann=30.0) == ("move_to", "ann")
    assert acts(ann=29.0) == ("interact", "ann"), "it gets no nearer"


def test_the_wayfarer_leaves_a_fight_that_it_would_lose_and_rests_before_it_goes_on() -> None:
    def act(health: int, *items: str, foe: bool = True) -> str:
        rat = NearbyEntity(entity_id="rat", name="Rat", entity_type="creature", distance=2)
        seen = overloaded(0.1, *items)
        near = (*seen.nearby_entities, *([rat] if foe else []))
        fighting = seen.environment.model_copy(update={"is_combat": foe})
        hurt = seen.health.model_copy(update={"current": health, "max": 100})
        changed = {"health": hurt, "environment": fighting, "nearby_entities": near, "protocol_version": "1.1.0"}
        action = Wayfarer().act_on(seen.model_copy(update=changed))
        return f"{action.name} {next(iter(action.parameters.values()))}"

    assert act(50) == "combat_action attack"
    assert act(10) == "move_to d"
    assert act(10, "Green Salve") != "move_to d"
    assert act(70, foe=False) == "wait 120"


def test_the_wayfarer_imports_no_engine() -> None:
    for path in Path(wsap_tes3mp.agent.__file__).parent.glob("*.py"):
        assert "engines" not in path.read_text("utf-8"), path.name


@pytest.mark.slow
def test_the_wayfarer_goes_on_from_its_notes() -> None:
    path = asyncio.run(played(2002, Wayfarer(), 60))[1]
    one, other = Wayfarer(), Wayfarer()
    for observation in path[:30]:
        one.decide(observation)
    other.restore(one.snapshot())
    assert [one.decide(o) for o in path[30:]] == [other.decide(o) for o in path[30:]]
    with pytest.raises(SnapshotError):
        other.restore(b"{")
    with pytest.raises(SnapshotError):
        other.restore(json.dumps({"nonsense": 1}).encode())


def test_the_wayfarer_forgets_at_the_first_observation_of_an_episode() -> None:
    agent = Wayfarer()

    def knows(step: int) -> int:
        agent.decide(Observation(step=step))
        known = len(agent.notes.asked)
        agent.notes.asked.append("Bet")
        return known

    assert [knows(step) for step in (0, 0, 1, 2, 0, 1)] == [0, 1, 2, 3, 0, 1]
    agent.reflect(ActionResult(True, done=True))
    assert [knows(step) for step in (2, 2)] == [2, 3], "it was brought back in the same world"
    agent.reflect(ActionResult(True, done=True))
    assert knows(2) == 0


@pytest.mark.slow
def test_the_wayfarer_begins_each_episode_without_the_notes_of_the_one_before() -> None:
    async def play() -> list[list[str]]:
        agent, found = Wayfarer(), list[list[str]]()
        game = MorrowindWorld(Context.create(0))
        agent.initialize("", game.action_space)
        game.jack_in("me", game.create_avatar("me", AvatarSpec(name="me")).avatar_id)
        for _ in range(3):
            await game.reset()
            done = False
            while not done:
                result = await game.act(agent.decide(await game.observe()))
                agent.reflect(result)
                done = result.done
            last = result.observation
            assert isinstance(last, MorrowindObservation)
            found.append(sorted(quest.quest_id for quest in last.seen.completed_quests or ()))
        return found

    assert asyncio.run(play()) == [["fever", "lamp"]] * 3


def overloaded(load: float, *items: str, journal: str = "") -> PerceptionOutput:
    """Return a perception of somebody who carries these things."""
    return PerceptionOutput.model_validate({
        "timestamp": "2026-03-21T14:30:00Z", "agent_id": "me", "health": {"current": 9, "max": 9},
        "location": {"cell": "Quay", "x": 1, "y": 1, "z": 0, "interior": False},
        "nearby_entities": [{"entity_id": "d", "name": "Door to Inn", "entity_type": "door", "distance": 9}],
        "inventory_summary": {"gold": 0, "item_count": len(items), "encumbrance_pct": load},
        "inventory": [{"item_id": name.lower(), "name": name, "count": 1} for name in items],
        "active_quests": [{"quest_id": "lamp", "name": journal, "stage": 50}] if journal else [],
        "environment": {"time_of_day": "day", "weather": "clear", "is_combat": False, "is_dialogue": False},
    })  # fmt: skip


def test_the_overloaded_wayfarer_drops_what_weighs_most_whatever_it_is_called() -> None:
    agent = Wayfarer()
    agent.act_on(overloaded(0.3, "Coal"))
    agent.act_on(overloaded(0.7, "Coal", "Zither"))
    journal = "The Dark Lamp: Use the Lamp Lens on the Great Lamp in the Lamp Tower."
    dropped = []
    items = ["Coal", "Zither", "Lamp Lens"]
    for load in (1.2, 1.1):
        action = agent.act_on(overloaded(load, *items, journal=journal))
        assert (action.name, action.parameters.get("interaction_type")) == ("interact", "drop")
        dropped.append(action.parameters["entity_id"])
        items = [name for name in items if name.lower() != dropped[-1]]
    assert dropped == ["zither", "coal"], "the lens is needed"


def test_the_wayfarer_waits_where_the_trader_does_not_trade() -> None:
    agent = Wayfarer()
    agent.notes.trader, agent.notes.likes = "Bet", {"Bet": "Plum Wine"}
    seen = overloaded(0.1).model_copy(update={
        "nearby_entities": (NearbyEntity(entity_id="b", name="Bet", entity_type="npc", distance=1, disposition=30),),
        "dialogue": OpenDialogue(entity_id="b", text="Good night.", topics=("news",)),
        "active_quests": (ActiveQuest(quest_id="q", name="Talk to Bet at Quay about wine.", stage=1),),
    })  # fmt: skip
    assert agent.act_on(seen).name == "wait"


async def reported(seed: int, most: int) -> SeedBridge:
    """Return a stranger's town after the wayfarer has acted there so often."""
    town, url = SeedBridge(seed), "http://127.0.0.1:8765"
    async with BridgeClient(url, transport=httpx2.ASGITransport(app=town), clock=ManualClock()) as client:
        game = MorrowindWorld(Context.create(0, config={"bridge": url}), bridge=client)
        await game.reset()
        game.jack_in("me", game.create_avatar("me", AvatarSpec(name="me")).avatar_id)
        agent = Wayfarer()
        for _ in range(most):
            await game.act(agent.decide(await game.observe()))
            if len(town.done) == 3:
                break
    return town


def test_the_wayfarer_plays_on_a_bridge_that_has_nothing_but_the_seed() -> None:
    town = asyncio.run(reported(7, 40))
    assert sorted(town.done) == ["fg_01", "hh_02", "mq_01"]
    assert not town.refused, "every command and parameter is one of the seed's"


@pytest.mark.slow
def test_the_wayfarer_completes_a_quest_in_twenty_of_twenty_towns_of_the_seed() -> None:
    towns = [asyncio.run(reported(seed, 200)) for seed in range(20)]
    assert [len(town.done) > 0 for town in towns] == [True] * 20
    assert not [refused for town in towns for refused in town.refused]


def test_going_to_an_entity_is_not_offered_where_the_bridge_has_only_the_seed() -> None:
    seen = overloaded(0.1)
    for version, wanted in (("1.0.0", False), ("1.0.1", True), ("1.1.0", True)):
        offered = availability(seen.model_copy(update={"protocol_version": version}))
        assert [one.available for one in offered if one.name == "move_to"] == [wanted]
    assert "walk_to" in refusal(
        Action("move_to", {"target_entity_id": "d"}), seen.model_copy(update={"protocol_version": "1.0.0"})
    )


@pytest.mark.slow
def test_the_same_seed_gives_the_same_world_and_a_snapshot_goes_on_alike() -> None:
    async def play() -> None:
        first = [o.to_structured() for o in (await played(7, Wayfarer(), 40))[1]]
        assert first == [o.to_structured() for o in (await played(7, Wayfarer(), 40))[1]]

    asyncio.run(play())


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"seats": 2, "length": 100}])
def test_the_world_keeps_the_protocol_s_promises(options: Mapping[str, Any]) -> None:
    assert not run_checks("morrowind", steps=20 if options else 60, config=options, subprocesses=not options).findings
    if not options:
        assert not run_agent_checks("morrowind-wayfarer", "morrowind").findings

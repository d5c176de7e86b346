from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import wsap_tes3mp.agent
from wsap_check import run_agent_checks, run_checks
from wsap_core.builtin.random_agents import RandomAgent
from wsap_core.errors import SnapshotError
from wsap_core.protocol import AvatarSpec
from wsap_core.seams.context import Context
from wsap_tes3mp.agent.wayfarer import Wayfarer
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


def test_the_wayfarer_finishes_both_quests_and_random_finishes_none() -> None:
    assert asyncio.run(played(2000, Wayfarer()))[0] == ["fever", "lamp"]
    assert asyncio.run(played(2000, RandomAgent(random.Random(1), legal_only=True), 60))[0] == []


def test_the_wayfarer_decides_the_same_without_the_engine_s_own_data() -> None:
    path = asyncio.run(played(2001, Wayfarer(), 80))[1]
    one, other = Wayfarer(), Wayfarer()
    for observation in path:
        assert "raw_engine_data" not in observation.perception
        seen = observation.seen
        assert seen.raw_engine_data == {}
        full = seen.model_copy(update={"raw_engine_data": {"culprit": "piper"}, "boot_id": "other"})
        assert one.act_on(seen) == other.act_on(full)


def test_the_wayfarer_imports_no_engine() -> None:
    for path in Path(wsap_tes3mp.agent.__file__).parent.glob("*.py"):
        assert "engines" not in path.read_text("utf-8"), path.name


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


def test_the_same_seed_gives_the_same_world_and_a_snapshot_goes_on_alike() -> None:
    async def play() -> None:
        first = [o.to_structured() for o in (await played(7, Wayfarer(), 40))[1]]
        assert first == [o.to_structured() for o in (await played(7, Wayfarer(), 40))[1]]

    asyncio.run(play())


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"seats": 2}])
def test_the_world_keeps_the_protocol_s_promises(options: Mapping[str, Any]) -> None:
    assert not run_checks("morrowind", steps=20 if options else 60, config=options, subprocesses=not options).findings
    if not options:
        assert not run_agent_checks("morrowind-wayfarer", "morrowind").findings

"""What an entry can ask of the embedded Morrowind, and what a death there costs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from wsap_core import AvatarSpec, Context
from wsap_core.protocol import AvatarState, Entry
from wsap_tes3mp.engines.simulated.engine import SimulatedEngine
from wsap_tes3mp.engines.simulated.passing import _strike
from wsap_tes3mp.engines.simulated.state import Body
from wsap_tes3mp.plugin import wsap_adapters
from wsap_tes3mp.world.catalogue import TERMS
from wsap_tes3mp.world.game import MorrowindWorld

NAMES = {"spawn": "spawn_location", "loadout": "starting_loadout"}


def entered(seed: int = 1, **terms: str) -> MorrowindWorld:
    world = MorrowindWorld(Context(seed=seed))
    wanted: dict[str, Any] = {NAMES[name]: value for name, value in terms.items() if name in NAMES}
    avatar = world.create_avatar("ada", replace(AvatarSpec("Ada"), **wanted))
    asyncio.run(world.admit(avatar.avatar_id, Entry("in", "ada", difficulty=terms.get("difficulty", "normal"))))
    assert world.jack_in("ada", avatar.avatar_id).success
    return world


def engine_of(world: MorrowindWorld) -> SimulatedEngine:
    engine = world._source.engine
    assert isinstance(engine, SimulatedEngine)
    return engine


def body_of(world: MorrowindWorld) -> Body:
    return engine_of(world)._world.bodies["ada"]


def things(world: MorrowindWorld) -> Mapping[str, int]:
    return {item: count for item, count in world.list_avatars("ada")[0].inventory.items() if item != "gold"}


def test_the_spawn_chooses_where_a_new_body_begins() -> None:
    assert {body_of(entered(seed)).cell for seed in range(6)} == {"quay"}
    assert {body_of(entered(seed, spawn="challenging")).cell for seed in range(6)} == {"causeway"}
    cells = [body_of(entered(seed, spawn="random")).cell for seed in range(12)]
    assert len(set(cells)) >= 3
    assert cells == [body_of(entered(seed, spawn="random")).cell for seed in range(12)]


def test_the_loadout_chooses_what_a_new_body_carries() -> None:
    assert things(entered()) == {"bread": 2, "club": 1, "salve": 1}
    assert things(entered(loadout="bare")) == {}
    assert things(entered(loadout="provisioned")) == {"bread": 4, "salve": 3, "smoked_eel": 3}
    assert body_of(entered(loadout="bare")).items["gold"] == body_of(entered()).items["gold"]


def test_the_difficulty_changes_how_much_a_blow_harms() -> None:
    def lost(difficulty: str) -> int:
        world = entered(difficulty=difficulty)
        state, body = engine_of(world)._world, body_of(world)
        foe = next(thing for thing in state.things.values() if thing.kind == "creature")
        body.health = body.max_health = 10_000
        for _ in range(50):
            _strike(state, foe, body)
        return 10_000 - body.health

    easy, normal, hard = map(lost, ("easy", "normal", "hard"))
    assert easy < 0.7 * normal < 0.7 * 0.7 * hard * 1.05


def test_the_terms_hold_in_the_next_episode_and_after_a_restore() -> None:
    world = entered(spawn="challenging", loadout="bare", difficulty="hard")
    other = MorrowindWorld(Context(seed=5))
    other.restore(world.snapshot())
    for each in (world, other):
        asyncio.run(each.reset())
        assert (body_of(each).cell, things(each), body_of(each).harm) == ("causeway", {}, 150)


def test_a_body_that_wakes_is_where_it_was() -> None:
    world = entered(spawn="challenging")
    body = body_of(world)
    body.cell, body.x, body.y = "inn", 3.0, 3.0
    world.jack_out("ada", "suspend")
    asyncio.run(world.admit("avatar-1", Entry("again", "ada", difficulty="easy")))
    assert world.jack_in("ada", "avatar-1").success
    assert (body.cell, body.harm) == ("inn", 50)


def test_a_death_costs_what_its_way_back_says() -> None:
    world = entered()

    async def play() -> None:
        body, player = body_of(world), world._players["ada"]
        before = body.items["gold"]
        body.health = 0
        await player.look()
        player.body = type(player.body)(**{**vars(player.body), "state": AvatarState.DESTROYED})
        option = world.handle_death("avatar-1").respawn_options[0]
        assert (option.cost, option.penalties) == ({"gold": before // 3}, ("debuff",))
        assert world.respawn("avatar-1", option).success
        assert (body.items["gold"], body.health) == (before - before // 3, body.max_health // 2)

    asyncio.run(play())


@pytest.mark.parametrize(("term", "value"), [(term, value) for term, values in TERMS.items() for value in values])
def test_every_declared_value_changes_the_beginning(term: str, value: str) -> None:
    terms: dict[str, Any] = {term: value}
    assert entered(**terms).snapshot() != entered().snapshot()


def test_a_live_world_takes_no_terms() -> None:
    spec = next(iter(wsap_adapters()))
    assert spec.with_options({}).terms == TERMS
    assert spec.with_options({"bridge": "http://127.0.0.1:1"}).terms == {}

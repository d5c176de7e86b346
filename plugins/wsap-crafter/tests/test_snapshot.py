"""Snapshots are complete, and invalid ones are refused."""

from __future__ import annotations

import json
import random
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wsap_core import Action, Context
from wsap_core.authoring.packing import pack, unpack
from wsap_core.errors import SnapshotError
from wsap_core.protocol import AvatarSpec, Entry, PortableItem
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.rules import GAME_ACTIONS
from wsap_crafter.snapshot import MAGIC


def played(seed: int, steps: int) -> CrafterAdapter:
    """Return an adapter after some random play, with the items to craft."""
    world = CrafterAdapter(Context(seed=seed))
    chooser = random.Random(seed)
    for step in range(steps):
        if step % 50 == 0:
            world._engine.player.inventory.update(health=9, food=9, drink=9, wood=5, stone=5, sapling=3)
        if world.act(Action(chooser.choice(GAME_ACTIONS))).done:
            world.reset()
    return world


@pytest.mark.parametrize(("seed", "steps"), [(0, 0), (1, 1), (2, 137), (3, 600)])
def test_a_restored_game_goes_on_as_if_it_had_never_stopped(seed, steps):
    world = played(seed, steps)
    other = CrafterAdapter(Context(seed=999))
    other.restore(world.snapshot())
    assert other.observe() == world.observe()
    assert other.snapshot() == world.snapshot()
    chooser = random.Random(0)
    for _ in range(400):
        action = Action(chooser.choice(GAME_ACTIONS))
        expected, found = world.act(action), other.act(action)
        assert found == expected
        if expected.done:
            assert other.reset() == world.reset()
    assert other.snapshot() == world.snapshot()


@pytest.mark.slow
def test_taking_a_snapshot_changes_nothing():
    one, other = played(5, 100), played(5, 100)
    chooser = random.Random(1)
    for _ in range(80):
        action = Action(chooser.choice(GAME_ACTIONS))
        one.snapshot()
        one.render()
        assert one.act(action) == other.act(action)
        if one.observe().avatar.health <= 0:
            break


def test_arrows_plants_and_creatures_keep_all_their_numbers(scene):
    made = scene(0).empty("path").stand(32, 32)
    made.put("Zombie", 30, 30, cooldown=3, health=2)
    made.put("Skeleton", 34, 34, reload=2, health=1)
    made.put("Arrow", 28, 32, facing=(0, -1))
    made.put("Plant", 36, 32, grown=299)
    made.put("Cow", 36, 35, health=1)
    made.look()
    other = CrafterAdapter(Context(seed=1))
    other.restore(made.adapter.snapshot())
    for _ in range(12):
        expected, found = made.adapter.act(Action("noop")), other.act(Action("noop"))
        assert found == expected
    assert other.snapshot() == made.adapter.snapshot()


def test_the_body_and_its_agent_are_kept():
    world = CrafterAdapter(Context(seed=2))
    avatar = world.create_avatar("ann", AvatarSpec(name="Ann"))
    world.jack_in("ann", avatar.avatar_id)
    world.act(Action("move_left"))
    other = CrafterAdapter(Context(seed=3))
    other.restore(world.snapshot())
    assert other.list_avatars("ann") == world.list_avatars("ann")
    assert other.jack_out("ann", "suspend") == world.jack_out("ann", "suspend")


@pytest.mark.slow
def test_a_snapshot_is_small_and_no_pickle():
    data = played(4, 400).snapshot()
    assert len(data) < 7_000
    assert data.startswith(b"WSAP-CRAFTER-2\n")
    json.loads(zlib.decompress(data[len(MAGIC) :]))


def _refused(world: CrafterAdapter, data: bytes) -> None:
    before = world.snapshot()
    with pytest.raises(SnapshotError) as error:
        world.restore(data)
    assert "\n" not in str(error.value)
    assert world.snapshot() == before


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        MAGIC,
        MAGIC + b"garbage",
        b"WSAP-CRAFTER-3\n" + zlib.compress(b"{}"),
        MAGIC + zlib.compress(b"{}"),
        MAGIC + zlib.compress(b"[1]"),
        MAGIC + zlib.compress(b"[" * 100_000),
        MAGIC + zlib.compress(b'{"engine": NaN}'),
        MAGIC + zlib.compress(b" " * 50_000_000),
        MAGIC + zlib.compress(b"{}") + b"more",
    ],
)
def test_what_is_no_snapshot_is_refused_and_changes_nothing(data):
    _refused(CrafterAdapter(Context(seed=1)), data)


def test_a_snapshot_cut_short_is_refused():
    world = played(1, 50)
    data = world.snapshot()
    for length in range(0, len(data) - 1, 211):
        _refused(world, data[:length])


_WRONG = [
    (("engine", "step"), -1),
    (("engine", "step"), "7"),
    (("engine", "step"), True),
    (("engine", "episode"), 0),
    (("engine", "random"), ["AAAA", 3]),
    (("engine", "random"), [7, 3]),
    (("engine", "ground"), "b" * 4095),
    (("engine", "ground"), "z" * 4096),
    (("engine", "ground"), "a" * 4096),
    (("engine", "player", "facing"), "up"),
    (("engine", "player", "inventory"), [9] * 15),
    (("engine", "player", "inventory"), [10] * 16),
    (("engine", "player", "numbers"), [0, 0, 0, 0, "1e400"]),
    (("engine", "player", "action"), "fly"),
    (("engine", "objects"), []),
    (("engine", "objects"), [["Player", 3, 3], ["Player", 4, 4]]),
    (("engine", "objects"), [["Player", 64, 3]]),
    (("engine", "objects"), [["Player", 3, 3], ["Cow", 3, 3, 1]]),
    (("engine", "objects"), [["Player", 3, 3], ["Dragon", 4, 4, 1]]),
    (("engine", "objects"), [["Player", 3, 3], ["Zombie", 4, 4, 1]]),
    (("engine", "chunks"), []),
    (("engine", "chunks"), [[0, 12, 0, 13, []]]),
    (("engine",), None),
    (("record",), None),
    (("record", "body", "state"), "flying"),
    (("record", "body", "owner"), 3),
    (("record", "events"), [["x"]]),
    (("record", "damage"), -2),
    (("record", "session"), [0, 0.0, ["fly"]]),
]


@pytest.mark.parametrize(("path", "value"), _WRONG)
def test_a_snapshot_with_one_wrong_value_is_refused(path, value):
    world = played(1, 30)
    state = unpack(MAGIC, world.snapshot(), "crafter")
    part = state
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    _refused(world, pack(MAGIC, state))


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.slow
def test_a_snapshot_with_any_value_replaced_is_refused_or_gives_a_game_that_runs(one_snapshot, data):
    world, text = one_snapshot
    state = json.loads(text)
    part, key = state, data.draw(st.sampled_from(["engine", "record", "ledger"]))
    while isinstance(part[key], dict | list) and part[key] and data.draw(st.integers(0, 3)):
        part = part[key]
        keys = sorted(part) if isinstance(part, dict) else range(len(part))
        key = data.draw(st.sampled_from(list(keys)))
    junk = st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.just([]) | st.just({}) | st.floats()
    part[key] = data.draw(junk.filter(lambda v: v == v and v not in (float("inf"), float("-inf"))))
    try:
        world.restore(pack(MAGIC, state))
    except SnapshotError:
        return
    world.act(Action("do"))
    world.observe().to_text()
    avatar_id = world.observe().avatar.avatar_id
    world.release(avatar_id, "another")
    world.reset()
    world.snapshot()


@pytest.fixture(scope="module")
def one_snapshot():
    world = played(6, 120)
    avatar = world.create_avatar("ann", AvatarSpec(name="Ann"))
    items = [PortableItem(f"item-{n}", "thing", "weapon", n, {"made of": "ore"}, "elsewhere") for n in (1, 5, 10)]
    world.admit(avatar.avatar_id, Entry("in-1", "ann", {"combat": 0.5, "survival": 1.0}, items))
    world.release(avatar.avatar_id, "out-1")
    world.admit(avatar.avatar_id, Entry("in-2", "ann", {}, items))
    return CrafterAdapter(Context(seed=1)), json.dumps(unpack(MAGIC, world.snapshot(), "crafter"))

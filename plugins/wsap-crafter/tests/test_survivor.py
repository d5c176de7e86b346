"""The rule-based agent, in scenes of the real game and in whole stretches of it."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core import Context
from wsap_core.errors import SnapshotError
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.survivor import Survivor, create
from wsap_crafter.survivor.grid import BY_NAME, MOVE, cell_at
from wsap_crafter.survivor.percept import Percept, perceive
from wsap_crafter.survivor.policy import think
from wsap_crafter.survivor.state import State

WALKABLE = {"grass", "sand", "path"}
TOOLS = {"wood_pickaxe": 1, "wood_sword": 1, "stone_pickaxe": 1, "stone_sword": 1}


def play(made, agent, steps, until=lambda action, observation: False):
    """Let the agent play a scene; return its actions, ending with the one that fulfilled the condition."""
    taken = []
    observation = made.look()
    for _ in range(steps):
        action = agent.decide(observation)
        taken.append(action)
        if until(action, observation):
            break
        observation = made.adapter.act(action).observation
    return taken


def room_around(made):
    """Return all positions that a creature could reach from beside or under the player."""
    start = tuple(made.player.pos.tolist())
    seen, waiting = {start}, [start]
    while waiting:
        x, y = waiting.pop()
        for near in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if near not in seen and made.world[near][0] in WALKABLE:
                seen.add(near)
                waiting.append(near)
    return seen


# --- seeing -----------------------------------------------------------------------------------


def test_perceiving_reads_what_the_observation_says(scene):
    made = scene().empty().stand(20, 30, facing=(1, 0)).carry(health=7, food=6, drink=5, energy=4, wood=3)
    made.put("Zombie", 22, 30)
    made.put("Cow", 20, 28)
    made.put("tree", 19, 30)
    percept = perceive(made.look())
    assert (percept.health, percept.food, percept.drink, percept.energy) == (7, 6, 5, 4)
    assert percept.cell == cell_at(20, 30)
    assert percept.ahead == cell_at(21, 30)
    assert percept.zombies == (cell_at(22, 30),)
    assert percept.cows == (cell_at(20, 28),)
    assert percept.has("wood") == 3
    assert percept.rows[3] == "...T@.Z.."


def test_the_map_keeps_what_has_left_the_view(scene):
    made = scene().empty().stand(20, 30)
    made.put("diamond", 16, 30)
    state = State()
    state.memory.update(perceive(made.look()))
    made.stand(40, 30)
    state.memory.update(perceive(made.look()))
    assert state.memory.ground[cell_at(16, 30)] == ord("d")
    assert state.memory.ground[cell_at(30, 30)] == ord("?")


# --- single decisions -------------------------------------------------------------------------


def test_a_zombie_beside_the_player_is_faced_and_struck(scene):
    made = scene().empty().stand(20, 30, facing=(0, 1))
    made.put("Zombie", 21, 30)
    agent = Survivor()
    first = agent.decide(made.look())
    assert first.name == "move_right"
    assert "zombie" in first.reasoning
    made.player.facing = (1, 0)
    assert agent.decide(made.look()).name == "do"


def test_a_thirsty_player_walks_to_the_water_and_drinks_to_the_full(scene):
    made = scene().empty().stand(20, 30).carry(drink=3, sapling=1, **TOOLS)
    made.put("water", 24, 30)
    taken = play(made, Survivor(), 30, until=lambda action, seen: seen.status["drink"] == 9)
    assert [action.name for action in taken[:4]] == ["move_right"] * 3 + ["do"]
    assert made.player.inventory["drink"] == 9
    assert "4 tiles east" in taken[1].reasoning or "3 tiles east" in taken[1].reasoning


def test_a_hungry_player_goes_for_the_cow(scene):
    made = scene().empty().stand(20, 30).carry(food=3, sapling=1, **TOOLS)
    made.put("Cow", 23, 31)
    play(made, Survivor(), 40, until=lambda action, seen: seen.status["food"] > 3)
    assert made.player.inventory["food"] > 3


def test_wood_becomes_a_table_a_pickaxe_and_a_sword(scene):
    made = scene().empty().stand(20, 30).carry(wood=9, sapling=1)
    taken = [action.name for action in play(made, Survivor(), 4)]
    assert taken.index("place_table") < taken.index("make_wood_pickaxe") < taken.index("make_wood_sword")
    assert made.player.inventory["wood_sword"] == 1


def test_iron_tools_are_made_on_the_spot_from_what_is_carried(scene):
    made = scene().empty("stone").stand(20, 30).carry(wood=5, stone=9, coal=2, iron=2, sapling=1, **TOOLS)
    made.put("path", 20, 30)
    play(made, Survivor(), 30, until=lambda action, seen: seen.inventory.get("iron_sword", 0) > 0)
    assert made.player.inventory["iron_pickaxe"] == 1
    assert made.player.inventory["iron_sword"] == 1


@pytest.mark.parametrize("ground", ["stone", "path"])
def test_a_tired_player_sleeps_only_where_nothing_can_walk_in(scene, ground):
    made = scene().empty("grass").stand(20, 30).carry(energy=1, stone=9, sapling=1, **TOOLS)
    for x in range(16, 25):
        for y in range(27, 34):
            made.put(ground if (x, y) != (20, 30) else "path", x, y)
    taken = play(made, Survivor(), 120, until=lambda action, seen: action.name == "sleep")
    assert taken[-1].name == "sleep"
    assert room_around(made) <= {(x, y) for x in range(16, 25) for y in range(27, 34)}
    assert len(room_around(made)) <= 2


def test_a_sapling_is_fenced_in_on_all_sides(scene):
    made = scene().empty().stand(20, 30).carry(stone=9, wood=5, sapling=1, coal=2, **TOOLS)
    made.put("table", 18, 30)
    planted = []

    def fenced(action, seen):
        planted[:] = [obj.pos.tolist() for obj in made.world.objects if type(obj).__name__ == "Plant"]
        return bool(planted) and all(
            made.world[planted[0][0] + dx, planted[0][1] + dy][0] not in WALKABLE
            for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))
        )

    play(made, Survivor(), 120, until=fenced)
    assert fenced(None, None)


def test_a_home_holds_plants_and_nothing_can_walk_in(scene):
    made = scene().empty().stand(20, 30).carry(stone=9, wood=5, sapling=3, iron_pickaxe=1, iron_sword=1, **TOOLS)
    for x in range(16, 20):
        for y in range(20, 40):
            made.put("water" if x < 18 else "stone", x, y)
    made.put("water", 18, 30)
    made.put("grass", 19, 30)

    def settled(action, seen):
        return action.reasoning.startswith("At home")

    taken = play(made, Survivor(), 250, until=settled)
    assert taken[-1].reasoning.startswith("At home")
    room = room_around(made)
    plants = {tuple(obj.pos.tolist()) for obj in made.world.objects if type(obj).__name__ == "Plant"}
    assert len(plants) >= 3
    assert len(room - plants) <= 3


TILES = ".:_~#TLcidtf"


@settings(max_examples=150, deadline=None)
@given(
    cells=st.text(alphabet=TILES + TILES + "CZSapP", min_size=63, max_size=63),
    facing=st.sampled_from(sorted(BY_NAME)),
    vitals=st.tuples(*[st.integers(0, 9)] * 4),
    inventory=st.dictionaries(
        st.sampled_from(["wood", "stone", "coal", "iron", "sapling", "wood_pickaxe", "stone_pickaxe", "iron_pickaxe"]),
        st.integers(1, 9),
    ),
    step=st.integers(0, 9999),
)
def test_whatever_it_sees_it_never_walks_into_lava(cells, facing, vitals, inventory, step):
    cells = cells[:31] + "@" + cells[32:]
    rows = tuple(cells[start : start + 9] for start in range(0, 63, 9))
    here = cell_at(32, 32)
    places = {
        kind: tuple(here + (i // 9 - 3) * 72 + i % 9 - 4 for i, c in enumerate(cells) if c == kind) for kind in "CZSa"
    }
    health, food, drink, energy = vitals
    percept = Percept(
        step, here, BY_NAME[facing], max(1, health), food, drink, energy, inventory, False, 0.5, rows,
        places["C"], places["Z"], places["S"], places["a"], (), 0,
    )  # fmt: skip
    action = think(State(), percept).action
    beside = {"move_up": cells[22], "move_left": cells[30], "move_right": cells[32], "move_down": cells[40]}
    assert set(beside) == set(MOVE.values())
    assert beside.get(action) != "L"


# --- episodes, snapshots, plans ---------------------------------------------------------------


def test_a_new_episode_is_met_with_an_empty_map(scene):
    agent = Survivor()
    made = scene(3)
    play(made, agent, 30)
    made.adapter.reset(4)
    fresh = Survivor()
    assert agent.decide(made.look()) == fresh.decide(made.look())
    assert agent.snapshot() == fresh.snapshot()


def test_a_restored_agent_decides_as_the_one_it_was_taken_of(scene):
    made, agent = scene(5), create(Context(seed=5))
    play(made, agent, 150)
    twin = create(Context(seed=99))
    twin.restore(agent.snapshot())
    observation = made.look()
    for _ in range(300):
        action = agent.decide(observation)
        assert twin.decide(observation) == action
        result = made.adapter.act(action)
        observation = result.observation
        if result.done:
            break
    assert twin.snapshot() == agent.snapshot()


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"crafter-survivor/1\n", b"crafter-survivor/1\nabc"])
def test_a_damaged_snapshot_is_refused_and_changes_nothing(scene, damage):
    agent = Survivor()
    play(scene(1), agent, 20)
    before = agent.snapshot()
    with pytest.raises(SnapshotError):
        agent.restore(damage)
    with pytest.raises(SnapshotError):
        agent.restore(before[:-10])
    assert agent.snapshot() == before


def test_a_snapshot_with_a_map_of_another_size_is_refused():
    magic, packed = Survivor().snapshot().split(b"\n", 1)
    state = json.loads(zlib.decompress(packed))
    state["memory"]["ground"] = state["memory"]["ground"][:-1]
    with pytest.raises(SnapshotError, match="size"):
        Survivor().restore(magic + b"\n" + zlib.compress(json.dumps(state).encode()))


def test_the_plan_names_what_is_left_and_drops_what_is_done(scene):
    made, agent = scene(1), Survivor()
    agent.decide(made.look())
    before = agent.plan([])
    assert "Make an iron pickaxe at table and furnace" in before
    assert before[0].startswith("Now: ")
    play(made, agent, 100)
    after = agent.plan([])
    assert len(after) < len(before)
    assert "Gather wood, up to nine pieces" not in after


def test_it_gets_far_in_the_real_game():
    game, agent = CrafterAdapter(Context(seed=1)), create(Context(seed=1))
    agent.initialize(game.game_description, game.action_space)
    observation = game.observe()
    for _ in range(1500):
        result = game.act(agent.decide(observation))
        observation = result.observation
        if result.done:
            break
    assert len(observation.achievements_unlocked) >= 12


_TRACE = """
from wsap_core import Context
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.survivor import create
game, agent = CrafterAdapter(Context(seed=7)), create(Context(seed=7))
observation = game.observe()
for _ in range(250):
    action = agent.decide(observation)
    print(action.name, action.reasoning)
    observation = game.act(action).observation
"""


def test_its_actions_do_not_depend_on_the_order_of_hashes():
    def trace(hash_seed):
        ran = subprocess.run(
            [sys.executable, "-c", _TRACE],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
        return ran.stdout

    assert trace("1") == trace("4711") != ""

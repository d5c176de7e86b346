"""The rule-based agent, in scenes and whole episodes of the real game."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core import Context
from wsap_core.errors import SnapshotError
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.survivor import Survivor, create
from wsap_crafter.survivor.farm import note_walls
from wsap_crafter.survivor.mind.grid import BY_NAME, MOVE, SIZE, WIDTH, cell_at, place_of
from wsap_crafter.survivor.mind.percept import Percept, perceive
from wsap_crafter.survivor.mind.state import State
from wsap_crafter.survivor.needs import decide_rest
from wsap_crafter.survivor.policy import think
from wsap_crafter.survivor.shelter import lets_in
from wsap_crafter.survivor.site import ring_of, room_at

WALKABLE = {"grass", "sand", "path"}
TOOLS = {"wood_pickaxe": 1, "wood_sword": 1, "stone_pickaxe": 1, "stone_sword": 1}


def play(made, agent, steps, until=lambda action, observation: False):
    """Let the agent play a scene; return its actions up to the one that fulfilled the condition."""
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
    taken = [action.name for action in play(made, Survivor(), 5)]
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


def test_a_shelter_sought_in_the_evening_is_left_healed_and_not_sought_anew(scene):
    percept = replace(perceive(scene().look()), step=120, health=5)
    state = State(resting="heal", refuge=(percept.cell, percept.cell + 1))
    decide_rest(state, percept)
    assert state.resting
    assert state.refuge == (percept.cell, percept.cell + 1)
    decide_rest(state, replace(percept, health=7))
    assert not state.resting


def plants_of(made):
    return {tuple(obj.pos.tolist()) for obj in made.world.objects if type(obj).__name__ == "Plant"}


def shore(scene):
    """Return a scene between a lake in the west and rock in the east, with everything for a home."""
    made = scene().empty().stand(24, 30).carry(stone=9, wood=5, sapling=1, **TOOLS)
    for y in range(20, 41):
        for x in range(10, 22):
            made.put("water", x, y)
        for x in range(27, 34):
            made.put("stone", x, y)
    return made


def beside(x, y):
    return ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1))


def test_a_sapling_is_planted_where_it_is_found(scene):
    made = scene().empty().stand(20, 30, facing=(1, 0)).carry(sapling=1)
    assert play(made, Survivor(), 1)[0].name == "place_plant"


def test_a_home_is_built_beside_the_water_and_nothing_can_walk_in(scene):
    made, agent = shore(scene), Survivor()
    play(made, agent, 250, until=lambda action, seen: action.name == "sleep")
    room = room_around(made) - plants_of(made)
    assert len(room) == 4
    assert len({x for x, _ in room}) == len({y for _, y in room}) == 2
    assert any(
        made.world[x + dx, y + dy][0] == "water" for x, y in room for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))
    )


def test_saplings_are_found_and_planted_behind_closed_walls(scene):
    made, agent = shore(scene), Survivor()
    play(made, agent, 400, until=lambda action, seen: len(plants_of(made)) >= 4 and action.name == "sleep")
    at_home = {place for place in plants_of(made) if room_around(made) & set(beside(*place))}
    assert len(at_home) >= 3
    for place in at_home:
        for cell in beside(*place):
            assert made.world[cell][0] not in WALKABLE or cell in plants_of(made) | room_around(made)


@pytest.mark.slow
def test_its_plants_and_its_water_keep_it_alive_through_days_at_home(scene):
    made, agent = shore(scene), Survivor()
    made.player.achievements.update(dict.fromkeys(set(made.player.achievements) - {"eat_plant"}, 1))
    seen, least = made.look(), 9
    for _ in range(3000):
        result = made.adapter.act(agent.decide(seen))
        seen = result.observation
        assert not result.done
        if seen.step > 600:
            least = min(least, seen.status["food"], seen.status["drink"], seen.status["energy"])
    assert "eat_plant" in seen.achievements_unlocked
    assert least >= 1


def test_a_well_that_arrows_come_over_is_walled_up(scene):
    made, agent = shore(scene), Survivor()
    play(made, agent, 250, until=lambda action, seen: action.name == "sleep")
    made.player.sleeping = False
    well = agent._state.well
    stand = next(cell for cell in agent._state.home if abs(cell - well) in (1, WIDTH))
    made.stand(*place_of(stand), facing=(1, 0)).carry(stone=3)
    decision = think(agent._state, replace(perceive(made.look()), damage=2, zombies=()))
    assert "arrow came from" in decision.reason
    play(made, agent, 4)
    assert made.world[tuple(place_of(well))][0] == "stone"


def test_the_stone_across_the_well_is_not_taken_away_again():
    home = room_at(cell_at(20, 20))
    state = State(home=home, well=home[0] - 1, door=home[3] + 1, settled=True)
    state.memory.ground[:] = b"." * SIZE
    state.memory.ground[home[0] - 4 : home[0]] = b"##~~"
    note_walls(state)
    assert home[0] - 3 in state.memory.walls


def test_no_way_leads_through_the_home_while_it_is_left_alone(scene):
    made, agent = shore(scene), Survivor()
    play(made, agent, 250, until=lambda action, seen: action.name == "sleep")
    state = agent._state
    made.player.sleeping, state.homing = False, False
    outside = state.door + 2 * ring_of(state.home)[state.door]
    made.stand(*place_of(outside)).carry(stone=3, food=1)
    state.memory.cows = {outside + 3: 0}
    think(state, replace(perceive(made.look()), step=360, zombies=()))
    assert not state.homing
    assert {*state.home, state.door} <= set(state.memory.walls)


@pytest.mark.parametrize(
    ("beyond", "open_to_arrows"), [("~~~.", True), ("~~~#", False), ("~L:.", True), ("#...", False), ("....", True)]
)
def test_arrows_come_over_water_from_where_skeletons_can_walk(beyond, open_to_arrows):
    ground = bytearray(b"#" * SIZE)
    start = cell_at(10, 10)
    ground[start : start + len(beyond)] = beyond.encode()
    assert lets_in(ground, start, 1) is open_to_arrows


def test_the_ring_of_a_room_is_the_eight_cells_beside_it():
    room = room_at(cell_at(10, 10))
    places = {tuple(place_of(cell)) for cell in ring_of(room)}
    assert places == {(10, 9), (11, 9), (12, 10), (12, 11), (11, 12), (10, 12), (9, 11), (9, 10)}


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
@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"crafter-survivor/2\n", b"crafter-survivor/2\nabc"])
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_its_actions_do_not_depend_on_the_order_of_hashes():
    def trace(hash_seed):
        ran = subprocess.run(
            [sys.executable, "-c", _TRACE],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
        return ran.stdout

    assert trace("1") == trace("4711") != ""

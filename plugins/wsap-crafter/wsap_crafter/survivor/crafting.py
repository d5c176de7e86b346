"""The tech tree: wood, stone, iron, diamond."""

from __future__ import annotations

from wsap_crafter.survivor.explore import explore
from wsap_crafter.survivor.mind.grid import DIRECTIONS, RING, WIDTH, bearing, place_of, reach
from wsap_crafter.survivor.mind.knowledge import (
    COAL,
    DAY,
    DIAMOND,
    FURNACE,
    IRON,
    STONE,
    TABLE,
    TREE,
    WALKABLE,
    affordable,
)
from wsap_crafter.survivor.mind.paths import find_route
from wsap_crafter.survivor.mind.percept import Percept
from wsap_crafter.survivor.mind.state import Decision, State
from wsap_crafter.survivor.moves import advance, costs_now, fetch, head_for

_TABLE_WAY = 25
"""Maximum distance to a known table; beyond it, a new one is built."""
_TABLE_CLOSE = 8
"""The same with enough wood for a new one."""
_WORKSHOP_CLOSE = 12
"""Maximum distance to a workshop at night."""
_SMALL_HOURS = 230
"""The hour at which work at night ends."""
_NIGHT_WAY = 45
"""Maximum price of a path at night."""
_ROCKY = b"#:cidL"
"""Ground of mountains, which have ores."""
_ITEM_GROUND = {"wood": TREE, "stone": STONE, "coal": COAL, "iron": IRON, "diamond": DIAMOND}


def near(state: State, cell: int, code: int) -> bool:
    """Return whether one of the eight cells around a cell, the reach of crafting, is of a kind."""
    x, y = place_of(cell)
    # At x = 0 or y = 0 the game finds nothing nearby: its slice starts at -1.
    return x > 0 and y > 0 and any(state.memory.ground[cell + around] == code for around in RING)


def gather(state: State, percept: Percept, items: tuple[str, ...], limit: int = 1000) -> Decision | None:
    """Fetch the nearest of several items; None if none is known within reach."""
    wanted = bytes(_ITEM_GROUND[item] for item in items)
    if not state.memory.knows(wanted):
        return None
    names = " or ".join(items)
    reason = f"Going for {names}"
    if state.way and state.errand.startswith("gather"):
        reason += f", {bearing(percept.cell, state.way[0])}"
    return fetch(state, percept, f"gather {names}<{limit}", reason, wanted=wanted, limit=limit)


def wooden(state: State, percept: Percept) -> Decision | None:
    """Make the wooden pickaxe and sword."""
    missing = [tool for tool in ("wood_pickaxe", "wood_sword") if not percept.has(tool)]
    if not missing:
        return None
    if near(state, percept.cell, TABLE) and percept.has("wood"):
        return Decision(f"make_{missing[0]}", f"Making a {missing[0].replace('_', ' ')}")
    return _at_table(state, percept, len(missing), 5)


def stony(state: State, percept: Percept) -> Decision | None:
    """Make the stone pickaxe and sword."""
    missing = [tool for tool in ("stone_pickaxe", "stone_sword") if not percept.has(tool)]
    if not missing:
        return None
    if near(state, percept.cell, TABLE) and affordable(f"make_{missing[0]}", percept.inventory):
        return Decision(f"make_{missing[0]}", f"Making a {missing[0].replace('_', ' ')}")
    if percept.has("stone") < len(missing):
        decision = gather(state, percept, ("stone",))
        return decision or explore(state, percept, _ROCKY, "stone")
    return _at_table(state, percept, len(missing), 0)


def _at_table(state: State, percept: Percept, wood: int, spare: int) -> Decision | None:
    """Go to a table with enough wood, building one if none is close."""
    close = _way_price(state, percept, TABLE)
    too_far = _TABLE_CLOSE if percept.has("wood") >= wood + 2 else _TABLE_WAY
    needed = wood if close <= too_far else wood + 2
    if percept.has("wood") < needed or (percept.has("wood") < needed + spare and _tree_close(state, percept)):
        decision = gather(state, percept, ("wood",))
        if decision is not None:
            return decision
        if close < 1000 and percept.has("wood") >= wood:
            return walk_to_table(state, percept)
        return explore(state, percept, b".T", "trees")
    if close <= too_far:
        return walk_to_table(state, percept)
    return put_here(state, percept, "place_table", "Placing a table")


def _tree_close(state: State, percept: Percept) -> bool:
    if percept.has("wood") >= 9:
        return False
    way = find_route(
        state.memory.ground,
        percept.cell,
        costs_now(percept),
        wanted=bytes((TREE,)),
        blocked=state.memory.occupied,
        limit=4,
    )
    return way is not None


def walk_to_table(state: State, percept: Percept) -> Decision | None:
    """Walk to the nearest known table."""
    following = head_for(state, percept, "table", wanted=bytes((TABLE,)))
    if following is None:
        return None
    return advance(state, percept, following, f"Going back to the table, {bearing(percept.cell, state.way[0])}")


def _way_price(state: State, percept: Percept, code: int) -> int:
    """Return the Manhattan distance to the nearest known thing of a kind; 1000 if none is known."""
    ground = state.memory.ground
    best, cell = 1000, ground.find(code)
    while cell >= 0:
        best = min(best, abs(cell // WIDTH - percept.cell // WIDTH) + abs(cell % WIDTH - percept.cell % WIDTH))
        cell = ground.find(code, cell + 1)
    return best


def put_here(state: State, percept: Percept, action: str, reason: str) -> Decision | None:
    """Place something on the free cell ahead, or first find or clear one."""
    memory = state.memory
    ahead = percept.ahead
    if memory.ground[ahead] in WALKABLE and ahead not in memory.occupied and ahead not in memory.walls:
        return Decision(action, reason)
    costs = costs_now(percept)
    for step in (percept.facing, *DIRECTIONS):
        cell = percept.cell + step
        if costs[memory.ground[cell]] and cell not in memory.occupied and cell not in (*memory.walls, state.door):
            return advance(state, percept, cell, f"{reason}: finding room")
    return None


def furnace(state: State, percept: Percept) -> Decision | None:
    """Build the first furnace, beside a table if one is close."""
    if "place_furnace" in percept.unlocked:
        return None
    if percept.has("stone") < 5:
        return gather(state, percept, ("stone",)) or explore(state, percept, _ROCKY, "stone")
    if not near(state, percept.cell, TABLE) and _way_price(state, percept, TABLE) <= 10:
        return walk_to_table(state, percept)
    return furnace_here(state, percept)


def furnace_by_night(state: State, percept: Percept) -> Decision | None:
    """Place the first furnace from the stones at hand, at the place where the night is spent."""
    if "place_furnace" in percept.unlocked or percept.has("stone") < 6:
        return None
    return put_here(state, percept, "place_furnace", "Placing a furnace")


def furnace_here(state: State, percept: Percept) -> Decision | None:
    """Place a furnace ahead, staying within reach of the table if there is one."""
    memory = state.memory
    reason = "Placing a furnace"
    if not near(state, percept.cell, TABLE) or state.memory.free(percept.ahead):
        return put_here(state, percept, "place_furnace", reason)
    costs = costs_now(percept)
    for step in DIRECTIONS:
        cell = percept.cell + step
        code = memory.ground[cell]
        if not costs[code] or cell in memory.occupied or cell in memory.walls:
            continue
        if code not in WALKABLE or (near(state, cell, TABLE) and costs[memory.ground[cell + step]]):
            return advance(state, percept, cell, f"{reason}: finding room")
    return put_here(state, percept, "place_furnace", reason)


def iron(state: State, percept: Percept) -> Decision | None:
    """Make the iron pickaxe, then the iron sword."""
    missing = [tool for tool in ("iron_pickaxe", "iron_sword") if not percept.has(tool)]
    if not missing:
        return None
    recipe = f"make_{missing[0]}"
    if affordable(recipe, percept.inventory):
        if near(state, percept.cell, TABLE) and near(state, percept.cell, FURNACE):
            return Decision(recipe, f"Making an {missing[0].replace('_', ' ')}")
        decision = _to_workshop(state, percept)
        if decision is not None:
            return decision
    lacking = tuple(
        item
        for item, amount in (("iron", len(missing)), ("coal", len(missing)), ("wood", len(missing) + 2))
        if percept.has(item) < amount
    )
    for group in (lacking, *((item,) for item in lacking)):
        decision = gather(state, percept, group) if group else None
        if decision is not None:
            return decision
    if lacking == ("wood",):
        return explore(state, percept, b".T", "trees")
    return explore(state, percept, _ROCKY, " and ".join(item for item in lacking if item != "wood"))


def _to_workshop(state: State, percept: Percept) -> Decision | None:
    """Go to a place with table and furnace within reach, or build what is missing; None if items are lacking."""
    spots = _workshops(state, percept)
    can_build = _can_build(percept)
    closest = min((reach(spot, percept.cell) for spot in spots), default=1000)
    if spots and (closest <= 15 or not can_build):
        following = head_for(state, percept, "workshop", cells=spots)
        if following is not None:
            return advance(state, percept, following, "Going to table and furnace")
    if near(state, percept.cell, TABLE):
        if percept.has("stone") >= 4:
            return furnace_here(state, percept)
        return gather(state, percept, ("stone",))
    if percept.has("stone") < 4:
        return gather(state, percept, ("stone",))
    if _way_price(state, percept, TABLE) <= (10 if can_build else 1000):
        return walk_to_table(state, percept)
    if can_build:
        return put_here(state, percept, "place_table", "Placing a table")
    return gather(state, percept, ("wood",))


def _can_build(percept: Percept) -> bool:
    """Return whether wood and stone suffice for a table, a furnace and a tool."""
    return percept.has("wood") >= 3 and percept.has("stone") >= 4


def _workshop_at_hand(state: State, percept: Percept) -> bool:
    """Return whether a table and a furnace are close, or can be built on the spot."""
    spots = _workshops(state, percept)
    return _can_build(percept) or any(reach(spot, percept.cell) <= _WORKSHOP_CLOSE for spot in spots)


def _workshops(state: State, percept: Percept) -> tuple[int, ...]:
    """Return the known cells with both a table and a furnace within reach."""
    ground, costs = state.memory.ground, costs_now(percept)
    spots: dict[int, None] = {}
    table = ground.find(TABLE)
    while table >= 0:
        for around in RING:
            cell = table + around
            if costs[ground[cell]] and near(state, cell, FURNACE) and near(state, cell, TABLE):
                spots[cell] = None
        table = ground.find(TABLE, table + 1)
    return tuple(spots)


def stock_up(state: State, percept: Percept) -> Decision | None:
    """Keep a stock of stones for walls and bridges, and of wood from nearby."""
    if not percept.has("wood_pickaxe"):
        return None
    if percept.has("stone") < 6:
        decision = gather(state, percept, ("stone",), limit=8 if percept.has("stone") >= 2 else 25)
        if decision is not None:
            return decision
    if percept.has("wood") < 5 and not percept.has("iron_sword"):
        return gather(state, percept, ("wood",), limit=15)
    return None


def lay_stone(state: State, percept: Percept) -> Decision | None:
    """Place a first stone, for the achievement."""
    if "place_stone" in percept.unlocked or not percept.has("stone"):
        return None
    return put_here(state, percept, "place_stone", "Placing a stone")


def diamond(state: State, percept: Percept) -> Decision | None:
    """Find and collect a diamond."""
    if "collect_diamond" in percept.unlocked or not percept.has("iron_pickaxe"):
        return None
    return gather(state, percept, ("diamond",)) or explore(state, percept, _ROCKY, "diamonds")


def night_work(state: State, percept: Percept) -> Decision | None:
    """Continue mining and searching for ores at night, off the grass."""
    if not percept.has("wood_pickaxe") or percept.health < 6 or percept.step % DAY >= _SMALL_HOURS:
        return None
    tools = sum(not percept.has(tool) for tool in ("iron_pickaxe", "iron_sword"))
    wanted = []
    if percept.has("stone") < 5:
        wanted.append("stone")
    if percept.has("coal") < tools:
        wanted.append("coal")
    if percept.has("iron") < tools and percept.has("stone_pickaxe"):
        wanted.append("iron")
    if percept.has("iron_pickaxe") and "collect_diamond" not in percept.unlocked:
        wanted.append("diamond")
    tool = "iron_sword" if percept.has("iron_pickaxe") else "iron_pickaxe"
    if tools and affordable(f"make_{tool}", percept.inventory) and _workshop_at_hand(state, percept):
        return iron(state, percept)
    for item in reversed(wanted):
        decision = gather(state, percept, (item,), limit=_NIGHT_WAY)
        if decision is not None:
            return decision
    if not wanted:
        return None
    return explore(state, percept, _ROCKY, "ores by night", limit=_NIGHT_WAY)

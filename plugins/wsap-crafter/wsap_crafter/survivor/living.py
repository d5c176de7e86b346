"""Living at home: leaving, returning, and activities inside."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_crafter.survivor.crafting import gather
from wsap_crafter.survivor.homestead import breach, finished, is_wet, ring_gaps, ripe_plants, ripening, shore, unplanted
from wsap_crafter.survivor.mind.grid import DIRECTIONS, WIDTH, distance
from wsap_crafter.survivor.mind.knowledge import ACHIEVEMENTS, DAY, MOST, WALKABLE, is_night
from wsap_crafter.survivor.mind.percept import Percept
from wsap_crafter.survivor.mind.state import Decision, State
from wsap_crafter.survivor.moves import advance, head_for, put, use
from wsap_crafter.survivor.shelter import lets_in
from wsap_crafter.survivor.site import beyond, ring_of

_DAWN, _SOONEST, _LATEST = 15, 35, 95
"""The hours from which the agent leaves, in need and otherwise, and until which it leaves."""
_EVENING, _LAST_DRINK = 85, 128
"""The hours between which it leaves to drink if there is no water at home."""
_HOMEWARD, _DARK = 115, 140
"""The hours at which it returns: if well fed, and in any case."""
_CLOSE = 15
"""Maximum distance of the home for spending the night there."""
_NIGHT_WALK = 8
"""Maximum distance of the home for going there in the dark."""
_BOLD = 3000
"""The step from which it spends nights far from home."""
_COW_WAY, _COW_CLOSE = 20, 8
"""Maximum distance to a cow, in need and otherwise."""
_SLACK = 6
"""Added to these distances once it has left for a cow."""
_SPARE_TO_GO, _SPARE_TO_TURN = 64, 48
"""Minimum steps that it must be able to live after the next plant is ripe; with less it leaves for a known cow, or
keeps looking for one outside."""
_ALARM, _NO_ALARM = 6, 3
"""The distance at which a zombie keeps it inside: normally, and without food or drink."""


def live(state: State, percept: Percept) -> Decision | None:
    """Be at home at night, when hungry or hurt, and always once everything is achieved."""
    at_home = percept.cell in state.home or percept.cell in state.plots
    state.complete = finished(state, percept) or (state.complete and at_home)
    if not state.complete:
        state.homing = False
        return None
    if not state.homing:
        state.homing = _returns(state, percept)
    elif percept.cell in state.home:
        state.homing = not _leaves(state, percept)
    if not state.homing:
        _keep_out(state, percept)
        return _go_out(state, percept) or _close_door(state, percept) or _close_shore(state, percept)
    if percept.cell in state.home or (at_home and breach(state)):
        state.resting, state.refuge = "", ()
        return _inside(state, percept)
    if is_night(percept.step) and distance(percept.cell, state.home[0]) > _NIGHT_WALK:
        return None
    if percept.has("stone") < len(ring_gaps(state)) + (2 if percept.health >= 5 else 1) and percept.step % DAY < 170:
        decision = gather(state, percept, ("stone",), limit=20)
        if decision is not None:
            return decision
    following = head_for(state, percept, "home", cells=state.home)
    return None if following is None else advance(state, percept, following, "Going home")


# --- out and back -----------------------------------------------------------------------------


def _has_errands(percept: Percept) -> bool:
    """Return whether anything is left to do that can't be done at home."""
    return percept.has("stone") < 2 or len({*percept.unlocked, "eat_plant", "wake_up", "place_plant"}) < ACHIEVEMENTS


def _has_near_errand(state: State, percept: Percept) -> bool:
    """Return whether something is left to do close to home."""
    return "place_furnace" not in percept.unlocked and percept.step % DAY < _LATEST and not unplanted(state)


def _starving(state: State, percept: Percept, reserve: int = 0) -> bool:
    """Return whether, without eating, it would die within `reserve` steps after the next plant is ripe. One food lasts
    26 steps; without food, and awake, one health lasts 16."""
    return ripening(state) + reserve > 26 * percept.food + 16 * (percept.health - 1)


def _cow_worth(state: State, percept: Percept, slack: int = 0) -> bool:
    """Return whether a cow is near enough to be eaten before the next night."""
    if ripe_plants(state) or percept.food > 6:
        return False
    way = _COW_WAY if _starving(state, percept, _SPARE_TO_GO) else _COW_CLOSE
    return any(distance(cow, percept.cell) <= way + slack for cow in state.memory.cows)


def _leaves(state: State, percept: Percept) -> bool:
    """Return whether it is time to leave home for water, food or achievements."""
    hour, wet, ripe = percept.step % DAY, is_wet(state), ripe_plants(state)
    alarm = _ALARM if min(percept.food, percept.drink) else _NO_ALARM
    if any(distance(cell, percept.cell) <= alarm for cell in percept.zombies):
        return False
    starving = not ripe and _starving(state, percept)
    if (percept.food <= 1 and starving) or (percept.drink <= 1 and not wet):
        return (_SOONEST if percept.health > 4 else _DAWN) <= hour < _DARK
    if not wet and percept.drink <= 6 and _EVENING <= hour < _LAST_DRINK:
        return True
    if _SOONEST <= hour < _HOMEWARD and _cow_worth(state, percept):
        return True
    if not _SOONEST <= hour <= _LATEST:
        return False
    if (percept.drink <= 5 and not wet) or (percept.food <= 4 and starving):
        return True
    fed = percept.food >= 6 and (percept.drink >= 7 or not wet)
    fit = fed and percept.health >= 8 and percept.energy >= 5
    stocked = "eat_plant" in percept.unlocked and bool(ripe)
    return fit and (_has_near_errand(state, percept) or (stocked and _has_errands(percept)))


def _returns(state: State, percept: Percept) -> bool:
    """Return whether it is time to go home: wounded, tired, hungry with ripe plants there, or for the night."""
    hour, wet, ripe = percept.step % DAY, is_wet(state), ripe_plants(state)
    away, night = distance(percept.cell, state.home[0]), is_night(percept.step)
    near = away <= _CLOSE
    thirsty = not wet and percept.drink <= (7 if hour >= _EVENING else 6)
    hungry = not ripe and percept.food <= 4 and _starving(state, percept, _SPARE_TO_TURN)
    if state.drinking or ((thirsty or hungry or _cow_worth(state, percept, _SLACK)) and hour < _DARK and not night):
        return False
    can_heal = (ripe or percept.food) and (wet or percept.drink)
    if can_heal and (percept.health <= (5 if near else 3) or (near and percept.energy <= 3)):
        return True
    if ripe and percept.food <= 4:
        return True
    if near and (hour >= _HOMEWARD or night):
        return True
    if percept.step < _BOLD and _DARK - 10 <= hour + away * 5 // 4 < _DARK + 15:
        return True
    if "eat_plant" not in percept.unlocked and (ripe or (hour >= 60 and not _has_near_errand(state, percept))):
        return True
    return (near and bool(unplanted(state)) and hour >= 60) or not _has_errands(percept)


def _keep_out(state: State, percept: Percept) -> None:
    """Keep paths out of the home while the agent is outside."""
    if percept.cell not in _grounds(state) and not _has_visitor(state):
        state.memory.walls.update(dict.fromkeys((*state.home, state.door)))


def _grounds(state: State) -> tuple[int, ...]:
    return *state.home, *state.plots, state.door


def _has_visitor(state: State) -> bool:
    """Return whether a cow, which can be eaten, has come in."""
    return any(cow in _grounds(state) for cow in state.memory.cows)


def _go_out(state: State, percept: Percept) -> Decision | None:
    """Leave by the door."""
    if percept.cell not in _grounds(state) or _has_visitor(state):
        return None
    following = head_for(state, percept, "out", cells=(state.door + ring_of(state.home)[state.door],))
    return None if following is None else advance(state, percept, following, "Leaving home")


def _close_door(state: State, percept: Percept) -> Decision | None:
    """Close the door from outside after leaving, unless there is a cow inside."""
    door, memory = state.door, state.memory
    if memory.ground[door] not in WALKABLE or door in memory.occupied or not percept.has("stone") or state.resting:
        return None
    if distance(percept.cell, door) > 4 or _has_visitor(state):
        return None
    return put(state, percept, door, "place_stone", "Closing the door of the home", avoid=state.home)


def _close_shore(state: State, percept: Percept) -> Decision | None:
    """Wall up the place behind the well from which arrows may come."""
    cell = shore(state)
    if state.memory.ground[cell] not in WALKABLE or cell == state.far_shore or cell in state.memory.occupied:
        return None
    if percept.has("stone") < 2 or distance(percept.cell, cell) > _CLOSE or percept.step % DAY > _LATEST:
        return None
    if percept.health < 7 or min(percept.food, percept.drink) < 4 or percept.zombies:
        return None
    decision = put(state, percept, cell, "place_stone", "Keeping arrows away from the well", avoid=state.home)
    if decision is None:
        state.far_shore = cell
    return decision


# --- inside -----------------------------------------------------------------------------------


def _inside(state: State, percept: Percept) -> Decision | None:
    """Close the room, eat, drink, plant or sleep."""
    ground = state.memory.ground
    for cell in state.home:
        if ground[cell] not in WALKABLE and _adjacent(cell, percept.cell):
            return advance(state, percept, cell, "At home: digging out the room")
    gaps = [*ring_gaps(state), *([state.door] if ground[state.door] in WALKABLE else [])]
    decision = _shut(state, percept, gaps) or _eat_and_drink(state, percept) or _plant(state, percept)
    if decision is not None:
        return decision
    calm = _calm_cell(state, percept)
    if calm:
        return advance(state, percept, calm, "At home: moving out of the line of fire")
    if percept.energy < MOST and (not (gaps or breach(state)) or not percept.energy):
        return Decision("sleep", "At home: sleeping")
    return Decision("noop", "At home: resting")


def _shut(state: State, percept: Percept, gaps: list[int]) -> Decision | None:
    """Close gaps, and the well, too, if arrows come in over it."""
    gap = breach(state)
    if gap and percept.has("stone"):
        return _mend(state, percept, gap)
    action = "place_stone" if percept.has("stone") else "place_table" if percept.has("wood") >= 2 else ""
    decision = None
    if action:
        decision = _from_inside(state, percept, gaps, action, "At home: closing the wall")
    if decision is None and (gaps or gap) and not percept.has("stone"):
        decision = gather(state, percept, ("stone",), limit=40 if is_night(percept.step) else 1000)
    if decision is not None:
        return decision
    if percept.damage and percept.has("stone") and not percept.zombies and _calm_cell(state, percept):
        state.shut = True
    if state.shut and is_wet(state) and percept.has("stone"):
        why = "At home: walling up where the arrow came from"
        decision = _from_inside(state, percept, (state.well,), "place_stone", why)
    state.shut = decision is not None
    return decision


def _eat_and_drink(state: State, percept: Percept) -> Decision | None:
    """Eat and drink at home, up to the maximum before leaving."""
    packing = _SOONEST - 15 <= percept.step % DAY <= _LATEST and _has_errands(percept)
    ripe = ripe_plants(state)
    if percept.food <= 5 or "eat_plant" not in percept.unlocked or (packing and percept.food <= 6 and len(ripe) > 1):
        decision = _from_inside(state, percept, ripe, "do", "At home: eating from the garden")
        if decision is not None:
            return decision
    begun = state.drinking or percept.ahead == state.well
    limit = MOST - 1 if begun else 7 if packing else 2 if percept.skeletons else 4
    decision = None
    if is_wet(state) and percept.drink <= limit:
        decision = _from_inside(state, percept, (state.well,), "do", "At home: drinking")
    state.drinking = decision is not None
    return decision


def _plant(state: State, percept: Percept) -> Decision | None:
    """Search the grass of the bare plots for saplings and plant them, unless arrows may come in over the well."""
    exposed = bool(state.well) and lets_in(state.memory.ground, state.well, ring_of(state.home)[state.well])
    if exposed and (percept.skeletons or percept.arrows):
        return None
    if percept.has("sapling"):
        return _from_inside(state, percept, unplanted(state), "place_plant", "At home: planting a sapling")
    return _from_inside(state, percept, unplanted(state), "do", "At home: searching the grass for a sapling")


def _mend(state: State, percept: Percept, gap: int) -> Decision:
    """Wall up the gap behind a bare plot, from that plot."""
    why, outward = "At home: mending the wall", beyond(state.home, state.plots)[gap]
    if percept.ahead == gap and gap not in state.memory.occupied:
        return Decision("place_stone", why)
    plot, run = gap - outward, gap - 2 * outward
    if percept.cell == run:
        return advance(state, percept, plot, why)
    following = run if _adjacent(percept.cell, run) else next(c for c in state.home if _adjacent(c, percept.cell))
    return advance(state, percept, following, why)


def _adjacent(one: int, other: int) -> bool:
    return abs(one - other) in (1, WIDTH)


def _calm_cell(state: State, percept: Percept) -> int:
    """Return the adjacent cell that no arrow over the well can reach, if one can reach this cell; else 0."""
    outward = ring_of(state.home).get(state.well, 0)
    if not outward or percept.cell not in (state.well - outward, state.well - 2 * outward):
        return 0
    aside = [percept.cell + step for step in DIRECTIONS if abs(step) != abs(outward)]
    return next((cell for cell in aside if cell in state.home and state.memory.free(cell)), 0)


def _from_inside(state: State, percept: Percept, targets: Iterable[int], action: str, reason: str) -> Decision | None:
    """Do something to a cell of the ring, facing it from inside the room; None if that is impossible now. The agent can
    turn to a solid cell on the spot; for a free one it has to come from across the room."""
    memory, here = state.memory, percept.cell
    wanted = {cell for cell in targets if cell not in memory.occupied}
    if percept.ahead in wanted:
        return Decision(action, reason)
    best: tuple[int, int] | None = None
    for spot, outward in ring_of(state.home).items():
        if spot not in wanted:
            continue
        stand, run = spot - outward, spot - 2 * outward
        solid = memory.ground[spot] not in WALKABLE
        if here == stand:
            steps, following = (0, spot) if solid else (2, run)
        elif here == run:
            steps, following = 1, stand
        else:
            goal = stand if solid else run
            near = _adjacent(goal, here)
            following = goal if near else next(c for c in state.home if _adjacent(c, here) and _adjacent(c, goal))
            steps = (1 if near else 2) + (not solid)
        blocked = following != spot and memory.ground[following] in WALKABLE and not memory.free(following)
        if not blocked and (best is None or steps < best[0]):
            best = steps, following
    if best is None:
        return None
    return advance(state, percept, best[1], reason) if best[0] else use(percept, best[1], action, reason)

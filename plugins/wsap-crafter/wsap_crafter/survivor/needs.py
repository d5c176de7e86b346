"""Thirst, hunger, tiredness, wounds, and the night."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_crafter.survivor.explore import explore
from wsap_crafter.survivor.homestead import ripe_plants
from wsap_crafter.survivor.mind.grid import DIRECTIONS, bearing, distance
from wsap_crafter.survivor.mind.knowledge import BEDTIME, DAY, DUSK, MOST, RIPE, WATER, is_evening, is_night
from wsap_crafter.survivor.mind.percept import Percept
from wsap_crafter.survivor.mind.state import Decision, State
from wsap_crafter.survivor.moves import advance, fetch, use
from wsap_crafter.survivor.shelter import beside, build, ends, other_of, sealed

_WATER = bytes((WATER,))
_ANY = 1000
"""An unlimited price; if nothing is known, the agent explores."""
_DRINK_WAYS = {
    "day": (_ANY, _ANY, _ANY, _ANY, _ANY, 25, 10, 4, 0),
    "evening": (_ANY, _ANY, _ANY, _ANY, _ANY, _ANY, 40, 30, 4),
    "night": (100, 100, 60, 20, 6, 4, 4, 2, 0),
}
"""Maximum price of a path to water, by time of day and drink (0 to 8)."""
_FOOD_WAYS = {
    "day": (_ANY, _ANY, _ANY, _ANY, _ANY, _ANY, 20, 5, 0),
    "evening": (_ANY, _ANY, _ANY, _ANY, _ANY, _ANY, 60, 30, 4),
    "night": (100, 60, 20, 10, 4, 4, 4, 0, 0),
}
"""The same for cows."""
_AT_HAND = 20
"""Maximum distance of well and plants at home for waiting until they are reached."""
_UNEASY = 6
"""Food or drink at which the search for the first cow or water starts."""
_TWILIGHT = 130
"""The hour after which the agent goes far only in need."""
_LAST_CALL = 130
"""The hour after which it does not search for cows, unless food has almost run out."""


def _way_worth(step: int, level: int, ways: Mapping[str, tuple[int, ...]]) -> int:
    """Return the maximum price of a path at a step, for a level of food or drink."""
    late = is_night(step) or (is_evening(step) and step % DAY >= _TWILIGHT and level >= 4)
    hour = "night" if late else "evening" if is_evening(step) else "day"
    return ways[hour][level] if level < MOST else 0


def _near_home(state: State, percept: Percept) -> bool:
    return bool(state.home) and distance(percept.cell, state.home[0]) <= _AT_HAND


def drink(state: State, percept: Percept) -> Decision | None:
    """Drink when thirsty or close to water, and then up to the maximum."""
    level = percept.drink
    if level >= MOST:
        state.drinking = False
        return None
    limit = _way_worth(percept.step, level, _DRINK_WAYS)
    if state.well and level >= 4 and not state.drinking and _near_home(state, percept):
        limit = min(limit, 4)
    if state.drinking or "collect_drink" not in percept.unlocked:
        limit = max(limit, 4)
    if level <= _UNEASY and not state.memory.knows(_WATER) and not is_night(percept.step):
        limit = _ANY
    if not limit:
        return None
    decision = fetch(state, percept, f"water<{limit}", _thirst(state, percept), wanted=_WATER, limit=limit)
    state.drinking = decision is not None
    if decision is None and limit == _ANY:
        # Water is in the plains, not in the mountains.
        return explore(state, percept, b"~_" if state.memory.knows(b"~_") else b".", "water")
    return decision


def _thirst(state: State, percept: Percept) -> str:
    if state.errand.startswith("water") and state.way:
        return f"Thirsty ({percept.drink}/9): going to the water {bearing(percept.cell, state.way[0])}"
    return f"Thirsty ({percept.drink}/9): going to the water"


def eat(state: State, percept: Percept) -> Decision | None:
    """Eat a cow when hungry, or when one is close and food is not full."""
    level, first = percept.food, "eat_cow" not in percept.unlocked
    limit = _way_worth(percept.step, level, _FOOD_WAYS)
    if first and level <= 7:
        limit = max(limit, 8)
    if first and level <= _UNEASY and not state.memory.cows and not is_night(percept.step):
        limit = _ANY
    if state.complete and ripe_plants(state) and _near_home(state, percept):
        limit = min(limit, 8)
    if not limit:
        return None
    cows = tuple(state.memory.cows)
    if cows:
        reason = f"Hungry ({level}/9): going for a cow" if level < MOST else "Going for a cow"
        errand = f"cow<{limit}@{','.join(map(str, cows))}"
        decision = fetch(state, percept, errand, reason, cells=cows, limit=limit)
        if decision is not None:
            return decision
    # Towards dusk the agent does not explore for a meal that can wait until the morning.
    if limit < _ANY or (level >= 2 and percept.step % DAY > _LAST_CALL):
        return None
    return explore(state, percept, b".", "cows", revisit=True)


def _wounded(step: int) -> int:
    """Return the health at which to seek rest: lower in daylight, which is safer."""
    return 5 if is_night(step) or is_evening(step) else 3


def decide_rest(state: State, percept: Percept) -> None:
    """Set or clear the state's reason for rest."""
    night = is_night(percept.step)
    needy = min(percept.food, percept.drink) <= (0 if percept.health <= 4 else 1)
    if state.resting:
        healed = 8 if night else _wounded(percept.step) + 2
        over = {
            "sleep": percept.energy >= MOST,
            "heal": percept.health >= healed or not percept.food or not percept.drink,
            "night": not night,
        }[state.resting]
        if over or (needy and not night):
            state.resting, state.refuge = "", ()
    if state.resting or (needy and not night):
        return
    late = night and not DUSK <= percept.step % DAY < BEDTIME
    if percept.energy <= 2 or (late and percept.energy <= 6):
        state.resting = "sleep"
    elif percept.health <= _wounded(percept.step) and percept.food and percept.drink:
        state.resting = "heal"


def _is_ripe(state: State, cell: int) -> bool:
    return state.memory.ground[cell] == RIPE


def _wants_plant(percept: Percept) -> bool:
    return percept.food <= 5 or "eat_plant" not in percept.unlocked


def _cell_with_something(state: State, percept: Percept) -> int:
    """Return the shelter's other cell if it has water or food that is needed now, else 0."""
    other = other_of(state.refuge, percept.cell)
    around = [state.memory.ground[other + step] for step in DIRECTIONS]
    thirsty = percept.drink <= 6 and WATER in around
    return other if thirsty or (RIPE in around and _wants_plant(percept)) else 0


def _calm_cell(state: State, percept: Percept) -> int:
    """Return the shelter's other cell if an arrow over water can reach this one but not the other, else 0."""
    pair = state.refuge
    calm = [cell for cell in pair if not any(is_water(state, spot) for spot in (*beside(pair, cell), *ends(pair)))]
    return calm[0] if calm and percept.cell not in calm else 0


def stay_in(state: State, percept: Percept) -> Decision | None:
    """Spend the rest of the night in a shelter."""
    state.resting = "night"
    return rest(state, percept)


def is_water(state: State, cell: int) -> bool:
    """Return whether a cell is water."""
    return state.memory.ground[cell] == WATER


_WHY = {"sleep": "Tired", "heal": "Wounded", "night": "Waiting for the morning"}


def rest(state: State, percept: Percept) -> Decision | None:
    """Seek a shelter and rest in it if there is a reason."""
    decide_rest(state, percept)
    if not state.resting:
        return None
    why = _WHY[state.resting]
    if not sealed(state, percept):
        return build(state, percept, why)
    return inside(state, percept, why)


def inside(state: State, percept: Percept, why: str) -> Decision:
    """Drink, eat, sleep or wait in a finished shelter."""
    around = [percept.cell + step for step in DIRECTIONS]
    water = next((cell for cell in around if is_water(state, cell)), 0)
    ripe = next((cell for cell in around if _is_ripe(state, cell)), 0)
    if percept.damage and percept.has("stone"):
        decision = _shut_out(state, percept, water, why)
        if decision is not None:
            return decision
    if water and percept.drink < MOST:
        return use(percept, water, "do", f"{why}: drinking from inside the shelter")
    if ripe and _wants_plant(percept):
        return use(percept, ripe, "do", f"{why}: eating from the garden")
    elsewhere = _cell_with_something(state, percept)
    if elsewhere:
        return advance(state, percept, elsewhere, f"{why}: moving over to the other side")
    calm = _calm_cell(state, percept)
    if calm:
        return advance(state, percept, calm, f"{why}: moving out of the line of fire")
    if percept.energy < MOST:
        return Decision("sleep", f"{why}: sleeping in the shelter")
    return Decision("noop", f"{why}: resting in the shelter")


def _shut_out(state: State, percept: Percept, water: int, why: str) -> Decision | None:
    """Wall up the water over which an arrow came in."""
    if water:
        return use(percept, water, "place_stone", f"{why}: walling up where the arrow came from")
    if not any(is_water(state, cell + step) for cell in state.refuge for step in DIRECTIONS):
        return None
    other = other_of(state.refuge, percept.cell)
    return advance(state, percept, other, f"{why}: going to wall up the water")

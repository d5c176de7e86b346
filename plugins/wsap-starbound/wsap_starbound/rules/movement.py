"""Walking, jumping, climbing, going to a place in view, resting and waiting."""

from __future__ import annotations

from collections import deque

from wsap_starbound.engine.being import MOST_HEALTH, Being
from wsap_starbound.engine.physics import fall_harm, fits, gravity, shift, standing, swimming
from wsap_starbound.engine.place import LAVA, TILES, WATER, Cell, Place
from wsap_starbound.engine.sight import VIEW, look
from wsap_starbound.engine.universe import Universe
from wsap_starbound.rules.base import REACH, Outcome, Params, enemies, near, refused, spend, until_still, whole

_REST = 80
"""Most beats of a rest."""
_HEALED = 4
"""Beats of rest for one health."""
_LONGEST = 60
"""Most steps of `go_to`."""


def move(world: Universe, being: Being, params: Params) -> Outcome:
    """Walk, up ledges of one tile, until something is in the way."""
    place, side = world.where(being), -1 if params["direction"] == "left" else 1
    tiles, gone = whole(params, "tiles", 1), 0
    if not _can_shift(place, being, side):
        return refused(f"something is in the way to the {params['direction']}")
    hurt = False
    while gone < tiles and shift(place, being, side):
        gone += 1
        hurt = not spend(world, being, 1)
        if hurt or not being.alive:
            break
        until_still(world, being)
    until_still(world, being)
    said = f"You walked {gone} to the {params['direction']}"
    if gone < tiles and not hurt:
        said += "; something is in the way"
    return Outcome(True, said + ".")


def can_move(world: Universe, being: Being) -> list[str]:
    """Return the directions in which the way is free."""
    place = world.where(being)
    return [word for word, side in (("left", -1), ("right", 1)) if _can_shift(place, being, side)]


def _can_shift(place: Place, being: Being, side: int) -> bool:
    x = place.wrap(being.x + side) if place.planet else being.x + side
    ledge = standing(place, being) and not place.solid(being.x, being.y - 2) and fits(place, x, being.y - 1)
    return fits(place, x, being.y) or ledge


def no_jump(world: Universe, being: Being) -> str:
    """Return why the body can't jump; empty if it can."""
    place = world.where(being)
    if not standing(place, being):
        return "you are in the air"
    return "something is right above your head" if place.solid(being.x, being.y - 2) or being.y < 3 else ""


def jump(world: Universe, being: Being, params: Params) -> Outcome:
    """Jump; with a direction, onto a ledge or over a gap. The action ends when the body lands."""
    place = world.where(being)
    start, side = (being.x, being.y), {"left": -1, "right": 1}.get(str(params.get("direction")), 0)
    being.rise, being.fallen = gravity(place)[0], 0
    spend(world, being, 1)
    for _ in range(60):
        if not being.alive or (not being.rise and standing(place, being)):
            break
        x = place.wrap(being.x + side)
        if side and fits(place, x, being.y):
            being.x, being.facing = x, 1 if side > 0 else -1
        world.pass_beat(being)
    across, up = place.apart(start[0], being.x), start[1] - being.y
    way = f"{abs(across)} {'right' if across > 0 else 'left'}" if across else ""
    height = f"{abs(up)} {'higher' if up > 0 else 'lower'}" if up else ""
    where = " and ".join(filter(None, (way, height))) or "where you were"
    return Outcome(True, f"You jumped and landed {where}.")


def can_climb(world: Universe, being: Being) -> list[str]:
    """Return the directions in which a ladder, or water, leads on."""
    place = world.where(being)
    return [word for word, step in (("up", -1), ("down", 1)) if _climbs(place, being, step)]


def _climbs(place: Place, being: Being, step: int) -> bool:
    if step < 0:
        held = TILES[place.at(being.x, being.y)].climb or swimming(place, being)
        return held and not place.solid(being.x, being.y - 2) and being.y > 2
    below = place.at(being.x, being.y + 1)
    return TILES[below].climb or below == WATER


def climb(world: Universe, being: Being, params: Params) -> Outcome:
    """Climb a ladder, or swim, up or down."""
    place, word = world.where(being), str(params["direction"])
    step, gone = (-1 if word == "up" else 1), 0
    if not _climbs(place, being, step):
        return refused(f"there is no ladder or water that leads {word}")
    while gone < whole(params, "tiles", 1) and _climbs(place, being, step):
        being.y += step
        being.fallen = being.rise = 0
        gone += 1
        if not spend(world, being, 1):
            break
    until_still(world, being)
    return Outcome(True, f"You climbed {gone} {word}.")


def can_go_to(world: Universe, being: Being) -> list[str]:
    """Return the words of things in view that are not within reach: creatures, objects, kinds of tiles."""
    return list(_landmarks(world, being))


def _landmarks(world: Universe, being: Being) -> dict[str, Cell]:
    """Return word -> cell of what is in view and not within reach; the nearest of each kind of tile."""
    place, sight = world.where(being), look(world, being)
    found = {
        c.id: (c.x, c.y)
        for c in place.creatures
        if (place.apart(being.x, c.x), c.y - being.y) in sight.seen and not near(place, being, c.x, c.y)
    }
    for tile, dx, dy in sight.ground:
        x, y = place.wrap(being.x + dx) if place.planet else being.x + dx, being.y + dy
        if not near(place, being, x, y):
            found.setdefault(TILES[tile].word, (x, y))
    return found


def go_to(world: Universe, being: Being, params: Params) -> Outcome:
    """Go to a cell in view, or within reach of a thing in view, without either the nearest: walking, climbing, jumping
    and dropping without harm."""
    place, target = world.where(being), params.get("target")
    marks = _landmarks(world, being)
    if target is None and params.get("x") is None and params.get("y") is None:
        target = next(iter(marks))
    if target is not None:
        goal = marks.get(str(target))
        if goal is None:
            return refused(f"there is no {str(target)[:40]!r} in view that is not within reach")
        reach = REACH
    elif params.get("x") is None or params.get("y") is None:
        return refused("name a target, or both the column x and the row y of the cell to go to")
    else:
        goal, reach = (whole(params, "x", 0), whole(params, "y", 0)), 0
        if goal == (being.x, being.y):
            return refused("you are there")
    if abs(place.apart(being.x, goal[0])) > VIEW[0] or abs(goal[1] - being.y) > VIEW[1]:
        return refused("that is more than 10 columns or 6 rows away")
    way = _way(place, being, goal, reach)
    if way is None:
        return refused("there is no way there that you can see")
    for x, y in way:
        if (x, y) != (being.x, being.y):
            being.facing = 1 if place.apart(being.x, x) > 0 else -1
        beats = 1 + abs(y - being.y) // 2
        if not fits(place, x, y):
            return Outcome(True, "The way has changed; you stopped.")
        being.x, being.y = x, y
        being.rise = being.fallen = 0
        if not spend(world, being, beats):
            until_still(world, being)
            return Outcome(True, "You were interrupted on the way.")
    until_still(world, being)
    return Outcome(True, f"You went to {being.x}, {being.y}.")


def _way(place: Place, being: Being, goal: Cell, reach: int) -> list[Cell] | None:
    """Return the cells of the shortest way that stays in view and ends within that distance of the goal."""
    start = (being.x, being.y)
    before: dict[Cell, Cell] = {start: start}
    queue = deque([start])
    while queue:
        cell = queue.popleft()
        if cell != start and max(abs(place.apart(cell[0], goal[0])), abs(cell[1] - goal[1])) <= reach:
            way = [cell]
            while before[way[-1]] != start:
                way.append(before[way[-1]])
            return way[::-1]
        for step in _steps(place, cell):
            far = abs(place.apart(start[0], step[0])) > VIEW[0] or abs(step[1] - start[1]) > VIEW[1]
            if step not in before and not far:
                before[step] = cell
                queue.append(step)
        if len(before) > 20 * _LONGEST:
            return None
    return None


def _held(place: Place, x: int, y: int) -> bool:
    tile, below = TILES[place.at(x, y)], TILES[place.at(x, y + 1)]
    return below.solid or tile.climb or below.climb or tile.flow == "water"


def _steps(place: Place, cell: Cell) -> list[Cell]:
    """Return the cells that a standing body reaches from a cell in one step, jump or drop."""
    x, y = cell
    found = []
    high, safe = gravity(place)[0], gravity(place)[1]
    for up in range(1, high + 1):
        if place.solid(x, y - up - 1):
            break
        if TILES[place.at(x, y - up)].climb or (up == 1 and TILES[place.at(x, y)].climb):
            found.append((x, y - up))
            break
    if TILES[place.at(x, y + 1)].climb and fits(place, x, y + 1):
        found.append((x, y + 1))
    for side in (-1, 1):
        ax = place.wrap(x + side)
        for up in range(high + 1):
            if up and place.solid(x, y - up - 1):
                break
            if fits(place, ax, y - up) and (up == 0 or _held(place, ax, y - up)):
                found.append((ax, y - up))
                break
        if (ax, y) in found and not _held(place, ax, y):
            found.remove((ax, y))
            down = y
            while fits(place, ax, down + 1) and not _held(place, ax, down) and down - y <= safe:
                down += 1
            if _held(place, ax, down) and not fall_harm(place, down - y):
                found.append((ax, down))
    return [(ax, ay) for ax, ay in found if LAVA not in (place.at(ax, ay), place.at(ax, ay - 1))]


def no_rest(world: Universe, being: Being) -> str:
    """Return why the body can't rest; empty if it can."""
    if enemies(world, being, 8):
        return "a hostile creature is near"
    place = world.where(being)
    if not standing(place, being):
        return "you are in the air"
    return "" if being.breath == 40 else "you are out of breath"


def rest(world: Universe, being: Being, params: Params) -> Outcome:
    """Rest until healthy, disturbed, or 80 beats have passed; it heals much faster than waiting."""
    beats, before = 0, being.health
    while beats < _REST and (being.health < MOST_HEALTH or beats < _HEALED):
        beats += 1
        if not spend(world, being, 1) or enemies(world, being, 5):
            return Outcome(True, "Your rest was disturbed.")
        if beats % _HEALED == 0:
            being.health = min(MOST_HEALTH, being.health + 1)
    return Outcome(True, f"You rested for {beats} beats and regained {being.health - before} health.")


def wait(world: Universe, being: Being, params: Params) -> Outcome:
    """Do nothing for some beats, or until something hurts the body."""
    spend(world, being, whole(params, "beats", 1))
    return Outcome(True, "Time passed.")

"""An agent that plays MiniGrid by rules, from its observations alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator

from wsap_core.authoring.grid import GridObservation
from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_minigrid.catalogue import THINGS
from wsap_minigrid.seen import AHEAD, ARROWS, OPEN

Cell = tuple[int, int]
State = tuple[int, int, int]
"""Column, row, and facing: 0 east, 1 south, 2 west, 3 north."""

NOTHING = "nothing"


class Finder:
    """Plays MiniGrid by rules."""

    def __init__(self) -> None:
        self._place: tuple[str | None, int] = (None, 0)
        self._known: dict[Cell, str] = {}
        self._names: dict[Cell, str] = {}
        self._at: State = (0, 0, 0)

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Clear the memory."""
        self._place = (None, 0)

    def reflect(self, result: ActionResult) -> None:
        """Do nothing: the next observation shows the outcome."""

    def plan(self, goals: list[Goal]) -> list[str]:
        """Return a fixed plan."""
        return ["look around", "find what opens the doors", "do what the level asks"]

    def decide(self, observation: Observation) -> Action:
        """Return the first step towards the best objective."""
        if isinstance(observation, GridObservation):
            self._remember(observation)
            name = next(filter(None, self._wishes(observation)), None)
            if name is not None:
                return Action(name)
        possible = [a.name for a in observation.available_actions or () if a.available]
        return Action(possible[observation.step % len(possible)] if possible else "turn_left")

    # --- memory -----------------------------------------------------------------------------------

    def _remember(self, seen: GridObservation) -> None:
        region, step = self._place
        if seen.location.region != region or seen.step < step:
            self._known, self._names = {}, {}
        self._place = (seen.location.region, seen.step)
        x, y = (int(c) for c in seen.location.coordinates)
        spots = {(i, j): c for j, row in enumerate(seen.local_map) for i, c in enumerate(row)}
        mine = next(spot for spot, c in spots.items() if c in ARROWS)
        self._at = (x, y, ARROWS.index(spots[mine]))
        things = iter(seen.nearby_entities)
        for (i, j), character in spots.items():
            cell = (x + i - mine[0], y + j - mine[1])
            if character in THINGS:
                self._names[cell] = next(things).name or ""
            if character in ARROWS:
                self._known[cell] = "_" if self._known.get(cell) in ("_", "D", "L") else "."
            elif character != " ":
                self._known[cell] = character

    def _cells(self, characters: str, name: str = "") -> list[Cell]:
        """Return the known cells with one of these map characters and a name that ends so."""
        return [c for c, is_ in self._known.items() if is_ in characters and self._names.get(c, "").endswith(name)]

    # --- objectives -------------------------------------------------------------------------------

    def _wishes(self, seen: GridObservation) -> Iterator[str | None]:
        """Yield the first action towards each objective, best first; None if it is out of reach."""
        hand, goal = str(seen.status["in_hand"]), seen.current_goals[0].description if seen.current_goals else ""
        if goal.startswith("pick up the "):
            for cell in self._cells("kob", goal.removeprefix("pick up the ")):
                yield self._fetch(cell, hand)
        for cell in self._cells("G"):
            yield self._first_step(at(cell))
        for door in self._cells("L"):
            colour = self._names[door].split()[1]
            if hand == f"{colour} key" or any(seen.inventory.get(n) for n in (f"{colour} key", "lockpick", "tool")):
                yield self._use(door, "toggle")
                yield self._clear(door, hand)
            for key in self._cells("k", f"{colour} key"):
                yield self._clear(door, hand) if self._way_to(door) is None else self._fetch(key, hand, door)
        yield self._first_step(lambda state: ahead(state) not in self._known)
        for door in self._cells("D"):
            yield self._use(door, "toggle")
            yield self._clear(door, hand)
        for thing in self._cells("obk"):
            yield self._fetch(thing, hand)

    def _use(self, cell: Cell, action: str) -> str | None:
        """Go to face a cell, then carry out the action."""
        step = self._way_to(cell)
        return action if step == "" else step

    def _fetch(self, cell: Cell, hand: str, *then: Cell) -> str | None:
        """Go to pick something up, after putting down the thing in hand where it blocks no path."""
        if hand == NOTHING or self._way_to(cell) is None:
            return self._use(cell, "pickup")
        wanted = (cell, *then)

        def harmless(state: State) -> bool:
            spot = ahead(state)
            if self._known.get(spot) != ".":
                return False
            return all(self._first_step(facing(other), state, {spot}) is not None for other in wanted)

        step = self._first_step(harmless)
        return "drop" if step == "" else step

    def _clear(self, cell: Cell, hand: str) -> str | None:
        """Remove a thing that blocks the path to a cell."""
        if self._way_to(cell) is not None:
            return None
        for thing in self._cells("obk"):
            was, self._known[thing] = self._known[thing], "."
            helps = self._way_to(cell) is not None
            self._known[thing] = was
            if helps and (step := self._fetch(thing, hand)):
                return step
        return None

    # --- paths ------------------------------------------------------------------------------------

    def _way_to(self, cell: Cell) -> str | None:
        return self._first_step(facing(cell))

    def _first_step(
        self, there: Callable[[State], bool], start: State | None = None, barred: Collection[Cell] = ()
    ) -> str | None:
        """Return the first action of a shortest path, "" at the destination, None if there is no path."""
        start = start or self._at
        queue: deque[tuple[State, str]] = deque([(start, "")])
        met = {start}
        while queue:
            state, first = queue.popleft()
            if there(state):
                return first
            x, y, d = state
            moves: list[tuple[str, State]] = [("turn_left", (x, y, (d - 1) % 4)), ("turn_right", (x, y, (d + 1) % 4))]
            cell = ahead(state)
            if self._known.get(cell, "#") in OPEN and cell not in barred:
                moves.append(("forward", (*cell, d)))
            for name, after in moves:
                if after not in met:
                    met.add(after)
                    queue.append((after, first or name))
        return None


def ahead(state: State) -> Cell:
    """Return the cell ahead."""
    x, y, d = state
    return x + AHEAD[d][0], y + AHEAD[d][1]


def at(cell: Cell) -> Callable[[State], bool]:
    """Return a test whether a state is in a cell."""
    return lambda state: state[:2] == cell


def facing(cell: Cell) -> Callable[[State], bool]:
    """Return a test whether a state faces a cell."""
    return lambda state: ahead(state) == cell

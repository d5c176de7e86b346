"""Digging, placing and getting about: shafts with ladders, tunnels with floors, stairs to the surface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from wsap_core.protocol import Action
from wsap_core.protocol.availability import choices_of
from wsap_starbound.agent.needs import ORE_CHARS
from wsap_starbound.agent.state import WIDTH, Chart, State

if TYPE_CHECKING:
    from wsap_starbound.world.observation import StarboundObservation

_SOLID = frozenset('%"#:&=cuidVHXB')
_FIXED = frozenset("=XB")
_FILL = ("soil", "stone", "vault_brick", "sand", "planks", "basalt")
_FIGURES = "@agswzpen"
_TIER = {"&": 2, "i": 2, "d": 3}
_TUNNEL = 22
"""Columns of a tunnel to each side of the shaft."""


class Mining:
    """The settler's craft of digging; `state` is its memory and `seen` what it sees now."""

    def __init__(self, state: State, seen: StarboundObservation) -> None:
        self.state, self.seen = state, seen
        x, y = (int(c) for c in seen.location.coordinates)
        self.chart = Chart(state.maps.setdefault(seen.planet or "ship", {}), x, y)

    def take_in(self) -> None:
        """Remember what is in view, and whether the last action has changed anything."""
        seen, state = self.seen, self.state
        state.step = seen.step
        if seen.planet:
            self.chart.take_in(seen.local_map, seen.corner, figures=_FIGURES)
        lens = {"fernhollow": "lens_green", "palewake": "lens_white", "cinderdeep": "lens_red"}
        for planet, item in lens.items():
            if self.have(item) and planet not in state.taken:
                state.taken.append(planet)

    def remember(self, action: Action) -> Action:
        """Note an action before it is taken."""
        state = self.state
        mark = f"{self._mark(action)} {sum(self.seen.inventory.values())}"
        state.stuck = state.stuck + 1 if mark == state.last else 0
        if mark != state.last:
            state.refused = [one for one in state.refused if one.split()[-2:] == mark.split()[-2:]]
        state.last = mark
        return action

    # --- small things -----------------------------------------------------------------------------

    def have(self, item: str) -> int:
        """Return how many of an item the body carries."""
        return self.seen.inventory.get(item, 0)

    def can(self, action: str) -> bool:
        """Whether an action is possible now."""
        told = self.seen.is_available(action)
        return told is not None and told.available

    def choices(self, action: str, parameter: str) -> Sequence[str]:
        """Return the words that are possible for a parameter now; none if the action is not possible."""
        told = self.seen.is_available(action)
        return choices_of(told).get(parameter, ()) if told is not None and told.available else ()

    def slot(self, item: str) -> int:
        """Return the slot of an item; 0 if it is in none."""
        return self.seen.slots.index(item) + 1 if item in self.seen.slots else 0

    def use(self, item: str, why: str) -> Action:
        """Return the action that uses an item, or first puts it into a slot."""
        number = self.slot(item)
        return Action("use_item", {"slot": number}, why) if number else Action("equip", {"item": item, "slot": 10}, why)

    def place(self, item: str, dx: int, dy: int, why: str) -> Action:
        """Return the action that places an item, or first puts it into a slot."""
        number = self.slot(item)
        if not number:
            return Action("equip", {"item": item, "slot": 9}, why)
        return Action("place", {"slot": number, "dx": dx, "dy": dy}, why)

    def near(self, char: str) -> bool:
        """Whether a tile is within reach for use."""
        return any(self.chart.at(dx, dy) == char for dx in range(-3, 4) for dy in range(-4, 4))

    def solid(self, dx: int, dy: int) -> bool:
        """Whether a remembered tile is in the way."""
        return self.chart.at(dx, dy) in _SOLID

    def fill(self) -> str:
        """Return the item to fill holes with; empty if there is none."""
        return next((item for item in _FILL if self.have(item) > (10 if item in ("stone", "sand") else 0)), "")

    def diggable(self, char: str) -> bool:
        """Whether the best pick digs a tile."""
        power = 3 if self.have("iron_pick") else 2 if self.have("copper_pick") else 1
        return char not in _FIXED and _TIER.get(char, 1) <= power

    def dig(self, dx: int, dy: int, why: str) -> Action | None:
        """Return the action that digs a tile; None if no pick does."""
        if not self.diggable(self.chart.at(dx, dy)):
            return None
        return Action("dig", {"dx": dx, "dy": dy}, why)

    def dam(self) -> Action | None:
        """Fill lava and water right beside the body's way with something solid."""
        item = self.fill()
        if not item:
            return None
        for dx, dy in ((0, 1), (-1, 0), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1), (0, 2), (-1, 2), (1, 2), (0, -2)):
            char = self.chart.at(dx, dy)
            if char == "L" or (char == "~" and self.chart.y > self.seen.surface + 1):
                action = self.place(item, dx, dy, "to hold back what flows")
                if not self.in_vain(action):
                    return action
        return None

    def in_vain(self, action: Action) -> bool:
        """Whether this very action was refused here."""
        return any(one.startswith(self._mark(action) + " ") for one in self.state.refused)

    def _mark(self, action: Action) -> str:
        """Return an action and where it is taken, as one word after the other."""
        return f"{action.name} {sorted(action.parameters.items())} {self.seen.planet} {self.chart.x},{self.chart.y}"

    # --- on the surface ---------------------------------------------------------------------------

    def gather_wood(self) -> Action | None:
        """Go to the nearest tree and cut it."""
        if self.chart.y > self.seen.surface + 2:
            return self.to_surface()
        for dy in range(1, -6, -1):
            for dx in (0, -1, 1, -2, 2, -3, 3, -4, 4):
                if self.chart.at(dx, dy) == "T" and -5 <= dy <= 4:
                    action = Action("dig", {"dx": dx, "dy": dy}, "to get wood")
                    if not self.in_vain(action):
                        return action
        trees = [dx for dx in range(-10, 11) for dy in range(-6, 7) if self.chart.at(dx, dy) == "T" and abs(dx) > 4]
        side = min(trees, key=abs) if trees else 10 * self.state.side
        return self.walk(side)

    def walk(self, far: int) -> Action | None:
        """Walk along the surface, over or through what is in the way."""
        if not far:
            return None
        side = 1 if far > 0 else -1
        word = "right" if side > 0 else "left"
        action = Action("move", {"direction": word, "tiles": min(10, abs(far))}, "on the way")
        if not self.in_vain(action) and self.state.stuck < 2:
            return action
        for dy in (0, -1, -2):
            if self.solid(side, dy) and (cut := self.dig(side, dy, "it is in the way")) and not self.in_vain(cut):
                return cut
        if self.solid(0, -2) and (cut := self.dig(0, -2, "room for a step")) and not self.in_vain(cut):
            return cut
        jump = Action("jump", {"direction": word}, "over what is in the way")
        return jump if not self.in_vain(jump) and self.state.stuck < 3 else None

    def across(self, column: int) -> int:
        """Return how many columns another one is to the right, by the shorter way."""
        far = (column - self.chart.x) % WIDTH
        return far - WIDTH if far > WIDTH // 2 else far

    # --- shafts -----------------------------------------------------------------------------------

    def to_lens(self, lens: tuple[int, ...], item: str) -> Action | None:
        """Go to the column of the chamber, dig down to it, and take the lens."""
        x, y = lens
        if self.can("interact") and self.near("O"):
            return Action("interact", {"target": "lens"}, "to take the lens")
        planet = self.seen.planet
        if planet not in self.state.shafts and self.chart.y <= self.seen.surface + 3:
            if far := self.across(x - 1 - self.state.offsets.get(planet, 0)):
                return self.walk(far)
            if any(self.chart.at(dx, dy) in "~L" for dx in (-1, 0, 1) for dy in (0, 1, 2)):
                self.state.offsets[planet] = self.state.offsets.get(planet, 0) + 2
                return self.walk(-2)
            self.state.shafts[planet] = self.chart.x
        deep, side = self.chart.y, 1 if self.across(x) > 0 else -1
        if deep <= self.seen.surface + 2 and (far := self.across(self.state.shafts[planet])):
            return self.walk(far)
        if deep < y and (self.chart.x == self.state.shafts[planet] or abs(self.across(x)) <= 2):
            return self.shaft_down()
        if deep > y:
            return self.stair(side)
        return self.tunnel(side) or self.stair(side)

    def shaft_down(self) -> Action | None:
        """Dig one tile deeper, with a ladder."""
        if action := self.dam():
            return action
        if not self.have("ladder"):
            if self.have("wood"):
                return Action("craft", {"recipe": "ladder", "count": min(15, self.have("wood"))}, "for the shaft")
            return self.gather_wood()
        here, below = self.chart.at(0, 0), self.chart.at(0, 1)
        if here in "*T":
            return self.dig(0, 0, "room for a ladder")
        if here == " ":
            hold = self.place("ladder", 0, 0, "to hold on to")
            if not self.in_vain(hold):
                return hold
        if below in _SOLID:
            return self.dig(0, 1, "deeper") or self._jog()
        if below == "|":
            return Action("climb", {"direction": "down", "tiles": self._ladders_below()}, "down the shaft")
        if below in " *T!":
            return self.place("ladder", 0, 1, "to come up again") if below == " " else self.dig(0, 1, "deeper")
        return self.dig(0, 1, "deeper")

    def _jog(self) -> Action | None:
        """Go on with the shaft one column beside what no pick digs."""
        for side in (1, -1):
            tiles = [self.chart.at(side, dy) for dy in (-1, 0)]
            if any(char in _SOLID and not self.diggable(char) for char in tiles):
                continue
            for dy in (-1, 0):
                if self.solid(side, dy):
                    return self.dig(side, dy, "around what can't be dug")
            if self.chart.at(side, 0) != "|":
                return self.place("ladder", side, 0, "to hold on to")
            self.state.shafts[self.seen.planet] = (self.chart.x + side) % WIDTH
            return Action("move", {"direction": "right" if side > 0 else "left"}, "around what can't be dug")
        return None

    def _ladders_below(self) -> int:
        count = 1
        while count < 10 and self.chart.at(0, count + 1) == "|":
            count += 1
        return count

    # --- tunnels ----------------------------------------------------------------------------------

    def tunnel(self, side: int) -> Action | None:
        """Dig one column further, with a floor."""
        if action := self.dam():
            return action
        for dy in (0, -1):
            if self.solid(side, dy):
                return self.dig(side, dy, "a tunnel")
        item = self.fill()
        if not self.solid(side, 1) and self.chart.at(side, 1) not in "|?" and item:
            action = self.place(item, side, 1, "a floor for the tunnel")
            if not self.in_vain(action):
                return action
        word = "right" if side > 0 else "left"
        action = Action("move", {"direction": word}, "through the tunnel")
        return None if self.in_vain(action) or self.state.stuck > 3 else action

    def mine(self, lacking: Mapping[str, int], lens: tuple[int, ...]) -> Action | None:
        """Dig visible ores within reach, or else tunnels to both sides of the shaft, one level above the other."""
        if action := self.ore(lacking):
            return action
        planet, (_, deep) = self.seen.planet, lens
        column, finished = self.state.shafts.get(planet), self.state.tunnels.setdefault(planet, [])
        if column is None:
            return self.walk(10 * self.state.side)
        for row in (*range(deep, deep - 21, -5), *range(deep + 5, 88, 5)):
            for side in (-1, 1):
                if [row, side] not in finished:
                    return self._level(row, side, column, finished)
        return None

    def _level(self, row: int, side: int, column: int, finished: list[list[int]]) -> Action | None:
        far = self.across(column)
        if abs(self.chart.y - row) <= 1:
            if abs(far - side * -_TUNNEL) == 0 or (far * -side >= _TUNNEL):
                finished.append([row, side])
                return self.tunnel(-side)
            action = self.tunnel(side)
            if action is None:
                finished.append([row, side])
                return self.tunnel(-side)
            return action
        if far == 0 or self.chart.at(0, 0) == "|":
            return self._along_shaft(row)
        return self._back(far)

    def _along_shaft(self, row: int) -> Action | None:
        if self.chart.y < row:
            return self.shaft_down()
        return self._up_ladder(min(10, self.chart.y - row)) or self.stair()

    def _up_ladder(self, tiles: int) -> Action | None:
        """Climb the ladder that the body holds, or go over to the one beside it."""
        climb = Action("climb", {"direction": "up", "tiles": tiles}, "up the shaft")
        if "up" in self.choices("climb", "direction") and self.chart.at(0, 0) == "|" and not self.in_vain(climb):
            return climb
        for side in (-1, 1):
            move = Action("move", {"direction": "right" if side > 0 else "left"}, "to the next ladder")
            if self.chart.at(0, 0) == "|" and self.chart.at(side, 0) == "|" and not self.in_vain(move):
                return move
        return None

    def _back(self, far: int) -> Action | None:
        """Go back to the shaft along a tunnel, or by stairs where the tunnel has no floor."""
        return self.tunnel(1 if far > 0 else -1) or self.stair(1 if far > 0 else -1)

    def ore(self, lacking: Mapping[str, int]) -> Action | None:
        """Dig something that is lacking, in view and within reach."""
        for dx in range(-4, 5):
            for dy in range(-5, 5):
                char = self.chart.at(dx, dy)
                wanted = ORE_CHARS.get(char) or ("stone" if char == "#" and "stone" in lacking else "")
                if wanted and lacking.get(wanted, 0) > 0 and self.diggable(char) and (dx, dy) not in ((0, 1),):
                    action = Action("dig", {"dx": dx, "dy": dy}, f"to get {wanted}")
                    if not self.in_vain(action):
                        return action
        return None

    # --- up ---------------------------------------------------------------------------------------

    def leave(self, why: str) -> Action | None:
        """Beam up, from the surface."""
        return Action("beam_up", {}, why) if self.can("beam_up") else self.to_surface()

    def to_surface(self) -> Action | None:
        """Go back to the shaft and climb it, or dig stairs."""
        if self.chart.y <= self.seen.surface:
            return self.walk(3 * self.state.side)
        column = self.state.shafts.get(self.seen.planet)
        far = 0 if column is None or self.chart.at(0, 0) == "|" else self.across(column)
        deep = self.chart.y - self.seen.surface > 8
        if deep and far and abs(far) <= _TUNNEL + 4 and self.state.stuck < 3:
            return self._back(far)
        return self._up_ladder(10) or self.stair()

    def stair(self, side: int = 0) -> Action | None:
        """Dig one step of a stair upwards."""
        side = side or self.state.side
        for dx, dy in ((0, -2), (side, -1), (side, -2)):
            if self.solid(dx, dy):
                return self.dig(dx, dy, "a stair")
        item = self.fill() or ("stone" if self.have("stone") else "")
        if not self.solid(side, 0) and item:
            action = self.place(item, side, 0, "a step")
            if not self.in_vain(action):
                return action
        action = Action("move", {"direction": "right" if side > 0 else "left"}, "up the stair")
        return None if self.in_vain(action) else action

    # --- workshop ---------------------------------------------------------------------------------

    def pick_up(self) -> Action | None:
        """Take the stations that stand within reach along."""
        for char in "bf":
            for dx in range(-3, 4):
                for dy in range(-4, 4):
                    if self.chart.at(dx, dy) == char:
                        action = Action("dig", {"dx": dx, "dy": dy}, "to take it along")
                        return None if self.in_vain(action) else action
        return None

    def put_up(self, station: str) -> Action | None:
        """Place a station beside the body, from the bag; one that stands elsewhere is left there and made anew."""
        char = {"bench": "b", "furnace": "f"}[station]
        if self.near(char):
            return None
        if not self.have(station):
            if station == "bench":
                if self.have("wood") >= 4:
                    return Action("craft", {"recipe": "bench"}, "to make things at")
                return self.gather_wood()
            return None
        for dx in (1, -1, 2, -2, 3, -3):
            for dy in (0, -1, 1):
                if self.chart.at(dx, dy) == " " and self.solid(dx, dy + 1):
                    action = self.place(station, dx, dy, "to work here")
                    if not self.in_vain(action):
                        return action
        for side in (1, -1):
            if self.solid(side, 0) and (cut := self.dig(side, 0, "room to work")) and not self.in_vain(cut):
                return cut
        return None

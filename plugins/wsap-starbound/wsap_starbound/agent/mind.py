"""One decision of the settler."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from wsap_core.protocol import Action
from wsap_starbound.agent.mining import Mining
from wsap_starbound.agent.needs import LADDERS, materials, next_craft, products, station_of
from wsap_starbound.agent.state import State

if TYPE_CHECKING:
    from wsap_starbound.world.observation import StarboundObservation

_LENS = {"fernhollow": "lens_green", "palewake": "lens_white", "cinderdeep": "lens_red"}
_GEAR = {"palewake": "breather", "cinderdeep": "cooler"}
_ROUTE = ("fernhollow", "palewake", "cinderdeep")
_WOOD, _FIBRE = 32, 3
"""Wood and fibre to gather before anything is made of them."""


class Mind(Mining):
    """What the settler does next, by what it sees and remembers."""

    def __init__(self, state: State, seen: StarboundObservation) -> None:
        super().__init__(state, seen)
        self.done = {"pad", "moon", "lantern"} - {goal.id for goal in seen.current_goals}

    def decide(self) -> Action:
        """Return the next action."""
        self.take_in()
        for rule in (self._survive, self._aboard if not self.seen.planet else self._on_planet, self._way_out):
            action = rule()
            if action is not None:
                return self.remember(action)
        return self.remember(Action("wait", {"beats": 4}, "nothing better to do"))

    # --- survival ---------------------------------------------------------------------------------

    def _survive(self) -> Action | None:
        seen = self.seen
        targets = self.choices("attack", "target")
        angry = [e for e in seen.nearby_entities if e.state == "hostile"]
        for enemy in angry:
            if enemy.name in targets:
                return Action("attack", {"target": enemy.name}, "a hostile creature is within reach")
        health = int(str(seen.status["health"]).split("/")[0])
        if health <= 10 and self.have("bandage"):
            return self.use("bandage", "to heal")
        if any(e.distance <= 3 for e in angry) and self.state.stuck < 3:
            return Action("wait", {"beats": 1}, "a hostile creature comes near")
        if health <= 9 and self.can("rest") and self.state.stuck < 3:
            return Action("rest", {}, "to regain health")
        return None

    # --- aboard -----------------------------------------------------------------------------------

    def _aboard(self) -> Action | None:
        seen = self.seen
        if not seen.lenses:
            return self._at("star_chart", 16)
        if "pad" not in self.done and self.have("coil"):
            return self._at("beam_pad", 4)
        if any(self.have(lens) for lens in _LENS.values()) or len(self.state.taken) == len(_LENS):
            fitted = self.state.last.startswith("interact") and not any(self.have(lens) for lens in _LENS.values())
            if any(self.have(lens) for lens in _LENS.values()) or (len(self.state.taken) == 3 and not fitted):
                return self._at("lantern", 20)
        wanted = self._next_planet()
        if wanted != seen.orbit and wanted in self.choices("travel", "planet"):
            return Action("travel", {"planet": wanted}, "the next lens is there")
        return Action("beam_down", {}, "to work on the planet")

    def _at(self, thing: str, column: int) -> Action | None:
        """Use a thing of the ship, which always stands in that column."""
        if thing in self.choices("interact", "target"):
            return Action("interact", {"target": thing}, f"to use the {thing}")
        side = column - self.chart.x
        return Action(
            "move", {"direction": "right" if side > 0 else "left", "tiles": min(10, abs(side))}, f"to the {thing}"
        )

    def _next_planet(self) -> str:
        if products(self.done, self.seen.inventory):
            ready = {"palewake": ("breather",), "cinderdeep": ("cooler", "copper_pick")}
            left = [p for p in _ROUTE[1:] if p not in self.state.taken]
            if not left or any(not self.have(item) for item in ready[left[0]]):
                return "fernhollow"
        return next((planet for planet in _ROUTE if planet not in self.state.taken), "fernhollow")

    # --- on a planet ------------------------------------------------------------------------------

    def _on_planet(self) -> Action | None:
        seen, planet = self.seen, self.seen.planet
        if not seen.lenses:
            return self.leave("the star chart is aboard")
        gear = _GEAR.get(planet, "")
        if gear and self.have(gear) and gear not in seen.worn:
            return self.use(gear, "against the hazard of this planet")
        if planet == "fernhollow" and planet not in self.state.taken and (action := self._prepare()):
            return action
        if planet not in self.state.taken:
            return self.to_lens(tuple(seen.lenses[planet]), _LENS[planet])
        if planet != "fernhollow":
            return self.leave("the lens of this planet is found")
        wanted = products(self.done, seen.inventory)
        if not wanted:
            return self.pick_up() or self.leave("everything is made")
        if name := next_craft(wanted, seen.inventory)[0]:
            return self._make(*next_craft(wanted, seen.inventory)) if name else None
        if action := self.pick_up():
            return action
        if materials(wanted, seen.inventory)["fibre"] or materials(wanted, seen.inventory)["wood"]:
            return self.gather_wood()
        return self.mine(materials(wanted, seen.inventory), tuple(seen.lenses[planet]))

    def _prepare(self) -> Action | None:
        """Gather wood, and make ladders and a bench."""
        started = self.have("bench") and self.have("ladder") >= 40
        ladders = self.have("ladder")
        if ladders >= 1 and (self.seen.location.coordinates[1] >= self.seen.surface or self.have("bench")):
            if ladders < LADDERS and self.have("wood") >= 12:
                return Action("craft", {"recipe": "ladder", "count": (LADDERS - ladders + 3) // 4}, "for the shaft")
            if self.have("bench") or ladders < 40:
                return None
        if started:
            return None
        if self.have("wood") < _WOOD or self.have("fibre") < _FIBRE:
            return self.gather_wood()
        if not self.have("bench"):
            return Action("craft", {"recipe": "bench"}, "to make things at")
        return Action("craft", {"recipe": "ladder", "count": 15}, "for the shaft")

    def _make(self, name: str, count: int) -> Action | None:
        """Make something at its station, which is put up where the body is."""
        if name in self.choices("craft", "recipe"):
            return Action("craft", {"recipe": name, "count": min(20, count)}, "for the quests")
        station = station_of(name)
        if station == "furnace" and not self.near("f") and not self.have("furnace"):
            if not self.near("b"):
                return self.put_up("bench")
            if self.have("stone") >= 8:
                return Action("craft", {"recipe": "furnace"}, "to smelt")
            return self.mine({"stone": 8}, tuple(self.seen.lenses["fernhollow"]))
        return self.put_up(station)

    # --- stuck ------------------------------------------------------------------------------------

    def _way_out(self) -> Action | None:
        """Try something else after the usual actions have failed."""
        ways: list[Callable[[], Action | None]] = [
            lambda: Action("move", {"direction": "left", "tiles": 3}, "stuck; somewhere else"),
            lambda: Action("jump", {"direction": "right"}, "stuck; somewhere else"),
            lambda: Action("move", {"direction": "right", "tiles": 3}, "stuck; somewhere else"),
            lambda: Action("jump", {"direction": "left"}, "stuck; somewhere else"),
            self.stair,
        ]
        self.state.fallback += 1
        return ways[self.state.fallback % len(ways)]()

"""How the wayfarer gets about: to places through doors, to what it sees, and around where it sees nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from wsap_core.protocol import Action
from wsap_core.protocol.values import JsonValue
from wsap_tes3mp.agent.notes import Notes, away_from, place_of
from wsap_tes3mp.protocol.perception import NearbyEntity, PerceptionOutput

REACH = 3.0
_EAST = (15, 45, 75, 105, 130)
_SWEEP = (*((x, 15) for x in _EAST), *((x, 45) for x in _EAST[::-1]), (30, 30))
"""Points to look around from."""


class Walker:
    """Walks by its notes."""

    def __init__(self) -> None:
        self.notes = Notes()
        self._seen: PerceptionOutput
        self._why = ""

    # --- getting about ----------------------------------------------------------------------------

    def _at(self, name: str, where: str, do: Callable[[NearbyEntity], Action | None]) -> Action | None:
        """Go to somebody or something in a place, and then do that."""
        for one in self._seen.nearby_entities:
            if one.name.lower() == name.lower():
                return self._touch(one, do)
        return self._toward(place_of(where), self.notes.where.get(name))

    def _touch(self, one: NearbyEntity, do: Callable[[NearbyEntity], Action | None]) -> Action | None:
        if one.distance > REACH:
            return self._act("move_to", "", target_entity_id=one.entity_id)
        return do(one)

    def _toward(self, where: str, known: Sequence[JsonValue] | None = None) -> Action | None:
        """Return the next step to a place, and within it to where something was seen."""
        here = place_of(self._seen.location.cell)
        if here == where:
            if known is not None and known[0] == here and away_from(self._seen, known) > REACH:
                return self._act("walk_to", "", target_x=float(known[1]), target_y=float(known[2]))
            return self._look_around()
        door = self._first_door(here, lambda place: place == where)
        return self._through(door) if door else self._wander()

    def _through(self, door: str) -> Action | None:
        for one in self._seen.nearby_entities:
            if one.entity_id == door:
                return self._touch(one, self._open)
        return self._look_around()

    def _open(self, one: NearbyEntity) -> Action:
        tried = self.notes.shut[one.entity_id] = self.notes.shut.get(one.entity_id, 0) + 1
        self.notes.tried = one.entity_id
        if tried % 3 == 0:
            return self._act("wait", "It is shut now.", duration_seconds=200)
        return self._act("interact", "", entity_id=one.entity_id, interaction_type="activate")

    def _first_door(self, here: str, wanted: Callable[[str], bool], shut: int = 10**6) -> str | None:
        """Return the first door of the shortest way to a place that is wanted, by none that was so often shut."""
        queue, met = deque[tuple[str, str]]([(here, "")]), {here}
        while queue:
            place, first = queue.popleft()
            for behind, door in self.notes.doors.get(place, {}).items():
                if behind in met or self.notes.shut.get(door, 0) >= shut:
                    continue
                if wanted(behind):
                    return first or door
                met.add(behind)
                queue.append((behind, first or door))
        return None

    def _look_around(self) -> Action | None:
        """Go to the next point to look around from; nowhere where everything is in sight."""
        here = place_of(self._seen.location.cell)
        if self._seen.location.interior:
            return None
        for _ in _SWEEP:
            index = self.notes.sweep[here] = self.notes.sweep.get(here, 0) + 1
            if f"{here}/{index % len(_SWEEP)}" not in self.notes.never:
                break
        self.notes.trying = f"{here}/{index % len(_SWEEP)}"
        x, y = _SWEEP[index % len(_SWEEP)]
        return self._act("walk_to", self._why or "I look around.", target_x=x, target_y=y)

    def _wander(self) -> Action | None:
        """Go where it has not been, or else look around outside, in one place after the other."""
        here, rounds = place_of(self._seen.location.cell), {p: n // len(_SWEEP) for p, n in self.notes.sweep.items()}
        new = self._first_door(here, lambda place: place not in self.notes.doors, shut=2)
        if new:
            return self._through(new)
        if rounds and rounds.get(here, 10**6) > (least := min(rounds.values())):
            if here in rounds and least > 1 and self.notes.sweep[here] % len(_SWEEP) == 0:
                self.notes.sweep[here] += 1
                return self._act("wait", "Perhaps tomorrow.", duration_seconds=600)
            door = self._first_door(here, lambda place: rounds.get(place) == least)
            return self._through(door) if door else self._look_around()
        return self._look_around()

    def _act(self, name: str, why: str, **params: JsonValue) -> Action:
        self._why = why or self._why
        return Action(name, params)

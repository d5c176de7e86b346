"""The agent's interface to the protocol."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, cast

from wsap_core.errors import SnapshotError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_core.protocol.values import JsonValue
from wsap_crafter.survivor.mind.outlook import outlook
from wsap_crafter.survivor.mind.percept import perceive
from wsap_crafter.survivor.mind.state import State
from wsap_crafter.survivor.policy import think

if TYPE_CHECKING:
    from wsap_crafter.perception.observation import CrafterObservation

_MAGIC = b"crafter-survivor/2\n"
_LARGEST = 1 << 20
"""Maximum size of an unpacked snapshot in bytes; a real one has about 20 kB."""


class Survivor:
    """Plays Crafter by rules and a memory: gathers, crafts, eats, drinks, sleeps sheltered, and fights.

    It knows the game's rules, but of the world only its observations. It draws no random numbers: the same observations
    give the same actions.
    """

    def __init__(self) -> None:
        self._state = State()

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Start a new session with an empty map; the arguments are ignored."""
        self._state = State()

    def decide(self, observation: Observation) -> Action:
        """Return the next action, with a short sentence as reasoning. An observation with a smaller step than the last
        one is of a new episode: the map is cleared."""
        percept = perceive(cast("CrafterObservation", observation))
        if percept.step < self._state.step:
            self._state = State()
        decision = think(self._state, percept)
        return Action(decision.action, {}, decision.reason)

    def reflect(self, result: ActionResult) -> None:
        """Do nothing: the next observation shows the outcome."""

    def plan(self, goals: list[Goal]) -> list[str]:
        """Return the remaining aims, in the agent's order."""
        return outlook(self._state)

    def snapshot(self) -> bytes:
        """Return the whole state as compressed JSON."""
        text = json.dumps(self._state.to_json(), separators=(",", ":"), allow_nan=False)
        return _MAGIC + zlib.compress(text.encode("ascii"), 6)

    def restore(self, data: bytes) -> None:
        """Restore a snapshot; raise SnapshotError, without changes, if it is damaged or not of this agent."""
        if not data.startswith(_MAGIC):
            raise SnapshotError("This is not a snapshot of crafter-survivor, or it is of another version.")
        try:
            reader = zlib.decompressobj()
            text = reader.decompress(data[len(_MAGIC) :], _LARGEST)
            if not reader.eof:
                raise ValueError("it is truncated or too large")
            state: dict[str, JsonValue] = json.loads(text)
            self._state = State.from_json(state)
        except (ValueError, KeyError, TypeError, AttributeError, zlib.error, RecursionError) as error:
            raise SnapshotError(f"The snapshot of crafter-survivor is damaged: {error}.") from error

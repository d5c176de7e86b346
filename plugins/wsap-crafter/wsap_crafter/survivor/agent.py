"""The agent's interface to the protocol."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, cast

from wsap_core.errors import SnapshotError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_core.protocol.values import JsonValue

from .outlook import outlook
from .percept import perceive
from .policy import think
from .state import State

if TYPE_CHECKING:
    from wsap_crafter.observation import CrafterObservation

_MAGIC = b"crafter-survivor/2\n"
_LARGEST = 1 << 20
"""Bytes that a snapshot may unpack to; a real one has about 20 kB."""


class Survivor:
    """Plays Crafter by rules and from memory: gathers, crafts, eats, drinks, sleeps sheltered, and fights.

    It knows the game's rules as a seasoned player does and nothing of the world but what its observations have
    shown. It draws no random numbers: the same observations give the same actions.
    """

    def __init__(self) -> None:
        self._state = State()

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Begin a new session with an empty map. The rules of the game are known already."""
        self._state = State()

    def decide(self, observation: Observation) -> Action:
        """Return the next action, with a short sentence on what it is for.

        An observation whose step lies before the last one decided on is of a new episode, in a new world:
        the map is forgotten.
        """
        percept = perceive(cast("CrafterObservation", observation))
        if percept.step < self._state.step:
            self._state = State()
        decision = think(self._state, percept)
        return Action(decision.action, {}, decision.reason)

    def reflect(self, result: ActionResult) -> None:
        """Learn nothing here: the next observation shows the outcome."""

    def plan(self, goals: list[Goal]) -> list[str]:
        """Return what is still to be done, in the order in which the agent goes about it."""
        return outlook(self._state)

    def snapshot(self) -> bytes:
        """Return the whole state as compressed JSON."""
        text = json.dumps(self._state.to_json(), separators=(",", ":"), allow_nan=False)
        return _MAGIC + zlib.compress(text.encode("ascii"), 6)

    def restore(self, data: bytes) -> None:
        """Restore the state of a snapshot.

        Raises:
            SnapshotError: the data is not a snapshot of this agent, or damaged; nothing has changed.
        """
        if not data.startswith(_MAGIC):
            raise SnapshotError("This is not a snapshot of crafter-survivor, or it is of another version.")
        try:
            reader = zlib.decompressobj()
            text = reader.decompress(data[len(_MAGIC) :], _LARGEST)
            if not reader.eof:
                raise ValueError("it is cut short or too large")
            state: dict[str, JsonValue] = json.loads(text)
            self._state = State.from_json(state)
        except (ValueError, KeyError, TypeError, AttributeError, zlib.error, RecursionError) as error:
            raise SnapshotError(f"The snapshot of crafter-survivor is damaged: {error}.") from error

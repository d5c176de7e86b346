"""The agent's face towards the protocol."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any, cast

from wsap_core.errors import SnapshotError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation

from .mind import Mind
from .outlook import outlook
from .percept import perceive
from .policy import think

if TYPE_CHECKING:
    from wsap_crafter.observation import CrafterObservation

_MAGIC = b"crafter-survivor/1\n"
_LARGEST = 1 << 20
"""Bytes that a snapshot may unpack to; a real one has about 20 kB."""


class Survivor:
    """Plays Crafter by rules and from memory: gathers, crafts, eats, drinks, sleeps sheltered, and fights.

    It knows the game's rules as a seasoned player does and nothing of the world but what its observations have
    shown. It draws no random numbers: the same observations give the same actions.
    """

    def __init__(self) -> None:
        self._mind = Mind()

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Begin a new session with an empty map. The rules of the game are known already."""
        self._mind = Mind()

    def decide(self, observation: Observation) -> Action:
        """Return the next action, with a short sentence on what it is for.

        An observation whose step lies before the last one decided on is of a new episode, in a new world:
        the map is forgotten.
        """
        percept = perceive(cast("CrafterObservation", observation))
        if percept.step < self._mind.step:
            self._mind = Mind()
        decision = think(self._mind, percept)
        return Action(decision.action, {}, decision.reason)

    def reflect(self, result: ActionResult) -> None:
        """Learn nothing here: the next observation tells what came of the action."""

    def plan(self, goals: list[Goal]) -> list[str]:
        """Return what is still to be done, in the order in which the agent goes about it."""
        return outlook(self._mind)

    def snapshot(self) -> bytes:
        """Return the whole mind as compressed JSON."""
        text = json.dumps(self._mind.to_json(), separators=(",", ":"), allow_nan=False)
        return _MAGIC + zlib.compress(text.encode("ascii"), 6)

    def restore(self, data: bytes) -> None:
        """Take up the mind of a snapshot, and decide from there on as the one it was taken of.

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
            state: dict[str, Any] = json.loads(text)  # Any: JSON values, checked by from_json
            self._mind = Mind.from_json(state)
        except (ValueError, KeyError, TypeError, AttributeError, zlib.error, RecursionError) as error:
            raise SnapshotError(f"The snapshot of crafter-survivor is damaged: {error}.") from error

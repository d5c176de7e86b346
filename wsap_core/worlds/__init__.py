"""Worlds and seats: one face for stepped, simultaneous, alternating and real-time games.

A `World` is one running instance of a game; a `Seat` is one agent bound to one avatar in it.
`Barrier` and `Mailbox` are what authors of worlds with several seats build with.
"""

from __future__ import annotations

from wsap_core.worlds.barrier import Barrier
from wsap_core.worlds.mailbox import MESSAGE_ACTIONS, Mailbox
from wsap_core.worlds.seat import GAME_OVER, Outcome, Seat
from wsap_core.worlds.world import World

__all__ = ["GAME_OVER", "MESSAGE_ACTIONS", "Barrier", "Mailbox", "Outcome", "Seat", "World"]

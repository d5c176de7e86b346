"""Worlds and seats, one interface for games of any timing; `Barrier` and `Mailbox` are for games of several seats."""

from __future__ import annotations

from wsap_core.worlds.barrier import Barrier
from wsap_core.worlds.mailbox import MESSAGE_ACTIONS, Mailbox
from wsap_core.worlds.seat import GAME_OVER, Outcome, Seat
from wsap_core.worlds.world import World

__all__ = ["GAME_OVER", "MESSAGE_ACTIONS", "Barrier", "Mailbox", "Outcome", "Seat", "World"]

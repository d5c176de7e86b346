"""The runtime of the Wild Spaces Agent Protocol: plays, records and replays agents in worlds."""

from __future__ import annotations

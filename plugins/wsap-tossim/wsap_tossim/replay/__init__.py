"""Replays: one self-contained HTML file of a game, and the record that it is made from.

record         a game with its players' thoughts, as one JSON file
runs           recorded runs as records
belief_replay  beliefs of scripted players, recomputed
event_lines    events as sentences
story          the part of a game that a view shows
page           the HTML file
"""

from __future__ import annotations

from wsap_tossim.replay.page import replay_page, write_replay
from wsap_tossim.replay.record import Record, load_record, save_record
from wsap_tossim.replay.story import Belief, Thought, View, view_named

__all__ = [
    "Belief", "Record", "Thought", "View", "load_record", "replay_page", "save_record", "view_named", "write_replay",
]  # fmt: skip

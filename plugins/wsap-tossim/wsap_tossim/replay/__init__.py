"""Replays: one self-contained HTML file of a game, and the record that it is made from.

record     a game with what was thought in it, as one JSON file
words      events as sentences
story      which part of a game a view shows, and what goes where on the page
page       the HTML file
"""

from __future__ import annotations

from wsap_tossim.replay.page import replay_page, write_replay
from wsap_tossim.replay.record import Record, load_record, save_record
from wsap_tossim.replay.story import Belief, Thought, View, view_named

__all__ = [
    "Belief", "Record", "Thought", "View", "load_record", "replay_page", "save_record", "view_named", "write_replay",
]  # fmt: skip

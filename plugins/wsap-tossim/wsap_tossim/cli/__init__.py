"""`wsap tossim`: the commands of the game, each imported at first use."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.cli.grouped import lazy_group

_HERE = "wsap_tossim.cli"
COMMANDS: Mapping[str, tuple[str, str]] = {
    "export": (f"{_HERE}.export:export", "Export games as training data."),
    "fork": (f"{_HERE}.fork:fork", "Continue a game differently from any of its rounds."),
    "replay": (f"{_HERE}.replay:replay", "Render a game as one HTML file."),
    "tournament": (f"{_HERE}.tournament:tournament", "Play many games between entrants and rate them."),
}
"""Name -> import path and one-line help."""


tossim = lazy_group(
    "tossim",
    "Replay, export, fork and rate games of ToSSim.",
    COMMANDS,
    examples=(
        "wsap tossim replay last",
        "wsap tossim tournament scripted random --games 30",
        "wsap tossim export last --out turns.jsonl",
    ),
)

"""`wsap tossim`: the commands of the game. Each is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.cli.lazy import lazy_group

_HERE = "wsap_tossim.cli"
COMMANDS: Mapping[str, tuple[str, str]] = {
    "export": (
        f"{_HERE}.export:export",
        "Write games as data to learn from: each player's turns as it was shown them.",
    ),
    "fork": (f"{_HERE}.fork:fork", "Go on with a game from any of its rounds, otherwise than it went."),
    "replay": (f"{_HERE}.replay:replay", "Make one HTML file of a game: what everyone knew, thought and said."),
    "tournament": (f"{_HERE}.tournament:tournament", "Let entrants play many games against each other, and rate them."),
}
"""Name -> import path, and its line in the help."""


tossim = lazy_group(
    "tossim", "The town of hidden roles: replays, tournaments, exports and forks of its games.", COMMANDS
)

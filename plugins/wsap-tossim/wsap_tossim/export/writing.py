"""Write lines into a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import IO

from wsap_tossim.export.games import Advantage, Tally, Wanted, chat_lines, episode_lines, with_advantage
from wsap_tossim.export.lines import EpisodeLine
from wsap_tossim.export.walk import Source

__all__ = ["write_chat", "write_episodes"]


def write_chat(sources: Iterable[Source], wanted: Wanted, file: IO[str], *, bare: bool = False) -> Tally:
    """Write turns for fine-tuning, one per line, only their messages if `bare`; return the counts.

    Raises:
        SnapshotError: a game can't be replayed.
    """
    tally = Tally()
    for line in chat_lines(sources, wanted, tally):
        file.write(line.model_dump_json(include={"messages"} if bare else None) + "\n")
    return tally


def write_episodes(sources: Iterable[Source], wanted: Wanted, file: IO[str], advantage: Advantage) -> Tally:
    """Write players' games with their rewards, one per line; return the counts.

    Raises:
        SnapshotError: a game can't be replayed.
    """
    tally = Tally()
    if advantage == "none":
        for line in episode_lines(sources, wanted, tally):
            file.write(line.model_dump_json() + "\n")
        return tally
    # An advantage depends on all games, and all lines at once may not fit into memory.
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as kept:
        for line in episode_lines(sources, wanted, tally):
            kept.write(line.model_dump_json() + "\n")
        kept.seek(0)
        for text in kept:
            line = with_advantage(EpisodeLine.model_validate_json(text), advantage, tally.rewards)
            file.write(line.model_dump_json() + "\n")
    return tally

"""Write lines atomically into a file, or to standard output."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from wsap_core.errors import UsageError
from wsap_tossim.export.games import Advantage, Tally, Wanted, chat_lines, episode_lines, with_advantage
from wsap_tossim.export.lines import EpisodeLine
from wsap_tossim.export.walk import Source

__all__ = ["write_chat", "write_episodes", "written_to"]


@contextlib.contextmanager
def written_to(path: Path) -> Iterator[IO[str]]:
    """Open a temporary file that replaces the named one once everything is written.

    Raises:
        UsageError: it can't be written.
    """
    partial: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name[:40]}.", delete=False
        ) as file:
            partial = Path(file.name)
            yield file
        partial.replace(path)
        partial = None
    except OSError as error:
        raise UsageError(f"{str(path)!r} can't be written: {error.strerror or error}.") from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def write_chat(sources: Iterable[Source], wanted: Wanted, file: IO[str], *, bare: bool = False) -> Tally:
    """Write turns for fine-tuning, one a line; return what it came to.

    Args:
        sources: the games.
        wanted: which turns.
        file: to write to.
        bare: leave out everything but the messages.

    Raises:
        SnapshotError: a game can't be played again.
    """
    tally = Tally()
    for line in chat_lines(sources, wanted, tally):
        file.write(line.model_dump_json(include={"messages"} if bare else None) + "\n")
    return tally


def write_episodes(sources: Iterable[Source], wanted: Wanted, file: IO[str], advantage: Advantage) -> Tally:
    """Write players' games with their rewards, one a line; return what it came to.

    Raises:
        SnapshotError: a game can't be played again.
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

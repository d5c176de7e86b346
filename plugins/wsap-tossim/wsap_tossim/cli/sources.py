"""Games that are named on the command line: files, folders, and recorded runs."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from wsap_tossim.export.walk import Source


def is_path(word: str) -> bool:
    """Return whether a word names a file or folder rather than a run."""
    path = Path(word)
    return path.exists() or path.suffix in (".json", ".jsonl") or "/" in word


def exported(run: str, database: str | None) -> bytes:
    """Return a recorded run as JSON lines, through the runtime's own `wsap export`.

    Raises:
        MissingServiceError: the runtime is not installed.
        UnknownNameError: there is no such run.
    """
    from wsap_core.errors import MissingServiceError

    here = click.get_current_context()
    root = here.find_root()
    export = root.command.get_command(root, "export") if isinstance(root.command, click.Group) else None
    if export is None:
        raise MissingServiceError("A recorded run is read by the runtime: pip install wsap-nexus")
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "run.jsonl"
        with contextlib.redirect_stderr(io.StringIO()):  # it says how many lines it wrote, which is nobody's business
            here.invoke(export, run=run, form="jsonl", output=lines, force=True, database=database)
        return lines.read_bytes()


def named(words: tuple[str, ...], database: str | None) -> Iterator[Source]:
    """Give the games that were named, one by one.

    Raises:
        UsageError: a file can't be read.
        UnknownNameError: there is no such run.
        WireError: it is no game of the town, or is damaged.
        SnapshotError: a game can't be played again.
    """
    # Deferred for weight: the engine.
    from wsap_tossim.export.sources import games_of_run, sources_in
    from wsap_tossim.replay.runs import rows_of_export

    for word in words:
        if is_path(word):
            yield from sources_in(Path(word))
        else:
            yield from games_of_run(rows_of_export(exported(word, database), word), word)

"""Games named on the command line: files, folders and recorded runs."""

from __future__ import annotations

import contextlib
import io
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from wsap_tossim.export.walk import Source
    from wsap_tossim.replay.record import Record


def is_path(word: str) -> bool:
    """Return whether a word names a file or folder rather than a run."""
    path = Path(word)
    return path.exists() or path.suffix in (".json", ".jsonl") or "/" in word


def file_name(run: str) -> str:
    """Return a base name for files made from a run."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in run)[:80] or "town"


def runtime_command(name: str, needed: str) -> click.Command:
    """Return a command of the runtime, such as `play`; `needed` is the start of the error message.

    Raises:
        MissingServiceError: the runtime is not installed.
    """
    from wsap_core.errors import MissingServiceError
    from wsap_core.installing import install_line

    root = click.get_current_context().find_root()
    found = root.command.get_command(root, name) if isinstance(root.command, click.Group) else None
    if found is None:
        raise MissingServiceError(f"{needed}: {install_line('wsap-nexus')}")
    return found


def exported(run: str, database: str | None) -> bytes:
    """Return a recorded run as JSON lines, through the runtime's `wsap export`.

    Raises:
        MissingServiceError: the runtime is not installed.
        UnknownNameError: there is no such run.
    """
    export = runtime_command("export", "Recorded runs need the runtime")
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "run.jsonl"
        with contextlib.redirect_stderr(io.StringIO()):  # it reports the number of lines, which is noise here
            click.get_current_context().invoke(
                export, runs=(run,), form="jsonl", output=lines, force=True, database=database
            )
        return lines.read_bytes()


class Found(NamedTuple):
    """A game named on the command line."""

    record: Record
    called: str
    """Its name on a command line, quoted: a file name without folders, or a run's id."""
    options: Mapping[str, Any]
    """Options of its run; empty for a game's record."""


def found(word: str, database: str | None) -> Found:
    """Return the named game: a game's record, an exported run, or a recorded run.

    Raises:
        UsageError: a file can't be read.
        MissingServiceError: it is a recorded run, and the runtime is not installed.
        UnknownNameError: there is no such run.
        WireError: it is not a ToSSim game, or is damaged.
        SnapshotError: its game can't be replayed.
    """
    # Deferred for weight: the engine.
    from wsap_tossim.replay.record import parsed, read_bytes, record_from_json
    from wsap_tossim.replay.runs import RUN_FORMAT, played_in_run, rows_of_export

    path = Path(word)
    if is_path(word):
        called = shlex.quote(f"./{path.name}" if path.name.startswith("-") else path.name)
        data = read_bytes(path)
        if f'"{RUN_FORMAT}"'.encode() not in data.split(b"\n", 1)[0]:
            return Found(record_from_json(parsed(data, word), word), called, {})
        head, record = played_in_run(rows_of_export(data, word), word)
        return Found(record, called, head.config["options"])
    head, record = played_in_run(rows_of_export(exported(word, database), word), word)
    return Found(record, shlex.quote(head.run or word), head.config["options"])


def named(words: tuple[str, ...], database: str | None) -> Iterator[Source]:
    """Yield the named games; raise the same errors as `found`."""
    # Deferred for weight: the engine.
    from wsap_tossim.export.sources import games_of_run, sources_in
    from wsap_tossim.replay.runs import rows_of_export

    for word in words:
        if is_path(word):
            yield from sources_in(Path(word))
        else:
            yield from games_of_run(rows_of_export(exported(word, database), word), word)

"""`wsap tossim replay`: a game as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from wsap_tossim.replay.record import Record


@click.command()
@click.argument("source", metavar="FILE_OR_RUN")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path),
              help="The page to write; beside FILE, or RUN.html here, when not given.")  # fmt: skip
@click.option("--view", default="all", show_default=True, metavar="all|public|PLAYER",
              help="What the page may show; what that view doesn't know is not in the file at all.")  # fmt: skip
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--database", metavar="PATH", help="For a RUN: the database, as `wsap play` takes it.")
def replay(source: str, *, out: Path | None, view: str, force: bool, database: str | None) -> None:
    """Make one HTML file of a game: what everyone knew, thought and said.

    FILE is a game's record (town.json) or an exported run; RUN is the id of a recorded run of tossim,
    the beginning or end of it, or last. The page needs no network and shows all views, unless --view
    names one.
    """
    # Deferred for weight: the engine and the page.
    from wsap_core.errors import UsageError
    from wsap_core.untrusted import one_line
    from wsap_tossim.replay.page import write_text
    from wsap_tossim.replay.story import view_named

    path = Path(source)
    is_file = path.is_file() or path.suffix in (".json", ".jsonl")
    record = record_in(path) if is_file else record_of(source, database)
    chosen = view_named(view, record.names)
    target = out or (path.with_suffix(".html") if is_file else Path(f"{_file_name(source)}.html"))
    if target.exists() and not force:
        raise UsageError(f"There is a file {target} already; choose another name, or write over it with --force.")
    page = record.page(chosen)
    write_text(target, page)
    shown = "all views" if chosen is None else "the public view"
    if isinstance(chosen, int):
        shown = f"only what {one_line(record.names[chosen])} knew"
    click.echo(f"Wrote {target} ({len(page.encode()) // 1000} kB): {shown}. Open it in a browser.", err=True)


def record_in(path: Path) -> Record:
    """Return the game in a file: a record, or an exported run.

    Raises:
        UsageError: it can't be read.
        WireError: it is neither, or is damaged.
        SnapshotError: its game can't be played again.
    """
    from wsap_tossim.replay.record import parsed, read_bytes, record_from_json
    from wsap_tossim.replay.runs import RUN_FORMAT, record_of_run, rows_of_export

    data = read_bytes(path)
    head = data.split(b"\n", 1)[0]
    if f'"{RUN_FORMAT}"'.encode() in head:
        return record_of_run(rows_of_export(data, str(path)), str(path))
    return record_from_json(parsed(data, str(path)), str(path))


def record_of(run: str, database: str | None) -> Record:
    """Return the game of a recorded run, through the runtime's own `wsap export`.

    Raises:
        MissingServiceError: the runtime is not installed.
        UnknownNameError: there is no such run.
        WireError: it is no run of this game.
    """
    from wsap_tossim.cli.sources import exported
    from wsap_tossim.replay.runs import record_of_run, rows_of_export

    return record_of_run(rows_of_export(exported(run, database), run), run)


def _file_name(run: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in run)[:80] or "town"

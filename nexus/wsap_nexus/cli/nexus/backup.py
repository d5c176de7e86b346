"""`wsap nexus backup` and `wsap nexus restore`: the whole database as one file."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import json_option
from wsap_nexus.cli.common import database_option


@click.command(
    cls=GroupedCommand, examples=("wsap nexus backup wsap-backup.db", "wsap nexus backup wsap-backup.db --force --json")
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
@database_option
def backup(*, file: Path, force: bool, as_json: bool, database: str | None) -> None:
    """Copy the database to FILE, also while the nexus is running. The copy is consistent, and is verified.

    It contains everything: agents, worlds, recordings. The token of the nexus is not in it.
    """
    from wsap_core.errors import StorageError
    from wsap_nexus.cli.doctor import _bytes
    from wsap_nexus.cli.runs import open_for_reading
    from wsap_nexus.store.backup import back_up

    opened = open_for_reading(database)
    if opened is None:
        raise StorageError("There is no database to copy yet; begin with: wsap nexus start")
    with opened:
        progress = Progress("Copying")
        size = back_up(opened, file.absolute(), force=force, progress=progress.tell)
        progress.done()
        where = opened.where
    facts = {"file": str(file), "bytes": size, "database": where}
    click.echo(json.dumps(facts) if as_json else f"Copied {where} to {file} ({_bytes(size)}), and verified the copy.")


@click.command(
    cls=GroupedCommand, examples=("wsap nexus restore wsap-backup.db", "wsap nexus restore wsap-backup.db --yes")
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@json_option
@database_option
def restore(*, file: Path, yes: bool, as_json: bool, database: str | None) -> None:
    """Replace the database by the copy in FILE. The old database is kept beside it.

    No nexus may be running.
    """
    from wsap_core.errors import UsageError
    from wsap_nexus.paths import database_location, is_url, prepare_home
    from wsap_nexus.store.backup import restore as put_back

    where = database_location(database, os.environ)
    if is_url(where) and not where.startswith("sqlite:///"):
        raise UsageError("This database is on a server; restore it with the server's own tool: pg_restore.")
    path = Path(where.removeprefix("sqlite:///"))
    if not yes and not as_json and path.exists():
        click.confirm(f"Replace {path} by {file}? (The present database is kept beside it.)", abort=True)
    prepare_home(str(path), os.environ)
    kept = put_back(file.absolute(), path)
    facts = {"database": str(path), "file": str(file), "kept": None if kept is None else str(kept)}
    text = f"Replaced {path} by {file}." + (f" The old database is kept as {kept}." if kept else "")
    click.echo(json.dumps(facts) if as_json else text)


class Progress:
    """A progress line on standard error, at a terminal, for work of more than a second.

    Args:
        what: the work, in one word.
    """

    def __init__(self, what: str) -> None:
        from time import monotonic

        self._what = what
        self._clock = monotonic
        self._began = self._said = monotonic()
        self._shown = False

    def tell(self, done: int, of: int) -> None:
        """Show the progress."""
        now = self._clock()
        if now - self._began < 1.0 or now - self._said < 0.2 or not sys.stderr.isatty() or not of:
            return
        self._said, self._shown = now, True
        click.echo(f"\r{self._what}: {100 * done // of} % ", err=True, nl=False)

    def done(self) -> None:
        """End the line."""
        if self._shown:
            click.echo("", err=True)

"""`wsap nexus backup`, `restore` and `prune`."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

import click

from wsap_core.cli.params import FiniteRange, refuse_given
from wsap_core.errors import StorageError, UsageError
from wsap_core.protocol.lines import plural
from wsap_nexus.cli.common import command, open_for_reading, said, text_of_size
from wsap_nexus.cli.nexus.connection import running_on
from wsap_nexus.cli.nexus.start import KEEP_DAYS


@command("wsap nexus backup wsap-backup.db", "wsap nexus backup wsap-backup.db --force --json")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def backup(*, file: Path, force: bool, as_json: bool, database: str | None) -> None:
    """Copy the database to FILE, also while the nexus is running. The copy is consistent and verified.

    It contains everything (agents, worlds, recordings) except the token of the nexus.
    """
    from wsap_nexus.store.upkeep.backup import back_up

    opened = open_for_reading(database)
    if opened is None:
        raise StorageError("There is no database to copy yet; start with: wsap nexus start")
    with opened:
        progress = Progress("Copying")
        size = back_up(opened, file.absolute(), force=force, progress=progress.tell)
        progress.done()
        where = opened.where
    text = f"Copied {where} to {file} ({text_of_size(size)}), and verified the copy."
    said(as_json, text, file=str(file), bytes=size, database=where)


@command("wsap nexus restore wsap-backup.db", "wsap nexus restore wsap-backup.db --yes")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
def restore(*, file: Path, yes: bool, as_json: bool, database: str | None) -> None:
    """Replace the database with the copy in FILE. The old database is kept beside it.

    No nexus may be running.
    """
    from wsap_nexus.paths import database_location, is_url, prepare_home
    from wsap_nexus.store.upkeep.backup import restore as put_back

    where = database_location(database, os.environ)
    if is_url(where) and not where.startswith("sqlite:///"):
        raise UsageError("This database is on a server; restore it with the server's own tool, such as pg_restore.")
    path = Path(where.removeprefix("sqlite:///"))
    if not yes and not as_json and path.exists() and file.is_file():
        click.confirm(f"Replace {path} with {file}? (The old database is kept beside it.)", abort=True)
    prepare_home(str(path), os.environ)
    kept = put_back(file.absolute(), path)
    text = f"Replaced {path} with {file}." + (f" The old database is kept as {kept}." if kept else "")
    said(as_json, text, database=str(path), file=str(file), kept=None if kept is None else str(kept))


class Progress:
    """A progress line on standard error, at a terminal, for work that takes more than a second."""

    def __init__(self, what: str) -> None:
        self._what, self._shown = what, False
        self._began = self._said = time.monotonic()

    def tell(self, done: int, of: int) -> None:
        """Show the progress."""
        now = time.monotonic()
        if now - self._began < 1.0 or now - self._said < 0.2 or not sys.stderr.isatty() or not of:
            return
        self._said, self._shown = now, True
        click.echo(f"\r{self._what}: {100 * done // of} % ", err=True, nl=False)

    def done(self) -> None:
        """End the line."""
        if self._shown:
            click.echo("", err=True)


@command("wsap nexus prune --dry-run", "wsap nexus prune --keep-days 30", "wsap nexus prune --all --json")
@click.option("--keep-days", type=FiniteRange(0, 100_000), default=KEEP_DAYS, show_default=True,
              help="Delete data older than this; 0 keeps everything, as in wsap nexus start.")  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Delete everything that can be deleted, whatever its age.")
@click.option("--dry-run", is_flag=True, help="Only print the number and size of what would be deleted.")
@click.option("--compact/--no-compact", default=True,
              help="Shrink the database file (only while no nexus is running).")  # fmt: skip
def prune(
    *, keep_days: float, everything: bool, dry_run: bool, compact: bool, as_json: bool, database: str | None
) -> None:
    """Delete old recordings of the nexus and old events of its log. A running nexus does so once a day.

    If it does not, because its clock may be wrong, this command confirms the clock: look first with --dry-run.

    Always kept: data of open sessions and active goals, agents with their skills, items, diaries and
    avatars, worlds, the record of every session, and the runs of wsap play.
    """
    from wsap_nexus.hub.upkeep.retention import trust
    from wsap_nexus.runs.store import open_database
    from wsap_nexus.store.nexus_store import NexusStore
    from wsap_nexus.store.upkeep import prune as pruning

    if dry_run:
        refuse_given("with --dry-run", "compact")
    if everything:
        refuse_given("with --all", "keep_days")
        keep_days = 0.0
    nothing = {**asdict(pruning.Pruned()), "keep_days": keep_days, "dry_run": dry_run, "compacted": False}
    if not keep_days and not everything:
        text = "Nothing is deleted: 0 keeps everything. To delete everything that can be deleted, use --all."
        said(as_json, text, **nothing)
        return
    opened = open_for_reading(database)
    if opened is None:
        said(as_json, "There is nothing to delete yet.", **nothing)
        return
    compacted = False
    with opened:
        if dry_run:
            found = pruning.measure(opened, keep_days)
    if not dry_run:
        running = running_on(database) is not None
        progress = Progress("Deleting")
        with open_database(database) as writable:
            found = pruning.prune(writable, keep_days, progress=progress.tell)
            progress.done()
            with NexusStore(writable).change() as tx:
                trust(tx, tx.now)
            compacted = compact and not running and found.anything and pruning.compact(writable)
    if not found.anything:
        text = "There is nothing to delete." if everything else f"Nothing is older than {plural(keep_days, 'day')}."
    else:
        verb = "would be deleted" if dry_run else "deleted"
        worlds = f", {plural(found.worlds, 'world')} without living avatars" if found.worlds else ""
        age = f", older than {plural(keep_days, 'day')} (before {pruning.day_before(keep_days)})" if keep_days else ""
        text = (
            f"{plural(found.runs, 'recording')} with {plural(found.run_events, 'event')}{worlds}, and "
            f"{plural(found.nexus_events, 'event')} of the nexus {verb}{age}: about {text_of_size(found.bytes)}."
        )
        if not dry_run and not compacted:
            text += "\nThe file keeps its size; the freed space is reused."
    said(as_json, text, **{**nothing, **asdict(found), "compacted": compacted})

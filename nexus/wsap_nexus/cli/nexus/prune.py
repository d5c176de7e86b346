"""`wsap nexus prune`: delete old recordings and events."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from wsap_core.cli.grouped import GroupedCommand, refuse_given
from wsap_core.cli.params import json_option
from wsap_nexus.cli.common import database_option, plural
from wsap_nexus.cli.nexus.start import KEEP_DAYS


@click.command(
    cls=GroupedCommand,
    examples=("wsap nexus prune --dry-run", "wsap nexus prune --keep-days 30", "wsap nexus prune --all --json"),
)
@click.option("--keep-days", type=click.FloatRange(0, 100_000), default=KEEP_DAYS, show_default=True,
              help="Delete what is older than this; 0 keeps everything, as in wsap nexus start.")  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Delete everything that can be deleted, whatever its age.")
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted, and its size.")
@click.option("--compact/--no-compact", default=True,
              help="Shrink the database file (only while no nexus is running).")  # fmt: skip
@json_option
@database_option
def prune(
    *, keep_days: float, everything: bool, dry_run: bool, compact: bool, as_json: bool, database: str | None
) -> None:
    """Delete old recordings of the nexus and old events of its log. A running nexus does so once a day.

    Never deleted: what an open session or an active goal needs, agents with their skills, items,
    diaries and avatars, worlds, the record of every session, and the runs of wsap play.
    """
    from wsap_nexus.cli.doctor import _bytes
    from wsap_nexus.cli.nexus.backup import Progress
    from wsap_nexus.cli.nexus.report import running_on
    from wsap_nexus.cli.runs import open_for_reading
    from wsap_nexus.hub import prune as pruning
    from wsap_nexus.runs.store import open_database

    if dry_run:
        refuse_given("with --dry-run", "compact")
    if everything:
        refuse_given("with --all", "keep_days")
        keep_days = 0.0
    nothing = {**asdict(pruning.Pruned()), "keep_days": keep_days, "dry_run": dry_run, "compacted": False}
    if not keep_days and not everything:
        text = "Nothing is deleted: 0 keeps everything. To delete everything that can be deleted, say --all."
        click.echo(json.dumps(nothing) if as_json else text)
        return
    opened = open_for_reading(database)
    if opened is None:
        click.echo(json.dumps(nothing) if as_json else "There is nothing to delete yet.")
        return
    with opened:
        if dry_run:
            found = pruning.measure(opened, keep_days)
    running = running_on(database) is not None
    compacted = False
    if not dry_run:
        progress = Progress("Deleting")
        with open_database(database) as writable:
            found = pruning.prune(writable, keep_days, progress=progress.tell)
            progress.done()
            compacted = compact and not running and found.anything and pruning.compact(writable)
    if as_json:
        click.echo(json.dumps({**asdict(found), "keep_days": keep_days, "dry_run": dry_run, "compacted": compacted}))
        return
    if not found.anything:
        click.echo("There is nothing to delete." if everything else f"Nothing is older than {keep_days:g} days.")
        return
    verb = "would be deleted" if dry_run else "deleted"
    worlds = f", {plural(found.worlds, 'world')} without living avatars" if found.worlds else ""
    click.echo(
        f"{plural(found.runs, 'recording')} with {plural(found.run_events, 'event')}{worlds}, and "
        f"{plural(found.nexus_events, 'event')} of the nexus {verb}: about {_bytes(found.bytes)}."
    )
    if not dry_run and not compacted:
        click.echo("The file keeps its size; the freed space in it will be reused.")

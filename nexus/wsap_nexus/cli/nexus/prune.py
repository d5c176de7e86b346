"""`wsap nexus prune`: forget what is old."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from wsap_nexus.cli.common import database_option, json_option
from wsap_nexus.cli.nexus.start import KEEP_DAYS


@click.command()
@click.option("--keep-days", type=click.FloatRange(0, 100_000), default=KEEP_DAYS, show_default=True,
              help="What is older is forgotten; 0 keeps everything, as for wsap nexus start.")  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Forget all that may be forgotten, however young.")
@click.option("--dry-run", is_flag=True, help="Only say what would be forgotten, and how large it is.")
@click.option("--compact/--no-compact", default=True,
              help="Give the room back to the disk, where no nexus runs; it is used again either way.")  # fmt: skip
@json_option
@database_option
def prune(
    *, keep_days: float, everything: bool, dry_run: bool, compact: bool, as_json: bool, database: str | None
) -> None:
    """Forget old recordings of the nexus and old events of its log. A running nexus does it once a day.

    Never forgotten: what an open stay or an active goal needs, agents with their skills, items,
    diaries and bodies, the worlds, the record of every stay, and the runs of wsap play.
    """
    from wsap_nexus.cli.doctor import _bytes
    from wsap_nexus.cli.nexus.backup import Progress
    from wsap_nexus.cli.nexus.report import running_on
    from wsap_nexus.cli.runs import open_for_reading
    from wsap_nexus.hub import prune as pruning
    from wsap_nexus.runs.store import open_database

    if everything:
        keep_days = 0.0
    elif not keep_days:
        empty = {**asdict(pruning.Pruned()), "keep_days": keep_days, "dry_run": dry_run, "compacted": False}
        text = "Nothing is forgotten: 0 keeps everything. To forget all that may be, say --all."
        click.echo(json.dumps(empty) if as_json else text)
        return
    opened = open_for_reading(database)
    if opened is None:
        click.echo(json.dumps(asdict(pruning.Pruned())) if as_json else "There is nothing to forget yet.")
        return
    with opened:
        if dry_run:
            found = pruning.measure(opened, keep_days)
    running = running_on(database) is not None
    compacted = False
    if not dry_run:
        progress = Progress("Forgetting")
        with open_database(database) as writable:
            found = pruning.prune(writable, keep_days, progress=progress.tell)
            progress.done()
            compacted = compact and not running and found.anything and pruning.compact(writable)
    if as_json:
        click.echo(json.dumps({**asdict(found), "keep_days": keep_days, "dry_run": dry_run, "compacted": compacted}))
        return
    if not found.anything:
        click.echo("There is nothing to forget." if everything else f"Nothing is older than {keep_days:g} days.")
        return
    verb = "would be forgotten" if dry_run else "are forgotten"
    worlds = f", {found.worlds} worlds in which nobody is alive" if found.worlds else ""
    click.echo(
        f"{found.runs} recordings with {found.run_events} events{worlds}, and {found.nexus_events} events of the nexus "
        f"{verb}: about {_bytes(found.bytes)}."
    )
    if not dry_run and not compacted:
        click.echo("The file stays as large as it was, and the room in it is used again.")

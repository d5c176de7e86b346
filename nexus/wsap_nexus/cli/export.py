"""`wsap export`: a run as a file for other tools."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import click

from wsap_core.cli.grouped import GroupedCommand, refuse_given
from wsap_nexus.cli.common import database_option, plural


@click.command(cls=GroupedCommand, examples=("wsap export last --output run.jsonl", "wsap export last"))
@click.argument("run")
@click.option("--format", "form", type=click.Choice(["jsonl"]), default="jsonl", show_default=True,
              help="jsonl: one JSON object per line, first the run, then each event.")  # fmt: skip
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="The file to write; default: standard output."
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@database_option
def export(run: str, *, form: str, output: Path | None, force: bool, database: str | None) -> None:
    """Export a RUN: its id, the beginning or end of it, or last."""
    from wsap_nexus.cli.replay import opened_run
    from wsap_nexus.store.export import export_jsonl

    if output is None:
        refuse_given("without --output", "force")

    with opened_run(database, run) as (repository, record):
        lines = export_jsonl(repository, record.id)
        if output is None:
            for line in lines:
                click.echo(line)
        else:
            count = _write(lines, output, force=force)
            click.echo(f"Wrote {plural(count, 'line')} to {output}.", err=True)


def _write(lines: Iterable[str], path: Path, *, force: bool) -> int:
    """Write a file whole or not at all.

    Raises:
        UsageError: there is a file already, or it can't be written.
    """
    from wsap_core.errors import UsageError

    if path.exists() and not force:
        raise UsageError(f"The file {path} exists already; choose another name, or overwrite it with --force.")
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    count = 0
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            for line in lines:
                file.write(line + "\n")
                count += 1
        partial.replace(path)
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror or error}; choose another place.") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
    return count

"""`wsap export`: writes runs to a file for other tools."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import complete_games, refuse_given
from wsap_core.errors import UnknownNameError, UsageError
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import database_option, open_for_reading

if TYPE_CHECKING:
    from wsap_nexus.store.records import RunRecord


@click.command(
    cls=GroupedCommand,
    examples=(
        "wsap export last --output run.jsonl",
        "wsap export --game crafter --format chat --output crafter-chat.jsonl",
    ),
)
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--game", metavar="GAME", shell_complete=complete_games, help="All runs of this game, without replays.")
@click.option("--format", "form", type=click.Choice(["jsonl", "chat"]), default="jsonl", show_default=True,
              help="jsonl: one JSON object per line, first the run, then each event. chat: one decision of a model "
              "per line, as the messages sent to it and its reply.")  # fmt: skip
@click.option("--forced", is_flag=True, help="With --format chat: include forced decisions, marked as such.")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="The file to write; default: standard output."
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@database_option
def export(
    runs: tuple[str, ...], *, game: str | None, form: str, forced: bool, output: Path | None, force: bool,
    database: str | None,
) -> None:  # fmt: skip
    """Export each RUN, named by its id, the beginning or end of the id, or last."""
    from wsap_core.host import PluginHost
    from wsap_core.protocol import wire
    from wsap_nexus.runs.renamed import names_of
    from wsap_nexus.runs.views.chat import ChatCounts, chat_lines
    from wsap_nexus.store.repository import Repository
    from wsap_nexus.store.upkeep.export import export_jsonl

    if output is None:
        refuse_given("without --output", "force")
    if form != "chat":
        refuse_given("without --format chat", "forced")
    if bool(runs) == bool(game):
        raise UsageError("Name the runs to export, or their game with --game, but not both (`wsap runs` lists them).")
    readable = open_for_reading(database)
    if readable is None:
        nothing = "Nothing is recorded yet; start with: wsap play crafter"
        raise UnknownNameError("run", runs[0], (), hint=nothing) if runs else UsageError(nothing)
    with readable as opened:
        repository, counts = Repository(opened), ChatCounts()
        found: Iterable[RunRecord] = map(repository.get_run, runs)
        if game:
            names = names_of(game, PluginHost.discovered())
            found = reversed(repository.list_runs(games=names, without_replays=True))
        records = {record.id: record for record in found}.values()
        if not records:
            raise UsageError(f"No run of {single_line(str(game))!r} is recorded; see: wsap runs")
        if form == "chat":
            lines = (
                wire.dumps(line)
                for record in records
                for line in chat_lines(repository, record, counts, with_forced=forced)
            )
        else:
            lines = (line for record in records for line in export_jsonl(repository, record.id))
        if output is None:
            for line in lines:
                click.echo(line)
        else:
            count = _write(lines, output, force=force)
            click.echo(f"Wrote {plural(count, 'line')} to {output}.", err=True)
        if form == "chat":
            click.echo(
                f"Left out: {plural(counts.forced, 'forced decision')}, {plural(counts.unasked, 'step')} without a "
                "model's reply.", err=True,
            )  # fmt: skip
            if counts.of_world:
                click.echo(
                    f"Also left out: {plural(counts.of_world, 'call')} of the world itself, such as a story's, which "
                    "are no decisions of a seat; --format jsonl has them.", err=True,
                )  # fmt: skip


def _write(lines: Iterable[str], path: Path, *, force: bool) -> int:
    """Write a file atomically."""
    from wsap_core.textfile import written_to

    if path.exists() and not force:
        raise UsageError(f"The file {path} already exists; choose another name, or overwrite it with --force.")
    count = 0
    with written_to(path) as file:
        for line in lines:
            file.write(line + "\n")
            count += 1
    return count

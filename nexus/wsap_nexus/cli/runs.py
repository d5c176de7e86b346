"""`wsap runs`: lists and deletes recorded runs."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.grouped import GroupedCommand, ListGroup
from wsap_core.cli.params import STEPS, complete_games, json_option
from wsap_core.errors import UsageError
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import database_option, open_for_reading, output_console

if TYPE_CHECKING:
    from wsap_nexus.store.database import Database
    from wsap_nexus.store.records import RunRecord
    from wsap_nexus.store.repository import Repository

_MODELS = ("TOKENS", "COST", "FIXED")

SHOWN = 30
"""The default of `--limit`."""


@click.group(
    cls=ListGroup,
    invoke_without_command=True,
    examples=("wsap runs", "wsap runs --game crafter --limit 5", "wsap runs rm 20261120-crafter-7f3a"),
)
@json_option
@click.option("--limit", type=STEPS, default=SHOWN, show_default=True, help="Maximum number of runs.")
@click.option(
    "--game", metavar="GAME", shell_complete=complete_games, help="Only runs of this game, by any of its names."
)
@click.option("--agent", metavar="AGENT", help="Only runs of this agent: an installed one, or one of the nexus.")
@click.option("--all", "everything", is_flag=True, help="List replays and the runs of agents in the nexus, too.")
@database_option
@click.pass_context
def runs(
    context: click.Context, *, as_json: bool, limit: int, game: str | None, agent: str | None, everything: bool,
    database: str | None,
) -> None:  # fmt: skip
    """List the recorded runs, newest first.

    Replays of other runs are listed only with --all, and runs of agents in a nexus only with --all
    or --agent.

    A stopped, interrupted or failed run can be continued: wsap play --resume RUN. A SCORE in parentheses
    is from unfinished episodes. FIXED is the share of model decisions that were repaired or forced. In
    STEPS, 12t means 12 ticks of a world that lives.
    """
    from wsap_core.host import PluginHost
    from wsap_nexus.runs.renamed import names_of
    from wsap_nexus.store.repository import NEXUS, Repository

    if context.invoked_subcommand is not None:
        return
    opened = open_for_reading(database)
    if opened is None:
        click.echo("[]" if as_json else "Nothing is recorded yet; start with: wsap play crafter")
        return
    with opened:
        repository = Repository(opened)
        hidden = not everything and agent is None and game != NEXUS
        games = None if game is None else names_of(game, PluginHost.discovered())
        records = repository.list_runs(
            limit=limit, games=games, agent=agent, without_nexus=hidden, without_replays=not everything
        )
        rows = [_row(repository, record, hidden=hidden) for record in records]
        nexus, replays = repository.count_left_out() if not everything and not as_json else (0, 0)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    elif not rows:
        if game is not None or agent is not None:
            click.echo("No such run is recorded; see: wsap runs --all")
        elif not (nexus or replays):
            click.echo("Nothing is recorded yet; start with: wsap play crafter")
    elif sys.stdout.isatty():
        _print_table(rows)
    else:
        for row in rows:
            click.echo("\t".join(_cells(row)))
    left_out = [f"{plural(nexus, 'run')} in the nexus"] if nexus and hidden else []
    left_out += [plural(replays, "replay")] if replays else []
    if left_out:
        click.echo(f"Left out: {' and '.join(left_out)}; list all with: wsap runs --all", err=True)


@runs.command(cls=GroupedCommand, examples=("wsap runs rm last", "wsap runs rm 7f3a 91c2 --yes"))
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@json_option
@database_option
def rm(*, names: tuple[str, ...], yes: bool, as_json: bool, database: str | None) -> None:
    """Delete each RUN permanently.

    RUN is its id, the beginning or end of the id, or last. Its steps, snapshots, model calls and
    pictures are deleted, but agents of the database keep their memories of it. Recordings of a nexus
    are deleted with: wsap nexus prune
    """
    from wsap_nexus.runs.store import open_database
    from wsap_nexus.store.locks.run_lock import hold_run
    from wsap_nexus.store.repository import Repository

    with open_database(database) as opened:
        repository = Repository(opened)
        records = list({record.id: record for record in map(repository.get_run, names)}.values())
        _check_removable(repository, records)
        events = sum(repository.count_events(record.id) for record in records)
        what = f"{plural(len(records), 'run')} with {plural(events, 'event')}"
        if not yes and not as_json:
            shown = ", ".join(record.id for record in records[:5]) + (", ..." if len(records) > 5 else "")
            click.confirm(f"Delete {what} permanently ({single_line(shown)})?", abort=True)
        with contextlib.ExitStack() as held:
            for record in records:
                held.enter_context(hold_run(opened, record.id))
            repository.delete_run(*(record.id for record in records))
    deleted = [record.id for record in records]
    click.echo(json.dumps({"deleted": deleted, "events": events}) if as_json else f"Deleted {what}.")


def _check_removable(repository: Repository, records: Sequence[RunRecord]) -> None:
    chosen = {record.id for record in records}
    for record in records:
        if repository.is_of_nexus(record.id):
            raise UsageError(f"Run {record.id!r} was recorded by a nexus; delete old ones with: wsap nexus prune")
        if branches := [name for name in repository.branches_of(record.id) if name not in chosen]:
            raise UsageError(f"Run {record.id!r} has the branch {branches[0]!r}; delete that with it.")


def _row(repository: Repository, record: RunRecord, *, hidden: bool) -> dict[str, Any]:
    # Any: JSON.
    from wsap_nexus.cli.nexus.connection import running_on
    from wsap_nexus.runs.views.listed import row_of

    database = repository.database
    nexus = not hidden and repository.is_of_nexus(record.id)
    status = record.status.value if nexus else status_of(database, record)
    if nexus and status == "running" and running_on(database.where) is None:
        status = "interrupted"
    # A nexus resumes its runs itself.
    return {**row_of(repository, record, status, resumable=not nexus), "nexus": nexus}


def status_of(database: Database, record: RunRecord) -> str:
    """Return a run's status.

    A run that is recorded as running but played by no process is interrupted; a world that lives by itself and was
    left at a tick is stopped.
    """
    from wsap_nexus.runs.views.listed import STOPPED
    from wsap_nexus.store.locks.run_lock import is_played
    from wsap_nexus.store.records import RunStatus

    if record.status is RunStatus.INTERRUPTED and record.config.get("lives"):
        return STOPPED
    if record.status is not RunStatus.RUNNING:
        return record.status.value
    return record.status.value if is_played(database, record.id) else RunStatus.INTERRUPTED.value


_FEW_SEATS = 3
"""Maximum number of seats whose figures the table shows side by side."""

_COLUMNS = ("RUN", "GAME", "AGENT", "SEED", "STEPS", "REWARD", "SCORE", "STATUS", "WHEN", "TOKENS", "COST", "FIXED")


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        single_line(row["run"]),
        single_line(row["game"]),
        single_line(row["agent"]),
        str(row["seed"]),
        _length(row),
        _by_seat(row, lambda seat: _figure(seat.get("reward"))),
        _by_seat(row, _score),
        row["status"],
        _when(row["created"]),
        *_taken(row),
    ]


def _by_seat(row: dict[str, Any], figure: Callable[[Mapping[str, Any]], str]) -> str:
    """Return the figure of each seat, if there are few: a total would mix opponents."""
    figures = [figure(seat) for seat in row["seats"]]
    return "/".join(figures) if 1 <= len(figures) <= _FEW_SEATS and set(figures) != {"-"} else "-"


def _score(seat: Mapping[str, Any]) -> str:
    """Return the main score of a seat's finished episodes or, in parentheses, of unfinished ones."""
    score = seat.get("score")
    if not score and "unfinished" in (left_out := seat.get("left_out") or {}):
        return f"({_main(left_out['unfinished']['score'])})"
    return _main(score)


def _main(score: Any) -> str:
    # Metrics are sorted by name; one named "score" takes precedence. Any: JSON.
    return _figure(score.get("score", next(iter(score.values()), None))) if isinstance(score, dict) else "-"


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else "-"


def _length(row: dict[str, Any]) -> str:
    """Return a run's number of steps, and of ticks in a world that lives."""
    shown = [] if row["steps"] is None or (not row["steps"] and row.get("ticks")) else [str(row["steps"])]
    shown += [f"{row['ticks']}t"] if row.get("ticks") is not None else []
    return "+".join(shown) or "-"


def _taken(row: dict[str, Any]) -> tuple[str, str, str]:
    """Return tokens, cost, and the share of repaired and forced decisions; dashes if no model was called."""
    from wsap_nexus.terminal.spending import count, money, share, spending_of

    taken = spending_of(row)
    if not taken.usage.calls:
        return "-", "-", "-"
    fixed = share(taken.repaired + taken.forced, taken.decisions) if taken.decisions else "-"
    if row["replay"]:  # it used nothing: the figures are those of the original run
        return "-", "-", fixed
    tokens = count(taken.usage.prompt_tokens + taken.usage.completion_tokens)
    return tokens, money(taken.usage.cost).removeprefix("cost "), fixed


def _when(created: str) -> str:
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        return single_line(created)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    colours = {"finished": "green", "running": "cyan", "stopped": "cyan", "interrupted": "yellow", "failed": "red"}
    console = output_console()
    texts = [_cells(row) for row in rows]
    widths = {name: max(len(name), *(len(cells[index]) for cells in texts)) for index, name in enumerate(_COLUMNS)}
    columns = _fitting(widths, console.size.width, without=_MODELS if not any(_asked(row) for row in rows) else ())
    room = console.size.width - sum(widths[name] + 2 for name in columns if name != "AGENT") - 2
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for name in columns:
        right = name in ("SEED", "STEPS", "REWARD", "SCORE", *_MODELS)
        # Only the agents' names are shortened.
        width = max(5, min(widths[name], room)) if name == "AGENT" else widths[name]
        table.add_column(name, justify="right" if right else "left", no_wrap=True, overflow="ellipsis", width=width)
    for row, cells in zip(rows, texts, strict=True):
        shown = {name: Text(cell) for name, cell in zip(_COLUMNS, cells, strict=True)}
        shown["STATUS"].stylize(colours.get(row["status"], ""))
        table.add_row(*(shown[name] for name in columns))
    console.print(table)


def _asked(row: dict[str, Any]) -> bool:
    return bool((row["usage"] or {}).get("calls"))


def _fitting(widths: dict[str, int], width: int, *, without: Sequence[str] = ()) -> list[str]:
    """Return the columns that fit the terminal; those that the run's id contains are dropped first."""
    needed = {**widths, "AGENT": min(widths["AGENT"], _SHORT_AGENT)}
    columns = [name for name in _COLUMNS if name not in without]
    for name in ("WHEN", "GAME", "SEED", "TOKENS", "FIXED", "SCORE", "STEPS", "REWARD", "COST"):
        if name in columns and sum(needed[column] + 2 for column in columns) > width + 2:
            columns.remove(name)
    return columns


_SHORT_AGENT = 18
"""Minimum width of the agents' column before other columns are dropped."""

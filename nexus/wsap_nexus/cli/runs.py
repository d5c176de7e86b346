"""`wsap runs`: the recorded runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.grouped import GroupedCommand, complete_games
from wsap_core.cli.params import STEPS, json_option
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import database_option, output_console, plural

if TYPE_CHECKING:
    from wsap_nexus.store.database import Database
    from wsap_nexus.store.records import RunRecord
    from wsap_nexus.store.repository import Repository

_MODELS = ("TOKENS", "COST", "FIXED")

SHOWN = 30
"""Maximum number of listed runs, unless `--limit` says otherwise."""


@click.command(cls=GroupedCommand, examples=("wsap runs", "wsap runs --game crafter --limit 5", "wsap runs --json"))
@json_option
@click.option("--limit", type=STEPS, default=SHOWN, show_default=True, help="Maximum number of runs.")
@click.option("--game", metavar="GAME", shell_complete=complete_games, help="Only runs of this game.")
@click.option("--agent", metavar="AGENT", help="Only runs of this agent: an installed one, or one of the nexus.")
@click.option("--all", "with_nexus", is_flag=True, help="List the runs of agents in the nexus, too.")
@database_option
def runs(
    *, as_json: bool, limit: int, game: str | None, agent: str | None, with_nexus: bool, database: str | None
) -> None:
    """List the recorded runs, the newest first.

    Runs of agents in a nexus are left out without --all or --agent.

    An interrupted or failed run can be continued: wsap play --resume RUN. FIXED is the share of
    decisions of language models that were repaired or forced. In STEPS, 12t are 12 ticks of a
    world that lives by itself.
    """
    from wsap_nexus.store.repository import NEXUS, Repository

    opened = open_for_reading(database)
    if opened is None:
        click.echo("[]" if as_json else "Nothing is recorded yet; begin with: wsap play crafter")
        return
    with opened:
        repository = Repository(opened)
        hidden = not with_nexus and agent is None and game != NEXUS
        records = repository.list_runs(limit=limit, game=game, agent=agent, without_nexus=hidden)
        rows = [_row_of(repository, record, hidden=hidden) for record in records]
        left_out = repository.count_of_nexus() if hidden and not as_json else 0
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    elif not rows:
        nothing = "Nothing is recorded yet; begin with: wsap play crafter"
        click.echo(nothing if game is None and agent is None else "No such run is recorded; see: wsap runs --all")
    elif sys.stdout.isatty():
        _print_table(rows)
    else:
        for row in rows:
            click.echo("\t".join(_cells(row)))
    if left_out:
        click.echo(f"Left out: {plural(left_out, 'run')} in the nexus; list them with: wsap runs --all", err=True)


def _row_of(repository: Repository, record: RunRecord, *, hidden: bool) -> dict[str, Any]:
    # Any: JSON.
    from wsap_nexus.runs.totals import summary_now

    database = repository.database
    if hidden or not repository.is_of_nexus(record.id):
        return {**_row(record, status_of(database, record), summary_now(repository, record)), "nexus": False}
    row = _row(record, record.status.value, record.summary)
    if row["status"] == "running" and not _is_led(database):
        row["status"] = "interrupted"
    # The nexus goes on with it by itself.
    return {**row, "nexus": True, "resumable": False}


def _is_led(database: Database) -> bool:
    """Return whether a nexus runs on a database."""
    import os

    from wsap_nexus.state import read, state_file

    return read(state_file(database.where, os.environ)) is not None


def open_for_reading(database: str | None) -> Database | None:
    """Return the opened database; None if the default one does not exist yet.

    Raises:
        StorageError: it can't be read, or a named one does not exist.
    """
    import os
    from pathlib import Path

    from wsap_nexus.paths import database_location, is_url
    from wsap_nexus.runs.store import open_database

    named = bool((database or "").strip() or os.environ.get("WSAP_DATABASE", "").strip())
    where = database_location(database, os.environ)
    if not named and not is_url(where) and not Path(where).exists():
        return None
    return open_database(database, read_only=True)


def status_of(database: Database, record: RunRecord) -> str:
    """Return a run's status; a run that is recorded as running but played by no process is interrupted."""
    from wsap_nexus.runs.store import is_played
    from wsap_nexus.store.records import RunStatus

    if record.status is not RunStatus.RUNNING:
        return record.status.value
    return record.status.value if is_played(database, record.id) else RunStatus.INTERRUPTED.value


def _row(record: RunRecord, status: str, found: Mapping[str, Any] | None) -> dict[str, Any]:
    summary = found or {}
    replay = bool(record.config.get("replay"))
    return {
        "run": record.id,
        "game": record.game,
        "agent": record.agent,
        "seed": record.seed,
        "step_limit": record.step_limit,
        "episode_limit": record.config.get("episodes"),
        "steps": summary.get("steps"),
        **({"ticks": (summary.get("world") or {}).get("ticks")} if record.config.get("lives") else {}),
        "episodes": summary.get("episodes"),
        "cut_off": summary.get("cut_off"),
        "reward": summary.get("reward"),
        "achievements": summary.get("achievements"),
        "score": summary.get("score"),
        "decisions": summary.get("decisions"),
        "usage": summary.get("usage"),
        **({"world": summary["world"]} if "world" in summary else {}),
        "status": status,
        "resumable": status in ("interrupted", "failed") and not replay,
        "replay": replay,
        "created": record.created,
        "updated": record.updated,
        "trajectory_hash": summary.get("trajectory_hash"),
    }


_COLUMNS = ("RUN", "GAME", "AGENT", "SEED", "STEPS", "REWARD", "SCORE", "STATUS", "WHEN", "TOKENS", "COST", "FIXED")


def _cells(row: dict[str, Any]) -> list[str]:
    score = row["score"] if isinstance(row["score"], dict) else {}
    # Metrics come sorted by name; one that is called the score is the one to show.
    first = score.get("score", next(iter(score.values()), None))
    return [
        single_line(row["run"]),
        single_line(row["game"]),
        single_line(row["agent"]),
        str(row["seed"]),
        _length(row),
        "-" if not isinstance(row["reward"], int | float) else f"{row['reward']:.4g}",
        "-" if not isinstance(first, int | float) else f"{first:.4g}",
        row["status"],
        _when(row["created"]),
        *_taken(row),
    ]


def _length(row: dict[str, Any]) -> str:
    """Return how many steps a run has, and ticks in a world that lives."""
    shown = [] if row["steps"] is None or (not row["steps"] and row.get("ticks")) else [str(row["steps"])]
    shown += [f"{row['ticks']}t"] if row.get("ticks") is not None else []
    return "+".join(shown) or "-"


def _taken(row: dict[str, Any]) -> tuple[str, str, str]:
    """Return the tokens, the cost, and the share of repaired and forced decisions; dashes where no model was asked."""
    from wsap_nexus.terminal.spending import count, money, share, spending_of

    taken = spending_of(row)
    if not taken.usage.calls:
        return "-", "-", "-"
    fixed = share(taken.repaired + taken.forced, taken.decisions) if taken.decisions else "-"
    if row["replay"]:  # it took nothing: what it says was taken by the run that it plays again
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

    colours = {"finished": "green", "running": "cyan", "interrupted": "yellow", "failed": "red"}
    console = output_console()
    texts = [_cells(row) for row in rows]
    widths = {name: max(len(name), *(len(cells[index]) for cells in texts)) for index, name in enumerate(_COLUMNS)}
    columns = _fitting(widths, console.size.width, without=_MODELS if not any(_asked(row) for row in rows) else ())
    room = console.size.width - sum(widths[name] + 2 for name in columns if name != "AGENT") - 2
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for name in columns:
        right = name in ("SEED", "STEPS", "REWARD", "SCORE", *_MODELS)
        # Only the agents' names are shortened: a column that was kept is shown whole.
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
    """Return the columns that fit the terminal; those that a run's name repeats are dropped first."""
    needed = {**widths, "AGENT": min(widths["AGENT"], _SHORT_AGENT)}
    columns = [name for name in _COLUMNS if name not in without]
    for name in ("WHEN", "GAME", "SEED", "TOKENS", "FIXED", "SCORE", "STEPS", "REWARD", "COST"):
        if name in columns and sum(needed[column] + 2 for column in columns) > width + 2:
            columns.remove(name)
    return columns


_SHORT_AGENT = 18
"""Minimum width of the agents' column before other columns are dropped."""

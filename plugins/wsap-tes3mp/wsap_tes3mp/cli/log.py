"""`wsap tes3mp log`: read, export and prune the log of commands."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from wsap_core.cli.grouped import GroupedCommand, lazy_group
from wsap_core.cli.output import print_json, print_table
from wsap_core.cli.params import STEPS, FiniteRange, WholeNumber, json_option, refuse_given
from wsap_core.errors import UsageError
from wsap_core.untrusted import single_line

if TYPE_CHECKING:
    from wsap_tes3mp.log.log import CommandLog
    from wsap_tes3mp.log.query import Filter

F = TypeVar("F", bound=Callable[..., Any])
_HERE = "wsap_tes3mp.cli.log"
COMMANDS: Mapping[str, tuple[str, str]] = {
    "list": (f"{_HERE}:list_commands", "List commands, the newest first."),
    "show": (f"{_HERE}:show", "Show one command in full."),
    "stats": (f"{_HERE}:stats", "Count commands by agent, kind, outcome and code, with latencies."),
    "journal": (f"{_HERE}:journal", "Show the agents' journal notes."),
    "export": (f"{_HERE}:export", "Export commands as training data."),
    "prune": (f"{_HERE}:prune", "Delete old commands."),
}
"""Name -> import path and summary."""
log = lazy_group(
    "log",
    "The log of a bridge's commands: each with the perception that led to it and its outcome.",
    COMMANDS,
    examples=("wsap tes3mp log list", "wsap tes3mp log stats", "wsap tes3mp log export --out commands.jsonl"),
)
_AGO = re.compile(r"(\d{1,6})([mhd])")
_SECONDS = {"m": 60, "h": 3600, "d": 86400}
STATES = ("rejected", "accepted", "dispatched", "confirmed", "failed", "unknown")
"""The same as `wsap_tes3mp.protocol.commands.CommandState`, without its imports; a test compares them."""


class _Moment(click.ParamType):  # type: ignore[type-arg]  # older versions of click have no types to choose from
    """Seconds since 1970, given as an ISO time in UTC or as an age such as 7d."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the given moment."""
        if isinstance(value, float):
            return value
        if (ago := _AGO.fullmatch(value)) is not None:
            return time.time() - int(ago[1]) * _SECONDS[ago[2]]
        try:
            found = datetime.fromisoformat(value)
            return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            text = f"{single_line(value)[:40]!r} is not a time; expected for example 2026-03-21T14:30 (UTC), or 7d for"
            raise click.BadParameter(f"{text} seven days ago.", ctx, param) from None


def _log_option(command: F) -> F:
    about = "The command log. Default: tes3mp/commands.sqlite in the data folder."
    return click.option("--log", "path", metavar="PATH", type=click.Path(path_type=Path), help=about)(command)


def _choice_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select commands, passed as the filter `chosen`, and the log's `path`."""

    @functools.wraps(command)
    def with_filter(**given: Any) -> None:
        from wsap_tes3mp.log.query import Filter

        chosen = Filter(**{one.name: given.pop(one.name) for one in fields(Filter) if one.name in given})
        command(chosen=chosen, **given)

    for option in reversed((
        click.option("--agent", "agents", multiple=True, metavar="ID", help="Only this agent; may be repeated."),
        click.option("--episode", "episodes", multiple=True, metavar="ID", help="Only this episode; may be repeated."),
        click.option("--since", type=_Moment(), help="Only since then: 2026-03-21T14:30 (UTC), or 7d for 7 days ago."),
        click.option("--until", type=_Moment(), help="Only before then."),
    )):  # fmt: skip
        with_filter = option(with_filter)
    return _log_option(with_filter)


def _opened(path: Path | None, *, beside: bool = False) -> CommandLog:
    from wsap_tes3mp.log.log import CommandLog
    from wsap_tes3mp.paths import log_file

    if path is None and not log_file().is_file():
        raise UsageError("Nothing is logged yet; start with: wsap tes3mp serve")
    path = path or log_file()
    if not path.is_file():
        raise UsageError(f"There is no command log {path}; name another one with --log.")
    return CommandLog(path, read_only=not beside, beside=beside)


def _time(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


@click.command("list", cls=GroupedCommand,
               examples=("wsap tes3mp log list", "wsap tes3mp log list --agent mira --state failed"))  # fmt: skip
@_choice_options
@click.option("--command", "commands", multiple=True, metavar="NAME", help="Only this command; may be repeated.")
@click.option("--state", "states", type=click.Choice(STATES), multiple=True, metavar="STATE",
              help=f"Only {', '.join(STATES[:-1])} or {STATES[-1]}; may be repeated.")  # fmt: skip
@click.option("--limit", type=STEPS, default=30, show_default=True, help="Maximum number of commands.")
@json_option
def list_commands(*, chosen: Filter, limit: int, as_json: bool, path: Path | None) -> None:
    """List commands, the newest first."""
    from wsap_tes3mp.log.query import newest

    with _opened(path) as opened:
        found = newest(opened, chosen, limit)
    if as_json:
        print_json([record.shown() for record in found])
        return
    rows = []
    for one in found:
        told = f"{one.code}: {one.message}" if one.code else one.message
        short = told if len(told) <= 120 else told[:117] + "..."
        rows.append([one.id, _time(one.received), one.agent_id, one.command, one.state, short])
    print_table(["ID", "TIME (UTC)", "AGENT", "COMMAND", "STATE", "MESSAGE"], rows)


@click.command(cls=GroupedCommand, examples=("wsap tes3mp log show cmd_0a1b2c3d4e5f6071",))
@click.argument("command_id")
@_log_option
@json_option
def show(*, command_id: str, as_json: bool, path: Path | None) -> None:
    """Show the command COMMAND_ID in full, with the perception that led to it."""
    with _opened(path) as opened:
        record = opened.record(command_id)
        if record is None:
            raise UsageError(f"The log has no command {single_line(command_id)[:60]!r}; see: wsap tes3mp log list")
        seen = opened.perception(record)
    data = {**record.shown(), "perception": None if seen is None else seen.model_dump(mode="json", exclude_none=True)}
    if as_json:
        print_json(data)
        return
    for name, value in data.items():
        if value not in (None, "", {}):
            shown = _time(value) if isinstance(value, float) else value
            click.echo(f"{name.replace('_', ' ')}: {single_line(shown)}")


@click.command(cls=GroupedCommand, examples=("wsap tes3mp log stats", "wsap tes3mp log stats --since 7d --json"))
@_choice_options
@json_option
def stats(*, chosen: Filter, as_json: bool, path: Path | None) -> None:
    """Count commands by agent, kind, outcome and code, with their latencies."""
    from wsap_tes3mp.log.query import stats as stats_of

    with _opened(path) as opened:
        found = stats_of(opened, chosen)
    if as_json:
        print_json(asdict(found))
        return
    if not found.commands:
        click.echo("There are no such commands.")
        return
    click.echo(f"Commands: {found.commands}, agents: {len(found.agents)}, episodes: {found.episodes}, different "
               f"perceptions: {found.perceptions}; from {_time(found.first)} to {_time(found.last)} (UTC)")  # fmt: skip
    rows = []
    for command, states in found.kinds.items():
        took = found.latencies.get(command)
        times = ["", "", ""] if took is None else [f"{one:.3f}" for one in (took.median, took.p95, took.most)]
        rows.append([command or "(none)", *times, ", ".join(f"{count} {state}" for state, count in states.items())])
    print_table(["COMMAND", "MEDIAN S", "P95 S", "MOST S", "OUTCOMES"], rows)
    for title, counts in (("Agents", found.agents), ("Codes", found.codes)):
        if counts:
            click.echo(f"{title}: " + ", ".join(f"{single_line(name) or '(none)'} {n}" for name, n in counts.items()))


@click.command(cls=GroupedCommand, examples=("wsap tes3mp log journal", "wsap tes3mp log journal --tag quest"))
@_choice_options
@click.option("--tag", "tags", multiple=True, help="Only notes with this tag; may be repeated.")
@click.option("--limit", type=STEPS, default=100, show_default=True, help="Maximum number of notes.")
@json_option
def journal(*, chosen: Filter, tags: tuple[str, ...], limit: int, as_json: bool, path: Path | None) -> None:
    """Show the agents' journal notes, oldest first."""
    from wsap_tes3mp.log.query import notes, tags_of

    with _opened(path) as opened:
        found = notes(opened, chosen, tags, limit)
    if as_json:
        shown = {"agent_id", "episode_id", "received"}
        data = ({"command_id": note.id, **note.model_dump(include=shown), "tags": [], **note.params} for note in found)
        print_json(list(data))
        return
    rows = [[_time(n.received), n.agent_id, ", ".join(tags_of(n)), str(n.params.get("content", ""))] for n in found]
    print_table(["TIME (UTC)", "AGENT", "TAGS", "NOTE"], rows)


@click.command(
    cls=GroupedCommand,
    examples=(
        "wsap tes3mp log export --out turns.jsonl",
        "wsap tes3mp log export --format steps --episode ep_1 --perceptions seen.jsonl --out steps.jsonl",
        "wsap tes3mp log export --redact names --redact text --pattern '[0-9.]{7,15}'",
    ),
)
@_choice_options
@click.option("--format", "form", type=click.Choice(["chat", "steps"]), default="chat", show_default=True,
              help="chat: one conversation per command. steps: state, action and outcome.")  # fmt: skip
@click.option("--state", "states", type=click.Choice(STATES), multiple=True, metavar="STATE",
              help="Only commands with this outcome; default: confirmed with chat, all with steps.")  # fmt: skip
@click.option("--bare", is_flag=True, help="With chat: write only the messages.")
@click.option("--perceptions", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="With steps: write each perception once to this file, and only its id in the rows.")  # fmt: skip
@click.option("--redact", multiple=True, type=click.Choice(["names", "text", "reasoning"]),
              help="Remove names of agents and players, free text, or the reasoning; may be repeated.")  # fmt: skip
@click.option("--pattern", "patterns", multiple=True, metavar="REGEX",
              help="Remove matches of a regular expression; may be repeated.")  # fmt: skip
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="The file to write; default: standard output.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a line and exit.")
def export(
    *, chosen: Filter, form: Any, bare: bool, perceptions: Path | None, redact: tuple[str, ...],
    patterns: tuple[str, ...], out: Path | None, force: bool, schema: bool, path: Path | None,
) -> None:  # fmt: skip
    """Export commands as training data, one JSON object per line, in order of receipt."""
    from wsap_core.protocol.lines import plural
    from wsap_core.textfile import written_to
    from wsap_tes3mp.log.export import Redaction, schema_of, write
    from wsap_tes3mp.log.query import all_agents, all_players, everything
    from wsap_tes3mp.paths import log_file

    if out is None and perceptions is None:
        refuse_given("without --out", "force")
    if form == "chat":
        refuse_given("without --format steps", "perceptions")
    else:
        refuse_given("without --format chat", "bare")
    if schema:
        others = ("agents", "episodes", "since", "until", "path", "states", "bare", "perceptions", "redact", "patterns")
        refuse_given("with --schema", *others, "out", "force")
        print_json(schema_of(form))
        return
    written = [file.resolve() for file in (out, perceptions, path or log_file()) if file is not None]
    if len(set(written)) < len(written):
        raise UsageError("The log, --out and --perceptions are different files; choose another name.")
    for file in (out, perceptions):
        if file is not None and file.exists() and not force:
            raise UsageError(f"{file} already exists; choose another name, or overwrite it with --force.")
    if form == "chat" and not chosen.states:
        chosen = replace(chosen, states=["confirmed"])
    with contextlib.ExitStack() as files:
        opened = files.enter_context(_opened(path))
        named = (all_agents(opened), all_players(opened)) if "names" in redact else ((), ())
        taken = Redaction(**dict.fromkeys(redact, True), patterns=patterns, agents=named[0], players=named[1])
        target: IO[str] = sys.stdout if out is None else files.enter_context(written_to(out))
        seen = None if perceptions is None else files.enter_context(written_to(perceptions))
        lines, left_out = write(everything(opened, chosen), form, target, redaction=taken, perceptions=seen, bare=bare)
    click.echo(f"Wrote {plural(lines, 'line')}{f' to {out}' if out is not None else ''}.", err=True)
    if left_out:
        click.echo(f"Left out: {plural(left_out, 'command')} without a logged perception.", err=True)


@click.command(
    cls=GroupedCommand, examples=("wsap tes3mp log prune --older-than 90", "wsap tes3mp log prune --keep 1000000")
)
@click.option("--older-than", type=FiniteRange(0, 100_000), metavar="DAYS", help="Delete older commands.")
@click.option("--keep", type=WholeNumber(0), metavar="COUNT", help="Delete all but the newest COUNT commands.")
@click.option("--journal", is_flag=True, help="Delete journal notes, too.")
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
@_log_option
@json_option
def prune(
    *, older_than: float | None, keep: int | None, journal: bool, dry_run: bool, as_json: bool, path: Path | None
) -> None:
    """Delete old commands, and perceptions no longer needed; a bridge may be running.

    An episode is deleted as a whole, once its newest command is old enough. Running commands and those of the last
    hour are never deleted.
    """
    from wsap_core.protocol.lines import plural
    from wsap_tes3mp.log.query import prune as pruned

    if older_than is None and keep is None:
        raise UsageError("Give --older-than DAYS, --keep COUNT, or both (then a command must meet both).")
    with _opened(path, beside=True) as opened:
        age = None if older_than is None else older_than * 86400
        found = pruned(opened, time.time(), older_than=age, keep=keep, journal=journal, dry_run=dry_run)
    if as_json:
        print_json({**asdict(found), "dry_run": dry_run})
    else:
        seen = "" if dry_run else f" and {plural(found.perceptions, 'perception')}"
        click.echo(f"{plural(found.commands, 'command')}{seen} {'would be deleted' if dry_run else 'deleted'}.")

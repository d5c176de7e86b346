"""`wsap replay`: look back at a run, at the terminal or as lines."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from wsap_core.cli.params import STEPS, WholeNumber
from wsap_core.untrusted import one_line, printable
from wsap_nexus.cli.common import both_terminals, database_option, is_dumb, json_option, output_console
from wsap_nexus.cli.runs import open_for_reading

if TYPE_CHECKING:
    from wsap_nexus.store.records import RunRecord
    from wsap_nexus.store.repository import Repository
    from wsap_nexus.terminal.recorded import Recording
    from wsap_nexus.terminal.story import Note


@click.command()
@click.argument("run")
@click.option("--from", "first", type=WholeNumber(0), help="The first step to show.")
@click.option("--to", "last", type=STEPS, help="The last step to print.")
@click.option("--every", type=STEPS, default=1, show_default=True, help="Print every so many steps only.")
@click.option("--full", is_flag=True, help="Print what the seat saw after each step, too.")
@click.option("--calls", is_flag=True, help="Print what models were shown and answered; --from and --to count calls.")
@click.option("--verify", is_flag=True, help="Check the recorded steps against the trajectory hash, and show nothing.")
@click.option("--plain", is_flag=True, help="Print lines, also at a terminal.")
@json_option
@database_option
def replay(
    run: str,
    *,
    first: int | None,
    last: int | None,
    every: int,
    full: bool,
    calls: bool,
    verify: bool,
    plain: bool,
    as_json: bool,
    database: str | None,
) -> None:
    """Look back at a RUN: its id, the beginning or end of it, or last.

    At a terminal, step through it with the arrow keys; ? shows all keys. In a pipe, one line is
    printed for each step: number, action, what came of it, reward, achievements.
    """
    from wsap_core.host import PluginHost

    with opened_run(database, run) as (repository, record):
        if verify:
            _verify(repository, record)
            return
        if calls:
            from wsap_nexus.cli.calls import print_calls

            print_calls(repository, record.id, first or 1, last, as_json=as_json)
            return
        from wsap_nexus.terminal.recorded import Recording

        recording = Recording(repository, record, PluginHost.discovered())
        lines = plain or as_json or full or last is not None or every > 1 or not _can_browse()
        if first is not None and first > len(recording):
            from wsap_core.errors import UsageError

            raise UsageError(f"Run {record.id!r} has {len(recording)} steps; --from {first} lies beyond its end.")
        if lines:
            _print_steps(recording, first or 1, last, every, full=full, as_json=as_json)
            if not as_json:
                _print_taken(recording)
        else:
            _browse(recording, first or 0)


@contextlib.contextmanager
def opened_run(database: str | None, name: str) -> Iterator[tuple[Repository, RunRecord]]:
    """Give a recorded run, and where it is, for reading.

    Raises:
        UnknownNameError: there is no such run.
        StorageError: the database can't be read.
    """
    from wsap_core.errors import UnknownNameError
    from wsap_nexus.store.repository import Repository

    opened = open_for_reading(database)
    if opened is None:
        raise UnknownNameError("run", name, (), hint="Nothing is recorded yet; begin with: wsap play crafter")
    with opened:
        repository = Repository(opened)
        yield repository, repository.get_run(name)


def _can_browse() -> bool:
    """Return whether a person can step through it here; where only the size is wrong, say so."""
    from wsap_nexus.terminal.screen import fits, too_small

    if not both_terminals() or is_dumb():
        return False
    size = output_console().size
    if not fits(size.width, size.height):
        click.echo(f"{too_small(size.width, size.height)} Printing lines.", err=True)
        return False
    return True


def _browse(recording: Recording, position: int) -> None:
    import asyncio

    from wsap_nexus.terminal.browser import browse

    if not len(recording):
        click.echo(f"Run {recording.run.id} has no steps yet.")
        return
    left_at = asyncio.run(browse(recording, output_console(), position=position))
    click.echo(f"Left at step {left_at} of {len(recording)}: wsap replay {recording.run.id} --from {left_at}")


def _print_steps(recording: Recording, first: int, last: int | None, every: int, *, full: bool, as_json: bool) -> None:
    """Print the steps numbered from `first` to `last`, as they were recorded."""
    import json

    from wsap_nexus.terminal.plain import note_line

    if recording.remark:
        click.echo(recording.remark, err=True)
    several = len(recording.seats) > 1
    for number, note in enumerate(recording.notes[:last], start=1):
        if number < first or (number - first) % every:
            continue
        if as_json:
            row = {
                "step": note.number, "seat": note.seat, "episode": note.episode, "action": note.action,
                "success": note.success, "message": note.message, "reward": note.reward,
                "achievements": list(note.achievements), "done": note.done, "forced": note.forced,
                "reasoning": note.reasoning or None, **_how(note),
            }  # fmt: skip
            click.echo(json.dumps(row))
            continue
        click.echo(note_line(note, several=several))
        if full:
            text = printable(recording.observation(note).to_text()).strip("\n")
            click.echo("\n".join(f"    {line}" if line else "" for line in text.splitlines()) + "\n")


def _how(note: Note) -> dict[str, object]:
    """Return whether a step's decision was repaired, and what it took of models; None where no model was asked."""
    info = note.info
    if info is None or not info.usage.calls:
        return {"repaired": False, "usage": None}
    return {"repaired": info.repaired, "usage": asdict(info.usage)}


def _print_taken(recording: Recording) -> None:
    """Say, beside the steps, what models took in all of them."""
    from wsap_nexus.terminal.spending import parts

    taken = parts(recording.spending(len(recording)))
    if taken:
        click.echo(f"models: {', '.join(taken)}", err=True)


def _verify(repository: Repository, record: RunRecord) -> None:
    """Compute the trajectory hash from the recorded steps, and compare it with the one in the summary.

    Raises:
        StorageError: they differ: the database was changed or damaged.
        UsageError: the run has no summary to compare with.
    """
    from wsap_core.errors import StorageError, UsageError
    from wsap_core.protocol.wire import dumps

    digests = {str(seat["name"]): hashlib.sha256() for seat in record.config.get("seats", ())}
    count = 0
    for event in repository.read_events(record.id, kinds=("step",)):
        line = event.data["step"]
        digests.setdefault(str(line["seat"]), hashlib.sha256()).update(dumps(line).encode("ascii") + b"\n")
        count += 1
    found = _combined({name: digest.hexdigest() for name, digest in digests.items()})
    expected = (record.summary or {}).get("trajectory_hash")
    if expected is None:
        raise UsageError(
            f"Run {record.id!r} was cut off before its hash was recorded; its {count} steps give {found}. "
            f"Go on with it first: wsap play --resume {record.id}"
        )
    if found != expected:
        raise StorageError(
            f"The {count} recorded steps of run {record.id!r} give the hash {found}, and the run ended with "
            f"{one_line(expected)[:64]}: the database was changed; restore a copy."
        )
    click.echo(f"{record.id}: {count} steps, trajectory hash {found}, as recorded.")


def _combined(digests: dict[str, str]) -> str:
    """Return the run's hash from those of its seats, as `wsap_nexus.runs.tally` defines it."""
    if len(digests) == 1:
        return next(iter(digests.values()))
    return hashlib.sha256("".join(f"{n} {digests[n]}\n" for n in sorted(digests)).encode()).hexdigest()

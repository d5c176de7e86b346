"""`wsap replay`: shows a recorded run, interactively or as lines."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wsap_core.cli.params import STEPS, WholeNumber, pairs, refuse_given
from wsap_core.errors import StorageError, UnknownNameError, UsageError
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line, strip_control
from wsap_nexus.cli.common import both_terminals, command, has_room, is_dumb, open_for_reading, output_console

if TYPE_CHECKING:
    from wsap_core.protocol import View
    from wsap_nexus.store.records import RunRecord
    from wsap_nexus.store.repository import Repository
    from wsap_nexus.terminal.recorded import Recording
    from wsap_nexus.terminal.story import Note


@command(
    "wsap replay last", "wsap replay last --from 100 --to 120 --full", "wsap replay village --select character=Anna"
)
@click.argument("run")
@click.option("--from", "first", type=WholeNumber(0), help="The first step to show.")
@click.option("--to", "last", type=STEPS, help="The last step to print.")
@click.option("--every", type=STEPS, metavar="N", default=1, show_default=True, help="Print only every Nth step.")
@click.option("--full", is_flag=True, help="Print the observation after each step, too.")
@click.option("--calls", is_flag=True, help="Print the model calls: prompts and replies; --from and --to count calls.")
@click.option("--verify", is_flag=True, help="Only check the recorded steps against the trajectory hash.")
@click.option(
    "--select",
    "selected",
    multiple=True,
    metavar="NAME=VALUE",
    help="A selection in the game's view of the run, such as a tick, a character or a place; may be repeated.",
)
@click.option("--steps", is_flag=True, help="Show the steps of the seats, even if the game has a view of its runs.")
@click.option("--plain", is_flag=True, help="Print lines even at a terminal.")
@click.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the replay as one HTML file, to keep or to send; --from and --to limit its steps.",
)
@click.option("--prompts", is_flag=True, help="With --page: prompts and replies, too, which can quote memories.")
def replay(
    run: str,
    *,
    first: int | None,
    last: int | None,
    every: int,
    full: bool,
    calls: bool,
    verify: bool,
    selected: tuple[str, ...],
    steps: bool,
    plain: bool,
    page: Path | None,
    prompts: bool,
    as_json: bool,
    database: str | None,
) -> None:
    """Show a recorded RUN, named by its id, the beginning or end of the id, or last.

    At a terminal, step through it with the arrow keys; ? shows all keys. In a pipe, one line is
    printed for each step: number, action, result, reward, achievements.

    If the game has a view of its runs, such as the story of a world that lives, that is shown instead.
    """
    selection = pairs("--select", selected, example="NAME=VALUE")
    _refuse_together(click.get_current_context().params)
    with opened_run(database, run) as (repository, record):
        if page is not None:
            _save_page(repository, record, page, first or 1, last, prompts=prompts)
            return
        if verify:
            _verify(repository, record, as_json=as_json)
            return
        if calls:
            from wsap_nexus.cli.calls import print_calls

            print_calls(repository, record.id, first or 1, last, as_json=as_json)
            return
        start = {"tick": str(first)} if first else {}
        by_steps = steps or as_json or full or every > 1 or last is not None
        if not by_steps and _show_view(repository, record, start | selection, plain=plain):
            return
        refuse_given("where a run is shown by its steps", "selected")
        if record.config.get("lives") and not record.config.get("seats"):
            refuse_given("in a run without seats", "full")
            _print_ticks(repository, record, first or 1, last, every, as_json=as_json)
            return
        lines = plain or as_json or full or last is not None or every > 1 or not _can_browse()
        recording = _recording(repository, record, first)
        if lines:
            _print_steps(recording, first or 1, last, every, full=full, as_json=as_json)
            if not as_json:
                _print_taken(recording)
        else:
            _browse(recording, first or 0)


def _refuse_together(given: Mapping[str, object]) -> None:
    """Raise UsageError if options were given that exclude each other."""
    first, last = given["first"], given["last"]
    if isinstance(last, int) and (first or 1) > last:  # type: ignore[operator]
        raise UsageError(f"--from {first or 1} is after --to {last}, so there is nothing to show.")
    if given["page"] is not None:
        refuse_given("with --page", "every", "full", "calls", "plain", "selected", "steps", "verify", "as_json")
    elif given["prompts"]:
        raise UsageError("--prompts is for a page: add --page FILE.")
    if given["verify"]:
        refuse_given("with --verify", "first", "last", "every", "full", "calls", "plain", "selected", "steps")
    if given["calls"]:
        refuse_given("with --calls", "every", "full", "plain", "selected", "steps")
    if given["as_json"]:
        refuse_given("with --json", "full", "plain", "selected")


def _recording(repository: Repository, record: RunRecord, first: int | None) -> Recording:
    """Return the steps of a run; UsageError if it has no step of this number."""
    from wsap_core.host import PluginHost
    from wsap_nexus.terminal.recorded import Recording

    recording = Recording(repository, record, PluginHost.discovered(), tell=partial(click.echo, err=True))
    if first is not None and first > len(recording):
        raise UsageError(
            f"Run {record.id!r} has {plural(len(recording), 'step')}, so --from {first} is beyond its end."
        )
    return recording


def _save_page(
    repository: Repository, record: RunRecord, path: Path, first: int, last: int | None, *, prompts: bool
) -> None:
    """Write steps of a run as an HTML file, a whole one or none."""
    from wsap_core.host import PluginHost
    from wsap_core.textfile import written_to
    from wsap_nexus.server.routes.recorded.saved_page import MOST_STEPS, Part, saved_page
    from wsap_nexus.store.nexus_store import NexusStore

    with NexusStore(repository.database).look() as tx:
        names = {agent: name for agent, name, _ in tx.players([record.id]).get(record.id, ())}
    steps = MOST_STEPS if last is None else min(MOST_STEPS, last - first + 1)
    made = saved_page(repository, PluginHost.discovered(), record.id, names, Part(first - 1, steps, prompts))
    with written_to(path) as file:
        file.write(made)
    click.echo(f"Open it in a browser: {path}")


def _show_view(repository: Repository, record: RunRecord, selection: dict[str, str], *, plain: bool) -> bool:
    """Show the game's view of a run; return False if the game has none."""
    import asyncio

    from wsap_core.host import PluginHost
    from wsap_nexus.runs.views.restoring import Runs, spec_with_views, view_of_run
    from wsap_nexus.terminal.look import Viewer, draw_view, look

    host = PluginHost.discovered()
    spec = spec_with_views(record, host)
    if spec is None:
        return False
    view = partial(view_of_run, spec, Runs(host, repository), record.id)
    if selection:
        _refuse_unknown(view(selection), selection)
    if plain or not _can_browse():
        output_console().print(draw_view(view(selection), details=True))
    else:
        asyncio.run(look(Viewer(view, selection), output_console()))
    return True


@contextlib.contextmanager
def opened_run(database: str | None, name: str) -> Iterator[tuple[Repository, RunRecord]]:
    """Yield a recorded run and its repository, for reading.

    Raises:
        UnknownNameError: there is no such run.
        StorageError: the database can't be read.
    """
    from wsap_nexus.store.repository import Repository

    opened = open_for_reading(database)
    if opened is None:
        raise UnknownNameError("run", name, (), hint="Nothing is recorded yet; start with: wsap play crafter")
    with opened:
        repository = Repository(opened)
        yield repository, repository.get_run(name)


def _can_browse() -> bool:
    """Return whether the interactive view can be shown; if only the terminal is too small, print that."""
    return both_terminals() and not is_dumb() and has_room("Printing lines.")


def _browse(recording: Recording, position: int) -> None:
    import asyncio

    from wsap_nexus.terminal.browser import browse

    if not len(recording):
        click.echo(f"Run {recording.run.id} has no steps yet.")
        return
    left_at = asyncio.run(browse(recording, output_console(), position=position))
    click.echo(f"Left at step {left_at} of {len(recording)}: wsap replay {recording.run.id} --from {left_at}")


def _print_steps(recording: Recording, first: int, last: int | None, every: int, *, full: bool, as_json: bool) -> None:
    from wsap_nexus.terminal.plain import note_line

    if recording.remark:
        click.echo(recording.remark, err=True)
    several = len(recording.seats) > 1
    first = max(1, first)
    for note in islice(recording.notes(first, last or len(recording)), 0, None, every):
        if as_json:
            row = {
                "step": note.number, "seat": note.seat, "episode": note.episode, "action": note.action,
                "success": note.success, "message": note.message, "reward": note.reward,
                "achievements": list(note.achievements), "done": note.done, "forced": note.forced,
                "reasoning": note.reasoning or None, **_how(note),
                **({} if note.outcome == "done" else {"outcome": note.outcome}),
                **({"truncated": True} if note.truncated else {}),
            }  # fmt: skip
            click.echo(json.dumps(row))
            continue
        click.echo(note_line(note, several=several))
        if full:
            text = strip_control(recording.observation(note).to_text()).strip("\n")
            click.echo("\n".join(f"    {line}" if line else "" for line in text.splitlines()) + "\n")


def _print_ticks(
    repository: Repository, record: RunRecord, first: int, last: int | None, every: int, *, as_json: bool
) -> None:
    """Print the ticks from `first` to `last` of a world that lives, without rewound ones."""
    from wsap_nexus.store.history import TICK, read_history

    for event in islice(read_history(repository, record, (TICK,), first, last), 0, None, every):
        tick = event.data
        if as_json:
            click.echo(json.dumps({"tick": tick["number"], **{n: tick[n] for n in ("summary", "body", "done")}}))
        else:
            click.echo(f"{tick['number']}\t{single_line(tick['summary'])}" + ("\tdone" if tick["done"] else ""))


def _refuse_unknown(view: View, selection: Mapping[str, str]) -> None:
    """Refuse what can't be selected in a view, which would be shown as if nothing had been selected."""
    known = {one.name: one for one in view.selections}
    for name, value in selection.items():
        if name not in known:
            raise UnknownNameError("selection", name, known, hint=f"There are: {', '.join(known)}.")
        choices, highest = known[name].choices, known[name].highest
        if choices and value and value not in choices:
            raise UnknownNameError(name, value, choices, hint=f"There are: {', '.join(map(single_line, choices))}.")
        if highest and value and not (value.isdecimal() and len(value) < 10 and 1 <= int(value) <= highest):
            raise UsageError(f"The {name} is a number from 1 to {highest}, not {single_line(value)[:40]}.")


def _how(note: Note) -> dict[str, object]:
    """Return whether a decision was repaired, the cause of that or of a fallback, and its model usage."""
    info = note.info
    if info is None or not info.usage.calls:
        return {"repaired": False, "cause": None, "usage": None}
    return {"repaired": info.repaired, "cause": info.cause or None, "usage": asdict(info.usage)}


def _print_taken(recording: Recording) -> None:
    """Print the model usage of all steps to standard error."""
    from wsap_nexus.terminal.spending import parts

    taken = parts(recording.spending())
    if taken:
        click.echo(f"models: {', '.join(taken)}", err=True)


def _verify(repository: Repository, record: RunRecord, *, as_json: bool) -> None:
    """Compare the trajectory hash of the recorded steps with the one in the summary."""
    from wsap_core.protocol.wire import dumps
    from wsap_nexus.runs.plan import is_irreversible
    from wsap_nexus.runs.record.trajectory import WORLD, TrajectoryHash, combined, line_of
    from wsap_nexus.runs.totals import with_progress
    from wsap_nexus.store.history import TICK
    from wsap_nexus.store.records import TOTALS, RunStatus

    new = TrajectoryHash
    names = [str(seat["name"]) for seat in record.config.get("seats", ())]
    hashes = {name: new() for name in (*names, *([WORLD] if record.config.get("lives") else []))}
    count, sound, ticks = 0, 0, 0
    events = repository.read_events(record.id, kinds=("step", TICK, TOTALS))
    for event in with_progress(events, repository, record.id, partial(click.echo, err=True)):
        if event.kind == "step":
            hashes.setdefault(event.seat or "", new()).add(line_of(event.body))
            count += 1
            continue
        if event.kind == TICK:
            hashes[WORLD].add(dumps({key: value for key, value in event.data.items() if key != "after"}).encode())
            ticks += 1
            continue
        for name, state in event.data["seats"].items():
            if hashes.setdefault(name, new()).value != state["hash"]:
                counted = f"Ticks up to {ticks}" if name == WORLD else f"Steps {sound + 1} to {count}"
                raise StorageError(
                    f"{counted} of run {record.id!r} do not give the hash that was recorded after them "
                    f"for seat {name!r}: the database was changed; restore a copy."
                )
        sound = count
    taken = plural(count, "step") if names else plural(ticks, "tick")
    taken += f" and {plural(ticks, 'tick')}" if names and WORLD in hashes else ""
    found = combined({name: trajectory.value for name, trajectory in hashes.items()})
    # While a run is played, or if its process was killed, its summary is that of an earlier stop.
    summary = {} if record.status is RunStatus.RUNNING else record.summary or {}
    expected = summary.get("trajectory_hash")
    if expected is None:
        of_nexus = repository.is_of_nexus(record.id)
        next_step = "There is no hash to compare them with." if of_nexus else (
            f"Continue it first: wsap play --resume {record.id}"
        )  # fmt: skip
        raise UsageError(
            f"Run {record.id!r} was cut off before its hash was recorded; its {taken} give {found}. {next_step}"
        )
    if found != expected:
        raise StorageError(
            f"The recorded {taken} of run {record.id!r} give the hash {found}, and the run ended with "
            f"{single_line(expected)[:64]}: the database was changed; restore a copy."
        )
    irreversible = is_irreversible(record.config)
    again = " The world can't be rewound, so the run can't be played again." if irreversible else ""
    if as_json:
        lived = {"ticks": ticks} if WORLD in hashes else {}
        lived |= {"irreversible": True} if irreversible else {}
        click.echo(json.dumps({"run": record.id, "steps": count, **lived, "trajectory_hash": found}))
    else:
        click.echo(f"{record.id}: {taken}, trajectory hash {found}, as recorded.{again}")

"""`wsap doctor`: checks whether this machine is ready to play."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import FiniteRange, json_option, refuse_given, typed_pairs
from wsap_core.errors import WsapError
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import error_line, single_line
from wsap_nexus.cli.common import database_option, is_dumb, output_console, text_of_size
from wsap_nexus.cli.doctor_model import Finding, examine_model

OLDEST_PYTHON = (3, 11)

LEAST_FREE = 200 * 1024 * 1024
"""Free bytes on disk below which there is a warning: about 200,000 steps of Crafter."""

LARGE = 10 * 1024**3
"""Size of a database in bytes above which there is a warning."""

NARROW = 70
"""Columns below which findings are printed under the name of the check, not beside it."""

SLOW_RESET = 0.5
"""Seconds for a world's second reset above which there is a warning."""


@click.command(
    cls=GroupedCommand, examples=("wsap doctor", "wsap doctor --model ollama/qwen3:8b", "wsap doctor --no-model --json")
)
@json_option
@database_option
@click.option("--model", metavar="ADDRESS", help="The language model to test; default: WSAP_MODEL, else a local one.")
@click.option(
    "--model-option", "model_options", multiple=True, metavar="KEY=VALUE",
    help="An option of the model's backend, such as num_ctx=16384; may be repeated.",
)  # fmt: skip
@click.option(
    "--wait", type=FiniteRange(0.1, 3600), default=120.0, show_default=True,
    help="Seconds to wait for the model's reply.",
)  # fmt: skip
@click.option("--no-model", is_flag=True, help="Don't test a language model.")
def doctor(
    *, as_json: bool, database: str | None, model: str | None, model_options: tuple[str, ...], wait: float,
    no_model: bool,
) -> None:  # fmt: skip
    """Check whether this machine is ready to play and record.

    One real request is sent to a language model: the named one, else the default model (WSAP_MODEL),
    else the first one on this machine. Having no model is not a problem.

    The exit status is 1 if there is a problem, and 0 otherwise, even with warnings. A failing model is
    a problem if it was named, and a warning otherwise.
    """
    if no_model:
        refuse_given("with --no-model", "model", "model_options", "wait")
    from wsap_core.host import PluginHost

    options = typed_pairs("--model-option", model_options)

    def tested() -> Iterator[Finding]:
        return examine_model(model, PluginHost.discovered(), options=options, wait=wait)

    findings = list(examine(database, None if no_model else tested))
    problems = sum(finding.status == "problem" for finding in findings)
    if as_json:
        from wsap_core.cli.output import print_json

        rows = [{"check": f.check, "status": f.status, "detail": f.detail, "hint": f.hint} for f in findings]
        print_json({"ready": not problems, "checks": rows})
    else:
        _print(findings)
    if problems:
        raise click.exceptions.Exit(1)


def examine(database: str | None, model: Callable[[], Iterator[Finding]] | None = None) -> Iterator[Finding]:
    """Yield the findings; an exception in a check becomes a finding. `model` tests a model; None skips that."""
    looks: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("python", _python),
        ("packages", _packages),
        ("plugins", _plugins),
        ("data folder", lambda: _folder(database)),
        ("database", lambda: _database(database)),
        ("terminal", _terminal),
        ("worlds", _worlds),
    ]
    if model is not None:
        looks.append(("model", model))
    for name, look in looks:
        try:
            yield from look()
        except Exception as error:
            yield Finding(name, "problem", error_line(error, kind=True))


def _python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        yield Finding("python", "problem", version, "Install Python 3.11 or newer.")
    else:
        yield Finding("python", "ok", f"{version} on {sys.platform}")


def _packages() -> Iterator[Finding]:
    found = {str(d.metadata["Name"]).lower(): d for d in metadata.distributions()}
    installed = {name: d for name, d in sorted(found.items()) if name.startswith("wsap-")}
    shown = ", ".join(f"{single_line(name)} {single_line(d.version)}" for name, d in installed.items())
    # Others may call theirs wsap-something, too, with versions of their own; what these require is looked at when
    # their plugins are found.
    authors = metadata.metadata("wsap-core").get_all("Author")
    if len({d.version for d in installed.values() if d.metadata.get_all("Author") == authors}) > 1:
        yield Finding("packages", "problem", shown, "Versions of WSAP's own packages differ; install the same of each.")
    else:
        yield Finding("packages", "ok", shown)


def _plugins() -> Iterator[Finding]:
    from wsap_core.host import PluginHost

    for row in PluginHost.discovered().rows:
        name = f"plugin {single_line(row.name)}"
        reason = single_line(" ".join(row.reasons))
        if row.status == "broken":
            yield Finding(name, "problem", reason, "Fix or remove it; everything else works.")
        elif row.status == "warning":
            yield Finding(name, "warning", reason)
        else:
            offers = ", ".join(
                f"{len(names)} {kind[:-1] if len(names) == 1 else kind}" for kind, names in row.provides.items()
            )
            yield Finding(name, "ok", "blocked by name" if row.status == "disabled" else offers or "offers nothing")


def _folder(database: str | None) -> Iterator[Finding]:
    from wsap_nexus.paths import database_location, is_url, prepare_home

    where = database_location(database, os.environ)
    if is_url(where):
        return
    prepare_home(where, os.environ)
    folder = Path(where).parent
    if not folder.is_dir():
        yield Finding("data folder", "problem", f"{folder} does not exist", "Create it, or name another --database.")
        return
    if not os.access(folder, os.W_OK):
        yield Finding("data folder", "problem", f"{folder} is not writable", "Set WSAP_HOME to a writable folder.")
        return
    free = shutil.disk_usage(folder).free
    detail = f"{folder}, {text_of_size(free)} free"
    if free < LEAST_FREE:
        yield Finding("data folder", "warning", detail, "Recording stops when the disk is full; free some space.")
    else:
        yield Finding("data folder", "ok", detail)


def _database(database: str | None) -> Iterator[Finding]:
    from wsap_nexus.paths import database_location, is_url
    from wsap_nexus.store import migrate
    from wsap_nexus.store.connection.files import prepare_file
    from wsap_nexus.store.connection.soundness import problems
    from wsap_nexus.store.database import Database
    from wsap_nexus.store.errors import damaged, said_clearly
    from wsap_nexus.store.repository import Repository
    from wsap_nexus.store.upkeep.prune import size_of

    where = database_location(database, os.environ)
    if "://" not in where and not Path(where).exists():
        yield Finding("database", "ok", "none yet; the first run creates it")
        return
    try:
        if not is_url(where) or where.startswith("sqlite:"):
            path = Path(where.removeprefix("sqlite:///"))
            prepare_file(path, create=False, read_only=True)  # not what is no file: a pipe would be waited for
            with said_clearly(str(path)):
                wrong = problems(path)
            if wrong:
                raise damaged(str(path), wrong[0])
        with Database.open(where, create=False, busy_seconds=1.0) as opened:
            runs = Repository(opened).count_runs()
            large = size_of(opened) or 0
            size = f", {text_of_size(large)}" if opened.is_sqlite else ""
            detail = f"{opened.where}, {plural(runs, 'run')}, layout {migrate.HEAD}{size}"
            if large > LARGE:
                yield Finding("database", "warning", detail, "See what could be deleted: wsap nexus prune --dry-run")
            else:
                yield Finding("database", "ok", detail)
    except WsapError as error:
        yield Finding("database", "problem", single_line(error))


def _terminal() -> Iterator[Finding]:
    from wsap_nexus.terminal.screen import SMALLEST, fits

    if not sys.stdout.isatty():
        yield Finding("terminal", "ok", "standard output is not a terminal: plain lines are printed")
        return
    console = output_console()
    width, height = console.size
    colours = "no colours (NO_COLOR)" if console.no_color else f"{console.color_system or 'no'} colours"
    detail = f"{width}x{height}, {colours}, {console.encoding}"
    if is_dumb():
        yield Finding(
            "terminal", "warning", detail, "There is no live view, because TERM names a terminal without control codes."
        )
    elif not fits(width, height):
        yield Finding("terminal", "warning", detail, f"The live view needs {SMALLEST[0]}x{SMALLEST[1]}.")
    else:
        yield Finding("terminal", "ok", detail)


def _worlds() -> Iterator[Finding]:
    """Create every installed world and reset it twice; the first reset warms up."""
    import asyncio

    from wsap_core.host import PluginHost
    from wsap_core.seams.context import Context
    from wsap_core.worlds import World

    for entry in PluginHost.discovered().games.all():
        name = f"world {single_line(entry.spec.name)}"
        where = next((option.default for option in entry.spec.options if option.names == "address"), "")
        if where:
            yield Finding(name, "ok", f"its worlds are served elsewhere, by default at {single_line(where)}; not tried")
            continue
        try:
            world = World.create(entry.spec, Context.create(0))
            first = _timed(lambda world=world: asyncio.run(world.reset(0)))
            second = _timed(lambda world=world: asyncio.run(world.reset(1)))
        except WsapError as error:
            yield Finding(name, "problem", single_line(error))
            continue
        detail = f"a new episode takes {second * 1000:.0f} ms (the first {first * 1000:.0f} ms)"
        yield Finding(name, "warning" if second > SLOW_RESET else "ok", detail)


def _timed(work: Callable[..., Any]) -> float:
    # Any: the result is ignored.
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _wrapped(text: str, indent: int) -> list[str]:
    if not sys.stdout.isatty():
        return [text] if text else []
    return textwrap.wrap(text, max(16, shutil.get_terminal_size().columns - indent))


def _print(findings: list[Finding]) -> None:
    signs = {"ok": ("ok", "green"), "warning": ("warning", "yellow"), "problem": ("PROBLEM", "red")}
    widest = max(len(f.check) for f in findings)
    narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < NARROW
    styled = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for finding in findings:
        word, colour = signs[finding.status]
        shown = click.style(f"{word:<8}", fg=colour) if styled else f"{word:<8}"
        indent = 8 if narrow else widest + 10
        lines = [line for text in (finding.detail, finding.hint) for line in _wrapped(text, indent)]
        head = f"{shown}{finding.check:<{widest}}  "
        click.echo(head.rstrip() if narrow or not lines else head + lines.pop(0))
        for line in lines:
            click.echo(f"{'':{indent}}{line}")
    problems = sum(f.status == "problem" for f in findings)
    warnings = sum(f.status == "warning" for f in findings)
    if problems:
        click.echo(f"Not ready: {plural(problems, 'problem')} to fix.")
    else:
        click.echo("Ready." + (f" {plural(warnings, 'warning')}." if warnings else ""))

"""`wsap nexus start` and `stop`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.params import SEED, FiniteRange, WholeNumber, refuse_given
from wsap_core.errors import StorageReadOnlyError, UsageError, WsapError
from wsap_core.pipes import output_to_stderr
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import command, said, size_of_text
from wsap_nexus.cli.model_options import limit_option
from wsap_nexus.cli.nexus.connection import running_on
from wsap_nexus.cli.nexus.request import StartRequest, address_of, say_ready

if TYPE_CHECKING:
    from wsap_core.host import PluginHost
    from wsap_nexus.cli.nexus.agent_registry import Decider
    from wsap_nexus.hub.nexus import Nexus
    from wsap_nexus.hub.settings import Settings
    from wsap_nexus.runs.store import Store
    from wsap_nexus.worlds.workers.pool import Machines

EMBEDDED = (("ada", "Ada"), ("bob", "Bob"))
"""The agents of a fresh nexus; they need no model."""

KEEP_DAYS = 90.0
"""Days after which recordings and events are deleted, unless another number is given."""

SLOW = 2.0
"""Seconds after which a message says what takes so long."""


RAY = "ray"
"""The `--workers` of a Ray cluster."""


class Workers(click.ParamType):  # type: ignore[type-arg]  # older versions of click have no types to choose from
    """A number of processes of this machine, or `ray`."""

    name = "integer|ray"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return the number, or `ray`; `BadParameter` says what is valid."""
        try:
            return RAY if value == RAY else WholeNumber(0, 64).convert(value, param, ctx)
        except click.BadParameter as error:
            raise click.BadParameter(f"{error.message.rstrip('.')}, nor is it ray.", ctx, param) from None


_STOPPING = "Stopping: agents finish their decisions. Press Ctrl-C again to stop immediately.\n"
_INSISTED = "Stopped immediately; nothing is lost. Continue with: wsap nexus start\n"
_STUCK = (
    "Stopped immediately, because a game in the nexus' process did not return from a call; nothing recorded is lost. "
    "Continue with: wsap nexus start\n"
)


@command(
    "wsap nexus start",
    "wsap nexus start --model ollama/qwen3:8b --game crafter",
    "wsap nexus start --world village=sandbox:village,language=en",
    sections={
        "Agents": ("model", "agent_options", "backend_options", "limits", "pace", "patience", "seed"),
        "Games": ("games", "worlds", "game_hosts", "workers", "worker_memory", "living_in_workers"),
        "Network": ("host", "port", "expose"),
        "Recording": ("database", "keep_days", "keep_size"),
    },
)
@click.option(
    "--host",
    show_default="127.0.0.1, or with --expose all: 0.0.0.0",
    help="The address to listen on; any but a loopback address needs --expose.",
)
@click.option("--port", type=WholeNumber(0, 65535), default=9998, show_default=True,
              help="The port; 0 for any free one.")  # fmt: skip
@click.option(
    "--expose",
    is_flag=True,
    help="Accept connections from other devices, and print the address for them, at a terminal also as a QR code; "
    "every request then needs the token.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Random seed.")
@click.option("--pace", type=FiniteRange(0, 10_000), default=4.0, show_default=True,
              help="Maximum decisions per second of each agent; 0 for full speed.")  # fmt: skip
@click.option(
    "--patience",
    type=FiniteRange(0.1, 86_400),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a world of several agents, or one that lives, waits for the decision of a client, unless "
    "its game sets a deadline.",
)
@click.option(
    "--game",
    "games",
    multiple=True,
    metavar="NAME",
    help="A game that agents may enter: an installed one, FAMILY:NAME or ./file.py:Name; may be repeated. "
    "All installed games if not given, but no member of a family.",
)
@click.option(
    "--world",
    "worlds",
    multiple=True,
    metavar="NAME=GAME[,OPTION=VALUE...]",
    help="A world that lives, with or without agents in it; its game must support this. May be repeated.",
)
@click.option("--model", metavar="ADDRESS", help="The language model of new agents; none if not given.")
@click.option(
    "--agent-option",
    "agent_options",
    multiple=True,
    metavar="KEY=VALUE",
    help="With --model, how it is asked, such as profile=brief or temperature=0.2; may be repeated.",
)
@click.option(
    "--model-option",
    "backend_options",
    multiple=True,
    metavar="KEY=VALUE",
    help="With --model, an option of its backend, such as num_ctx=16384; may be repeated.",
)
@limit_option(
    "Pause agents before calls, tokens or cost (US dollars) of models exceed N: day.cost=2 per day for all runs of the "
    "database, decision.tokens=9000 per decision. May be repeated."
)
@click.option("--workers", type=Workers(), show_default="one per processor, up to 4",
              help="Number of worker processes for worlds, which isolate games that fail: each game in play has at "
              "least one of its own, and several while there are fewer in all; 0 runs worlds in the process of the "
              "nexus, and ray runs workers on a Ray cluster, that of RAY_ADDRESS or one on this machine, one per "
              "processor (needs wsap-nexus[ray]).")  # fmt: skip
@click.option("--worker-memory", type=WholeNumber(64, 1_048_576), metavar="MIB", show_default="no limit",
              help="Maximum memory of a worker process, with the processes that its game starts; one that exceeds it, "
              "even in the middle of an action, is killed, and its worlds are restored in another.")  # fmt: skip
@click.option(
    "--living-in-workers",
    is_flag=True,
    help="Experimental: run worlds that live in worker processes, too, so that one that loops holds nobody.",
)
@click.option("--game-host", "game_hosts", multiple=True, metavar="HOST",
              help="A host, other than this machine, on which remote games may run; may be repeated.")  # fmt: skip
@click.option("--keep-days", type=FiniteRange(0, 100_000), default=KEEP_DAYS, show_default=True,
              help="Once a day, delete recordings and events older than this; 0 keeps everything.")  # fmt: skip
@click.option("--keep-size", callback=size_of_text, default="0", metavar="SIZE", show_default="no limit",
              help="Maximum size of the database, such as 2GB: above it, finished recordings are deleted, oldest "
              "first, then old events of the nexus.")  # fmt: skip
@click.option("--detach", is_flag=True, help="Run in the background; wsap nexus stop stops it.")
def start(*, detach: bool, **given: object) -> None:
    """Start the nexus and keep it running until Ctrl-C.

    A new nexus has two agents that need no model, and every installed game. However it ends, the next
    start continues where it was. At Ctrl-C or wsap nexus stop, every agent finishes its decision, and
    the exit status is 0; a second Ctrl-C stops it immediately.

    With --json, one line is printed when the nexus is ready: url, pid, database, token_file.
    """
    given["host"] = given["host"] or ("0.0.0.0" if given["expose"] else "127.0.0.1")  # noqa: S104 as requested
    request = StartRequest(**given)  # type: ignore[arg-type]  # click has checked the types
    _check(request)
    if detach:
        from wsap_nexus.cli.nexus.request import start_detached

        start_detached(request)
        return
    _start(request)


def _check(request: StartRequest) -> None:
    """Refuse invalid options before anything is opened."""
    from wsap_nexus.errors import NexusRunningError
    from wsap_nexus.http.listening import refuse_unexposed

    refuse_unexposed(request.host, "nexus", exposed=request.expose)
    _decider(request).read()  # refuses unknown models and options
    settings_of(request)  # refuses malformed limits
    if request.workers == 0:
        refuse_given("with --workers 0", "worker_memory", "living_in_workers")
    nexus = running_on(request.database)
    if nexus is not None:
        running = nexus.running
        raise NexusRunningError(
            f"A nexus is already running on the database {running.database}, at {running.url} (see: wsap nexus "
            "status); stop it with: wsap nexus stop"
        )


def _start(request: StartRequest) -> None:
    # Deferred for weight: `wsap nexus --help` needs no server.
    from wsap_core.host import PluginHost
    from wsap_nexus.http.serving import raise_file_limit
    from wsap_nexus.runs.gc_tuning import tune_gc
    from wsap_nexus.runs.store import open_store
    from wsap_nexus.state import token_file

    with _said_if_slow("Opening the database"):
        raise_file_limit()
        host = PluginHost.discovered()
        _prepare_folder(token_file(os.environ).parent)
        opened = contextlib.ExitStack()
        store = opened.enter_context(open_store(request.database))
    with opened:
        hub = _hub(request, host, store, _machines(request, opened))
        tune_gc()
        asyncio.run(_serve(request, hub))
    if not request.as_json:
        click.echo("The nexus has stopped. Continue with: wsap nexus start")


def _machines(request: StartRequest, opened: contextlib.ExitStack) -> Machines | None:
    """Return what runs the workers, if it is not this machine, until the stack is closed."""
    if request.workers != RAY:
        return None
    from wsap_nexus.worlds.workers.carriers.cluster import ray_cluster

    with _said_if_slow("Connecting to the Ray cluster"):
        return opened.enter_context(ray_cluster())


def _prepare_folder(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        writable = os.access(path, os.W_OK)
        reason = "permission denied"
    except OSError as error:
        writable, reason = False, error.strerror or str(error)
    if not writable:
        raise StorageReadOnlyError(
            f"The folder {path} for WSAP's files is not writable ({reason}); set WSAP_HOME to another folder."
        )


def settings_of(request: StartRequest) -> Settings:
    """Return the settings of the nexus."""
    from wsap_core.paths import home
    from wsap_llm.middleware.budgets import Budgets
    from wsap_nexus.hub.settings import KeptWorld, Settings
    from wsap_nexus.worlds.workers.pool import WorkerTimeouts, sensible_workers

    return Settings(
        seed=request.seed,
        pace=request.pace or None,
        patience=request.patience,
        games=request.games or None,
        worlds=tuple(map(KeptWorld.parse, request.worlds)),
        workers=request.workers if isinstance(request.workers, int) else sensible_workers(),
        living_in_workers=request.living_in_workers,
        timeouts=WorkerTimeouts(memory=None if request.worker_memory is None else request.worker_memory * 2**20),
        logs=home(os.environ) / "logs",
        limits=Budgets.parse(request.limits, scopes=("decision", "day")),
        game_hosts=request.game_hosts,
        keep_bytes=request.keep_size or None,
    )


def _decider(request: StartRequest) -> Decider:
    from wsap_nexus.cli.nexus.agent_registry import Decider

    return Decider(model=request.model, agent_options=request.agent_options, backend_options=request.backend_options)


def _hub(request: StartRequest, host: PluginHost, store: Store, machines: Machines | None) -> Nexus:
    from wsap_core.references import load_adapter_spec
    from wsap_nexus.hub.games.renaming import take_new_names
    from wsap_nexus.hub.nexus import Nexus
    from wsap_nexus.hub.play.kept import must_live, refuse_other

    for name in request.games:
        load_adapter_spec(name, host)  # refuses unknown names before anything is written
    settings = replace(settings_of(request), machines=machines)
    for world in settings.worlds:
        must_live(load_adapter_spec(world.game, host).with_options(world.options))
    twice = [name for name, count in Counter(world.name for world in settings.worlds).items() if count > 1]
    if twice:
        raise UsageError(f"--world gives the name {twice[0]!r} to two worlds; choose another one.")
    hub = Nexus(host, store, settings)
    with hub.nexus_store.change() as tx:
        for told in take_new_names(tx, host):
            click.echo(single_line(told), err=True)
        for world in settings.worlds:
            if tx.has_world(world.name):
                refuse_other(tx.world(world.name), world, load_adapter_spec(world.game, host))
        if not tx.agents(limit=1) and not tx.last_seq():
            policies = _decider(request).read()
            for agent_id, name in EMBEDDED:
                tx.register(agent_id, name=name, policies=policies)
    return hub


async def _serve(request: StartRequest, hub: Nexus) -> None:
    from wsap_nexus import state
    from wsap_nexus.dashboard.key import OneTimeKey
    from wsap_nexus.http.listening import Address
    from wsap_nexus.http.signals import told_to_stop
    from wsap_nexus.runs.gc_tuning import collect_regularly
    from wsap_nexus.server.serve import serve
    from wsap_nexus.tasks import ended

    key = OneTimeKey()
    path = state.state_file(hub.store.database.where, os.environ)
    tokens = state.token_file(os.environ)
    waiting = _said_if_slow(f"Starting the nexus on {hub.store.database.where}")
    afterwards = contextlib.ExitStack()
    housekeeping: list[asyncio.Task[None]] = []
    running: state.Running | None = None

    def ready(url: str) -> None:
        nonlocal running
        waiting.close()
        housekeeping.append(asyncio.create_task(collect_regularly(hub.clock)))
        where = hub.store.database.where
        running = state.Running(
            os.getpid(), state.birth(os.getpid()), url, time.time(), where, request.model, request.keep,
            _decider(request).options(),
        )  # fmt: skip
        state.write(path, running)
        opening = f"{address_of(request, running)}{key.fragment}"
        say_ready(request, running, str(tokens), "Ctrl-C stops it; the next start continues", opening)
        if hub.settings.machines is not None:
            afterwards.enter_context(output_to_stderr())  # Ray tells of lost nodes on standard output
        if request.keep is not None:
            from wsap_nexus.hub.upkeep.retention import Retention

            retention = Retention(hub.nexus_store, hub.live, hub.clock, request.keep)
            housekeeping.append(asyncio.create_task(retention.run()))

    with told_to_stop(lambda: _write(_STOPPING), lambda: _write(_INSISTED), lambda: _write(_STUCK)) as told:
        try:
            await serve(hub, Address(request.host, request.port), tokens, ready=ready, until=told, key=key)
        finally:
            waiting.close()
            afterwards.close()
            await ended(*housekeeping)
            if running is not None:
                state.remove(path, running)


def _write(text: str) -> None:
    # Safe in a signal handler, unlike `print`.
    with contextlib.suppress(OSError):
        os.write(2, text.encode())


def _said_if_slow(what: str) -> contextlib.ExitStack:
    """Print at a terminal what is being waited for, unless the returned stack is closed soon."""
    timer = threading.Timer(SLOW, lambda: click.echo(f"{what} ...", err=True))
    timer.daemon = True
    if sys.stderr.isatty():  # programs expect only errors
        timer.start()
    waiting = contextlib.ExitStack()
    waiting.callback(timer.cancel)
    return waiting


class StillRunningError(WsapError):
    """The nexus was asked to stop, but is still running."""

    code = "STILL_RUNNING"
    retryable = True


@command("wsap nexus stop", "wsap nexus stop --force")
@click.option("--wait", type=FiniteRange(0, 3600), default=60.0, show_default=True,
              help="Seconds to wait for it to stop.")  # fmt: skip
@click.option("--force", is_flag=True, help="Kill it immediately; the next start continues where it was.")
def stop(*, wait: float, force: bool, as_json: bool, database: str | None) -> None:
    """Stop a running nexus: agents finish their decisions, and everything is kept.

    The exit status is 0 if no nexus is running afterwards, even if none was running before.
    """
    from wsap_nexus import state
    from wsap_nexus.paths import database_location

    where = database_location(database, os.environ)
    path = state.state_file(where, os.environ)
    running = state.read(path)
    if running is None:
        said(as_json, f"No nexus is running on {where}.", running=False, stopped=False)
        return
    with _said_if_slow("Waiting for agents to finish their decisions"):
        _signal(running.pid, force=force)
        if not state.wait_for_end(running, wait):
            waited = plural(wait, "second")
            raise StillRunningError(
                f"The nexus (process {running.pid}) has not stopped within {waited}; wait longer with --wait, "
                "or kill it with: wsap nexus stop --force"
            )
    if force:
        state.remove(path, running)
    said(as_json, "The nexus has stopped. Continue with: wsap nexus start", running=False, stopped=True)


def _signal(pid: int, *, force: bool) -> None:
    try:
        os.kill(pid, signal.SIGKILL if force and hasattr(signal, "SIGKILL") else signal.SIGTERM)
    except ProcessLookupError:
        return  # it has just ended
    except PermissionError:
        raise StillRunningError(f"The nexus is another user's process ({pid}); only that user can stop it.") from None

"""`wsap nexus stop`."""

from __future__ import annotations

import os
import signal

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import json_option
from wsap_core.errors import WsapError
from wsap_nexus.cli.common import database_option


class StillRunningError(WsapError):
    """The nexus was told to stop, and is still running."""

    code = "STILL_RUNNING"
    retryable = True


@click.command(cls=GroupedCommand, examples=("wsap nexus stop", "wsap nexus stop --force"))
@click.option("--wait", type=click.FloatRange(0, 3600), default=60.0, show_default=True,
              help="Seconds to wait for it to stop.")  # fmt: skip
@click.option("--force", is_flag=True, help="End it at once; when started again it continues where it was.")
@json_option
@database_option
def stop(*, wait: float, force: bool, as_json: bool, database: str | None) -> None:
    """Stop a running nexus: agents finish their decisions, and everything is kept.

    The exit status is 0 if no nexus is running any more, even if none was running before.
    """
    from wsap_nexus import state
    from wsap_nexus.cli.nexus.start import _said_if_slow
    from wsap_nexus.paths import database_location

    where = database_location(database, os.environ)
    path = state.state_file(where, os.environ)
    running = state.read(path)
    if running is None:
        _say(as_json, stopped=False, text=f"No nexus is running on {where}.")
        return
    with _said_if_slow("Waiting for agents to finish their decisions"):
        _signal(running.pid, force=force)
        if not state.wait_for_end(running, wait):
            raise StillRunningError(
                f"The nexus (process {running.pid}) has not stopped in {wait:g} seconds; wait longer with --wait, "
                "or end it with: wsap nexus stop --force"
            )
    if force:
        state.remove(path)
    _say(as_json, stopped=True, text="The nexus has stopped. Continue with: wsap nexus start")


def _signal(pid: int, *, force: bool) -> None:
    try:
        os.kill(pid, signal.SIGKILL if force and hasattr(signal, "SIGKILL") else signal.SIGTERM)
    except ProcessLookupError:
        return  # it has just ended by itself
    except PermissionError:
        raise StillRunningError(f"The nexus is another user's process ({pid}), and only they can stop it.") from None


def _say(as_json: bool, *, stopped: bool, text: str) -> None:
    import json

    click.echo(json.dumps({"running": False, "stopped": stopped}) if as_json else text)

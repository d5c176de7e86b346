"""`wsap nexus watch`: shows a running nexus live in the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from typing import TYPE_CHECKING

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import refuse_given
from wsap_core.errors import StorageError, WsapError
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import database_option, is_dumb, open_for_reading, output_console

if TYPE_CHECKING:
    from rich.console import RenderableType

    from wsap_core.host import PluginHost
    from wsap_nexus.cli.nexus.report import AgentRow
    from wsap_nexus.cli.nexus.watching.client import Following, Sight, WatchClient

EVERY = 0.25
"""Minimum seconds between updates."""

RECENT = 10
"""Number of past events that are printed first if there is no terminal."""

LONG = 5.0
"""Seconds after which a line tells that a model is waited for, if there is no terminal."""

SMALLEST = (24, 8)
"""Minimum columns and rows of the screen."""


@click.command(cls=GroupedCommand, examples=("wsap nexus watch", "wsap nexus watch ada", "wsap nexus watch --json"))
@click.argument("agent", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print each event as one line of JSON.")
@click.option("--lines", is_flag=True, help="Print lines, even at a terminal.")
@database_option
def watch(*, agent: str | None, as_json: bool, lines: bool, database: str | None) -> None:
    """Show the agents and events of a running nexus, or what AGENT sees and does.

    At a terminal, the bottom line names the keys; elsewhere a line is printed for each event, until the
    nexus stops. Leaving does not stop the nexus.
    """
    from wsap_core.host import PluginHost
    from wsap_nexus.cli.nexus.watching.client import WatchClient
    from wsap_nexus.paths import database_location
    from wsap_nexus.state import state_file
    from wsap_nexus.store.nexus_store import NexusStore

    if as_json:
        refuse_given("with --json", "lines")
    opened = open_for_reading(database)
    if opened is None:
        raise StorageError("There is no nexus yet; start one with: wsap nexus start")
    with opened:
        if agent is not None:
            with NexusStore(opened).look() as tx:
                tx.agent(agent)  # refuses unknown agents
        client = WatchClient(opened, state_file(database_location(database, os.environ), os.environ))
        host = PluginHost.discovered()
        with contextlib.suppress(KeyboardInterrupt):
            if as_json or lines or not _has_screen():
                _print_lines(client, host, agent, as_json=as_json)
            else:
                asyncio.run(_Live(client, host, agent).show())


def _has_screen() -> bool:
    if not sys.stdout.isatty() or is_dumb():
        return False
    size = output_console().size
    return size.width >= SMALLEST[0] and size.height >= SMALLEST[1]


# --- lines ------------------------------------------------------------------------------------


def _print_lines(client: WatchClient, host: PluginHost, agent: str | None, *, as_json: bool) -> None:
    from wsap_core.protocol.wire import dumps
    from wsap_nexus.cli.nexus.status import agent_lines
    from wsap_nexus.cli.nexus.watching.client import following
    from wsap_nexus.cli.nexus.watching.screen import clock
    from wsap_nexus.store.events import sentences
    from wsap_nexus.terminal.plain import note_line

    sight, events = client.look(recent=RECENT)
    if not as_json:
        for line in agent_lines(sight.agents):
            click.echo(line)
    follow: Following | None = None
    held = ""
    waited: dict[int, str] = {}
    while True:
        if sight.held != held:
            held = sight.held
            said = held or "Agents continue."
            click.echo(dumps({"held": held or None}) if as_json else f"{clock(time.time())} {said}")
        wanted = [event for event in events if agent in (None, event.agent_id)]
        if as_json:
            for event in wanted:
                click.echo(dumps(event.to_json()))
        else:
            told = [(event.time, sentence) for event, sentence in sentences(wanted, sight.names)]
            for moment, line in told + [(time.time(), line) for line in _waits(sight, agent, waited)]:
                click.echo(f"{clock(moment)} {line}")
        if agent is not None:
            before, follow = follow, following(client, agent, host, follow)
            notes = follow.refresh() if follow is not None else []
            # Of the earlier actions, only the last few.
            for note in notes if follow is before else notes[-RECENT:]:
                step = {"step": note.number, "action": note.action, "success": note.success, "message": note.message,
                        "reward": note.reward, "agent": agent,
                        **({} if note.outcome == "done" else {"outcome": note.outcome})}  # fmt: skip
                click.echo(json.dumps(step) if as_json else note_line(note, several=False))
        sys.stdout.flush()
        if sight.running is None:
            if not as_json:
                click.echo("No nexus is running; start it with: wsap nexus start")
            return
        time.sleep(EVERY)
        sight, events = client.look()


def _waits(sight: Sight, agent: str | None, waited: dict[int, str]) -> list[str]:
    """Return lines on models that are waited for: once for `LONG` seconds, and for each queue or other attempt.

    `waited` has what was told before, by request.
    """
    found, now, before = [], time.monotonic(), waited.copy()
    waited.clear()
    for name, heard in sight.thoughts.items():
        event = heard.event
        if agent not in (None, name):
            continue
        long = not event.text and event.seconds + now - heard.at >= LONG
        state = event.waiting or ("reading" if long else before.get(event.request, ""))
        if state and state != before.get(event.request):
            found.append(single_line(f"{sight.names.who(name)}: {event.model}: {heard.line(now)}"))
        waited[event.request] = state
    return found


# --- the screen -------------------------------------------------------------------------------


class _Live:
    """The live screen: the selected agent, and the effect of each key."""

    def __init__(self, client: WatchClient, host: PluginHost, agent: str | None) -> None:
        self._client = client
        self._host = host
        self._sight, _ = client.look()
        self._chosen = agent
        self._close = agent is not None
        self._follow: Following | None = None
        self._help = False
        self._note = ""
        self._left = False
        self._dirty = asyncio.Event()
        self._asked: set[asyncio.Task[None]] = set()

    async def show(self) -> None:
        """Show the screen until the user leaves."""
        from wsap_nexus.terminal.keyboard import keys

        console = output_console()
        loop = asyncio.get_running_loop()
        with keys.whole_screen(console, self.press) as live:
            looked = 0.0
            while not self._left:
                began = loop.time()
                if began - looked >= EVERY:
                    looked = began
                    self._look()
                self._dirty.clear()
                size = console.size
                live.update(self._screen(size.width, size.height, plain=console.no_color), refresh=True)
                spent = loop.time() - began
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(EVERY - spent, 3 * spent, 0.02)):
                        await self._dirty.wait()

    def press(self, key: str) -> None:
        """Handle a key."""
        self._dirty.set()
        self._note = ""
        if self._help:
            self._help = False
        elif key == "q" or (key == "esc" and not self._close):
            self._left = True
        elif key == "?":
            self._help = True
        elif key in ("up", "down", "tab", "backtab"):
            self._move(1 if key in ("down", "tab") else -1)
        elif key in ("enter", "right"):
            self._close = self._agent() is not None
        elif key in ("esc", "left", "backspace"):
            self._close = False
        elif key == "space":
            row = self._agent()
            if row is not None:
                self._ask("resume" if row.state == "paused" else "pause")
        elif key == "s":
            self._ask("step")

    def _agent(self) -> AgentRow | None:
        rows = self._sight.agents
        return next((row for row in rows if row.id == self._chosen), rows[0] if rows else None)

    def _move(self, by: int) -> None:
        rows = self._sight.agents
        row = self._agent()
        if row is not None:
            self._chosen = rows[(rows.index(row) + by) % len(rows)].id

    def _ask(self, what: str) -> None:
        from wsap_nexus.cli.nexus.connection import NexusHttp

        running, row = self._sight.running, self._agent()
        if running is None or row is None:
            self._note = "No nexus is running; start it with: wsap nexus start"
            return

        async def ask() -> None:
            try:
                await asyncio.to_thread(NexusHttp(running).post, "nexus", "agents", row.id, what)
            except WsapError as error:
                self._note = str(error)
            self._dirty.set()

        task = asyncio.create_task(ask())
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)

    def _look(self) -> None:
        from wsap_nexus.cli.nexus.watching.client import following

        self._sight, _ = self._client.look()
        row = self._agent()
        if self._close and row is not None:
            self._follow = following(self._client, row.id, self._host, self._follow)
            if self._follow is not None:
                self._follow.refresh()

    def _screen(self, width: int, height: int, *, plain: bool) -> RenderableType:
        from rich.text import Text

        from wsap_nexus.cli.nexus.watching.screen import agent_screen, overview

        row, note = self._agent(), self._note or self._sight.held
        if width < SMALLEST[0] or height < SMALLEST[1]:
            return Text(f"{width}x{height} is too small; press q to leave.")
        if self._close and row is not None:
            heard = self._sight.thoughts.get(row.id)
            writing = None if heard is None else heard.writing(time.monotonic())
            return agent_screen(
                self._follow, row, width, height, plain=plain, note=note, helping=self._help, writing=writing
            )
        chosen = self._sight.agents.index(row) if row is not None else 0
        return overview(self._sight, chosen, width, height, now=time.time(), note=note, helping=self._help)

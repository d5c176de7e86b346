"""`wsap nexus status`: shows the state of the nexus and its agents."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from wsap_core.errors import StorageError
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import command, open_for_reading, print_lines, text_of_size
from wsap_nexus.cli.nexus.connection import running_on

if TYPE_CHECKING:
    from wsap_nexus.cli.nexus.report import AgentRow, Status

SHOWN = 50
"""Maximum number of agents in the list."""


@command("wsap nexus status", "wsap nexus status --json")
def status(*, as_json: bool, database: str | None) -> None:
    """Show whether the nexus is running, its address, its agents, and the size of its database.

    If it is not running, its last state is shown. The exit status is 0 either way.
    """
    from wsap_nexus.cli.nexus.report import status_of
    from wsap_nexus.paths import database_location

    nexus = running_on(database)
    running, health = (None, None) if nexus is None else (nexus.running, nexus.health())
    where = database_location(database, os.environ)
    try:
        with open_for_reading(database) or contextlib.nullcontext() as opened:
            found = status_of(opened, running, where, health=health)
    except StorageError:
        if health is None or not health.get("reason"):
            raise
        found = status_of(None, running, where, health=health)  # the nexus says why it can't be read
    print_lines(as_json, asdict(found), status_lines(found))


def status_lines(found: Status) -> list[str]:
    """Return the status as lines."""

    if found.running:
        since = f"for {duration(found.uptime or 0)}, process {found.pid}"
        lines = [f"The nexus is up at {found.url} ({since})" + ("." if found.answers else ", but does not respond.")]
    elif found.bytes is None and not found.agents:
        return ["There is no nexus yet; start one with: wsap nexus start"]
    else:
        lines = ["No nexus is running; this is its last state. Continue with: wsap nexus start"]
    if found.running and found.reason and found.bytes is None:
        return [*lines, f"Agents are held: {single_line(found.reason)}"]
    size = f", {text_of_size(found.bytes)}" if found.bytes is not None else ""
    lines.append(f"{found.database}{size}: {plural(found.events, 'event')}, {plural(found.sessions, 'session')}")
    if found.reason:
        lines.append(f"Agents are held: {single_line(found.reason)}")
    if found.storage is not None:
        lines += growth_lines(found.storage)
    if found.running:
        if found.undeleted:
            lines.append(single_line(found.undeleted))
        elif found.keep_days:
            lines.append(f"Recordings and events older than {plural(found.keep_days, 'day')} are deleted once a day.")
        elif found.storage is None or found.storage["limit"] is None:
            lines.append("Nothing is deleted automatically; see wsap nexus prune.")
    lines.append("")
    lines += agent_lines(found.agents)
    if found.worlds:
        lines += [
            "",
            *(f"{single_line(w.game)}: {plural(w.worlds, 'world')}, {plural(w.agents, 'agent')}" for w in found.worlds),
        ]
    lines += waiting_lines(found)
    if found.kept:
        lines += ["", "Worlds that live:", *(f"  {line.text()}" for line in found.kept)]
    return lines + trouble_lines(found)


def trouble_lines(found: Status) -> list[str]:
    """Return the games that can't be entered and the unresolved transfers as lines."""
    lines: list[str] = []
    if found.closed:
        lines += ["", "Games that can't be entered (open one with: wsap nexus games online GAME):"]
        lines += [f"  {line.text()}" for line in found.closed]
    if found.in_doubt:
        lines += [
            "",
            "Unresolved transfers; the nexus asks their games again. If a game will not come back, settle them",
        ]
        lines += ["with: wsap nexus agents settle NAME --as arrived|returned"]
        lines += [f"  {line.text()}" for line in found.in_doubt[:SHOWN]]
        lines += [f"  ... and {len(found.in_doubt) - SHOWN} more: --json"] if len(found.in_doubt) > SHOWN else []
    return lines


def waiting_lines(found: Status) -> list[str]:
    """Return who waits for whom."""
    lines = [f"  {single_line(str(wait['text']))}" for wait in found.waits[:SHOWN]]
    return ["", "Waiting:", *lines] if lines else []


def growth_lines(storage: Mapping[str, Any]) -> list[str]:
    """Return the growth of a database and when it reaches its limit. Any: the shape is the API's."""
    lines = _growth_lines(storage)
    if storage.get("held_up"):
        lines.append(
            f"Its write-ahead log has grown to {text_of_size(storage['log'])}, because a program has been reading the "
            "database for very long; it shrinks once that program ends."
        )
    return lines


def _growth_lines(storage: Mapping[str, Any]) -> list[str]:
    growth, limit, left = storage["growth"], storage["limit"], storage["left"]
    if growth is None:
        return ["Its growth is not known yet; it is measured for the first minutes."]
    grows = f"It grows by {text_of_size(round(growth))} a day"
    if limit is not None and storage["bytes"] >= 0.95 * limit:
        full = "" if storage["bytes"] <= limit else ", which it exceeds, as the remaining data is still needed"
        return [f"{grows}; it is at its limit of {text_of_size(limit)}{full}."]
    if not growth or left is None:
        return [f"{grows}."]
    lasting = duration(left * 86400)
    if limit is not None and limit - storage["bytes"] <= (storage["free"] or limit):
        return [f"{grows} and reaches its limit of {text_of_size(limit)} in {lasting}; then old data is deleted."]
    return [f"{grows}; its disk will be full in {lasting}."]


def agent_lines(agents: Sequence[AgentRow], *, limit: int | None = SHOWN) -> list[str]:
    """Return agents as lines of a table, at most `limit` of them."""
    from wsap_nexus.agents.chronicle import failure_line

    if not agents:
        return ["There are no agents; add one with: wsap nexus agents add NAME"]
    rows = [
        (single_line(a.id), "" if a.state == "active" else a.state, f"in {single_line(a.place)}",
         f"{plural(a.steps, 'decision')} there" if a.session else "", f"{a.lifetime_steps + a.steps} in all",
         single_line(failure_line(a.paused_because)) if a.paused_because else "")
        for a in agents[:limit]
    ]  # fmt: skip
    used = [i for i in range(len(rows[0])) if any(row[i] for row in rows)]
    widths = {i: max(len(row[i]) for row in rows) for i in used}
    lines = ["  ".join(f"{row[i]:<{widths[i]}}" for i in used).rstrip() for row in rows]
    if limit is not None and len(agents) > limit:
        lines.append(f"... and {len(agents) - limit} more: wsap nexus agents list --json")
    return lines


def duration(seconds: float) -> str:
    """Return a duration in its largest whole unit: "3 hours"."""
    whole = int(seconds)
    for size, name in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if whole >= size:
            return plural(whole // size, name)
    return plural(whole, "second")

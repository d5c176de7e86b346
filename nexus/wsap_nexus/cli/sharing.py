"""`wsap nexus share` and `wsap nexus key`."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

import click

from wsap_core.cli.params import FiniteRange, refuse_given
from wsap_core.errors import UsageError
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import command, print_lines
from wsap_nexus.cli.nexus.connection import NexusHttp, require_nexus
from wsap_nexus.cli.nexus.request import show_code


@command(
    "wsap nexus share ada --talk",
    "wsap nexus share zoe --play",
    "wsap nexus share --world world-00000001 --hours 2",
)
@click.argument("agent", required=False)
@click.option("--world", metavar="ID", help="Show this world instead of an agent.")
@click.option("--hours", type=FiniteRange(0.01, 2160), default=24.0, show_default=True,
              help="How long the pass is valid.")  # fmt: skip
@click.option("--talk", is_flag=True, help="Let others talk to the agent, too; that may cost calls of its model.")
@click.option("--play", is_flag=True, help="Let others play as the agent, whose policy has to be external.")
@click.option("--list", "listed", is_flag=True, help="List the passes that are valid.")
@click.option("--revoke", metavar="PASS", help="Take a pass back.")
def share(
    *, agent: str | None, world: str | None, hours: float, talk: bool, play: bool, listed: bool, revoke: str | None,
    as_json: bool, database: str | None,
) -> None:  # fmt: skip
    """Print an address, at a terminal also as a QR code, with which others watch AGENT, wherever it is.

    The address contains a pass. It shows the picture of that world and who is in it, and nothing else: no
    thoughts, no memories, no other worlds. With --play, whoever opens it plays as AGENT, and sees what its seat
    sees. Other devices need a nexus that was started with --expose.
    """
    if listed or revoke:
        refuse_given("with --list or --revoke", "world", "hours", "talk", "play")
        if agent is not None or (listed and revoke):
            raise UsageError("Give only one of AGENT, --list and --revoke.")
        nexus = require_nexus(database, "share")
        found = nexus.delete("nexus", "passes", revoke) if revoke else nexus.get("nexus", "passes")
        rows = [_row(one) for one in found["passes"]]
        print_lines(as_json, found, rows or ["No pass is valid."])
        return
    if (agent is None) == (world is None):
        raise UsageError("Name an agent, or a world with --world: wsap nexus share ada")
    if play and (talk or world is not None):
        raise UsageError("--play is for an agent, and not with --talk: wsap nexus share zoe --play")
    nexus = require_nexus(database, "share")
    scope = {"scope": "seat" if play else "agent" if world is None else "world", "target": agent or world}
    told = nexus.post("nexus", "passes", body={**scope, "hours": hours, "talks": talk})
    address = f"{_page(nexus, told['host'])}#pass={told['token']}"
    made = told["made"]
    does = "play as" if play else "watch"
    lines = [
        f"Open this to {does} {single_line(made['target'])}, for {_left(made['expires'])}: {address}",
        f"Take it back with: wsap nexus share --revoke {made['id']}",
    ]
    if _only_here(told["host"]):
        lines.append("It opens on this machine only; for other devices, start with: wsap nexus start --expose")
    print_lines(as_json, {"pass": made, "address": address}, lines)
    if not as_json:
        show_code(address)


@command("wsap nexus key")
def key(*, as_json: bool, database: str | None) -> None:
    """Print an address that unlocks the page once, in place of any printed before.

    Whoever opens it sees everything and controls the agents. To show somebody one world or agent, use
    wsap nexus share.
    """
    nexus = require_nexus(database, "unlock its page")
    told = nexus.post("nexus", "key")
    address = _page(nexus, told["host"]) + told["fragment"]
    print_lines(as_json, {"address": address}, [f"Open this once to see everything and control the agents: {address}"])


def _page(nexus: NexusHttp, host: str) -> str:
    """Return the address of the page; if the nexus listens on all interfaces, the one for other devices."""
    from wsap_nexus.http.listening import ALL, url_for_others

    port = urlsplit(nexus.running.url).port
    return url_for_others(host, port) if host in ALL and port else nexus.running.url


def _only_here(host: str) -> bool:
    from wsap_nexus.http.listening import is_loopback

    return is_loopback(host)


def _left(expires: float) -> str:
    minutes = max(1, round((expires - time.time()) / 60))
    return plural(minutes, "minute") if minutes < 120 else plural(round(minutes / 60), "hour")


def _row(one: dict[str, object]) -> str:
    talks = ", may talk" if one["talks"] else ""
    return f"{one['id']}  {one['scope']} {single_line(one['target'])}{talks}, for {_left(float(str(one['expires'])))}"

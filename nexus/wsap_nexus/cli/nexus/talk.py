"""`wsap nexus agents talk` and `diary`: conversations with agents, and their diaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from wsap_core.cli.grouped import GroupedCommand, refuse_given
from wsap_core.cli.params import json_option
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import database_option
from wsap_nexus.cli.nexus.connection import reading, require_nexus

_LIMIT = click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Maximum number of entries."
)


@click.command(
    cls=GroupedCommand,
    examples=("wsap nexus agents talk ada 'How was Crafter?'", "wsap nexus agents talk ada --limit 5"),
)
@click.argument("name")
@click.argument("text", required=False)
@_LIMIT
@json_option
@database_option
def talk(*, name: str, text: str | None, limit: int, as_json: bool, database: str | None) -> None:
    """Say TEXT to the agent NAME and print its answer; without TEXT, show the conversation so far.

    An agent in the nexus answers at once; one with a language model answers in its own words. An agent in
    a world receives TEXT as a whisper, with its next decision.
    """
    if text is None:
        _show_talk(name, limit, as_json, database)
        return
    from wsap_core.cli.output import print_json
    from wsap_nexus.cli.nexus.nexus_http import NoAnswerError

    refuse_given("with a TEXT", "limit")

    told = require_nexus(database, "talk with an agent").post("nexus", "agents", name, "talk", body={"text": text})
    if told.get("pending"):
        raise NoAnswerError(f"{name!r} has not answered yet; check with: wsap nexus agents talk {name}")
    if as_json:
        print_json({"agent": name, "text": told["text"], "how": told["how"]})
        return
    click.echo(single_line(told["text"]))


def _show_talk(name: str, limit: int, as_json: bool, database: str | None) -> None:
    from wsap_nexus.agents.talk import exchanges

    found: list[Any] = _read(name, database, lambda tx: exchanges(tx, name, limit=limit))
    if as_json:
        _as_json(name, "exchanges", found)
        return
    none = f"There is no conversation with {name} yet; begin with: wsap nexus agents talk {name} TEXT"
    _tell([(each.time, f"you: {each.said}", each.reply) for each in found], none)


@click.command(cls=GroupedCommand, examples=("wsap nexus agents diary ada", "wsap nexus agents diary ada --json"))
@click.argument("name")
@_LIMIT
@json_option
@database_option
def diary(*, name: str, limit: int, as_json: bool, database: str | None) -> None:
    """Show what the agent NAME wrote about its sessions in worlds, the newest last.

    For an agent without a language model, the entries are composed from the log.
    """
    from wsap_nexus.agents.diary import entries

    found: list[Any] = _read(name, database, lambda tx: entries(tx, name, limit=limit))
    if as_json:
        _as_json(name, "entries", found)
        return
    none = f"{name} has written nothing yet; it writes after each session in a world."
    _tell([(each.time, each.game, each.text) for each in found], none)


def _read(name: str, database: str | None, read: Any) -> list[Any]:
    """Return what `read` gives for an agent. Any: a function of a `Transaction`, whose class is heavy to import."""
    from wsap_core.errors import UnknownNameError

    with reading(database) as nexus_store:
        if nexus_store is None:
            raise UnknownNameError("agent", name, ())
        with nexus_store.look() as tx:
            tx.agent(name)
            return list(read(tx))


def _as_json(name: str, what: str, found: Sequence[Any]) -> None:
    # Any: of one of several kinds of records.
    from wsap_core.cli.output import print_json
    from wsap_core.protocol.wire import encode

    print_json({"agent": name, what: [encode(each) for each in found]})


def _tell(found: Sequence[tuple[str, str, str]], none: str) -> None:
    """Print time, heading and text of each, the newest last; or `none` if there are none."""
    for time, heading, text in reversed(found):
        when = time[:16].replace("T", " ")
        click.echo(f"{when}  {single_line(heading)}")
        click.echo(f"  {single_line(text)}")
    if not found:
        click.echo(none)

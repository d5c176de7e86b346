"""`wsap nexus agents talk` and `diary`: what agents say to people, and what they write for themselves."""

from __future__ import annotations

from typing import Any

import click

from wsap_core.untrusted import one_line
from wsap_nexus.cli.common import database_option, json_option
from wsap_nexus.cli.nexus.reach import looking, needed

_LIMIT = click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many at most.")
_HOW = {
    "facts": "(It has no words of its own just now; this is what the nexus knows.)",
    "words": "",
    "whisper": "",
    "letter": "",
}


@click.command()
@click.argument("name")
@click.argument("text", required=False)
@_LIMIT
@json_option
@database_option
def talk(*, name: str, text: str | None, limit: int, as_json: bool, database: str | None) -> None:
    """Say TEXT to the agent NAME and hear its answer; without TEXT, show what was said so far.

    In the nexus it answers, in its own words where a language model decides for it. In a world it hears
    a whisper, at its next decision.
    """
    if text is None:
        _show_talk(name, limit, as_json, database)
        return
    from wsap_core.cli.output import print_json
    from wsap_nexus.cli.nexus.wire import NoAnswerError

    told = needed(database, "talk with an agent").post("nexus", "agents", name, "talk", body={"text": text})
    if told.get("pending"):
        raise NoAnswerError(f"{name!r} has not answered yet; see what it says with: wsap nexus agents talk {name}")
    if as_json:
        print_json({"agent": name, "text": told["text"], "how": told["how"]})
        return
    click.echo(one_line(told["text"]))
    if _HOW.get(told["how"]):
        click.echo(_HOW[told["how"]])


def _show_talk(name: str, limit: int, as_json: bool, database: str | None) -> None:
    from wsap_core.cli.output import print_json
    from wsap_nexus.hub.talk import exchanges

    found: list[Any] = _read(name, database, lambda book: exchanges(book, name, limit=limit))
    if as_json:
        from wsap_core.wire import encode

        print_json({"agent": name, "exchanges": [encode(each) for each in found]})
        return
    for each in reversed(found):
        click.echo(f"{_when(each.time)}  you: {one_line(each.said)}")
        click.echo(f"  {one_line(each.reply)}")
    if not found:
        click.echo(f"Nothing was said to {name} yet; say something with: wsap nexus agents talk {name} TEXT")


@click.command()
@click.argument("name")
@_LIMIT
@json_option
@database_option
def diary(*, name: str, limit: int, as_json: bool, database: str | None) -> None:
    """Show what the agent NAME wrote about its stays in worlds, the newest last.

    An agent without words of its own has entries that are put together from the log.
    """
    from wsap_core.cli.output import print_json
    from wsap_nexus.hub.diary import entries

    found: list[Any] = _read(name, database, lambda book: entries(book, name, limit=limit))
    if as_json:
        from wsap_core.wire import encode

        print_json({"agent": name, "entries": [encode(each) for each in found]})
        return
    for each in reversed(found):
        click.echo(f"{_when(each.time)}  {one_line(each.game)}")
        click.echo(f"  {one_line(each.text)}")
    if not found:
        click.echo(f"{name} has written nothing yet; it does after each stay in a world.")


def _read(name: str, database: str | None, read: Any) -> list[Any]:
    """Return what is read of an agent in the nexus' records. Any: a function of a book, whose class is heavy to import.

    Raises:
        UnknownNameError: there is no such agent.
    """
    from wsap_core.errors import UnknownNameError

    with looking(database) as ledger:
        if ledger is None:
            raise UnknownNameError("agent", name, ())
        with ledger.look() as book:
            book.agent(name)
            return list(read(book))


def _when(time: str) -> str:
    return time[:16].replace("T", " ")

"""`wsap nexus agents talk`, `diary`, `memory` and `forget`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from wsap_core.cli.params import STEPS, WholeNumber, refuse_given
from wsap_core.protocol.lines import plural
from wsap_core.protocol.wire import encode
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import command, print_lines, said
from wsap_nexus.cli.nexus.connection import NoAnswerError, looking, require_nexus, running_on, writing

_LIMIT = click.option(
    "--limit", type=WholeNumber(1, 1000), default=20, show_default=True, help="Maximum number of entries."
)


@command("wsap nexus agents talk ada 'How was Crafter?'", "wsap nexus agents talk ada --limit 5")
@click.argument("name")
@click.argument("text", required=False)
@_LIMIT
def talk(*, name: str, text: str | None, limit: int, as_json: bool, database: str | None) -> None:
    """Say TEXT to the agent NAME and print its answer; without TEXT, show the conversation so far.

    An agent in the nexus answers immediately, in its own words if it has a language model. An agent in a
    world receives TEXT as a whisper, at its next decision.
    """
    if text is None:
        _show_talk(name, limit, as_json, database)
        return
    refuse_given("with a TEXT", "limit")

    told = require_nexus(database, "talk with an agent").post("nexus", "agents", name, "talk", body={"text": text})
    if told.get("pending"):
        raise NoAnswerError(f"{name!r} is still thinking; see its answer later with: wsap nexus agents talk {name}")
    print_lines(as_json, {"agent": name, "text": told["text"], "how": told["how"]}, [single_line(told["text"])])


def _show_talk(name: str, limit: int, as_json: bool, database: str | None) -> None:
    from wsap_nexus.agents.talk import exchanges

    found: list[Any] = _read(name, database, lambda tx: exchanges(tx, name, limit=limit))
    none = f"{name} has answered nothing yet; say something with: wsap nexus agents talk {name} TEXT"
    facts = {"agent": name, "exchanges": [encode(each) for each in found]}
    print_lines(as_json, facts, _lines([(each.time, f"you: {each.said}", each.reply) for each in found], none))


@command("wsap nexus agents diary ada", "wsap nexus agents diary ada --json")
@click.argument("name")
@_LIMIT
def diary(*, name: str, limit: int, as_json: bool, database: str | None) -> None:
    """Show the diary of the agent NAME about its sessions in worlds, newest last.

    For an agent without a language model, the entries are composed from the log.
    """
    from wsap_nexus.agents.chronicle import entries

    found: list[Any] = _read(name, database, lambda tx: entries(tx, name, limit=limit))
    none = f"{name} has written nothing yet; it writes after each session in a world."
    facts = {"agent": name, "entries": [encode(each) for each in found]}
    print_lines(as_json, facts, _lines([(each.time, each.game, each.text) for each in found], none))


def _read(name: str, database: str | None, read: Any) -> list[Any]:
    """Return the result of `read` for an agent. Any: a function of a `Transaction`, whose class is heavy to import."""
    with looking(database, name) as tx:
        tx.agent(name)
        return list(read(tx))


def _lines(found: Sequence[tuple[str, str, str]], none: str) -> Iterator[str]:
    """Yield time, heading and text of each entry, newest last; or `none` if there are no entries."""
    for time, heading, text in reversed(found):
        yield f"{time[:16].replace('T', ' ')}  {single_line(heading)}"
        yield f"  {single_line(text)}"
    if not found:
        yield none


@command("wsap nexus agents memory ada", "wsap nexus agents memory ada --search 'iron pickaxe'")
@click.argument("name")
@click.option("--search", metavar="WORDS", default="", help="Show the best matches for these words first.")
@click.option("--limit", type=STEPS, default=30, show_default=True, help="Maximum number of memories to show.")
def memory(*, name: str, search: str, limit: int, as_json: bool, database: str | None) -> None:
    """Show what the agent NAME remembers: its lessons, then the newest memories; with --json, their runs, too.

    The memories of a session are added when the session ends.
    """
    from wsap_core.host import PluginHost
    from wsap_nexus.agents.memory import SavedMemories, recollections

    with looking(database, name) as tx:
        agent = tx.agent(name)
        saved = SavedMemories.from_bytes(tx.memories(agent.id))
    found, missing = recollections(saved, PluginHost.discovered(), search=search, limit=limit)
    memories = [{"kind": m.kind, "text": m.text, "world": m.world, "run": m.run, "step": m.step} for m in found]
    facts = {"agent": name, "runs": saved.lives, "kinds": list(saved.memories), "memories": memories}
    kinds = " and ".join(map(single_line, saved.memories)) or "none yet"
    lines = [f"{agent.name}: memory {kinds}, {plural(saved.lives, 'run')}"]
    lines += [f"  can't be shown: {single_line(why)}" for why in missing]
    lines += [f"  {single_line(item.kind)}: {single_line(item.text)}" for item in found]
    print_lines(as_json, {**facts, "unreadable": missing}, lines)


@command("wsap nexus agents forget ada")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
def forget(*, name: str, yes: bool, as_json: bool, database: str | None) -> None:
    """Delete what the agent NAME remembers. Its skills, achievements, items and runs are kept.

    An agent in a world of a running nexus is brought back first.
    """
    from wsap_nexus.agents import portable
    from wsap_nexus.errors import AlreadyInWorldError

    if not yes and not as_json:
        click.confirm(f"Delete what {single_line(name)[:80]!r} remembers?", abort=True)
    nexus = running_on(database)
    if nexus is not None:
        with looking(database, name) as tx:
            active = tx.agent(name).state == "active"
        nexus.post("nexus", "agents", name, "halt")
    with writing(database, lock=nexus is None) as nexus_store, nexus_store.change() as tx:
        portable.check_not_removed(tx, name)
        if tx.agent(name).session_id is not None:
            raise AlreadyInWorldError(f"{name!r} is in a world; bring it back first.")
        tx.update_agent(name, mind=None)
    if nexus is not None and active:
        nexus.post("nexus", "agents", name, "resume")
    said(as_json, f"{name} remembers nothing now.", agent=name, forgotten=True)

"""`wsap nexus agents memory` and `forget`: an agent's memory."""

from __future__ import annotations

import json

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import STEPS, json_option
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import database_option, plural
from wsap_nexus.cli.nexus.connection import http_to, reading, writing


@click.command(
    cls=GroupedCommand,
    examples=("wsap nexus agents memory ada", "wsap nexus agents memory ada --search 'iron pickaxe'"),
)
@click.argument("name")
@click.option("--search", metavar="WORDS", default="", help="Show the best matches for these words first.")
@click.option("--limit", type=STEPS, default=30, show_default=True, help="Maximum number of memories to show.")
@json_option
@database_option
def memory(*, name: str, search: str, limit: int, as_json: bool, database: str | None) -> None:
    """Show what the agent NAME remembers: its lessons, then the newest memories; with --json, the run of each.

    The memories of a session are added when the session ends.
    """
    from wsap_core.errors import UnknownNameError
    from wsap_core.host import PluginHost
    from wsap_nexus.agents.memory import SavedMemories, recollections

    with reading(database) as nexus_store:
        if nexus_store is None:
            raise UnknownNameError("agent", name, ())
        with nexus_store.look() as tx:
            agent = tx.agent(name)
            saved = SavedMemories.from_bytes(tx.memories(agent.id))
    found, missing = recollections(saved, PluginHost.discovered(), search=search, limit=limit)
    if as_json:
        memories = [{"kind": m.kind, "text": m.text, "world": m.world, "run": m.run, "step": m.step} for m in found]
        facts = {"agent": name, "runs": saved.lives, "kinds": list(saved.memories), "memories": memories}
        click.echo(json.dumps({**facts, "unreadable": missing}, indent=2))
        return
    kinds = " and ".join(map(single_line, saved.memories)) or "none yet"
    click.echo(f"{agent.name}: memory {kinds}, {plural(saved.lives, 'run')}")
    for why in missing:
        click.echo(f"  can't be shown: {single_line(why)}")
    for item in found:
        click.echo(f"  {single_line(item.kind)}: {single_line(item.text)}")


@click.command(cls=GroupedCommand, examples=("wsap nexus agents forget ada",))
@click.argument("name")
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@json_option
@database_option
def forget(*, name: str, yes: bool, as_json: bool, database: str | None) -> None:
    """Delete what the agent NAME remembers. Its skills, achievements, items and runs are kept.

    An agent in a world of a running nexus is brought back first.
    """
    from wsap_nexus.agents import portable
    from wsap_nexus.cli.nexus.report import running_on
    from wsap_nexus.errors import AlreadyInWorldError

    if not yes and not as_json:
        click.confirm(f"Delete what {single_line(name)[:80]!r} remembers?", abort=True)
    running = running_on(database)
    if running is not None:
        with reading(database) as nexus_store:
            assert nexus_store is not None, "a nexus runs on it"
            with nexus_store.look() as tx:
                active = tx.agent(name).state == "active"
        http_to(running).post("nexus", "agents", name, "halt")
    with writing(database, lock=running is None) as nexus_store, nexus_store.change() as tx:
        portable.check_not_removed(tx, name)
        if tx.agent(name).session_id is not None:
            raise AlreadyInWorldError(f"{name!r} is in a world; bring it back first.")
        tx.update_agent(name, mind=None)
    if running is not None and active:
        http_to(running).post("nexus", "agents", name, "resume")
    click.echo(json.dumps({"agent": name, "forgotten": True}) if as_json else f"{name} remembers nothing now.")

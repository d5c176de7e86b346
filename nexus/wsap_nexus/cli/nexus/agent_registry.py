"""`wsap nexus agents list`, `show`, `add`, `remove`, `pause` and `resume`."""

from __future__ import annotations

import json

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import json_option
from wsap_core.errors import UsageError
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import database_option
from wsap_nexus.cli.nexus.connection import http_to, locked, reading
from wsap_nexus.cli.nexus.policies import check_id, is_external, issue_token, policies_of, said, text_of
from wsap_nexus.store.events import AgentPaused, AgentResumed


@click.command("list", cls=GroupedCommand, examples=("wsap nexus agents list", "wsap nexus agents list --json"))
@json_option
@database_option
def list_agents(*, as_json: bool, database: str | None) -> None:
    """List the agents: where each is, and how much it has played."""
    from dataclasses import asdict

    from wsap_nexus.cli.nexus.report import agent_rows
    from wsap_nexus.cli.nexus.status import agent_lines

    with reading(database) as nexus_store:
        rows = []
        if nexus_store is not None:
            with nexus_store.look() as tx:
                rows = agent_rows(tx)
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    for line in agent_lines(rows, limit=None):
        click.echo(line)


@click.command(cls=GroupedCommand, examples=("wsap nexus agents show ada", "wsap nexus agents show ada --json"))
@click.argument("name")
@json_option
@database_option
def show(*, name: str, as_json: bool, database: str | None) -> None:
    """Show the agent NAME: persona, skills, items, avatars, achievements and last sessions."""
    from wsap_core.cli.output import print_json
    from wsap_core.errors import UnknownNameError
    from wsap_nexus.cli.nexus.agent_report import agent_report, report_lines

    with reading(database) as nexus_store:
        if nexus_store is None:
            raise UnknownNameError("agent", name, ())
        with nexus_store.look() as tx:
            found = agent_report(tx, name)
    if as_json:
        print_json(found)
        return
    for line in report_lines(found):
        click.echo(line)


@click.command(
    cls=GroupedCommand,
    examples=(
        "wsap nexus agents add cleo --model ollama/qwen3:8b --persona @cleo.txt",
        "wsap nexus agents add bot --policy '*=external'",
    ),
)
@click.argument("name")
@click.option("--title", metavar="TEXT", default="", help="Its display name, if not NAME.")
@click.option("--model", metavar="ADDRESS", help="The language model that decides for it, such as ollama/qwen3:8b.")
@click.option("--memory", metavar="KIND", help="The kind of memory, such as fulltext.")
@click.option("--persona", metavar="TEXT", default="", help="Its character; @FILE reads it from a file.")
@click.option("--policy", "policies", multiple=True, metavar="GAME=AGENT",
              help="The agent that decides in a game, in the nexus, or elsewhere (*); may be repeated.")  # fmt: skip
@json_option
@database_option
def add(
    *, name: str, title: str, model: str | None, memory: str | None, persona: str, policies: tuple[str, ...],
    as_json: bool, database: str | None,
) -> None:  # fmt: skip
    """Add the agent NAME: an id of a-z, 0-9, dot, dash and underscore.

    Without --model and --policy it needs no model: in each game the game's default agent decides. With
    --policy '*=external' a client decides over HTTP, with the token that is printed.
    """
    import asyncio

    from wsap_core.host import PluginHost
    from wsap_nexus.agents.identity import check_models
    from wsap_nexus.cli.nexus.report import running_on

    check_id(name)
    running = running_on(database)
    if running is not None and model is None and not policies:
        model = running.model
    given = policies_of(model, memory, policies)
    text = text_of(persona)
    if running is not None:
        body = {"id": name, "name": title, "persona": text,
                "policies": {g: {"agent": p.agent, "options": dict(p.options)} for g, p in given.items()}}  # fmt: skip
        answer = http_to(running).post("nexus", "agents", body=body)
        fresh, token = "token" in answer, answer.get("token")
    else:
        asyncio.run(check_models(given.values(), PluginHost.discovered()))
        with locked(database) as nexus_store:
            with nexus_store.change() as tx:
                _, fresh = tx.register(name, name=title, persona=text, policies=given)
            token = issue_token(nexus_store, name) if fresh and is_external(given) else None
    if not fresh:
        raise UsageError(f"There is already an agent {name!r}; nothing was changed.")
    if as_json:
        click.echo(json.dumps({"agent": name, "token": token if is_external(given) else None}))
        return
    click.echo(f"{name} lives in the nexus now." + ("" if running else " Start the nexus with: wsap nexus start"))
    if is_external(given):
        click.echo(f"Its token (shown only once): {token}")


@click.command(cls=GroupedCommand, examples=("wsap nexus agents remove ada", "wsap nexus agents remove ada --yes"))
@click.argument("name")
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@json_option
@database_option
def remove(*, name: str, yes: bool, as_json: bool, database: str | None) -> None:
    """Remove the agent NAME for good. Its history is kept, and its id is not given to another agent."""
    from wsap_nexus.agents import portable
    from wsap_nexus.cli.nexus.report import running_on

    if not yes and not as_json:
        click.confirm(
            f"Remove {single_line(name)[:80]!r} for good? (wsap nexus agents export makes a copy)", abort=True
        )
    running = running_on(database)
    if running is not None:
        http_to(running).delete("nexus", "agents", name)
    else:
        with locked(database) as nexus_store, nexus_store.change() as tx:
            portable.remove(tx, name)
    said(as_json, f"{name} is removed.", agent=name, state="removed")


@click.command(cls=GroupedCommand, examples=("wsap nexus agents pause ada",))
@click.argument("name")
@json_option
@database_option
def pause(*, name: str, as_json: bool, database: str | None) -> None:
    """Pause the agent NAME where it is: it makes no further decisions."""
    _hold(name, "paused", database)
    said(as_json, f"{name} is paused. Continue with: wsap nexus agents resume {name}", agent=name, state="paused")


@click.command(cls=GroupedCommand, examples=("wsap nexus agents resume ada",))
@click.argument("name")
@json_option
@database_option
def resume(*, name: str, as_json: bool, database: str | None) -> None:
    """Let the paused agent NAME continue."""
    _hold(name, "active", database)
    said(as_json, f"{name} continues.", agent=name, state="active")


def _hold(name: str, state: str, database: str | None) -> None:
    from wsap_nexus.agents import portable
    from wsap_nexus.cli.nexus.report import running_on

    running = running_on(database)
    if running is not None:
        http_to(running).post("nexus", "agents", name, "pause" if state == "paused" else "resume")
        return
    with locked(database) as nexus_store, nexus_store.change() as tx:
        portable.check_not_removed(tx, name)
        tx.update_agent(name, state=state)
        tx.note(AgentPaused(agent_id=name) if state == "paused" else AgentResumed(agent_id=name))

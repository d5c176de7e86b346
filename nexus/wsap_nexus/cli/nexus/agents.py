"""`wsap nexus agents`: add, list, show, pause, send, settle, remove, export, import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.params import STEPS
from wsap_core.untrusted import one_line
from wsap_nexus.cli.common import database_option, json_option, pairs
from wsap_nexus.cli.nexus.memory import forget, memory
from wsap_nexus.cli.nexus.reach import leading, looking, needed, wire_to, writing
from wsap_nexus.cli.nexus.words import diary, talk
from wsap_nexus.store.events import AgentPaused, AgentResumed

if TYPE_CHECKING:
    from wsap_nexus.cli.nexus.wire import Wire
    from wsap_nexus.store.entities import Policy
    from wsap_nexus.store.nexus_store import NexusStore


@click.group()
def agents() -> None:
    """The agents of a nexus, whether it runs or not."""


agents.add_command(talk)
agents.add_command(diary)
agents.add_command(memory)
agents.add_command(forget)


# --- looking ----------------------------------------------------------------------------------


@agents.command(name="list")
@json_option
@database_option
def list_agents(*, as_json: bool, database: str | None) -> None:
    """List the agents: where each is, and how much it has lived."""
    from dataclasses import asdict

    from wsap_nexus.cli.nexus.report import agent_rows
    from wsap_nexus.cli.nexus.status import agent_lines

    with looking(database) as ledger:
        rows = []
        if ledger is not None:
            with ledger.look() as book:
                rows = agent_rows(book)
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    for line in agent_lines(rows, limit=None):
        click.echo(line)


@agents.command()
@click.argument("name")
@json_option
@database_option
def show(*, name: str, as_json: bool, database: str | None) -> None:
    """Show the agent NAME: who it is, its skills, items, bodies, achievements and last stays."""
    from wsap_core.cli.output import print_json
    from wsap_core.errors import UnknownNameError
    from wsap_nexus.cli.nexus.portrait import portrait, portrait_lines

    with looking(database) as ledger:
        if ledger is None:
            raise UnknownNameError("agent", name, ())
        with ledger.look() as book:
            found = portrait(book, name)
    if as_json:
        print_json(found)
        return
    for line in portrait_lines(found):
        click.echo(line)


# --- changing ---------------------------------------------------------------------------------


@agents.command()
@click.argument("name")
@click.option("--title", metavar="TEXT", default="", help="What it is called, if not NAME.")
@click.option("--model", metavar="ADDRESS", help="A language model decides for it, such as ollama/qwen3:8b.")
@click.option("--memory", metavar="KIND", help="What the model remembers with.")
@click.option("--persona", metavar="TEXT", default="", help="Who it is; @FILE reads it from a file.")
@click.option("--policy", "policies", multiple=True, metavar="GAME=AGENT",
              help="Who decides for it in a game, in the nexus, or everywhere else (*); may be repeated.")  # fmt: skip
@json_option
@database_option
def add(
    *, name: str, title: str, model: str | None, memory: str | None, persona: str, policies: tuple[str, ...],
    as_json: bool, database: str | None,
) -> None:  # fmt: skip
    """Add the agent NAME: an id of a-z, 0-9, dot, dash and underscore.

    Without --model and --policy it needs no model: each game's own agent decides for it there. With
    --policy '*=external' somebody outside decides, over the wire, with the token that is printed.
    """
    from wsap_core.errors import UsageError
    from wsap_nexus.cli.nexus.report import running_on

    _check_id(name)
    running = running_on(database)
    if running is not None and model is None and not policies:
        model = running.model
    given = _policies(model, memory, policies)
    text = _text(persona)
    if running is not None:
        body = {"id": name, "name": title, "persona": text,
                "policies": {g: {"agent": p.agent, "options": dict(p.options)} for g, p in given.items()}}  # fmt: skip
        answer = wire_to(running).post("nexus", "agents", body=body)
        fresh, token = "token" in answer, answer.get("token")
    else:
        with leading(database) as ledger:
            with ledger.change() as book:
                _, fresh = book.register(name, name=title, persona=text, policies=given)
            token = _token(ledger, name) if fresh and _external(given) else None
    if not fresh:
        raise UsageError(f"There is an agent {name!r} already; nothing was changed.")
    if as_json:
        click.echo(json.dumps({"agent": name, "token": token if _external(given) else None}))
        return
    click.echo(f"{name} lives in the nexus now." + ("" if running else " Let it live with: wsap nexus start"))
    if _external(given):
        click.echo(f"Its token, which is shown once: {token}")


@agents.command()
@click.argument("name")
@json_option
@database_option
def pause(*, name: str, as_json: bool, database: str | None) -> None:
    """Let NAME begin no further decision, where it is."""
    _hold(name, "paused", database)
    _said(as_json, f"{name} is paused. Let it go on with: wsap nexus agents resume {name}", agent=name, state="paused")


@agents.command()
@click.argument("name")
@json_option
@database_option
def resume(*, name: str, as_json: bool, database: str | None) -> None:
    """Let NAME go on."""
    _hold(name, "active", database)
    _said(as_json, f"{name} goes on.", agent=name, state="active")


@agents.command()
@click.argument("name")
@click.argument("game")
@click.option("--goal", "goals", multiple=True, metavar="TEXT", help="What it is to do there; may be repeated.")
@click.option("--exit-when", default="", metavar="CONDITION", help="When it comes back, such as 'health < 10%'.")
@click.option("--steps", type=STEPS, help="Most decisions there.")
@click.option("--spawn", type=click.Choice(["safe", "challenging", "random"]), default="safe", show_default=True)
@click.option("--difficulty", type=click.Choice(["easy", "normal", "hard", "adaptive"]), default="normal",
              show_default=True)  # fmt: skip
@click.option("--avatar", metavar="ID", help="Which of its bodies; new for another one.")
@json_option
@database_option
def send(*, name: str, game: str, as_json: bool, database: str | None, goals: tuple[str, ...], **terms: Any) -> None:
    """Send NAME into GAME; from the world that it is in, if it is in one."""
    wire = needed(database, "send an agent somewhere")
    body = {"agent_id": name, "game": game, "goals": list(goals), **{k: v for k, v in terms.items() if v is not None}}
    session = _send(wire, name, body)
    _said(as_json, f"{name} is in {game} now ({session['id']}).", agent=name, game=game, session=session["id"])


@agents.command()
@click.argument("name")
@json_option
@database_option
def recall(*, name: str, as_json: bool, database: str | None) -> None:
    """Bring NAME back into the nexus, safe or not; its body sleeps where it is."""
    wire = needed(database, "bring an agent back")
    session = _session_in(wire.post("nexus", "transit", "exit", body={"agent_id": name, "force": True}), name)
    text = f"{name} is back in the nexus after {session['steps']} decisions in {one_line(session['game'])}."
    _said(as_json, text, agent=name, session=session["id"], steps=session["steps"])


@agents.command()
@click.argument("name")
@click.option("--as", "outcome", type=click.Choice(["arrived", "returned"]), required=True,
              help="What became of the move: what NAME carried is in the world there, or with NAME again.")  # fmt: skip
@click.option("--transfer", metavar="ID", help="One move alone; all that are in doubt when left out.")
@json_option
@database_option
def settle(*, name: str, outcome: str, transfer: str | None, as_json: bool, database: str | None) -> None:
    """Decide about a move of NAME that is in doubt, because the game it led to can't be asked any more.

    Only do so when the game is gone for good: as long as it may come back, it is asked by itself. Where
    nothing is left of the world that it led to, what has arrived there is lost.
    """
    from wsap_nexus.cli.nexus.report import running_on

    running = running_on(database)
    if running is not None:
        body = {"outcome": outcome, **({"transfer": transfer} if transfer is not None else {})}
        settled = wire_to(running).post("nexus", "agents", name, "settle", body=body)["settled"]
    else:
        from dataclasses import asdict

        from wsap_nexus.hub import reconciliation

        with leading(database) as ledger, ledger.change() as book:
            settled = [asdict(move) for move in reconciliation.settle(book, name, outcome, transfer)]
    text = "\n".join(one_line(_decided(name, move)) for move in settled)
    _said(as_json, text, agent=name, settled=settled)


def _decided(name: str, move: dict[str, Any]) -> str:
    where = {"escrow": f"with {name} again", "world": "in the world there", "lost": "lost, as that world is no more"}
    things = {0: "Nothing belonged to it", 1: "One item is"}.get(len(move["items"]), f"{len(move['items'])} items are")
    what = f"{things} {where[move['place']]}." if move["items"] else f"{things}."
    return f"{move['transfer']} to {move['game']} is settled. {what}"


@agents.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Ask no question.")
@json_option
@database_option
def remove(*, name: str, yes: bool, as_json: bool, database: str | None) -> None:
    """Take NAME out of the nexus for good. Its past stays, and its id is given to nobody else."""
    from wsap_nexus.agents import portable
    from wsap_nexus.cli.nexus.report import running_on

    if not yes and not as_json:
        click.confirm(f"Remove {one_line(name)[:80]!r} for good? (wsap nexus agents export keeps a copy)", abort=True)
    running = running_on(database)
    if running is not None:
        wire_to(running).delete("nexus", "agents", name)
    else:
        with leading(database) as ledger, ledger.change() as book:
            portable.remove(book, name)
    _said(as_json, f"{name} is removed.", agent=name, state="removed")


# --- files ------------------------------------------------------------------------------------


@agents.command()
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@json_option
@database_option
def export(*, name: str, file: Path, force: bool, as_json: bool, database: str | None) -> None:
    """Write NAME into FILE: who it is, skills with their evidence, achievements, goals and memory.

    Items, worlds, and the bodies that sleep in them stay here.
    """
    from wsap_core.errors import UnknownNameError, UsageError
    from wsap_nexus.agents import portable
    from wsap_nexus.agents.agent_file import write_package

    if file.exists() and not force:
        raise UsageError(f"The file {file} is there already; choose another, or write over it with --force.")
    with looking(database) as ledger:
        if ledger is None:
            raise UnknownNameError("agent", name, ())
        with ledger.look() as book:
            portable.check_not_removed(book, name)
            package = portable.pack(book, name)
    write_package(file, package)
    left = package.left
    what = f"{name} is copied to {file}."
    if left.bodies or left.items:
        what += f" These stay here: sleeping bodies: {left.bodies}, items: {left.items}."
    _said(as_json, what, agent=name, file=str(file), left_behind=left.model_dump())


@agents.command(name="import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--as", "name", metavar="NAME", help="Another id for it.")
@click.option("--model", metavar="ADDRESS", help="A language model decides for it from now on.")
@click.option("--memory", metavar="KIND", help="What the model remembers with.")
@click.option("--policy", "policies", multiple=True, metavar="GAME=AGENT", help="Who decides for it; may be repeated.")
@click.option("--trust", is_flag=True, help="Take over who decided for it; that can name programs and addresses.")
@json_option
@database_option
def import_agent(
    *, file: Path, name: str | None, model: str | None, memory: str | None, policies: tuple[str, ...], trust: bool,
    as_json: bool, database: str | None,
) -> None:  # fmt: skip
    """Add the agent in FILE, as wsap nexus agents export wrote it.

    Who decided for it where it comes from is not taken over unless you say --trust: only do so with
    files of your own. Nothing else in a file is executed.
    """
    from wsap_core.host import PluginHost
    from wsap_nexus.agents import portable
    from wsap_nexus.agents.agent_file import read_package
    from wsap_nexus.cli.nexus.report import running_on

    package = read_package(file)
    given = _policies(model, memory, policies) if model or policies or memory else {}
    running = running_on(database)
    with writing(database, lead=running is None) as ledger, ledger.change() as book:
        imported = portable.import_agent(
            book,
            package,
            agent_id=name,
            policies=given,
            known=PluginHost.discovered().agents.names(),
            trust=trust,
            paused=running is not None,
        )
    if running is not None:
        wire_to(running).post("nexus", "agents", imported.agent_id, "resume")
    text = f"{imported.agent_id} lives here now."
    if imported.policies_left_out:
        shown = ", ".join(one_line(p)[:60] for p in imported.policies_left_out[:5])
        text += f" Not taken over is who decided for it ({shown}); say who with --model or --policy, or --trust."
    _said(as_json, text, agent=imported.agent_id, policies_left_out=list(imported.policies_left_out))


# --- parts ------------------------------------------------------------------------------------


def _hold(name: str, state: str, database: str | None) -> None:
    from wsap_nexus.agents import portable
    from wsap_nexus.cli.nexus.report import running_on

    running = running_on(database)
    if running is not None:
        wire_to(running).post("nexus", "agents", name, "pause" if state == "paused" else "resume")
        return
    with leading(database) as ledger, ledger.change() as book:
        portable.check_not_removed(book, name)
        book.update_agent(name, state=state)
        book.note(AgentPaused(agent_id=name) if state == "paused" else AgentResumed(agent_id=name))


def _send(wire: Wire, name: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send an agent somewhere, straight on from the world that it is in; it may come and go by itself meanwhile."""
    from wsap_nexus.cli.nexus.wire import RefusedError

    refused: RefusedError | None = None
    for _ in range(5):
        try:
            return _session_in(wire.post("nexus", "transit", "enter", body=body), name)
        except RefusedError as error:
            if error.told != "ALREADY_IN_WORLD":
                raise
            refused = error
        try:
            left = wire.post("nexus", "transit", "exit", body={"agent_id": name, "force": True, "destination": body})
        except RefusedError as error:
            if error.told != "NOT_IN_WORLD":
                raise
            continue  # it has just come back by itself
        if left.get("entered"):
            return _session_in(left["entered"], name)
        onward = left.get("onward_error")
        if not onward:
            return _session_in({}, name)  # it is still leaving
        if onward["code"] != "ALREADY_IN_WORLD":
            raise RefusedError(one_line(onward["message"]), onward["code"])
    assert refused is not None, "it was refused each time"
    raise refused


def _session_in(answer: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the session of an answer.

    Raises:
        NoAnswerError: it takes longer than anybody waits.
    """
    from wsap_nexus.cli.nexus.wire import NoAnswerError

    session = answer.get("session")
    if not isinstance(session, dict):
        raise NoAnswerError(f"{name!r} is still on its way; see how it stands with: wsap nexus agents show {name}")
    return session


def _check_id(name: str) -> None:
    """Refuse what can't be an agent's id, in the same words whether a nexus runs or not.

    Raises:
        UsageError: it can't.
    """
    import re

    from wsap_core.errors import UsageError
    from wsap_nexus.store.entities import AGENT_ID

    if re.fullmatch(AGENT_ID, name) is None:
        raise UsageError(
            f"{name[:80]!r} can't be an agent's id; use up to 64 of a-z, 0-9, dot, dash and underscore, "
            "beginning with a letter or digit. --title says what it is called."
        )


def _policies(model: str | None, memory: str | None, given: tuple[str, ...]) -> dict[str, Policy]:
    """Return who decides where, checked.

    Raises:
        UnknownNameError: there is no such agent, game or backend.
        UsageError: `--memory` without `--model`.
    """
    from wsap_core.errors import UsageError
    from wsap_core.host import PluginHost
    from wsap_core.references import load_adapter_spec, load_agent_spec
    from wsap_llm.backends.pool import find_backend
    from wsap_nexus.store.entities import EXTERNAL, Policy

    host = PluginHost.discovered()
    found: dict[str, Policy] = {}
    if memory is not None and model is None:
        raise UsageError("--memory is about a language model; say which, with --model ADDRESS.")
    if model is not None:
        find_backend(host, model)
        if memory is not None and memory != "none":
            host.memories.get(memory)
        found["*"] = Policy("llm", {"model": model, **({"memory": memory} if memory else {})})
    for game, agent in pairs("--policy", given, example="GAME=AGENT").items():
        if game not in ("nexus", "*"):
            load_adapter_spec(game, host)
        if agent != EXTERNAL.agent:
            load_agent_spec(agent, host)
        found[game] = Policy(agent)
    return found if "*" in found or "nexus" in found else {"nexus": Policy("wanderer"), **found}


def _external(policies: dict[str, Policy]) -> bool:
    return any(policy.external for policy in policies.values())


def _token(ledger: NexusStore, name: str) -> str:
    from wsap_nexus.http.auth import Tokens

    return Tokens(ledger, "").issue(name)


def _text(given: str) -> str:
    """Return a text that was typed, or that is in the file that was named with @.

    Raises:
        UsageError: the file can't be read.
    """
    from wsap_core.errors import UsageError

    if not given.startswith("@"):
        return given
    path = Path(given[1:]).expanduser()
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"The persona can't be read from {path}: {reason}.") from None


def _said(as_json: bool, text: str, **facts: Any) -> None:
    click.echo(json.dumps(facts) if as_json else text)

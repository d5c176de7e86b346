"""`wsap nexus agents list`, `show`, `add`, `remove`, `pause`, `resume`, `export` and `import`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.params import pairs, typed_pairs
from wsap_core.errors import UsageError
from wsap_core.loading import MODEL_AGENT
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import command, print_lines, said
from wsap_nexus.cli.model_options import refuse_key
from wsap_nexus.cli.nexus.connection import looking, reading, running_on, writing
from wsap_nexus.store.events.agents import AgentPaused, AgentResumed

if TYPE_CHECKING:
    from wsap_core.host import PluginHost
    from wsap_nexus.store.entities import Policy
    from wsap_nexus.store.nexus_store import NexusStore


@command("wsap nexus agents list", "wsap nexus agents list --json", name="list")
def list_agents(*, as_json: bool, database: str | None) -> None:
    """List the agents, where they are and how much they have played."""
    from wsap_nexus.cli.nexus.report import agent_rows
    from wsap_nexus.cli.nexus.status import agent_lines

    with reading(database) as nexus_store:
        rows = []
        if nexus_store is not None:
            with nexus_store.look() as tx:
                rows = agent_rows(tx)
    print_lines(as_json, [asdict(row) for row in rows], agent_lines(rows, limit=None))


@command("wsap nexus agents show ada", "wsap nexus agents show ada --json")
@click.argument("name")
def show(*, name: str, as_json: bool, database: str | None) -> None:
    """Show the agent NAME: persona, skills, items, avatars, achievements and last sessions."""
    from wsap_nexus.cli.nexus.report import agent_report, report_lines

    with looking(database, name) as tx:
        found = agent_report(tx, name)
    print_lines(as_json, found, report_lines(found))


def _decider_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed((
        click.option("--model", metavar="ADDRESS",
                     help="The language model that decides for it, such as ollama/qwen3:8b."),
        click.option("--memory", metavar="KIND", help="The kind of memory, such as fulltext."),
        click.option("--agent-option", "agent_options", multiple=True, metavar="KEY=VALUE",
                     help="With --model, how it is asked, such as profile=brief or temperature=0.2; may be repeated."),
        click.option("--model-option", "backend_options", multiple=True, metavar="KEY=VALUE",
                     help="With --model, an option of its backend, such as num_ctx=16384; may be repeated."),
        click.option("--policy", "policies", multiple=True, metavar="GAME=AGENT[,OPTION=VALUE...]",
                     help="The agent that decides in a game, in the nexus, or elsewhere (*), such as "
                     "crafter=llm,model=ollama/qwen3:8b,profile=brief; may be repeated."),
    )):  # fmt: skip
        command = option(command)
    return command


def _as_json(policies: Mapping[str, Policy]) -> dict[str, Any]:
    """Return policies as the API takes them. Any: JSON."""
    return {game: {"agent": policy.agent, "options": dict(policy.options)} for game, policy in policies.items()}


@command(
    "wsap nexus agents add cleo --model ollama/qwen3:8b --persona @cleo.txt",
    "wsap nexus agents add bot --policy '*=external'",
)
@click.argument("name")
@click.option("--title", metavar="TEXT", default="", help="Its display name, if not NAME.")
@_decider_options
@click.option("--persona", metavar="TEXT", default="", help="Its character; @FILE reads it from a file.")
def add(
    *, name: str, title: str, persona: str, as_json: bool, database: str | None, **decider: Any,
) -> None:  # fmt: skip
    """Add the agent NAME: an id of a-z, 0-9, dot, dash and underscore.

    Without --model and --policy, each game's default agent decides, and no model is needed. With
    --policy '*=external', a client decides over HTTP, using the printed token.
    """
    import asyncio

    from wsap_core.host import PluginHost
    from wsap_nexus.agents.identity import check_models
    from wsap_nexus.store.entities import Policy

    check_id(name)
    nexus = running_on(database)
    asked = Decider(**decider)
    if nexus is not None and not asked.given and nexus.running.model is not None:
        given = {"*": Policy("llm", {"model": nexus.running.model, **nexus.running.options})}
    else:
        given = asked.read()
    text = text_of(persona)
    if nexus is not None:
        body = {"id": name, "name": title, "persona": text, "policies": _as_json(given)}
        answer = nexus.post("nexus", "agents", body=body)
        fresh, token = "token" in answer, answer.get("token")
    else:
        asyncio.run(check_models(given.values(), PluginHost.discovered()))
        with writing(database) as nexus_store:
            with nexus_store.change() as tx:
                _, fresh = tx.register(name, name=title, persona=text, policies=given)
            token = issue_token(nexus_store, name) if fresh and is_external(given) else None
    if not fresh:
        raise UsageError(f"An agent {name!r} already exists; nothing was changed.")
    if as_json:
        click.echo(json.dumps({"agent": name, "token": token if is_external(given) else None}))
        return
    click.echo(f"{name} lives in the nexus now." + ("" if nexus else " Start the nexus with: wsap nexus start"))
    if is_external(given):
        click.echo(f"Its token (shown only once): {token}")


@command("wsap nexus agents change ada --model ollama/qwen3:8b", "wsap nexus agents change ada --team reds")
@click.argument("name")
@click.option("--title", metavar="TEXT", help="Its display name; '' for NAME.")
@_decider_options
@click.option("--persona", metavar="TEXT", help="Its character, '' for none; @FILE reads it from a file.")
@click.option("--team", metavar="TEAM", help="The team it can send messages to; '' for none.")
@click.option(
    "--core-memory",
    "core_memories",
    multiple=True,
    metavar="TEXT",
    help="What it remembers in every world, instead of all before; may be repeated; '' for nothing.",
)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="TEXT",
    help="What it does in every world, instead of all before; may be repeated; '' for nothing.",
)
def change(
    *, name: str, title: str | None, persona: str | None, team: str | None, core_memories: tuple[str, ...],
    strategies: tuple[str, ...], as_json: bool, database: str | None, **decider: Any,
) -> None:  # fmt: skip
    """Change the agent NAME; a new model or persona applies from its next session on.

    Without an option, its part stays as it is; --model and --policy replace all deciders. With --policy '*=external' a
    new token is printed.
    """
    import asyncio

    from wsap_core.host import PluginHost
    from wsap_nexus.agents import identity

    asked = Decider(**decider)
    given = asked.read() if asked.given else None
    text = None if persona is None else text_of(persona)
    kept = {
        kind: [line for line in lines if line.strip()]
        for kind, lines in (("core_memories", core_memories), ("strategies", strategies))
        if lines
    }
    if (title, text, given, team) == (None, None, None, None) and not kept:
        raise UsageError("Say what to change, such as --model ADDRESS; see: wsap nexus agents change --help")
    nexus, token, external = running_on(database), None, given is not None and is_external(given)
    if nexus is not None:
        body = {"name": title, "persona": text, "policies": None if given is None else _as_json(given), "team": team}
        nexus.patch("nexus", "agents", name, body={k: v for k, v in body.items() if v is not None} | kept)
        token = nexus.post("nexus", "agents", name, "token")["token"] if external else None
    else:
        host = PluginHost.discovered()
        asyncio.run(identity.check_models((given or {}).values(), host))
        with writing(database) as nexus_store:
            with nexus_store.change() as tx:
                identity.change(tx, name, host, name=title, persona=text, policies=given, team=team, **kept)
            token = issue_token(nexus_store, name) if external else None
    told = f"Changed {name}." + (f" Its new token (shown only once): {token}" if token else "")
    said(as_json, told, agent=name, token=token)


@command("wsap nexus agents remove ada", "wsap nexus agents remove ada --yes")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
def remove(*, name: str, yes: bool, as_json: bool, database: str | None) -> None:
    """Remove the agent NAME permanently. Its history is kept, and its id is not reused."""
    from wsap_nexus.agents import portable

    if not yes and not as_json:
        click.confirm(
            f"Remove {single_line(name)[:80]!r} permanently? (wsap nexus agents export makes a copy)", abort=True
        )
    nexus = running_on(database)
    if nexus is not None:
        nexus.delete("nexus", "agents", name)
    else:
        with writing(database) as nexus_store, nexus_store.change() as tx:
            portable.remove(tx, name)
    said(as_json, f"{name} has been removed.", agent=name, state="removed")


@command("wsap nexus agents pause ada")
@click.argument("name")
def pause(*, name: str, as_json: bool, database: str | None) -> None:
    """Pause the agent NAME where it is: it makes no further decisions."""
    _hold(name, "paused", database)
    said(as_json, f"{name} is paused. Continue with: wsap nexus agents resume {name}", agent=name, state="paused")


@command("wsap nexus agents resume ada")
@click.argument("name")
def resume(*, name: str, as_json: bool, database: str | None) -> None:
    """Let the paused agent NAME continue."""
    _hold(name, "active", database)
    said(as_json, f"{name} continues.", agent=name, state="active")


def _hold(name: str, state: str, database: str | None) -> None:
    from wsap_nexus.agents import portable

    nexus = running_on(database)
    if nexus is not None:
        nexus.post("nexus", "agents", name, "pause" if state == "paused" else "resume")
        return
    with writing(database) as nexus_store, nexus_store.change() as tx:
        portable.check_not_removed(tx, name)
        tx.update_agent(name, state=state)
        tx.note(AgentPaused(agent_id=name) if state == "paused" else AgentResumed(agent_id=name))


@command("wsap nexus agents export ada ada.agent")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def export(*, name: str, file: Path, force: bool, as_json: bool, database: str | None) -> None:
    """Copy the agent NAME to FILE: persona, skills with their evidence, achievements, goals and memory.

    Items and avatars stay in this nexus.
    """
    from wsap_nexus.agents import portable
    from wsap_nexus.agents.agent_file import write_package

    if file.exists() and not force:
        raise UsageError(f"The file {file} already exists; choose another, or overwrite it with --force.")
    with looking(database, name) as tx:
        portable.check_not_removed(tx, name)
        package = portable.pack(tx, name)
    written = write_package(file, package)
    left = package.left
    what = f"Copied {name} to {file}."
    if written < len(package.diary):
        what += f" Its diary is too long for a file: only the newest {written} entries were copied."
    if left.bodies or left.items:
        what += f" These stay here: {plural(left.bodies, 'avatar')}, {plural(left.items, 'item')}."
    said(as_json, what, agent=name, file=str(file), left_behind=left.model_dump())


@command(
    "wsap nexus agents import ada.agent",
    "wsap nexus agents import ada.agent --as ada2 --model ollama/qwen3:8b",
    name="import",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--as", "name", metavar="NAME", help="Its id here; the one in the file if not given.")
@_decider_options
@click.option("--trust", is_flag=True, help="Keep the policies in the file; these can name programs and addresses.")
def import_agent(
    *, file: Path, name: str | None, trust: bool, as_json: bool, database: str | None, **decider: Any
) -> None:  # fmt: skip
    """Add the agent in FILE, which wsap nexus agents export wrote.

    The policies in the file (who decides for it) are left out without --trust, which is only safe with
    your own files. Nothing else in a file is executed.
    """
    from wsap_core.host import PluginHost
    from wsap_nexus.agents import portable
    from wsap_nexus.agents.agent_file import read_package

    package = read_package(file)
    asked = Decider(**decider)
    given = asked.read() if asked.given else {}
    nexus = running_on(database)
    with writing(database, lock=nexus is None) as nexus_store:
        imported = portable.import_agent(
            nexus_store,
            package,
            agent_id=name,
            policies=given,
            known=PluginHost.discovered().agents.names(),
            trust=trust,
            paused=nexus is not None,
        )
    if nexus is not None:
        nexus.post("nexus", "agents", imported.agent_id, "resume")
    text = f"{imported.agent_id} lives here now."
    if imported.policies_left_out:
        shown = ", ".join(single_line(p)[:60] for p in imported.policies_left_out[:5])
        text += f" Its policies were left out ({shown}); set them with --model or --policy, or keep them with --trust."
    said(as_json, text, agent=imported.agent_id, policies_left_out=list(imported.policies_left_out))


def check_id(name: str) -> None:
    """Refuse an invalid agent id, with the same UsageError whether a nexus is running or not."""
    import re

    from wsap_nexus.store.entities import AGENT_ID

    if re.fullmatch(AGENT_ID, name) is None:
        raise UsageError(
            f"{name[:80]!r} can't be an agent's id; use up to 64 of a-z, 0-9, dot, dash and underscore, "
            "starting with a letter or digit. --title sets its display name."
        )


@dataclass(frozen=True, kw_only=True)
class Decider:
    """The options of one command line that say who decides for an agent."""

    model: str | None
    memory: str | None = None
    agent_options: tuple[str, ...] = ()
    backend_options: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()

    @property
    def given(self) -> bool:
        """Whether any of them is given."""
        return bool(self.model or self.memory or self.agent_options or self.backend_options or self.policies)

    def options(self) -> dict[str, Any]:
        """Return the other options of the agent of `--model`; UsageError if one is given twice. Any: JSON."""
        own = {"memory": self.memory} if self.memory is not None else {}
        others = typed_pairs("--agent-option", self.agent_options)
        others |= {f"model.{key}": value for key, value in typed_pairs("--model-option", self.backend_options).items()}
        if twice := sorted(own.keys() & others.keys()):
            raise UsageError(f"The option {twice[0]} is given twice: by --{twice[0]} and by --agent-option.")
        refuse_key(others)
        return {**own, **others}

    def read(self) -> dict[str, Policy]:
        """Return game -> policy.

        Raises:
            UnknownNameError: there is no such agent, game, backend or option.
            UsageError: an option of a model is given without `--model`, or malformed.
        """
        from wsap_core.host import PluginHost
        from wsap_core.references import load_adapter_spec
        from wsap_llm.backends.pool import find_backend
        from wsap_nexus.agents.identity import refuse_undeclared
        from wsap_nexus.store.entities import Policy

        host = PluginHost.discovered()
        found: dict[str, Policy] = {}
        options = self.options()
        if self.model is None and options:
            label = next(iter(options))
            label = "model-option" if label.startswith("model.") else label if label == "memory" else "agent-option"
            raise UsageError(f"--{label} has no effect without a language model; name one with --model ADDRESS.")
        if self.model is not None:
            find_backend(host, self.model)
            if self.memory is not None and self.memory != "none":
                host.memories.get(self.memory)
            found["*"] = Policy(MODEL_AGENT, {"model": self.model, **options})
            refuse_undeclared(found["*"], host)
        for game, text in pairs("--policy", self.policies, example="GAME=AGENT[,OPTION=VALUE...]").items():
            if game not in ("nexus", "*"):
                load_adapter_spec(game, host)
            found[game] = _policy(text, host)
        return found if "*" in found or "nexus" in found else {"nexus": Policy("wanderer"), **found}


def _policy(text: str, host: PluginHost) -> Policy:
    from wsap_core.references import load_agent_spec
    from wsap_nexus.agents.identity import refuse_undeclared
    from wsap_nexus.runs.plan import agent_named
    from wsap_nexus.store.entities import EXTERNAL, Policy

    name, *given = text.split(",")
    agent, model = agent_named(name, host)
    policy = Policy(agent, {**typed_pairs("--policy", given), **model})
    refuse_key(policy.options, "model.api_key")
    if agent == EXTERNAL.agent:
        if policy.options:
            raise UsageError("An agent that decides over HTTP has no options.")
        return policy
    load_agent_spec(agent, host)
    refuse_undeclared(policy, host)
    return policy


def is_external(policies: dict[str, Policy]) -> bool:
    """Return whether a client decides over HTTP in some game."""
    return any(policy.external for policy in policies.values())


def issue_token(nexus_store: NexusStore, name: str) -> str:
    """Create a token of an agent and return it."""
    from wsap_nexus.http.access.auth import Tokens

    return Tokens(nexus_store, "").issue(name)


def text_of(given: str) -> str:
    """Return a text as given, or the content of the file in `@FILE`; UsageError if the file can't be read."""
    from wsap_core.textfile import read_text

    if not given.startswith("@"):
        return given
    return read_text(Path(given[1:]).expanduser(), "The persona")

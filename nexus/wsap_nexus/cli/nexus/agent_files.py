"""`wsap nexus agents export` and `import`: agents in files."""

from __future__ import annotations

from pathlib import Path

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import json_option
from wsap_core.errors import UsageError
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import database_option, plural
from wsap_nexus.cli.nexus.connection import http_to, reading, writing
from wsap_nexus.cli.nexus.policies import policies_of, said


@click.command(cls=GroupedCommand, examples=("wsap nexus agents export ada ada.agent",))
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
@database_option
def export(*, name: str, file: Path, force: bool, as_json: bool, database: str | None) -> None:
    """Copy the agent NAME to FILE: persona, skills with their evidence, achievements, goals and memory.

    Items and avatars stay in this nexus.
    """
    from wsap_core.errors import UnknownNameError
    from wsap_nexus.agents import portable
    from wsap_nexus.agents.agent_file import write_package

    if file.exists() and not force:
        raise UsageError(f"The file {file} exists already; choose another, or overwrite it with --force.")
    with reading(database) as nexus_store:
        if nexus_store is None:
            raise UnknownNameError("agent", name, ())
        with nexus_store.look() as tx:
            portable.check_not_removed(tx, name)
            package = portable.pack(tx, name)
    write_package(file, package)
    left = package.left
    what = f"{name} is copied to {file}."
    if left.bodies or left.items:
        what += f" These stay here: {plural(left.bodies, 'avatar')}, {plural(left.items, 'item')}."
    said(as_json, what, agent=name, file=str(file), left_behind=left.model_dump())


@click.command(
    "import",
    cls=GroupedCommand,
    examples=(
        "wsap nexus agents import ada.agent",
        "wsap nexus agents import ada.agent --as ada2 --model ollama/qwen3:8b",
    ),
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--as", "name", metavar="NAME", help="Its id here; the one in the file if not given.")
@click.option("--model", metavar="ADDRESS", help="The language model that decides for it here.")
@click.option("--memory", metavar="KIND", help="The kind of memory, such as fulltext.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="GAME=AGENT",
    help="The agent that decides for it in a game; may be repeated.",
)
@click.option("--trust", is_flag=True, help="Keep the policies in the file; these can name programs and addresses.")
@json_option
@database_option
def import_agent(
    *, file: Path, name: str | None, model: str | None, memory: str | None, policies: tuple[str, ...], trust: bool,
    as_json: bool, database: str | None,
) -> None:  # fmt: skip
    """Add the agent in FILE, which wsap nexus agents export wrote.

    The policies in the file (who decides for it) are left out unless you say --trust: only do so with
    your own files. Nothing else in a file is executed.
    """
    from wsap_core.host import PluginHost
    from wsap_nexus.agents import portable
    from wsap_nexus.agents.agent_file import read_package
    from wsap_nexus.cli.nexus.report import running_on

    package = read_package(file)
    given = policies_of(model, memory, policies) if model or policies or memory else {}
    running = running_on(database)
    with writing(database, lock=running is None) as nexus_store, nexus_store.change() as tx:
        imported = portable.import_agent(
            tx,
            package,
            agent_id=name,
            policies=given,
            known=PluginHost.discovered().agents.names(),
            trust=trust,
            paused=running is not None,
        )
    if running is not None:
        http_to(running).post("nexus", "agents", imported.agent_id, "resume")
    text = f"{imported.agent_id} lives here now."
    if imported.policies_left_out:
        shown = ", ".join(single_line(p)[:60] for p in imported.policies_left_out[:5])
        text += f" Its policies were left out ({shown}); set them with --model or --policy, or keep them with --trust."
    said(as_json, text, agent=imported.agent_id, policies_left_out=list(imported.policies_left_out))

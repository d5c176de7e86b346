"""`wsap minds`: what agents remember from run to run."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.params import STEPS
from wsap_core.untrusted import one_line
from wsap_nexus.cli.common import json_option

if TYPE_CHECKING:
    from wsap_core.seams.memory import AgentMemory, Recollection
    from wsap_nexus.minds import Mind, Minds

BUDGET = 60
"""Tokens for each memory that is asked for, where a memory can be searched but not looked through."""


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def minds(context: click.Context, *, as_json: bool) -> None:
    """List the minds: what agents remember from run to run.

    wsap play GAME --model MODEL --mind NAME makes one, or goes on with it.
    """
    if context.invoked_subcommand is not None:
        return
    store = _store()
    found = [store.find(name) for name in store.names()]
    rows = [_row(mind) for mind in found if mind is not None]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    elif not rows:
        click.echo("There are no minds yet; begin one with: wsap play crafter --model MODEL --mind ada")
    for row in () if as_json else rows:
        runs = f"{row['runs']} run{'' if row['runs'] == 1 else 's'}"
        click.echo(
            "\t".join((row["mind"], one_line(row["memory"]), runs, f"{row['steps']} steps", row["saved"] or "-"))
        )


@minds.command()
@click.argument("name")
@click.option("--search", metavar="WORDS", default="", help="What fits these words best, in place of the newest.")
@click.option("--limit", type=STEPS, default=30, show_default=True, help="How many memories to show.")
@json_option
def show(*, name: str, search: str, limit: int, as_json: bool) -> None:
    """Show what the mind NAME remembers, and from where."""
    mind = _store().read(name)
    found = _remembered(mind, search, limit)
    if as_json:
        memories = [
            {"kind": m.kind, "text": m.text, "world": m.world, "run": m.run, "step": m.step} for m in found or ()
        ]
        click.echo(json.dumps({**_row(mind), "lives": _lives(mind), "memories": memories}, indent=2))
        return
    click.echo(f"{mind.name} remembers with {one_line(mind.kind) or 'nothing'}.")
    for life in _lives(mind):
        end = f"{life['steps']} steps" if life["saved"] else f"nothing saved; wsap play --resume {life['run']}"
        click.echo(f"  run {life['number']}: {life['game']}, {end} ({life['run']}, begun {life['began']})")
    if found is None:
        click.echo(f"The memory {one_line(mind.kind)!r} is not installed, so what is in it can't be shown.")
    for memory in found or ():
        click.echo(f"  {one_line(memory.kind)}: {one_line(memory.text)}")


@minds.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Ask no question.")
@json_option
def remove(*, name: str, yes: bool, as_json: bool) -> None:
    """Delete what the mind NAME remembers. Its runs stay, and NAME.md, if you wrote one."""
    store = _store()
    mind = store.find(name) if _readable(store, name) else None
    if not yes and not as_json:
        lives = "" if mind is None else f", from {len(mind.lives)} runs"
        click.confirm(f"Delete what {name!r} remembers{lives}?", abort=True)
    with store.hold(name) as held:
        held.remove()
    click.echo(json.dumps({"removed": name}) if as_json else f"Deleted what {name!r} remembered.")


def _readable(store: Minds, name: str) -> bool:
    """Return whether a mind is whole; a damaged one can still be deleted.

    Raises:
        UnknownNameError: there is none of that name.
    """
    from wsap_core.errors import StorageError, UnknownNameError

    try:
        if store.find(name) is None:
            raise UnknownNameError("mind", name, store.names(), hint="See them with: wsap minds")
    except StorageError:
        return False
    return True


def _store() -> Minds:
    from wsap_nexus.minds import Minds
    from wsap_nexus.paths import minds_folder

    return Minds(minds_folder(os.environ))


def _row(mind: Mind) -> dict[str, Any]:
    return {
        "mind": mind.name,
        "memory": mind.kind,
        "runs": len(mind.lives),
        "steps": sum(life.steps for life in mind.lives),
        "saved": max((life.saved for life in mind.lives), default="") or None,
    }


def _lives(mind: Mind) -> list[dict[str, Any]]:
    return [
        {
            "number": life.number,
            "run": one_line(life.run),
            "game": one_line(life.game),
            "seat": one_line(life.seat),
            "steps": life.steps,
            "began": one_line(life.began),
            "saved": one_line(life.saved) or None,
        }
        for life in mind.lives
    ]


def _remembered(mind: Mind, search: str, limit: int) -> list[Recollection] | None:
    """Return what a mind remembers, newest or fitting first; None where its kind of memory is not installed.

    Raises:
        SnapshotError: it is damaged.
    """
    from wsap_core.seams.memory import Browsable

    memory = _memory(mind)
    if memory is None:
        return None
    if mind.memory:
        memory.restore(mind.memory)
    if search or not isinstance(memory, Browsable):
        return list(memory.recall(search, budget=BUDGET * limit + 200))[:limit]
    lessons = list(memory.browse("lesson", most=limit))
    others = [found for found in memory.browse(most=limit + len(lessons)) if found.kind != "lesson"]
    return [*lessons, *others][:limit]


def _memory(mind: Mind) -> AgentMemory | None:
    from wsap_core.errors import WsapError
    from wsap_core.factories import build
    from wsap_core.host import PluginHost
    from wsap_core.seams.context import Context
    from wsap_llm.memory.facts import FactsMemory
    from wsap_llm.memory.fifo import FifoMemory
    from wsap_llm.memory.fulltext import FullTextMemory

    # An agent without a model makes its memory itself, and a mind then knows the class alone.
    kinds: dict[str, type[FactsMemory | FifoMemory | FullTextMemory]] = {
        kind.__name__: kind for kind in (FactsMemory, FifoMemory, FullTextMemory)
    }
    if mind.kind in kinds:
        return kinds[mind.kind]()
    host = PluginHost.discovered()
    if mind.kind not in host.memories.names():
        return None
    factory = host.memories.get(mind.kind).factory
    try:
        made: AgentMemory = build(factory, Context.create(config=dict(mind.options)))
    except WsapError:  # an option that only makes sense in a run, such as a model for summaries
        made = build(factory, Context.create())
    return made

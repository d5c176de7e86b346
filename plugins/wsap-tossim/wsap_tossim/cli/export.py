"""`wsap tossim export`: games as training data."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import refuse_given

if TYPE_CHECKING:
    from wsap_tossim.export.games import Tally

FORMS = ("chat", "episodes")


@click.command(
    cls=GroupedCommand,
    examples=(
        "wsap tossim export last --out turns.jsonl",
        "wsap tossim export games/ --format episodes --winners",
        "wsap tossim export --schema",
    ),
)
@click.argument("sources", metavar="[FILE_OR_RUN]...", nargs=-1)
@click.option("--format", "form", type=click.Choice(FORMS), default="chat",
              show_default=True,
              help="chat: one turn per line, for fine-tuning. episodes: one player's game with reward.")  # fmt: skip
@click.option("--dialect", type=click.Choice(["tags", "json"]), default="tags", show_default=True,
              help="Reply format of the model: the tags of seed 002, or JSON.")  # fmt: skip
@click.option("--observations", type=click.Choice(["inline", "turns"]), default="inline", show_default=True,
              help="With tags: tool results go into the assistant's text or into a user message.")  # fmt: skip
@click.option("--prompts", type=click.Choice(["sent", "standard"]), default="sent", show_default=True,
              help="sent: the recorded prompt of each player, with persona and memories, where the run has it in this "
              "dialect. standard: the same prompt for all.")  # fmt: skip
@click.option("--winners", is_flag=True, help="Only players who won.")
@click.option(
    "--role", "roles", multiple=True, metavar="ROLE", help="Only players with this role at the end; may be repeated."
)
@click.option("--faction", "factions", multiple=True, metavar="FACTION",
              help="Only players of this faction at the end; may be repeated.")  # fmt: skip
@click.option("--played-by", multiple=True, metavar="NAME",
              help="Only seats played by this model or agent; may be repeated.")  # fmt: skip
@click.option(
    "--forced", is_flag=True, help="Keep turns decided for a player after a missed deadline or unreadable reply."
)
@click.option("--advantage", type=click.Choice(["none", "faction", "role"]), default="faction", show_default=True,
              help="With episodes: normalise rewards over all players of a faction or of a role.")  # fmt: skip
@click.option("--bare", is_flag=True, help="With chat: write only the messages.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Output file; default: standard output.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the format's lines and exit.")
@click.option("--database", metavar="PATH", help="For runs: the database, as in `wsap play`.")
def export(
    sources: tuple[str, ...], *, form: str, dialect: str, observations: str, prompts: str, winners: bool,
    roles: tuple[str, ...], factions: tuple[str, ...], played_by: tuple[str, ...], forced: bool, advantage: str,
    bare: bool, out: Path | None, force: bool, schema: bool, database: str | None,
) -> None:  # fmt: skip
    """Export games as training data: the turns of each player, with only what that player saw.

    FILE is a game's record (town.json), an exported run, a file of records (JSON lines) or a folder with
    such files; RUN is a recorded run: its id, the beginning or end of the id, or last. Every line is validated
    against its JSON Schema before it is written.
    """
    # Deferred for weight: the engine, the prompts, pydantic.
    from wsap_core.errors import UsageError
    from wsap_core.textfile import written_to
    from wsap_tossim.cli.sources import named
    from wsap_tossim.export.games import Wanted
    from wsap_tossim.export.lines import schema_of
    from wsap_tossim.export.writing import write_chat, write_episodes

    if out is None:
        refuse_given("without --out", "force")
    if dialect != "tags":
        refuse_given("with --dialect json", "observations")
    if form != "episodes":
        refuse_given("without --format episodes", "advantage")
    if schema:
        refuse_given("with --schema", "sources", "out")
        click.echo(json.dumps(schema_of(form), indent=2, sort_keys=True))
        return
    if not sources:
        raise UsageError("Name what to export: files, folders or runs; `wsap runs` lists the runs.")
    if bare and form != "chat":
        raise UsageError("--bare requires --format chat.")
    if out is not None and out.exists() and not force:
        raise UsageError(f"{out} already exists; choose another name, or overwrite it with --force.")
    wanted = Wanted(dialect, observations == "inline", winners, roles, factions, played_by, forced, prompts == "sent")  # type: ignore[arg-type]  # click has checked it
    games = named(sources, database)
    with contextlib.ExitStack() as open_files:
        file = sys.stdout if out is None else open_files.enter_context(written_to(out))
        if form == "chat":
            tally = write_chat(games, wanted, file, bare=bare)
        else:
            tally = write_episodes(games, wanted, file, advantage)  # type: ignore[arg-type]  # click has checked it
    _report(tally, out)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _report(tally: Tally, out: Path | None) -> None:
    where = f" to {out}" if out is not None else ""
    click.echo(
        f"Wrote {_count(tally.lines, 'line')}{where}: {_count(tally.turns, 'turn')} of {_count(tally.games, 'game')}.",
        err=True,
    )
    if tally.sent:
        click.echo(f"{tally.sent} of them start with the recorded prompt.", err=True)
    if tally.translated:
        click.echo(
            f"{tally.translated} of them have the standard prompt: their models played in the other --dialect.",
            err=True,
        )
    if tally.forced:
        click.echo(
            f"Left out: {tally.forced} turns that were decided for their players (--forced keeps them).", err=True
        )
    if tally.unreadable:
        click.echo(
            f"Left out: {tally.unreadable} turns whose text would not parse to the recorded action, such as speech "
            "that contains tags.", err=True,
        )  # fmt: skip
    if tally.unfinished:
        from wsap_core.protocol.lines import plural  # deferred for weight

        left_out = plural(len(tally.unfinished), "unfinished game")
        click.echo(f"Left out: {left_out}, without a reward.", err=True)

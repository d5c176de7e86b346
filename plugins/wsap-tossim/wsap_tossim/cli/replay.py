"""`wsap tossim replay`: a game as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from wsap_core.cli.grouped import GroupedCommand


@click.command(
    cls=GroupedCommand,
    examples=("wsap tossim replay last", "wsap tossim replay town.json --view public --out town.html"),
)
@click.argument("source", metavar="FILE_OR_RUN")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path),
              help="Output file; default: next to FILE, or RUN.html in the current folder.")  # fmt: skip
@click.option("--view", default="all", show_default=True, metavar="all|public|PLAYER",
              help="The view to show; the file contains only what this view may know.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--database", metavar="PATH", help="For runs: the database, as in `wsap play`.")
def replay(source: str, *, out: Path | None, view: str, force: bool, database: str | None) -> None:
    """Render a game as one HTML file: what each player knew, thought and said.

    FILE is a game's record (town.json) or an exported run; RUN is a recorded run of tossim: its id, the
    beginning or end of the id, or last. The page needs no network and shows all views, unless --view names one.
    """
    # Deferred for weight: the engine and the page.
    from wsap_core.errors import UsageError
    from wsap_core.untrusted import single_line
    from wsap_tossim.cli.sources import file_name, found, is_path
    from wsap_tossim.replay.page import write_text
    from wsap_tossim.replay.story import view_named

    game = found(source, database)
    record = game.record
    chosen = view_named(view, record.names)
    target = out or (Path(source).with_suffix(".html") if is_path(source) else Path(f"{file_name(source)}.html"))
    if target.exists() and not force:
        raise UsageError(f"{target} already exists; choose another name, or overwrite it with --force.")
    page = record.page(chosen, called=game.called)
    write_text(target, page)
    shown = "all views" if chosen is None else "the public view"
    if isinstance(chosen, int):
        shown = f"only what {single_line(record.names[chosen])} knew"
    click.echo(f"Wrote {target} ({len(page.encode()) // 1000} kB): {shown}. Open it in a browser.", err=True)

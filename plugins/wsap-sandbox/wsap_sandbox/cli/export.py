"""`wsap sandbox export`: a story as JSON, Markdown or HTML, and a world as a file."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import click

from wsap_core.errors import UsageError
from wsap_sandbox.cli.begin import WORLD_FORMAT
from wsap_sandbox.cli.common import Stories, Told, chapter_data, story_command

FORMATS = {"markdown": "md", "html": "html", "json": "ticks", "world": "world.json"}


@story_command(
    "wsap sandbox export village --format html --out village.html",
    "wsap sandbox export village --format json --out ticks",
    "wsap sandbox export village --format world --at 12 --out village.world.json",
)
@click.argument("story")
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="markdown", show_default=True,
              help="markdown or html: the story. json: a folder with each tick's JSON beside its story. "
              "world: the world as it is, for wsap sandbox new --from.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="PATH",
              help="The file to write, or the folder of json; STORY with an ending if not given.")  # fmt: skip
@click.option("--from", "first", type=click.IntRange(1), default=1, metavar="TICK", help="The first tick.")
@click.option("--at", "--to", "last", type=click.IntRange(0), metavar="TICK",
              help="The last tick, or the one of the world; the newest if not given.")  # fmt: skip
@click.option("--events", is_flag=True, help="In Markdown, also list the events of the ledger.")
@click.option("--force", is_flag=True, help="Overwrite what is there.")
def export(
    stories: Stories, story: str, form: str, out: Path | None, first: int, last: int | None, events: bool, force: bool
) -> Told:
    """Write the STORY to a file."""
    if last is not None:
        stories.check_tick(story, last)
    target = out or Path(f"{story}.{FORMATS[form]}")
    if target.exists() and not force:
        raise UsageError(f"{target} exists already; choose another with --out, or overwrite it with --force.")
    try:
        written = _write(stories, story, form, target, first, last, events=events)
    except OSError as error:
        raise UsageError(f"{target} can't be written: {error.strerror or error}.") from error
    return {"run": story, "format": form, "path": str(target), "ticks": written}, f"Wrote {target}."


def _write(stories: Stories, name: str, form: str, target: Path, first: int, last: int | None, *, events: bool) -> int:
    from wsap_sandbox.story.files import html, markdown

    if form == "world":
        target.write_text(_world(stories, name, last), encoding="utf-8")
        return 0
    if form == "json":
        return _ticks(stories, name, target, first, last)
    # Counted while they are written: a story may be longer than what fits into memory.
    number = count()
    chapters = (chapter for chapter, _ in zip(stories.chapters(name, first, last), number, strict=False))
    parts = html(chapters) if form == "html" else markdown(chapters, events=events)
    with target.open("w", encoding="utf-8") as file:
        file.writelines(parts)
    return next(number)


def _world(stories: Stories, name: str, tick: int | None) -> str:
    from wsap_sandbox.model import dump

    world = dump(stories.world(name, tick).state)
    return json.dumps({"format": WORLD_FORMAT, "world": world}, ensure_ascii=False, indent=1) + "\n"


def _ticks(stories: Stories, name: str, target: Path, first: int, last: int | None) -> int:
    """Write `tick-000001.json` and `tick-000001.md` for each tick, and the schema of the former."""
    from wsap_sandbox.model import TickRecord, adapter_of
    from wsap_sandbox.story.files import markdown

    target.mkdir(parents=True, exist_ok=True)
    schema = adapter_of(TickRecord).json_schema()
    (target / "tick.schema.json").write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")
    written = 0
    for written, chapter in enumerate(stories.chapters(name, first, last), 1):  # noqa: B007  # returned
        stem = f"tick-{chapter.tick:06}"
        text = json.dumps(chapter_data(chapter), ensure_ascii=False, indent=1)
        (target / f"{stem}.json").write_text(text + "\n", encoding="utf-8")
        (target / f"{stem}.md").write_text("".join(markdown([chapter])), encoding="utf-8")
    return written

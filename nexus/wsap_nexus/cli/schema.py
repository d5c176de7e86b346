"""`wsap schema`: prints the protocol's JSON Schemas."""

from __future__ import annotations

from pathlib import Path

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import refuse_given
from wsap_core.errors import UsageError


@click.command(
    cls=GroupedCommand, examples=("wsap schema Observation", "wsap schema --list", "wsap schema --output schemas")
)
@click.argument("name", required=False)
@click.option("--list", "list_names", is_flag=True, help="List the names of all messages.")
@click.option(
    "--output", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path),
    help="Write NAME.json for every message, or for the named one, to this folder.",
)  # fmt: skip
def schema(name: str | None, *, list_names: bool, output: Path | None) -> None:
    """Print the protocol's JSON Schemas.

    With the NAME of a message, such as Observation, print only its schema; otherwise one document
    with all of them.
    """
    from wsap_nexus import schemas  # deferred for weight: it imports pydantic

    if list_names:
        refuse_given("with --list", "name", "output")
        click.echo("\n".join(schemas.names()))
    elif output:
        _write(output, (name,) if name else schemas.names())
    else:
        click.echo(schemas.to_json(schemas.message_schema(name) if name else schemas.all_schemas()), nl=False)


def _write(folder: Path, names: tuple[str, ...]) -> None:
    from wsap_nexus import schemas

    texts = {name: schemas.to_json(schemas.message_schema(name)) for name in names}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / f"{name}.json").write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder} can't be written: {error.strerror}; choose another folder.") from error
    click.echo(f"Wrote {len(texts)} schema{'' if len(texts) == 1 else 's'} to {folder}.")

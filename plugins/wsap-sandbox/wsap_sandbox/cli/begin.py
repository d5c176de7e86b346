"""`wsap sandbox new`: begin a story."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import click

from wsap_core.cli.params import typed_pairs
from wsap_core.errors import SnapshotError, UsageError
from wsap_core.specs import OptionDef
from wsap_sandbox.cli.common import Stories, Told, story_command, wrapped
from wsap_sandbox.options import STORYTELLER, SandboxOptions, packed_world
from wsap_sandbox.plugin import OPTIONS

WORLD_FORMAT = "wsap-sandbox-world"
"""The format's name in a world file."""
_SNAPSHOT_EVERY = 20
"""Ticks between two snapshots: restoring any tick takes at most so many more."""
_WORLD = ("language", "cells")
_TAKEN = [known for known in OPTIONS if known.name not in ("template", "world", "model.KEY")]
"""The options of the game that are options of the command, too."""


def _option(known: OptionDef) -> click.Option:
    """Return an option of the game as one of the command line."""
    flag = f"--{known.name.replace('_', '-')}"
    if known.values == "yes|no":
        return click.Option([flag], is_flag=True, help=known.summary)
    low, between, high = known.values.partition("-")
    one_of = click.Choice(known.values.split("|")) if "|" in known.values else None
    kind = click.IntRange(int(low), int(high)) if between else one_of
    shown = "ADDRESS" if known.name.endswith("model") else None
    return click.Option([flag], type=kind, metavar=shown, help=f"{known.summary} Default: {known.default}.")


@story_command(
    "wsap sandbox new village",
    "wsap sandbox new brod --template village --language ru --model ollama/qwen3:8b",
    "wsap sandbox new copy --from village.world.json",
    sections={
        "World": ("template", *_WORLD, "seed", "source"),
        "Model": (*(known.name for known in _TAKEN if known.name not in _WORLD), "backend_options"),
    },
    params=list(map(_option, _TAKEN)),
)
@click.argument("name")
@click.option("--template", metavar="NAME_OR_FILE",
              help="village, lighthouse, or a template of your own; NAME if there is such a template, else "
              "village.")  # fmt: skip
@click.option("--from", "source", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="A world file of wsap sandbox export, which goes on from its tick.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True,
              help="Random seed; the same seed gives the same story.")  # fmt: skip
@click.option("--model-option", "backend_options", multiple=True, metavar="KEY=VALUE",
              help="An option of the models' backend, such as num_ctx=16384; may be repeated.")  # fmt: skip
def new(
    stories: Stories, name: str, template: str | None, source: Path | None, seed: int,
    backend_options: tuple[str, ...], **given: Any,
) -> Told:  # fmt: skip
    """Begin the story NAME.

    Nothing is told yet: wsap sandbox run NAME lets it go on. The story is a recorded run of that id, so
    wsap runs, replay and export know it too. The models are part of the story; their keys never are.
    """
    options = {key: value for key, value in given.items() if value not in (None, False)}
    options |= {f"model.{key}": value for key, value in typed_pairs("--model-option", backend_options).items()}
    if source is not None:
        if template is not None or "language" in options:
            raise UsageError("--from has a world of its own; leave out --template and --language.")
        options["world"] = packed_world(read_world(source))
    else:
        options |= _template(template, name)
    check_models(options)
    stories.check_new(name)
    asyncio.run(_begin(stories, name, seed, options))
    world = stories.world(name).state
    data = {"run": name, "title": world.title, "language": world.language, "tick": world.tick,
            "characters": [one.id for one in world.characters], "places": [one.id for one in world.places]}  # fmt: skip
    counted = f"{len(world.characters)} characters, {len(world.places)} places"
    return data, f"{wrapped(f'{world.title}. {world.premise}')}\n\n{counted}. Go on: wsap sandbox run {name}"


def check_models(options: Mapping[str, Any]) -> None:
    """Refuse models that nobody offers, before a story is begun with them.

    Raises UsageError if an address names no installed backend.
    """
    from wsap_core.host import PluginHost  # deferred for weight
    from wsap_llm.kit import find_backend

    for address in sorted(set(SandboxOptions.read(options).models.values()) - {STORYTELLER}):
        find_backend(PluginHost.discovered(), address)


async def _begin(stories: Stories, name: str, seed: int, options: dict[str, Any]) -> None:
    models: Any = stories.services.models
    async with aclosing(models):
        await stories.runner.play(
            "sandbox", {}, seed=seed, options=options, run=name, steps=0, snapshot_every=_SNAPSHOT_EVERY
        )


def _template(template: str | None, name: str) -> dict[str, Any]:
    """Return the options that name a template."""
    from wsap_sandbox.templates.loader import template_names

    if template is None:
        return {"template": name} if name in template_names() else {}
    path = Path(template).expanduser()
    is_file = template not in template_names() and (path.suffix == ".toml" or "/" in template)
    return {"template": str(path.resolve()) if is_file else template}


def read_world(path: Path) -> dict[str, Any]:
    """Return the world in a file that `wsap sandbox export --format world` wrote.

    Raises UsageError if it can't be read, or is something else.
    """
    from wsap_core.textfile import read_text
    from wsap_sandbox.model import World, load

    try:
        data = json.loads(read_text(path, "The world file"))
        if data["format"] != WORLD_FORMAT:
            raise ValueError
        world: dict[str, Any] = data["world"]
        load(world, World)
    except SnapshotError as error:
        raise UsageError(f"{path} can't be used: {error}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"{path} is not a world file; wsap sandbox export --format world writes one.") from error
    return world

"""From a template's name or file to a world, or to one sentence that says what is wrong with the file."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from wsap_core.errors import ConfigError, UnknownNameError
from wsap_core.textfile import read_text
from wsap_sandbox.model import LANGUAGES, Character, Place, World, WorldObject, adapter_of, faults
from wsap_sandbox.templates import shape as shapes
from wsap_sandbox.templates.checks import template_faults
from wsap_sandbox.templates.shape import TemplateShape

_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


def template_names() -> tuple[str, ...]:
    """Return the names of the worlds that come with the plugin."""
    return tuple(sorted({file.name.split(".")[0] for file in _home().iterdir() if file.name.endswith(".toml")}))


def read_template(name: str, language: str = "en") -> TemplateShape:
    """Return a template, checked: one that comes with the plugin, in a language, or a file (its path ends in `.toml`).

    Raises UnknownNameError if there is none of that name; ConfigError if the language is none of `LANGUAGES`, or
    something is wrong with the file: the sentence names the file, the key, and what to do.
    """
    if "/" in name or "\\" in name or name.endswith(".toml"):
        return parse_template(read_text(Path(name), "The template"), name)
    if language not in LANGUAGES:
        raise ConfigError(f"There is no language {language!r}; choose {' or '.join(LANGUAGES)}.")
    if name not in template_names():
        known = template_names()
        hint = f"There are {', '.join(known)}; the path of a file of your own ends in .toml."
        raise UnknownNameError("template", name, known, hint=hint)
    return _bundled(name, language)


@cache
def _bundled(name: str, language: str) -> TemplateShape:
    file = f"{name}.{language}.toml"
    return parse_template((_home() / file).read_text("utf-8"), file)


def bundled_templates() -> tuple[TemplateShape, ...]:
    """Return every template that comes with the plugin, in all languages."""
    return tuple(_bundled(name, language) for name in template_names() for language in LANGUAGES)


def parse_template(text: str, file: str) -> TemplateShape:
    """Return the template that a text in TOML holds, checked; errors call it by the name `file`.

    Raises ConfigError if something is wrong with it.
    """
    from pydantic import ValidationError  # deferred for weight: the command line loads this module

    try:
        shape: TemplateShape = adapter_of(TemplateShape).validate_python(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}.") from error
    except ValidationError as error:
        # A misspelt key is one that is missing, too.
        first = min(error.errors(include_url=False), key=lambda one: one["type"] not in _UNKNOWN)
        raise ConfigError(_told(first, text, file)) from error
    if fault := next(template_faults(shape), None) or next(faults(world_of(shape)), None):
        raise ConfigError(f"{file}: {fault}")
    return shape


def template_schema() -> dict[str, Any]:
    """Return the JSON Schema of a template."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **adapter_of(TemplateShape).json_schema()}


def world_of(shape: TemplateShape, seed: int = 0) -> World:
    """Return the world that a checked template describes, before its first tick."""
    exits, objects = exits_of(shape), shape.objects
    places = (
        Place(
            one.id, one.name, _plain(one.description), _plain(one.moment), exits[one.id],
            tuple(thing.id for thing in objects if thing.place == one.id),
        )
        for one in shape.places
    )  # fmt: skip
    characters = (
        Character(
            one.id, one.name, _plain(one.appearance), _plain(one.description), one.place, one.triggers,
            _plain(one.secret), one.state, one.intent, tuple(thing.id for thing in objects if thing.holder == one.id),
        )
        for one in shape.characters
    )  # fmt: skip
    things = (WorldObject(one.id, one.name, _plain(one.description), (*one.stages, "")[0]) for one in objects)
    about = shape.world
    return World(
        about.name, about.language, tuple(places), tuple(characters), tuple(things), _plain(about.about), about.cells,
        seed=seed,
    )  # fmt: skip


def exits_of(shape: TemplateShape) -> dict[str, tuple[str, ...]]:
    """Return where one can go from each place, by ids."""
    topology = shape.world.topology
    if topology.kind == "graph":
        return {one.id: (*one.exits, *one.one_way) for one in shape.places}
    order = topology.places or tuple(one.id for one in shape.places)
    width = topology.width if topology.kind == "field" else len(order)
    found: dict[str, list[str]] = {one: [] for one in order}
    for at, one in enumerate(order):
        if at % width + 1 < width and at + 1 < len(order):
            found[one].append(order[at + 1])
            found[order[at + 1]].append(one)
        if at + width < len(order):
            found[one].append(order[at + width])
            found[order[at + width]].append(one)
    one_way = {one.id: one.one_way for one in shape.places}
    return {one: (*found[one], *one_way[one]) for one in order}


def _told(error: Any, text: str, file: str) -> str:
    where, keys = _where(error["loc"], tomllib.loads(text))
    kind, key = error["type"], str(error["loc"][-1]) if error["loc"] else ""
    if kind in ("missing", "missing_argument"):
        return f"{file}: {where}has no {key!r}; write {key} = ..."
    if kind in _UNKNOWN:
        near = difflib.get_close_matches(key, keys, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(keys)}."
        return f"{file}: {where}has no key {key!r}; {hint}"
    said = str(error["msg"]).removeprefix("Input should be ").removeprefix("a valid ").split(", unable")[0]
    said = {"string": "text in quotes", "integer": "a whole number", "boolean": "true or false"}.get(said, said)
    return f"{file}: {where}{key!r} must be {said}."


def _where(path: tuple[int | str, ...], data: Any) -> tuple[str, list[str]]:
    """Return what part of the file a path leads to (`characters 'anna' `), and the keys that it takes."""
    words: list[str] = []
    kind: Any = TemplateShape
    for step in path[:-1]:
        data = data[step]
        if isinstance(step, str):
            words.append(step)
            kind = _SHAPES.get(step, kind)
        elif isinstance(data, dict):
            words.append(repr(data["id"]) if isinstance(data.get("id"), str) else f"number {step + 1}")
    keys = [str(one.metadata.get("alias", one.name)) for one in fields(kind)]
    return (" ".join(words) + ": " if words else ""), keys


def _plain(text: str) -> str:
    return " ".join(text.split())


def _home() -> Any:  # importlib.resources' Traversable
    return resources.files("wsap_sandbox") / "templates"


_SHAPES: dict[str, type] = {
    "world": shapes.WorldShape, "topology": shapes.TopologyShape, "places": shapes.PlaceShape, "aims": shapes.Aim,
    "characters": shapes.CharacterShape, "objects": shapes.ObjectShape, "stakes": shapes.StakeShape,
}  # fmt: skip

"""The options of a sandbox, and what they make of its spec."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from wsap_core.errors import ConfigError, SnapshotError
from wsap_core.seams.options import read_option, with_prefix
from wsap_core.specs import AdapterSpec
from wsap_sandbox.plugin import OPTIONS
from wsap_sandbox.tick import Settings

if TYPE_CHECKING:
    from wsap_sandbox.model import World

# Any, in this module: options have every kind of value.

STORYTELLER = "storyteller"
"""The model of a world for which none is named: the one that comes with the plugin."""
PHASES = ("intent", "scene", "story", "memory")
"""What models are asked for, in the order of a tick."""


@dataclass(frozen=True)
class SandboxOptions(Settings):
    """The options of a sandbox, checked."""

    template: str = "village"
    """The name or file of the template."""
    language: str = "en"
    """The language of a template that comes with the plugin."""
    world: Mapping[str, Any] | None = None
    """A world as `wsap_sandbox.model.dump` gives it, in place of the template."""
    cells: int | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    """Phase -> the model's address."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """The options that begin with `model.`, for the backends."""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> SandboxOptions:
        """Return the options that were given. Raises ConfigError if one can't be."""
        own = [known for known in OPTIONS if known.name != "world" and "." not in known.name]
        read = {known.name: read_option(known, given[known.name]) for known in own if given.get(known.name) is not None}
        model = read.pop("model", STORYTELLER)
        models = {phase: read.pop(f"{phase}_model", model) for phase in PHASES}
        return cls(**read, world=_world(given.get("world")), models=models, own=with_prefix(given, "model."))

    @property
    def asked(self) -> list[str]:
        """The addresses of the language models among them, each once: all but the storyteller, which asks nobody."""
        return sorted({address for address in self.models.values() if address.partition("/")[0] != STORYTELLER})

    def begin(self, seed: int) -> World:
        """Return the world before its first tick, or the given one as it goes on.

        Raises ConfigError if the template or the world is not what it should be.
        """
        from wsap_sandbox.model import World, load  # deferred for weight: a listing of games reads this module
        from wsap_sandbox.templates.loader import read_template, world_of

        if self.world is None:
            world = world_of(read_template(self.template, self.language), seed)
        else:
            try:
                world = load(self.world, World)
            except SnapshotError as error:
                raise ConfigError(f"The option world can't be used: {error}") from error
        return world if self.cells is None else replace(world, cells=self.cells)


def variant(spec: AdapterSpec, options: Mapping[str, Any]) -> AdapterSpec:
    """Return the spec of the world that the options describe: its title, seats, language, and objective in it."""
    from wsap_sandbox.languages import words_of  # deferred for weight

    world = SandboxOptions.read(options).begin(0)
    names = tuple(one.id for one in world.characters)
    objective = words_of(world.language).objective or spec.objective
    spec = replace(spec, title=world.title, language=world.language, objective=objective)
    return replace(spec, seats=(0, max(1, len(names))), seat_names=names)


def _world(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, str):
        with suppress(ValueError, zlib.error, RecursionError):
            value = json.loads(zlib.decompress(b64decode(value, validate=True)))
    if value is not None and not isinstance(value, Mapping):
        raise ConfigError("The option world is no world; begin from a world file: wsap sandbox new NAME --from FILE")
    return value


def packed_world(world: Mapping[str, Any]) -> str:
    """Return a world as the text that the option `world` takes; nothing in it is taken for a key or a password."""
    return b64encode(zlib.compress(json.dumps(world, sort_keys=True).encode(), 9)).decode()

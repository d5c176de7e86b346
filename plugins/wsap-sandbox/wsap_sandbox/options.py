"""The options of a sandbox, and its spec under them."""

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
"""The default model, which comes with the plugin."""
PHASES = ("intent", "scene", "story", "memory")
"""Kinds of model calls, in the order of a tick."""


@dataclass(frozen=True)
class SandboxOptions(Settings):
    """Validated options of a sandbox."""

    template: str = "village"
    language: str = "en"
    """The language of a bundled template."""
    world: Mapping[str, Any] | None = None
    """Output of `wsap_sandbox.model.dump`, used instead of the template."""
    cells: int | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, Any] = field(default_factory=dict)
    """Options with the prefix `model.`, for the backends."""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> SandboxOptions:
        """Return the validated options. Raises ConfigError if one is invalid."""
        own = [known for known in OPTIONS if known.name != "world" and "." not in known.name]
        read = {known.name: read_option(known, given[known.name]) for known in own if given.get(known.name) is not None}
        model = read.pop("model", STORYTELLER)
        models = {phase: read.pop(f"{phase}_model", model) for phase in PHASES}
        return cls(**read, world=_world(given.get("world")), models=models, own=with_prefix(given, "model."))

    @property
    def asked(self) -> list[str]:
        """The sorted, unique addresses of the language models, without the storyteller."""
        return sorted({address for address in self.models.values() if address.partition("/")[0] != STORYTELLER})

    def begin(self, seed: int) -> World:
        """Return the template's world before its first tick, or the given world.

        Raises ConfigError if the template or the world is invalid.
        """
        from wsap_sandbox.model import World, load  # deferred for weight: listings of games import this module
        from wsap_sandbox.templates.loader import read_template, world_of

        if self.world is None:
            world = world_of(read_template(self.template, self.language), seed)
        else:
            try:
                world = load(self.world, World)
            except SnapshotError as error:
                raise ConfigError(f"The option world is invalid: {error}") from error
        return world if self.cells is None else replace(world, cells=self.cells)


def variant(spec: AdapterSpec, options: Mapping[str, Any]) -> AdapterSpec:
    """Return the spec with the title, seats, language and objective of the world that the options describe."""
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
        raise ConfigError("The option world is invalid; start from a world file: wsap sandbox new NAME --from FILE")
    return value


def packed_world(world: Mapping[str, Any]) -> str:
    """Return a world encoded for the option `world`, so that no text in it is mistaken for a key or password."""
    return b64encode(zlib.compress(json.dumps(world, sort_keys=True).encode(), 9)).decode()

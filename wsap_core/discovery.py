"""Finds the installed plugins without importing them."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass

GROUP = "wsap"
"""The entry-point group that plugins register under."""


@dataclass(frozen=True)
class FoundPlugin:
    """An installed entry point."""

    name: str
    """Its name in the entry-point group, by which users can block it."""
    module: str
    """The light module to import."""
    distribution: str
    """The package that contains it, as pip names it."""
    version: str


def find_plugins() -> list[FoundPlugin]:
    """Return the installed plugins, sorted by name."""
    found = []
    for point in importlib.metadata.entry_points(group=GROUP):
        package = point.dist
        name, version = (package.name or "", package.version or "") if package is not None else ("", "")
        found.append(FoundPlugin(point.name, point.module, name, version))
    return sorted(found, key=lambda plugin: (plugin.name, plugin.distribution))

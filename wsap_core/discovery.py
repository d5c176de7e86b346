"""Which plugins are installed, without importing any of them.

`importlib.metadata` gives the same answer but costs more than the whole rest of `wsap --help`,
so the entry-point files are read directly; whatever is not a plain folder on the path falls
back to the standard way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

GROUP = "wsap"
"""The entry-point group that plugins register under."""


@dataclass(frozen=True)
class FoundPlugin:
    """An installed entry point."""

    name: str
    """Its name in the group; how a user blocks it."""
    module: str
    """The light module to import."""
    distribution: str
    """The package it came with, as pip names it."""
    version: str


def find_plugins(path: Iterable[str] | None = None) -> list[FoundPlugin]:
    """Return the installed plugins, sorted by name; an earlier folder on the path hides a later one's package."""
    seen: set[str] = set()
    found: list[FoundPlugin] = []
    for folder in sys.path if path is None else path:
        for distribution, version, text in _entry_point_files(folder or "."):
            key = distribution.lower().replace("_", "-")
            if key in seen:
                continue
            seen.add(key)
            found += [FoundPlugin(n, m, distribution.replace("_", "-"), version) for n, m in parse_group(text)]
    return sorted(found, key=lambda p: (p.name, p.distribution))


def parse_group(text: str, group: str = GROUP) -> list[tuple[str, str]]:
    """Return the (name, module) pairs of one group of an `entry_points.txt`."""
    pairs: list[tuple[str, str]] = []
    inside = False
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            inside = line == f"[{group}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            pairs.append((name.strip(), value.split("[", 1)[0].split(":", 1)[0].strip()))
    return pairs


def _entry_point_files(folder: str) -> Iterator[tuple[str, str, str]]:
    """Give (distribution, version, text) for each entry-point file of a folder that names our group."""
    try:
        names = sorted(os.listdir(folder))
    except NotADirectoryError:
        yield from _from_archive(folder)
        return
    except OSError:
        return
    for name in names:
        if not name.endswith((".dist-info", ".egg-info")):
            continue
        try:
            with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError):
            continue
        if f"[{GROUP}]" in text:
            distribution, _, version = name.rsplit(".", 1)[0].partition("-")
            yield distribution, version, text


def _from_archive(folder: str) -> Iterator[tuple[str, str, str]]:
    import importlib.metadata  # deferred for weight: only for zip files on the path

    for distribution in importlib.metadata.distributions(path=[folder]):
        text = distribution.read_text("entry_points.txt") or ""
        if f"[{GROUP}]" in text:
            yield distribution.metadata["Name"], distribution.version, text

"""Which plugins are installed, without importing any of them.

`importlib.metadata` gives the same answer (a test compares the two) but costs more than the whole
rest of `wsap --help`, so the entry-point files are read directly; whatever is not a plain folder
on the path falls back to the standard way.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

GROUP = "wsap"
"""The entry-point group that plugins register under."""

_SEPARATORS = re.compile(r"[-_.]+")


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
    source: str = ""
    """The file that says so; empty for a plugin that was not found in one."""


@dataclass(frozen=True)
class _Distribution:
    """A distribution that may have plugins."""

    key: str
    """Its name, normalised; an earlier one on the path hides a later one of the same key."""
    name: str = ""
    version: str = ""
    entry_points: str = ""
    """The text of its entry points where our group is among them, else empty."""
    source: str = ""


def find_plugins(path: Iterable[str] | None = None) -> list[FoundPlugin]:
    """Return the installed plugins, sorted by name.

    Args:
        path: folders and zip files to look into; `sys.path` when None. An earlier one hides the
            packages of a later one, as with imports.
    """
    seen: set[str] = set()
    found: list[FoundPlugin] = []
    for folder in sys.path if path is None else path:
        for it in _distributions(folder or "."):
            if it.key in seen:
                continue
            seen.add(it.key)
            pairs = parse_group(it.entry_points)
            found += [FoundPlugin(name, module, it.name, it.version, it.source) for name, module in pairs]
    return sorted(found, key=lambda p: (p.name, p.distribution))


def parse_group(text: str, group: str = GROUP) -> list[tuple[str, str]]:
    """Return the (name, module) pairs of one group of an `entry_points.txt`."""
    pairs: list[tuple[str, str]] = []
    inside = False
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            inside = line == f"[{group}]"
        elif inside and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            pairs.append((name.strip(), value.split("[", 1)[0].split(":", 1)[0].strip()))
    return pairs


def _distributions(folder: str) -> Iterator[_Distribution]:
    """Give every distribution of a folder or zip file, in a fixed order."""
    if folder.rstrip("/\\").lower().endswith(".egg"):
        yield from _from_archive(folder)
        return
    try:
        names = sorted(os.listdir(folder))
    except NotADirectoryError:
        yield from _from_archive(folder)
        return
    except OSError:
        return
    for name in names:
        stem, dot, ending = name.rpartition(".")
        if dot and ending.lower() in ("dist-info", "egg-info"):
            yield _read(folder, name, _normalised(stem.partition("-")[0]))


def _read(folder: str, name: str, key: str) -> _Distribution:
    source = os.path.join(folder, name, "entry_points.txt")
    text = _text(source)
    if f"[{GROUP}]" not in text:
        return _Distribution(key)
    headers: dict[str, str] = {}
    for line in (
        _text(os.path.join(folder, name, "METADATA")) or _text(os.path.join(folder, name, "PKG-INFO"))
    ).splitlines():
        if not line:
            break  # the description follows
        label, _, value = line.partition(":")
        headers.setdefault(label.lower(), value.strip())
    named, _, version = name.rpartition(".")[0].partition("-")
    return _Distribution(key, headers.get("name", named), headers.get("version", version), text, source)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def _normalised(name: str) -> str:
    return _SEPARATORS.sub("-", name).lower()


def _from_archive(folder: str) -> Iterator[_Distribution]:
    import importlib.metadata  # deferred for weight: only for zip files and eggs on the path

    for distribution in importlib.metadata.distributions(path=[folder]):
        name = distribution.metadata["Name"]
        text = distribution.read_text("entry_points.txt") or ""
        ours = f"[{GROUP}]" in text
        yield _Distribution(_normalised(name), name, distribution.version, text if ours else "", folder)

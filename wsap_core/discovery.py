"""Finds the installed plugins without importing them."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

import wsap_core

GROUP = "wsap"
"""The entry-point group that plugins register under."""

_KERNEL = re.compile(r"wsap[-_.]core(?![\w.-])(?:\[[^\]]*\])?\s*\(?([^;)]*)", re.IGNORECASE)
_CLAUSE = re.compile(r"(~=|==|>=|>)\s*v?(\d[\w.]*)")


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
    problem: str = ""
    """Why it can't be used, found without importing it; empty if nothing is known."""


def find_plugins() -> list[FoundPlugin]:
    """Return the installed plugins, sorted by name; one whose package has an empty metadata folder, or requires another
    major version of the kernel, has a `problem`."""
    found = _without_metadata()
    for point in importlib.metadata.entry_points(group=GROUP):
        about = point.dist.metadata if point.dist is not None else Message()  # read once; it contains the whole readme
        name, version = about["Name"] or "", about["Version"] or ""
        problem = _unmet(about.get_all("Requires-Dist") or (), name)
        found.append(FoundPlugin(point.name, point.module, name, version, problem))
    return sorted(found, key=lambda plugin: (plugin.name, plugin.distribution))


def _unmet(requirements: Iterable[str], name: str) -> str:
    """Return what is wrong if a package requires a kernel of another major version (before 1.0, of another minor)."""
    for requirement in requirements:
        match = _KERNEL.match(requirement)
        for operator, number in _CLAUSE.findall(match[1]) if match else ():
            wanted, ours = _release(number), _release(wsap_core.__version__)
            major = 1 if wanted[0] or ours[0] else 2
            higher, lower = wanted[:major] > ours[:major], wanted[:major] < ours[:major]
            if (operator in ("~=", "==") and (higher or lower)) or (operator in (">=", ">") and higher):
                needs = f"{name} is for wsap-core {operator}{number}, and this is {wsap_core.__version__}"
                return f"{needs}; install matching versions of both."
    return ""


def _release(number: str) -> tuple[int, ...]:
    return (*map(int, re.findall(r"\d+", number)[:2]), 0)[:2]


def _without_metadata() -> list[FoundPlugin]:
    """Return the packages named `wsap-...` whose metadata folder is empty, as after an interrupted removal. Such a
    folder hides the plugins of the same package further on in the path."""
    found = []
    for place in dict.fromkeys(sys.path):
        folders: list[Path] = []
        with suppress(OSError):  # like Python itself, pass over what this user can't read
            folders = sorted(Path(place or ".").glob("wsap[_-]*.dist-info"))
        for folder in folders:
            if not (folder / "METADATA").is_file():
                name, _, version = folder.name.removesuffix(".dist-info").partition("-")
                problem = f"Its metadata folder {folder} is empty; remove the folder, or install the package again."
                plugin, package = name.removeprefix("wsap_"), name.replace("_", "-")
                found.append(FoundPlugin(plugin, "", package, version, problem))
    return found

"""Loads objects by reference: `./game.py:Game` or `package.module:Game`."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import sys
import types
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wsap_core.errors import PluginError, UnknownNameError, UsageError
from wsap_core.untrusted import error_line

# Any, in this module: a reference may name anything.

_FILE = re.compile(r"~|[A-Za-z]:[/\\]|[^:]*[/\\]|[^:]*\.py(:[\w.]*)?$")
_MODULE = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9_-]*/.+")
_SOURCE = re.compile(r"\.py(:|$)")

MODEL_AGENT = "llm"
"""The agent that plays when a model's address is given instead of an agent."""


def names_file(text: str) -> bool:
    """Return whether a text is a path: it starts with `./`, `/`, `~` or a drive, or ends in `.py:Name`."""
    return _FILE.match(text) is not None


def names_object(text: str) -> bool:
    """Return whether a text can name an object in a file or module rather than a registered name."""
    return names_file(text) or _MODULE.fullmatch(text) is not None


def names_model(text: str) -> bool:
    """Return whether a text has the form of a model's address, BACKEND/MODEL, rather than of a path."""
    return _ADDRESS.fullmatch(text) is not None and _SOURCE.search(text) is None


def load_object(reference: str) -> Any:
    """Import and return what `file.py:Name` or `module:Name` names.

    A file is imported under a private module name, and again only when it or one of its `source_files` has changed.
    Its folder is appended to `sys.path`, so that it can import its neighbours.

    Raises:
        UsageError: no name is given, or the path is not that of a `.py` file.
        UnknownNameError: there is no such file or attribute; the message suggests similar ones.
        PluginError: the import fails.
    """
    place, _, attribute = reference.rpartition(":")
    if not place or attribute.endswith(".py"):
        place, attribute = reference, ""
    if names_file(reference) and not place.endswith(".py"):
        raise UsageError(f"Invalid reference {reference!r}; use ./file.py:Name for an object in a file.")
    module = _import_file(place) if place.endswith(".py") else _import_module(place)
    if not attribute:
        raise UsageError(f"Name an object in {place}, for instance {_example(place, module)}.")
    target: Any = module
    for part in attribute.split("."):
        if not hasattr(target, part):
            raise UnknownNameError(f"attribute of {place}", attribute, _public_names(module))
        target = getattr(target, part)
    return target


def portable_reference(factory: object) -> str | None:
    """Return a reference by which `load_object` finds a factory in another process; None for one that has none, such
    as an instance or a class defined inside a function."""
    if isinstance(factory, str):
        return factory
    name = getattr(factory, "__qualname__", "")
    module = sys.modules.get(getattr(factory, "__module__", None) or "")
    if module is None or not name or "<" in name:
        return None
    file = getattr(module, "__file__", None)
    importable = getattr(module, "__spec__", None) is not None and not module.__name__.startswith(_PRIVATE)
    if importable and _found_again(module.__name__, file):
        return f"{module.__name__}:{name}"
    return f"{Path(file).resolve()}:{name}" if file and file.endswith(".py") else None


def source_files(path: Path) -> tuple[Path, ...]:
    """Return a Python file and the modules that it imports from beside it, transitively, sorted after the first.

    Of a package beside it, all its Python files are returned. Imports are read from the text, so that those by
    `importlib` are not found; a file that can't be read as Python imports nothing.
    """
    found: set[Path] = set()
    waiting = [path.resolve()]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        for name in _imported_names(file):
            module, package = path.resolve().parent / f"{name}.py", path.resolve().parent / name
            if (package / "__init__.py").is_file():
                waiting += sorted(package.rglob("*.py"))
            elif module.is_file():
                waiting.append(module)
    return (path.resolve(), *sorted(found - {path.resolve()}))


def _imported_names(file: Path) -> set[str]:
    """Return the first parts of the modules that a file imports absolutely, without those of Python itself."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return set()
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names


_PRIVATE = "_wsap_file_"
_STAMP = "_wsap_stamp"
"""The attribute of an imported file or neighbour with its time of change."""


def _import_file(place: str) -> types.ModuleType:
    path = Path(place).expanduser()
    if not path.is_file():
        folder = path.parent
        beside = [p.name for p in sorted(folder.glob("*.py"))] if folder.is_dir() else []
        raise UnknownNameError(f"file in {folder}", path.name, beside, hint="Check the path.")
    path = path.resolve()
    name = f"{_PRIVATE}{path.stem}_{zlib.crc32(os.fsencode(path)):08x}"
    known = sys.modules.get(name)
    stamps = {file: file.stat().st_mtime_ns for file in source_files(path)}
    if known is not None and getattr(known, _STAMP, None) == stamps:
        return known
    _forget_changed(stamps)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{place} can't be imported as Python.")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and typing look up a class's module by name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        sys.modules.pop(name, None)
        if not isinstance(error, Exception | SystemExit):
            raise
        raise PluginError(f"{place} can't be imported: {_why(error, path)}") from error
    vars(module)[_STAMP] = stamps
    for file, neighbour in _neighbours(stamps):
        vars(neighbour)[_STAMP] = stamps[file]
    return module


def _neighbours(stamps: Mapping[Path, int]) -> list[tuple[Path, types.ModuleType]]:
    """Return the imported modules of these files, without those imported under a private name."""
    files = {str(file): file for file in stamps}
    return [
        (files[origin], module)
        for name, module in list(sys.modules.items())
        if not name.startswith(_PRIVATE) and (origin := getattr(module, "__file__", None)) in files
    ]


def _forget_changed(stamps: Mapping[Path, int]) -> None:
    """Have the next import read the neighbours again if one has changed since they were imported for a file.

    The unchanged ones, too, since they hold what they took from it.
    """
    imported = _neighbours(stamps)
    if any(getattr(module, _STAMP, stamps[file]) != stamps[file] for file, module in imported):
        for _, module in imported:
            sys.modules.pop(module.__name__, None)


def _import_module(name: str) -> types.ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise PluginError(f"The module {name!r} can't be imported: {_why(error)}") from error


def _found_again(name: str, file: str | None) -> bool:
    """Return whether another process with the same path imports this file by that name."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return False
    return found is not None and name != "__main__" and (found.origin == file or file is None)


def _why(error: BaseException, path: Path | None = None) -> str:
    if isinstance(error, SyntaxError) and error.lineno:
        where = f"line {error.lineno}" if path and error.filename == str(path) else f"{error.filename}:{error.lineno}"
        return f"{where}: {error.msg}."
    line = ""
    trace = error.__traceback__
    while trace is not None:
        if path is not None and trace.tb_frame.f_code.co_filename == str(path):
            line = f" (line {trace.tb_lineno})"
        trace = trace.tb_next
    return f"{error_line(error, kind=True)}{line}."


def _public_names(module: types.ModuleType) -> list[str]:
    return [n for n, v in vars(module).items() if not n.startswith("_") and callable(v)]


def _example(place: str, module: types.ModuleType) -> str:
    own = [n for n in _public_names(module) if getattr(getattr(module, n), "__module__", "") == module.__name__]
    return f"{place}:{own[-1] if own else 'Game'}"

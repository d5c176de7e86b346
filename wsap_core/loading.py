"""Loads objects by reference: `./game.py:Game` or `package.module:Game`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import types
import zlib
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

    A file is imported under a private module name, and again only when it has changed. Its folder
    is appended to `sys.path`, so that it can import its neighbours.

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


_PRIVATE = "_wsap_file_"


def _import_file(place: str) -> types.ModuleType:
    path = Path(place).expanduser()
    if not path.is_file():
        folder = path.parent
        beside = [p.name for p in sorted(folder.glob("*.py"))] if folder.is_dir() else []
        raise UnknownNameError(f"file in {folder}", path.name, beside, hint="Check the path.")
    path = path.resolve()
    name = f"{_PRIVATE}{path.stem}_{zlib.crc32(os.fsencode(path)):08x}"
    stamp = path.stat().st_mtime_ns
    known = sys.modules.get(name)
    if known is not None and getattr(known, "_wsap_stamp", None) == stamp:
        return known
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
    vars(module)["_wsap_stamp"] = stamp
    return module


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

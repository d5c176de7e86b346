"""The cached catalogue of what is installed, for listings and for finding commands.

Loading all plugins takes a third of a second, and the result changes only when something is installed, removed or
edited. So it is stored with everything that it depends on: the Python and the kernel, the folders on `sys.path`, and
the files of the plugins' packages that were read; checking these takes some dozens of `stat` calls. An unreadable or
damaged cache file, or one of another user, is replaced. Nothing is stored while a plugin is broken. If what a plugin
registers depends on more than its files, `wsap plugins --refresh` updates the catalogue.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import wsap_core
from wsap_core.paths import cache_dir

if TYPE_CHECKING:
    from wsap_core.cli.rows import AgentRow, CommandRow, GameRow, PluginRow
    from wsap_core.host import PluginHost

_FORMAT = 4
_FILES = 20
"""Most cache files: one per Python environment (and folder from which a module was run)."""


class Catalogue(NamedTuple):
    """What the installed plugins register, as rows (see `rows`) that can be cached and printed."""

    # Not a dataclass, which would take longer to create than all its uses.
    plugins: list[PluginRow]
    games: list[GameRow]
    agents: list[AgentRow]
    commands: list[CommandRow]

    @classmethod
    def current(cls, *, refresh: bool = False) -> Catalogue:
        """Return the cached catalogue of this environment if it is up to date, else (or to `refresh`) a new one."""
        path = _cache_path()
        cached = None if refresh else _read(path)
        return cached if cached is not None else _build(path)

    @classmethod
    def of(cls, host: PluginHost) -> Catalogue:
        """Return the catalogue of a host's plugins."""
        from wsap_core.cli import rows  # deferred for weight: only when the plugins are loaded

        return cls(rows.plugins(host), rows.games(host), rows.agents(host), rows.commands(host))


def _stamp(path: str) -> list[int] | None:
    """Return the time of change (ns) and size of a file or folder; None if there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return [found.st_mtime_ns, found.st_size]


def _setting() -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "python": [sys.executable, sys.version],
        "wsap": wsap_core.__version__,
        "disabled": os.environ.get("WSAP_DISABLE_PLUGINS", ""),
        "path": [os.path.abspath(folder) for folder in sys.path],
    }


def _cache_path() -> str:
    setting = _setting()
    which = repr((setting["python"], setting["path"], setting["disabled"]))
    return os.path.join(cache_dir(), f"catalogue-{zlib.crc32(which.encode(errors='replace')):08x}.json")


def _package_files(modules: list[str]) -> list[str]:
    packages = {name.partition(".")[0] for name in modules}
    loaded = sorted((n, m) for n, m in list(sys.modules.items()) if n.partition(".")[0] in packages)
    return [file for _, module in loaded if isinstance(file := getattr(module, "__file__", None), str)]


def _read(path: str) -> Catalogue | None:
    """Return the cached catalogue if it is ours, undamaged and up to date."""
    try:
        with open(path, encoding="utf-8") as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            checksum, _, text = file.read().partition("\n")
        if checksum != _checksum(text):
            return None
        data = json.loads(text)
        if data["setting"] != _setting() or any(_stamp(p) != s for p, s in data["stamps"].items()):
            return None
        return Catalogue(**{kind: data[kind] for kind in Catalogue._fields})
    except (OSError, ValueError, LookupError):
        return None


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _is_ours(found: os.stat_result) -> bool:
    """Return whether no other user could have written a file; it names modules to import."""
    if not hasattr(os, "getuid"):
        return True  # on Windows, a user's folders are private
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _build(path: str) -> Catalogue:
    from wsap_core.host import PluginHost  # deferred for weight: pluggy and the protocol's types come with it

    setting = _setting()
    # Before the plugins are loaded, so that changes during it make the result stale.
    stamps = {folder: _stamp(folder) for folder in setting["path"]}
    catalogue = Catalogue.of(PluginHost.discovered())
    if any(row["status"] == "broken" for row in catalogue.plugins):
        return catalogue
    modules = [row["module"] for row in catalogue.plugins if row["status"] != "disabled"]
    stamps |= {file: _stamp(file) for file in _package_files(["wsap_core", *modules])}
    data = {"setting": setting, "stamps": stamps, **catalogue._asdict()}
    with contextlib.suppress(OSError, ValueError):
        text = json.dumps(data, separators=(",", ":"))
        _write(path, f"{_checksum(text)}\n{text}")
    return catalogue


def _write(path: str, text: str) -> None:
    """Write a file atomically, and remove the oldest of too many."""
    import tempfile  # deferred for weight

    folder = os.path.dirname(path)
    # One by one, because `makedirs` does not apply the mode to parent folders.
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix="catalogue-", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    files = [e for e in os.scandir(folder) if e.name.startswith("catalogue-")]
    for old in sorted(files, key=lambda e: e.stat().st_mtime_ns)[:-_FILES]:
        with contextlib.suppress(OSError):
            os.unlink(old.path)

"""What is installed, cached in a file between one `wsap` and the next.

Asking every plugin what it offers takes a third of a second, most of it imports, and the answer changes only when
something is installed, removed or edited. So the answer is stored together with everything that it depends on: the
Python and the kernel, the folders that modules come from, and the files of the plugins' own packages that were read.
Checking these is some dozens of `stat` calls. A file that is unreadable, damaged or somebody else's is ignored and
written again; where nothing can be written, all goes on without.

This is for listing, and for finding the command that was typed. Whatever runs a game asks a `PluginHost`. While a
plugin is broken nothing is stored, so that mending it shows at once. A plugin whose offers depend on more than its
files (a program that may be installed, say) is out of date until something else changes; `wsap plugins --refresh` asks
again.
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

_FORMAT = 3
_FILES = 20
"""How many files are kept: one for each Python environment (and folder that a module was run from)."""


class Catalogue(NamedTuple):
    """What every installed plugin offers, as rows that can be cached and printed; each kind in the order of `rows`."""

    # Not a dataclass, whose making takes longer than all that is done with this one.
    plugins: list[PluginRow]
    games: list[GameRow]
    agents: list[AgentRow]
    commands: list[CommandRow]

    @classmethod
    def current(cls, *, refresh: bool = False) -> Catalogue:
        """Return the cached catalogue of this environment where it still holds, else (or to `refresh`) a new one."""
        path = _cache_path()
        cached = None if refresh else _read(path)
        return cached if cached is not None else _build(path)

    @classmethod
    def of(cls, host: PluginHost) -> Catalogue:
        """Return what a host's plugins offer."""
        from wsap_core.cli import rows  # deferred for weight: only when the plugins are asked

        return cls(rows.plugins(host), rows.games(host), rows.agents(host), rows.commands(host))


def _stamp(path: str) -> list[int] | None:
    """Return when a file or folder was changed (ns) and its size; None where there is none."""
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
    """Return the cached catalogue if it is ours, as it was written, and still true."""
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
    """Return whether nobody else could have written a file; it names modules that will be imported."""
    if not hasattr(os, "getuid"):
        return True  # Windows keeps a user's folders to the user
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _build(path: str) -> Catalogue:
    from wsap_core.host import PluginHost  # deferred for weight: pluggy and the protocol's types come with it

    setting = _setting()
    # Before the plugins are asked, so that what changes meanwhile makes the answer stale.
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
    """Put a file in place as a whole, so that nobody reads half of it, and drop the oldest of many."""
    import tempfile  # deferred for weight: only when something was installed

    folder = os.path.dirname(path)
    # One by one: the mode is not given to the folders above, and this may be the first that makes them.
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

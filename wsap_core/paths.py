"""Where WSAP keeps its files, and those that can be thrown away."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HOME_VARIABLE = "WSAP_HOME"
"""Environment variable: one folder for everything that WSAP writes."""


def cache_dir(environ: Mapping[str, str] | None = None) -> str:
    """Return the folder for caches, which need not exist: `cache` in `WSAP_HOME` where `environ` (the process's own
    variables when None) sets that, and the platform's cache folder otherwise."""
    env = os.environ if environ is None else environ
    if home := env.get(HOME_VARIABLE):
        return os.path.join(home, "cache")
    if sys.platform.startswith("linux") and environ is None:
        # What platformdirs answers, without its 8 ms: more than all else that `wsap --help` does of its own.
        base = env.get("XDG_CACHE_HOME", "").strip()
        return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "wsap")
    from platformdirs import user_cache_dir

    return user_cache_dir("wsap", appauthor=False)


def home(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of WSAP's files, which may not exist yet.

    `WSAP_HOME` if `environ` (as above) sets it and it is not empty (`~` is expanded), else the platform's data
    directory: `~/.local/share/wsap` on Linux (or below `XDG_DATA_HOME`), `~/Library/Application Support/wsap` on
    macOS, `%LOCALAPPDATA%\\wsap` on Windows.
    """
    from pathlib import Path  # deferred for weight: `wsap --help` needs the folder for caches alone

    chosen = (os.environ if environ is None else environ).get(HOME_VARIABLE, "").strip()
    if chosen:
        return Path(chosen).expanduser().absolute()
    from platformdirs import user_data_path  # deferred: `WSAP_HOME` does not need it

    return user_data_path("wsap", appauthor=False)

"""The folders of WSAP's data and caches."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HOME_VARIABLE = "WSAP_HOME"
"""Environment variable that names one folder for everything that WSAP writes."""


def cache_dir(environ: Mapping[str, str] | None = None) -> str:
    """Return the folder for caches, which may not exist: `cache` in `WSAP_HOME` if `environ` (by default the
    process's) sets it, else the platform's cache folder."""
    env = os.environ if environ is None else environ
    if home := env.get(HOME_VARIABLE):
        return os.path.join(home, "cache")
    if sys.platform.startswith("linux") and environ is None:
        # The answer of platformdirs without its 8 ms, which is more than the rest of `wsap --help` takes.
        base = env.get("XDG_CACHE_HOME", "").strip()
        return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "wsap")
    from platformdirs import user_cache_dir

    return user_cache_dir("wsap", appauthor=False)


def home(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder for data, which may not exist: `WSAP_HOME` (`~` is expanded) if `environ` (by default the
    process's) sets it, else the platform's data folder, such as `~/.local/share/wsap` on Linux."""
    from pathlib import Path  # deferred for weight: `wsap --help` needs only the cache folder

    chosen = (os.environ if environ is None else environ).get(HOME_VARIABLE, "").strip()
    if chosen:
        return Path(chosen).expanduser().absolute()
    from platformdirs import user_data_path  # deferred for weight

    return user_data_path("wsap", appauthor=False)

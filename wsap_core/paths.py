"""Where WSAP keeps files that can be thrown away."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

HOME_VARIABLE = "WSAP_HOME"
"""Environment variable: one folder for everything that WSAP writes."""


def cache_dir(environ: Mapping[str, str] | None = None) -> str:
    """Return the folder for caches; it need not exist.

    It is `cache` in `WSAP_HOME` where that is set, and the platform's cache folder otherwise.

    Args:
        environ: where to read variables; the process's own when None.
    """
    env = os.environ if environ is None else environ
    if home := env.get(HOME_VARIABLE):
        return os.path.join(home, "cache")
    if sys.platform.startswith("linux") and environ is None:
        # What platformdirs answers, without its 8 ms: more than all else that `wsap --help` does of its own.
        base = env.get("XDG_CACHE_HOME", "").strip()
        return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "wsap")
    from platformdirs import user_cache_dir

    return user_cache_dir("wsap", appauthor=False)

"""The paths of the runtime's files: one database in the home folder, unless `--database` or `WSAP_DATABASE` is set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wsap_core.errors import StorageReadOnlyError
from wsap_core.paths import home

DATABASE_NAME = "wsap.db"
"""The name of the database in the home folder."""


def database_location(option: str | None, environ: Mapping[str, str]) -> str:
    """Return the path or URL of the database: the option, else `WSAP_DATABASE`, else below `home`."""
    chosen = (option or "").strip() or environ.get("WSAP_DATABASE", "").strip()
    if not chosen:
        return str(home(environ) / DATABASE_NAME)
    return chosen if is_url(chosen) else str(Path(chosen).expanduser().absolute())


def prepare_home(location: str, environ: Mapping[str, str]) -> None:
    """Create the home folder, readable by its owner alone, if the database is directly in it.

    No other folder is created: a misspelt path should be an error.

    Raises:
        StorageReadOnlyError: the folder can't be created.
    """
    folder = home(environ)
    if is_url(location) or Path(location).absolute().parent != folder:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageReadOnlyError(
            f"The folder {folder} for WSAP's files can't be created ({error.strerror or error}); "
            "set WSAP_HOME to another folder, or name a database with --database."
        ) from None


def is_url(location: str) -> bool:
    """Return whether a location is a URL rather than a path."""
    return "://" in location

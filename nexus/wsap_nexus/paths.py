"""Where WSAP keeps its files on this machine.

One folder, `WSAP_HOME` or the platform's data directory, and in it one database. The database
alone can be put elsewhere: `--database`, or `WSAP_DATABASE`, with a path or a database URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wsap_core.errors import StorageReadOnlyError

DATABASE_NAME = "wsap.db"
"""The file's name below the home folder."""


def home(environ: Mapping[str, str]) -> Path:
    """Return the folder that WSAP keeps its files in; it may not exist yet.

    `WSAP_HOME` if it is set and not empty (`~` is expanded), else the platform's data directory:
    `~/.local/share/wsap` on Linux (or below `XDG_DATA_HOME`), `~/Library/Application Support/wsap`
    on macOS, `%LOCALAPPDATA%\\wsap` on Windows.
    """
    chosen = environ.get("WSAP_HOME", "").strip()
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs  # deferred for weight: `WSAP_HOME` needs none of it

    return platformdirs.user_data_path("wsap", appauthor=False)


def database_location(option: str | None, environ: Mapping[str, str]) -> str:
    """Return the path or URL of the database: the option, else `WSAP_DATABASE`, else below `home`."""
    chosen = (option or "").strip() or environ.get("WSAP_DATABASE", "").strip()
    if not chosen:
        return str(home(environ) / DATABASE_NAME)
    return chosen if is_url(chosen) else str(Path(chosen).expanduser().absolute())


def memory_files(environ: Mapping[str, str]) -> Path:
    """Return the folder below `home` in which earlier versions kept named memories; it may not exist."""
    return home(environ) / "minds"


def prepare_home(location: str, environ: Mapping[str, str]) -> None:
    """Make the home folder, readable by its owner alone, if the database is to lie directly in it.

    Any other folder is left to whoever named it: a misspelt path should be an error, not a new folder.

    Raises:
        StorageReadOnlyError: the folder can't be made.
    """
    folder = home(environ)
    if is_url(location) or Path(location).absolute().parent != folder:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageReadOnlyError(
            f"The folder {folder} for WSAP's files can't be made ({error.strerror or error}); "
            "set WSAP_HOME to a folder that can, or name a database with --database."
        ) from None


def is_url(location: str) -> bool:
    """Tell whether a location names a database by URL rather than by path."""
    return "://" in location

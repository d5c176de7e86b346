"""Migrates a database with the scripts in `migrations`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from wsap_core.errors import NotADatabaseError, StorageVersionError
from wsap_core.installing import install_line

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0.1.0"
"""The newest revision, named after the release that brought it; declared here so that opening a current database does
not import alembic."""

BEFORE_RELEASE = frozenset(f"000{number}" for number in range(1, 9))
"""Revisions from before 0.1.0, which nobody can read any more."""

SCRIPTS = Path(__file__).with_name("migrations")

APPLICATION_ID = 0x57534150
"""The application id in the header of SQLite files: "WSAP"."""

VERSION_TABLE = "alembic_version"


def revision(connection: Connection) -> str | None:
    """Return the revision of a database; None for an empty one."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608
    return found


def check_ours(connection: Connection, where: str) -> None:
    """Raise NotADatabaseError if a server's database has tables, but not WSAP's."""
    tables = set(inspect(connection).get_table_names())
    if tables and not {VERSION_TABLE, "run", "event"} <= tables:
        raise not_ours(where)


def not_ours(where: str) -> NotADatabaseError:
    """Return the error for another program's database."""
    return NotADatabaseError(f"The database {where} belongs to another program; choose another path with --database.")


def check_known(current: str | None, where: str) -> None:
    """Raise StorageVersionError if this version does not know a revision, because it is newer or from before 0.1.0."""
    if current in BEFORE_RELEASE:
        raise StorageVersionError(
            f"The database {where} is from before 0.1.0, the first release of WSAP, and can't be read; move it away, "
            "or choose another one with --database."
        )
    from alembic.script import ScriptDirectory  # deferred for weight, as below

    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if current is not None and current not in known:
        raise StorageVersionError(
            f"The database {where} was created by a newer version of WSAP (its revision is {current!r}, "
            f"this version knows up to {HEAD!r}); update with: {install_line('wsap-nexus', newer=True)}"
        )


def prepare() -> None:
    """Import what migrations need, so that this does not happen while the database is locked."""
    # Deferred for weight: only new and older databases need alembic.
    from alembic import command  # noqa: F401


def upgrade(connection: Connection, where: str) -> None:
    """Run the missing migrations in the connection's transaction; StorageVersionError as in `check_known`."""
    from alembic import command

    check_known(revision(connection), where)
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config

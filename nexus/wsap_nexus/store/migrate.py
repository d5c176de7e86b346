"""Migrates a database with the scripts in `migrations`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from wsap_core.errors import NotADatabaseError, StorageVersionError

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0006"
"""The newest revision; stated here so that opening a current database does not import alembic."""

APPLICATION_ID = 0x57534150
"""The application id in the header of WSAP's SQLite files: "WSAP"."""

VERSION_TABLE = "alembic_version"


def revision(connection: Connection) -> str | None:
    """Return the revision of a database; None for an empty one."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608
    return found


def check_ours(connection: Connection, where: str) -> None:
    """Check that a server's database is empty or has WSAP's tables; NotADatabaseError if it has other tables."""
    tables = set(inspect(connection).get_table_names())
    if tables and not {VERSION_TABLE, "run", "event"} <= tables:
        raise not_ours(where)


def not_ours(where: str) -> NotADatabaseError:
    """Return the error for a database that belongs to another program."""
    return NotADatabaseError(f"The database {where} belongs to another program; choose another place with --database.")


def check_known(current: str | None, where: str) -> None:
    """Check that this version of WSAP knows a revision.

    Raises:
        StorageVersionError: it does not, so a newer version made the database.
    """
    from alembic.script import ScriptDirectory  # deferred for weight, as below

    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if current is not None and current not in known:
        raise StorageVersionError(
            f"The database {where} was made by a newer version of WSAP (its revision is {current!r}, "
            f"this version knows up to {HEAD!r}); update with: pip install --upgrade wsap-nexus"
        )


def prepare() -> None:
    """Import what migrations need, so that none of it happens while the database is locked."""
    # Deferred for weight: only a new or an older database needs alembic.
    from alembic import command  # noqa: F401


def upgrade(connection: Connection, where: str) -> None:
    """Run the missing migrations inside the connection's transaction.

    Raises:
        StorageVersionError: a newer version of WSAP made the database.
    """
    from alembic import command

    check_known(revision(connection), where)
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    return config

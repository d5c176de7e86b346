"""What several test files share: the server that speaks the protocols of models, and new databases at little cost.

A test marked `every_database` runs on SQLite and on PostgreSQL: on PostgreSQL a path of a database that it opens stands
for a database of that test's own on a server, also in the commands that it runs with `WSAP_DATABASE`.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wsap_nexus.store.database import Database

# `llm_server` lies with the tests of wsap-llm, and kits beside this file; a test takes little of another one at times.
sys.path.append(str(Path(__file__).resolve().parents[2] / "plugins/wsap-llm/tests"))
sys.path.append(str(Path(__file__).resolve().parent / "kit"))
sys.path.extend(str(room) for room in sorted(Path(__file__).resolve().parent.glob("[a-z]*/")))

import postgres_kit
from llm_server.fixtures import nowhere, server
from postgres_kit import Server

__all__ = ["nowhere", "server"]


@pytest.fixture(scope="session", autouse=True)
def new_databases_are_copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let a new database in this process begin as a copy of an empty one; migrations take ten times as long.

    Other processes, and the tests of the storage itself, set theirs up by the migrations.
    """
    folder, opened, one_at_a_time = tmp_path_factory.mktemp("databases"), Database.open, threading.Lock()
    opened(template := folder / "template.db").close()

    def copied(location: str | os.PathLike[str], **options: Any) -> Database:
        path = Path(location)
        wanted = options.get("create", True) and not options.get("read_only", False)
        if wanted and path.suffix == ".db" and "tests/store/" not in os.environ.get("PYTEST_CURRENT_TEST", ""):
            with one_at_a_time:
                if path.parent.is_dir() and not os.path.lexists(path):
                    copy = Path(shutil.copy(template, folder / "copy.db"))
                    copy.chmod(0o600)
                    shutil.move(copy, path)
        return opened(location, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "open", copied)
        yield


# --- PostgreSQL ---------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A server of this process' own, started with the first test that needs it."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'psycopg[binary]'")
    if postgres_kit.INITDB is None:
        pytest.skip("needs PostgreSQL's server binaries: apt-get install postgresql")
    with postgres_kit.private_server() as found:
        yield found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what is marked `every_database` on both; on PostgreSQL with the slow tests."""
    if metafunc.definition.get_closest_marker("every_database"):
        kinds = ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
        metafunc.parametrize("databases", kinds, indirect=True, scope="module")


class Databases:
    """Where the databases of a test are, by the paths that it knows them by."""

    def __init__(self, server: Server | None) -> None:
        self._server = server
        self._known: dict[Path, str] = {}
        self._lock = threading.Lock()

    def at(self, path: str | os.PathLike[str]) -> str:
        """Return the location of a database: the path itself, or a URL; it is made if it is not there."""
        if self._server is None:
            return os.fspath(path)
        with self._lock:
            key = Path(path).resolve()
            if key not in self._known:
                self._known[key] = self._server.new_database()
            return self._known[key]

    def known(self, path: Path) -> bool:
        """Return whether a path stands for a database on the server."""
        return path.resolve() in self._known

    def drop(self) -> None:
        """Delete all on the server."""
        for url in self._known.values():
            if self._server is not None:
                self._server.drop(url)


@pytest.fixture(scope="module", autouse=True)
def databases(request: pytest.FixtureRequest) -> Iterator[Databases]:
    """The databases of a test that is marked `every_database`."""
    if getattr(request, "param", "sqlite") == "sqlite":
        yield Databases(None)
        return
    found = Databases(request.getfixturevalue("postgresql"))
    opened = Database.open

    def on_the_server(location: str | os.PathLike[str], **options: Any) -> Database:
        if "://" in os.fspath(location):
            return opened(location, **options)
        made = options.get("create", True) and not options.get("read_only", False)
        if made or found.known(Path(location)):
            location = found.at(location)
        return opened(location, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "open", on_the_server)
        yield found
    found.drop()

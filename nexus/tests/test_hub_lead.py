"""One nexus leads a database; a second one says clearly that it can't, whatever way it takes to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_storage_migrations import server  # noqa: F401 (a fixture)

from wsap_nexus.hub.errors import NexusRunningError
from wsap_nexus.hub.lead import lead
from wsap_nexus.storage import Database

OTHER = """
import sys
from wsap_core.errors import WsapError
from wsap_nexus.hub.lead import lead
from wsap_nexus.storage import Database

with Database.open(sys.argv[1]) as database:
    try:
        lead(database).acquire()
    except WsapError as error:
        print(error.code, error.exit_code, error)
    else:
        print("leads")
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "wsap.db") if request.param == "sqlite" else str(request.getfixturevalue("server"))


def other(location: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", OTHER, location], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def test_another_process_is_refused_until_the_first_has_let_go_or_ended(location: str) -> None:
    with Database.open(location) as database:
        first = lead(database)
        first.acquire()
        told = other(location)
        assert told.startswith("NEXUS_RUNNING 6 Another nexus runs on the database")
        assert "wsap nexus stop" in told
        first.release()
        assert other(location) == "leads"
        # The other process ended without letting go.
        first.acquire()
        first.release()


def test_a_second_one_in_the_same_process_is_refused_too(location: str) -> None:
    with Database.open(location) as database, Database.open(location) as again:
        first = lead(database)
        first.acquire()
        with pytest.raises(NexusRunningError):
            lead(again).acquire()
        first.release()


@pytest.mark.skipif(sys.platform == "win32", reason="needs symbolic links")
def test_the_same_file_by_another_path_is_the_same_database(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with Database.open(tmp_path / "real" / "wsap.db") as database, Database.open(tmp_path / "link" / "wsap.db") as same:
        first = lead(database)
        first.acquire()
        with pytest.raises(NexusRunningError):
            lead(same).acquire()
        first.release()

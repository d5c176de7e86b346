"""A nexus whose PostgreSQL server is away for seconds says so and goes on by itself; one whose lead was taken ends."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hub_checks
import pytest
from cli_nexus_kit import environ_of, nexus, nexus_json, running, until, wsap
from postgres_kit import Server, private_server
from wire_server import problem, serving

from wsap_nexus.cli.nexus.report import status_of
from wsap_nexus.cli.nexus.status import status_lines
from wsap_nexus.hub.nexus import Settings
from wsap_nexus.state import Running, birth, state_file
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import Policy
from wsap_nexus.store.nexus_store import NexusStore

pytestmark = pytest.mark.slow


@pytest.fixture
def own(postgresql: Server) -> Iterator[Server]:
    """A server that a test may stop; `postgresql` is asked for only because it skips where there is none."""
    with private_server() as found:
        yield found


def told(location: str, *kinds: str) -> list[Any]:
    """Return the events of a nexus of some kinds."""
    with Database.open(location, read_only=True) as database, NexusStore(database).look() as tx:
        return tx.events(kinds=kinds, limit=100_000)


def freeze(pid: int, file: str | None) -> None:
    """Freeze a nexus at a moment when it holds no lock of a file."""

    def done() -> bool:
        os.kill(pid, signal.SIGSTOP)
        if file is None:
            return True
        with contextlib.closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return True
            except sqlite3.OperationalError:
                os.kill(pid, signal.SIGCONT)
                return False

    until(done, "it is frozen")


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_while_the_server_is_away_requests_can_be_repeated_and_then_all_goes_on_by_itself(
    own: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path))  # the token lies there
    location = own.new_database()
    settings = Settings(seed=7, lobby_seconds=0.05, games=("crafter", "echo"))
    with serving(tmp_path, settings=settings, database=location) as served, served.client() as owner:
        hub = served.nexus
        with hub.nexus_store.change() as tx:
            for name in ("ada", "bob", "eve"):
                tx.register(name, policies={"nexus": Policy("wanderer")})

        async def begin() -> None:
            with hub.nexus_store.look() as tx:
                for agent in tx.agents():
                    hub.start_agent(agent)

        served.in_loop(begin())
        until(lambda: len(hub.live.sessions) == 3, "everybody is in a world")
        steps: list[int] = []
        hub.on_step(lambda stay, step: steps.append(1))
        until(lambda: len(steps) > 50, "they play")
        assert owner.get("/nexus/health").json()["retry"] is False
        own.stop(mode)
        until(lambda: hub.live.held, "the nexus holds")
        health = owner.get("/nexus/health")
        assert (health.status_code, health.json()["status"], health.json()["retry"]) == (503, "degraded", True)
        assert "The server of the database" in health.json()["reason"]
        for answer in (owner.get("/nexus/agents/ada"), owner.post("/nexus/agents", json={"id": "zoe"})):
            assert problem(answer) == (503, "STORAGE_UNAVAILABLE")
            assert answer.json()["error"]["retry"] is True
            assert answer.headers["Retry-After"]
        there = Running(os.getpid(), birth(os.getpid()), f"{served.url}/", 0.0, location)
        lines = status_lines(status_of(None, there, location, health=health.json()))
        assert any(line.startswith("Agents are held: The server") for line in lines)
        own.start()
        until(lambda: not hub.live.held, "the nexus goes on")
        assert owner.get("/nexus/health").status_code == 200
        before = len(steps)
        until(lambda: len(steps) > before + 50, "they play on")
        assert owner.post("/nexus/agents", json={"id": "zoe"}).status_code == 201
    assert len(told(location, "held")) == 1
    assert told(location, "agent_failed", "world_crashed", "session_force_closed", "game_failed", "game_offline") == []
    with Database.open(location) as database:
        assert hub_checks.problems(database) == []


def test_a_nexus_is_stopped_in_time_while_its_server_does_not_answer(own: Server, tmp_path: Path) -> None:
    location = own.new_database()
    environ = environ_of(tmp_path, WSAP_DATABASE=location)
    with running(environ) as hub:
        hub.someone_was_away()
        own.freeze()
        assert wsap(environ, "nexus", "stop").returncode == 0
        assert hub.ended()[0] == 0
        own.thaw()
    with running(environ):
        until(lambda: nexus_json(environ, "status")["answers"], "it goes on")
    with Database.open(location) as database:
        assert hub_checks.problems(database) == []


@pytest.mark.parametrize(
    "other",
    [
        "postgresql://wsap@/own?host=%2Frun%2Fpostgresql",
        "postgresql+psycopg://wsap@/own?host=%2Frun%2Fpostgresql",
        "postgresql://wsap:secret@/own?host=/run/postgresql",
        "postgresql://ws%61p@/%6Fwn?host=/run/postgresql",
    ],
)
def test_a_database_has_one_state_file_however_its_address_is_written(other: str, tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    first = state_file("postgresql://wsap@/own?host=/run/postgresql", environ)
    assert state_file(other, environ) == first
    assert state_file(other.replace("own", "other").replace("%6Fwn", "other"), environ) != first


def test_commands_and_stop_work_on_a_server(own: Server, tmp_path: Path) -> None:
    location = own.new_database(empty=True)
    environ = environ_of(tmp_path, WSAP_DATABASE=location)
    with running(environ) as hub:
        hub.someone_was_away()
        assert "ada" in nexus(environ, "agents", "list")
        assert nexus_json(environ, "agents", "show", "ada")["id"] == "ada"
        assert nexus_json(environ, "status")["bytes"] > 0
        until(lambda: nexus_json(environ, "agents", "diary", "ada"), "a diary entry")
        assert "Copied" not in wsap(environ, "nexus", "backup", str(tmp_path / "copy.db")).stdout
        assert nexus(environ, "stop")
        assert hub.ended()[0] == 0
    assert "ada" in nexus(environ, "agents", "list")
    assert "Nothing is older" in nexus(environ, "prune", "--keep-days", "30", "--dry-run")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_nexus_that_was_frozen_while_another_took_over_ends_and_writes_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    own = None
    location = str(tmp_path / "wsap.db")
    if kind == "postgresql":
        own = request.getfixturevalue("own")
        location = own.new_database()
    environ = environ_of(tmp_path, WSAP_DATABASE=location)
    with running(environ) as first:
        first.someone_was_away()
        freeze(first.ready["pid"], None if own else location)
        if own is not None:
            own.restart()  # the connection with its lock is gone
        else:
            Path(f"{location}.nexus.lock").unlink()
        state_file(location, environ).unlink()  # which says that one is running
        with running(environ) as second:
            second.someone_was_away()
            os.kill(first.ready["pid"], signal.SIGCONT)
            code, said = first.ended()
            assert code == 6
            assert "this one no longer writes" in said
            assert second.status()["pid"] == second.ready["pid"]  # it still is where the commands look
            assert nexus(environ, "stop")
            assert second.ended()[0] == 0
    assert len(told(location, "started")) == 2
    assert len(told(location, "stopped")) == 1
    with Database.open(location) as database:
        assert hub_checks.problems(database) == []

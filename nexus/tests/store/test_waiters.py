"""Waiting for commits on event loops."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from wsap_core.errors import StorageError, StorageFullError
from wsap_nexus.store.database import Database
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.records import NewRun
from wsap_nexus.store.repository import Repository


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "runs.db") as database:
        yield database


def test_many_coroutines_of_many_runs_wait_without_a_thread_each(database: Database) -> None:
    runs = [Repository(database).create_run(NewRun(game="echo", agent="a")).id for _ in range(50)]

    async def record(log: LogWriter, run: str) -> int:
        for _ in range(5):
            seq = log.append(run, "step", "{}")
            await log.flushed()
            assert log.committed(run) == seq
        return threading.active_count()

    async def main(log: LogWriter) -> list[int]:
        return await asyncio.gather(*(record(log, run) for run in runs))

    before = threading.active_count()
    with LogWriter(database, delay=3600) as log:
        assert max(asyncio.run(main(log))) == before + 1
    assert all(Repository(database).count_events(run) == 5 for run in runs)


def test_coroutines_on_two_event_loops_wait_for_one_log(database: Database) -> None:
    run = Repository(database).create_run(NewRun(game="echo", agent="a")).id

    async def record(log: LogWriter) -> None:
        for _ in range(20):
            log.append(run, "step", "{}")
            await log.flushed()

    with LogWriter(database, delay=3600) as log:
        threads = [threading.Thread(target=lambda: asyncio.run(record(log))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert log.committed(run) == 39


def test_one_that_was_cancelled_leaves_the_others_waiting(database: Database) -> None:
    run = Repository(database).create_run(NewRun(game="echo", agent="a")).id

    async def main(log: LogWriter) -> None:
        with database.turn_to_write():
            log.append(run, "step", "{}")
            first, second = (asyncio.ensure_future(log.flushed()) for _ in range(2))
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            assert not second.done()
        await second
        assert first.cancelled()

    with LogWriter(database) as log:
        asyncio.run(main(log))


def test_all_that_wait_are_told_that_it_failed(database: Database) -> None:
    run = Repository(database).create_run(NewRun(game="echo", agent="a")).id

    async def main(log: LogWriter) -> list[BaseException | None]:
        with database.turn_to_write():
            log.append(run, "step", "{}")
            waiting = [asyncio.ensure_future(log.flushed()) for _ in range(3)]
            await asyncio.sleep(0)
            with database.engine.begin() as connection:
                connection.exec_driver_sql("DROP TABLE event")
        return list(await asyncio.gather(*waiting, return_exceptions=True))

    log = LogWriter(database)
    found = asyncio.run(main(log))
    assert len(found) == 3
    assert all(isinstance(error, StorageError) and "no such table: event" in str(error) for error in found)


def test_a_full_disk_is_told_to_those_who_wait_and_nothing_is_lost(database: Database) -> None:
    run = Repository(database).create_run(NewRun(game="echo", agent="a")).id
    made: list[Any] = []

    def make_room(error: StorageFullError) -> None:
        for connection in made:
            connection.execute("PRAGMA max_page_count = 1000000")

    database.on_fault = make_room
    with database.write() as connection:
        (pages,) = connection.exec_driver_sql("PRAGMA page_count").one()

    async def main(log: LogWriter) -> None:
        log.append(run, "step", random.Random(0).randbytes(1 << 20))
        with pytest.raises(StorageFullError):
            await log.flushed()
        assert log.waits

    def limit(connection: Any, record: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages}")
        made.append(connection)

    event.listen(database.engine, "connect", limit)
    database.engine.dispose()
    with LogWriter(database) as log:
        asyncio.run(main(log))
    assert Repository(database).count_events(run) == 1

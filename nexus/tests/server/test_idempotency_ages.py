"""Replies to idempotency keys age by the time for which the nexus runs, not by the wall clock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from wsap_nexus.http.replies import Reply
from wsap_nexus.server import idempotency
from wsap_nexus.server.idempotency import KEPT_SECONDS, IdempotencyStore, IdempotentRequest
from wsap_nexus.store.database import Database
from wsap_nexus.store.nexus_store import NexusStore

YEAR = 365 * 86_400.0


class Desk:
    """Handles a request at most once per key, and counts how often it did."""

    def __init__(self, database: Database) -> None:
        self.wall, self.ran, self.effects = 1_800_000_000.0, 0.0, 0
        self.nexus_store = NexusStore(database, wall_clock=lambda: self.wall)
        self.start()

    def start(self) -> None:
        began = self.ran
        self.store = IdempotencyStore(self.nexus_store, monotonic=lambda: self.ran - began)

    async def _do(self) -> Reply:
        self.effects += 1
        return Reply(200, str(self.effects))

    def ask(self, key: str) -> str:
        request = IdempotentRequest("act", dict, self._do, lambda intent: None)
        reply = asyncio.run(self.store.once("ada", key, request, 60.0))
        assert reply is not None
        return reply.body


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Database.open(tmp_path / "a.db") as database:
        yield Desk(database)


def test_a_clock_that_is_set_makes_no_request_take_effect_twice(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "_SWEEP_EVERY", 2)
    assert desk.ask("one") == "1"
    for jump in (YEAR, -2 * YEAR, YEAR):
        desk.wall += jump
        assert desk.ask("one") == "1"
        desk.start()
        assert desk.ask("one") == "1"
        for number in range(3):  # enough to sweep
            desk.ask(f"{jump} {number} {desk.wall}")
        assert desk.ask("one") == "1"


def test_a_key_is_forgotten_after_a_day_in_which_the_nexus_ran_across_restarts(desk: Desk) -> None:
    assert desk.ask("one") == "1"
    desk.ran += KEPT_SECONDS / 2
    desk.ask("two")
    desk.start()
    desk.wall += YEAR
    desk.ran += KEPT_SECONDS / 2 - 1
    assert desk.ask("one") == "1"
    desk.ran += 2
    assert desk.ask("one") == "3"

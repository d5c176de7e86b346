"""Worlds that live by themselves: driven, recorded, stopped and gone on with."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wsap_core.host import PluginHost
from wsap_core.protocol import Tick
from wsap_llm.backends.pool import ModelPool
from wsap_nexus.runs.store import Store, open_store
from wsap_nexus.services import StoreRunner

GAME = "living_worlds:MEADOW"


@contextmanager
def opened(tmp_path: Path) -> Iterator[tuple[StoreRunner, Store]]:
    host = PluginHost.discovered()
    with open_store(str(tmp_path / "runs.db")) as store:
        yield StoreRunner(host, store, ModelPool(host)), store


def played(tmp_path: Path, **more: Any) -> Mapping[str, Any]:
    """Play a meadow without gardeners, in a session of its own, and return the summary."""
    with opened(tmp_path) as (runner, _):
        return asyncio.run(runner.play(GAME, {}, run="m", **more))


def ticks(tmp_path: Path, run: str = "m") -> list[tuple[int, Any]]:
    with opened(tmp_path) as (_, store):
        return [(e.step or 0, e.data) for e in store.repository.read_events(run, kinds=("tick",))]


def test_a_world_without_seats_is_driven_and_recorded(tmp_path: Path) -> None:
    told: list[Tick] = []
    summary = played(tmp_path, steps=5, seed=3, on_tick=told.append)
    assert [tick.number for tick in told] == [1, 2, 3, 4, 5]
    recorded = ticks(tmp_path)
    assert [number for number, _ in recorded] == [1, 2, 3, 4, 5]
    assert recorded[0][1]["summary"].endswith(" flowers")
    digest = hashlib.sha256().hexdigest()
    for _, body in recorded:
        line = json.dumps(body, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(f"{digest}{line}\n".encode()).hexdigest()
    assert summary["world"]["ticks"] == 5
    assert summary["trajectory_hash"] == summary["world"]["trajectory_hash"] == digest
    assert summary["steps"] == 0


def test_a_run_is_gone_on_with_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    whole = played(tmp_path / "b", steps=12, seed=3)
    for steps in (0, 5, 4, 3):
        parts = played(tmp_path, steps=steps, seed=3, snapshot_every=2)
    assert ticks(tmp_path) == ticks(tmp_path / "b")
    assert parts["trajectory_hash"] == whole["trajectory_hash"]
    with opened(tmp_path) as (_, store):
        notes = [e.data["tick"] for e in store.repository.read_events("m", kinds=("story",))]
        assert notes == list(range(1, 13))


def test_a_world_that_ends_ends_its_run(tmp_path: Path) -> None:
    summary = played(tmp_path, options={"ends": 4}, seed=1)
    assert (summary["done"], summary["world"]["ticks"]) == (True, 4)
    assert played(tmp_path, options={"ends": 4}, seed=1) == summary  # finished: not played again
    assert len(ticks(tmp_path)) == 4

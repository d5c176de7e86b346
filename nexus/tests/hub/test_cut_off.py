"""Runs of a nexus that was killed are settled when it is started again; what others play is left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from life_kit import host_with, nexus_at

from wsap_core.errors import UnknownNameError
from wsap_nexus.cli.replay import replay
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.outside.run_sessions import config_of
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.store.entities import EXTERNAL, EntryRequest
from wsap_nexus.store.records import NewRun, RunStatus

OUTSIDE = {"*": EXTERNAL}


def begun(nexus: Nexus, game: str, *, of_nexus: bool) -> str:
    """Record a run as it is when its process is killed at once."""
    plan = RunPlan(game, (SeatPlan("seat-1", "random"),), 1)
    config = config_of(plan) if of_nexus else plan.to_config()
    return nexus.store.repository.create_run(NewRun(game=game, agent="random", config=config)).id


def in_nexus(tmp_path: Path, act: Callable[[Nexus], None], *, start: bool = True, enter: bool = False) -> None:
    async def run() -> None:
        async with nexus_at(
            tmp_path, {"ada": OUTSIDE, "bob": OUTSIDE}, host=host_with(), games=("echo",), start=start
        ) as place:
            if enter:
                await place.nexus.enter("ada", "echo", EntryRequest())
            act(place.nexus)

    asyncio.run(run())


def test_runs_that_were_cut_off_are_settled_and_others_are_left_as_they_are(tmp_path: Path) -> None:
    kept: dict[str, str] = {}

    def cut_off(nexus: Nexus) -> None:
        kept["open"] = nexus.live.sessions["ada"].session.run_id

    def kill(nexus: Nexus) -> None:
        kept["visit"] = begun(nexus, "nexus", of_nexus=True)
        kept["never entered"] = begun(nexus, "echo", of_nexus=True)
        kept["played outside"] = begun(nexus, "echo", of_nexus=False)
        kept["closed"] = begun(nexus, "echo", of_nexus=True)
        nexus.store.repository.set_status(kept["open"], RunStatus.RUNNING)
        with nexus.nexus_store.change() as tx:
            world = tx.add_world("echo", None, 1, {})
            closed = tx.open_session("bob", "echo", world.id, "body", kept["closed"], EntryRequest())
            tx.close_session(closed.id, reason="kicked", steps=0, stats={})

    def look(nexus: Nexus) -> None:
        status = {what: nexus.store.repository.get_run(run).status for what, run in kept.items() if what in known}
        assert status == known
        for what in set(kept) - set(known):
            with pytest.raises(UnknownNameError):
                nexus.store.repository.get_run(kept[what])

    known = {
        "open": RunStatus.RUNNING,
        "visit": RunStatus.INTERRUPTED,
        "closed": RunStatus.INTERRUPTED,
        "played outside": RunStatus.RUNNING,
    }
    in_nexus(tmp_path, cut_off, enter=True)
    in_nexus(tmp_path, kill, start=False)
    in_nexus(tmp_path, look)
    said = CliRunner().invoke(replay, [kept["visit"], "--verify", "--database", str(tmp_path / "nexus.db")])
    assert "There is no hash to compare them with." in str(said.exception)

"""What a resumed stay knows of itself without reading its steps again."""

from __future__ import annotations

from pathlib import Path

from wsap_core.host import PluginHost
from wsap_nexus.hub.live_session import SessionStats
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.resume import read_past
from wsap_nexus.runs.session import resolve_specs, run_to_end, start
from wsap_nexus.runs.store import open_store


def test_the_totals_of_a_run_tell_what_was_done_in_its_stay(tmp_path: Path) -> None:
    host = PluginHost.discovered()
    plan = RunPlan("echo", (SeatPlan("seat-1", "random"),), seed=4, steps=60, snapshot_every=25)
    with open_store(str(tmp_path / "runs.db")) as store:
        with start(plan, host, store, run_id="r") as session:
            run_to_end(session)
        store.writer.flush()
        parts = resolve_specs(plan, host)
        past = read_past(store.repository, "r", plan, parts.game, parts.agents, parts.codec())
        counted = SessionStats()
        for event in store.repository.read_events("r", kinds=("step",)):
            counted.count_logged(event, parts.codec())
    assert counted.done
    known = SessionStats.of(past.tallies["seat-1"])
    assert (known.steps, known.done, round(known.reward, 9)) == (60, counted.done, round(counted.reward, 9))

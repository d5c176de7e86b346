"""A story's calls and what is told, over stops, a rewinding and a replay: each once, and nothing is asked again."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from pathlib import Path

import pytest

from wsap_core.host import PluginHost
from wsap_core.seams.services import Services
from wsap_llm.backends.pool import ModelPool
from wsap_nexus.runs.session import replies_of, start
from wsap_nexus.runs.store import Store, open_store
from wsap_nexus.services import StoreRunner


def told(store: Store, run: str) -> Counter[tuple[int, int, str, str]]:
    """Return the era, tick, place and text of each story in a run, and how often it is there."""
    found: Counter[tuple[int, int, str, str]] = Counter()
    era = 0
    for event in store.repository.read_events(run, kinds=("story", "rewound")):
        if event.kind == "rewound":
            era += 1
        else:
            found[era, event.data["tick"], event.data["place"], event.data["text"]] += 1
    return found


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.slow
def test_a_story_that_was_stopped_and_rewound_is_played_again_as_it_was(tmp_path: Path, overlap: bool) -> None:
    host = PluginHost.discovered()

    async def play(store: Store) -> str:
        models = ModelPool(host)
        runner = StoreRunner(host, store, models)
        await runner.play("sandbox:village", {}, run="v", steps=5, snapshot_every=3, options={"overlap": overlap})
        await runner.rewind("v", 4)
        await runner.play("sandbox:village", {}, run="v", steps=2)
        await runner.play("sandbox:village", {}, run="v", steps=1)
        calls = models.meter.calls
        assert calls == store.repository.count_events("v", "call")
        plan, past = replies_of("v", store)
        with start(dataclasses.replace(plan, steps=8), host, store, past=past, services=Services(models=models)) as run:
            summary = await run.play()
        assert models.meter.calls == calls
        assert summary.world_usage.usage.calls == calls
        assert summary.trajectory_hash == (store.repository.get_run("v").summary or {})["trajectory_hash"]
        return str(summary.run)

    with open_store(str(tmp_path / "stories.db")) as store:
        again = asyncio.run(play(store))
        stories = told(store, "v")
        assert set(stories.values()) == {1}
        assert {(era, tick) for era, tick, *_ in stories} == {*((0, n) for n in range(1, 6)), (1, 5), (1, 6), (1, 7)}
        assert told(store, again) == stories

"""What the nexus says is on stage, over HTTP, to the owner and to everybody else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dashboard_kit import Served

from wsap_core.host import PluginHost
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.store.entities import EntryRequest, Policy

pytestmark = pytest.mark.every_database


def prepare(nexus: Nexus) -> None:
    """Register an agent that plays Crafter well, and one that stays at home."""
    still = {"nexus": Policy("external")}
    with nexus.nexus_store.change() as tx:
        tx.register("ada", name="Ada", policies={**still, "*": Policy("crafter-survivor")})
        tx.register("ben", name="Ben <b>", policies=still)


@pytest.fixture
def opened(databases: object, tmp_path: Path) -> Iterator[Callable[[], Served]]:
    """Return a function that serves a nexus on one folder, again and again."""
    started: list[Served] = []

    def serve() -> Served:
        first = not started
        found = Served(
            tmp_path, Settings(pace=40.0), prepare if first else lambda nexus: None, host=PluginHost.discovered
        )
        started.append(found)
        return found.start()

    yield serve
    for nexus in started:
        nexus.stop()


def until(served: Served, condition: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return what the owner is shown as soon as it is so."""
    end = time.monotonic() + 120
    while not condition(found := served.read("/nexus/stage")):
        assert time.monotonic() < end, found
    return dict(found)


def kinds(found: dict[str, Any]) -> list[str]:
    return [moment["kind"] for moment in found["moments"]]


def test_an_empty_nexus_shows_who_is_at_home(opened: Callable[[], Served]) -> None:
    found = opened().read("/nexus/stage")
    assert found["on_stage"] is None
    assert found["worlds"] == found["moments"] == []
    assert [(agent["id"], agent["name"]) for agent in found["home"]] == [("ada", "Ada"), ("ben", "Ben <b>")]


def test_the_owner_sees_what_everybody_else_does_not(opened: Callable[[], Served]) -> None:
    served = opened()
    stay = served.within(served.nexus.enter("ada", "crafter", EntryRequest()))
    world = stay.session.world_id
    found = until(served, lambda found: "achievement" in kinds(found))
    assert found["on_stage"]["world"] == world
    assert found["on_stage"]["agent"] == "ada"
    (shown,) = found["worlds"]
    assert (shown["id"], shown["title"], shown["draws"], shown["lives"]) == (world, "Crafter", True, False)
    assert [agent["name"] for agent in shown["agents"]] == ["Ada"]
    first = next(moment for moment in found["moments"][::-1] if moment["kind"] == "achievement")
    assert first["words"].startswith("Ada, for the first time: ")
    # The step that a moment names is the one in which it happened.
    name = first["words"].removeprefix("Ada, for the first time: ").replace(" ", "_")
    steps = served.read(f"/nexus/runs/{first['run']}/steps?position={first['step'] - 1}&limit=1")["steps"]
    assert steps[0]["achievements"] == [name]
    seen = served.read_public("/nexus/stage")
    assert [moment["words"] for moment in seen["moments"]] == ["Ada arrives in Crafter"]
    assert seen["on_stage"]["world"] == world
    assert name not in str(seen).replace(" ", "_")


def test_entries_are_still_there_after_a_start(opened: Callable[[], Served]) -> None:
    served = opened()
    served.within(served.nexus.enter("ada", "crafter", EntryRequest(steps=5)))
    before = until(served, lambda found: kinds(found)[:1] == ["left"])
    served.stop()
    again = opened().read("/nexus/stage")
    kept = [moment for moment in before["moments"] if moment["kind"] in ("entered", "left")]
    assert [moment for moment in again["moments"] if moment["kind"] in ("entered", "left")] == kept
    assert [moment["words"] for moment in kept] == ["Ada comes home from Crafter", "Ada arrives in Crafter"]

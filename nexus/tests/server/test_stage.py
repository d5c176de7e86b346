"""What the nexus says is on stage, over HTTP, to the owner and to everybody else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dashboard_kit import Served

from wsap_core.host import PluginHost
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.server.watched.stage import Stage
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


def test_moments_and_the_choice_are_the_same_after_a_start(opened: Callable[[], Served]) -> None:
    served = opened()
    served.within(served.nexus.enter("ada", "crafter", EntryRequest()))
    found = until(served, lambda found: kinds(found).count("achievement") > 1)
    then = max(moment["time"] for moment in found["moments"])  # what is older than this is committed

    def shown(here: Served, private: bool) -> dict[str, Any]:
        return here.do(lambda: Stage(here.nexus, clock=lambda: then).seen_by(private=private))

    before = {private: shown(served, private) for private in (True, False)}
    served.stop()
    again = opened()
    until(again, lambda found: found["on_stage"] is not None)
    assert "achievement" in kinds(before[True])
    assert "achievement" not in kinds(before[False])
    assert {private: shown(again, private) for private in (True, False)} == before


def test_a_run_tells_its_moments_to_the_owner_and_its_agent(opened: Callable[[], Served]) -> None:
    served = opened()
    stay = served.within(served.nexus.enter("ada", "crafter", EntryRequest()))
    until(served, lambda found: "achievement" in kinds(found))
    path = f"/nexus/runs/{stay.session.run_id}"
    found = served.read(f"{path}/moments")
    first = found["moments"][0]
    assert first["words"].startswith("Ada, for the first time: ")
    step = served.read(f"{path}/steps?position={first['position'] - 1}&limit=1")["steps"][0]
    assert step["achievements"] == [first["words"].removeprefix("Ada, for the first time: ").replace(" ", "_")]
    russian = served.read(f"{path}/moments?language=ru")["moments"][0]["words"]
    assert russian == first["words"].replace("for the first time", "впервые")
    assert served.read_public(f"{path}/moments") == {"moments": [], "more": 0}
    for agent, number in (("ada", len(found["moments"])), ("ben", 0)):
        status, _, body = served.ask(f"/nexus/agents/{agent}/token", method="POST", body={}, headers=served.authorized)
        assert status == 201, body
        token = json.loads(body)["token"]
        status, _, body = served.ask(f"{path}/moments", headers={"Authorization": f"Bearer {token}"})
        assert (status, len(json.loads(body)["moments"]) >= number, b"Ada" in body) == (200, True, agent == "ada")


def test_what_happened_is_told_in_russian_too(opened: Callable[[], Served]) -> None:
    served = opened()
    served.within(served.nexus.enter("ada", "crafter", EntryRequest(steps=5)))
    until(served, lambda found: kinds(found)[:1] == ["left"])
    told = [moment["words"] for moment in served.read("/nexus/stage?language=ru")["moments"]]
    assert told[0] == "Ada возвращается домой из мира Crafter"
    assert told[-1] == "Ada приходит в мир Crafter"
    assert served.ask("/nexus/stage?language=fr")[0] == 400

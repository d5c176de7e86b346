"""Transit means something: an agent goes to MiniGrid, to Crafter and back, with what it learned and what it carries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from wsap_core import Action, ActionResult, ActionSpace, AgentSpec, Goal, Observation, PluginHost
from wsap_core.host import Registration
from wsap_core.protocol import PortableItem

pytest.importorskip("wsap_crafter")
pytest.importorskip("wsap_nexus")

from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import Policy
from wsap_nexus.store.nexus_store import NexusStore

TRIPS = (("minigrid", "done"), ("crafter", "step >= 400"), ("minigrid", "done"))
"""Where it goes, and until when it stays there."""


class Commuter:
    """An agent of the nexus that makes its trips, and then stays at home."""

    def __init__(self) -> None:
        self._trips: Iterator[tuple[str, str]] = iter(TRIPS)

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    def decide(self, observation: Observation) -> Action:
        game, until = next(self._trips, ("", ""))
        if not game:
            return Action("wait_for_game", {"seconds": 60})
        return Action("enter_game", {"game": game} if until == "done" else {"game": game, "exit_when": until})

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        return []


@dataclass(frozen=True)
class Journey:
    """What came of it."""

    entered: list[dict[str, Any]]
    """The nexus' own notes of each arrival."""
    receipts: list[dict[str, Any]]
    skills: dict[str, float]
    items: dict[str, tuple[PortableItem, str, str]]
    """Id -> the item, the place where it is in the end, and the last word on it."""
    left: list[dict[str, Any]]


def look_back(nexus_store: NexusStore) -> Journey:
    with nexus_store.look() as tx:
        events = tx.events(agent="ada", kinds=("entered", "left"), limit=100)
        done = [row for row in tx.transfers("done") if row.kind == "enter"]
        return Journey(
            [dict(e.body) for e in events if e.kind == "entered"],
            [row.data["receipt"] for row in done],
            tx.skills("ada"),
            {r.item.item_id: (r.item, r.place, r.note) for r in tx.items("ada")},
            [dict(e.body) for e in events if e.kind == "left"],
        )


async def travel(folder: Path) -> Journey:
    host = PluginHost.discovered()
    commuter = Commuter()
    host.agents.add(Registration(AgentSpec("commuter", "Makes its trips.", lambda: commuter), "test", "test"))
    with open_store(str(folder / "wsap.db")) as store:
        nexus = Nexus(host, store, Settings(seed=5, games=("crafter", "minigrid")))
        with nexus.nexus_store.change() as tx:
            tx.register("ada", name="Ada", policies={"nexus": Policy("commuter")})
        await nexus.start()
        home = asyncio.Event()
        count = 0

        def heard(event: Any) -> None:
            nonlocal count
            count += event.kind == "left"
            if count == len(TRIPS):
                home.set()

        nexus.nexus_store.listen(heard)
        await asyncio.wait_for(home.wait(), 300)
        await nexus.stop()
        return look_back(nexus.nexus_store)


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    return asyncio.run(travel(tmp_path_factory.mktemp("nexus")))


def of_kind(journey: Journey, receipt: int, answer: str, category: str, origin: str) -> list[str]:
    """Return the names of the items of a kind that a world let in, or refused."""
    items = [journey.items[item_id][0] for item_id in journey.receipts[receipt][answer]]
    return [item.name for item in items if (item.category, item.origin) == (category, origin)]


@pytest.mark.slow
def test_it_made_its_three_trips_and_was_let_in_everywhere(journey: Journey) -> None:
    assert len(journey.receipts) == len(journey.entered) == len(journey.left) == 3
    assert [note["reason"] for note in journey.left] == ["finished", "condition", "finished"]


def test_what_was_learned_in_minigrid_is_worth_something_in_crafter(journey: Journey) -> None:
    assert journey.entered[0]["bonuses"] == {}
    assert journey.entered[1]["bonuses"]["resources-wood"] == {"wood": 3}


def test_what_was_learned_in_crafter_is_worth_something_in_minigrid(journey: Journey) -> None:
    # Nothing in MiniGrid teaches crafting.
    assert journey.entered[2]["bonuses"]["crafter"] == {"lockpick": 1}


def test_balls_and_boxes_from_minigrid_are_ore_in_crafter(journey: Journey) -> None:
    brought = of_kind(journey, 1, "admitted", "material", "minigrid")
    assert any("ball" in name for name in brought)
    assert any("box" in name for name in brought)


def test_a_key_is_refused_by_crafter_waits_and_is_let_in_again_at_home(journey: Journey) -> None:
    refused = of_kind(journey, 1, "refused", "key_item", "minigrid")
    assert refused
    reasons = [why for why in journey.receipts[1]["refused"].values() if "key item" in why]
    assert len(reasons) == len(refused)
    assert of_kind(journey, 2, "admitted", "key_item", "minigrid") == refused


def test_a_pickaxe_from_crafter_is_let_in_and_a_sword_is_not(journey: Journey) -> None:
    assert any("pickaxe" in name for name in of_kind(journey, 2, "admitted", "tool", "crafter"))
    assert any("sword" in name for name in of_kind(journey, 2, "refused", "weapon", "crafter"))
    swords = [end for end in journey.items.values() if end[0].category == "weapon"]
    assert {place for _, place, _ in swords} == {"escrow"}


def test_each_thing_is_in_one_place_in_the_end_and_nothing_is_left_in_a_finished_world(journey: Journey) -> None:
    for item, place, word in journey.items.values():
        assert place in ("escrow", "lost", "world"), item
        assert word or place != "lost", item
    taken_in = {item_id for receipt in journey.receipts for item_id in receipt["admitted"]}
    still_inside = {item_id for item_id, (_, place, _) in journey.items.items() if place == "world"}
    assert not still_inside & set(journey.receipts[2]["admitted"])
    assert taken_in <= journey.items.keys()

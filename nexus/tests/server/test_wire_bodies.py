"""Bodies over the wire: not left in danger, dead until they are brought back; and things that a world refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from hub_kit import QUARRY, Quarry, deadly, host
from wire_server import Served, problem, serving

from wsap_core.protocol import DeathEvent, EmbodiedObservation, JackInResult, Location, PortableItem, RespawnOption
from wsap_core.seams.context import Context


def enter(client: httpx2.Client, **values: object) -> dict[str, object]:
    answer = client.post("/nexus/transit/enter", json={"agent_id": "eve", "game": "quarry", **values})
    assert answer.status_code == 201, answer.text
    found: dict[str, object] = answer.json()
    return found


def bridge(entered: dict[str, object]) -> str:
    return urlsplit(str(entered["bridge_url"])).path


@pytest.mark.parametrize("mode", ["dormant", "suspend", "despawn"])
def test_nobody_leaves_a_body_in_danger_by_choice(tmp_path: Path, mode: str) -> None:
    with serving(tmp_path, host=host(quarry=deadly(0))) as served, served.register("eve") as eve:
        path = bridge(enter(eve))
        assert eve.post(f"{path}/act", json={"name": "climb"}).json()["result"]["success"]
        for refused in (
            eve.post(f"{path}/jack-out", json={"mode": mode}),
            eve.post("/nexus/transit/exit", json={"agent_id": "eve", "mode": mode}),
        ):
            assert problem(refused) == (409, "LEAVING_REFUSED")
            assert "rope" in refused.json()["error"]["message"]
            assert "go on from its observation" in refused.json()["error"]["message"]
        assert problem(eve.post("/nexus/transit/exit", json={"agent_id": "eve", "force": True})) == (403, "FORBIDDEN")
        with served.client() as owner:
            forced = owner.post("/nexus/transit/exit", json={"agent_id": "eve", "force": True})
        assert forced.json()["session"]["reason"] == "kicked"
        assert eve.get("/nexus/agents/eve/observation").json()["place"] == "nexus"


@pytest.mark.slow
def test_a_dead_body_does_nothing_until_it_is_brought_back(tmp_path: Path) -> None:
    with serving(tmp_path, host=host(quarry=deadly(100))) as served, served.register("eve") as eve:
        first = enter(eve)
        path = bridge(first)
        died = eve.post(f"{path}/act", json={"name": "climb"}).json()["result"]
        assert died["done"] is True
        assert problem(eve.post(f"{path}/act", json={"name": "dig"})) in ((410, "SESSION_CLOSED"), (503, "INTERRUPTED"))
        assert eve.get("/nexus/agents/eve/observation").json()["place"] == "nexus"
        assert problem(eve.post(f"{path}/act", json={"name": "dig"})) == (410, "SESSION_CLOSED")
        assert eve.get(path).json()["reason"] == "death"
        back = eve.post(f"{path}/respawn", headers={"Idempotency-Key": "back"})
        assert back.status_code == 201, back.text
        assert back.json()["avatar"]["death_count"] == 1
        assert back.json()["session"]["id"] != first["session"]["id"]  # type: ignore[index]
        again = eve.post(f"{path}/respawn", headers={"Idempotency-Key": "back"})
        assert again.text == back.text
        assert problem(eve.post(f"{bridge(back.json())}/respawn"))[1] == "SESSION_MANAGED"


class TwoWaysBack(Quarry):
    """A quarry where whoever climbs dies, and lives again in the camp or at the church, and says where."""

    _at = ""

    def __init__(self, context: Context) -> None:
        super().__init__(replace(context, config={"deadly": 100}))

    def handle_death(self, avatar_id: str) -> DeathEvent:
        ways = (RespawnOption("camp"), RespawnOption("church"))
        return replace(super().handle_death(avatar_id), respawn_options=ways)

    def respawn(self, avatar_id: str, option: RespawnOption | str) -> JackInResult:
        self._at = option if isinstance(option, str) else option.id
        return super().respawn(avatar_id, option)

    def observe(self) -> EmbodiedObservation:
        return replace(super().observe(), location=Location(description=self._at))


@pytest.mark.parametrize("by", ["respawn", "enter"])
def test_a_body_lives_again_in_the_way_that_is_named(tmp_path: Path, by: str) -> None:
    two = replace(QUARRY, factory=TwoWaysBack)
    with serving(tmp_path, host=host(quarry=two)) as served, served.register("eve") as eve:
        first = enter(eve)
        path = bridge(first)
        eve.post(f"{path}/act", json={"name": "climb"})
        while eve.get(path).json()["reason"] != "death":
            pass  # it is closed by the world's own loop, a moment later
        if by == "respawn":
            assert problem(eve.post(f"{path}/respawn", json={"option": "hell"})) == (400, "USAGE")
            assert problem(eve.post(f"{path}/respawn", json={"way": "church"}))[0] == 400
            back = eve.post(f"{path}/respawn", json={"option": "church", "steps": 9, "goals": ["dig deep"]})
            assert back.status_code == 201, back.text
            entered = back.json()
        else:
            world = first["session"]["world_id"]  # type: ignore[index]
            entered = enter(eve, avatar=world, respawn="church", steps=9, goals=["dig deep"])
        terms = entered["session"]["terms"]
        assert (terms["respawn"], terms["steps"], terms["goals"]) == ("church", 9, ["dig deep"])
        assert entered["observation"]["location"]["description"] == "church"


def test_what_a_world_refuses_stays_in_escrow_with_the_reason(tmp_path: Path) -> None:
    with serving(tmp_path, host=host(quarry=deadly(0))) as served, served.register("eve") as eve:
        give(served, PortableItem("coin-1", "coin", "currency"), PortableItem("axe-1", "axe", "tool"))
        entered = enter(eve)
        receipt = entered["receipt"]
        assert isinstance(receipt, dict)
        assert receipt["admitted"] == ["axe-1"]
        assert receipt["refused"] == {"coin-1": "money is worth nothing here"}
        items = {i["item"]["item_id"]: (i["place"], i["note"]) for i in eve.get("/nexus/agents/eve").json()["items"]}
        assert items["coin-1"] == ("escrow", "money is worth nothing here")
        assert items["axe-1"][0] == "world"
        transfer = {"transfer_id": receipt["transfer_id"]}
        path = bridge(entered)
        assert eve.post(f"{path}/admit", json=transfer).json()["receipt"] == receipt
        assert problem(eve.post(f"{path}/release", json=transfer)) == (409, "SESSION_MANAGED")
        left = eve.post(f"{path}/jack-out", json={}).json()
        package = left["package"]
        assert "axe-1" in [item["item_id"] for item in package["items"]]
        told = eve.post(f"{path}/release", json={"transfer_id": package["transfer_id"]})
        assert told.json()["package"] == package


def give(served: Served, *items: PortableItem) -> None:
    async def mint() -> None:
        with served.nexus.nexus_store.change() as tx:
            for item in items:
                tx.mint_item("eve", item, game="quarry", session="before")

    served.in_loop(mint())

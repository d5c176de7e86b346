"""The dashboard's pages of a town in play, in a real browser: live, whole at every size, and without secrets.

Needs what `test_dashboard.py` needs, and the town.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from dashboard_kit import Served
from test_dashboard import DESKTOP, PATIENCE, PHONE, SCHEMES, Seen, opened

from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.store.entities import EntryRequest, Policy

roles = pytest.importorskip("wsap_tossim.engine.roles.listed", reason="needs the town (wsap-tossim)")
pytestmark = pytest.mark.slow

__all__ = ["opened"]


@dataclass
class Scene:
    """A nexus in which two agents play with thirteen others."""

    served: Served
    world: str
    run: str


def prepare(nexus: Nexus) -> None:
    with nexus.nexus_store.change() as tx:
        for agent in ("ada", "bob"):
            decides = {"nexus": Policy("external"), "*": Policy("tossim-player")}
            tx.register(agent, name=agent.title(), policies=decides)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    settings = Settings(pace=1.0, lobby_seconds=0.5)  # slow enough to be looked at, and not to end meanwhile
    with Served(tmp_path_factory.mktemp("town"), settings, prepare=prepare) as served:

        async def go() -> tuple[str, str]:
            stays = await asyncio.gather(
                *(served.nexus.enter(agent, "tossim", EntryRequest()) for agent in ("ada", "bob"))
            )
            assert len({stay.session.run_id for stay in stays}) == 1, "they sit in one town"
            return stays[0].session.world_id, stays[0].session.run_id

        yield Scene(served, *served.within(go()))


def in_town(seen: Seen, scene: Scene) -> None:
    seen.go(f"world/{scene.world}")
    seen.wait("document.querySelectorAll('.stage .table .seat').length === 15")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_town_s_pages_are_whole_and_can_be_read(
    opened: Callable[..., Seen], scene: Scene, size: tuple[int, int]
) -> None:
    seen = opened(size)
    in_town(seen, scene)
    for route in (None, "", "agent/ada", f"run/{scene.run}"):
        if route is not None:
            seen.go(route)
        assert seen.page.locator("main .problem").count() == 0
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= size[0], route
        for scheme in SCHEMES:
            assert seen.check_in(scheme, "contrast")["bad"] == [], (route, scheme)
        assert seen.check("nameless") == [], route


def test_the_world_s_page_shows_day_players_and_talk_and_who_of_them_lives_here(
    opened: Callable[..., Seen], scene: Scene
) -> None:
    seen = opened(PHONE)
    in_town(seen, scene)
    assert seen.text(".moment").startswith(("Day ", "Night "))
    assert seen.text(".moment").endswith(" of 15 alive")
    assert [seen.text(f".person:nth-child({n}) .stay-head small") for n in (1, 2)] == ["as player-1", "as player-2"]
    seen.wait("document.querySelectorAll('.stage .chat li').length > 0")
    # However long the talk becomes, it takes no more than its window, and what was said last is in sight.
    talk = "document.querySelector('.stage .chat')"
    assert seen.page.evaluate(f"{talk}.clientHeight") < 500
    assert seen.page.evaluate(f"{talk}.scrollHeight - {talk}.scrollTop - {talk}.clientHeight") < 5


def test_onlookers_see_no_role_of_the_living_at_the_table(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened()
    in_town(seen, scene)
    seen.page.get_by_text("Everybody at the table").click()
    rows = seen.page.evaluate("[...document.querySelectorAll('.stage tbody tr')].map((row) => row.innerText)")
    drawn = seen.page.evaluate("[...document.querySelectorAll('.stage .seat:not(.out)')].map((s) => s.textContent)")
    assert len(rows) == 15
    for told in (*rows, *drawn):
        named = [name for name in roles.ROLES if name in told]
        assert not named or "†" in told or named == ["Mayor"], told


def test_nothing_of_a_role_is_in_the_bytes_that_reach_a_guest(opened: Callable[..., Seen], scene: Scene) -> None:
    """But for what is said: players may claim any role."""
    seen, bodies = opened(locked=True), list[str]()

    def heard(answer: Any) -> None:
        kind = answer.headers.get("content-type", "")
        if "/nexus/" in answer.url and kind.startswith("application/json") and answer.status == 200:
            bodies.append(answer.text())

    seen.page.on("response", heard)
    in_town(seen, scene)
    for route in ("", f"run/{scene.run}", "agent/ada"):
        seen.go(route)
    views = 0
    for body in bodies:
        found = json.loads(body)
        view = found.get("view") or {"blocks": []}
        views += len(view["blocks"]) > 0
        view["blocks"] = [block for block in view["blocks"] if block["kind"] != "chat"]
        for block in view["blocks"]:
            for seat in block.get("seats", ()):
                if seat["state"] == "out" or seat["note"] == "Mayor":
                    seat["note"] = ""  # all know it
        for about in ("recent", "moments", "events"):
            found.pop(about, None)  # they tell what anybody did, as it is told to all
        text = json.dumps(found)
        assert not [name for name in roles.ROLES if name in text], text
    assert views


def test_the_table_shows_faces_names_of_agents_phases_and_votes(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened(PHONE)
    in_town(seen, scene)
    seats = seen.page.evaluate(
        "[...document.querySelectorAll('.stage .seat')].map((s) => s.querySelector('.name').textContent)"
    )
    assert seats[:3] == ["Ada", "Bob", "Player 3"]
    assert seen.page.locator(".stage .seat svg.face").count() >= 15
    assert seen.page.locator(".stage .phases [aria-current=step]").count() == 1
    assert seen.page.locator(".stage svg.table").get_attribute("role") == "img"
    assert "of 15 alive" in str(seen.page.locator(".stage svg.table").get_attribute("aria-label"))
    kept = seen.page.evaluate_handle("document.querySelector('.stage svg.table')")
    seen.wait("document.querySelectorAll('.stage .link-vote').length > 0")
    assert kept.evaluate("(node) => node.isConnected"), "it is changed in place"
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


def test_the_town_goes_on_before_one_s_eyes(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened()
    in_town(seen, scene)
    before = seen.text(".stage")
    end = time.monotonic() + 300
    while seen.text(".stage") == before:
        assert time.monotonic() < end, "nothing changed"
        seen.page.wait_for_timeout(50)


def test_the_overview_tells_the_moment_in_place_of_a_picture(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened()
    seen.go("ops")
    seen.wait("!!document.querySelector('.thumb .moment')")
    assert seen.text(".thumb .moment").endswith("alive")


def test_a_step_of_several_seats_says_whose_it_is(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened()
    end = time.monotonic() + PATIENCE / 1000
    while len(list(scene.served.nexus.store.repository.read_events(scene.run, kinds=("step",)))) < 4:
        assert time.monotonic() < end, "the town came to no fourth step"
        seen.page.wait_for_timeout(25)
    seen.go(f"run/{scene.run}?step=4")
    seen.wait("document.querySelector('.row.active .n')?.textContent === '4'")
    seen.wait("document.querySelector('main').textContent.includes('The decision of player-')")
    seat = seen.page.evaluate("document.querySelector('.row.active b').textContent.trim()")
    headings = seen.page.evaluate("[...document.querySelectorAll('main h2')].map((h) => h.textContent)")
    assert f"After this step, as {seat} sees it" in headings
    assert f"The decision of {seat}" in headings


def test_an_agent_s_page_shows_what_it_learned(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened()
    seen.go("agent/ada")
    seen.wait("document.querySelector('main').textContent.includes('New since the last turn')")

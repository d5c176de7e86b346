"""People play in a real browser: they take seats, by a QR code's address on a phone too, and play a whole game.

Needs what `test_dashboard.py` needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from dashboard_kit import Served
from test_dashboard import DESKTOP, PHONE, SCHEMES, Seen, opened

from wsap_core.host import PluginHost
from wsap_nexus.hub.nexus import Settings

pytestmark = pytest.mark.slow

__all__ = ["opened"]

NARROW = (320, 640)
READY = "!!document.querySelector('.play-do:not([inert]) button')"


@dataclass
class Scene:
    """A nexus in which nobody lives yet."""

    served: Served


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    settings = Settings(lobby_seconds=60.0)  # it begins when both are there
    home = tmp_path_factory.mktemp("play")
    with Served(home, settings, prepare=lambda nexus: None, host=PluginHost.discovered) as served:
        yield Scene(served)


def take(seen: Seen, game: str, name: str, others: str = "") -> list[str]:
    """Take seats on the stage, and return the addresses of the others' ones."""
    seen.go("")
    seen.page.get_by_role("button", name="Take a seat").click()
    seen.page.locator("#seat-game").select_option(game)
    seen.page.locator("#seat-name").fill(name)
    seen.page.locator("#seat-others").fill(others)
    seen.page.get_by_role("button", name="Start").click()
    if not others:
        return []
    seen.wait("!!document.querySelector('.seat-code')")
    found = seen.page.evaluate("[...document.querySelectorAll('.seat-code a')].map((a) => a.href)")
    if name:
        seen.page.get_by_role("button", name="Go to my seat").click()
    return list(found)


def test_a_person_takes_a_seat_in_crafter_and_plays_by_keys_and_buttons(opened: Callable[..., Seen]) -> None:
    seen = opened()
    take(seen, "crafter", "Zoë")
    seen.wait(READY)
    assert seen.text(".play-head h1") == "Zoë"
    assert seen.text(".play-head .where") == "In Crafter"
    seen.wait("document.querySelector('.play-seen img.frame')?.naturalWidth > 100")
    seen.page.keyboard.press("ArrowLeft")
    seen.wait("document.querySelector('.play-told').textContent === 'You walk west.'")
    seen.wait(READY)
    seen.page.locator(".pad-up").click()
    seen.wait("/north/.test(document.querySelector('.play-told').textContent)")
    seen.wait(READY)
    seen.page.get_by_text("not possible now").click()
    assert "wood" in seen.text(".play-not")
    seen.page.get_by_role("button", name="Cover").click()
    assert not seen.page.locator(".play-seen").is_visible()
    seen.page.get_by_role("button", name="Show what I see").click()
    for size in (DESKTOP, PHONE, NARROW):
        seen.page.set_viewport_size({"width": size[0], "height": size[1]})
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= size[0], size
        for scheme in SCHEMES:
            assert seen.check_in(scheme, "contrast")["bad"] == [], (size, scheme)
    assert seen.check("nameless") == []


def test_two_people_play_a_whole_game_one_of_them_on_a_phone_by_an_address(opened: Callable[..., Seen]) -> None:
    owner, phone = opened(), opened(PHONE, locked=True)
    (address,) = take(owner, "matrix", "Zoë", "Tom")
    phone.page.goto(address)
    assert "#pass=" in address
    home = "/At home/.test(document.querySelector('.play-head')?.textContent)"
    chosen = {owner.page: 0, phone.page: 0}
    while not all(page.evaluate(home) for page in chosen):
        for seen in (owner, phone):
            seen.wait(f"{READY} || {home}")
            if not seen.page.evaluate(home):
                seen.page.get_by_role("button", name="cooperate").click()
                chosen[seen.page] += 1
    assert list(chosen.values()) == [10, 10]  # rounds of the game's default
    for seen in (owner, phone):
        assert seen.text(".play-told") == "You chose cooperate, the other cooperate: you get 3."
    assert phone.page.evaluate("location.hash") == "#/"  # the pass is no longer in the address
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    for scheme in SCHEMES:
        assert phone.check_in(scheme, "contrast")["bad"] == []
    assert phone.check("nameless") == []


def test_a_seat_that_is_taken_back_in_mid_play_says_so_in_one_sentence(
    opened: Callable[..., Seen], scene: Scene
) -> None:
    owner, phone = opened(), opened(PHONE, locked=True, may_lose=True)
    (address,) = take(owner, "crafter", "", "Eve")
    phone.page.goto(address)
    phone.wait(READY)
    (made,) = [one for one in scene.served.read("/nexus/passes")["passes"] if one["target"].startswith("eve-")]
    scene.served.ask(f"/nexus/passes/{made['id']}", method="DELETE", headers=scene.served.authorized)
    phone.page.locator(".pad-left, .deeds button").first.click()
    phone.wait("!!document.querySelector('.problem')")
    assert phone.text(".problem") == "This pass was taken back; ask for a new one."
    assert not phone.page.locator(".play-do").count()
    phone.problems[:] = [text for text in phone.problems if "401" not in text]


def test_nobody_is_seated_without_a_name(opened: Callable[..., Seen]) -> None:
    seen = opened()
    seen.go("")
    seen.page.get_by_role("button", name="Take a seat").click()
    seen.page.get_by_role("button", name="Start").click()
    seen.wait("/Say who plays/.test(document.querySelector('dialog .bad').textContent)")
    assert seen.page.locator("#seat-name").is_visible()


def test_a_second_device_on_a_seat_is_told_that_the_turn_is_over_and_goes_on(opened: Callable[..., Seen]) -> None:
    owner, first, second = opened(), opened(PHONE, locked=True), opened(PHONE, locked=True, may_lose=True)
    (address,) = take(owner, "crafter", "", "Max")
    for seen in (first, second):
        seen.page.goto(address)
        seen.wait(f"/Crafter/.test(document.querySelector('.play-head')?.textContent) && {READY}")
    # The second one shows the first turn until its next look, which is held back.
    second.page.route("**/pass/turn?*", lambda route: None, times=1)
    with second.page.expect_request("**/pass/turn?*"):
        pass
    first.page.locator(".pad-left").click()
    first.wait("document.querySelector('.play-told').textContent === 'You walk west.'")
    second.page.locator(".pad-up").click()
    second.wait("/That turn is over, and nothing was done/.test(document.querySelector('.play-told').textContent)")
    second.problems[:] = [text for text in second.problems if "409" not in text]


def test_the_page_goes_on_by_itself_when_the_world_does(opened: Callable[..., Seen], scene: Scene) -> None:
    owner, phone = opened(), opened(PHONE, locked=True)
    (address,) = take(owner, "crafter", "", "Pia")
    phone.page.goto(address)
    phone.wait(f"/Crafter/.test(document.querySelector('.play-head')?.textContent) && {READY}")
    (made,) = [one for one in scene.served.read("/nexus/passes")["passes"] if one["target"].startswith("pia-")]
    status, _, _ = scene.served.ask(
        f"/nexus/agents/{made['target']}/recall", method="POST", headers=scene.served.authorized
    )
    assert status == 200
    phone.wait("/At home/.test(document.querySelector('.play-head').textContent)")
    phone.wait(READY)

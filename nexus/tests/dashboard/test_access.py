"""The page for people who see little, use no mouse, or have a small screen, in a real browser.

Needs what `test_dashboard.py` needs, and axe-core (`pip install axe-playwright-python`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from access_kit import barriers
from dashboard_kit import HALL, Hall, Served, host
from test_dashboard import DESKTOP, PHONE, Seen, opened

from wsap_core.host import PluginHost, Registration
from wsap_core.protocol import ChatBlock, GridMapBlock, Observation, TableBlock, TextBlock, View
from wsap_core.protocol.views import ChatLine
from wsap_nexus.api import play
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.store.entities import EntryRequest, Policy

pytestmark = pytest.mark.slow

__all__ = ["opened"]

NARROW = (320, 640)
SIZES = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
LONG = "W" * 60
ARABIC = "مرحبابالعالم" * 5
EMOJI = "🦊" * 60
VILLAGE = "village" * 5
AGENTS = {"ann": LONG, "ali": ARABIC, "mia": EMOJI, "zoe": LONG, "tom": ARABIC, "eve": EMOJI}
"""Names that break no line by themselves; the last three are people."""


@dataclass
class Scene:
    """A nexus with something in every place of its page."""

    served: Served
    hall: str
    """The world in which `ann` and `ali` go on."""
    told: str
    """A run in which a model decided."""
    replay: str
    """A run of Crafter, with moments and curves."""


def prepare(nexus: Nexus) -> None:
    with nexus.nexus_store.change() as tx:
        for agent, name in AGENTS.items():
            policy = Policy("external") if agent in ("zoe", "tom", "eve") else Policy("steady")
            if agent == "mia":
                policy = Policy("llm", {"model": "talker/it"})
            tx.register(agent, name=name, persona=name, policies={"nexus": Policy("external"), "*": policy})


class LongHall(Hall):
    """The hall, with words that break no line and more of them than fit."""

    def observe(self) -> Observation:
        return replace(super().observe(), status={LONG: LONG, ARABIC: EMOJI}, inventory={LONG: 3})

    def render(self) -> View:
        blocks = (
            TextBlock(f"{LONG}\n" * 60, LONG),
            ChatBlock([ChatLine(LONG, ARABIC, EMOJI)] * 60, LONG),
            TableBlock([LONG, ARABIC, EMOJI], [[EMOJI, LONG, ARABIC]], LONG),
            GridMapBlock(["#" * 200] * 5, {"#": LONG}),
        )
        return View((*super().render().blocks, *blocks), LONG)


def with_long_hall() -> PluginHost:
    found = host()
    spec = replace(HALL, name="hall-of-long-names", title=LONG, factory=LongHall)
    found.games.add(Registration(spec, "tests", "tests"))
    return found


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("access")
    database = str(folder / "wsap.db")
    replay = play("crafter", "crafter-survivor", seed=3, steps=60, database=database).run
    play("crafter", "crafter-survivor", seed=3, steps=12, database=database)
    settings = Settings(worlds=(KeptWorld(VILLAGE, "sandbox:village"),), pace=4.0, lobby_seconds=60.0)
    with Served(folder, settings, prepare=prepare, host=with_long_hall) as served:

        async def enter() -> tuple[str, str]:
            told = await served.nexus.enter("mia", "hall-of-long-names", EntryRequest(steps=6))
            await served.nexus.await_exit("mia")
            await served.nexus.enter("zoe", "crafter", EntryRequest())
            await asyncio.gather(*(served.nexus.enter(agent, "matrix", EntryRequest()) for agent in ("tom", "eve")))
            for agent in ("ali", "ann"):
                here = await served.nexus.enter(agent, "hall-of-long-names", EntryRequest())
            return here.session.world_id, told.session.run_id

        yield Scene(served, *served.within(enter()), replay)


def places(scene: Scene, locked: bool = False) -> list[str]:
    """Return the places of the page: the owner's, or some that a passer-by sees in another way."""
    hall, replay = f"world/{scene.hall}", f"run/{scene.replay}?step=30"
    if locked:
        return ["", "ops", hall, "agents", "agent/ann", replay]
    return [
        "", "ops", "worlds", hall, f"world/{VILLAGE}", "agents", "agent/ann", "agent/mia", "runs", replay,
        f"run/{scene.told}?step=4", "log", "play/zoe", "nowhere",
    ]  # fmt: skip


SEEN_BY_PASS = {
    "agent": "!!document.querySelector('.guest-view img.frame')?.complete",
    "seat": "!!document.querySelector('.play-do button')",
}


def by_pass(opened: Callable[..., Seen], served: Served, scope: str, size: tuple[int, int]) -> Seen:
    """Return the page that a guest, or a person with a seat, opens."""
    asked = {"scope": scope, "target": "ann" if scope == "agent" else "tom", "talks": scope == "agent"}
    _, _, answer = served.ask("/nexus/passes", method="POST", body=asked, headers=served.authorized)
    seen = opened(size, locked=True)
    seen.page.goto(f"{served.url}#pass={json.loads(answer)['token']}")
    seen.wait(SEEN_BY_PASS[scope])
    return seen


def saved(opened: Callable[..., Seen], scene: Scene, folder: Path, size: tuple[int, int]) -> Seen:
    """Return the page of a saved replay."""
    path = f"/nexus/runs/{scene.told}/page?prompts=true"
    file = folder / "saved.html"
    file.write_bytes(scene.served.ask(path, headers=scene.served.authorized)[2])
    seen = opened(size, locked=True)
    seen.page.goto(f"{file.as_uri()}#/?step=4")
    seen.wait("!!document.querySelector('.inspector .call') && !!document.querySelector('.curves polygon')")
    return seen


def width(seen: Seen) -> int:
    return int(seen.page.evaluate("document.documentElement.scrollWidth"))


def step_through(seen: Seen) -> list[str]:
    """Press Tab through the page, and return what was left out, and what got the focus unseen.

    The page changes meanwhile: what came behind the focus is reached the next time round.
    """
    seen.check("noteFocus")
    for _ in range(4):
        to_the_end(seen)
        if not (left := list(seen.check("unfocused"))):
            break
    return left


def to_the_end(seen: Seen) -> None:
    last = "document.activeElement === document.body || document.activeElement.id === 'skip'"
    seen.page.keyboard.press("Tab")
    for _ in range(300):
        seen.page.keyboard.press("Tab")
        if seen.page.evaluate(last):
            return
    raise AssertionError("the focus does not come to the end of the page")


@SIZES
def test_no_place_of_the_page_has_a_barrier(opened: Callable[..., Seen], scene: Scene, size: tuple[int, int]) -> None:
    for locked in (False, True):
        seen = opened(size, locked=locked)
        for place in places(scene, locked):
            seen.go(place)
            assert barriers(seen.page) == [], place
            if size == PHONE:
                assert seen.check("small", "body", 24) == [], place
                assert seen.check("small", ".play, .play-head", 44) == [], place


@SIZES
@pytest.mark.parametrize("scope", SEEN_BY_PASS)
def test_what_a_pass_opens_has_no_barrier(
    opened: Callable[..., Seen], scene: Scene, size: tuple[int, int], scope: str
) -> None:
    seen = by_pass(opened, scene.served, scope, size)
    assert barriers(seen.page) == []
    if size == PHONE:
        assert seen.check("small", "body", 24) == []
        assert seen.check("small", ".play, .play-head", 44) == []
    seen.page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    assert width(seen) <= NARROW[0]
    assert step_through(seen) == []


@SIZES
def test_a_saved_replay_has_no_barrier(
    opened: Callable[..., Seen], scene: Scene, tmp_path: Path, size: tuple[int, int]
) -> None:
    seen = saved(opened, scene, tmp_path, size)
    assert barriers(seen.page) == []
    seen.page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    assert width(seen) <= NARROW[0]
    assert step_through(seen) == []


def test_no_dialog_has_a_barrier(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened(NARROW)
    seen.go("")
    for name, more in (("Share", "Make an address"), ("Take a seat", ""), ("Lock", "Unlock")):
        seen.page.get_by_role("button", name=name, exact=True).click()
        if more:
            seen.page.get_by_role("button", name=more, exact=True).click()
        if name == "Share":
            seen.wait("!!document.querySelector('dialog img.qr')?.complete")
        seen.page.locator("dialog[open]").wait_for()
        assert barriers(seen.page) == [], name
        assert seen.check("small", "dialog", 24) == [], name
        assert width(seen) <= NARROW[0], name
        seen.page.keyboard.press("Escape")
        seen.wait("!document.querySelector('dialog')")


def test_on_320_pixels_nothing_scrolls_sideways_and_keys_reach_everything(
    opened: Callable[..., Seen], scene: Scene
) -> None:
    seen = opened(NARROW)
    for place in places(scene):
        seen.go(place)
        assert width(seen) <= NARROW[0], place
        assert step_through(seen) == [], place


def test_a_person_gets_around_by_the_keyboard_alone(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened(locked=True)
    seen.go("")
    press = seen.page.keyboard.press
    press("Tab")
    assert seen.page.evaluate("document.activeElement.id") == "skip"
    assert seen.page.evaluate("document.activeElement.getBoundingClientRect().top >= 0"), "the link is seen"
    press("Enter")
    assert seen.page.evaluate("document.activeElement.id") == "main"
    seen.go("")
    stops = []
    for _ in range(9):
        press("Tab")
        stop = seen.check("focus")
        assert stop["ring"] >= 2, f"it is not seen that {stop['text']!r} has the focus"
        stops.append(stop["text"])
    assert stops[1:7] == ["nexus", "Stage", "Agents", "Replays", "Backstage", "Unlock"]
    seen.page.locator("#nav a", has_text="Agents").focus()
    press("Enter")
    seen.wait("document.querySelector('main h1')?.textContent === 'Agents'")
    assert seen.page.evaluate("document.activeElement.id") == "main", "reading goes on with the page"
    seen.page.locator("#unlock").focus()
    press("Enter")
    assert seen.page.locator("dialog[open]").count() == 1
    assert seen.page.evaluate("document.activeElement.id") == "token"
    press("Escape")
    seen.wait("!document.querySelector('dialog')")
    assert seen.page.evaluate("document.activeElement.id") == "unlock"


def test_a_person_takes_a_seat_and_plays_by_keys_alone(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened()
    seen.go("")
    press = seen.page.keyboard.press

    def tab_to(words: str) -> None:
        for _ in range(100):
            press("Tab")
            if seen.check("focus")["text"].startswith(words):
                return
        raise AssertionError(f"{words!r} does not get the focus")

    tab_to("Take a seat")
    press("Enter")
    seen.wait("!!document.querySelector('dialog[open]')")
    seen.page.keyboard.type("Crafter")
    press("Tab")
    assert seen.page.evaluate("document.activeElement.id") == "seat-name"
    seen.page.keyboard.type("Ida")
    press("Enter")
    seen.wait("!!document.querySelector('.play-do:not([inert]) button')")
    assert seen.page.evaluate("document.querySelector('.play-head .where').textContent") == "In Crafter"
    told = "document.querySelector('.play-told').textContent"
    for key, direction in (("Enter", "west"), (" ", "east")):
        tab_to("←" if direction == "west" else "→")
        press(key)
        seen.wait(f"{told} === 'You walk {direction}.'")
        seen.wait("!!document.querySelector('.play-do:not([inert]) button')")
    tab_to("Letter keys on")
    press(" ")
    assert seen.page.locator(".play-do kbd", has_text="n").count() == 0


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_who_wants_less_motion_gets_none(opened: Callable[..., Seen], scene: Scene, motion: str) -> None:
    seen = opened()
    seen.page.emulate_media(reduced_motion=motion)
    seen.go("")
    seen.check("noteMotion", ".moments")

    async def come_and_go() -> None:
        await scene.served.nexus.enter("mia", "hall-of-long-names", EntryRequest(steps=1))
        await scene.served.nexus.await_exit("mia")

    scene.served.within(come_and_go())
    seen.wait("window.changes > 0")
    moved = seen.page.evaluate("window.moved")
    assert ("arrive" in moved) == (motion == "no-preference")
    assert moved == [] or motion == "no-preference"


def test_what_has_the_focus_keeps_it_when_the_stage_is_drawn_anew(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened()
    seen.go("")
    seen.page.locator(".plate-name a").focus()
    seen.page.evaluate("window.old = document.activeElement")
    seen.wait("!window.old.isConnected")
    assert seen.page.evaluate("document.activeElement.href === window.old.href")

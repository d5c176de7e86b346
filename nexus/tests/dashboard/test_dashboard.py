"""The dashboard in a real browser, at two sizes and in both colour schemes.

Needs Chromium (`apt-get install chromium`) and Playwright (`pip install playwright`), which fetches no
browser of its own here; `nox -s dashboard` runs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from dashboard_kit import EVIL, Served, Steady, host
from pond_kit import record
from sqlalchemy import insert

from wsap_core.host import PluginHost, Registration
from wsap_core.protocol import Action, Observation, Tick
from wsap_core.protocol.wire import dumps
from wsap_core.specs import AgentSpec
from wsap_nexus.api import play
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EntryRequest, Policy
from wsap_nexus.store.events.agents import AchievementEarned
from wsap_nexus.store.records import NewRun, RunStatus
from wsap_nexus.store.tables import METADATA

pytestmark = [pytest.mark.slow, pytest.mark.every_database]

DESKTOP, PHONE = (1280, 800), (390, 844)
SCHEMES = ("light", "dark")
EVENTS = 50_000
STEPS = 5_000
PATIENCE = 120_000
"""Milliseconds that something may take to show."""
CHECKS = (Path(__file__).parents[1] / "kit" / "dashboard_checks.js").read_text(encoding="utf-8")


def prepare(nexus: Nexus) -> None:
    """Register the agents: one that goes on and on, one with a model, and one that rests."""
    with nexus.nexus_store.change() as tx:
        model = Policy("llm", {"model": "talker/it"})
        still = {"nexus": Policy("external")}
        tx.register("ann", name=EVIL, persona=EVIL, policies={**still, "*": Policy("steady")})
        tx.register("mia", name="Mia", policies={**still, "*": model})
        tx.register("ben", name="Ben", policies={**still, "*": Policy("steady")})


@dataclass
class Scene:
    """A nexus with something to see in it."""

    served: Served
    world: str
    """Where `ann` is, for good."""
    run: str
    """Which run that is."""
    told: str
    """A run in which a model decided."""
    story: str
    """A run that its game shows."""


@pytest.fixture(scope="module")
def scene(databases: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with Served(tmp_path_factory.mktemp("scene"), prepare=prepare) as served:

        async def go() -> tuple[str, str, str]:
            told = await served.nexus.enter("mia", "hall", EntryRequest(steps=12))
            await served.nexus.await_exit("mia")
            here = await served.nexus.enter("ann", "hall", EntryRequest())
            return here.session.world_id, here.session.run_id, told.session.run_id

        with open_store(str(served.folder / "wsap.db")) as store:
            story = record(store, range(1, 9), text=f"A jump. {EVIL}")
        yield Scene(served, *served.within(go()), story)


@dataclass
class Seen:
    """A page, with everything that went wrong on it."""

    page: Any
    url: str
    problems: list[str] = field(default_factory=list)
    _loads: int = 0

    def go(self, route: str) -> None:
        """Load a page of the dashboard, and wait until what it shows has come."""
        self.load(route)
        self.wait("!!document.querySelector('main h1') && !!document.querySelector('.live.live')")
        self.wait("!document.querySelector('main [aria-busy]')")

    def load(self, route: str) -> None:
        """Load a page, from an address that differs in more than its fragment: otherwise nothing would be loaded."""
        self._loads += 1
        self.page.goto(f"{self.url}?{self._loads}#/{route}")

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def wait(self, condition: str, argument: object = None) -> None:
        """Wait until a condition holds; asked from outside, because the page allows nobody to evaluate text."""
        end = time.monotonic() + PATIENCE / 1000
        while not self.page.evaluate(condition, argument):
            assert time.monotonic() < end, f"it did not come to this: {condition} {argument or ''}"
            self.page.wait_for_timeout(25)

    def check(self, name: str, *arguments: object) -> Any:
        """Return what a function of `dashboard_checks.js` finds."""
        return self.page.evaluate(f"{CHECKS.strip()}.{name}({', '.join(map(json.dumps, arguments))})")

    def check_in(self, scheme: str, name: str) -> Any:
        """Return the same in a colour scheme."""
        self.page.emulate_media(color_scheme=scheme)
        return self.check(name)


@pytest.fixture
def opened(browser: Any, scene: Scene) -> Iterator[Callable[..., Seen]]:
    """Gives pages; at the end of the test nothing may have gone wrong on any of them."""
    given: list[tuple[Any, Seen]] = []

    def give(
        size: tuple[int, int] = DESKTOP,
        served: Served | None = None,
        *,
        locked: bool = False,
        may_lose: bool = False,
    ) -> Seen:
        served = served or scene.served
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce")
        if not locked:
            context.add_init_script(f"if (location.host) sessionStorage.setItem('wsap-token', '{served.token}')")
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        seen = Seen(page, served.url)

        def heard(message: Any) -> None:
            lost = may_lose and ("net::ERR" in message.text or "ERR_" in message.text)
            if message.type in ("error", "warning") and not lost:
                seen.problems.append(message.text)

        page.on("console", heard)
        page.on("pageerror", lambda error: seen.problems.append(str(error)))
        page.on("dialog", lambda dialog: seen.problems.append(f"a dialog: {dialog.message}"))
        given.append((context, seen))
        return seen

    yield give
    for context, seen in given:
        context.close()
        assert seen.problems == []


def routes(scene: Scene) -> list[str]:
    """Return every kind of page."""
    return [
        "", "ops", "worlds", f"world/{scene.world}", "agents", "agent/ann", "agent/mia", "agent/ben", "runs",
        f"run/{scene.told}?step=4", f"run/{scene.run}", f"run/{scene.story}?tick=6", "log",
    ]  # fmt: skip


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_page_is_whole_at_every_size_and_can_be_read(
    opened: Callable[..., Seen], scene: Scene, size: tuple[int, int]
) -> None:
    seen = opened(size)
    for route in routes(scene):
        seen.go(route)
        assert seen.page.locator("main h1").count() == 1, route
        assert seen.page.locator("main .problem").count() == 0, seen.text("main .problem")
        seen.wait("!document.querySelector('main').textContent.includes('Loading')")
        width = seen.page.evaluate("document.documentElement.scrollWidth")
        assert width <= size[0], f"{route or 'stage'} is {width} px wide"
        for scheme in SCHEMES:
            contrast = seen.check_in(scheme, "contrast")
            assert contrast["seen"] > 15, (route, scheme)
            assert contrast["bad"] == [], (route, scheme)
        assert seen.check("nameless") == [], route


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_spectator_s_pages_are_whole_and_say_what_is_hidden_and_how_to_see_it(
    opened: Callable[..., Seen], scene: Scene, size: tuple[int, int]
) -> None:
    seen = opened(size, locked=True)
    for route in routes(scene):
        seen.go(route)
        assert seen.text("main .spectator").startswith("You are a spectator"), route
        assert "wsap nexus start" in seen.text("main .spectator")
        assert seen.page.locator("main .problem, dialog").count() == 0, route
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= size[0], route
        assert seen.check("contrast")["bad"] == [], route
        assert seen.check("nameless") == [], route
    seen.go("agent/ann")
    seen.wait("document.querySelector('.stage img.frame')?.complete")
    assert "Time " not in seen.text("main"), "why it decides what it decides is its own"
    seen.page.locator(".spectator button").click()
    seen.page.locator("#token").fill(scene.served.token)
    seen.page.keyboard.press("Enter")
    seen.wait("document.querySelector('main').textContent.includes('Persona')")
    seen.wait("/Time \\d/.test(document.querySelector('.stay')?.textContent)")
    assert seen.page.locator(".spectator").count() == 0
    seen.page.locator("#unlock").click()
    seen.wait("!!document.querySelector('.spectator')")


def test_a_page_of_what_does_not_exist_has_only_the_reason(opened: Callable[..., Seen]) -> None:
    seen = opened()
    for route in ("world/nowhere", "agent/nobody", "run/nothing"):
        seen.load(route)
        seen.wait("!!document.querySelector('main .problem')")
        assert seen.text("main .problem").startswith("There is no "), route
        assert seen.page.locator("main .panel, main button, main h1").count() == 0, route
    seen.problems[:] = [problem for problem in seen.problems if "404" not in problem]


def test_what_games_agents_and_models_say_is_text_and_nothing_else(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened()
    for route in routes(scene):
        seen.go(route)
        if "run/" in route or "world/" in route or route == "agent/ann":
            seen.wait("document.querySelector('main').textContent.includes('window.hit=1')")
        for fold in seen.page.locator("main summary").all():
            if fold.is_visible():
                fold.click()
        assert seen.page.evaluate("window.hit === undefined"), route
        assert seen.check("foreign") == 0, route
        links = seen.check("links")
        assert all(link.startswith("#/") for link in links), links
    seen.go(f"world/{scene.world}")
    seen.wait("document.querySelector('.stage img.frame')?.complete")
    for block in ("image", "grid", "chat", "table", "text", "places"):
        assert seen.page.locator(f".stage .block-{block}").count() >= 1, block
    assert EVIL in seen.text(".stage .block-chat")


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


def test_the_scrubber_goes_through_a_run_by_keys(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened()
    seen.go(f"run/{scene.told}")
    said = "document.querySelector('.player output').textContent"
    reason = "document.querySelector('.inspector blockquote, .inspector .empty')?.textContent"
    seen.wait(f"{said} === 'step 1 of 12' && {reason}?.startsWith('Reason 1 ')")
    press = seen.page.keyboard.press
    seen.page.locator("input.scrub").focus()
    press("ArrowRight")
    seen.wait(f"{said} === 'step 2 of 12' && {reason}?.startsWith('Reason 2 ')")
    press("End")
    seen.wait(f"{said} === 'step 12 of 12'")
    press("Home")
    seen.wait(f"{said} === 'step 1 of 12' && {reason}?.startsWith('Reason 1 ')")
    seen.page.locator("main").focus()
    press("ArrowRight")
    press("ArrowRight")
    press("ArrowLeft")
    seen.wait(f"{said} === 'step 2 of 12'")
    press(" ")
    seen.wait(f"{said} === 'step 4 of 12'")
    press(" ")
    stopped = seen.page.evaluate(said)
    seen.page.locator("#jump").fill("9")
    press("Enter")
    seen.wait(f"{said} === 'step 9 of 12'")
    assert stopped != "step 9 of 12"
    seen.wait("document.querySelector('.row.active .n')?.textContent === '9'")
    seen.page.locator(".list").focus()
    press("ArrowUp")
    seen.wait(f"{said} === 'step 8 of 12'")
    seen.wait("location.hash.endsWith('step=8')")


def test_a_replay_opens_playing_before_its_top_moment_and_marks_all(
    opened: Callable[..., Seen], tmp_path: Path
) -> None:
    run = play("crafter", "crafter-survivor", seed=3, steps=60, database=str(tmp_path / "wsap.db")).run
    with Served(tmp_path, host=PluginHost.discovered) as served:
        seen = opened(PHONE, served=served, may_lose=True)  # it is open when the nexus stops
        seen.go(f"run/{run}")
        seen.wait("document.querySelectorAll('.tick').length > 0")
        assert "Pause" in seen.text(".player button[title^=Play]")
        seen.go(f"run/{run}?step=1")
        seen.wait("document.querySelectorAll('.tick').length > 0")
        assert "Play" in seen.text(".player button[title^=Play]")
        assert "for the first time: " in str(seen.page.locator(".tick").first.get_attribute("aria-label"))
        first = served.read(f"/nexus/runs/{run}/moments")["moments"][0]["position"]
        seen.page.locator("main").focus()
        seen.page.keyboard.press("n")
        seen.wait(f"document.querySelector('.player output').textContent === 'step {first} of 60'")
        seen.page.locator(".tick").first.click()
        before = max(1, first - 10)
        seen.wait(f"document.querySelector('.player output').textContent === 'step {before} of 60'")
        assert seen.check("nameless") == []


def test_a_replay_has_curves_and_is_compared_with_another_run_of_the_game(
    opened: Callable[..., Seen], tmp_path: Path
) -> None:
    database = str(tmp_path / "wsap.db")
    first = play("crafter", "crafter-survivor", seed=3, steps=30, database=database).run
    second = play("crafter", "crafter-survivor", seed=3, steps=12, database=database).run
    with Served(tmp_path, host=PluginHost.discovered) as served:
        seen = opened(PHONE, served=served, may_lose=True)  # it is open when the nexus stops
        seen.go(f"run/{first}?step=30")
        seen.wait("document.querySelectorAll('.curves polyline').length === 4")  # health, food, drink, energy
        assert "health 9 at the end" in seen.text(".curves .legend")
        seen.page.get_by_label("Compare with").select_option(second)
        seen.wait("/Over since step 12 of 12/.test(document.querySelector('main').textContent)")
        assert "The same seed" in seen.text("section[aria-label='The other run']")
        assert seen.page.locator(".curves .curve-other").count() == 2  # a line, and its key
        seen.page.locator("main").focus()
        seen.page.keyboard.press("Home")
        seen.wait("/Step 1 of 12/.test(document.querySelector('main').textContent)")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        # A run that is gone meanwhile says so in its own place, and the one that is shown goes on.
        answer = {"error": {"code": "UNKNOWN_NAME", "message": "It was pruned."}}
        seen.page.route(f"**/nexus/runs/{second}/**", lambda route: route.fulfill(status=404, json=answer))
        seen.page.keyboard.press("End")
        seen.wait("/It was pruned/.test(document.querySelector(\"section[aria-label='The other run']\").textContent)")
        seen.wait("document.querySelector('output.n').textContent === 'step 30 of 30'")
        seen.page.get_by_label("Compare with").select_option("")
        seen.page.get_by_label("Compare with").select_option(second)
        seen.wait("!!document.querySelector(\"section[aria-label='The other run'] .problem\")")
        assert seen.page.locator(".problem").count() == 1
        assert not seen.page.locator(".curves .curve-other").count()
        seen.problems[:] = [text for text in seen.problems if "404" not in text]
        for scheme in SCHEMES:
            assert seen.check_in(scheme, "contrast")["bad"] == [], scheme
        assert seen.check("nameless") == []


@pytest.mark.parametrize("prompts", [False, True], ids=["without prompts", "with prompts"])
def test_a_replay_is_saved_as_a_page_that_asks_for_nothing(
    opened: Callable[..., Seen], scene: Scene, tmp_path: Path, prompts: bool
) -> None:
    seen = opened(PHONE)
    seen.go(f"run/{scene.told}?step=4")
    if prompts:
        seen.page.get_by_label("with prompts").check()
    with seen.page.expect_download() as download:
        seen.page.get_by_role("button", name="Save as page").click()
    assert download.value.suggested_filename == f"{scene.told}.html"
    file = tmp_path / "saved.html"
    download.value.save_as(file)
    asked: list[str] = []
    seen.page.on("request", lambda request: asked.append(request.url))
    seen.page.goto(file.as_uri())
    seen.wait("document.querySelector('.player output')?.textContent.startsWith('step ')")
    seen.page.goto(f"{file.as_uri()}?again#/?step=4")
    seen.wait("document.querySelector('.inspector .call') !== null")
    seen.wait("!!document.querySelector('.curves polygon')")
    assert "step 4 of " in seen.text(".player output")
    assert ("are not in this page" in seen.text(".call")) != prompts
    seen.page.locator("main").focus()
    seen.page.keyboard.press("ArrowRight")
    seen.wait("document.querySelector('.player output').textContent.startsWith('step 5 of ')")
    assert {url.partition("?")[0].partition("#")[0] for url in asked} == {file.as_uri()}
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


@pytest.mark.parametrize("size", [DESKTOP, PHONE, (320, 640)], ids=["desktop", "phone", "narrow"])
def test_a_pass_shows_one_agent_and_says_so_when_it_is_taken_back(
    opened: Callable[..., Seen], scene: Scene, size: tuple[int, int]
) -> None:
    served, seen = scene.served, opened(size, locked=True)
    wanted = {"scope": "agent", "target": "ann", "talks": True}
    _, _, answer = served.ask("/nexus/passes", method="POST", body=wanted, headers=served.authorized)
    made = json.loads(answer)
    seen.page.goto(f"{served.url}#pass={made['token']}")
    seen.wait("!!document.querySelector('.guest-view img.frame')?.complete && !!document.querySelector('h1 svg')")
    assert made["token"] not in seen.page.url
    assert EVIL[:60] in seen.text("main h1")
    assert seen.page.evaluate("window.hit === undefined")
    assert seen.check("foreign") == 0
    assert seen.page.locator("#nav").is_hidden()
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= size[0]
    for scheme in SCHEMES:
        assert seen.check_in(scheme, "contrast")["bad"] == [], scheme
    assert seen.check("nameless") == []
    seen.page.locator("#words").fill("Hello!")
    seen.page.keyboard.press("Enter")
    seen.wait("!!document.querySelector('.guest-answer').textContent")
    served.ask(f"/nexus/passes/{made['made']['id']}", method="DELETE", headers=served.authorized)
    seen.wait("!!document.querySelector('.problem')")
    assert seen.text("main") == "This pass was taken back; ask for a new one."
    seen.problems[:] = [problem for problem in seen.problems if "401" not in problem]


def test_the_owner_shares_an_agent_from_the_stage_and_takes_it_back(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened(PHONE)
    seen.go("")
    seen.page.get_by_role("button", name="Share").click()
    seen.page.get_by_role("button", name="Make an address").click()
    seen.wait("!!document.querySelector('dialog img.qr')?.complete")
    for scheme in SCHEMES:
        assert seen.check_in(scheme, "contrast")["bad"] == [], scheme
    assert seen.check("nameless") == []
    token = seen.text("dialog .share-made a").partition("#pass=")[2]
    pass_header = {"Authorization": f"Bearer {token}"}
    assert scene.served.ask("/nexus/pass", headers=pass_header)[0] == 200
    seen.page.locator("dialog .share-list button").first.click()
    seen.wait("!document.querySelector('dialog .share-list li')")
    assert scene.served.ask("/nexus/pass", headers=pass_header)[0] == 401


def test_a_finished_run_tells_how_to_see_more_of_it(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened()
    seen.go(f"run/{scene.told}")
    assert seen.text("main .where code") == f"wsap hall show {scene.told}"
    world = scene.served.read(f"/nexus/runs/{scene.told}")["players"][0]["world"]
    seen.go(f"world/{world}")
    assert "The game is over." in seen.text(".stage")
    assert seen.text(".stage code") == f"wsap hall show {scene.told}"
    for route in (f"run/{scene.run}", f"world/{scene.world}"):
        seen.go(route)
        assert seen.page.locator("main .where code").count() == 0, "it is still being played"


def test_a_person_goes_through_a_story_and_shares_where_they_are(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened()
    numbers = "[...document.querySelectorAll('.timeline .n')].map((node) => Number(node.textContent)).join()"
    seen.go(f"run/{scene.story}")
    seen.wait(f"{numbers} === '6,7,8'")
    assert seen.page.locator("svg.map text.place").all_text_contents() == ["reeds", "water"]
    seen.page.locator("[aria-label='Previous tick']").click()
    seen.wait(f"{numbers} === '5,6,7'")
    seen.page.locator(".timeline button", has_text="Quax").first.click()
    seen.wait(f"{numbers} === '6'")
    assert seen.page.url.endswith("?tick=7&character=Quax")
    seen.page.reload()
    seen.wait(f"{numbers} === '6'")
    seen.page.locator("#select-character").select_option("")
    seen.page.locator("#select-tick").fill("3")
    seen.page.keyboard.press("Enter")
    seen.wait(f"{numbers} === '1,2,3'")
    seen.page.locator("#select-find").fill("nowhere")
    seen.page.keyboard.press("Enter")
    seen.wait("document.querySelector('.block-timeline').textContent.includes('Nothing to show.')")
    assert EVIL not in seen.text(".look")


def test_a_view_that_arrives_takes_neither_focus_nor_selected_text_from_a_field(
    opened: Callable[..., Seen], scene: Scene
) -> None:
    seen = opened()
    numbers = "[...document.querySelectorAll('.timeline .n')].map((node) => Number(node.textContent)).join()"
    seen.go(f"run/{scene.story}?tick=7&character=Quax")
    seen.wait(f"{numbers} === '6'")
    held: list[Any] = []
    seen.page.route("**/view?*", lambda route: held.append(route), times=1)
    seen.page.locator("#select-character").select_option("")
    seen.page.locator("#select-tick").select_text()
    while not held:
        seen.page.wait_for_timeout(25)
    held[0].continue_()
    seen.wait(f"{numbers} === '5,6,7'")
    seen.page.keyboard.type("3")
    assert seen.page.locator("#select-tick").input_value() == "3"
    seen.page.keyboard.press("Enter")
    seen.wait(f"{numbers} === '1,2,3'")


@pytest.fixture
def wild(databases: object, tmp_path: Path) -> Iterator[Served]:
    """A nexus with two agents that play Crafter well, each in a world of its own."""

    def two(nexus: Nexus) -> None:
        with nexus.nexus_store.change() as tx:
            for name in ("Ada", "Bob"):
                well = {"nexus": Policy("external"), "*": Policy("crafter-survivor")}
                tx.register(name.lower(), name=name, policies=well)

    with Served(tmp_path, Settings(pace=10.0), prepare=two) as served:
        for agent in ("ada", "bob"):
            served.within(served.nexus.enter(agent, "crafter", EntryRequest()))
        yield served


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_first_screen_says_who_is_on_stage_what_it_wants_and_what_just_happened(
    wild: Served, opened: Callable[..., Seen], size: tuple[int, int]
) -> None:
    seen = opened(size, served=wild)
    seen.go("")
    seen.wait("document.querySelector('.caption').textContent.includes(', for the first time: ')")
    seen.page.locator("button.chip", has_text="Stay here").click()
    seen.wait("document.querySelector('.now').textContent.startsWith('Now ')")
    seen.wait("document.querySelector('.scene img.frame')?.naturalWidth > 0")
    who = seen.text(".plate-name")
    assert who in ("Ada", "Bob")
    assert seen.page.locator(".vital meter").count() == 4
    for fact in (".plate-name", ".now", ".caption"):
        bottom = seen.page.evaluate(f"document.querySelector('{fact}').getBoundingClientRect().bottom")
        assert bottom <= size[1], f"{fact} is below the first screen"
    seen.page.locator("#say").fill("Are you well?")
    seen.page.keyboard.press("Enter")
    seen.wait("document.querySelector('.reply').textContent.includes('You: Are you well?')")
    assert f"{who}: hears it at the next step" in seen.text(".reply")
    # From a moment to what led to it: one press, and it plays.
    seen.page.locator(".moments a", has_text="10 steps before").first.click()
    seen.wait("/^#.run.*[?&]step=/.test(location.hash)")
    start = "Number(new URLSearchParams(location.hash.split('?')[1]).get('step'))"
    before = seen.page.evaluate(start)
    seen.wait(f"{start} > {before} + 1")


def test_a_person_stays_in_a_world_whatever_the_director_does(wild: Served, opened: Callable[..., Seen]) -> None:
    seen = opened(served=wild)
    seen.go("")
    seen.wait("document.querySelectorAll('.line .station-button').length === 2")
    seen.page.locator(".line .station-button[aria-pressed=false]").click()
    seen.wait("document.querySelector('.why').textContent === 'You stay here'")
    assert seen.page.locator(".line .station-button[aria-pressed=true]").count() == 1
    seen.page.locator("button.chip[aria-pressed=true]").click()
    seen.wait("document.querySelector('.why').textContent.startsWith('On stage: ')")


def test_a_world_that_lives_is_told_as_one_and_can_be_watched(
    databases: object, tmp_path: Path, opened: Callable[..., Seen]
) -> None:
    village = KeptWorld("village", "sandbox:village")
    with Served(tmp_path, Settings(worlds=(village,), pace=5.0)) as served:
        (world,) = served.read("/nexus/stage")["worlds"]
        seen = opened(served=served, may_lose=True)
        seen.go(f"world/{world['id']}")
        seen.wait("document.querySelector('main').textContent.includes('The world goes on by itself.')")
        seen.wait("!!document.querySelector('.stage .block')")
        assert "suspended" not in seen.text("main")
        seen.go("")
        seen.wait("!!document.querySelector('.scene .block')")
        assert "It goes on by itself" in seen.text(".plate")
        seen.page.goto("about:blank")


def test_a_story_that_goes_on_shows_its_new_ticks(opened: Callable[..., Seen], scene: Scene) -> None:
    with open_store(str(scene.served.folder / "wsap.db")) as store:
        run = record(store, [1, 2])
        seen = opened()
        seen.go(f"run/{run}")
        seen.wait("document.querySelector('.moment').textContent.includes('at tick 2')")
        store.writer.append(run, "tick", dumps(Tick(3, {"where": {}})), step=3)
        store.writer.flush()
        seen.wait("document.querySelector('.moment').textContent.includes('at tick 3')")


def test_new_ticks_leave_alone_what_somebody_is_typing(opened: Callable[..., Seen], scene: Scene) -> None:
    with open_store(str(scene.served.folder / "wsap.db")) as store:
        run = record(store, [1, 2])
        seen = opened()
        seen.go(f"run/{run}")
        seen.wait("document.querySelector('.moment').textContent.includes('at tick 2')")
        seen.page.locator("#select-find").press_sequentially("nowh")
        store.writer.append(run, "tick", dumps(Tick(3, {"where": {}})), step=3)
        store.writer.flush()
        seen.wait("document.querySelector('.moment').textContent.includes('at tick 3')")
        seen.page.keyboard.type("ere")
        assert seen.page.locator("#select-find").input_value() == "nowhere"
        seen.page.keyboard.press("Enter")
        seen.wait("document.querySelector('.block-timeline').textContent.includes('Nothing to show.')")


def test_the_inspector_shows_what_a_model_was_told_and_answered(opened: Callable[..., Seen], scene: Scene) -> None:
    rows = scene.served.read(f"/nexus/runs/{scene.told}/steps")["steps"]
    repaired = next(number for number, row in enumerate(rows, 1) if row["repaired"])
    seen = opened()
    seen.go(f"run/{scene.told}?step={repaired}")
    seen.wait("document.querySelectorAll('.call').length === 2")
    assert "repaired" in seen.text(".inspector")
    assert "I would rather not say." in seen.page.locator(".reply").nth(0).inner_text()
    assert '"reasoning": "Reason' in seen.page.locator(".reply").nth(1).inner_text()
    assert re.search(r"\d+ tokens in, \d+ out", seen.text(".call .where"))
    call = seen.page.locator(".call").nth(1)
    call.locator("summary", has_text="prompt").click()
    before = call.locator(".message").count()
    call.get_by_role("button", name="Show the whole prompt").click()
    seen.wait("(n) => document.querySelectorAll('.call')[1].querySelectorAll('.message').length > n", before)
    whole = call.locator(".prompt").inner_text()
    assert "A hall." in whole, "the instructions at the beginning"
    assert "I would rather not say." in whole


def test_doing_something_asks_for_the_token_once_and_keeps_it_out_of_every_address(
    opened: Callable[..., Seen], scene: Scene
) -> None:
    seen = opened(locked=True)
    asked: list[str] = []
    seen.page.on("request", lambda request: asked.append(request.url))
    served = scene.served

    def state() -> str:
        with served.nexus.nexus_store.look() as tx:
            return tx.agent("ann").state

    seen.go("agent/ann")
    button = seen.page.locator(".page > .buttons").get_by_role("button", name="Pause")
    button.click()
    seen.page.locator("#token").fill("x" * 43)
    seen.page.locator("#token").press("Enter")
    seen.wait("document.querySelector('dialog .bad').textContent.includes('Unknown token')")
    seen.problems[:] = [p for p in seen.problems if "401" not in p]
    assert state() == "active"
    seen.page.locator("#token").fill(served.token)
    seen.page.locator("#token").press("Enter")
    resume = seen.page.locator(".page > .buttons").get_by_role("button", name="Resume")
    resume.wait_for()
    assert state() == "paused"
    assert seen.text("#unlock") == "Lock"
    steps = served.do(lambda: served.nexus.live.sessions["ann"].stats.steps)
    seen.page.locator(".page > .buttons").get_by_role("button", name="One step").click()
    seen.wait("(n) => document.querySelector('.stay .n').textContent.replace(/\\D/g, '') === String(n)", steps + 1)
    resume.click()
    button.wait_for()
    assert state() == "active"
    edit = seen.page.get_by_role("button", name="Edit")
    edit.click()
    seen.page.locator("textarea#persona").fill("Calm, and fond of mirrors.")
    seen.page.get_by_role("button", name="Save").click()
    seen.wait("document.querySelector('.prose')?.textContent === 'Calm, and fond of mirrors.'")
    with served.nexus.nexus_store.change() as tx:
        assert tx.agent("ann").persona == "Calm, and fond of mirrors."
        tx.update_agent("ann", persona=EVIL)
    assert not any(served.token in url for url in asked)
    assert seen.page.context.cookies() == []
    assert seen.page.evaluate("localStorage.length") == 0


def test_a_person_changes_what_an_agent_keeps_in_mind(opened: Callable[..., Seen], scene: Scene) -> None:
    served = scene.served
    seen = opened()
    seen.go("agent/ben")
    change = seen.page.get_by_role("button", name="Change what it keeps in mind")
    change.click()
    seen.page.locator("textarea#core").fill("Cows are eaten.\n\n <b>Lava</b> kills. ")
    seen.page.locator("textarea#strategies").fill("Look first. " * 20)
    seen.page.get_by_role("button", name="Save").click()
    seen.page.locator(".toast.bad", has_text="200").wait_for()
    seen.problems[:] = [problem for problem in seen.problems if "400" not in problem]
    assert seen.page.locator("textarea#core").input_value().startswith("Cows"), "what was written is not lost"
    seen.page.locator("textarea#strategies").fill("Look first.")
    seen.page.get_by_role("button", name="Save").click()
    change.wait_for()
    seen.page.locator(".happened", has_text="<b>Lava</b> kills.").wait_for()
    with served.nexus.nexus_store.look() as tx:
        assert tx.agent("ben").core_memories == ("Cows are eaten.", "<b>Lava</b> kills.")
        assert tx.agent("ben").strategies == ("Look first.",)
    change.click()
    assert seen.page.locator("textarea#strategies").input_value() == "Look first."
    seen.page.locator("textarea#strategies").fill("")
    seen.page.get_by_role("button", name="Save").click()
    change.wait_for()
    with served.nexus.nexus_store.look() as tx:
        assert tx.agent("ben").strategies == ()


def test_an_agent_is_sent_somewhere_and_called_back(opened: Callable[..., Seen], scene: Scene) -> None:
    served = scene.served
    seen = opened()
    seen.page.add_init_script(
        f"if (location.protocol === 'http:') sessionStorage.setItem('wsap-token', {json.dumps(served.token)})"
    )
    seen.go("agent/ben")
    buttons = seen.page.locator(".page > .buttons")
    buttons.get_by_role("button", name="Send").click()
    seen.page.locator("#send-game").select_option("hall")
    seen.page.get_by_role("button", name="Send", exact=True).click()
    buttons.get_by_role("button", name="Recall").wait_for()
    assert served.do(lambda: served.nexus.live.sessions["ben"].session.game) == "hall"
    buttons.get_by_role("button", name="Recall").click()
    seen.wait(
        "[...document.querySelectorAll('.page > .buttons button')].find((b) => b.textContent === 'Recall').hidden"
    )
    seen.wait("document.querySelector('.feed').textContent.includes('recalled')")
    assert served.do(lambda: "ben" not in served.nexus.live.sessions)


def test_a_person_settles_a_move_in_doubt(opened: Callable[..., Seen], scene: Scene) -> None:
    served = scene.served

    def doubt() -> None:
        with served.nexus.nexus_store.change() as tx:
            transfer = tx.prepare("ben", "enter", game=EVIL)
            tx.settle(transfer, "unknown", why="It does not answer.")

    served.do(doubt)
    seen = opened()
    seen.page.add_init_script(
        f"if (location.protocol === 'http:') sessionStorage.setItem('wsap-token', {json.dumps(served.token)})"
    )
    seen.go("agent/ben")
    seen.page.get_by_role("button", name="It returned").click()
    seen.wait("document.querySelector('.feed').textContent.includes('was settled by a person')")
    seen.wait("![...document.querySelectorAll('button')].some((b) => b.textContent === 'It returned')")
    assert served.do(lambda: [row.state for row in _transfers_of(served)]) == ["cancelled"]
    assert not seen.page.evaluate("window.hit")


def _transfers_of(served: Any) -> list[Any]:
    # Any: the kit's nexus, and rows.
    with served.nexus.nexus_store.look() as tx:
        return [row for row in tx.transfers("unknown", "cancelled") if row.data.get("why") == "It does not answer."]


def test_a_person_talks_with_an_agent(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened()
    seen.page.add_init_script(
        f"if (location.protocol === 'http:') sessionStorage.setItem('wsap-token', {json.dumps(scene.served.token)})"
    )
    seen.go("agent/mia")
    seen.page.get_by_label("Talk with it").fill(f"Where have you been? {EVIL}")
    seen.page.get_by_role("button", name="Send message").click()
    seen.wait("document.querySelectorAll('.letters li').length >= 2")
    said = seen.page.locator(".letters li").all_inner_texts()
    assert any("Where have you been?" in line for line in said)
    seen.go("agent/mia")
    assert [line for line in seen.page.locator(".letters li").all_inner_texts() if "Where have you been?" in line]
    assert seen.check("foreign") == 0


def test_the_printed_address_opens_the_controls_once(opened: Callable[..., Seen], tmp_path: Path) -> None:
    with Served(tmp_path, prepare=prepare) as served:
        seen = opened(served=served, locked=True, may_lose=True)
        address = served.url + served.key.fragment
        seen.page.goto(address)
        seen.wait("document.querySelector('#unlock').textContent === 'Lock'")
        assert seen.page.url == served.url + "#/"
        again = opened(served=served, locked=True, may_lose=True)
        again.page.goto(address)
        again.wait("document.querySelector('.live.live') && document.querySelector('main h1')")
        assert again.text("#unlock") == "Unlock"
        again.wait("!!document.querySelector('dialog')")
        assert "wsap nexus key" in again.text("dialog .bad")
        again.problems[:] = [p for p in again.problems if "401" not in p]


def test_the_page_goes_on_by_itself_when_the_nexus_is_started_again(
    opened: Callable[..., Seen], tmp_path: Path
) -> None:
    served = Served(tmp_path, prepare=prepare).start()
    try:
        seen = opened(served=served, may_lose=True)
        seen.go("ops")
        seen.wait("document.querySelector('.feed').textContent.includes('The nexus started with 3 agents')")
        served.stop()
        seen.wait("document.querySelector('.live.lost')")
        served.start()
        seen.wait("document.querySelector('.live.live')")
        seen.wait("document.querySelector('.feed').textContent.includes('The nexus stopped')")
        with served.nexus.nexus_store.change() as tx:
            number = tx.note(AchievementEarned(agent_id="ben", game="hall", name="came_back"))
        seen.wait("document.querySelector('.feed').textContent.includes('came back')")
        numbers = seen.page.evaluate("[...document.querySelectorAll('.feed li')].map((n) => Number(n.dataset.seq))")
        assert numbers == sorted(set(numbers), reverse=True), "each event once, newest first"
        assert numbers[0] == number
    finally:
        served.stop()


@pytest.mark.parametrize("agents", [("ada",), ("ada", "bob")], ids=["one seat", "two seats"])
def test_a_page_that_was_opened_before_the_first_step_shows_it_when_it_is_there(
    opened: Callable[..., Seen], tmp_path: Path, agents: tuple[str, ...]
) -> None:
    go = threading.Event()

    class Patient(Steady):
        async def decide(self, observation: Observation) -> Action:  # type: ignore[override]  # it may be async
            await asyncio.to_thread(go.wait)
            return super().decide(observation)

    def with_patience() -> PluginHost:
        found = host()
        found.agents.add(
            Registration(AgentSpec("patient", "Waits until it is told to go on.", Patient), "tests", "tests")
        )
        return found

    def waiting(nexus: Nexus) -> None:
        with nexus.nexus_store.change() as tx:
            for agent in agents:
                tx.register(agent, name=agent, policies={"nexus": Policy("external"), "*": Policy("patient")})

    game = "hall" if len(agents) == 1 else "matrix"
    with Served(tmp_path, prepare=waiting, host=with_patience) as served:

        async def enter() -> None:
            await asyncio.gather(*(served.nexus.enter(agent, game, EntryRequest()) for agent in agents))

        try:
            served.within(enter())
            run = served.do(lambda: served.nexus.live.sessions["ada"].session.run_id)
            seen = opened(served=served, may_lose=True)
            seen.go(f"run/{run}")
            seen.wait("document.querySelector('.stage').textContent.includes('It has not started yet.')")
        finally:
            go.set()
        seen.wait("document.querySelectorAll('.list .row:not([hidden])').length >= 1")
        seen.wait("document.querySelector('output.n').textContent.startsWith('step 1 of')")


@contextmanager
def full(folder: Path) -> Iterator[tuple[Served, str]]:
    """Give a nexus with 50,000 events in its log, and a run of 5,000 steps."""
    runs: list[str] = []

    def fill(nexus: Nexus) -> None:
        prepare(nexus)
        kinds = ("entered", "left", "skill_gained", "achievement")
        rows = [
            {
                "kind": kinds[n % 4], "agent_id": ("ann", "ben")[n % 2], "game": "hall", "session_id": None,
                "time": 1.7e9 + n, "body": json.dumps({"world": "hall-000001", "steps": n, "name": f"deed {n}"}),
            }
            for n in range(EVENTS)
        ]  # fmt: skip
        with nexus.store.database.write() as connection:
            for at in range(0, EVENTS, 5000):
                connection.execute(insert(METADATA.tables["nexus_event"]), rows[at : at + 5000])
        repository, writer = nexus.store.repository, nexus.store.writer
        run = repository.create_run(
            NewRun(game="hall", agent="steady", config={"game": "hall", "seats": [{"name": "ann", "agent": "steady"}]})
        ).id
        for n in range(STEPS):
            line = {
                "action": {"name": "look", "parameters": {}}, "seat": "ann",
                "observation": {"status": {"step": n}, "step": n + 1},
                "result": {"achievements": [], "done": False, "message": f"step {n}", "reward": 0.0, "success": True},
            }  # fmt: skip
            body = json.dumps({"decision": None, "reasoning": f"because {n}", "step": line})
            writer.append(run, "step", body, seat="ann", episode=0, step=n)
        writer.flush()
        repository.set_status(run, RunStatus.FINISHED, {"steps": STEPS})
        runs.append(run)

    with Served(folder, Settings(pace=5.0), prepare=fill) as served:
        yield served, runs[0]


def test_fifty_thousand_events_can_be_scrolled_and_hold_no_more_of_the_page(
    opened: Callable[..., Seen], tmp_path: Path
) -> None:
    with full(tmp_path) as (served, run):
        seen = opened(served=served, may_lose=True)
        seen.go("log")
        seen.wait("document.querySelectorAll('.row:not([hidden])').length > 8")
        nodes = seen.check("nodes")
        seen.check("scroll", 120)
        assert seen.check("nodes") < nodes + 300 < 1500
        passed = EVENTS - max(seen.check("rows"))
        assert passed > 400, "more than is held in memory went by"
        with served.nexus.nexus_store.change() as tx:
            newest = tx.note(AchievementEarned(agent_id="ben", game="hall", name="meanwhile"))
        seen.page.get_by_role("button", name="Show new events").wait_for()
        seen.page.locator(".list").focus()
        seen.page.keyboard.press("End")
        seen.wait(f"{CHECKS.strip()}.rows().includes(1)")
        assert seen.check("nodes") < nodes + 300
        seen.page.keyboard.press("Home")
        seen.wait(f"{CHECKS.strip()}.rows().includes({newest})")

        seen.go(f"run/{run}")
        said = "document.querySelector('.player output').textContent.replace(/\\D+/g, ' ').trim()"
        seen.wait(f"{said}.startsWith('1 ')")
        seen.page.locator("#jump").fill("4321")
        seen.page.keyboard.press("Enter")
        seen.wait("document.querySelector('.inspector blockquote')?.textContent === 'because 4320'")
        seen.wait("document.querySelector('.row.active')?.textContent.includes('because 4320')")
        seen.check("scroll", 60)
        assert seen.check("nodes") < 1500


class BelowAPath(BaseHTTPRequestHandler):
    """A reverse proxy that serves a nexus below `/deep/wsap/`, as a line in the configuration of nginx does."""

    target = ""

    def do_GET(self) -> None:
        if not self.path.startswith("/deep/wsap/"):
            self.send_error(404, "The page asked for something beside it")
            return
        link = http.client.HTTPConnection(self.target)
        with contextlib.closing(link), contextlib.suppress(ConnectionError):
            kept = {name: value for name, value in self.headers.items() if name not in ("Host", "Connection")}
            link.request("GET", self.path.removeprefix("/deep/wsap"), headers=kept)
            found = link.getresponse()
            self.send_response(found.status)
            for name, value in found.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while some := found.read1():
                self.wfile.write(some)
                self.wfile.flush()

    def log_message(self, *words: object) -> None:
        """Say nothing."""


def test_the_page_works_below_a_path_behind_a_proxy(opened: Callable[..., Seen], scene: Scene) -> None:
    handler = type("Proxy", (BelowAPath,), {"target": scene.served.url.removeprefix("http://").rstrip("/")})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        try:
            seen = opened()
            seen.url = f"http://127.0.0.1:{proxy.server_address[1]}/deep/wsap/"
            seen.go("ops")
            with scene.served.nexus.nexus_store.change() as tx:
                tx.note(AchievementEarned(agent_id="ben", game="hall", name="seen below a path"))
            seen.wait("document.querySelector('.feed').textContent.includes('seen below a path')")
            seen.go(f"run/{scene.run}?step=2")
            seen.wait("!!document.querySelector('.row.active')")
            seen.page.goto("about:blank")
        finally:
            proxy.shutdown()
            thread.join()


def test_live_events_do_not_pile_up_on_a_page_that_stays_open(opened: Callable[..., Seen], scene: Scene) -> None:
    seen = opened()
    seen.go("ops")
    for part in range(4):
        with scene.served.nexus.nexus_store.change() as tx:
            for number in range(60):
                tx.note(AchievementEarned(agent_id="ben", game="hall", name=f"deed {part}-{number}"))
    seen.wait("document.querySelector('.feed').textContent.includes('deed 3-59')")
    assert seen.page.locator(".feed li").count() <= 60

"""The page of a story in a real browser, from a file, without a network.

Needs Chromium (`apt-get install chromium`) and Playwright (`pip install playwright`); `nox -s dashboard` runs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from access_kit import barriers
from sandbox_kit import mill
from story_kit import EVIL, told

from wsap_sandbox.story.chapters import read_chapters
from wsap_sandbox.story.views import html

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page in which every text is markup."""
    world = mill()
    world = replace(world, title=EVIL, places=tuple(replace(one, name=f"{one.name} {EVIL}") for one in world.places))
    file = tmp_path_factory.mktemp("page") / "story.html"
    file.write_text("".join(html(read_chapters(told(world, 60, text=EVIL)))), encoding="utf-8")
    return file


@pytest.fixture
def page(browser: Any, story: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The page, at the size asked for; at the end nothing may have gone wrong on it or been asked of a network."""
    context = browser.new_context(viewport=getattr(request, "param", {"width": 1280, "height": 800}), offline=True)
    found = context.new_page()
    problems: list[str] = []
    asked: list[str] = []
    found.on("console", lambda message: problems.append(message.text))
    found.on("pageerror", lambda error: problems.append(str(error)))
    found.on("request", lambda made: asked.append(made.url.partition("#")[0]))
    found.goto(story.as_uri())
    found.wait_for_selector(".scenes li")
    yield found
    assert problems == []
    assert set(asked) == {story.as_uri()}
    assert found.evaluate("window.hit") is None
    context.close()


@pytest.mark.parametrize("page", [{"width": 1280, "height": 800}, {"width": 360, "height": 740}], indirect=True)
def test_the_page_fits_and_shows_text_as_it_is(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("img, iframe, a").count() == 0
    assert "<script>window.hit=1</script>" in page.locator(".scenes .text").first.inner_text()
    assert page.locator("svg text.place").count() == 3
    assert page.locator("h1").inner_text() == " ".join(EVIL.replace("\u202e", " ").split())


@pytest.mark.parametrize("page", [{"width": 1280, "height": 800}, {"width": 390, "height": 844}], indirect=True)
def test_nothing_on_the_page_is_a_barrier(page: Any) -> None:
    assert barriers(page) == []
    page.locator("[aria-label=Characters]").select_option("vera")
    page.locator(".scenes summary").first.click()
    page.locator("input[type=search]").fill("the 47th day")
    assert barriers(page) == []


@pytest.mark.parametrize("page", [{"width": 320, "height": 640}], indirect=True)
def test_the_narrowest_page_scrolls_only_downwards_and_is_used_by_keys(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.locator("svg g[role=button]").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert page.locator(".found").inner_text() == "Scenes found: 60"
    page.keyboard.press(" ")
    assert page.locator(".found").inner_text() == "Scenes found: 180"


def test_one_character_is_followed_through_the_ticks(page: Any) -> None:
    page.locator("[aria-label=Characters]").select_option("vera")
    assert page.locator(".found").inner_text() == "Scenes found: 60"
    assert "I tried day 1." in page.locator(".mind").inner_text()
    for people in page.locator(".scenes .head").all_inner_texts():
        assert " · " in people.partition("Vera")[0]
    page.locator("[aria-label=Later]").first.click()
    assert "I tried day 2." in page.locator(".mind").inner_text()
    page.locator("input[type=range]").fill("59")
    assert "Tick 60 of 60" in page.locator("output").inner_text()
    assert "I tried day 60." in page.locator(".mind").inner_text()


def test_words_are_found_in_the_whole_story_and_where_one_is_can_be_shared(page: Any) -> None:
    page.locator("input[type=search]").fill("THE 47TH DAY")
    assert page.locator(".found").inner_text() == "Scenes found: 3"
    assert page.locator("mark").all_inner_texts() == ["the 47th day"] * 3
    page.locator(".scenes .n").first.click()
    page.locator(".scenes .head button", has_text="the mill").click()
    assert "tick=47" in page.url
    page.reload()
    page.wait_for_selector(".scenes li")
    assert page.locator(".scenes > li").count() == 1
    assert page.locator("output").inner_text() == "Tick 47 of 60"
    page.locator("input[type=search]").fill("no such words")
    assert page.locator(".found").inner_text() == "No matching scenes."


def test_what_a_scene_rests_on_is_opened(page: Any) -> None:
    page.locator(".scenes summary").first.click()
    lines = page.locator(".scenes details[open] li").all_inner_texts()
    assert lines[0].startswith("1.mill.1 Anna goes on.")
    assert lines[-1] == "Prompts: 1/intent/anna, 1/intent/boris, 1/scene/mill, 1/story/mill"

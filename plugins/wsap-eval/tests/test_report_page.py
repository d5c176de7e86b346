"""The report in a real browser, without a network, at two sizes and in both colour schemes.

Needs Chromium (`apt-get install chromium`) and Playwright (`pip install playwright`); `nox -s dashboard` runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from access_kit import barriers

from wsap_eval.reading import played_of
from wsap_eval.report.page import report_html

pytestmark = pytest.mark.slow
MakeResults = Callable[..., Path]
EVIL = '</script><script>window.hit=1</script><img src=x onerror="window.hit=1">'
SIZES = ((1280, 800, "light"), (390, 844, "dark"))


def test_the_report_fits_its_window_and_runs_only_its_own_script(
    make_results: MakeResults, tmp_path: Path, browser: Any
) -> None:
    played = played_of(make_results(("random", EVIL, "W" * 100), seeds=20))
    path = tmp_path / "report.html"
    path.write_text(report_html(played, database="runs.db"), encoding="utf-8")
    grounds = set()
    for width, height, scheme in SIZES:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, offline=True)
        page = context.new_page()
        problems: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message, seen=problems: seen.append(message.text))
        page.on("pageerror", lambda error, seen=problems: seen.append(str(error)))
        page.on("request", lambda request, seen=asked: seen.append(request.url))
        page.goto(path.as_uri())
        for part in ("scores", "paired", "cost", "outcomes"):
            page.locator(f"#{part} figure").scroll_into_view_if_needed()
            page.locator(f"#{part} figure > :nth-child(2)").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("window.hit") is None
        assert page.locator("img").count() == 0
        assert page.locator("svg[role=img]").count() == 4  # scores, two pairs, cost
        assert page.locator("#episodes tbody tr").count() == 50
        assert problems == []
        assert asked == [path.as_uri()], "nothing is fetched"
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert barriers(page) == []
        page.set_viewport_size({"width": 320, "height": 640})
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        context.close()
    assert len(grounds) == 2, "dark is dark"


def test_a_point_copies_the_command_or_opens_the_dashboard(
    make_results: MakeResults, tmp_path: Path, browser: Any
) -> None:
    path = tmp_path / "report.html"
    path.write_text(report_html(played_of(make_results()), database="runs.db"), encoding="utf-8")
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    context.add_init_script("window.open = (address) => { window.opened = address; }")
    page = context.new_page()
    page.goto(path.as_uri())
    page.get_by_label("seed").fill("3")
    page.get_by_role("button", name="replay").first.click()
    page.get_by_text("Copied: wsap replay eval-ran3 --database runs.db").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "wsap replay eval-ran3 --database runs.db"
    page.locator("#dashboard").fill("javascript:alert(1)")
    page.get_by_role("button", name="replay").first.click()
    assert page.evaluate("window.opened") is None
    page.locator("#dashboard").fill("http://127.0.0.1:9998/")
    points = page.locator("#scores svg")
    points.scroll_into_view_if_needed()
    path_of = page.evaluate("document.querySelector('#scores path').getAttribute('d')")
    x, y = map(float, path_of.removeprefix("M").split("h")[0].split())
    points.click(position={"x": x, "y": y})
    assert page.evaluate("window.opened").startswith("http://127.0.0.1:9998/#/run/eval-ran")
    context.close()


ROWS = """() => [...document.querySelectorAll('figure')].map(
    (figure) => [figure.dataset.kind, figure.querySelectorAll('path.dots, .pairs, .bar, circle.mean').length]
)"""


def test_what_was_not_scrolled_to_is_on_paper_and_in_a_picture_of_the_whole_page(
    make_results: MakeResults, tmp_path: Path, browser: Any
) -> None:
    path = tmp_path / "report.html"
    path.write_text(report_html(played_of(make_results(seeds=20)), database="runs.db"), encoding="utf-8")
    context = browser.new_context(viewport={"width": 1280, "height": 300}, color_scheme="dark")
    # A browser that never has time, and in which nothing ever scrolls near the window: only printing draws.
    context.add_init_script("window.requestIdleCallback = () => {}; IntersectionObserver.prototype.observe = () => {};")
    page = context.new_page()
    page.goto(path.as_uri())
    assert all(count == 0 for _, count in page.evaluate(ROWS))
    count = "document.querySelectorAll('details:not([open])').length"
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.shut = {count}; }})")
    shut = page.evaluate(count)
    assert shut > 0
    page.pdf()
    assert page.evaluate("window.shut") == 0, "the conditions of entrants are on paper"
    page.wait_for_function(f"() => {count} === {shut}")
    drawn = page.evaluate(ROWS)
    assert [kind for kind, _ in drawn] == ["scores", "paired", "cost", "outcomes"]
    assert all(count > 0 for _, count in drawn)
    page.emulate_media(media="print")
    ink, ground = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.querySelector('.panel')).backgroundColor]"
    )
    assert (ink, ground) == ("rgb(26, 32, 41)", "rgb(255, 255, 255)"), "paper is light"
    assert page.evaluate("getComputedStyle(document.querySelector('.bar')).printColorAdjust") == "exact"
    context.close()
    page = browser.new_page(viewport={"width": 1280, "height": 300})
    page.goto(path.as_uri())
    page.wait_for_function(f"() => ({ROWS})().every(([kind, count]) => count > 0)")  # without scrolling
    page.screenshot(full_page=True, path=tmp_path / "page.png")
    page.close()


def test_the_list_of_episodes_is_filtered_and_paged(make_results: MakeResults, tmp_path: Path, browser: Any) -> None:
    path = tmp_path / "report.html"
    path.write_text(report_html(played_of(make_results(seeds=60)), database="runs.db"), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.locator(".pages").inner_text().endswith("1 to 50 of 120")
    page.get_by_role("button", name="Next").click()
    assert page.locator(".pages").inner_text().endswith("51 to 100 of 120")
    page.get_by_label("all outcomes").select_option("failed")
    assert page.locator("#episodes tbody tr").all_inner_texts() == [
        "replay\tminigrid\topenai/x\t2\tfailed: The provider did not answer.\t–\t40\t$0.01\t"
    ]
    page.close()

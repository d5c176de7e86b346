"""The report in a real browser, without a network, at two sizes and in both colour schemes.

Needs Chromium (`apt-get install chromium`) and Playwright (`pip install playwright`), which fetches no browser
of its own here; `nox -s dashboard` runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from access_kit import barriers

from wsap_tossim.tournament.plan import Entrant, Settings
from wsap_tossim.tournament.report import report_html
from wsap_tossim.tournament.table import summary_of

pytestmark = pytest.mark.slow
EVIL = '</title></style><script>window.hit=1</script><img src=x onerror="window.hit=1">'


def test_the_report_fits_its_window_and_runs_nothing(
    line: Callable[..., dict[str, Any]], tmp_path: Path, browser: Any
) -> None:
    cup = Settings((Entrant(EVIL, "scripted"), Entrant("W" * 60, "random")), {"mode": "five"})
    sums = [{"votes": 1.0, "votes_hit": 1.0, "votes_base": 0.2}] * 5
    lines = [line(n, [n % 2, 0, 1, 0, 1], [0], "Town", sums=sums) for n in range(40)]
    path = tmp_path / "report.html"
    path.write_text(report_html(summary_of(cup, lines, resamples=5)), encoding="utf-8")
    grounds = set()
    for width, height, scheme in ((1280, 800, "light"), (390, 844, "dark")):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, offline=True)
        page = context.new_page()
        problems: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message, seen=problems: seen.append(message.text))
        page.on("pageerror", lambda error, seen=problems: seen.append(str(error)))
        page.on("request", lambda request, seen=asked: seen.append(request.url))
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("window.hit") is None
        assert page.locator("script, img").count() == 0
        assert page.locator("svg[role=img]").count() >= 4
        assert page.get_by_text(EVIL[:30]).count() > 0
        assert problems == []
        assert asked == [path.as_uri()], "nothing is fetched"
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert barriers(page) == []
        context.close()
    assert len(grounds) == 2, "dark is dark"

"""Barriers that a page puts before people, as axe-core finds them.

Needs `pip install axe-playwright-python`, which contains axe-core, so that nothing is fetched.
"""

from __future__ import annotations

from typing import Any

import pytest

LEVEL_AA = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")
COLOURS = ("color-contrast", "link-in-text-block")
"""Rules that find other things in another colour scheme."""


def barriers(page: Any) -> list[str]:
    """Return what violates WCAG 2.1, levels A and AA, on a page of Playwright; in the end its colours are dark."""
    kit = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-core: pip install axe-playwright-python"
    )
    found = []
    for scheme, kind, values in (("light", "tag", LEVEL_AA), ("dark", "rule", COLOURS)):
        page.emulate_media(color_scheme=scheme)
        options = {"runOnly": {"type": kind, "values": list(values)}, "resultTypes": ["violations"]}
        # From outside, which a page's content-security policy does not forbid.
        for rule in kit.Axe().run(page, options=options).response["violations"]:
            found += [f"{scheme}: {rule['id']}: {one['html'][:150]}: {one['failureSummary']}" for one in rule["nodes"]]
    return found

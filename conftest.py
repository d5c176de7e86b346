"""What holds for all tests: property tests draw the same examples each time, so that a run can be repeated.

`pytest --hypothesis-profile=default` draws others, to look for what nobody has thought of.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun in the background: processes of tests would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")  # no longer: while it is open, asyncio can't run in its thread
def browser() -> Iterator[Any]:
    """A browser of Playwright (`pip install playwright`) on the system's Chromium (`apt-get install chromium`)."""
    api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    # Chromium's own sandbox needs a user other than root.
    flags = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=[*flags, "--disable-gpu"])
        yield found
        found.close()

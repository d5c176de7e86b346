"""What holds for all tests: property tests draw the same examples each time, so that a run can be repeated.

`pytest --hypothesis-profile=default` draws others, to look for what nobody has thought of.

With `WSAP_TESTS_RECORD` set to a folder, each process writes there which tests it ran, skipped or deselected, and in
which `WSAP_TESTS_STAGE`; `tools/check_tests_ran.py` compares such records of several calls of pytest.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun in the background: processes of tests would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


RECORD, STAGE = os.environ.get("WSAP_TESTS_RECORD"), os.environ.get("WSAP_TESTS_STAGE", "")
"""Where to note what runs, and in which stage; read at the start, because tests clear variables."""


def _note(test: str, outcome: str, reason: str = "") -> None:
    """Append a line about a test, or a module skipped as a whole, to this process' record, if one is asked for."""
    if RECORD:
        with Path(RECORD, f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"test": test, "outcome": outcome, "reason": reason, "stage": STAGE}) + "\n")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if not isinstance(report.longrepr, tuple):
        return str(report.longrepr)
    path, _, why = report.longrepr
    return f"{why} (the suite)" if "wsap_check" in Path(path).parts else str(why)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a module that is skipped as a whole."""
    if report.skipped:
        _note(report.nodeid, "skipped", _reason(report))


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Note the tests that a mark or a name leaves out."""
    for item in items:
        _note(item.nodeid, "deselected")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note whether a test was skipped or ran."""
    if report.skipped:
        _note(report.nodeid, "skipped", _reason(report))
    elif report.when == "call":
        _note(report.nodeid, "ran")


@pytest.fixture(scope="module")  # no longer: while it is open, asyncio can't run in its thread
def browser() -> Iterator[Any]:
    """A browser of Playwright (`pip install playwright`) on the system's Chromium (`apt-get install chromium`)."""
    api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    # The first has no user interface, which costs as much as the pages.
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    # Chromium's own sandbox needs a user other than root.
    flags = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=[*flags, "--disable-gpu"])
        yield found
        found.close()

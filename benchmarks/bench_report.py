"""Measure how long an evaluation's HTML report takes to open, compared with an empty page.

    python benchmarks/bench_report.py [--episodes N] [--repeats N] [--slow X] [--json]

Writes the report of N synthetic episodes (10,000) of 5 entrants in 2 games, and opens it by Playwright in the system's
Chromium, in a desktop window and in a phone's with a CPU slowed down X times (4). It is open once the table, the list
of episodes and the visible plots are drawn: the time from navigation to the second frame after the script, as the
median of N repeats (5), each in a new browser context. Other plots are drawn on scrolling; the time to scroll through
all is printed too. Goal: under 2 s and at most 10 MB. The exit status is 1 if it is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from wsap_core.host import PluginHost
from wsap_eval.planning.plan import games_of
from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite
from wsap_eval.records import EpisodeRecord, Outcome, SeatRecord
from wsap_eval.report.page import report_html
from wsap_eval.run import Played

WANTED_SECONDS, WANTED_BYTES = 2.0, 10_000_000
EMPTY = "<!doctype html><meta charset=utf-8><title>Empty</title><p>Nothing.</p>"
WINDOWS = (("desktop", 1280, 800, 1), ("phone", 390, 844, 0))
"""Name, width, height, and CPU slowdown; 0 for `--slow`."""
SEEN = """async () => {
  const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  await frames();
  return performance.now();
}"""
DOWN = """async () => {
  const begun = performance.now();
  for (const figure of document.querySelectorAll('figure')) {
    figure.scrollIntoView();
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  }
  return performance.now() - begun;
}"""


def results(episodes: int) -> Played:
    """Return synthetic results."""
    rng = random.Random(1)
    agents = ("random", "minigrid-finder", "ollama/qwen3:8b", "openai/gpt-5", "ollama/llama3.2:3b")
    suite = Suite(
        name="report",
        games=(
            GameEntry(game="minigrid", label="small", steps=100, metric="levels"),
            GameEntry(game="minigrid", label="large", steps=400, metric="levels"),
        ),
        entrants=tuple(Entrant(agent=agent) for agent in agents),
        seeds=Seeds(count=episodes // 10),
    )
    conditions = {"legal": "bound", "game": "wsap-minigrid 0.1.0", "wsap": "0.1.0", "prompts": "3-7dac087a292e"}
    outcomes: tuple[Outcome, ...] = ("finished", "step_limit", "forfeited", "failed")
    records = []
    for game in suite.games:
        for number, agent in enumerate(agents):
            for seed in range(episodes // 10):
                outcome = rng.choices(outcomes, (60, 30, 8, 2))[0]
                value = float(min(8, rng.randrange(4) + number)) if outcome in outcomes[:2] else None
                seat = SeatRecord("seat-1", agent, 40, value or 0.0, (), True, 3, 1)
                records.append(EpisodeRecord(
                    game.name, agent, seed, 0, outcome, "The provider did not answer." if outcome == "failed" else "",
                    value, {"levels": value or 0.0}, rng.randrange(400), value or 0.0, (), (seat,),
                    f"{rng.getrandbits(256):064x}", f"eval-{rng.getrandbits(80):020x}", "2026-11-20T10:00:00+00:00",
                    rng.uniform(1, 90), 40, 40_000, 900, round(rng.uniform(0, 0.1), 5), conditions=conditions,
                ))  # fmt: skip
    return Played(suite, games_of(suite, PluginHost.discovered()), tuple(records), 0, {}, {})


def opened(browser: Any, page_file: Path, width: int, height: int, slow: int) -> tuple[float, float]:
    """Return the seconds from navigation until the page is drawn, and those for scrolling through all plots."""
    context = browser.new_context(viewport={"width": width, "height": height}, offline=True)
    page = context.new_page()
    if slow > 1:
        context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slow})
    page.goto(page_file.as_uri())  # until its script has run
    found, down = page.evaluate(SEEN), page.evaluate(DOWN)
    assert page.locator("figure").count() == page.locator("figure:has(> :nth-child(2))").count(), "all plots are drawn"
    context.close()
    return found / 1000, down / 1000


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--slow", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("There is no Chromium; install it with: apt-get install chromium")
    begun = time.perf_counter()
    report = report_html(results(arguments.episodes), database="results/runs.db")
    written, size = time.perf_counter() - begun, len(report.encode())
    rows: list[dict[str, Any]] = []
    flags = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        pages = {"report": Path(folder, "report.html"), "empty page": Path(folder, "empty.html")}
        pages["report"].write_text(report, "utf-8")
        pages["empty page"].write_text(EMPTY, "utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, args=[*flags, "--disable-gpu"])
        for window, width, height, own in WINDOWS:
            slow = own or arguments.slow
            for name, path in pages.items():
                times = [opened(browser, path, width, height, slow) for _ in range(arguments.repeats)]
                seconds, down = (statistics.median(column) for column in zip(*times, strict=True))
                rows.append({"window": window, "slowed": slow, "page": name, "seconds": seconds, "plots": down})
        browser.close()
    reached = size <= WANTED_BYTES and all(row["seconds"] < WANTED_SECONDS for row in rows)
    if arguments.json:
        print(json.dumps({"episodes": arguments.episodes, "bytes": size, "written": written, "opened": rows}, indent=2))
    else:
        print(f"{arguments.episodes:,} episodes: {size / 1e6:.2f} MB, written in {written:.1f} s with its statistics")
        for row in rows:
            plots = f", all plots {row['plots']:.3f} s" if row["page"] == "report" else ""
            print(f"{row['window']:8} (x{row['slowed']})  {row['page']:10}  {row['seconds']:.3f} s{plots}")
        print("reached" if reached else "MISSED the goal of under 2 s and at most 10 MB")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())

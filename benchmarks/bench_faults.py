"""Faults of the machine beside a living nexus: how fast agents decide before, during and after each, and who is told.

    python benchmarks/bench_faults.py [--files 1024] [--connections 2000] [--lock 60] [--entries 200000]
                                      [--case CASE] [--json]

Six scripted agents play at four decisions a second in a nexus of its own process.

- `silent`: so many connections on which nothing is sent, at a hard limit of so many open files;
- `slow`: the same, with a byte of a request's head every five seconds;
- `lock`: another program holds the database's write lock for so many seconds;
- `import`: `wsap nexus agents import` of the largest permitted diary;
- `all`: each in turn.

Goals: during `silent`, `slow` and `import` the agents decide at 80 % of their rate or more, every request for the
nexus' health is answered within a second, and connections keep `wsap nexus status` waiting for less than one; during
`lock` health is 503 with the reason. 30 seconds after each everything is as before, no agent is paused, and
`wsap nexus stop` ends with 0. The exit status is 1 if one is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import resource
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from wsap_nexus.agents.agent_file import LARGEST, MOST_ENTRIES, Identity, Left, Package, PackedEntry, write_package

AGENTS = 6
PACE = 4.0
SECONDS = 20.0
"""How long the rate is measured before and during a fault."""
AFTER = 30.0
"""Seconds after a fault until everything has to be as before."""
SLOW = 5.0
"""Seconds between two bytes of a slow client."""


class Hub:
    """A nexus in a process of its own, with a limit of open files that it can't raise."""

    def __init__(self, folder: Path, files: int) -> None:
        self.folder = folder
        self.environ = {**os.environ, "WSAP_HOME": str(folder), "NO_COLOR": "1"}
        for number in range(AGENTS):
            self.wsap("agents", "add", f"agent-{number}", "--policy", "nexus=wanderer")
        words = ["nexus", "start", "--port", "0", "--json", "--pace", str(PACE), "--workers", "2", "--game", "crafter"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "wsap_core", *words],
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=(folder / "errors.txt").open("w"),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
        )
        assert self.process.stdout is not None
        self.ready: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.url = str(self.ready["url"])

    def wsap(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `wsap nexus WORDS`."""
        return subprocess.run(
            [sys.executable, "-m", "wsap_core", "nexus", *words],
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )

    def health(self) -> tuple[float, int, str]:
        """Return the seconds that the nexus needed to tell its health, the status, and the reason."""
        began = time.perf_counter()
        try:
            with urllib.request.urlopen(f"{self.url}nexus/health", timeout=120) as answer:
                status, body = answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            status, body = error.code, json.load(error)
        return time.perf_counter() - began, status, str(body.get("reason") or "")

    def decisions(self) -> int:
        """Return the number of recorded decisions."""
        with contextlib.closing(sqlite3.connect(f"file:{self.folder}/wsap.db?mode=ro", uri=True)) as reading:
            return int(reading.execute("SELECT count(*) FROM event WHERE kind = 'step'").fetchone()[0])

    def rate(
        self,
        seconds: float,
        health: list[tuple[float, int, str]] | None = None,
        status: list[float] | None = None,
        lasts: Callable[[], bool] = lambda: False,
    ) -> float:
        """Return the decisions per second over some seconds, or while something lasts; meanwhile ask for the health
        each second and for `wsap nexus status` each fifth second, and note what they took."""
        began, before = time.monotonic(), self.decisions()
        for second in itertools.count():
            if time.monotonic() - began >= seconds and not lasts():
                break
            if health is not None:
                health.append(self.health())
            if status is not None and second % 5 == 0:
                asked = time.perf_counter()
                assert self.wsap("status").returncode == 0
                status.append(time.perf_counter() - asked)
            time.sleep(1.0)
        return (self.decisions() - before) / (time.monotonic() - began)

    def paused(self) -> int:
        """Return the number of agents that are not active."""
        return sum(agent["state"] != "active" for agent in json.loads(self.wsap("agents", "list", "--json").stdout))

    def stop(self) -> int:
        """Stop it, and return its exit status."""
        assert self.wsap("stop").returncode == 0
        return self.process.wait(120)


@contextlib.contextmanager
def connections(hub: Hub, count: int, *, slow: bool) -> Iterator[None]:
    """Hold connections; a `slow` one sends a byte now and then."""
    host, port = hub.url.removeprefix("http://").rstrip("/").split(":")
    over = threading.Event()
    held: list[socket.socket] = []

    def open_one() -> socket.socket:
        one = socket.socket()
        one.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            one.connect((host, int(port)))
        return one

    def drip() -> None:
        text = b"GET /nexus HTTP/1.1\r\nX-Slow: " + b"a" * 1000
        sent = 0
        while not over.is_set():
            for one in held:
                with contextlib.suppress(OSError):  # it was closed
                    one.send(text[sent : sent + 1])
            sent += 1
            over.wait(SLOW)

    held.extend(open_one() for _ in range(count))
    dripping = threading.Thread(target=drip)
    if slow:
        dripping.start()
    try:
        yield
    finally:
        over.set()
        if slow:
            dripping.join()
        for one in held:
            one.close()


@contextlib.contextmanager
def lock(hub: Hub, seconds: float) -> Iterator[None]:
    """Hold the write lock of the database as another program."""
    with contextlib.closing(sqlite3.connect(hub.folder / "wsap.db", isolation_level=None, timeout=60)) as other:
        other.execute("BEGIN IMMEDIATE")
        until = time.monotonic() + seconds
        yield
        time.sleep(max(0.0, until - time.monotonic()))
        other.execute("ROLLBACK")


@contextlib.contextmanager
def importing(hub: Hub, entries: int, told: dict[str, Any]) -> Iterator[None]:
    """Import an agent with so many diary entries; the block ends with the import."""
    text = "x" * (LARGEST // MOST_ENTRIES - 120)
    entry = PackedEntry(written="2026-01-01T00:00:00+00:00", game="crafter", text=text, own_words=True)
    package = Package(
        agent=Identity(
            id="old", name="Old", created="2026-01-01T00:00:00+00:00", persona="", core_memories=[], strategies=[],
            lifetime_steps=1, playtime=1.0,
        ),
        policies={}, skills={}, evidence=[], achievements=[], goals=[], diary=[entry] * entries, mind=None,
        left=Left(bodies=0, items=0),
    )  # fmt: skip
    told["entries"] = write_package(hub.folder / "old.agent", package)
    began = time.monotonic()
    words = [sys.executable, "-m", "wsap_core", "nexus", "agents", "import", str(hub.folder / "old.agent")]
    with subprocess.Popen(words, env=hub.environ, stdout=subprocess.DEVNULL) as process:
        told["process"] = process
        yield
        told["import_status"] = process.wait(600)
        told["import_seconds"] = round(time.monotonic() - began, 1)
    del told["process"]


def measured(hub: Hub, case: str, args: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one case."""
    told: dict[str, Any] = {"case": case}
    faults: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
        "silent": lambda: connections(hub, args.connections, slow=False),
        "slow": lambda: connections(hub, args.connections, slow=True),
        "lock": lambda: lock(hub, args.lock),
        "import": lambda: importing(hub, args.entries, told),
    }
    health: list[tuple[float, int, str]] = []
    usual: list[tuple[float, int, str]] = []
    status: list[float] = []
    usual_status: list[float] = []
    floods = case in ("silent", "slow")
    before = hub.rate(SECONDS, usual, usual_status if floods else None)
    with faults[case]():
        process: subprocess.Popen[bytes] | None = told.get("process")
        during = hub.rate(
            args.lock - 1 if case == "lock" else SECONDS,
            health,
            status if floods else None,
            lambda: process is not None and process.poll() is None,
        )
    ended = time.monotonic()
    while time.monotonic() - ended < AFTER and hub.health()[1] != 200:
        time.sleep(0.5)
    told["back_after"] = round(time.monotonic() - ended, 1)
    after = hub.rate(SECONDS)
    told |= {
        "before": round(before, 2),
        "during": round(during / before, 3),
        "after": round(after / before, 3),
        "slowest_health_before": round(max(seconds for seconds, _, _ in usual), 3),
        "slowest_health": round(max(seconds for seconds, _, _ in health), 3),
        "slowest_status_before": round(max(usual_status), 3) if floods else None,
        "slowest_status": round(max(status), 3) if floods else None,
        "health": sorted({status for _, status, _ in health}),
        "reasons": sorted({reason for _, _, reason in health if reason}),
        "paused": hub.paused(),
    }
    told["met"] = bool(
        told["paused"] == 0
        and told["after"] >= 0.8
        and told["back_after"] < AFTER
        and (503 in told["health"] if case == "lock" else told["during"] >= 0.8 and told["slowest_health"] < 1.0)
        and (told["slowest_status"] or 0.0) - (told["slowest_status_before"] or 0.0) < 1.0
        and told.get("import_status", 0) == 0
    )
    return told


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=1024)
    parser.add_argument("--connections", type=int, default=2000)
    parser.add_argument("--entries", type=int, default=MOST_ENTRIES)
    parser.add_argument("--lock", type=float, default=60.0)
    parser.add_argument("--case", choices=("silent", "slow", "lock", "import", "all"), default="all")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * args.connections + 500), hard))
    cases = ("silent", "slow", "lock", "import") if args.case == "all" else (args.case,)
    met = True
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            hub = Hub(Path(folder), args.files)
            try:
                while hub.decisions() < 20 * AGENTS:  # all of them are in worlds
                    time.sleep(1.0)
                told = measured(hub, case, args)
                told["stop"] = hub.stop()
            finally:
                hub.process.kill()
        met = met and told["met"] and told["stop"] == 0
        print(json.dumps(told) if args.json else "  ".join(f"{name} {value}" for name, value in told.items()))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())

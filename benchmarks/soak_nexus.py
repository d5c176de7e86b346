"""Check that the memory of a nexus stays level for hours.

    python benchmarks/soak_nexus.py [--hours 8] [--agents 30] [--pace 0] [--game NAME]... [--every 10] [--csv FILE]

Starts `wsap nexus start` in a new process with scripted agents that wander through the games, and samples the private
memory of the process and its workers every few seconds (`Private` of `/proc/PID/smaps_rollup`, without cached files and
shared libraries). A simulated hour is over once each agent has made as many decisions as in an hour at the default
pace, 4 per second; `--pace 0` means as fast as possible.

Prints the level after ten simulated minutes (median of the next two minutes), the level at the end (median of the last
tenth), their ratio, and the slope between; and the database's growth in the second half compared with the forecast of
`wsap nexus status` at half-time. The exit status is 1 if the ratio of total memory exceeds 1.1.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

LIMIT = 1.1
"""Maximum ratio of the level at the end to that after ten minutes."""
WARM_UP = 1 / 6
"""Simulated hours before the first level is taken."""
PACE = 4.0
"""Decisions per second of each agent in a simulated hour: the default of `wsap nexus start`."""


@dataclass(frozen=True)
class Sample:
    """The memory and disk usage at one moment."""

    seconds: float
    """Since the nexus responded."""
    decisions: int
    hours: float
    nexus_mib: float
    """Private memory of the process of the nexus."""
    workers_mib: float
    """Private memory of its worker processes together."""
    disk_mib: float
    """The database with its journal."""
    content: int
    """Bytes of the database's content, as reported by the nexus."""
    growth: float
    """The nexus's forecast in bytes per day; 0 if there is none."""

    @property
    def total_mib(self) -> float:
        """Private memory of all processes."""
        return self.nexus_mib + self.workers_mib


@contextlib.contextmanager
def running(
    folder: Path, pace: float, games: list[str], extra: list[str]
) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Yield the process of a nexus, its address, and its token."""
    options = ["--json", "--port", "0", "--pace", str(pace), "--database", str(folder / "nexus.db"), *extra]
    options += [part for game in games for part in ("--game", game)]
    command = [sys.executable, "-m", "wsap_core", "nexus", "start", *options]
    process = subprocess.Popen(
        command, env={**os.environ, "WSAP_HOME": str(folder)}, stdout=subprocess.PIPE, stderr=sys.stderr, text=True
    )
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        yield process, ready["url"].rstrip("/"), Path(ready["token_file"]).read_text(encoding="utf-8").strip()
    finally:
        process.terminate()
        process.wait()


def ask(url: str, path: str, token: str, body: Any = None) -> Any:
    """Return the response of the nexus."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url + path, data, headers), timeout=120) as answer:
        return json.load(answer)


def private(pid: int) -> float:
    """Return a process's private memory in MiB."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(row.split()[1]) for row in rows if row.startswith("Private_")) / 1024


def children(pid: int) -> list[int]:
    """Return a process's descendants."""
    found = []
    for tasks in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            for child in map(int, (tasks / "children").read_text(encoding="ascii").split()):
                found += [child, *children(child)]
    return found


def sample(pid: int, folder: Path, seconds: float, decisions: int, agents: int, storage: dict[str, Any]) -> Sample:
    """Measure once."""
    workers = 0.0
    for child in children(pid):
        with contextlib.suppress(OSError):
            workers += private(child)
    disk = sum(file.stat().st_size for file in folder.glob("nexus.db*")) / 2**20
    hours = decisions / agents / PACE / 3600
    return Sample(
        round(seconds, 1), decisions, round(hours, 4), round(private(pid), 1), round(workers, 1), round(disk, 1),
        storage["bytes"], storage["growth"] or 0.0,
    )  # fmt: skip


def main() -> int:
    """Measure and print; 1 if memory grew beyond the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=8.0, help="simulated")
    parser.add_argument("--agents", type=int, default=30)
    parser.add_argument("--pace", type=float, default=0.0)
    parser.add_argument("--game", action="append", default=[])
    parser.add_argument("--every", type=float, default=10.0, help="seconds between samples")
    parser.add_argument("--csv", type=Path, help="write the samples to this file")
    parser.add_argument("--folder", type=Path, help="keep the database here")
    options, extra = parser.parse_known_args()
    samples: list[Sample] = []
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        process, url, token = stack.enter_context(running(folder, options.pace, options.game, extra))
        for number in range(options.agents - 2):  # a new nexus has two
            policies = {"nexus": {"agent": "wanderer", "options": {}}}
            ask(url, "/nexus/agents", token, {"id": f"agent-{number:03d}", "policies": policies})
        out = stack.enter_context(options.csv.open("w", newline="")) if options.csv else sys.stdout
        table = csv.DictWriter(out, list(Sample.__annotations__))
        table.writeheader()
        decisions = Decisions(folder / "nexus.db")
        began = time.monotonic()
        while not samples or samples[-1].hours < options.hours:
            time.sleep(options.every)
            if process.poll() is not None:
                raise SystemExit("the nexus ended")
            seconds = time.monotonic() - began
            storage = ask(url, "/nexus/health", token)["storage"]
            samples.append(sample(process.pid, folder, seconds, decisions.count(), options.agents, storage))
            table.writerow(asdict(samples[-1]))
            out.flush()
    return report(samples)


class Decisions:
    """Counts the decisions in a database incrementally."""

    def __init__(self, database: Path) -> None:
        self._reader = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        self._row = self._count = 0

    def count(self) -> int:
        """Return the current number."""
        query = "SELECT max(rowid), sum(kind = 'step') FROM event WHERE rowid > ?"
        row, new = self._reader.execute(query, (self._row,)).fetchone()
        self._row, self._count = row or self._row, self._count + (new or 0)
        return self._count


def report(samples: list[Sample]) -> int:
    """Print level, slope and ratio; 1 if memory grew beyond the limit."""
    warm = [s for s in samples if s.hours >= WARM_UP]
    if len(warm) < 10:
        print("too short: at least ten samples after ten simulated minutes are needed")
        return 1
    missed = False
    for name in ("nexus_mib", "workers_mib", "total_mib"):
        held = [getattr(s, name) for s in warm]
        first = statistics.median([getattr(s, name) for s in warm if s.hours <= WARM_UP * 1.2] or held[:1])
        last = statistics.median(held[-max(3, len(held) // 10) :])
        slope = statistics.linear_regression([s.hours for s in warm], held).slope
        missed = last > first * LIMIT
        print(
            f"{name:<12} after ten minutes {first:.1f}, at the end {last:.1f}, ratio {last / first:.3f}, "
            f"slope {slope:+.1f} MiB per simulated hour"
        )
    last_one = samples[-1]
    half = next(s for s in samples if s.seconds >= last_one.seconds / 2)
    days = (last_one.seconds - half.seconds) / 86_400
    if half.growth and days:
        came = (last_one.content - half.content) / days
        print(
            f"growth       forecast at half-time {half.growth / 2**30:.2f} GiB a day, actual {came / 2**30:.2f}, "
            f"ratio {half.growth / came:.3f}"
        )
    print(
        f"{last_one.hours:.2f} simulated hours, {last_one.decisions:,} decisions in {last_one.seconds:,.0f} s, "
        f"database {last_one.disk_mib:,.0f} MiB"
    )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

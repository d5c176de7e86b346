"""Run a nexus on a small file system that repeatedly fills up; check its reports and that nothing is lost.

    mount -t tmpfs -o size=6m tmpfs FOLDER
    python benchmarks/bench_full_disk.py FOLDER [--minutes 10] [--pace 20]

Three scripted agents play, and one over the wire API, which notes acknowledgements. A filler on the disk is removed
piece by piece. Goal: health, log and terminal report each time without space, the nexus resumes by itself each time,
and every acknowledged step and message is recorded exactly once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from wsap_core.errors import WsapError
from wsap_core.protocol import Action
from wsap_nexus.client import NexusClient
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.store.tables import METADATA

PIECE = 256 * 1024
"""Half of the bytes freed at a time."""
HELD = 45.0
"""Seconds for which the disk stays full."""


class Wire:
    """An agent that plays over the wire API, and its acknowledgements; `token` is the admin's."""

    def __init__(self, url: str, token: str) -> None:
        self.steps: list[str] = []
        self.letters: list[str] = []
        self.refused: Counter[str] = Counter()
        self._url, self._token = url, token
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live)
        self._thread.start()

    def end(self) -> None:
        """Stop."""
        self._over.set()
        self._thread.join()

    def _live(self) -> None:
        with NexusClient(self._url, self._token) as admin:
            own = admin.register("eve").token
        with NexusClient(self._url, own) as client:
            number = 0
            while not self._over.is_set():
                number += 1
                try:
                    if client.agent("eve").agent.place == "nexus":
                        client.enter("eve", "crafter")
                    client.observation("eve")
                    client.act("eve", Action("noop", {}, f"step {number}"), key=f"step-{number}")
                    self.steps.append(f"step {number}")
                    if number % 10 == 0:
                        client.send("eve", f"letter {number}", to="ada")
                        self.letters.append(f"letter {number}")
                except WsapError as error:
                    self.refused[type(error).__name__ + " " + str(getattr(error, "reason", error.code))] += 1
                    self._over.wait(0.5)


def health(url: str) -> dict[str, Any]:
    """Return the health of a nexus (Any: the API's JSON)."""
    try:
        with urllib.request.urlopen(f"{url}nexus/health", timeout=10) as answer:
            return dict(json.load(answer), code=answer.status)
    except urllib.error.HTTPError as error:
        return dict(json.load(error), code=error.code)


def fill(folder: Path) -> list[Path]:
    """Fill a file system with files, and return them."""
    pieces: list[Path] = []
    with contextlib.suppress(OSError):
        while True:
            piece = folder / f"piece-{len(pieces)}"
            pieces.append(piece)
            piece.write_bytes(bytes(PIECE))
    return pieces


@contextlib.contextmanager
def nexus(folder: Path, home: Path, pace: float, log: IO[str]) -> Iterator[tuple[str, str]]:
    """Yield the address and token of a nexus whose database is in a folder."""
    environ = {**os.environ, "WSAP_HOME": str(home)}
    database = str(folder / "wsap.db")
    words = [sys.executable, "-m", "wsap_core", "nexus"]
    start = ["start", "--port", "0", "--workers", "0", "--pace", str(pace), "--game", "crafter", "--json"]
    process = subprocess.Popen(
        [*words, *start, "--database", database], env=environ, stdout=subprocess.PIPE, stderr=log, text=True
    )
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    watching = subprocess.Popen([*words, "watch", "--lines", "--database", database], env=environ, stdout=log)
    try:
        yield ready["url"], Path(ready["token_file"]).read_text(encoding="ascii").strip()
    finally:
        process.send_signal(signal.SIGTERM)
        print("exit status of the nexus:", process.wait(120))
        watching.terminate()
        watching.wait(60)


def check(folder: Path, wire: Wire) -> bool:
    """Compare the records with the acknowledgements."""
    path = str(folder / "wsap.db")
    connection = sqlite3.connect(path)
    sound = connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    gaps = connection.execute("SELECT run_id FROM event GROUP BY run_id HAVING count(*) != max(seq) + 1").fetchall()
    connection.close()
    found: Counter[str] = Counter()
    with open_store(path) as store:
        for run in store.repository.list_runs():
            for event in store.repository.read_events(run.id, kinds=("step",), seat="eve"):
                found[str(event.data["reasoning"])] += 1
        with NexusStore(store.database).look() as tx:
            letter = METADATA.tables["letter"]
            letters = Counter(row.content for row in tx.connection.execute(letter.select()))
            failed = tx.events(kinds=("agent_failed", "session_force_closed", "world_crashed"), limit=1000)
            places = {agent.id: agent.state for agent in tx.agents()}
    lost = [name for name in wire.steps if found[name] != 1] + [name for name in wire.letters if letters[name] != 1]
    print(f"database sound: {sound}; runs with gaps: {len(gaps)}; agents: {places}; failures: {len(failed)}")
    print(f"acknowledged: {len(wire.steps)} steps, {len(wire.letters)} letters; lost or doubled: {lost[:5]}")
    print(f"refused meanwhile: {dict(wire.refused)}")
    return sound and not gaps and not lost and not failed


def main() -> int:
    """Fill and free the disk; 1 if a report is missing or anything is lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--pace", type=float, default=20.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, (Path(home) / "log").open("w+", encoding="utf-8") as log:
        with nexus(options.folder, Path(home), options.pace, log) as (url, token):
            wire = Wire(url, token)
            while not wire.steps:
                time.sleep(0.1)
            pieces = fill(options.folder)
            began, stretches, untold = time.monotonic(), 0, 0
            while time.monotonic() - began < options.minutes * 60 and len(pieces) > 1:
                while health(url)["status"] == "ok":
                    time.sleep(0.2)
                told = health(url)
                untold += told["code"] != 503 or not told["reason"]
                time.sleep(HELD)
                stretches += 1
                stood = len(wire.steps)
                pieces.pop().unlink(missing_ok=True)
                pieces.pop().unlink(missing_ok=True)
                freed = time.monotonic()
                while health(url)["status"] != "ok" or len(wire.steps) == stood:
                    time.sleep(0.1)
                now = time.monotonic()
                print(f"{now - began:5.0f} s: went on {now - freed:.1f} s after it was freed, "
                      f"{len(wire.steps)} steps acknowledged", flush=True)  # fmt: skip
            wire.end()
        log.seek(0)
        lines = log.read().splitlines()
        said = sum("The nexus holds its agents" in line for line in lines)
        seen = sum("Agents are held:" in line for line in lines)
        print(f"{stretches} stretches without room: untold by health {untold}, told by the log {said}, by watch {seen}")
        good = check(options.folder, wire) and not untold and min(said, seen) >= stretches
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

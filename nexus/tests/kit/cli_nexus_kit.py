"""A nexus as a process of its own, started from the command line, and other commands beside it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from warm import begin_wsap, run_wsap

PATIENCE = 120.0
"""Seconds to wait for what has to happen; never waited for in full unless it fails."""

QUICK = ("--port", "0", "--workers", "0", "--pace", "50", "--game", "echo")
"""Options with which a nexus is up at once and much happens in it."""


def environ_of(home: Path, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LANG", "HOME")}
    return {**kept, "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "WSAP_HOME": str(home), **more}


def wsap(environ: dict[str, str], *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return run_wsap(words, env=environ, given=given, timeout=PATIENCE)


def nexus(environ: dict[str, str], *words: str) -> str:
    """What `wsap nexus WORDS` prints; it has to succeed."""
    done = wsap(environ, "nexus", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def nexus_json(environ: dict[str, str], *words: str) -> Any:
    return json.loads(nexus(environ, *words, "--json"))


def refused(environ: dict[str, str], *words: str) -> tuple[int, str]:
    """The exit status of `wsap nexus WORDS` and the one sentence that it ends with."""
    done = wsap(environ, "nexus", *words)
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return done.returncode, lines[0]


def until(happened: Callable[[], Any], what: str) -> Any:
    """What is returned once it is true."""
    end = time.monotonic() + PATIENCE
    while not (found := happened()):
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.05)
    return found


class Hub:
    """A running nexus."""

    def __init__(self, environ: dict[str, str], *words: str) -> None:
        self.environ = environ
        self.process = begin_wsap(("nexus", "start", "--json", *(words or QUICK)), env=environ)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.ready: dict[str, Any] = json.loads(line)

    def tell(self, number: int) -> None:
        self.process.send_signal(number)

    def ended(self) -> tuple[int, str]:
        """The exit status, and what it wrote to its standard error."""
        _, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, errors

    def kill(self) -> None:
        """SIGKILL, as a crash would be."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=PATIENCE)

    def status(self) -> Any:
        return nexus_json(self.environ, "status")

    def answering(self) -> Any:
        """The status, once it responds; a busy machine may keep it from that for seconds."""
        return until(lambda: (s := self.status())["answers"] and s, "a response")

    def someone_was_away(self) -> Any:
        """The status, once a stay has been ended or begun."""
        return until(lambda: (s := self.status())["sessions"] and s, "a stay")


@contextlib.contextmanager
def running(environ: dict[str, str], *words: str) -> Iterator[Hub]:
    hub = Hub(environ, *words)
    try:
        yield hub
    finally:
        if hub.process.poll() is None:
            hub.kill()

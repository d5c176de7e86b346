"""Quarries whose games do one bad thing each, in the middle of a session, to the process in which they run.

A game does it in its tenth step, again whenever that step is repeated. What it starts writes its process id into
the folder `$BAD_NEIGHBOURS`, if that is set; one that will never return writes a letter into the file `$BAD_HANGS`.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import gc
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import hub_kit

from wsap_core.protocol import Action, ActionResult
from wsap_core.specs import AdapterSpec
from wsap_nexus.worlds.workers.keeper import MOST

STEP = 10


class Bad(hub_kit.Quarry):
    def act(self, action: Action) -> ActionResult:
        result = super().act(action)
        if self._state["step"] == STEP:
            self.misbehave()
        return result

    def misbehave(self) -> None:
        raise NotImplementedError


def forever() -> NoReturn:
    while True:
        pass


def hangs() -> None:
    """Say that from now on this process answers nothing."""
    if (path := os.environ.get("BAD_HANGS")) is not None:
        with Path(path).open("a", encoding="ascii") as file:
            file.write("x")


class Loop(Bad):
    def misbehave(self) -> None:
        hangs()
        forever()


class Deaf(Bad):
    """Loops in code that lets no other thread of its process run, with all signals blocked."""

    def misbehave(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
        hangs()
        while True:
            pow(3, 10**7)


class Printer(Bad):
    def misbehave(self) -> None:
        for _ in range(100):
            print("x" * 2**20)
        hangs()
        forever()


class Eater(Bad):
    def misbehave(self) -> None:
        held = []
        while True:
            held.append(b"x" * (16 * 2**20))


class EatingChild(Bad):
    """Has its children eat."""

    def misbehave(self) -> None:
        for _ in range(4):
            _start("held = []\nwhile True: held.append(b'x' * 2**20)")
        forever()


class Json(Bad):
    def misbehave(self) -> None:
        def broken(*args: Any, **kwargs: Any) -> NoReturn:
            raise ValueError("broken")

        json.dumps = json.loads = broken  # type: ignore[assignment]
        json.JSONEncoder.encode = json.encoder.c_make_encoder = broken  # type: ignore[assignment, method-assign]
        struct.pack = struct.unpack = broken  # type: ignore[assignment]


class Length(Bad):
    def misbehave(self) -> None:
        import builtins

        builtins.len = lambda thing: 7  # type: ignore[assignment]


class Clock(Bad):
    def misbehave(self) -> None:
        time.monotonic = time.time = lambda: 0.0  # type: ignore[assignment]
        hangs()
        forever_asleep = threading.Event()
        forever_asleep.wait()


class Tasks(Bad):
    """Cancels everything on the event loop."""

    def misbehave(self) -> None:
        for task in asyncio.all_tasks():
            task.cancel()


class Killed(Bad):
    def misbehave(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class KillsParent(Bad):
    def misbehave(self) -> None:
        os.kill(os.getppid(), signal.SIGKILL)
        forever()


class KillsGroup(Bad):
    def misbehave(self) -> None:
        os.killpg(0, signal.SIGKILL)


class StopsParent(Bad):
    def misbehave(self) -> None:
        os.kill(os.getppid(), signal.SIGSTOP)
        hangs()
        forever()


class Exits(Bad):
    def misbehave(self) -> None:
        os._exit(0)


class Overflow(Bad):
    def misbehave(self) -> None:
        ctypes.string_at(1)


class Forks(Bad):
    """Leaves children, and one that is nobody's child any more; then it fails."""

    def misbehave(self) -> None:
        for _ in range(18):
            _leave_child()
        _leave_daemon()
        os._exit(7)


class Crowd(Bad):
    """Starts more processes than a worker may."""

    def misbehave(self) -> None:
        for _ in range(MOST + 10):
            _leave_child()
        forever()


class Daemon(Bad):
    """Leaves a process that is nobody's child, and goes on."""

    def misbehave(self) -> None:
        _leave_daemon()


class Threads(Bad):
    """Starts threads that end never, and delays the end of the process; then it fails."""

    def misbehave(self) -> None:
        for _ in range(5):
            threading.Thread(target=forever).start()
        atexit.register(forever)
        raise RuntimeError("no more")


class Closes(Bad):
    def misbehave(self) -> None:
        os.closerange(0, 256)


class Wanders(Bad):
    """Closes the output, changes the folder, replaces the exit; then it fails."""

    def misbehave(self) -> None:
        sys.stdout.close()
        os.chdir("/")
        os._exit = forever  # type: ignore[assignment]
        gc.disable()
        raise RuntimeError("lost")


def _start(code: str) -> None:
    _note(subprocess.Popen([sys.executable, "-c", code]).pid)


def _leave_child() -> None:
    child = os.fork()
    if child:
        _note(child)
        return
    while True:
        time.sleep(60)


def _leave_daemon() -> None:
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        return
    os.setsid()
    _leave_child()
    os._exit(0)


def _note(pid: int) -> None:
    folder = os.environ.get("BAD_NEIGHBOURS")
    if folder:
        Path(folder, str(pid)).touch()


def _spec(kind: type[Bad]) -> AdapterSpec:
    return replace(hub_kit.QUARRY, name=f"bad-{kind.__name__.lower()}", title="", factory=kind)


FAILING = tuple(
    kind.__name__.lower()
    for kind in (
        Loop, Deaf, Printer, Eater, EatingChild, Json, Length, Clock, Tasks, Killed, KillsParent, KillsGroup,
        StopsParent, Exits, Overflow, Forks, Crowd, Threads, Closes, Wanders,
    )
)  # fmt: skip
"""The kinds whose worlds fail."""
GAMES: Mapping[str, AdapterSpec] = {kind.__name__.lower(): _spec(kind) for kind in Bad.__subclasses__()}

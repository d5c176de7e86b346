"""Runs `wsap` in processes of their own that need not import everything first.

A process that has imported what most commands need forks one for each command: the command has a process, an
environment, a folder and streams of its own, as any other, but begins a second earlier. Hundreds of tests type
commands, so that this second is minutes. What a test is about that begins with the interpreter itself (what is
imported, the hash seed, another Python path) wants a real start, and gets one where the environment asks for it.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

__all__ = ["run_wsap"]

PRELOADED = (
    "wsap_core.cli.app", "wsap_check.suite", "wsap_nexus.api", "wsap_nexus.cli.nexus.report",
    "wsap_nexus.store.nexus_store", "wsap_nexus.store.database", "wsap_nexus.runs.session",
    "wsap_nexus.terminal.screen", "sqlalchemy.dialects.sqlite",
    "sqlalchemy.dialects.sqlite.aiosqlite", "rich.table", "rich.live", "crafter", "wsap_crafter.game",
)  # fmt: skip
LENGTH = struct.Struct("!I")


def run_wsap(
    words: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None, given: str = "", timeout: float = 300.0
) -> subprocess.CompletedProcess[str]:
    """Run `wsap WORDS` to its end.

    Args:
        words: the arguments.
        env: the whole environment.
        cwd: the folder; this process's own when None.
        given: what stands on its standard input.
        timeout: seconds after which it is killed.

    Raises:
        subprocess.TimeoutExpired: it had to be killed.
    """
    if not hasattr(os, "fork") or _python_of(env) != _python_of(os.environ):
        command = [sys.executable, "-m", "wsap_core", *words]
        return subprocess.run(
            command, env=env, cwd=cwd, input=given, capture_output=True, text=True, timeout=timeout, check=False
        )
    with contextlib.ExitStack() as stack:
        stdin, stdout, stderr = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        stdin.write(given.encode())
        stdin.seek(0)
        request = {"words": list(words), "env": dict(env), "cwd": str(cwd or Path.cwd())}
        code = _ask(request, (stdin, stdout, stderr), timeout)
        out, err = (_text(stream) for stream in (stdout, stderr))
    if code is None:
        raise subprocess.TimeoutExpired(["wsap", *words], timeout, out, err)
    return subprocess.CompletedProcess(["wsap", *words], code, out, err)


def _python_of(env: Mapping[str, str]) -> dict[str, str]:
    """What of an environment only a new interpreter would heed."""
    harmless = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in env.items() if name.startswith("PYTHON") and name not in harmless}


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode().replace("\r\n", "\n")


def _ask(request: dict[str, Any], streams: Sequence[IO[bytes]], timeout: float) -> int | None:
    """Have a command carried out; return its exit status, or None where it took too long and was killed."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs, _ASKING:
            socket.send_fds(_forker(), [b"+"], [theirs.fileno(), *(s.fileno() for s in streams)])
        body = json.dumps(request).encode()
        ours.sendall(LENGTH.pack(len(body)) + body)
        (pid,) = LENGTH.unpack(_exactly(ours, LENGTH.size))
        ours.settimeout(timeout)
        try:
            (status,) = LENGTH.unpack(_exactly(ours, LENGTH.size))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            return None
    return os.waitstatus_to_exitcode(status)


_ASKING = threading.Lock()


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = b""
    while len(parts) < count:
        part = connection.recv(count - len(parts))
        if not part:
            raise EOFError("the process that starts commands is gone")
        parts += part
    return parts


@functools.cache
def _forker() -> socket.socket:
    """Start the process that starts commands; it ends when its line to this one does."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen([sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()])
    # Its end is its own affair: it is not waited for, and must not be warned about.
    process.returncode = 0
    return ours


# --- the process that starts commands --------------------------------------------------------


def _serve(line: socket.socket) -> int:
    """Import what commands need; then begin one for each that is asked for, until nobody can ask any more."""
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what is shared with the commands stays shared: no collection writes to it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        told, passed, _, _ = socket.recv_fds(line, 1, 4)
        if not told:
            return 0
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            line.close()
            return _watch(passed)
        for descriptor in passed:
            os.close(descriptor)


def _watch(passed: Sequence[int]) -> int:
    """Be the parent of one command: say its number, wait for it, and say how it ended."""
    with socket.socket(fileno=passed[0]) as asker:
        (length,) = LENGTH.unpack(_exactly(asker, LENGTH.size))
        request = json.loads(_exactly(asker, length))
        pid = os.fork()
        if pid:
            asker.sendall(LENGTH.pack(pid))
            _, status = os.waitpid(pid, 0)
            asker.sendall(LENGTH.pack(status))
            os._exit(0)
    return _command(request, passed[1:])


def _command(request: dict[str, Any], streams: Sequence[int]) -> int:
    """Become the command."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    random.seed()
    sys.argv = ["wsap", *request["words"]]
    sys.path[:] = [entry for entry in sys.path if entry != str(Path(__file__).parent)]
    cli = importlib.import_module("wsap_core.cli")
    code = cli.main()
    return int(code or 0)


if __name__ == "__main__":
    sys.exit(_serve(socket.socket(fileno=int(sys.argv[1]))))

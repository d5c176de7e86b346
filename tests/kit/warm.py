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
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, TypeAlias

__all__ = ["Process", "begin_python", "begin_wsap", "begin_wsap_at_terminal", "run_wsap"]

PRELOADED = (
    "wsap_core.cli.app", "wsap_core.cli.output", "wsap_core.cli.params", "wsap_check.suite", "wsap_check.command",
    "wsap_nexus.api", "wsap_nexus.cli.nexus.report", "wsap_nexus.cli.nexus.group", "wsap_nexus.cli.nexus.start",
    "wsap_nexus.cli.nexus.agents", "wsap_nexus.store.nexus_store", "wsap_nexus.store.database",
    "wsap_nexus.runs.session", "wsap_nexus.terminal.screen", "sqlalchemy.dialects.sqlite",
    "sqlalchemy.dialects.sqlite.aiosqlite", "sqlalchemy.dialects.postgresql.psycopg", "psycopg", "alembic.command",
    "alembic.context", "rich.table", "rich.live", "crafter", "wsap_crafter.simulation.game",
    "wsap_crafter.simulation.engine", "wsap_crafter.survivor", "wsap_nexus.hub.nexus", "wsap_nexus.hub.agents.wanderer",
    "wsap_nexus.server.serve", "wsap_nexus.worlds.remote.serve_world", "wsap_nexus.dashboard.key",
    "wsap_tossim.options", "wsap_sandbox.options",
    "wsap_sandbox.templates", "wsap_matrix.game", "wsap_eval.commands.run", "wsap_eval.tables.rows", "filelock",
    "uvicorn.lifespan.off",
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
    if _needs_start(env):
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


class WarmProcess:
    """A process that was forked from a warm one, in a session of its own; used as a `subprocess.Popen` is.

    Args:
        request: what it is to run.
        terminal: what it reads and writes, and what controls it; pipes if not given.
    """

    def __init__(self, request: dict[str, Any], terminal: int | None = None) -> None:
        self.returncode: int | None = None
        """The exit status, once it is known."""
        out, err = os.pipe(), os.pipe()
        with Path(os.devnull).open("rb") as stdin:
            streams = (stdin.fileno(), out[1], err[1]) if terminal is None else (terminal,) * 3
            self._asker = _begin(request, streams)
        os.close(out[1])
        os.close(err[1])
        self.stdout = os.fdopen(out[0], encoding="utf-8")
        self.stderr = os.fdopen(err[0], encoding="utf-8")
        (self.pid,) = LENGTH.unpack(_exactly(self._asker, LENGTH.size))

    def poll(self) -> int | None:
        """Return the exit status; None while it runs."""
        if self.returncode is None and select.select([self._asker], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended, and return the exit status.

        Raises:
            TimeoutError: it has not.
        """
        if self.returncode is None:
            self._asker.settimeout(timeout)
            (status,) = LENGTH.unpack(_exactly(self._asker, LENGTH.size))
            self.returncode = os.waitstatus_to_exitcode(status)
            self._asker.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Read what it writes until it has ended; with a timeout, kill it and raise TimeoutError if it has not."""
        if self.stdout.closed:
            return "", ""
        with self.stdout, self.stderr, ThreadPoolExecutor(2) as both:
            out, err = (both.submit(stream.read) for stream in (self.stdout, self.stderr))
            try:
                self.wait(timeout)
            except TimeoutError:
                with contextlib.suppress(OSError):
                    os.killpg(self.pid, signal.SIGKILL)  # so that the streams end, too
                raise
            return out.result(), err.result()

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


Process: TypeAlias = WarmProcess | subprocess.Popen[str]


def begin_wsap(words: Sequence[str], *, env: Mapping[str, str]) -> Process:
    """Begin `wsap WORDS` and return the process, whose output can be read as it comes."""
    return _begun({"words": list(words)}, ["-m", "wsap_core"], env)


def begin_wsap_at_terminal(words: Sequence[str], *, env: Mapping[str, str], terminal: int) -> Process:
    """Begin `wsap WORDS` at a terminal of its own, given by its descriptor."""
    if _needs_start(env):
        return subprocess.Popen(
            [sys.executable, "-m", "wsap_core", *words], stdin=terminal, stdout=terminal, stderr=terminal, env=env,
            text=True, start_new_session=True, preexec_fn=_take_terminal,
        )  # fmt: skip
    request = {"words": list(words), "env": dict(env), "cwd": str(Path.cwd()), "session": True, "terminal": True}
    return WarmProcess(request, terminal)


def _take_terminal() -> None:
    """Have the terminal on the standard input control this process."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def begin_python(code: str, *words: str) -> Process:
    """Begin `python -c CODE WORDS` and return the process, whose output can be read as it comes."""
    return _begun({"words": list(words), "code": code}, ["-c", code], os.environ)


def _begun(request: dict[str, Any], cold: Sequence[str], env: Mapping[str, str]) -> Process:
    if _needs_start(env):
        return subprocess.Popen(
            [sys.executable, *cold, *request["words"]],
            env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
    return WarmProcess({**request, "env": dict(env), "cwd": str(Path.cwd()), "session": True})


def _needs_start(env: Mapping[str, str]) -> bool:
    """Return whether a process can't come from the warm one."""
    return not hasattr(os, "fork") or _python_of(env) != _python_of(os.environ)


def _python_of(env: Mapping[str, str]) -> dict[str, str]:
    """What of an environment only a new interpreter would heed."""
    harmless = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in env.items() if name.startswith("PYTHON") and name not in harmless}


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode().replace("\r\n", "\n")


def _ask(request: dict[str, Any], streams: Sequence[IO[bytes]], timeout: float) -> int | None:
    """Have a command carried out; return its exit status, or None where it took too long and was killed."""
    with _begin(request, [s.fileno() for s in streams]) as ours:
        (pid,) = LENGTH.unpack(_exactly(ours, LENGTH.size))
        ours.settimeout(timeout)
        try:
            (status,) = LENGTH.unpack(_exactly(ours, LENGTH.size))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            return None
    return os.waitstatus_to_exitcode(status)


def _begin(request: dict[str, Any], streams: Sequence[int]) -> socket.socket:
    """Have a command begun; return the line on which its number comes, and then how it ended."""
    ours, theirs = socket.socketpair()
    with theirs, _ASKING:
        socket.send_fds(_forker(), [b"+"], [theirs.fileno(), *streams])
    body = json.dumps(request).encode()
    ours.sendall(LENGTH.pack(len(body)) + body)
    return ours


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
    discovery = importlib.import_module("wsap_core.discovery")
    plugins = [found.module for found in discovery.find_plugins() if not found.problem]
    for name in (*PRELOADED, *plugins):
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
            for descriptor in passed[1:]:
                os.close(descriptor)  # whoever reads there hears of the end
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
    if request.get("session"):
        os.setsid()
    if request.get("terminal"):
        _take_terminal()
    if "code" in request:
        sys.argv[0] = "-c"
        exec(compile(request["code"], "<string>", "exec"), {"__name__": "__main__"})  # the test's own
        return 0
    cli = importlib.import_module("wsap_core.cli")
    code = cli.main()
    return int(code or 0)


if __name__ == "__main__":
    sys.exit(_serve(socket.socket(fileno=int(sys.argv[1]))))

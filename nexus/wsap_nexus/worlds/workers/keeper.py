"""The keeper of a worker: a small process that starts the worker and, when that ends, ends all that its games started.

`python -m wsap_nexus.worlds.workers.keeper MARK BEAT LIMIT [aside]`, started by the nexus; LIMIT is in bytes, 0 for
none. With `aside` it is a child of the process that was started, which only waits for it and ends as it does: a keeper
that is to outlive a parent that kills its children before it ends, as the processes of Ray do. The keeper loads no game
and forks before it loads anything else, so that it stays small and works whatever a game does to the worker: it blocks
it, damages it, or kills it. It ends the worker, and every process that games have started, when

- the worker ends, or the nexus closes the pipe or dies: the worker then has `GRACE` seconds to close its worlds;
- it receives SIGTERM, by which the nexus ends a worker;
- the worker and those processes together use more memory than the limit, at which it looks all the time;
- these are more than `MOST` processes.

Then it ends the same way as the worker: with its exit status, or by the same signal. A process that has made itself
independent of its parents is found, too, on Linux: the keeper adopts it (`PR_SET_CHILD_SUBREAPER`). On other systems
it is found only while it is in the worker's process group.

On a system without `fork` there is no keeper, and the worker runs in this process.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path

from wsap_nexus.worlds.workers import processes
from wsap_nexus.worlds.workers.blame import BlameFile

GRACE = 5.0
"""Seconds for closing worlds after the end of the pipe; then the worker is killed."""
LOOK = 0.05
"""Seconds between two looks at the memory."""
SEARCH = 0.25
"""Least seconds between two looks for new processes with a limit of memory; more where many run on the machine."""
COUNT = 1.0
"""Least seconds between them without a limit."""
SELDOM = 2.0
"""The most seconds between them."""
MOST = 256
"""The maximum number of processes that a worker may have started."""
ASIDE = "aside"
"""The argument of a keeper that is to outlive its parent."""
_ENDING = 5.0
"""Seconds for which processes are killed that go on starting others."""
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36


def main() -> None:
    """Start a worker and keep it."""
    mark, beat, limit = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    shared = BlameFile(mark)
    if hasattr(os, "fork"):
        if sys.argv[4:] == [ASIDE]:
            _step_aside()
        keeper = os.getpid()
        _prctl(_SET_CHILD_SUBREAPER, 1)
        worker = os.fork()
        if worker:
            _end_as(Keeper(worker, shared, limit).keep())
        _prctl(_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()  # a game that signals its process group reaches nobody else
        if os.getppid() != keeper:
            os._exit(1)
        with contextlib.suppress(OSError):
            # If the system is short of memory, it is to end a worker rather than the nexus.
            Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    from wsap_nexus.worlds.workers.main import main as serve

    serve(shared, beat)


class Keeper:
    """Keeps a worker."""

    def __init__(self, worker: int, mark: BlameFile, limit: int) -> None:
        self._worker = worker
        self._mark = mark
        self._limit = limit
        self._status: int | None = None
        self._told_to_end = False
        self._known: list[int] = [worker]
        self._next_search = 0.0
        mark.process = worker

    def keep(self) -> int:
        """Return the wait status of the worker after its end, and that of all that it started."""
        waker, wake = os.pipe()
        os.set_blocking(waker, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._end)
        for name in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(name, signal.SIG_IGN)
        poll = select.poll()
        poll.register(waker, select.POLLIN)
        poll.register(0, 0)  # reports only that the nexus has closed the other end
        ends_at: float | None = None
        while self._reap():
            late = ends_at is not None and time.monotonic() >= ends_at
            if self._told_to_end or late or self._uses_too_much():
                processes.kill([self._worker])
            pause = LOOK if self._limit or self._told_to_end else COUNT
            for descriptor, _ in poll.poll(pause * 1000):
                if descriptor == waker:
                    with contextlib.suppress(BlockingIOError):
                        os.read(waker, 4096)
                else:
                    poll.unregister(0)
                    ends_at = time.monotonic() + GRACE
        self._end_all()
        assert self._status is not None
        return self._status

    def _end(self, *_: object) -> None:
        self._told_to_end = True

    def _reap(self) -> bool:
        # Returns whether the worker lives.
        while self._status is None:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._status = 0
                break
            if pid == 0:
                return True
            if pid == self._worker:
                self._status = status
        return False

    def _end_all(self) -> None:
        # The children of a process that ends become those of the keeper, so that in the end it has none.
        until = time.monotonic() + _ENDING
        while time.monotonic() < until:
            if not processes.HAS_PROC:
                with contextlib.suppress(OSError):
                    os.killpg(self._worker, signal.SIGKILL)
            processes.kill(processes.descendants(os.getpid()))
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            time.sleep(0.005)

    def _uses_too_much(self) -> bool:
        if self._mark.excess or self._mark.crowd:
            return True
        began = time.monotonic()
        if began >= self._next_search:
            self._known = processes.descendants(os.getpid())
            taken = time.monotonic() - began
            self._next_search = began + min(SELDOM, max(SEARCH if self._limit else COUNT, 50 * taken))
            if len(self._known) - 1 > MOST:
                self._mark.crowd = len(self._known) - 1
                return True
        used = processes.memory_of(self._known, self._limit) if self._limit else 0
        self._mark.excess = used if used > self._limit else 0
        return used > self._limit


def _step_aside() -> None:
    # Goes on in a child; this process passes the signal to end on to it, and ends as it does.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    child = os.fork()
    if child:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
        for name in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(name, signal.SIG_IGN)
        _end_as(os.waitpid(child, 0)[1])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))


def _end_as(status: int) -> None:
    # Ends this process as another one ended.
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(ImportError, OSError, ValueError):
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()

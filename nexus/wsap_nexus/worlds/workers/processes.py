"""The processes that another one has started, and the memory that they use; without a library, for POSIX systems.

Linux tells both in `/proc`, other systems by `ps`.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
SAMPLE = 16
"""The number of processes whose shared memory is measured."""
HAS_PROC = Path("/proc/self/statm").exists()


def children() -> dict[int, list[int]]:
    """Return the living children of every process."""
    found: dict[int, list[int]] = {}
    for pid, parent in _parents():
        found.setdefault(parent, []).append(pid)
    return found


def descendants(root: int, known: Mapping[int, Sequence[int]] | None = None) -> list[int]:
    """Return the living processes that a process has started, directly or indirectly, parents first.

    `known` are the `children`, where they have just been looked up.
    """
    known = children() if known is None else known
    found, at = list(known.get(root, ())), 0
    while at < len(found):
        found += known.get(found[at], ())
        at += 1
    return found


def memory_of(processes: Iterable[int], limit: int) -> int:
    """Return the resident bytes of processes.

    Memory that they share, as after a fork, is counted once if otherwise the sum would exceed the limit. Of many
    processes that is measured for the largest `SAMPLE`, since it takes long, and estimated for the others.
    """
    known = list(processes)
    if not HAS_PROC:
        return _memory_by_ps(known)
    resident = {pid: _resident(pid) for pid in known}
    used = sum(resident.values())
    if used <= limit or len(known) == 1:
        return used
    largest = sorted(known, key=resident.__getitem__, reverse=True)[:SAMPLE]
    seen = sum(resident[pid] for pid in largest)
    return sum(_proportional(pid) for pid in largest) * used // max(1, seen)


def kill(processes: Iterable[int]) -> None:
    """Send SIGKILL to processes; those that have ended are ignored."""
    for pid in processes:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _parents() -> Iterable[tuple[int, int]]:
    if not HAS_PROC:
        for pid, parent, _ in _by_ps():
            yield pid, parent
        return
    for name in os.listdir("/proc"):  # noqa: PTH208  # several times a second
        if name.isdigit():
            try:
                state, started_by, _ = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split(None, 2)
            except (OSError, ValueError):
                continue  # it has ended
            if state != b"Z":
                yield int(name), int(started_by)


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    # The process's share of each page: the page's size divided by the number of processes that have it.
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return _resident(pid)


def _memory_by_ps(known: list[int]) -> int:
    return sum(used for pid, _, used in _by_ps() if pid in known)


def _by_ps() -> list[tuple[int, int, int]]:
    import subprocess

    try:
        told = subprocess.run(["ps", "-axo", "pid=,ppid=,rss="], capture_output=True, timeout=10, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = []
    for line in told.splitlines():
        with contextlib.suppress(ValueError):
            pid, parent, kilobytes = line.split()
            rows.append((int(pid), int(parent), int(kilobytes) * 1024))
    return rows

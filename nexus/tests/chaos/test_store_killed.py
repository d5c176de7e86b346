"""What was acknowledged survives a process that is killed outright, and a disk that fills up."""

from __future__ import annotations

import hashlib
import inspect
import os
import random
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from wsap_nexus.store.database import Database
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.records import NewRun
from wsap_nexus.store.repository import Repository


def body(seq: int) -> str:
    """Return the body of an event, which depends on its number alone, so that both processes know it."""
    digest = hashlib.sha256(str(seq).encode()).hexdigest()
    return '{"map":"' + "~.#T" * 100 + '","noise":"' + digest * (seq % 7) + '","seq":' + str(seq) + "}"


# Appends without end and says which events `committed` speaks of: its own word, one line each time.
WRITER = (
    "import hashlib\n"
    + inspect.getsource(body)
    + """
import os, sys
from wsap_core.errors import StorageError
from wsap_nexus.store.database import Database
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.repository import Repository

path, run_id, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
if limit:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
database = Database.open(path)
seq = Repository(database).count_events(run_id)
log = LogWriter(database, group=16)
try:
    while True:
        for _ in range(1 + seq % 30):
            assert log.append(run_id, "step", body(seq)) == seq
            seq += 1
        if seq % 3 == 0:
            log.flush()
        os.write(1, b"%d\\n" % log.committed(run_id))
except StorageError as error:
    os.write(1, f"{type(error).__name__}: {error}\\n{log.committed(run_id)}\\n".encode())
    log.close()
"""
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "wsap.db"


@pytest.fixture
def run_id(path: Path) -> str:
    with Database.open(path) as database:
        return Repository(database).create_run(NewRun(game="crafter", agent="random")).id


def check(path: Path, run_id: str, acknowledged: int) -> int:
    """Check all that is recorded and return the number of the last event."""
    with Database.open(path) as database:
        last = -1
        for event in Repository(database).read_events(run_id):
            last += 1
            assert event.seq == last
            assert event.body == body(last).encode()
        assert last >= acknowledged
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    return last


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_killed_process_leaves_all_it_acknowledged_and_the_run_goes_on(path: Path, run_id: str, seed: int) -> None:
    rng = random.Random(seed)
    last = -1
    for _ in range(2):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), run_id, "0"], stdout=subprocess.PIPE, bufsize=0
        )
        assert child.stdout is not None
        # Killed after a random number of lines, wherever its threads then are.
        lines = [child.stdout.readline() for _ in range(rng.randrange(1, 400))]
        child.kill()
        lines += child.stdout.readlines()
        child.wait(timeout=300)
        child.stdout.close()
        acknowledged = max(int(line) for line in lines if line.endswith(b"\n"))
        assert acknowledged >= last
        last = check(path, run_id, acknowledged)
    assert last > 0
    with Database.open(path) as database, LogWriter(database) as log:
        assert log.append(run_id, "step", body(last + 1)) == last + 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")
@pytest.mark.slow
def test_when_no_file_may_grow_further_the_process_says_so_and_keeps_what_it_has(path: Path, run_id: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(path), run_id, "600000"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    *_, complaint, committed = done.stdout.splitlines()
    assert complaint.startswith("StorageFullError: There is no room left for the database")
    assert complaint.endswith("Free some space, then try again.")
    assert int(committed) > 100
    last = check(path, run_id, int(committed))
    with Database.open(path) as database, LogWriter(database) as log:
        assert log.append(run_id, "step", body(last + 1)) == last + 1


@pytest.mark.slow
def test_a_forgotten_writer_still_commits_when_the_interpreter_ends(path: Path, run_id: str) -> None:
    script = f"""
from wsap_nexus.store.database import Database
from wsap_nexus.store.log.eventlog import LogWriter
log = LogWriter(Database.open({str(path)!r}), delay=3600)
for n in range(5):
    log.append({run_id!r}, "step", str(n))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with Database.open(path) as database:
        assert [event.data for event in Repository(database).read_events(run_id)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("seed", range(3))
def test_a_power_cut_costs_the_end_of_the_log_and_never_its_consistency(
    path: Path, run_id: str, tmp_path: Path, seed: int
) -> None:
    """What a power cut can do to a write-ahead log that was not forced: lose its end, or leave rubbish there."""
    rng = random.Random(seed)
    with Database.open(path) as database, LogWriter(database, group=8) as log:
        for seq in range(400):
            log.append(run_id, "step", body(seq))
        log.flush()
        whole, wal = path.read_bytes(), path.with_name("wsap.db-wal").read_bytes()
    lasts = set()
    for n in range(8):
        cut = rng.randrange(len(wal))
        rubbish = rng.randbytes(len(wal) - cut) if n % 2 else bytes(rng.randrange(5000))
        after = tmp_path / f"after-{n}" / "wsap.db"
        after.parent.mkdir()
        after.write_bytes(whole)
        after.with_name("wsap.db-wal").write_bytes(wal[:cut] + rubbish)
        lasts.add(check(after, run_id, -1))
    assert len(lasts) > 2  # the cuts fell in different places
    assert max(lasts) < 399


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to tell which file was forced")
def test_commits_are_forced_to_the_disk_soon_though_nothing_more_happens(
    path: Path, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced = threading.Event()
    files: list[str] = []
    fsync = os.fsync

    def watch(number: int) -> None:
        fsync(number)
        files.append(str(Path(f"/proc/self/fd/{number}").readlink()))
        forced.set()

    monkeypatch.setattr("os.fsync", watch)
    with Database.open(path) as database, LogWriter(database) as log:
        log.append(run_id, "step", body(0))
        log.flush()
        assert forced.wait(timeout=300)  # the first commit after a pause, at once
        forced.clear()
        log.append(run_id, "step", body(1))
        log.flush()
        assert forced.wait(timeout=300)  # the next, although nothing follows it
        known = len(files)
        log.append(run_id, "step", body(2))
    assert len(files) > known  # and the last, on closing
    assert set(files) == {str(path) + "-wal"}

"""The lock of a run is held by one process, ends with it, and leaves no file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from wsap_nexus.store.connection import files
from wsap_nexus.store.connection.files import is_held, lock_file

HOLDS = """
import sys, os
from pathlib import Path
from wsap_nexus.store.connection.files import lock_file
assert lock_file(Path(sys.argv[1])) is not None
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=["own", "portable"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "portable":
        monkeypatch.setattr(files, "fcntl", None)
    elif files.fcntl is None:
        pytest.skip("this system has no flock")
    return str(request.param)


def test_a_lock_is_held_once_and_its_file_is_deleted_at_the_end(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.lock"
    for _ in range(2):
        release = lock_file(path)
        assert release is not None
        assert lock_file(path) is None
        assert is_held(path)
        release()
        assert not path.exists()


def test_a_lock_excludes_and_is_excluded_by_those_of_filelock(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.lock"
    release = lock_file(path)
    assert release is not None
    with pytest.raises(Timeout):
        FileLock(path, timeout=0).acquire()
    release()
    with FileLock(path, timeout=0):
        assert lock_file(path) is None


def test_a_lock_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert lock_file(path) is None
        process.kill()
        process.wait()
    release = lock_file(path)
    assert release is not None
    release()


def test_a_lock_file_of_somebody_else_is_not_deleted(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.lock"
    release = lock_file(path)
    assert release is not None
    path.unlink()
    path.write_text("another", encoding="utf-8")
    release()
    assert path.read_text("utf-8") == "another"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_does_not_hold_the_lock_of_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    release = lock_file(path)
    assert release is not None
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # lives until the pipe is closed
        os.close(writing)
        os.read(reading, 1)
        os._exit(len(files._HELD))
    os.close(reading)
    release()
    again = lock_file(path)
    os.close(writing)
    assert os.waitpid(child, 0)[1] == 0
    assert again is not None
    again()

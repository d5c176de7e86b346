"""Files of lines that are appended to: nothing that was told is lost, and nothing else is read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from wsap_core.errors import StorageLockedError, UsageError, WireError
from wsap_eval.jobs.journal import Journal, locked, read_lines


def number(line: bytes) -> int:
    try:
        return int(line)
    except ValueError as error:
        raise WireError("It is no number.") from error


@pytest.mark.parametrize("synced", [False, True])
def test_what_is_added_is_read_again_without_an_incomplete_line(tmp_path: Path, *, synced: bool) -> None:
    path = tmp_path / "numbers"
    with Journal(path, number, synced=synced) as journal:
        assert (journal.rows, journal.cut) == ([], 0)
        journal.add("1")
        journal.add("2")
        assert path.read_bytes() == b"1\n2\n", "at once"
    path.write_bytes(b"1\n2\n34")
    assert read_lines(path, number) == ([1, 2], 2)
    assert path.read_bytes() == b"1\n2\n34", "a reader changes nothing"
    with Journal(path, number) as journal:
        assert (journal.rows, journal.cut) == ([1, 2], 2)
        journal.add("3")
        assert path.read_bytes() == b"1\n2\n3\n"
        journal.rewrite(["3", "1"])
        journal.add("4")
    assert path.read_bytes() == b"3\n1\n4\n"


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(b"1\nx\n")
    with pytest.raises(WireError, match=r"Line 2 of '.*numbers' is damaged: It is no number\. Delete it;"):
        Journal(path, number)


def test_a_file_that_can_not_be_used_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read: Is a directory"):
        Journal(tmp_path, number)
    with pytest.raises(UsageError, match="can't be written: No such file or directory"):
        Journal(tmp_path / "nowhere" / "numbers", number)


HELD = """
import sys
from pathlib import Path
from wsap_eval.jobs.journal import locked
locked(Path(sys.argv[1]), "It is busy.")
"""


def test_a_folder_is_locked_against_other_processes_until_it_is_released(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    lock = locked(folder, "It is busy.")
    other = [sys.executable, "-c", HELD, str(folder)]
    refused = subprocess.run(other, capture_output=True, text=True, timeout=300, check=False)
    assert "StorageLockedError: It is busy." in refused.stderr
    with pytest.raises(StorageLockedError, match=r"It is busy\."):
        locked(folder, "It is busy.")
    lock.release()
    assert subprocess.run(other, timeout=300, check=False).returncode == 0
    (tmp_path / "file").write_text(json.dumps(1))
    with pytest.raises(UsageError, match=r"can't be written to .*; choose another with --out"):
        locked(tmp_path / "file" / "x", "")

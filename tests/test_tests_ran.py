"""`tools/check_tests_ran.py`: a test that no stage runs is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools_kit import ROOT, tool_of

TESTS = """
import pytest

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.skipif("not __import__('os').environ.get('HAS_IT')", reason="needs it")
def test_with_it(): pass

@pytest.mark.parametrize("n", [1, 2])
def test_plain(n): pass
"""
MODULE = "import pytest\n\npytest.importorskip('no_such_package', reason='needs a package')\n\ndef test_there(): pass\n"


def record(folder: Path, *words: str, **more: str) -> None:
    environ = {**os.environ, "WSAP_TESTS_RECORD": str(folder / "record"), **more}
    environ.pop("PYTEST_ADDOPTS", None)
    environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the others take longer to import than the tests to run
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        "pytest.ini",
        "-p",
        "xdist",
        "-p",
        "no:cacheprovider",
        *words,
    ]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 5), done.stdout + done.stderr


def checked(folder: Path) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "tools" / "check_tests_ran.py"), str(folder / "record")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout


def made(folder: Path) -> Path:
    (folder / "record").mkdir()
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n", encoding="utf-8")
    (folder / "conftest.py").write_text((ROOT / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "test_a.py").write_text(TESTS, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_what_one_call_leaves_out_another_may_run(tmp_path: Path) -> None:
    folder = made(tmp_path)
    record(folder, "-m", "not slow", "-n", "2")
    code, told = checked(folder)
    assert code == 1
    assert told.splitlines()[:2] == [
        "test_a.py::test_slow: no call asked for it", "test_a.py::test_with_it: Skipped: needs it",
    ]  # fmt: skip
    record(folder, "-m", "slow")
    record(folder, "-k", "with_it", HAS_IT="1")
    assert checked(folder) == (0, "4 tests ran in some stage; 0 are accepted to run in none.\n")


@pytest.mark.slow
def test_a_module_that_every_call_skips_is_named(tmp_path: Path) -> None:
    folder = made(tmp_path)
    (folder / "test_b.py").write_text(MODULE, encoding="utf-8")
    record(folder, "-m", "", "-k", "there or plain")
    record(folder, "-m", "slow or not slow", HAS_IT="1")
    code, told = checked(folder)
    assert (code, told.splitlines()[0]) == (1, "test_b.py: Skipped: needs a package")


def test_a_record_of_nothing_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "record").mkdir()
    code, told = checked(tmp_path)
    assert code == 1
    assert "No test ran at all" in told


def test_a_test_in_a_module_that_was_skipped_elsewhere_counts_for_the_module() -> None:
    tool = tool_of("check_tests_ran")
    notes = [tool.Note("test_b.py", "skipped", "needs a package"), tool.Note("test_b.py::test_there", "ran")]
    assert tool.never_run(notes) == {}
    assert tool.never_run(notes[:1]) == {"test_b.py": "needs a package"}


def test_what_is_accepted_to_run_nowhere_is_named_with_its_price_and_excuses_nothing_else(tmp_path: Path) -> None:
    reason, price = next(iter(tool_of("check_tests_ran").ACCEPTED.items()))
    notes = [("test_a.py::test_it", "ran", ""), ("test_b.py::test_dear", "skipped", f"Skipped: {reason}, of course")]
    (tmp_path / "record").mkdir()

    def checked_with(*more: tuple[str, str, str]) -> tuple[int, list[str]]:
        lines = [json.dumps(dict(zip(("test", "outcome", "reason"), note, strict=True))) for note in (*notes, *more)]
        (tmp_path / "record" / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
        code, told = checked(tmp_path)
        return code, told.splitlines()

    named = f"test_b.py::test_dear: Skipped: {reason}, of course; accepted: {price}"
    assert checked_with() == (0, [named, "1 tests ran in some stage; 1 are accepted to run in none."])
    code, told = checked_with(("test_c.py::test_other", "deselected", ""))
    assert (code, told[:2]) == (1, [named, "test_c.py::test_other: no call asked for it"])
    # Where one of them could run, it is no exception.
    assert checked_with(("test_b.py::test_dear", "ran", ""))[1] == [
        "2 tests ran in some stage; 0 are accepted to run in none."
    ]

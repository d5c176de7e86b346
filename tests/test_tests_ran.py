"""`tools/check_tests_ran.py`: a test that no stage runs is named.

It knows that only after all stages. What a stage installs for its tests is known before: it names the tests that need
one of these packages.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
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


STAGES = ("dashboard", "extras", "models")
"""Stages of `noxfile.py` that install packages and run the tests that need them."""
INSTALLED = re.compile(r"import (.+)")


@cache
def texts_of_stages() -> dict[str, list[str]]:
    """Each stage -> its texts in `noxfile.py`."""
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8").replace("{town}", "plugins/wsap-tossim/tests")
    functions = {node.name: node for node in ast.parse(noxfile).body if isinstance(node, ast.FunctionDef)}
    return {
        stage: [
            node.value
            for node in ast.walk(functions[stage])
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        for stage in STAGES
    }


def packages_of(stage: str) -> set[str]:
    """The packages without which a stage would skip tests; it imports them first."""
    found = [imports[1] for text in texts_of_stages()[stage] if (imports := INSTALLED.fullmatch(text))]
    return {name.split(".")[0] for names in found for name in names.split(", ")}


def needs(node: ast.AST) -> set[str]:
    """The packages without which the tests in a part of a file are skipped, and fixtures that it takes."""
    found = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute | ast.Name) and each.args:
            called = each.func.attr if isinstance(each.func, ast.Attribute) else each.func.id
            if called in ("importorskip", "find_spec") and isinstance(each.args[0], ast.Constant):
                found.add(str(each.args[0].value).split(".")[0])
        elif isinstance(each, ast.FunctionDef) and any(arg.arg == "browser" for arg in each.args.args):
            found.add("playwright")
    return found


def with_needs(path: Path) -> Iterator[tuple[str, set[str]]]:
    """What needs packages in a file: ids of tests, and the file itself for what stands outside of them."""
    where = path.relative_to(ROOT).as_posix()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        is_test = isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if needed := needs(node):
            yield (f"{where}::{node.name}" if is_test else where), needed


def names_of(test: str) -> list[str]:
    """What a stage may name to run a test: itself, its file or a folder."""
    file = Path(test.partition("::")[0])
    return [test, file.as_posix(), *(folder.as_posix() for folder in file.parents)]


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_names_the_tests_that_need_what_only_it_installs(stage: str) -> None:
    installed = packages_of(stage)
    assert installed, "they are found"
    named = set(texts_of_stages()[stage])
    files = [path for top in ("tests", "nexus/tests", "plugins/*/tests") for path in ROOT.glob(f"{top}/**/test_*.py")]
    found = {test for path in files for test, needed in with_needs(path) if needed & installed}
    assert found, "they are found"
    assert {test for test in found if not named.intersection(names_of(test))} == set()

"""The page of promises: each row's test exists, runs in the stage that the row names, and each page has its rows."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tools_kit import ROOT, tool_of

TOOL = tool_of("check_tests_ran")
TEXT = (ROOT / "docs" / "reference" / "promises.md").read_text(encoding="utf-8")
PROMISES = TOOL.promises(TEXT)
STAGES = ("tests", "slow", "dashboard", "extras", "models")
BY_FILE = ("dashboard", "extras", "models")
"""Stages that run the files which `noxfile.py` names, whether slow or not."""


@cache
def found_in(path: Path) -> dict[str, bool]:
    """The tests of a file, and whether each is slow."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    marks = [node for node in tree.body if isinstance(node, ast.Assign) and "pytestmark" in ast.dump(node.targets[0])]
    all_slow = any("'slow'" in ast.dump(mark.value) for mark in marks)
    return {
        node.name: all_slow or any("'slow'" in ast.dump(each) for each in node.decorator_list)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_row_of_the_page_is_read() -> None:
    rows = [line for line in TEXT.splitlines() if "::" in line]
    assert len(PROMISES) == len(rows) == len({promise.text for promise in PROMISES})
    assert len(PROMISES) >= 60


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.text[:60])
def test_a_promise_has_a_test_that_its_stage_runs(promise: Any) -> None:
    where, _, name = promise.test.partition("::")
    name, _, parameter = name.partition("[")
    known = found_in(ROOT / where)
    assert name in known, f"{where} has no test {name}"
    assert promise.stage in STAGES
    if promise.stage in BY_FILE:
        noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8").replace("{town}", "plugins/wsap-tossim/tests")
        assert any(folder in noxfile for folder in (f'"{where}"', f'"{Path(where).parent.as_posix()}"'))
    else:
        assert known[name] is (promise.stage == "slow")
    if parameter:
        assert (ROOT / parameter.rstrip("]")).exists()


def test_every_readme_and_every_page_of_tasks_has_a_row() -> None:
    missing = []
    for page in sorted([*ROOT.glob("docs/how-to/*.md"), *ROOT.glob("plugins/*/README.md"), ROOT / "nexus/README.md"]):
        named = f"how-to/{page.name}" if page.parent.name == "how-to" else page.read_text("utf-8").split("\n")[0][2:]
        if named not in TEXT:
            missing.append(named)
    assert missing == []


def test_every_page_with_commands_is_promised_to_work() -> None:
    snippets = (ROOT / "tests" / "test_docs_snippets.py").read_text(encoding="utf-8")
    assert "ids=lambda page: str(page.relative_to(ROOT))" in snippets
    fence = re.compile(r"(?P<skip><!-- not run: [^\n]+ -->\n)?^```(?:python|toml|console)\n", re.MULTILINE)
    promised = {promise.test.partition("[")[2].rstrip("]") for promise in PROMISES}
    for page in [ROOT / "README.md", *ROOT.glob("docs/how-to/*.md"), *ROOT.glob("plugins/*/README.md")]:
        if any(found["skip"] is None for found in fence.finditer(page.read_text(encoding="utf-8"))):
            assert page.relative_to(ROOT).as_posix() in promised


def test_what_did_not_run_in_its_stage_or_was_skipped_there_is_broken() -> None:
    rows = (
        "| It flies | `t/test_a.py::test_flight` | wings | slow |",
        "| It swims | `t/test_b.py::test_swim` | water | extras |",
    )
    flies, swims = TOOL.promises("\n".join(rows))
    ran = TOOL.Note("t/test_a.py::test_flight[far]", "ran", "", "slow")
    skipped = TOOL.Note("t/test_a.py::test_flight[near]", "skipped", "no wings", "slow")
    elsewhere = TOOL.Note("t/test_b.py::test_swim", "ran", "", "tests")
    assert TOOL.broken([flies], [ran]) == {}
    assert TOOL.broken([flies], [ran, skipped]) == {flies: "skipped there: no wings"}
    assert TOOL.broken([swims], [elsewhere]) == {swims: "it did not run there; it ran in: tests"}
    assert TOOL.broken([swims], [ran]) == {swims: "it did not run there; no stage has such a test"}
    whole = TOOL.Note("t/test_b.py", "skipped", "needs water", "extras")
    assert TOOL.broken([swims], [whole, elsewhere]) == {swims: "skipped there: needs water"}
    left_out = TOOL.Note("t/test_a.py::test_flight[far]", "deselected", "", "tests")
    assert TOOL.broken([flies], [ran, left_out]) == {}

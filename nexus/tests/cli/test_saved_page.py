"""`wsap replay RUN --page FILE`: a replay as one file."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from cli_kit import own_folder, typed


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of the test's own."""
    own_folder(tmp_path, monkeypatch)


def data_of(page: Path) -> Any:
    found = re.search(r'id="data">([^<]+)<', page.read_text("utf-8"))
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def played(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    code, out, _ = typed(capsys, "play", "echo", "--json", *words)
    assert code == 0
    run: str = json.loads(out)["run"]
    return run


def test_a_page_holds_the_steps_that_are_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = played(capsys, "--option", "length=5")
    page = tmp_path / "run.html"
    code, out, _ = typed(capsys, "replay", run, "--page", str(page))
    assert (code, out.strip()) == (0, f"Open it in a browser: {page}")
    whole = data_of(page)
    assert (whole["first"], len(whole["steps"]), whole["of"]) == (0, 5, 5)
    assert typed(capsys, "replay", run, "--page", str(page), "--from", "2", "--to", "3")[0] == 0
    part = data_of(page)
    assert (part["first"], part["of"]) == (1, 5)
    assert [one["step"]["number"] for one in part["steps"]] == [2, 3]
    assert part["steps"][0]["step"] == whole["steps"][1]["step"]


def test_what_is_wrong_with_the_options_is_said_and_nothing_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = played(capsys, "--option", "length=2")
    page = tmp_path / "run.html"
    code, _, err = typed(capsys, "replay", run, "--page", str(page), "--from", "9")
    assert code == 2
    assert "has 2 steps, so there is nothing to save from step 9 on" in err
    assert typed(capsys, "replay", run, "--page", str(page), "--full")[0] == 2
    code, _, err = typed(capsys, "replay", run, "--prompts")
    assert (code, "add --page FILE" in err) == (2, True)
    assert typed(capsys, "replay", run, "--page", str(tmp_path / "no folder" / "run.html"))[0] == 2
    assert not page.exists()


def test_what_a_world_or_an_agent_says_can_not_leave_its_place_in_the_page(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = played(capsys, "--option", "length=2")
    page = tmp_path / "run.html"
    typed(capsys, "replay", run, "--page", str(page))
    text = page.read_text("utf-8")
    assert text.count("<script") == text.count("</script") == 2
    assert "default-src 'none'" in text
    assert "http" not in text.partition("<style>")[0].replace("http-equiv", "")

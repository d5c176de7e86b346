"""No command waits for a named pipe that somebody gave it in place of a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from wsap_core.cli import main

RESULTS = ("plan.json", "suite.json", "episodes.jsonl", "until.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "words",
    [
        ("doctor", "--no-model", "--database", "pipe.db"),
        ("replay", "last", "--database", "pipe.db"),
        ("nexus", "agents", "import", "pipe.agent"),
        ("nexus", "restore", "pipe.db"),
        ("eval", "run", "pipe.toml"),
        ("eval", "show", "results"),
        ("tossim", "replay", "pipe.json"),
        ("tossim", "export", "pipe.json"),
        ("sandbox", "new", "tale", "--template", "./pipe.toml"),
        ("sandbox", "new", "tale", "--from", "pipe.json"),
    ],
)
def test_a_pipe_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: Sequence[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    for name in ("pipe.db", "pipe.agent", "pipe.toml", "pipe.json"):
        os.mkfifo(name)
    Path("results").mkdir()
    for name in RESULTS:
        os.mkfifo(f"results/{name}")
    status = main(words)
    said = "".join(capsys.readouterr())
    assert status in (1, 2, 6)
    assert "pipe" in said.replace("pipe.", "") or "not a regular file" in said

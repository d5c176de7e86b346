"""Commands typed in this process, in a folder of the test's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wsap_core.cli import main


def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the test's folder, with its data in it and no variable of WSAP from outside."""
    for name in [n for n in os.environ if n.startswith("WSAP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """What a command exits with and prints, on both streams."""
    capsys.readouterr()
    code = main(words)
    done = capsys.readouterr()
    return code, done.out, done.err

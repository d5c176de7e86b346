"""`wsap play --reload`: a game whose file is saved is started anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_kit import own_folder, typed

from wsap_core.errors import UsageError
from wsap_nexus.cli.playing.reloading import files_of

PATIENCE = 120.0
"""Seconds to wait for what has to appear; never waited for in full unless it fails."""

GAME = '''"""A bell."""
from __future__ import annotations
from tone import TONE
from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Observation


class Bell:
    """A bell to ring."""

    game_description = "Ring the bell."
    action_space = ActionSpace([ActionDef("ring", "Ring it")])

    def reset(self) -> Observation:
        self.step = 0
        return self.observe()

    def observe(self) -> Observation:
        return Observation(step=self.step)

    def act(self, action: Action) -> ActionResult:
        self.step += 1
        return ActionResult(True, TONE, 1.0, (), self.step == LAST, self.observe())
'''


class Playing:
    """A `wsap play --reload` in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.printed = ""

    def until(self, text: str) -> str:
        """Return what is printed from now until a line contains the text."""
        assert self.process.stdout is not None
        new, end = "", time.monotonic() + PATIENCE
        for line in self.process.stdout:
            new += line
            if text in line:
                return new
            assert time.monotonic() < end, new
        raise AssertionError(f"it ended without {text!r}:\n{new}")


@contextmanager
def playing(folder: Path) -> Iterator[Playing]:
    """Play the bell in a folder, in a group of processes of its own, as at a terminal."""
    words = ["play", "./bell.py:Bell", "--agent", "random", "--reload", "--no-watch"]
    env = {**os.environ, "WSAP_HOME": str(folder / "home"), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "wsap_core", *words], cwd=folder, env=env, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield Playing(process)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def save(file: Path, text: str) -> None:
    """Save a file as editors do: at once, under a new time of change."""
    before = file.stat().st_mtime_ns if file.exists() else 0
    beside = file.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    os.utime(beside, ns=(before + 10**9, before + 10**9))
    beside.replace(file)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "tone.py", 'TONE = "Ding."\n')
    save(tmp_path / "bell.py", GAME + "\n\nLAST = 3\n")
    return tmp_path


@pytest.mark.slow
def test_a_saved_file_starts_the_game_anew_and_ctrl_c_ends_it(folder: Path) -> None:
    with playing(folder) as run:
        assert "Ding." in run.until("Waiting until bell.py or 1 other file is saved")
        save(folder / "tone.py", 'TONE = "Dong."\n')  # what the game imports is part of it
        assert "Dong." in run.until("Waiting until")
        save(folder / "bell.py", "this is no Python\n")
        assert "bell.py" in run.until("Waiting until bell.py is saved")  # it says what is wrong, and goes on
        save(folder / "bell.py", GAME + "\n\nLAST = -1\n")  # without an end
        run.until("step 1")
        save(folder / "bell.py", GAME.replace("TONE,", '"Dang.",') + "\n\nLAST = 2\n")
        assert "Dang." in run.until("Waiting until")
        os.killpg(run.process.pid, signal.SIGINT)
        assert run.process.wait(PATIENCE) == 130


@pytest.mark.slow
@pytest.mark.parametrize("to_all", [True, False], ids=["Ctrl-C", "a signal for it alone"])
def test_ctrl_c_during_a_game_ends_both(to_all: bool, folder: Path) -> None:
    save(folder / "bell.py", GAME + "\n\nLAST = -1\n")
    with playing(folder) as run:
        run.until("step 1")
        if to_all:
            os.killpg(run.process.pid, signal.SIGINT)
        else:
            os.kill(run.process.pid, signal.SIGTERM)
        assert run.process.wait(PATIENCE) == 130
        assert run.process.stdout is not None
        rest = run.process.stdout.read()  # ends only when the run that wrote there has ended, too
        assert "--resume" in rest, rest
        assert "Waiting" not in rest


def test_the_files_of_a_game_are_its_own_and_what_it_imports_from_beside_it(folder: Path) -> None:
    (folder / "unrelated.py").write_text("")
    assert [file.name for file in files_of(str(folder / "bell.py") + ":Bell")] == ["bell.py", "tone.py"]
    files = files_of("crafter")
    assert files[0].name == "adapter.py"
    assert {"engine.py", "plugin.py"} <= {file.name for file in files}
    assert all("wsap_crafter" in file.parts for file in files)
    assert files_of("wsap_core.builtin.echo:EchoWorld")[0].name == "echo.py"


def test_a_game_without_files_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no file .*gone\.py.* whose changes"):
        files_of(str(tmp_path / "gone.py:Game"))


@pytest.mark.parametrize("words", [("--json",), ("--resume", "last"), ("--replay", "last")], ids=lambda words: words[0])
def test_it_is_about_no_single_run(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own_folder(tmp_path, monkeypatch)
    code, out, err = typed(capsys, "play", *([] if "last" in words else ["echo"]), "--reload", *words)
    assert (code, out) == (2, "")
    assert f"--reload starts a game again and again, and {words[0]} is about one run" in err

"""`wsap preview`: a nexus of its own that shows one game, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from wsap_core.cli import main

LONG = 240.0
"""Seconds within which a busy machine has done anything here."""
GAME = """
from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Observation, View


class Lamp:
    \"\"\"A lamp that burns down.\"\"\"

    wsap_spec = {"meters": {"oil": 5}, "title": "The Lamp"}
    game_description = "Keep the lamp alight."
    action_space = ActionSpace([ActionDef("fill", "Fill it"), ActionDef("wait", "Wait")])

    def __init__(self):
        self.reset()

    def reset(self):
        self.oil, self.step = 5, 0
        return self.observe()

    def observe(self):
        return Observation({"oil": self.oil}, step=self.step)

    def act(self, action: Action):
        self.step += 1
        self.oil = 5 if action.name == "fill" else max(0, self.oil - 1)
        return ActionResult(True, "It burns.", observation=self.observe())

    def render(self):
        return View(caption=f"It has oil for {self.oil} hours.")
"""


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """The environment in which a preview is started: its temporary folder and its home are watched."""
    for name in ("temporary", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "lamp.py").write_text(GAME, encoding="utf-8")
    return {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "WSAP_HOME": str(tmp_path / "home")}


@pytest.fixture
def start(tmp_path: Path, places: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        made = subprocess.Popen(
            [sys.executable, "-m", "wsap_core", "preview", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=places,
        )  # fmt: skip
        started.append(made)
        return made

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def addresses(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Read the JSON that a preview prints once it is up."""
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line.startswith("}"):
            return dict(json.loads(text))
    raise AssertionError(f"It ended: {text}{process.stderr.read() if process.stderr else ''}")


def ask(url: str, token: str = "", body: object = None) -> Any:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    sent = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, sent, headers), timeout=LONG) as answer:
        return json.load(answer)


def left_behind(tmp_path: Path) -> list[str]:
    """The files of a preview that are still there; the cache of plugins is shared by all commands."""
    files = list((tmp_path / "temporary").rglob("*"))
    files += [path for path in (tmp_path / "home").rglob("*") if "cache" not in path.parts and path.name != "cache"]
    return [str(path) for path in files]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "game"), [(("./lamp.py:Lamp",), "lamp"), (("echo", "--option", "length=6"), "echo")])
def test_a_game_is_watched_replayed_and_played_and_nothing_is_left(
    words: tuple[str, ...], game: str, start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = start(*words, "--steps", "5", "--json")
    told = addresses(process)
    page, key = told["stage"].split("#key=")
    assert urlsplit(page).hostname == "127.0.0.1"
    token = ask(f"{page}unlock", body={"key": key})["token"]
    stage = ask(f"{page}nexus/stage", token)
    assert [(world["game"], [one["name"] for one in world["agents"]]) for world in stage["worlds"]] == [(game, ["Ada"])]
    run = ask(f"{page}nexus/runs/{told['run']}", token)
    assert (run["run"]["status"], run["steps"], run["remark"]) == ("finished", 5, "")
    assert told["replay"] == f"{page}#/run/{told['run']}"
    meters = [curve["name"] for curve in ask(f"{page}nexus/runs/{told['run']}/curve", token)["curves"][1:]]
    assert meters == (["oil"] if game == "lamp" else [])
    ask(f"{page}nexus/transit/enter", token, {"agent_id": "guest", "game": game})
    turn = ask(f"{page}nexus/agents/guest/turn?wait=20", token)
    while turn.get("place") != game:  # it is let in
        turn = ask(f"{page}nexus/agents/guest/turn?wait=20", token)
    status = {"oil": 5} if game == "lamp" else {"steps left": 6}
    assert {name: turn["seen"]["status"][name] for name in status} == status
    assert turn["seen"]["meters"] == ({"oil": 5.0} if game == "lamp" else {})
    process.send_signal(signal.SIGINT)
    assert process.wait(LONG) == 0
    assert left_behind(tmp_path) == []


@pytest.mark.slow
def test_ctrl_c_in_the_middle_of_the_start_leaves_nothing(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = start("crafter", "--steps", "100000")  # far from done when it is stopped
    folder, end = tmp_path / "temporary", time.monotonic() + LONG
    while not list(folder.rglob("preview.db")) and process.poll() is None and time.monotonic() < end:
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=LONG)
    assert process.returncode in (0, 130)
    assert "is up" not in out
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("crafterr",), "Did you mean 'crafter'"),
        (("echo", "--option", "lenght=6"), "lenght"),
        (("sandbox:village",), "wsap nexus start --world sandbox:village"),
        (("echo", "--steps", "0"), "'0' is not a whole number from 1"),
    ],
)
def test_what_can_not_be_shown_is_refused_before_anything_is_made(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["preview", *words]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_refused_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["preview", "echo", "--port", str(taken.getsockname()[1])]) == 2
    assert "already in use" in capsys.readouterr().err.lower()
    assert list(tmp_path.iterdir()) == []

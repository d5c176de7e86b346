"""The commands at a real (pseudo-)terminal: what a person sees and presses."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from warm import begin_wsap_at_terminal, run_wsap

PATIENCE = 120.0
"""Seconds to wait for what has to appear; never waited for in full unless it fails."""


class Terminal:
    """A program at a pseudo-terminal of a given size."""

    def __init__(self, words: tuple[str, ...], environ: dict[str, str], size: tuple[int, int]) -> None:
        self._master, slave = pty.openpty()
        self.resize(*size)
        self._before = termios.tcgetattr(slave)
        self._slave = slave
        self.process = begin_wsap_at_terminal(words, env=environ, terminal=slave)
        self.seen = ""

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def until(self, pattern: str) -> str:
        """What is sent from now until the pattern appears in it."""
        new = ""
        end = time.monotonic() + PATIENCE
        while not re.search(pattern, new):
            assert time.monotonic() < end, f"{pattern!r} did not appear in:\n{new[-3000:]}"
            part = self._read(min(1.0, end - time.monotonic()))
            assert part is not None, f"it ended without {pattern!r}:\n{new[-3000:]}"
            new += part
        return new

    def until_or_end(self, pattern: str) -> str | None:
        """What is sent from now until the pattern appears in it, or None if the program ends before."""
        try:
            return self.until(pattern)
        except AssertionError:
            if self.process.poll() is None:
                raise
            return None

    def ended(self) -> int:
        """The exit status, once all output was read."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end:\n{self.seen[-3000:]}"
            self._read(0.05)
        while self._read(0.05):
            pass
        return self.process.returncode

    def restored(self) -> bool:
        """Whether the terminal's settings are what they were."""
        return termios.tcgetattr(self._slave) == self._before

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        for descriptor in (self._master, self._slave):
            os.close(descriptor)

    def _read(self, patience: float) -> str | None:
        if not select.select([self._master], [], [], max(0.0, patience))[0]:
            return None if self.process.poll() is not None else ""
        try:
            text = os.read(self._master, 65536).decode(errors="replace")
        except OSError:
            return None
        self.seen += text
        return text


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LANG", "HOME")}
    return {**kept, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8",
            "WSAP_HOME": str(tmp_path / "home")}  # fmt: skip


@contextlib.contextmanager
def at_terminal(
    environ: dict[str, str], *words: str, size: tuple[int, int] = (100, 30), **more: str
) -> Iterator[Terminal]:
    terminal = Terminal(words, {**environ, **more}, size)
    try:
        yield terminal
    finally:
        terminal.close()


def runs(environ: dict[str, str]) -> list[dict[str, object]]:
    done = run_wsap(["runs", "--json"], env=environ)
    done.check_returncode()
    rows: list[dict[str, object]] = json.loads(done.stdout)
    return rows


ENDLESS = ("play", "echo", "--option", "length=100000")


@pytest.mark.slow
def test_a_run_is_watched_held_stepped_and_left_resumable(environ: dict[str, str]) -> None:
    with at_terminal(environ, *ENDLESS) as terminal:
        assert "\x1b[?1049h" in terminal.until("Last actions"), "it takes the other screen"
        terminal.press(" ")
        held = terminal.until("paused")
        (step,) = re.findall(r"step (?:\x1b\[\d+m)*(\d+)", re.sub(r"\x1b\[0m\x1b\[1m", "", held))[-1:]
        terminal.press("sss")
        terminal.until(rf"{int(step) + 3}\b")
        terminal.press("q")
        assert terminal.ended() == 0
        _, gave_back, rest = terminal.seen.partition("\x1b[?1049l")
        assert gave_back, "it gives the screen back"
        assert "Last actions" in rest, "and leaves the last picture"
        assert terminal.restored()
        (row,) = runs(environ)
        assert f"continue with: wsap play --resume {row['run']}" in terminal.seen
        assert row["status"] == "interrupted"


@pytest.mark.slow
def test_ctrl_c_stops_the_run_and_says_how_to_go_on(environ: dict[str, str]) -> None:
    with at_terminal(environ, *ENDLESS) as terminal:
        terminal.until("Last actions")
        terminal.press("\x03")
        assert terminal.ended() == 130
        assert terminal.restored()
        (row,) = runs(environ)
        assert f"wsap play --resume {row['run']}" in terminal.seen.splitlines()[-1]


@pytest.mark.slow
def test_a_terminal_that_hangs_up_leaves_a_resumable_run(environ: dict[str, str]) -> None:
    with at_terminal(environ, *ENDLESS) as terminal:
        terminal.until("Last actions")
        os.kill(terminal.process.pid, signal.SIGHUP)
        assert terminal.ended() == 130
        (row,) = runs(environ)
        assert (row["status"], row["resumable"]) == ("interrupted", True)


@pytest.mark.slow
def test_a_small_terminal_gets_a_sentence_and_plain_lines(environ: dict[str, str]) -> None:
    with at_terminal(environ, "play", "echo", size=(50, 12)) as terminal:
        assert terminal.ended() == 0
        assert "has 50x12 characters; the view needs at least 60x18" in terminal.seen
        assert "step 20: episode 1 is over" in terminal.seen
        assert "\x1b[?1049h" not in terminal.seen


@pytest.mark.slow
def test_a_terminal_that_is_made_smaller_and_larger_again_is_followed(environ: dict[str, str]) -> None:
    with at_terminal(environ, *ENDLESS) as terminal:
        terminal.until("Last actions")
        terminal.resize(40, 10)
        terminal.until("has 40x10")
        terminal.resize(120, 40)
        terminal.until("Last actions")
        terminal.press("q")
        assert terminal.ended() == 0


@pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
@pytest.mark.slow
def test_colours_are_left_out_where_they_are_not_wanted(
    environ: dict[str, str], more: dict[str, str], coloured: bool
) -> None:
    with at_terminal(environ, *ENDLESS, **more) as terminal:
        terminal.until("Last actions")
        terminal.press("q")
        assert terminal.ended() == 0
        colours = re.findall(r"\x1b\[[\d;]*(?:3[0-8]|9[0-7]|4[0-8])[;m]", terminal.seen)
        assert bool(colours) is coloured


@pytest.mark.slow
def test_a_terminal_that_can_only_print_gets_plain_lines(environ: dict[str, str]) -> None:
    with at_terminal(environ, "play", "echo", TERM="dumb") as terminal:
        assert terminal.ended() == 0
        assert "\x1b" not in terminal.seen


@pytest.mark.slow
def test_a_person_plays_to_the_end(environ: dict[str, str]) -> None:
    with at_terminal(environ, "play", "echo", "--agent", "human", "--option", "length=2") as terminal:
        terminal.until("Your turn")
        terminal.press(":speak hello\r")
        terminal.until("The echo says: hello")
        terminal.press(".")
        assert terminal.ended() == 0
        assert "2 steps in 1 episode" in terminal.seen
        assert "reward 1" in terminal.seen


@pytest.mark.parametrize("typed", ["tell to=column text=I'm here", "tell column I'm here", "say I'm here"])
@pytest.mark.slow
def test_a_person_sends_a_message_to_another_seat(environ: dict[str, str], typed: str) -> None:
    words = ("play", "matrix", "--seat", "row=human", "--fill", "tit-for-tat", "--option", "rounds=1")
    with at_terminal(environ, *words) as terminal:
        terminal.until("Your turn|your turn")
        terminal.press(f":{typed}\r")
        assert "There is no action" not in terminal.until("Said")
        terminal.press(":cooperate\r")
        assert terminal.ended() == 0
    done = run_wsap(["replay", "last"], env=environ)
    done.check_returncode()
    assert "I'm here" in done.stdout


SEATS = {
    "crafter": "seat-1", "echo": "seat-1", "gymnasium": "seat-1", "matrix": "row", "matrix-free": "row",
    "matrix-turns": "row", "minigrid": "seat-1", "morrowind": "seat-1", "openspiel": "seat-1",
    "pettingzoo": "player_1", "starbound": "seat-1", "textarena": "seat-1", "tossim": "player-1",
    "village": "anna", "lighthouse": "clara", "sandbox": "anna",
}  # fmt: skip
"""Installed game -> the seat of the person."""
MOST_TRIED = 12
"""Actions that are tried in a game; of those it offers, some of each part of the list."""


def test_each_installed_game_is_tried_by_a_person() -> None:
    done = run_wsap(["games", "--json"], env=dict(os.environ))
    served_elsewhere = {"openenv"}
    assert {row["name"] for row in json.loads(done.stdout)} - served_elsewhere == set(SEATS)


@pytest.mark.slow
@pytest.mark.parametrize("game", SEATS)
def test_whatever_is_offered_to_a_person_is_accepted_from_a_person(environ: dict[str, str], game: str) -> None:
    filled = {"tossim": ("--fill", "tossim-player"), **dict.fromkeys(("matrix", "matrix-turns"), ("--fill", "always"))}
    words = ("play", game, "--seed", "3", "--seat", f"{SEATS[game]}=human", *filled.get(game, ()))
    tried: list[str] = []
    with at_terminal(environ, *words, size=(50, 12)) as terminal:
        said = terminal.until_or_end(r"what do you do\? [^\n]*\n")
        while said is not None and len(tried) < MOST_TRIED:
            offered = said.rpartition("what do you do? ")[2].strip().split(", ")
            left = [name for name in offered if name not in tried]
            if not left:
                break
            tried.append(left[len(left) // 2 if len(tried) % 2 else 0])
            said = carried_out(terminal, tried[-1])
    assert tried


def carried_out(terminal: Terminal, name: str) -> str | None:
    """Type an action, and what the terminal says that it needs, until it is carried out; return what is sent then,
    up to the next question, or None at the end."""
    typed = name
    for _ in range(6):
        terminal.press(f"{typed}\n")
        answer = terminal.until_or_end(
            rf"(?m)^(?:{name} needs '\w+' \([^\n]*\)|{name}: |{name} takes |{name} has |{name} is not possible|"
            r"There is no action)[^\n]*\n|what do you do\? [^\n]*\n"
        )
        if answer is None or "what do you do? " in answer:
            return answer
        needed = re.search(rf"{name} needs '(\w+)' \((.*)\)", answer)
        assert needed is not None, f"{typed!r} was offered, but: {answer[-500:]}"
        key, expected = needed.groups()
        choices = re.match("one of ([^,]+)", expected), re.match(r"(?:a whole number from )?(-?\d+)", expected)
        value = next((found[1] for found in choices if found), "1" if expected in ("number", "integer") else "I'm here")
        typed += f" {key}={value}"
    raise AssertionError(f"{typed!r} still needs something")


@pytest.mark.slow
def test_a_person_who_leaves_can_come_back(environ: dict[str, str]) -> None:
    words = ("play", "echo", "--agent", "human", "--option", "length=2")
    with at_terminal(environ, *words) as terminal:
        terminal.until("Your turn")
        terminal.press(":speak hello\r")
        terminal.until("The echo says: hello")
        terminal.press("q")
        assert terminal.ended() == 0
    with at_terminal(environ, "play", "--resume", "last") as terminal:
        assert "The echo says: hello" in terminal.until("Your turn"), "what happened before is shown"
        terminal.press(":speak bye\r")
        assert terminal.ended() == 0
        assert "2 steps in 1 episode" in terminal.seen
        (row,) = runs(environ)
        assert (row["status"], row["reward"]) == ("finished", 2)


@pytest.mark.slow
def test_a_person_at_a_small_terminal_plays_line_by_line(environ: dict[str, str]) -> None:
    words = ("play", "echo", "--agent", "human", "--option", "length=1")
    with at_terminal(environ, *words, size=(50, 12)) as terminal:
        terminal.until("what do you do")
        terminal.press("spaek\n")
        terminal.until("Did you mean")
        terminal.press("speak hello\n")
        assert terminal.ended() == 0
        assert "1 step in 1 episode" in terminal.seen


@pytest.mark.slow
def test_a_recorded_run_is_stepped_through(environ: dict[str, str]) -> None:
    run_wsap(["play", "echo", "--steps", "30", "--json"], env=environ).check_returncode()
    with at_terminal(environ, "replay", "last") as terminal:
        terminal.until("replay 0/30")
        terminal.press("\x1b[C")
        terminal.until("replay 1/30")
        terminal.press("\x1b[6~")
        terminal.until("replay 30/30")
        terminal.press("g12\r")
        terminal.until("replay 12/30")
        terminal.press("q")
        assert terminal.ended() == 0
        assert terminal.restored()
        assert "--from 12" in terminal.seen


@pytest.mark.slow
def test_what_an_agent_prints_is_kept_off_the_picture_and_told_at_the_end(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "noisy.py").write_text(
        "from wsap_core import Action\n"
        "class Noisy:\n"
        "    def initialize(self, game_desc, action_space): pass\n"
        "    def decide(self, observation):\n"
        "        print('thought', observation.step)\n"
        "        return Action('wait')\n"
        "    def reflect(self, result): pass\n"
        "    def plan(self, goals): return []\n",
        encoding="utf-8",
    )
    words = ("play", "echo", "--agent", f"{tmp_path / 'noisy.py'}:Noisy", "--pace", "0")
    with at_terminal(environ, *words) as terminal:
        assert terminal.ended() == 0
        picture, gave_back, rest = terminal.seen.partition("\x1b[?1049l")
        assert gave_back
        assert "thought" not in picture
        assert [f"thought {n}" in rest for n in range(20)] == [True] * 20


@pytest.mark.slow
def test_json_at_a_terminal_is_json_alone_on_the_output(environ: dict[str, str], tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    script = f"exec {sys.executable} -m wsap_core play echo --steps 30 --json > {output}"
    master, slave = pty.openpty()
    try:
        done = subprocess.run(["sh", "-c", script], stdin=slave, stderr=slave, env=environ, timeout=300, check=False)
    finally:
        os.close(master)
        os.close(slave)
    assert done.returncode == 0
    assert json.loads(output.read_text(encoding="utf-8"))["steps"] == 30


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 80, 110, 160])
def test_the_list_of_runs_fits_the_terminal_and_keeps_how_they_stand(environ: dict[str, str], width: int) -> None:
    run_wsap(["play", "matrix", "--seat", "row=always", "--json"], env=environ).check_returncode()
    (row,) = runs(environ)
    with at_terminal(environ, "runs", size=(width, 24), NO_COLOR="1") as terminal:
        assert terminal.ended() == 0
        head, line = re.sub(r"\x1b\[[\d;]*m", "", terminal.seen).split("\r\n")[:2]
        assert len(line.rstrip()) <= width
        assert line.startswith(str(row["run"]))
        assert "finished" in line
        assert ("WHEN" in head) is (width >= 110)

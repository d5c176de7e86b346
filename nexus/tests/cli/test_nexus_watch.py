"""`wsap nexus watch` at a pseudo-terminal, and where there is none."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_nexus_kit import PATIENCE, Hub, environ_of, nexus_json, refused, running, until, wsap
from warm import begin_wsap

if os.name != "posix":
    pytest.skip("pseudo-terminals as POSIX has them", allow_module_level=True)

from test_terminal import at_terminal

SLOW = ("--port", "0", "--workers", "0", "--pace", "2", "--game", "echo")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """One nexus for all who only look."""
    with running(environ_of(tmp_path_factory.mktemp("watched") / "home"), *SLOW) as found:
        found.someone_was_away()
        yield found


@pytest.fixture
def environ(hub: Hub) -> dict[str, str]:
    return {**hub.environ, "TERM": "xterm-256color"}


@pytest.mark.slow
def test_everybody_is_shown_one_is_looked_at_and_leaving_changes_nothing(hub: Hub, environ: dict[str, str]) -> None:
    with at_terminal(environ, "nexus", "watch") as terminal:
        shown = terminal.until("Events")
        assert "\x1b[?1049h" in terminal.seen, "it takes the other screen"
        assert hub.ready["url"] in shown
        terminal.until(r"▸ (?:\x1b\[[\d;]*m)*Ada")
        terminal.press("\x1b[B")
        terminal.until(r"▸ (?:\x1b\[[\d;]*m)*Bob")
        terminal.press("\r")
        terminal.until("Bob in")
        terminal.until("Last actions")
        terminal.press("\x1b[D")
        terminal.until("Events")
        terminal.press("?")
        terminal.until("leave; the nexus keeps running")
        terminal.press("x")
        terminal.until("Events")
        terminal.press("q")
        assert terminal.ended() == 0
        assert terminal.restored()
    assert hub.answering()


@pytest.mark.slow
def test_an_agent_is_paused_and_goes_on_by_a_key(hub: Hub, environ: dict[str, str]) -> None:
    def state() -> str:
        return next(a["state"] for a in nexus_json(environ, "agents", "list") if a["id"] == "ada")

    with at_terminal(environ, "nexus", "watch", "ada") as terminal:
        terminal.until("Ada in")
        terminal.press(" ")
        terminal.until("paused")
        assert until(lambda: state() == "paused", "the pause")
        terminal.press(" ")
        terminal.until("live")
        assert until(lambda: state() == "active", "going on")
        terminal.press("q")
        assert terminal.ended() == 0


@pytest.mark.slow
@pytest.mark.parametrize("size", [(45, 16), (30, 10), (140, 50)])
def test_it_fits_terminals_of_every_size(environ: dict[str, str], size: tuple[int, int]) -> None:
    with at_terminal(environ, "nexus", "watch", size=size) as terminal:
        terminal.until("Events")
        terminal.press("\r")
        terminal.until("Ada in")
        terminal.resize(20, 5)
        terminal.until("too small")
        terminal.resize(*size)
        terminal.until("Ada in")
        terminal.press("\x03")
        assert terminal.ended() == 0
        assert terminal.restored()


def test_a_terminal_that_can_only_print_gets_lines(environ: dict[str, str]) -> None:
    with at_terminal(environ, "nexus", "watch", TERM="dumb") as terminal:
        terminal.until(r"\d\d:\d\d:\d\d Ada ")
        terminal.press("\x03")
        assert terminal.ended() == 0
        assert "\x1b" not in terminal.seen


@pytest.mark.slow
def test_a_pipe_gets_each_event_once_until_the_nexus_stops(tmp_path: Path) -> None:
    with running(environ_of(tmp_path / "home")) as hub:
        watching = begin_wsap(("nexus", "watch", "--json"), env=hub.environ)
        hub.someone_was_away()
        hub.tell(signal.SIGTERM)
        assert hub.ended()[0] == 0
        told, _ = watching.communicate(timeout=PATIENCE)
        assert watching.returncode == 0
    numbers = [json.loads(line)["seq"] for line in told.splitlines()]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    kinds = [json.loads(line)["kind"] for line in told.splitlines()]
    assert kinds[-1] == "stopped"
    # Of a nexus that does not run, how it was left is told.
    left = wsap(hub.environ, "nexus", "watch", "ada")
    assert left.returncode == 0
    assert "No nexus is running" in left.stdout.splitlines()[-1]
    code, sentence = refused(hub.environ, "watch", "nobody")
    assert (code, "nobody" in sentence) == (2, True)


@pytest.mark.slow
def test_a_name_that_is_hostile_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    environ = environ_of(tmp_path / "home", TERM="xterm-256color")
    assert wsap(environ, "nexus", "agents", "add", "eve", "--title", "[bold]x[/]").returncode == 0
    with sqlite3.connect(tmp_path / "home" / "wsap.db") as connection:  # as no command would write it
        connection.execute("UPDATE agent SET name = name || char(27) || ']0;title' || char(7)")
    connection.close()
    with running(environ, *SLOW), at_terminal(environ, "nexus", "watch", "eve") as terminal:
        terminal.until(r"\[bold\]x\[/\]")
        terminal.press("q")
        assert terminal.ended() == 0
        assert "\x1b]0;" not in terminal.seen
        assert "\x07" not in terminal.seen

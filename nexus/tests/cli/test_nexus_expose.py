"""A nexus that other devices reach: the address that they open, and its QR code."""

from __future__ import annotations

import io
import socket
from typing import Any

import pytest
import segno
from click.testing import CliRunner
from rich.console import Console

from wsap_nexus.cli.nexus import request as requests
from wsap_nexus.cli.nexus import start as starting
from wsap_nexus.cli.nexus.request import StartRequest, say_ready
from wsap_nexus.http.listening import url_for_others
from wsap_nexus.state import Running

ADDRESS = "http://192.168.7.9:9998/"
OPENING = f"{ADDRESS}#key=3vJ0_4dk-abcdefghijklm"


def request_for(host: str) -> StartRequest:
    return StartRequest(
        host=host, port=9998, expose=True, seed=0, pace=4.0, games=(), model=None, workers=0, worker_memory=None,
        game_hosts=(), limits=(), keep_days=0, keep_size=0, as_json=False, database=None, living_in_workers=False,
    )  # fmt: skip


class Probe:
    """A socket on a machine with the address 192.168.7.9, or on one without a network."""

    connected = True

    def __init__(self, family: int, kind: int) -> None:
        assert kind == socket.SOCK_DGRAM, "nothing is sent"

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def connect(self, address: tuple[str, int]) -> None:
        if not self.connected:
            raise OSError("Network is unreachable")

    def getsockname(self) -> tuple[str, int]:
        return ("192.168.7.9", 54321)


def test_the_address_is_that_of_the_interface_by_which_others_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", Probe)
    assert url_for_others("0.0.0.0", 9998) == ADDRESS
    assert url_for_others("10.1.2.3", 9998) == "http://10.1.2.3:9998/"
    monkeypatch.setattr(Probe, "connected", False)
    assert url_for_others("0.0.0.0", 9998) == "http://127.0.0.1:9998/"


def said(monkeypatch: pytest.MonkeyPatch, host: str, width: int = 80, *, terminal: bool = True) -> list[str]:
    """Return the lines on a terminal under the address that opens the controls."""
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=terminal, width=width, color_system=None)
    monkeypatch.setattr(requests, "output_console", lambda: console)
    monkeypatch.setattr(Console, "encoding", "utf-8")
    monkeypatch.setattr(socket, "socket", Probe)
    running = Running(1, "", "http://127.0.0.1:9998/", 0.0, "wsap.db")
    say_ready(request_for(host), running, "nexus.token", "Ctrl-C stops it", OPENING)
    return drawn.getvalue().splitlines()


def test_both_addresses_are_those_that_other_devices_can_open(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said(monkeypatch, "0.0.0.0")
    assert capsys.readouterr().out.splitlines() == [
        f"The nexus is up: {ADDRESS}  (Ctrl-C stops it)",
        f"To see everything and control agents, open this once: {OPENING}",
    ]


def test_a_terminal_shows_the_address_as_a_code_for_a_phone(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = said(monkeypatch, "0.0.0.0")
    # Each character is two modules, one above the other; light ones are drawn.
    light = [row for line in lines for row in ([c in "█▀" for c in line], [c in "█▄" for c in line])]
    border, code = 4, [[bool(module) for module in row] for row in segno.make(OPENING, micro=False).matrix]
    middle = [[not module for module in row[border:-border]] for row in light[border : border + len(code)]]
    assert middle == code
    assert all(map(all, light[:border]))


@pytest.mark.parametrize(("width", "terminal"), [(30, True), (80, False)])
def test_where_it_has_no_room_or_nobody_looks_there_is_no_code(
    monkeypatch: pytest.MonkeyPatch, width: int, terminal: bool
) -> None:
    assert said(monkeypatch, "0.0.0.0", width, terminal=terminal) == []


@pytest.mark.parametrize(
    ("words", "host"),
    [((), "127.0.0.1"), (("--expose",), "0.0.0.0"), (("--expose", "--host", "10.1.2.3"), "10.1.2.3")],
)
def test_exposed_it_listens_on_all_interfaces_unless_one_is_named(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], host: str
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(starting, "_start", asked.append)
    monkeypatch.setattr(starting, "_check", lambda request: None)
    result = CliRunner().invoke(starting.start, list(words))
    assert result.exit_code == 0, result.output
    assert [request.host for request in asked] == [host]

"""Progress messages of a command."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console
from rich.file_proxy import FileProxy

from wsap_nexus.cli.common import Notices


def test_a_notice_is_written_once_and_through_a_live_table(monkeypatch: pytest.MonkeyPatch) -> None:
    below, screen = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    monkeypatch.setattr(sys, "stderr", FileProxy(Console(file=screen, force_terminal=True, width=80), below))
    notices = Notices()
    notices("the server is\x1b[2J slow")
    notices("the server is\x1b[2J slow")
    assert screen.getvalue() == "the server is [2J slow\n"
    below.flush()
    assert below.buffer.getvalue() == b""  # type: ignore[attr-defined]

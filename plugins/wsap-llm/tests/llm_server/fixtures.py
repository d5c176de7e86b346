"""Fixtures for test folders whose conftest imports `llm_server`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from llm_server.server import ModelServer


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A server for one test that says hello by default."""
    with ModelServer() as running:
        yield running


@pytest.fixture
def nowhere() -> Iterator[str]:
    """A local address without a server; the port is held, so that no one else listens there."""
    import socket

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound but never listening
        yield f"http://127.0.0.1:{held.getsockname()[1]}"

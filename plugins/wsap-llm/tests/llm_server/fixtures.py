"""Fixtures for any test folder: a conftest that can import `llm_server` names them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from llm_server.server import ModelServer


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A server of one's own that says hello until told otherwise."""
    with ModelServer() as running:
        yield running


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address on this machine at which nobody listens: the port is held, so that nobody begins to."""
    import socket

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, and never listening
        yield f"http://127.0.0.1:{held.getsockname()[1]}"

"""The nexus that runs on this machine: where it is, and the token of whoever runs it."""

from __future__ import annotations

import os

from wsap_nexus.client.parts import NoAnswerError
from wsap_nexus.paths import database_location
from wsap_nexus.state import read, state_file, token_file


def here(database: str | None = None) -> tuple[str, str]:
    """Return the address of the nexus that runs on this machine, and its token: `NexusClient(*here())`.

    Args:
        database: its database, a path or URL; as `wsap nexus start` chooses it when None.

    Raises:
        NoAnswerError: none runs, or its token can't be read.
    """
    running = read(state_file(database_location(database, os.environ), os.environ))
    if running is None:
        raise NoAnswerError("No nexus runs here; start one with: wsap nexus start")
    try:
        return running.url, token_file(os.environ).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise NoAnswerError(f"The nexus' token can't be read: {error}") from error

"""The nexus that runs on this machine."""

from __future__ import annotations

import os

from wsap_nexus.client.parts import NoAnswerError
from wsap_nexus.paths import database_location
from wsap_nexus.state import read, state_file, token_file


def here(database: str | None = None) -> tuple[str, str]:
    """Return the address and the owner's token of the nexus on this machine: `NexusClient(*here())`.

    Args:
        database: path or URL of its database; None for the default of `wsap nexus start`.

    Raises:
        NoAnswerError: no nexus is running, or its token can't be read.
    """
    running = read(state_file(database_location(database, os.environ), os.environ))
    if running is None:
        raise NoAnswerError("No nexus is running; start one with: wsap nexus start")
    try:
        return running.url, token_file(os.environ).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise NoAnswerError(f"The token of the nexus can't be read: {error}") from error

"""The plugin's files, in the folder `tes3mp` of WSAP's files."""

from __future__ import annotations

from pathlib import Path

from wsap_core.paths import home


def folder() -> Path:
    """Return the folder, which may not exist yet."""
    return home() / "tes3mp"


def log_file() -> Path:
    """Return the default path of the command log."""
    return folder() / "commands.sqlite"


def token_file() -> Path:
    """Return the path of the bridge's token."""
    return folder() / "token"


def serving_file(port: int) -> Path:
    """Return the path of the file that says which bridge runs on a port of this machine."""
    return folder() / f"bridge-{port}.json"


def script_token_file() -> Path:
    """Return the path of the token shared with the script."""
    return folder() / "script.token"

"""The plugin's files, in the folder `tes3mp` of WSAP's files."""

from __future__ import annotations

from pathlib import Path

from wsap_core.paths import home


def folder() -> Path:
    """Return the folder, which may not exist yet."""
    return home() / "tes3mp"


def log_file() -> Path:
    """Return where the command log lies unless another file is named."""
    return folder() / "commands.sqlite"


def token_file() -> Path:
    """Return where `wsap tes3mp serve` keeps the bridge's token."""
    return folder() / "token"


def script_token_file() -> Path:
    """Return where `wsap tes3mp install` keeps the token that the script shares."""
    return folder() / "script.token"

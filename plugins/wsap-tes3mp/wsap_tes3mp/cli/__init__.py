"""`wsap tes3mp`: serve, check and read bridges. Each command is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.cli.grouped import lazy_group

_HERE = "wsap_tes3mp.cli"
COMMANDS: Mapping[str, tuple[str, str]] = {
    "serve": (f"{_HERE}.serve:serve", "Serve a bridge, with the embedded engine or a TES3MP server behind it."),
    "install": (f"{_HERE}.install:install", "Install the script in a TES3MP server, or remove it."),
    "check": (f"{_HERE}.check:check", "Check that a bridge conforms to the protocol."),
    "log": (f"{_HERE}.log:log", "Read, export and prune the log of commands."),
}
"""Name -> import path and summary."""


tes3mp = lazy_group(
    "tes3mp",
    "Serve, check and read Perception/Command bridges to Morrowind and other engines.",
    COMMANDS,
    examples=("wsap tes3mp serve", "wsap tes3mp check http://127.0.0.1:8765"),
)

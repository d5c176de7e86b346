"""Makes a `Tes3mpEngine` from what a person names: a token's file, an address, data files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wsap_core.errors import ConfigError
from wsap_core.seams.clock import Clock
from wsap_core.textfile import read_text
from wsap_tes3mp.engines.tes3mp.engine import ADDRESS, Tes3mpEngine
from wsap_tes3mp.engines.tes3mp.esm import Encoding, read_data
from wsap_tes3mp.paths import script_token_file


def open_engine(
    token_file: Path,
    *,
    address: str = ADDRESS,
    token: str = "",
    data: Sequence[Path] = (),
    encoding: Encoding = "cp1252",
    clock: Clock | None = None,
) -> Tes3mpEngine:
    """Return an engine that is not started yet; its `names` are of the game's data files, or folders of them.

    Raises:
        ConfigError: there is no token, the address is none, or a data file can't be read.
    """
    host, _, port = address.rpartition(":")
    if "/" in address or "\\" in address:
        if not Path(address).is_dir():
            raise ConfigError(f"The mailbox {address} is no folder; make it, and name it in the script's settings.lua.")
    elif not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(f"{address!r} is no address of the script; name HOST:PORT, such as {ADDRESS}, or a folder.")
    return Tes3mpEngine(
        token or _token(token_file), address, names=read_data(data, encoding=encoding) if data else None, clock=clock
    )


def _token(path: Path) -> str:
    if path.name == script_token_file().name and not path.exists():
        raise ConfigError(f"There is no token of the script in {path}; run: wsap tes3mp install SERVER_FOLDER")
    token = read_text(path, "The token of the script").strip()
    if not 8 <= len(token) <= 200 or not token.isprintable():
        raise ConfigError(f"{path} holds no token of 8 to 200 characters.")
    return token

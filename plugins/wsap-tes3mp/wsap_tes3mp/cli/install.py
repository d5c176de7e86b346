"""`wsap tes3mp install`: install the script in a TES3MP server, or remove it."""

from __future__ import annotations

import os
import re
from importlib.resources import files
from pathlib import Path

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import refuse_given
from wsap_core.errors import ConfigError

_LIST = "customScripts.lua"
_SETTINGS = "settings.lua"
_LINE = b'require("custom.wsap.main")'
_OURS = re.compile(
    rb"""^[ \t]*require[ \t]*\(?[ \t]*["']custom[./]wsap[./]main["'][ \t]*\)?[ \t]*;?[ \t]*\r?\n?""", re.MULTILINE
)
_TOKEN = re.compile(r"""^([ \t]*token[ \t]*=[ \t]*)(?:"[^"\n]*"|'[^'\n]*')""", re.MULTILINE)


@click.command(cls=GroupedCommand, examples=("wsap tes3mp install ~/tes3mp", "wsap tes3mp install ~/tes3mp --remove"))
@click.argument("server_folder", type=click.Path(path_type=Path))
@click.option("--remove", is_flag=True, help="Remove the script.")
@click.option("--print-line", is_flag=True, help="Print the line to add to customScripts.lua instead of adding it.")
def install(server_folder: Path, remove: bool, print_line: bool) -> None:
    """Install the script in a TES3MP 0.8.1 server.

    Its files go to scripts/custom/wsap, with a token that this machine's bridge knows; one line is added to
    customScripts.lua. Run it again to update the script; its settings are kept.
    """
    if remove:
        refuse_given("with --remove", "print_line")
    scripts = scripts_folder(server_folder)
    target = scripts / "custom" / "wsap"
    if remove:
        _remove(scripts, target)
        click.echo(f"Removed the script from {scripts}. Restart the server.")
        return
    from wsap_nexus.http.auth import own_token  # deferred for weight: `wsap tes3mp --help` needs no server
    from wsap_tes3mp.paths import script_token_file

    token_file = script_token_file()
    token_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _copy(target, own_token(token_file))
    click.echo(f"Installed the script in {target}. It uses the token in {token_file}.")
    if print_line:
        click.echo(f"Add this line to {scripts / _LIST}, if it is not there yet:\n\n    {_LINE.decode()}\n")
    else:
        added = _add_line(scripts / _LIST)
        click.echo(f"{scripts / _LIST} {'now loads it' if added else 'already loads it'}.")
    click.echo("Next: restart the server; its log then says [wsap] boot ... listens;")
    click.echo("then run: wsap tes3mp serve --engine tes3mp")


def scripts_folder(folder: Path) -> Path:
    """Return the folder with a server's scripts; `ConfigError` if it is not a TES3MP server."""
    for candidate in (folder / "server" / "scripts", folder / "scripts", folder):
        if (candidate / _LIST).is_file() and (candidate / "serverCore.lua").is_file():
            return candidate
    raise ConfigError(
        f"{folder} is not a TES3MP 0.8 server: it has no server/scripts with {_LIST} and serverCore.lua; "
        "name the folder that contains tes3mp-server."
    )


def _package() -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in files("wsap_tes3mp").joinpath("lua").iterdir() if file.is_file()}


def _copy(target: Path, token: str) -> None:
    """Copy the files; existing settings are kept, except for the token."""
    target.mkdir(parents=True, exist_ok=True)
    settings = target / _SETTINGS
    for name, content in _package().items():
        if name != _SETTINGS:
            _write(target / name, content)
    old = settings.read_bytes() if settings.exists() else _package()[_SETTINGS]
    new, count = _TOKEN.subn(lambda found: f'{found[1]}"{token}"', old.decode("latin-1"), count=1)
    if not count:
        raise ConfigError(f'{settings} has no line token = "..."; add one, or delete the file and run this again.')
    _write(settings, new.encode("latin-1"), mode=0o600)


def _add_line(path: Path) -> bool:
    """Add the line that loads the script; return whether it was missing."""
    text = path.read_bytes()
    if _OURS.search(text):
        return False
    end = b"\r\n" if b"\r\n" in text else b"\n"
    start = text if not text or text.endswith(b"\n") else text + end
    _write(path, start + _LINE + end)
    return True


def _remove(scripts: Path, target: Path) -> None:
    text = (scripts / _LIST).read_bytes()
    if _OURS.search(text):
        _write(scripts / _LIST, _OURS.sub(b"", text))
    for name in _package():
        (target / name).unlink(missing_ok=True)
    if target.is_dir() and not any(target.iterdir()):
        target.rmdir()


def _write(path: Path, content: bytes, mode: int | None = None) -> None:
    """Replace a file atomically; its mode stays unless one is given."""
    if mode is None:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    new.replace(path)

"""`wsap tes3mp install`: install the script in a TES3MP server, or remove it."""

from __future__ import annotations

import contextlib
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
    _copy(target, own_token(token_file), scripts / _LIST)
    click.echo(f"Installed the script in {target}. It uses the token in {token_file}.")
    if os.name == "posix" and (owner := (scripts / _LIST).stat().st_uid) != (target / _SETTINGS).stat().st_uid:
        click.echo(
            f"The user {owner}, whose server this is, must be able to read {target / _SETTINGS}: give it that owner."
        )
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


def _copy(target: Path, token: str, like: Path) -> None:
    """Copy the files; existing settings are kept, except for the token. New files get the owner of `like`."""
    _folder(target, like)
    settings = target / _SETTINGS
    for name, content in _package().items():
        if name != _SETTINGS:
            _write(target / name, content, like=like)
    try:
        old = settings.read_bytes() if settings.exists() else _package()[_SETTINGS]
    except OSError as error:
        raise _unwritable(settings, error) from error
    new, count = _TOKEN.subn(lambda found: f'{found[1]}"{token}"', old.decode("latin-1"), count=1)
    if not count:
        raise ConfigError(f'{settings} has no line token = "..."; add one, or delete the file and run this again.')
    # It holds the token: no mode of the owner's is kept that lets others read it.
    mode = settings.stat().st_mode & 0o770 if settings.exists() else 0o600
    _write(settings, new.encode("latin-1"), mode=mode, like=like)


def _listed(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} can't be read ({error.strerror or error}).") from error


def _add_line(path: Path) -> bool:
    """Add the line that loads the script; return whether it was missing."""
    text = _listed(path)
    if _OURS.search(text):
        return False
    end = b"\r\n" if b"\r\n" in text else b"\n"
    start = text if not text or text.endswith(b"\n") else text + end
    _write(path, start + _LINE + end)
    return True


def _remove(scripts: Path, target: Path) -> None:
    text = _listed(scripts / _LIST)
    if _OURS.search(text):
        _write(scripts / _LIST, _OURS.sub(b"", text))
    try:
        for name in _package():
            (target / name).unlink(missing_ok=True)
        if target.is_dir() and not any(target.iterdir()):
            target.rmdir()
    except OSError as error:
        raise _unwritable(target, error) from error


def _write(path: Path, content: bytes, mode: int | None = None, *, like: Path | None = None) -> None:
    """Replace a file atomically, or what its link points to; its owner stays, and its mode unless one is given.

    A new file gets the owner of `like`. Raises `ConfigError` if it can't be written.
    """
    path = path.resolve()
    old = path.stat() if path.exists() else None
    owner = old or (like or path.parent).stat()
    mode = mode if mode is not None else 0o644 if old is None else old.st_mode & 0o7777
    new = path.with_name(f".{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        if not _owned(new, owner) and old is not None:
            # Replaced it would change hands.
            path.write_bytes(content)
        else:
            new.chmod(mode)
            new.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)


def _folder(path: Path, like: Path) -> None:
    """Create a folder and those above it, with the owner of `like`."""
    if not path.is_dir():
        _folder(path.parent, like)
        try:
            path.mkdir()
            _owned(path, like.stat())
        except OSError as error:
            raise _unwritable(path, error) from error


def _owned(path: Path, owner: os.stat_result) -> bool:
    """Give a file an owner and group; return whether it has that owner."""
    if os.name != "posix":
        return True
    now = path.stat()
    if (now.st_uid, now.st_gid) != (owner.st_uid, owner.st_gid):
        with contextlib.suppress(OSError):  # only root may
            os.chown(path, owner.st_uid, owner.st_gid)
    return path.stat().st_uid == owner.st_uid


def _unwritable(path: Path, error: OSError) -> ConfigError:
    why = error.strerror or error
    return ConfigError(f"{path} can't be written ({why}); run this as the user that the server runs as.")

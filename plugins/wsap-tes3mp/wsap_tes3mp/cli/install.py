"""`wsap tes3mp install`: install the script in a TES3MP server, or remove it."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
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
    server = _Server(scripts, (server_folder.resolve(), scripts.resolve()))
    target = scripts / "custom" / "wsap"
    if remove:
        _remove(server, target)
        click.echo(f"Removed the script from {scripts}. Restart the server.")
        return
    from wsap_nexus.http.access.auth import own_token  # deferred for weight: `wsap tes3mp --help` needs no server
    from wsap_tes3mp.paths import script_token_file

    token_file = script_token_file()
    token_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not print_line:
        server.list_file()
    _copy(server, target, own_token(token_file))
    click.echo(f"Installed the script in {target}. It uses the token in {token_file}.")
    if os.name == "posix" and (owner := (scripts / _LIST).stat().st_uid) != (target / _SETTINGS).stat().st_uid:
        click.echo(
            f"The user {owner}, whose server this is, must be able to read {target / _SETTINGS}: give it that owner."
        )
    if print_line:
        click.echo(f"Add this line to {scripts / _LIST}, if it is not there yet:\n\n    {_LINE.decode()}\n")
    else:
        added = _add_line(server.list_file())
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


@dataclass(frozen=True)
class _Server:
    """The folders of a server. What is linked from them to elsewhere is not written: whoever runs the server could
    have made the link, and whoever installs may write more than they."""

    scripts: Path
    roots: tuple[Path, ...]

    def place(self, path: Path) -> Path:
        """Return where a path leads through the links of the server's folder; `ConfigError` if one leaves it."""
        for part in (*reversed(path.parents), path):
            real = _resolved(part)
            if part.is_symlink() and part.is_relative_to(self.scripts) and not self._holds(real):
                raise ConfigError(f"{part} is a link to {real}, outside the server's folder; remove it.")
        return _resolved(path)

    def list_file(self) -> Path:
        """Return where the list of scripts is: elsewhere only if the owner of the scripts made it and the link."""
        path = self.scripts / _LIST
        real, owner = _resolved(path), self.scripts.stat().st_uid
        if not self._holds(real) and not path.lstat().st_uid == real.stat().st_uid == owner:
            raise ConfigError(
                f"{path} is a link to {real}, which is not the user's whose scripts these are; "
                "change its line there yourself (--print-line shows it)."
            )
        return real

    def _holds(self, real: Path) -> bool:
        return any(real.is_relative_to(root) for root in self.roots)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{path} is a link that leads nowhere; remove it.") from error


def _copy(server: _Server, target: Path, token: str) -> None:
    """Copy the files; existing settings are kept, except for the token. New files get the owner of the list."""
    like = server.scripts / _LIST
    folder = server.place(target)
    places = {name: server.place(target / name) for name in _package()}
    _folder(folder, like)
    for name, content in _package().items():
        if name != _SETTINGS:
            _write(places[name], content, like=like)
    settings = places[_SETTINGS]
    try:
        old = _read(settings) if settings.exists() else _package()[_SETTINGS]
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
        return _read(path)
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


def _remove(server: _Server, target: Path) -> None:
    folder, listed = server.place(target), server.list_file()
    text = _listed(listed)
    if _OURS.search(text):
        _write(listed, _OURS.sub(b"", text))
    try:
        if folder.is_dir():
            for name in _package():
                with _held(folder / name) as at, contextlib.suppress(FileNotFoundError):
                    os.unlink(at.name, dir_fd=at.folder)
            if not target.is_symlink() and not any(folder.iterdir()):
                with _held(folder) as at:
                    os.rmdir(at.name, dir_fd=at.folder)
    except OSError as error:
        raise _unwritable(target, error) from error


# --- files of a folder that another user can change meanwhile ---------------------------------------------------------


@dataclass(frozen=True)
class _At:
    """A file in an open folder: a link that takes the folder's place later is not followed."""

    name: str
    folder: int | None

    def open(self, flags: int, mode: int = 0o600) -> int:
        return os.open(self.name, flags | getattr(os, "O_NOFOLLOW", 0), mode, dir_fd=self.folder)

    def stat(self) -> os.stat_result | None:
        with contextlib.suppress(FileNotFoundError):
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        return None


@contextlib.contextmanager
def _held(path: Path) -> Iterator[_At]:
    """Open the folder of a resolved path, in which no part may be a link by now."""
    if os.name != "posix":
        yield _At(str(path), None)
        return
    flags = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)
    folder = os.open(path.anchor, flags)
    try:
        for part in path.parts[1:-1]:
            inner = os.open(part, flags, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield _At(path.name, folder)
    finally:
        os.close(folder)


def _read(path: Path) -> bytes:
    with _held(path) as at, os.fdopen(at.open(os.O_RDONLY | getattr(os, "O_BINARY", 0)), "rb") as file:
        return file.read()


def _write(path: Path, content: bytes, mode: int | None = None, *, like: Path | None = None) -> None:
    """Replace a file of a resolved path atomically; its owner stays, and its mode unless one is given.

    A new file gets the owner of `like`. Raises `ConfigError` if it can't be written.
    """
    binary = getattr(os, "O_BINARY", 0)
    try:
        with _held(path) as at:
            old = at.stat()
            if old is not None and not stat.S_ISREG(old.st_mode):
                raise ConfigError(f"{path} is not a plain file; remove it.")
            owner = old or (like or path.parent).stat()
            mode = mode if mode is not None else 0o644 if old is None else old.st_mode & 0o7777
            new = _At(str(path.with_name(f".{path.name}.new")) if at.folder is None else f".{path.name}.new", at.folder)
            try:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(new.name, dir_fd=new.folder)
                with os.fdopen(new.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL | binary), "wb") as file:
                    file.write(content)
                    kept = _owned(file.fileno(), owner)
                    if os.name == "posix":
                        os.fchmod(file.fileno(), mode)
                if not kept and old is not None:
                    # Replaced it would change hands.
                    with os.fdopen(at.open(os.O_WRONLY | os.O_TRUNC | binary), "wb") as file:
                        file.write(content)
                else:
                    os.replace(new.name, at.name, src_dir_fd=new.folder, dst_dir_fd=at.folder)
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(new.name, dir_fd=new.folder)
    except OSError as error:
        raise _unwritable(path, error) from error


def _folder(path: Path, like: Path) -> None:
    """Create a folder of a resolved path and those above it, with the owner of `like`."""
    if path.is_dir():
        return
    _folder(path.parent, like)
    try:
        with _held(path) as at:
            os.mkdir(at.name, dir_fd=at.folder)
            if os.name == "posix":
                made = at.open(os.O_RDONLY | os.O_DIRECTORY)
                try:
                    _owned(made, like.stat())
                finally:
                    os.close(made)
    except OSError as error:
        raise _unwritable(path, error) from error


def _owned(file: int, owner: os.stat_result) -> bool:
    """Give a file that this process has just made an owner and group; return whether it has that owner."""
    if os.name != "posix":
        return True
    now = os.fstat(file)
    if now.st_uid == os.geteuid() and (now.st_uid, now.st_gid) != (owner.st_uid, owner.st_gid):
        with contextlib.suppress(OSError):  # only root may
            os.fchown(file, owner.st_uid, owner.st_gid)
    return os.fstat(file).st_uid == owner.st_uid


def _unwritable(path: Path, error: OSError) -> ConfigError:
    why = error.strerror or error
    return ConfigError(f"{path} can't be written ({why}); run this as the user that the server runs as.")

"""`wsap tes3mp install`, into the folder of a server."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from lua_server import LuaServer

from wsap_core.errors import ConfigError
from wsap_tes3mp.cli.install import install
from wsap_tes3mp.engines.tes3mp.engine import open_engine

LINE = 'require("custom.wsap.main")'


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a TES3MP server."""
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    scripts = tmp_path / "tes3mp" / "server" / "scripts"
    (scripts / "custom").mkdir(parents=True)
    (scripts / "serverCore.lua").touch()
    (scripts / "customScripts.lua").write_bytes(
        b'-- own scripts\r\n-- require("custom.wsap.main")\r\nrequire("custom/own")'
    )
    return tmp_path / "tes3mp"


def run(*arguments: Any) -> str:
    result = CliRunner().invoke(install, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_script_comes_with_its_token_and_one_line_however_often(server: Path, tmp_path: Path) -> None:
    listed = server / "server" / "scripts" / "customScripts.lua"
    target = server / "server" / "scripts" / "custom" / "wsap"
    assert "now loads it" in run(server)
    assert listed.read_bytes().endswith(f'require("custom/own")\r\n{LINE}\r\n'.encode())
    token = (tmp_path / "home" / "tes3mp" / "script.token").read_text().strip()
    settings = target / "settings.lua"
    assert f'token = "{token}"' in settings.read_text()
    if os.name == "posix":
        assert settings.stat().st_mode & 0o077 == 0
    settings.write_text(settings.read_text().replace("8766", "9000").replace(token, "an older one"))
    (target / "main.lua").write_text("of an older version")
    content = listed.read_bytes()
    assert "already loads it" in run(server / "server")
    assert listed.read_bytes() == content
    assert "9000" in settings.read_text()
    assert f'token = "{token}"' in settings.read_text()
    assert "WsapTick" in (target / "main.lua").read_text()


def test_what_was_installed_loads_and_its_token_is_the_bridge_s(server: Path, tmp_path: Path) -> None:
    run(server)
    scripts = server / "server" / "scripts"
    lua = LuaServer(folder=scripts, module="custom.wsap.main")
    assert any("listens by" in line or "not started" in line for line in lua.log)
    lua.event("OnServerExit")
    open_engine(tmp_path / "home" / "tes3mp" / "script.token")


def test_it_goes_as_it_came(server: Path) -> None:
    scripts = server / "server" / "scripts"
    run(server)
    (scripts / "custom" / "wsap" / "of_the_owner.txt").touch()
    run(server, "--remove")
    assert [path.name for path in (scripts / "custom" / "wsap").iterdir()] == ["of_the_owner.txt"]
    assert (scripts / "customScripts.lua").read_bytes().endswith(b'require("custom/own")\r\n')
    assert b'-- require("custom.wsap.main")' in (scripts / "customScripts.lua").read_bytes()
    run(server, "--remove")


def test_the_list_of_scripts_can_be_left_alone(server: Path) -> None:
    listed = server / "server" / "scripts" / "customScripts.lua"
    before = listed.read_bytes()
    assert LINE in run(server, "--print-line")
    assert listed.read_bytes() == before
    refused = CliRunner().invoke(install, [str(server), "--remove", "--print-line"])
    assert "--print-line has no effect with --remove" in str(refused.exception)


def test_what_is_no_server_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    result = CliRunner().invoke(install, [str(tmp_path)])
    assert isinstance(result.exception, ConfigError)
    assert "is not a TES3MP 0.8 server" in str(result.exception)
    assert not list((tmp_path / "scripts").iterdir())


def test_settings_without_a_token_line_are_refused(server: Path) -> None:
    run(server)
    (server / "server" / "scripts" / "custom" / "wsap" / "settings.lua").write_text("return {}")
    result = CliRunner().invoke(install, [str(server)])
    assert "has no line token" in str(result.exception)


posix = pytest.mark.skipif(os.name != "posix", reason="Windows has other owners and modes")


@posix
def test_links_and_modes_stay_and_the_token_is_for_owner_and_group_alone(server: Path, tmp_path: Path) -> None:
    listed = server / "server" / "scripts" / "customScripts.lua"
    kept = tmp_path / "kept.lua"
    listed.rename(kept)
    kept.chmod(0o640)
    listed.symlink_to(kept)
    run(server)
    assert listed.is_symlink()
    assert LINE in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o640
    settings = server / "server" / "scripts" / "custom" / "wsap" / "settings.lua"
    for mode, then in ((0o640, 0o640), (0o664, 0o660)):
        settings.chmod(mode)
        run(server)
        assert settings.stat().st_mode & 0o777 == then
    run(server, "--remove")
    assert listed.is_symlink()
    assert LINE not in kept.read_text().splitlines()
    assert kept.stat().st_mode & 0o777 == 0o640


def outside(tmp_path: Path) -> Path:
    """A file that is none of the server's."""
    victim = tmp_path / "elsewhere" / "settings"
    victim.parent.mkdir()
    victim.write_bytes(b'token = "of another program"\n')
    victim.chmod(0o600)
    return victim


@posix
@pytest.mark.parametrize("words", [(), ("--remove",)])
@pytest.mark.parametrize("planted", ["main.lua", "settings.lua", ".settings.lua.new", ".main.lua.new", "."])
def test_nothing_is_written_through_a_link_that_leaves_the_folder(
    server: Path, tmp_path: Path, planted: str, words: tuple[str, ...]
) -> None:
    target, victim = server / "server" / "scripts" / "custom" / "wsap", outside(tmp_path)
    before, mode = victim.read_bytes(), victim.stat().st_mode
    if planted == ".":
        target.symlink_to(victim.parent, target_is_directory=True)
    else:
        target.mkdir()
        (target / planted).symlink_to(victim)
    result = CliRunner().invoke(install, [str(server), *words])
    assert (victim.read_bytes(), victim.stat().st_mode) == (before, mode)
    assert [path.name for path in victim.parent.iterdir()] == [victim.name]
    if not words and not planted.endswith(".new"):
        assert isinstance(result.exception, ConfigError), result.output
        assert f"{target / planted} is a link to {victim.parent if planted == '.' else victim}" in str(result.exception)


@posix
def test_links_within_the_folder_stay(server: Path) -> None:
    scripts = server / "server" / "scripts"
    (server / "ours").mkdir()
    (scripts / "custom" / "wsap").symlink_to("../../../ours", target_is_directory=True)
    run(server)
    assert (server / "ours" / "main.lua").is_file()
    run(server, "--remove")
    assert (scripts / "custom" / "wsap").is_symlink()
    assert not list((server / "ours").iterdir())


@posix
def test_the_list_of_scripts_may_be_a_link_to_elsewhere_only_if_its_owner_made_it(server: Path, tmp_path: Path) -> None:
    listed = server / "server" / "scripts" / "customScripts.lua"
    victim = outside(tmp_path)
    before = victim.read_bytes()
    listed.unlink()
    listed.symlink_to(victim)
    if os.geteuid() == 0:
        os.chown(server / "server" / "scripts", 65534, 65534)
        os.chown(listed, 65534, 65534, follow_symlinks=False)
        result = CliRunner().invoke(install, [str(server)])
        assert "is a link to" in str(result.exception)
        assert victim.read_bytes() == before
        os.chown(victim, 65534, 65534)
    run(server)
    assert LINE in victim.read_text()
    assert listed.is_symlink()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_everything_belongs_to_the_user_of_the_server(server: Path) -> None:
    scripts = server / "server" / "scripts"
    for path in (scripts / "customScripts.lua", scripts / "custom"):
        os.chown(path, 65534, 65534)
    (scripts / "customScripts.lua").chmod(0o600)
    run(server)
    found = [scripts / "customScripts.lua", scripts / "custom" / "wsap", *(scripts / "custom" / "wsap").iterdir()]
    assert {(path.stat().st_uid, path.stat().st_gid) for path in found} == {(65534, 65534)}
    assert (scripts / "customScripts.lua").stat().st_mode & 0o777 == 0o600


@contextmanager
def as_a_plain_user() -> Iterator[None]:
    """Give up root's permission to write everything for a while (capabilities(7): CAP_DAC_OVERRIDE, number 1)."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3 of the call, for this thread and those it starts
    held = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, of the numbers 0 to 31 and of 32 to 63
    assert libc.capget(header, held) == 0
    fewer = (ctypes.c_uint32 * 6)(*held)
    fewer[0] &= ~(1 << 1)
    assert libc.capset(header, fewer) == 0
    try:
        yield
    finally:
        assert libc.capset(header, held) == 0


@posix
@pytest.mark.parametrize("folder", ["server/scripts", "server/scripts/custom", "server/scripts/custom/wsap"])
@pytest.mark.parametrize("words", [(), ("--remove",)])
def test_what_may_not_be_written_is_named(server: Path, folder: str, words: tuple[str, ...]) -> None:
    if words or folder.endswith("wsap"):
        run(server)
    if folder.endswith("custom") and words:
        folder += "/wsap"
    if folder.endswith("scripts"):
        (server / folder / "customScripts.lua").write_text("-- own scripts\n" + (LINE + "\n" if words else ""))
    (server / folder).chmod(0o555)
    with as_a_plain_user():
        result = CliRunner().invoke(install, [str(server), *words])
    (server / folder).chmod(0o755)
    assert isinstance(result.exception, ConfigError), result.output
    assert str(server / folder) in str(result.exception)
    assert "can't be written (Permission denied); run this as the user that the server runs as." in str(
        result.exception
    )


def test_an_engine_needs_a_token_and_an_address(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="wsap tes3mp install"):
        open_engine(tmp_path / "script.token")
    (tmp_path / "script.token").write_text("0123456789")
    for address in ("8766", "localhost:", "localhost:99999", ":8766", str(tmp_path / "no" / "mailbox")):
        with pytest.raises(ConfigError):
            open_engine(tmp_path / "script.token", address=address)
    open_engine(tmp_path / "script.token", address=str(tmp_path))
    (tmp_path / "script.token").write_text("short")
    with pytest.raises(ConfigError, match="contains no token"):
        open_engine(tmp_path / "script.token")

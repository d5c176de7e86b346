"""The cached catalogue: never wrong because something changed, never in the way."""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs
import pytest

import wsap_core.host
from wsap_core import PluginHost
from wsap_core.cli.cache import Catalogue
from wsap_core.paths import cache_dir

Install = Callable[..., Path]

PLUGIN = """
from wsap_core.hookspecs import hookimpl
from wsap_core.specs import AgentSpec

@hookimpl
def wsap_agents():
    return [AgentSpec("bold", {summary!r}, "bold:Bold")]
"""


class Asked(Exception):
    """The plugins were asked, though there was no need."""


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, install: Install, own_environment: dict[str, str]) -> Path:
    """The file of a catalogue that was just made, with one plugin of this test's own."""
    # A plugin that is compiled as it is asked changes its folder, and would be asked once more.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name = f"wsap_bold_{tmp_path.name}"  # modules stay loaded, so each test has its own
    install(name, PLUGIN.format(summary="Strides on."), plugin="bold")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    monkeypatch.setenv("WSAP_HOME", own_environment["WSAP_HOME"])
    monkeypatch.setenv("WSAP_DISABLE_PLUGINS", "nexus,crafter")
    assert "bold" in agents(Catalogue.current())
    (path,) = (tmp_path / "home" / "cache").iterdir()
    return path


@pytest.fixture
def nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it to have every question to the plugins raise `Asked`."""

    def refuse(*args: Any, **named: Any) -> PluginHost:
        raise Asked

    return lambda: monkeypatch.setattr(wsap_core.host.PluginHost, "discovered", refuse)


def agents(catalogue: Catalogue) -> dict[str, str]:
    return {entry["name"]: entry["summary"] for entry in catalogue.agents}


def as_data(catalogue: Catalogue) -> dict[str, Any]:
    return {kind: list(getattr(catalogue, kind)) for kind in Catalogue.__slots__}


def test_what_is_kept_is_what_the_plugins_say(kept: Path, nobody_is_asked: Callable[[], None]) -> None:
    asked = as_data(Catalogue.of(PluginHost.discovered()))
    nobody_is_asked()
    assert as_data(Catalogue.current()) == asked


def test_asking_again_can_be_forced(kept: Path, nobody_is_asked: Callable[[], None]) -> None:
    nobody_is_asked()
    with pytest.raises(Asked):
        Catalogue.current(refresh=True)


def touch(path: Path) -> None:
    path.write_text(path.read_text() + "\n# edited")


CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], Any]] = {
    "a plugin's module is edited": lambda site, patch: touch(next(site.glob("wsap_bold_*.py"))),
    "a plugin's module is gone": lambda site, patch: next(site.glob("wsap_bold_*.py")).unlink(),
    "something is installed": lambda site, patch: (site / "other-1.0.dist-info").mkdir(),
    "the path changes": lambda site, patch: patch.setattr(sys, "path", [*sys.path, str(site / "more")]),
    "a plugin is blocked": lambda site, patch: patch.setenv("WSAP_DISABLE_PLUGINS", "bold"),
    "the kernel is another": lambda site, patch: patch.setattr(wsap_core, "__version__", "99.0"),
    "Python is another": lambda site, patch: patch.setattr(sys, "version", "4.0"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_plugins_are_asked_again_when(
    change: Callable[[Path, pytest.MonkeyPatch], Any],
    kept: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    nobody_is_asked: Callable[[], None],
) -> None:
    nobody_is_asked()
    Catalogue.current()
    change(tmp_path / "site", monkeypatch)
    with pytest.raises(Asked):
        Catalogue.current()


def another_format(path: Path) -> str:
    """The file as a later version would have written it, checksum and all."""
    data = json.loads(path.read_text().partition("\n")[2])
    data["setting"]["format"] = 0
    text = json.dumps(data)
    return f"{zlib.crc32(text.encode()):08x}\n{text}"


DAMAGE: dict[str, Callable[[Path], str]] = {
    "empty": lambda path: "",
    "cut short": lambda path: path.read_text()[:-10],
    "not JSON": lambda path: "catalogue",
    "nested for ever": lambda path: "[" * 100_000,
    "one letter is another": lambda path: path.read_text().replace("Strides on.", "Strides in."),
    "another format": another_format,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_is_made_again(
    damage: Callable[[Path], str], kept: Path, nobody_is_asked: Callable[[], None]
) -> None:
    good = as_data(Catalogue.current())
    kept.write_text(damage(kept))
    assert as_data(Catalogue.current()) == good
    nobody_is_asked()
    assert as_data(Catalogue.current()) == good


def test_a_file_that_others_can_write_is_not_believed(kept: Path, nobody_is_asked: Callable[[], None]) -> None:
    kept.chmod(0o666)
    nobody_is_asked()
    with pytest.raises(Asked):
        Catalogue.current()


def test_the_file_is_for_its_owner_alone(kept: Path) -> None:
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_broken_plugin_is_not_remembered_so_that_mending_it_shows(
    kept: Path, tmp_path: Path, install: Install
) -> None:
    name = f"wsap_broken_{tmp_path.name}"
    path = install(name, "import nothing_of_that_name", plugin="timid")
    status = {row["name"]: row["status"] for row in Catalogue.current().plugins}
    assert status["timid"] == "broken"
    path.write_text("")  # the folder does not change, and the file was never loaded
    status = {row["name"]: row["status"] for row in Catalogue.current().plugins}
    assert status["timid"] == "ok"


def test_where_nothing_can_be_written_all_goes_on_without(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "file"))
    assert "bold" in agents(Catalogue.current())
    assert "bold" in agents(Catalogue.current())


def test_only_so_many_files_are_kept(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(25):
        (kept.parent / f"catalogue-{number:08x}.json").write_text("{}")
        os.utime(kept.parent / f"catalogue-{number:08x}.json", ns=(number, number))
    (kept.parent / "somebody-elses.json").write_text("{}")
    Catalogue.current(refresh=True)
    names = sorted(path.name for path in kept.parent.iterdir())
    assert len(names) == 21
    assert kept.name in names
    assert "somebody-elses.json" in names
    assert "catalogue-00000000.json" not in names


def test_the_cache_lies_where_platformdirs_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WSAP_HOME", raising=False)
    for value in (str(tmp_path), "", "relative/folder", None):
        if value is None:
            monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        else:
            monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert cache_dir() == platformdirs.user_cache_dir("wsap", appauthor=False)
    monkeypatch.setenv("WSAP_HOME", str(tmp_path))
    assert cache_dir() == str(tmp_path / "cache")

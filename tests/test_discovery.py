"""Which plugins are installed."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from wsap_core.discovery import GROUP, find_plugins
from wsap_core.host import PluginHost

Put = Callable[..., Path]
OnPath = Callable[..., list[tuple[str, str, str, str]]]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Write a distribution's metadata into a folder of this test's and return the folder."""

    def put(
        name: str,
        entry_points: str | None,
        *,
        folder: str = "site",
        version: str = "1.0",
        file: str = "",
        metadata: str = "",
    ) -> Path:
        site = tmp_path / folder
        information = site / (file or f"{name.replace('-', '_')}-{version}.dist-info")
        information.mkdir(parents=True)
        kind = "METADATA" if information.suffix == ".dist-info" else "PKG-INFO"
        text = metadata or f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: not this\n"
        (information / kind).write_text(text, encoding="utf-8")
        if entry_points is not None:
            (information / "entry_points.txt").write_text(entry_points, encoding="utf-8")
        return site

    return put


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> OnPath:
    """Return the plugins that are found where the path holds just these folders."""

    def found(*path: Path) -> list[tuple[str, str, str, str]]:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "path", [str(p) for p in path])
            return [(p.name, p.module, p.distribution, p.version) for p in find_plugins()]

    return found


def test_this_environment_has_the_plugins_that_importlib_metadata_says() -> None:
    found = [(p.name, p.module, p.distribution) for p in find_plugins()]
    points = importlib.metadata.entry_points(group=GROUP)
    assert found == sorted((p.name, p.module, p.dist.metadata["Name"]) for p in points if p.dist)
    assert "wsap_crafter.plugin" in [module for _, module, _ in found]


def test_an_earlier_folder_hides_the_same_package_further_on(put: Put, on_path: OnPath) -> None:
    first = put("wsap-mine", "[wsap]\nnew = mine.new\n", folder="first", version="2.0")
    second = put("Wsap.Mine", "[wsap]\nold = mine.old\n", folder="second", file="Wsap.Mine-1.0.dist-info")
    put("other", "[wsap]\nother = other\n", folder="second")
    assert [name for name, *_ in on_path(first, second)] == ["new", "other"]
    assert [name for name, *_ in on_path(second, first)] == ["old", "other"]


def test_a_package_that_no_longer_has_plugins_hides_an_older_one_that_has(put: Put, on_path: OnPath) -> None:
    first = put("wsap-mine", None, folder="first", version="2.0")
    second = put("wsap-mine", "[wsap]\nold = mine.old\n", folder="second")
    assert on_path(first, second) == []


def test_a_zip_file_on_the_path_is_looked_into(put: Put, tmp_path: Path, on_path: OnPath) -> None:
    site = put("wsap-zipped", "[wsap]\nzipped = zipped\n")
    archive = tmp_path / "packages.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(site.rglob("*")):
            if path.is_file():
                file.write(path, path.relative_to(site))
    assert on_path(archive) == [("zipped", "zipped", "wsap-zipped", "1.0")]


def test_an_egg_is_looked_into(tmp_path: Path, on_path: OnPath) -> None:
    egg = tmp_path / "mine-1.0-py3.11.egg"
    (egg / "EGG-INFO").mkdir(parents=True)
    (egg / "EGG-INFO" / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: mine\nVersion: 1.0\n")
    (egg / "EGG-INFO" / "entry_points.txt").write_text("[wsap]\nmine = mine\n")
    assert on_path(egg) == [("mine", "mine", "mine", "1.0")]


def test_an_editable_install_is_found_like_any_other(put: Put, tmp_path: Path, on_path: OnPath) -> None:
    site = put("wsap-mine", "[wsap]\nmine = mine.plugin\n")
    (site / "__editable__.wsap_mine.pth").write_text(str(tmp_path / "checkout"))
    assert on_path(site) == [("mine", "mine.plugin", "wsap-mine", "1.0")]


def wanting(put: Put, requirement: str) -> Path:
    metadata = f"Metadata-Version: 2.1\nName: wsap-mine\nVersion: 1.0\nRequires-Dist: {requirement}\n"
    return put("wsap-mine", "[wsap]\nmine = mine.plugin\n", metadata=metadata)


@pytest.mark.parametrize(
    ("requirement", "fits"),
    [
        ("wsap-core~=0.1.0", True),
        ("wsap-core (>=0.1,<0.2)", True),
        ("wsap_core>=0.0.3", True),
        ("wsap-core", True),
        ("wsap-core-extras~=7.0", True),
        ("wsap-core[testing]~=0.1; extra == 'x'", True),
        ("wsap-core~=0.9.0", False),
        ("wsap-core==2.1", False),
        ("WSAP.Core (>=1.0)", False),
    ],
)
def test_a_plugin_for_another_major_version_of_the_kernel_is_named_and_not_imported(
    requirement: str, fits: bool, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wsap_core.__version__", "0.1.0")
    monkeypatch.setattr(sys, "path", [str(wanting(put, requirement))])
    (found,) = find_plugins()
    assert (found.problem == "") == fits
    if not fits:
        row = PluginHost(environ={}).load(found)
        assert row.status == "broken"
        assert row.reasons[0].startswith("wsap-mine is for wsap-core ")
        assert row.reasons[0].endswith(", and this is 0.1.0; install matching versions of both.")


def test_an_empty_metadata_folder_is_named(put: Put, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put("wsap-other", "[wsap]\nother = other\n")
    empty = tmp_path / "site" / "wsap_mine-1.0.dist-info"
    empty.mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    mine, other = find_plugins()
    assert (mine.name, mine.distribution, mine.version, other.problem) == ("mine", "wsap-mine", "1.0", "")
    assert mine.problem == f"Its metadata folder {empty} is empty; remove the folder, or install the package again."


@pytest.mark.parametrize("command", [["plugins"], ["games"], ["play", "echo", "--steps", "2", "--no-record"]])
def test_a_plugin_that_ends_the_process_on_import_ends_no_command(command: list[str], put: Put, tmp_path: Path) -> None:
    site = put("wsap-gone", "[wsap]\ngone = gone_plugin\n")
    (site / "gone_plugin.py").write_text("import sys\nsys.exit(3)\n", encoding="utf-8")
    own = {"PYTHONPATH": str(site), "XDG_CACHE_HOME": str(tmp_path / "cache"), "WSAP_HOME": str(tmp_path / "home")}
    wsap = [sys.executable, "-m", "wsap_core", *command]
    done = subprocess.run(wsap, env={**os.environ, **own}, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    if command == ["plugins"]:
        assert "gone_plugin can't be imported: SystemExit: 3" in done.stdout


@pytest.mark.parametrize("command", [["plugins"], ["games", "--refresh"], ["agents", "--refresh"]])
def test_what_a_plugin_prints_on_import_is_in_no_json(command: list[str], put: Put, tmp_path: Path) -> None:
    site = put("wsap-loud", "[wsap]\nloud = loud_plugin\n")
    (site / "loud_plugin.py").write_text("print('hello')\n", encoding="utf-8")
    own = {"PYTHONPATH": str(site), "XDG_CACHE_HOME": str(tmp_path / "cache"), "WSAP_HOME": str(tmp_path / "home")}
    wsap = [sys.executable, "-m", "wsap_core", *command, "--json"]
    done = subprocess.run(wsap, env={**os.environ, **own}, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert json.loads(done.stdout)
    assert "hello" in done.stderr

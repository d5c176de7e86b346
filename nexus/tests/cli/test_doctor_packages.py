"""`wsap doctor` and packages named wsap-something: our own have one version, those of others have their own."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from wsap_nexus.cli.doctor import doctor

OURS = metadata.metadata("wsap-core")["Author"]


def install(site: Path, name: str, version: str, author: str, requires: str = "wsap-core>=0.1") -> None:
    information = site / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Author: {author}"]
    (information / "METADATA").write_text("\n".join([*lines, f"Requires-Dist: {requires}", ""]))
    (information / "entry_points.txt").write_text("[wsap]\nhanabi = wsap_hanabi\n")
    (site / "wsap_hanabi.py").write_text("")


def examined(tmp_path: Path) -> dict[str, dict[str, str]]:
    told = CliRunner().invoke(doctor, ["--no-model", "--json", "--database", str(tmp_path / "runs.db")])
    found = json.loads(told.stdout)
    assert found["ready"] == (told.exit_code == 0)
    return {row["check"]: row for row in found["checks"]}


def test_a_package_of_others_may_have_its_own_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site", "wsap-hanabi", "7.3", "Somebody Else")
    monkeypatch.syspath_prepend(tmp_path / "site")
    found = examined(tmp_path)
    assert found["packages"]["status"] == "ok"
    assert "wsap-hanabi 7.3" in found["packages"]["detail"]
    assert found["plugin hanabi"]["status"] != "problem"


def test_a_package_of_others_is_told_apart_by_what_it_requires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site", "wsap-hanabi", "7.3", "Somebody Else", requires="wsap-core~=9.0")
    monkeypatch.syspath_prepend(tmp_path / "site")
    found = examined(tmp_path)
    assert found["packages"]["status"] == "ok"
    assert found["plugin hanabi"]["status"] == "problem"
    assert "wsap-hanabi is for wsap-core ~=9.0" in found["plugin hanabi"]["detail"]


def test_our_own_packages_of_two_versions_are_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site", "wsap-hanabi", "7.3", OURS)
    monkeypatch.syspath_prepend(tmp_path / "site")
    packages = examined(tmp_path)["packages"]
    assert packages["status"] == "problem"
    assert packages["hint"] == "Versions of WSAP's own packages differ; install the same of each."

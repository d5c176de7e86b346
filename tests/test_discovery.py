"""Which plugins are installed: `importlib.metadata` is the reference."""

from __future__ import annotations

import importlib.metadata
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from wsap_core.discovery import GROUP, FoundPlugin, find_plugins, parse_group

Put = Callable[..., Path]


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


def reference(*path: Path) -> list[tuple[str, str, str, str]]:
    """What `importlib.metadata` finds, hiding what an earlier distribution of the same name hides."""
    seen = set()
    found = []
    for distribution in importlib.metadata.distributions(path=[str(p) for p in path]):
        key = importlib.metadata.Prepared.normalize(distribution.metadata["Name"])
        if key in seen:
            continue
        seen.add(key)
        origin = (distribution.metadata["Name"], distribution.version)
        found += [(point.name, point.module, *origin) for point in distribution.entry_points.select(group=GROUP)]
    return sorted(found, key=lambda f: (f[0], f[2]))


def ours(*path: Path) -> list[tuple[str, str, str, str]]:
    return [(p.name, p.module, p.distribution, p.version) for p in find_plugins(str(p) for p in path)]


def test_this_environment_has_the_plugins_that_importlib_metadata_says() -> None:
    found = [(p.name, p.module, p.distribution) for p in find_plugins()]
    points = importlib.metadata.entry_points(group=GROUP)
    assert found == sorted((p.name, p.module, p.dist.metadata["Name"]) for p in points if p.dist)
    assert "wsap_crafter.plugin" in [module for _, module, _ in found]


ENTRY_POINTS = {
    "plain": "[wsap]\nmine = mine.plugin\n",
    "several": "[wsap]\nb = mine.b\na = mine.a\n",
    "among others": "[console_scripts]\nmine = mine.cli:main\n\n[wsap]\nmine = mine.plugin\n\n[other]\nx = y\n",
    "spaces": "[wsap]\n   mine=mine.plugin   \n\n  # a = comment\n",
    "attribute and extras": "[wsap]\nmine = mine.plugin:thing [extra,more]\n",
    "names with dots and dashes": "[wsap]\nmy-own.plugin = mine\n",
    "not ours": "[wsapx]\nmine = mine.plugin\n",
    "ours in a comment": "# [wsap]\n[other]\nmine = mine.plugin\n",
    "empty": "",
    "windows": "[wsap]\r\nmine = mine.plugin\r\n",
}


@pytest.mark.parametrize("text", ENTRY_POINTS.values(), ids=ENTRY_POINTS.keys())
def test_entry_points_are_read_as_importlib_metadata_reads_them(text: str, put: Put) -> None:
    site = put("mine", text)
    assert ours(site) == reference(site)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("wsap-mine", ""),
        ("Wsap.Mine", "Wsap.Mine-1.0.dist-info"),
        ("wsap_mine", "wsap_mine-1.0.egg-info"),
        ("wsap_mine", "wsap_mine-1.0-py3.11.egg-info"),
        ("wsap_mine", "wsap_mine.egg-info"),
        ("wsap_mine", "wsap_mine-1.0.DIST-INFO"),
    ],
)
def test_a_distribution_keeps_its_own_name_and_version(name: str, file: str, put: Put) -> None:
    site = put(name, "[wsap]\nmine = mine\n", file=file)
    if file.endswith("DIST-INFO"):
        (site / file / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    assert ours(site) == reference(site) == [("mine", "mine", name, "1.0")]


def test_an_earlier_folder_hides_the_same_package_further_on(put: Put) -> None:
    first = put("wsap-mine", "[wsap]\nnew = mine.new\n", folder="first", version="2.0")
    second = put("Wsap.Mine", "[wsap]\nold = mine.old\n", folder="second", file="Wsap.Mine-1.0.dist-info")
    put("other", "[wsap]\nother = other\n", folder="second")
    assert ours(first, second) == reference(first, second)
    assert [name for name, *_ in ours(first, second)] == ["new", "other"]
    assert ours(second, first) == reference(second, first)


def test_a_package_that_no_longer_has_plugins_hides_an_older_one_that_has(put: Put) -> None:
    first = put("wsap-mine", None, folder="first", version="2.0")
    second = put("wsap-mine", "[wsap]\nold = mine.old\n", folder="second")
    assert ours(first, second) == reference(first, second) == []


def test_a_zip_file_on_the_path_is_looked_into(put: Put, tmp_path: Path) -> None:
    site = put("wsap-zipped", "[wsap]\nzipped = zipped\n")
    archive = tmp_path / "packages.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(site.rglob("*")):
            if path.is_file():
                file.write(path, path.relative_to(site))
    assert ours(archive) == reference(archive) == [("zipped", "zipped", "wsap-zipped", "1.0")]


def test_an_egg_is_looked_into(tmp_path: Path) -> None:
    egg = tmp_path / "mine-1.0-py3.11.egg"
    (egg / "EGG-INFO").mkdir(parents=True)
    (egg / "EGG-INFO" / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: mine\nVersion: 1.0\n")
    (egg / "EGG-INFO" / "entry_points.txt").write_text("[wsap]\nmine = mine\n")
    assert ours(egg) == reference(egg) == [("mine", "mine", "mine", "1.0")]


def test_an_editable_install_is_found_like_any_other(put: Put, tmp_path: Path) -> None:
    site = put("wsap-mine", "[wsap]\nmine = mine.plugin\n")
    (site / "__editable__.wsap_mine.pth").write_text(str(tmp_path / "checkout"))
    assert find_plugins([str(site)]) == [
        FoundPlugin(
            "mine", "mine.plugin", "wsap-mine", "1.0", str(site / "wsap_mine-1.0.dist-info" / "entry_points.txt")
        )
    ]


def test_what_can_not_be_read_is_passed_over(put: Put, tmp_path: Path) -> None:
    site = put("wsap-mine", "[wsap]\nmine = mine\n")
    broken = put("wsap-broken", None)
    (broken / "wsap_broken-1.0.dist-info" / "entry_points.txt").write_bytes(b"[wsap]\n\xff = \xfe\n")
    (tmp_path / "text.zip").write_text("not a zip file")
    missing = tmp_path / "missing"
    assert [name for name, *_ in ours(missing, tmp_path / "text.zip", site)] == ["mine"]


def test_an_entry_without_metadata_is_named_by_its_folder(put: Put) -> None:
    site = put("wsap-mine", "[wsap]\nmine = mine\n")
    (site / "wsap_mine-1.0.dist-info" / "METADATA").unlink()
    assert ours(site) == [("mine", "mine", "wsap_mine", "1.0")]


def test_a_group_is_read_from_its_heading_to_the_next() -> None:
    text = "[a]\nx = one\n[b]\nx = two\n[a]\ny = three\n"
    assert parse_group(text, "a") == [("x", "one"), ("y", "three")]
    assert parse_group(text, "c") == []

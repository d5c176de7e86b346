"""The distributions belong together: one version, compatible siblings, nothing said in two ways."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import importlib.util
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PLUGINS = sorted(ROOT.glob("plugins/*/pyproject.toml"))
PARTS = {
    "wsap-check": {"wsap-core"},
    "wsap-llm": {"wsap-core"},
    "wsap-matrix": {"wsap-core"},
    "wsap-ollama": {"wsap-core", "wsap-llm"},
    "wsap-outlines": {"wsap-core", "wsap-llm"},
}
"""Plugins that the runtime brings, and model backends -> the siblings that they need; the runtime is none of them."""
WORLDS = [path for path in PLUGINS if path.parent.name not in PARTS]
"""Plugins that bring a game, and with it the runtime."""
PROJECTS = [ROOT / "pyproject.toml", ROOT / "nexus" / "pyproject.toml", *PLUGINS]
TESTS = [file for path in PROJECTS for file in (path.parent / "tests").rglob("*.py")]


def load(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def group(data: dict[str, Any], name: str) -> Iterator[str]:
    """The requirements of a dependency group, its included groups' among them."""
    for item in data["dependency-groups"][name]:
        if isinstance(item, str):
            yield item
        else:
            yield from group(data, item["include-group"])


def imports_of(file: Path) -> Iterator[str]:
    """The top-level packages that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def tool(name: str) -> ModuleType:
    """The script `tools/NAME.py` as a module."""
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_distributions_have_one_version() -> None:
    assert len({load(path)["project"]["version"] for path in PROJECTS}) == 1


def test_a_version_stated_in_code_is_that_of_its_distribution() -> None:
    files = tool("bump").package_files(ROOT)
    assert ROOT / "wsap_core" / "__init__.py" in files
    for path in files:
        assert importlib.import_module(path.parent.name).__version__ == load(PROJECTS[0])["project"]["version"]


def test_the_changelog_is_one_for_all_distributions() -> None:
    assert [path for path in PROJECTS if (path.parent / "CHANGELOG.md").exists()] == [ROOT / "pyproject.toml"]


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_siblings_are_required_as_compatible_with_this_version(path: Path) -> None:
    names = {load(project)["project"]["name"] for project in PROJECTS}
    data = load(path)["project"]
    optional = [item for items in data.get("optional-dependencies", {}).values() for item in items]
    for item in map(Requirement, [*data["dependencies"], *optional]):
        if item.name in names:
            assert str(item.specifier) == f"~={data['version']}", f"{path}: {item}"


def test_the_kernel_requires_nothing_heavy() -> None:
    needed = {Requirement(item).name for item in load(ROOT / "pyproject.toml")["project"]["dependencies"]}
    assert needed == {"click", "platformdirs", "pluggy", "pydantic"}


@pytest.mark.parametrize("path", WORLDS, ids=lambda path: path.parent.name)
def test_installing_a_world_brings_the_runtime(path: Path) -> None:
    needed = {Requirement(item).name for item in load(path)["project"]["dependencies"]}
    assert {"wsap-core", "wsap-nexus"} <= needed


@pytest.mark.parametrize(("name", "siblings"), PARTS.items())
def test_a_part_of_the_runtime_or_a_backend_does_not_require_the_runtime(name: str, siblings: set[str]) -> None:
    needed = {
        Requirement(item).name for item in load(ROOT / "plugins" / name / "pyproject.toml")["project"]["dependencies"]
    }
    assert needed & {load(project)["project"]["name"] for project in PROJECTS} == siblings


def test_installing_the_runtime_brings_the_models_agent_and_the_conformance_suite() -> None:
    needed = {Requirement(item).name for item in load(ROOT / "nexus" / "pyproject.toml")["project"]["dependencies"]}
    assert {"wsap-core", "wsap-llm", "wsap-check"} <= needed


def test_what_authors_install_for_testing_is_the_conformance_suite_and_pytest() -> None:
    extra = load(ROOT / "pyproject.toml")["project"]["optional-dependencies"]["testing"]
    assert {Requirement(item).name for item in extra} == {"pytest", "wsap-check"}


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_every_distribution_carries_the_licence_and_says_who_it_is_for(path: Path) -> None:
    data = load(path)["project"]
    assert (path.parent / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (path.parent / data["readme"]).stat().st_size > 0
    assert data["requires-python"] == ">=3.11"


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_what_is_installed_is_what_the_files_say(path: Path) -> None:
    data = load(path)["project"]
    installed = importlib.metadata.distribution(data["name"])
    assert Version(installed.version) == Version(data["version"])
    declared = {(name, value) for name, value in data.get("entry-points", {}).get("wsap", {}).items()}
    assert {(entry.name, entry.value) for entry in installed.entry_points.select(group="wsap")} == declared


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
@pytest.mark.slow
def test_a_package_declares_every_library_it_imports(path: Path) -> None:
    """Nothing is left to what another library happens to bring; pydantic's core is part of pydantic."""
    data = load(path)["project"]
    optional = [item for items in data.get("optional-dependencies", {}).values() for item in items]
    declared = {canonicalize_name(Requirement(item).name) for item in [*data["dependencies"], *optional]}
    declared |= {canonicalize_name(data["name"])} | (
        {"pydantic-core", "typing-extensions"} if "pydantic" in declared else set()
    )
    homes = importlib.metadata.packages_distributions()
    package = path.parent / data["name"].replace("-", "_")
    imported = {name for file in package.rglob("*.py") for name in imports_of(file)} - sys.stdlib_module_names
    known = {name: set(map(canonicalize_name, homes.get(name, [name]))) for name in imported}
    assert not {name for name, distributions in known.items() if not declared & distributions}


def brought(requirements: Iterable[str]) -> set[str]:
    """The distributions that requirements install, with all that these require, as far as those are installed here."""
    found: set[str] = set()
    left = [Requirement(item) for item in requirements]
    while left:
        wanted = left.pop()
        marks = [{"extra": extra} for extra in ("", *wanted.extras)]
        name = canonicalize_name(wanted.name)
        if {name, *(f"{name}[{extra}]" for extra in wanted.extras)} <= found:
            continue
        found |= {name, *(f"{name}[{extra}]" for extra in wanted.extras)}
        try:
            more = importlib.metadata.distribution(name).requires or ()
        except importlib.metadata.PackageNotFoundError:
            continue
        items = map(Requirement, more)
        left += [item for item in items if not item.marker or any(map(item.marker.evaluate, marks))]
    return found


_TEXTS = re.compile(r"(\"{3}|'{3})(?:.|\n)*?\1")


def imported_at_start(file: Path, *, deferred: bool = False) -> set[str]:
    """The top-level packages that a file imports: outside functions or, if `deferred`, anywhere, code in its texts too,
    other than right after `try:`."""
    found, before = set(), ""
    text = file.read_text(encoding="utf-8")
    for line in (text if deferred else _TEXTS.sub('""', text)).splitlines():
        match = re.match(r"( *)(?:from (\w+)[\w.]* import\b|import (\w+))", line)
        if match and (deferred or not match[1]) and before != "try:":
            found.add(match[2] or match[3])
        before = line.strip()
    return found


def sessions() -> Iterator[tuple[str, set[str], set[str]]]:
    """Sessions of nox, with what they install and what is imported in them."""
    root = load(ROOT / "pyproject.toml")
    ours = [load(path)["project"]["name"] for path in PROJECTS]
    models = next(
        ast.literal_eval(node.value)
        for node in ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "MODELS"
    )
    for file in ROOT.glob("benchmarks/*.py"):
        group_of = file.stem if file.stem in root["dependency-groups"] else "bench"
        if file.stem in ("originals", "openspiel_games"):  # parts of bench_papers and bench_openspiel
            continue
        wanted = ["wsap-outlines[smollm2]", "torch", *group(root, "test")] if file.stem in models else []
        imported = imported_at_start(file, deferred=True)
        beside = [file.with_name(f"{name}.py") for name in imported]
        imported |= {name for path in beside if path.exists() for name in imported_at_start(path, deferred=True)}
        yield file.stem, brought([*ours, *wanted, *group(root, group_of)]), imported
    pages = "".join(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/reference/*.md"))
    documented = set(re.findall(r"automodule:: (\S+)", pages))
    found = [Path(spec.origin) for name in documented if (spec := importlib.util.find_spec(name)) and spec.origin]
    found += [*ROOT.glob("docs/*.py"), *ROOT.glob("docs/_ext/*.py")]
    yield "docs", brought([*ours, *group(root, "docs")]), {name for file in found for name in imported_at_start(file)}
    for name, files in (("tests", TESTS), ("regenerate", [*ROOT.glob("tools/write_*.py")])):
        names = {each for file in files for each in imported_at_start(file)}
        yield name, brought([*ours, *group(root, "test")]), names


def test_the_environment_of_a_session_of_nox_has_every_library_that_its_files_import() -> None:
    homes = {**importlib.metadata.packages_distributions(), "pyspiel": ["open-spiel"]}
    own = {file.stem for file in [*TESTS, *ROOT.glob("benchmarks/*.py"), *ROOT.glob("docs/_ext/*.py")]}
    own |= {file.parent.name for file in TESTS if file.name == "__init__.py"}
    missing: dict[str, set[str]] = {}
    for session, there, imported in sessions():
        for name in imported - sys.stdlib_module_names - own:
            if not {canonicalize_name(home) for home in homes.get(name, [name])} & there:
                missing.setdefault(session, set()).add(name)
    assert not missing


def test_plain_pip_and_dependency_groups_name_the_same_tools() -> None:
    lines = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()
    listed = [line for line in lines if line and not line.startswith(("#", "-e"))]
    assert sorted(listed) == sorted({*group(load(ROOT / "pyproject.toml"), "dev")})


def test_plain_pip_installs_every_distribution_of_the_repository() -> None:
    lines = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()
    editable = [line.removeprefix("-e ").split("[")[0] for line in lines if line.startswith("-e ")]
    assert [(ROOT / path).resolve() for path in editable] == [path.parent for path in PROJECTS]


def test_one_line_in_a_clone_installs_what_wsap_requires_and_its_siblings_require() -> None:
    """`wsap` has no code; its siblings have to be named with it, because pip finds them only in the same command."""
    projects = {load(path)["project"]["name"]: path.parent for path in PROJECTS}
    assert not list(projects["wsap"].rglob("*.py"))
    needed, left = set(), ["wsap"]
    while left:
        if (name := left.pop()) in projects and name not in needed:
            needed.add(name)
            left += [
                Requirement(item).name for item in load(projects[name] / "pyproject.toml")["project"]["dependencies"]
            ]
    assert {"wsap-nexus", "wsap-crafter", "wsap-minigrid", "wsap-check", "wsap-eval"} <= needed
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    named = [(ROOT / line).resolve() for line in lines if line and not line.startswith("#")]
    assert sorted(named) == sorted(projects[name] for name in needed)


def test_every_distribution_is_in_the_workspace_the_types_and_the_contracts() -> None:
    root = load(ROOT / "pyproject.toml")["tool"]
    names = {load(path)["project"]["name"] for path in PROJECTS}
    packages = {name.replace("-", "_") for name in names - {"wsap"}}
    assert set(root["uv"]["sources"]) == names
    assert set(root["mypy"]["packages"]) == packages
    assert set(root["importlinter"]["root_packages"]) == packages


def test_bumping_moves_the_version_and_the_siblings_and_nothing_else() -> None:
    bump = tool("bump")
    assert bump.project_files(ROOT) == PROJECTS
    for path in PROJECTS:
        before, after = load(path), tomllib.loads(bump.bumped(path.read_text(encoding="utf-8"), "3.1.4rc1"))
        old = before["project"]["version"]
        assert after["project"]["version"] == "3.1.4rc1"
        after["project"]["version"] = old
        extras = after["project"].get("optional-dependencies", {})
        for items in (after["project"]["dependencies"], *extras.values()):
            items[:] = [re.sub(r"^(wsap-\w+(?:\[\w+\])?)~=3\.1\.4rc1$", rf"\1~={old}", item) for item in items]
        assert after == before


@pytest.mark.parametrize("wrong", [[], ["2"], ["1.0"], ["v1.0.0"], ["1.0.0", "2.0.0"], ["==1.0.0"]])
def test_bumping_refuses_what_is_not_a_version(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert tool("bump").main(wrong) == 2
    assert "0.2.0" in capsys.readouterr().err


def test_the_wheel_check_names_what_is_missing_and_what_does_not_belong(tmp_path: Path) -> None:
    package = tmp_path / "wsap_toy"
    (package / "templates").mkdir(parents=True)
    for name in ("__init__.py", "py.typed", "templates/a.j2"):
        (package / name).write_text("", encoding="utf-8")
    project = tmp_path / "pyproject.toml"
    head = '[project]\nname = "wsap-toy"\nversion = "1.0.0"\n'
    project.write_text(f'{head}[project.entry-points.wsap]\ntoy = "wsap_toy"\n', encoding="utf-8")

    def build(*items: str) -> None:
        with zipfile.ZipFile(tmp_path / "wsap_toy-1.0.0-py3-none-any.whl", "w") as archive:
            for item in (*items, *(f"wsap_toy-1.0.0.dist-info/{name}" for name in info)):
                archive.writestr(item, "")

    faults, info = tool("check_wheels").faults, ["METADATA", "entry_points.txt", "licenses/LICENSE"]
    assert "was not built" in faults(project, tmp_path)[0]
    build("wsap_toy/__init__.py", "wsap_toy/py.typed", "wsap_toy/templates/a.j2")
    assert faults(project, tmp_path) == []
    build("wsap_toy/__init__.py", "wsap_toy/py.typed", "tests/test_a.py")
    found = " ".join(faults(project, tmp_path))
    assert "lacks wsap_toy/templates/a.j2" in found
    assert "contains tests: tests/test_a.py" in found

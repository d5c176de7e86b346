"""`wsap new`: what it makes is installed, checked, typed and tidy; what it can't make it leaves alone."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from warm import run_wsap

from wsap_check.new.command import KINDS as OFFERED
from wsap_check.new.scaffold import KINDS, make, refuse_name
from wsap_core.errors import UsageError


@dataclass(frozen=True)
class Made:
    """A package that was made."""

    kind: str
    name: str
    seats: int = 1

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")


ALL = (
    *(Made(kind, f"made-{kind}") for kind in KINDS),
    Made("game", "duel", seats=2),
    # A class of this name is imported by the game; and the longest name.
    Made("game", "goal"),
    Made("game", "a-name-of-thirty-characters-xx", seats=3),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one package of each kind."""
    parent = tmp_path_factory.mktemp("made")
    for each in ALL:
        make(each.kind, each.name, parent, seats=each.seats)
    return parent


@pytest.fixture(scope="module")
def environment(folder: Path) -> dict[str, str]:
    """The environment of a process for which all of them are installed, editable."""
    site = folder.parent / f"{folder.name}-site"
    for each in ALL:
        project = tomllib.loads((folder / each.name / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        information = site / f"{each.module}-{project['version']}.dist-info"
        information.mkdir(parents=True)
        lines = [f"{key} = {value}" for key, value in project["entry-points"]["wsap"].items()]
        (information / "entry_points.txt").write_text("\n".join(["[wsap]", *lines, ""]), encoding="utf-8")
        head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        (information / "METADATA").write_text(head, encoding="utf-8")
    path = os.pathsep.join([str(site), *(str(folder / each.name) for each in ALL)])
    return {**os.environ, "PYTHONPATH": path, "WSAP_HOME": str(site / "home")}


def run(words: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
    """Run a module of Python in a folder; fail with what it printed if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("made", ALL, ids=lambda made: made.name)
def test_its_own_tests_pass_at_once(made: Made, folder: Path, environment: dict[str, str]) -> None:
    run(("pytest", "-q", "-p", "no:cacheprovider", made.name), folder, environment)


@pytest.mark.slow
def test_the_types_of_all_are_strict(folder: Path, environment: dict[str, str], tmp_path: Path) -> None:
    checked = [str(folder / each.name / part) for each in ALL for part in (each.module, "tests")]
    run(("mypy", "--strict", f"--cache-dir={tmp_path / 'cache'}", *checked), folder, environment)


@pytest.mark.parametrize("made", ALL, ids=lambda made: made.name)
def test_it_is_tidy_by_its_own_rules(made: Made, folder: Path, environment: dict[str, str]) -> None:
    for words in (("check", "--no-cache"), ("format", "--no-cache", "--check", "--diff")):
        run(("ruff", *words, "."), folder / made.name, environment)


@pytest.mark.parametrize("reference", ["duel", "./duel/duel/game.py:Duel", "made-game", "made-world"])
@pytest.mark.slow
def test_a_game_conforms_without_a_warning(reference: str, folder: Path, environment: dict[str, str]) -> None:
    done = run_wsap(["check", reference], env=environment, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"conforms to the protocol: \d+ checks passed(, with \d+ tips?)?\.", done.stdout), done.stdout


def test_all_kinds_are_offered() -> None:
    assert tuple(KINDS) == OFFERED


@pytest.mark.parametrize("made", ALL, ids=lambda made: made.name)
def test_nothing_is_left_to_fill_in(made: Made, folder: Path) -> None:
    for path in (folder / made.name).rglob("*"):
        assert path.suffix != ".in"
        if path.is_file():
            assert not re.search(r"(?<!\$)\{\{", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("made", ALL, ids=lambda made: made.name)
def test_it_imports_only_the_kernel_and_a_listener_the_hook_of_the_nexus(made: Made, folder: Path) -> None:
    allowed = {"wsap_core", made.module, *sys.stdlib_module_names}
    allowed |= {"listener": {"wsap_nexus"}, "command": {"click"}}.get(made.kind, set())
    for path in (folder / made.name / made.module).glob("*.py"):
        assert set(imported(path)) <= allowed, path
    project = tomllib.loads((folder / made.name / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {Requirement(item).name.replace("-", "_") for item in project["dependencies"]}
    played = {"wsap_nexus"} if made.kind in ("game", "world") else set()  # so that installing it is enough to play
    assert required == {"wsap_core"} | (allowed & {"wsap_nexus", "click"}) | played


def imported(path: Path) -> Iterator[str]:
    """The top-level packages that a module imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("made", ALL, ids=lambda made: made.name)
def test_its_workflow_runs_what_its_readme_says(made: Made, folder: Path) -> None:
    workflow = (folder / made.name / ".github/workflows/test.yml").read_text(encoding="utf-8")
    assert 'python: ["3.11", "3.12", "3.13"]' in workflow
    commands = re.findall(r"- run: (.+)", workflow)
    readme = (folder / made.name / "README.md").read_text(encoding="utf-8")
    assert commands
    assert all(command in readme for command in commands if not command.startswith("ruff"))
    # It is shown where packages are published, so no link of it may lead into the folder.
    assert all(link.startswith("https://") for link in re.findall(r"\]\(([^)]+)\)", readme))
    assert f"# {made.name}\n" in readme


REFUSED = {
    "json": "module of Python's standard library",
    "class": "a word of Python's own language",
    "match": "a word of Python's own language",
    "pytest": "would hide another module",
    "wsap-core": "would hide another module",
    "crafter": "would hide another module",
    "tests": "would hide another module",
    "echo": "WSAP has something called 'echo' already",
    "random-legal": "WSAP has something called 'random-legal' already",
    "": "can't be a name",
    "Duel": "can't be a name",
    "two words": "can't be a name",
    "../duel": "can't be a name",
    "2duel": "can't be a name",
    "a--b": "can't be a name",
    "duel\n": "can't be a name",
    "duél": "can't be a name",
    "d" * 31: "can't be a name",
}


@pytest.mark.parametrize(("name", "why"), REFUSED.items(), ids=map(repr, REFUSED))
def test_a_name_that_can_not_be_used_is_refused_and_nothing_is_made(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(why)) as refused:
        make("game", name, tmp_path)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_names_that_merely_begin_like_others_are_fine() -> None:
    assert refuse_name("json-duel") == "json_duel"
    assert refuse_name("d" * 30) == "d" * 30


def test_what_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "duel").mkdir()
    (tmp_path / "file-there").write_text("mine")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    before = sorted(tmp_path.rglob("*"))
    for name in ("duel", "file-there", "dangling"):
        with pytest.raises(UsageError, match="already; choose another name"):
            make("game", name, tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_can_not_be_written_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^The folder 'duel' can't be made: No such file or directory\.$"):
        make("game", "duel", tmp_path / "gone")


def test_what_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> None:
        assert self.is_dir()  # all is written
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(UsageError, match="No space left"):
        make("game", "duel", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("kind", "seats"), [("world", 2), ("agent", 2), ("game", 0), ("game", 21)])
def test_only_games_have_seats_and_not_any_number(kind: str, seats: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 to 20 seats"):
        make(kind, "duel", tmp_path, seats=seats)
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_to_do_next(tmp_path: Path) -> None:
    env = {**os.environ, "WSAP_HOME": str(tmp_path / "home")}
    done = run_wsap(["new", "game", "duel", "--seats", "2"], env=env, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "Made duel; its game is duel/duel/game.py. Install and test it:",
        "  pip install -e duel && pytest duel",
    ]
    done = run_wsap(["new", "game", "json"], env=env, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: 'json' is a module of Python's standard library; choose another name.\n"
    assert not (tmp_path / "json").exists()

"""What pages and messages say about installing our distributions works in a clone."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from tools_kit import ROOT

from wsap_core.installing import install_line

PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    + [page for folder in ("docs", "plugins", "nexus", "changelog.d") for page in (ROOT / folder).rglob("*.md")]
)
SOURCES = sorted(
    path
    for folder in ("wsap_core", "nexus/wsap_nexus", "plugins", "benchmarks", "tools")
    for suffix in ("*.py", "*.js", "*.toml")
    for path in (ROOT / folder).rglob(suffix)
    if "tests" not in path.relative_to(ROOT).parts
)
BY_NAME = re.compile(r"pip install (?:[-\w]+ |[-\w.\[\]]+ )*[\"'\\]*wsap-")
COMMAND = re.compile(r"pip install ([^`\n&;]*)")
OURS = re.compile(r"(wsap-\w+)(?:\[([\w,]+)\])?")


def project(name: str) -> dict[str, object]:
    place = {"wsap-core": ".", "wsap-nexus": "nexus"}.get(name, f"plugins/{name}")
    found: dict[str, object] = tomllib.loads((ROOT / place / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def required(name: str, extras: str = "") -> set[str]:
    """The distributions of ours that one requires, also through others, with itself."""
    about = project(name)
    lines: list[str] = list(about.get("dependencies", ()))  # type: ignore[call-overload]
    for extra in filter(None, extras.split(",")):
        lines += about["optional-dependencies"][extra]  # type: ignore[index]
    found = {name}
    for own in filter(None, map(OURS.match, lines)):
        found |= required(own[1], own[2] or "")
    return found


def places(command: str) -> dict[str, str]:
    """The distributions that a command installs from folders, with their extras; those of its file among them."""
    found = {}
    words = shlex.split(command)
    if words[:2] == ["-r", "requirements.txt"]:
        words += [line for line in (ROOT / words[1]).read_text(encoding="utf-8").splitlines() if line[0] == "."]
    for word in words:
        folder, _, extras = word.partition("[")
        if folder == "." or folder.startswith("./"):
            name = {".": "wsap-core", "./nexus": "wsap-nexus"}.get(folder, folder.removeprefix("./plugins/"))
            found[name] = extras.rstrip("]")
    return found


def test_nothing_says_to_install_by_a_name_that_no_index_has() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (*PAGES, *SOURCES)}
    found = {path.relative_to(ROOT).as_posix(): BY_NAME.findall(text) for path, text in texts.items()}
    assert {path: commands for path, commands in found.items() if commands} == {}


def test_each_command_of_a_page_names_every_folder_that_it_needs() -> None:
    commands = [(page, command) for page in PAGES for command in COMMAND.findall(page.read_text(encoding="utf-8"))]
    assert len(commands) > 20
    for page, command in commands:
        named = {} if "NAME" in command else places(command.strip().rstrip(",.)"))
        missing = set().union(*(required(name, extras) for name, extras in named.items())) - set(named)
        assert not missing, f"{page.relative_to(ROOT)}: pip install {command} lacks {sorted(missing)}"


def test_the_rule_finds_what_it_forbids() -> None:
    assert BY_NAME.search("pip install 'wsap-llm[mcp]'")
    assert BY_NAME.search("pip install gymnasium wsap-core")
    assert BY_NAME.search("pip install -U wsap-core")
    assert not BY_NAME.search("pip install . './plugins/wsap-llm[mcp]'")
    assert required("wsap-nexus") - set(places("./nexus")) == {"wsap-core", "wsap-check", "wsap-llm", "wsap-matrix"}


class Installed:
    """A distribution that says from where it was installed."""

    def __init__(self, source: str | None) -> None:
        self.source = source

    def read_text(self, name: str) -> str | None:
        return self.source if name == "direct_url.json" else None


def installed_from(source: object, patch: pytest.MonkeyPatch) -> None:
    text = None if source is None else json.dumps(source)
    patch.setattr(metadata, "distribution", lambda name: Installed(text))


@pytest.mark.parametrize("about", [{"dir_info": {}}, {"dir_info": {"editable": True}}])
def test_where_the_kernel_came_from_a_clone_the_command_installs_from_there(
    about: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "my clone"
    (clone / "plugins").mkdir(parents=True)
    installed_from({"url": clone.as_uri(), **about}, monkeypatch)
    words = shlex.split(install_line("wsap-llm[mcp]"))
    assert words == ["pip", "install", f"{clone / 'plugins' / 'wsap-llm'}[mcp]"]
    folders = {Path(word).relative_to(clone).as_posix() for word in shlex.split(install_line("wsap-nexus"))[2:]}
    needed = required("wsap-nexus") - {"wsap-core"}
    assert folders == {"nexus" if name == "wsap-nexus" else f"plugins/{name}" for name in needed}
    pull, _, update = install_line("wsap-nexus", newer=True).partition(" && ")
    assert shlex.split(pull) == ["git", "-C", str(clone), "pull"]
    assert shlex.split(update)[:3] == ["pip", "install", str(clone)]


@pytest.mark.parametrize(
    "source", [None, {"url": "https://example.org/wsap_core-1.0.0-py3-none-any.whl", "archive_info": {}}]
)
def test_where_it_came_from_an_index_the_command_gives_the_name(
    source: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed_from(source, monkeypatch)
    assert install_line("wsap-llm[mcp]") == "pip install 'wsap-llm[mcp]'"
    assert install_line("wsap-nexus", newer=True) == "pip install -U wsap-nexus"


def test_a_clone_that_is_gone_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed_from({"url": (tmp_path / "gone").as_uri(), "dir_info": {}}, monkeypatch)
    assert install_line("wsap-eval") == "pip install wsap-eval"

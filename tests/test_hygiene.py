"""What the repository must never hold, and what its files promise each other."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from tools_kit import tool_of

ROOT = Path(__file__).resolve().parent.parent
NOT_OURS = {".git", ".venv", "venv", ".nox", "build", "dist", "_build", "__pycache__", "node_modules"}

# Written in pieces where the rule would otherwise find itself.
FORBIDDEN = {
    "a package host or a folder of packages": re.compile(
        "index" + r"-url|find" + r"-links|://[^ \"'<>)]+/" + r"simple(/|\b)"
    ),
    "a path of one machine": re.compile(r"(?<![\w.-])/(?:work|farm|root|home/\w+|Users/\w+)/"),
    "a conflict marker": re.compile(r"^(?:<{7}|>{7}|={7})(?: |$)", re.MULTILINE),
}


def repository_files() -> list[Path]:
    """The files that git keeps or would keep; without git, all outside environments, builds and caches."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, check=True, text=True,
        )  # fmt: skip
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
        return [path for path in paths if path.is_file()]
    files = (path for path in ROOT.rglob("*") if path.is_file())
    return [path for path in files if not NOT_OURS.intersection(path.relative_to(ROOT).parts)]


def text_of(path: Path) -> str | None:
    """The file as text, or None where it is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    found = []
    for path in repository_files():
        text = text_of(path)
        if text is not None and path.suffix != ".svg" and (match := FORBIDDEN[what].search(text)):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(ROOT)}:{line}: {match.group()!r}")
    assert not found, f"{what}: " + "; ".join(found)


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a package host or a folder of packages", "pip install --extra-index" + "-url=x"),
        ("a package host or a folder of packages", "https://example.org/pypi/" + "simple/"),
        ("a path of one machine", "open('/" + "work/main/x')"),
        ("a path of one machine", "see /" + "home/someone/file"),
        ("a conflict marker", "a\n" + "<" * 7 + " HEAD\n"),
    ],
)
def test_the_rules_find_what_they_are_for(what: str, line: str) -> None:
    assert FORBIDDEN[what].search(line)


def test_no_lock_file_is_kept() -> None:
    assert not [path for path in repository_files() if path.name == "uv.lock"]


def test_no_package_or_other_large_file_is_kept() -> None:
    packed = {".deb", ".rpm", ".whl", ".gz", ".zip", ".so", ".gguf"}
    large = 384 * 1024  # the largest of ours, a generated reference, has 265 kB
    assert not [path for path in repository_files() if path.suffix in packed or path.stat().st_size > large]


def test_every_text_file_ends_in_one_newline() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in repository_files()
        if path.suffix in {".py", ".md", ".toml", ".txt", ".yml"}
        and (text := text_of(path))
        and (not text.endswith("\n") or text.endswith("\n\n"))
    ]
    assert not wrong


def test_every_changelog_fragment_is_well_formed() -> None:
    towncrier = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    kinds = {kind["directory"] for kind in towncrier["type"]}
    for path in (ROOT / towncrier["directory"]).iterdir():
        if path.name.startswith("."):
            continue
        match = re.fullmatch(r"\+[a-z0-9-]+\.([a-z]+)\.md", path.name)
        assert match, f"{path.name}: name it +WORDS.KIND.md"
        assert match.group(1) in kinds, f"{path.name}: KIND is one of {', '.join(sorted(kinds))}"
        text = path.read_text(encoding="utf-8").strip()
        assert text.endswith((".", "!")), f"{path.name}: write whole sentences"
        assert not text.startswith(("-", "*", "#")), f"{path.name}: leave lists and headings to the release notes"


def test_the_changelog_has_the_line_where_releases_are_put() -> None:
    towncrier = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    assert towncrier["start_string"] in (ROOT / towncrier["filename"]).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["play", "test"])
def test_the_readme_gives_one_line_for_each_command(name: str) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"<!-- command: {name} -->\n```bash\n(.*?)```", text, flags=re.DOTALL)
    assert block.count("\n") == 1
    assert block.startswith("python3 -m venv ")


def test_links_between_pages_lead_somewhere() -> None:
    """Relative links of the pages that Sphinx does not build; it checks its own."""
    pages = [path for path in repository_files() if path.suffix == ".md" and ROOT / "docs" not in path.parents]
    links = [(page, to) for page in pages for to in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))]
    broken = [(page, to) for page, to in links if "://" not in to and not (page.parent / to).exists()]
    assert not broken


def test_the_architecture_page_has_a_sentence_for_every_module_of_the_kernel() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `([\w/]+\.py)` \| .+\.", page, re.MULTILINE))
    kernel = ROOT / "wsap_core"
    files = {path.relative_to(kernel).as_posix() for path in kernel.rglob("*.py")}
    assert told == {name for name in files if not name.rpartition("/")[2].startswith("__")}


KERNEL_BUDGET = 6_000
"""The most lines of code of the kernel, so that it can be read in an hour (decision 24)."""


def test_lines_of_code_are_neither_blank_nor_comments_nor_docstrings() -> None:
    text = '''"""A module,
of two lines."""

x = 1  # kept
"""About x."""
# left out

def f():
    "What."
    return """a
b"""
'''
    assert tool_of("count_lines").lines_of_code(text) == 4


def test_the_kernel_stays_within_its_budget() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "wsap_core").rglob("*.py")]
    assert sum(map(tool_of("count_lines").lines_of_code, texts)) <= KERNEL_BUDGET

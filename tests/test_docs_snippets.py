"""Every snippet of the documentation runs, page by page, top to bottom, in a folder of the page's own.

How a page is read:

- A `python` or `toml` block whose first line is a comment naming a file (`# game.py`) is written to that file.
- Any other `python` block is executed; all of one page share a namespace, as if typed into one session.
- In a `console` block, lines that start with `$ ` and name `wsap`, `python` or `pytest` are run as they are;
  other commands (`pip install …`) are only shown. Lines below a command are what it prints: `...` stands for
  anything, and a block may stop early. A command has to succeed; where it should not, the page says so in the
  last line below it: `(exits 2)`.
- `<!-- not run: REASON -->` on the line before a block leaves it alone.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from warm import run_wsap

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(
    r"(?P<skip><!-- not run: [^\n]+ -->\n)?^```(?P<kind>python|toml|console)\n(?P<body>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
FILE_NAME = re.compile(r"# (?P<name>[\w./-]+\.(?:py|toml|json|txt))\n")
EXIT = re.compile(r"\(exits (\d+)\)")
RUNNABLE = {"wsap", "python", "pytest"}


@dataclass(frozen=True)
class Block:
    """One fenced block of a page that is to run."""

    kind: str
    body: str
    line: int


@dataclass(frozen=True)
class Command:
    """One command of a console block, and what the page says it prints."""

    words: tuple[str, ...]
    shown: str
    code: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        if not match["skip"]:
            yield Block(match["kind"], match["body"], text.count("\n", 0, match.start("body")) + 1)


def commands(body: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        line, _, shown = part.replace("\\\n", " ").partition("\n")
        words = tuple(shlex.split(line, comments=True))
        exit_line = EXIT.search(shown)
        yield Command(words, EXIT.sub("", shown).rstrip(), int(exit_line[1]) if exit_line else 0)


def run_command(command: Command, folder: Path, where: str) -> None:
    """Run one command of a page in `folder`; fail where it ends or prints otherwise than the page says."""
    name, *arguments = command.words
    if name not in RUNNABLE:
        return
    if name == "wsap":
        done = run_wsap(arguments, cwd=folder, env=environment(folder), timeout=300)
    else:
        start = [sys.executable, *(["-m", "pytest", "-p", "no:cacheprovider"] if name == "pytest" else [])]
        done = subprocess.run(
            [*start, *arguments], cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
    assert done.returncode == command.code, f"{where}: {shlex.join(command.words)}\n{done.stdout}\n{done.stderr}"
    assert_shown(command.shown, done.stdout + done.stderr, f"{where}: {shlex.join(command.words)}")


def environment(folder: Path) -> dict[str, str]:
    """The environment of a page's commands: its own data folder, one width of terminal, no colours."""
    return {**os.environ, "WSAP_HOME": str(folder / ".wsap"), "NO_COLOR": "1", "COLUMNS": "110"}


def assert_shown(shown: str, printed: str, where: str) -> None:
    """Fail unless `printed` begins as the page shows, `...` standing for anything."""
    if not shown.strip():
        return
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    checker = doctest.OutputChecker()
    # Either all of it is shown, or its beginning.
    agrees = any(checker.check_output(shown + end, printed, options) for end in ("", " ..."))
    assert agrees, f"{where}\n--- the page shows\n{shown}\n--- printed was\n{printed}"


def run_block(block: Block, folder: Path, names: dict[str, Any], page: Path) -> None:
    where = f"{page.relative_to(ROOT)}:{block.line}"
    if block.kind == "console":
        for command in commands(block.body):
            run_command(command, folder, where)
    elif match := FILE_NAME.match(block.body):
        target = folder / match["name"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.body, encoding="utf-8")
    elif block.kind == "python":
        code = compile("\n" * (block.line - 1) + block.body, str(page), "exec")
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, names)


PAGES = [
    page
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/README.md")])
    if "_build" not in page.parts and any(blocks(page))
]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / ".wsap"))
    known = set(sys.modules)
    try:
        names: dict[str, Any] = {"__name__": "__page__"}
        for block in blocks(page):
            run_block(block, tmp_path, names, page)
    finally:
        # A module the page wrote must not stay for a page that writes another of the same name.
        for name in set(sys.modules) - known:
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
                del sys.modules[name]


def test_there_are_pages_to_run() -> None:
    assert PAGES


def test_a_page_that_shows_other_output_fails(tmp_path: Path) -> None:
    (command,) = commands("$ python -c 'print(1)'\n2\n")
    with pytest.raises(AssertionError, match=r"printed was\n *1"):
        run_command(command, tmp_path, "here")


def test_a_command_that_ends_otherwise_than_the_page_says_fails(tmp_path: Path) -> None:
    (command,) = commands("$ python -c 'raise SystemExit(3)'\n(exits 2)\n")
    with pytest.raises(AssertionError, match="here: python"):
        run_command(command, tmp_path, "here")


def test_a_block_marked_as_not_run_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- not run: needs a terminal -->\n```console\n$ wsap\n```\n\n```python\n1 / 0\n```\n", "utf-8")
    assert [block.body for block in blocks(page)] == ["1 / 0\n"]

"""Write `docs/reference/cli.md` from every command's `--help`.

    python tools/write_cli_reference.py

The documentation tests run each command and compare.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
HEAD = """# The commands

The output of each command with `--help`; `python tools/write_cli_reference.py` generates this page.
Commands whose output a program may read take `--json`, which prints only JSON on standard output.

| exit status | meaning |
|---|---|
{codes}
"""
ERRORS = (
    "wsap_core.seams.model_errors",
    "wsap_nexus.errors",
    "wsap_nexus.cli.nexus.connection",
    "wsap_llm.mcp.connection",
    "wsap_tes3mp.protocol.errors",
)
"""The modules whose errors set an exit status; a test finds others."""
COMMAND = re.compile(r"^  (\S+)(?:  |$)", re.MULTILINE)


def exit_statuses() -> list[str]:
    """Return a table row for each exit status, described by every most general error class with that status."""
    from wsap_core.cli.app import BROKEN_PIPE
    from wsap_core.errors import WsapError

    rows = {
        0: "Success",
        1: "Another error, `wsap check` or `wsap doctor` found a fault, or a question was answered with no",
        BROKEN_PIPE: "The output was closed (broken pipe)",
    }
    for module in ERRORS:
        importlib.import_module(module)  # adds its classes to the error tree
    waiting: list[type[WsapError]] = [WsapError]
    while waiting:
        error = waiting.pop(0)
        meaning = (error.__doc__ or "").splitlines()[0].removesuffix(".").replace("|", "\\|")
        if error.exit_code not in rows:
            rows[error.exit_code] = meaning
        elif error.exit_code not in (1, getattr(error.__bases__[0], "exit_code", 1)):
            rows[error.exit_code] += f"; or: {meaning[0].lower()}{meaning[1:]}"
        waiting += error.__subclasses__()
    return [f"| {code} | {meaning} |" for code, meaning in sorted(rows.items())]


def help_of(words: list[str]) -> str:
    """Return the output of `wsap WORDS --help` at the width of the tests."""
    wsap = Path(sys.executable).with_name("wsap")
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "110"}
    done = subprocess.run([wsap, *words, "--help"], capture_output=True, check=True, text=True, env=environment)
    return done.stdout.rstrip()


def sections(words: list[str]) -> Iterator[str]:
    """Yield the sections of a command and its subcommands."""
    text = help_of(words)
    title = " ".join(["wsap", *words])
    yield f"{'#' * min(len(words) + 2, 4)} {title}\n\n```console\n$ {title} --help\n{text}\n```\n"
    _, _, below = text.partition("\nCommands:\n")
    for name in COMMAND.findall(below):
        yield from sections([*words, name])


def main() -> int:
    """Write the page."""
    text = "\n".join([HEAD.format(codes="\n".join(exit_statuses())), *sections([])])
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Read docstrings as plain text: single backticks for code, indented examples, a `Raises:` list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_SECTION = re.compile(r"(Args|Raises):$")
_ENTRY = re.compile(r"    (\w[\w.]*): (.*)")


def as_rst(lines: list[str]) -> list[str]:
    """The docstring's lines in Sphinx's own markup."""
    out: list[str] = []
    for literal, run in groupby(_marked(lines), key=lambda item: item[0]):
        text = [line for _, line in run]
        # Code may run over the end of a line, so prose is escaped as a whole.
        out += ["", "::", "", *text, ""] if literal else _escape("\n".join(text)).split("\n")
    return out


def _marked(lines: list[str]) -> Iterator[tuple[bool, str]]:
    """Each line with whether it belongs to an indented example; sections become fields."""
    section, literal, last = "", False, ""
    for line in lines:
        if match := _SECTION.match(line):
            section, literal, line = {"Args": "param", "Raises": "raises"}[match[1]], False, ""
        elif section and (entry := _ENTRY.match(line)):
            line = f":{section} {entry[1]}: {entry[2]}"
        elif line and not line.startswith(" "):
            section, literal = "", False
        elif line.startswith("    ") and not section and not last:
            literal = True
        yield literal, line
        last = line


def _escape(text: str) -> str:
    """Double the backticks of code, and keep what else would be markup from being read as such."""
    pieces, end = [], 0
    for match in _CODE.finditer(text):
        code = re.sub(r"\s+", " ", match[2])
        pieces += [_plain(text[end : match.start()]), f"``{code}``"]
        end = match.end()
        if text[end : end + 1].isalnum():
            pieces.append("\\ ")
    return "".join([*pieces, _plain(text[end:])])


def _plain(text: str) -> str:
    text = re.sub(r"^(\s*)\* ", r"\1- ", text, flags=re.MULTILINE)
    return re.sub(r"[*|`]|(?<=\w)_(?=\W|$)", lambda match: "\\" + match[0], text)


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = as_rst(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Hook into autodoc; Sphinx calls this."""
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True}

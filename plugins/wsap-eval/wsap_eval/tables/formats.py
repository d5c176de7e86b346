"""Tables as text: for a terminal or a pipe, in Markdown, or in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import click

from wsap_core.cli.output import print_table
from wsap_core.untrusted import single_line

Form = Literal["", "markdown", "latex"]
"""The default is columns of plain text."""
FORMS = ("markdown", "latex")
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}",
}  # fmt: skip
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+!|~&$])")
_BLOCK = re.compile(r"^(\d+(?=\.(?:\s|$))|(?=[-=]))")
"""The place before a character that begins a list or underlines a heading at the start of a line."""
_LIGATURE = re.compile(r"([-',])(?=\1)")
"""Characters that LaTeX draws as another one if they are doubled."""
_MINUS = re.compile(r"(?<![\w.])-(?=[\d.])")


def escaped(text: str, form: Form) -> str:
    """Return a text on one line, in which nothing is markup."""
    clean = single_line(text)
    if form == "markdown":
        return _BLOCK.sub(r"\1\\", _MARKDOWN.sub(r"\\\1", clean)) if clean != "-" else "–"
    if form == "latex":
        text = _LIGATURE.sub(r"\1{}", "".join(_LATEX.get(character, character) for character in clean))
        return ("{}" if text.startswith(("[", "*")) else "") + _MINUS.sub("$-$", text)  # no argument of \\ or \item
    return clean


def say(text: str, form: Form = "") -> None:
    """Print a sentence, in Markdown and LaTeX as a paragraph."""
    click.echo(f"{escaped(text, form)}\n" if form else text)


def print_cells(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, notes: Sequence[Sequence[str]] = (), form: Form = ""
) -> None:
    """Print a table with a heading and the notes on each row.

    In Markdown and LaTeX, empty columns are left out, and notes are a list below, each after its row's first cells.
    LaTeX needs the package booktabs.
    """
    if not form:
        print_table(columns, rows, notes=notes, heading=True)
        return
    kept = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    head = [escaped(columns[i], form) for i in kept]
    body = [[escaped(row[i], form) for i in kept] for row in rows]
    below = [
        escaped(f"{', '.join(row[:2])}: {note}", form) for row, own in zip(rows, notes, strict=False) for note in own
    ]
    if form == "markdown":
        lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body)]
        lines += ["", *(f"- {note}" for note in below)] if below else []
    else:
        lines = [
            rf"\begin{{tabular}}{{{'l' * len(head)}}}", r"\toprule", rf"{' & '.join(head)} \\", r"\midrule",
            *(rf"{' & '.join(row)} \\" for row in body),
            r"\bottomrule", r"\end{tabular}",
        ]  # fmt: skip
        if below:
            lines += [r"\begin{itemize}", *(rf"\item {note}" for note in below), r"\end{itemize}"]
    click.echo("\n".join(lines) + "\n")

"""Tables in a pipe, in Markdown and in LaTeX."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from wsap_eval.cli import main
from wsap_eval.reading import played_of
from wsap_eval.tables.formats import escaped
from wsap_eval.tables.shown import cells

MakeResults = Callable[..., Path]
LEVELS = Path(__file__).with_name("levels.py")
ODD = r"a_b|c$d%e#f&g{h}i\j~k^l<m>*n*`o`"


def printed(*words: str) -> str:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == 0, result.output
    return result.output


def test_a_table_in_a_pipe_has_its_heading(make_results: MakeResults) -> None:
    folder = str(make_results())
    assert re.match(r"game +entrant +metric +score +95 % interval +vs baseline", printed("show", folder))
    assert re.match(r"game +entrant +seed +outcome +value +steps +run", printed("show", folder, "--episodes"))
    assert re.match(r"game +entrant +seeds +difference to random", printed("compare", folder))


def test_markdown_has_each_cell_as_printed_and_no_markup_of_a_label(make_results: MakeResults) -> None:
    folder = make_results(("random", ODD), seeds=20)
    lines = printed("show", str(folder), "--format", "markdown").splitlines()
    assert lines[0] == "| game | entrant | metric | score | 95 % interval | vs baseline | cost | episodes |"
    split = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines[2:4]]
    plain = [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in row] for row in split]
    rows = [[cell for i, cell in enumerate(cells(row)) if i != 6] for row in played_of(folder).rows()]
    assert plain == rows
    assert "| openai" not in lines[3]
    assert any(line.startswith("- minigrid, a\\_b\\|c") for line in lines[4:])
    assert "\\<m\\>\\*n\\*\\`o\\`" in lines[3]


@pytest.mark.parametrize(
    "text", ["0.1", "0", "-0.1 (-0.8 to 0.8), p 1, tied", "1. first", "12.", "- a", "=", "1) a", "+0", "0.5 to 1", ODD]
)
def test_markdown_shows_the_same_text(text: str) -> None:
    told = MarkdownIt().render(escaped(text, "markdown"))
    assert told == f"<p>{html.escape(text)}</p>\n"
    if re.fullmatch(r"[\d. to]+\d", text):
        assert escaped(text, "markdown") == text


def test_latex_escapes_what_is_not_text(make_results: MakeResults) -> None:
    text = printed("compare", str(make_results(("random", ODD), seeds=20)), "--format", "latex")
    label = escaped(ODD, "latex")
    assert label == (
        r"a\_b\textbar{}c\$d\%e\#f\&g\{h\}i\textbackslash{}j\textasciitilde{}k\textasciicircum{}l"
        r"\textless{}m\textgreater{}*n*\textasciigrave{}o\textasciigrave{}"
    )
    assert f"minigrid & {label} & " in text
    assert text.count(r"\begin{tabular}{lllll}") == text.count(r"\end{tabular}") == 1
    assert escaped("-0.2 (-0.5 to 0.1), well-known 1e-05", "latex") == "$-$0.2 ($-$0.5 to 0.1), well-known 1e-05"


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("[3cm] deep", "{}[3cm] deep"),
        ("*a", "{}*a"),
        ("--until and ---", "-{}-until and -{}-{}-"),
        ("'' and ,,", "'{}' and ,{},"),
        ("-0.2 to 1", "$-$0.2 to 1"),
    ],
)
def test_latex_takes_no_beginning_of_a_cell_for_an_argument_and_joins_no_characters(text: str, latex: str) -> None:
    assert escaped(text, "latex") == latex


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_games_and_metrics_print_is_in_no_json(tmp_path: Path, jobs: str) -> None:
    shutil.copy(LEVELS, tmp_path)  # a module of its own, which prints when it is imported
    played = ["--game", f"{tmp_path}/levels.py:Loud", "--entrant", "always,action=a2", "--seeds", "4", "--jobs", jobs]
    out = str(tmp_path / "out")
    for words in (
        ["run", *played, "--out", out], ["show", out], ["show", out, "--episodes"], ["compare", out, "--baseline", "x"],
        ["score", out, "--metric", "all"],
    ):  # fmt: skip
        told = subprocess.run([sys.executable, "-m", "wsap_core", "eval", *words, "--json"], capture_output=True)
        assert words[0] == "compare" or json.loads(told.stdout), told
        assert b"loud" not in told.stdout


def test_a_format_of_the_table_and_json_exclude_each_other(make_results: MakeResults) -> None:
    result = CliRunner().invoke(main, ["show", str(make_results()), "--json", "--format", "latex"])
    assert result.exit_code != 0

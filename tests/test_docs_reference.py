"""Docstrings become reference pages unharmed."""

from __future__ import annotations

import importlib
import re
from dataclasses import fields
from pathlib import Path

import pytest
from tools_kit import module_at, tool_of

from wsap_core.host import PluginHost
from wsap_core.protocol import ParamDef
from wsap_core.specs import AdapterSpec, AgentSpec, BackendSpec, MemorySpec, OptionDef, ScoreMetric, ToolSpec

ROOT = Path(__file__).resolve().parent.parent
EXTENSION = ROOT / "docs" / "_ext" / "plain_docstrings.py"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/README.md")]
PAGES += ROOT.glob("changelog.d/*.added.md")
EXAMPLES = {"wsap_trainers.verifiers", "wsap_cave.plugin", "wsap_mygame.plugin"}
"""Modules that the pages write about as the reader's own."""


def as_rst(text: str) -> str:
    return "\n".join(module_at(EXTENSION).as_rst(text.split("\n")))


def test_the_reference_of_templates_is_that_of_the_classes() -> None:
    tool = tool_of("write_template_reference")
    assert tool.PAGE.read_text("utf-8") == tool.page(), "run: python tools/write_template_reference.py"
    assert tool.SCHEMA.read_text("utf-8") == tool.schema_text()


def test_the_reference_of_worlds_is_that_of_the_docstrings() -> None:
    tool = tool_of("write_worlds_reference")
    assert tool.PAGE.read_text("utf-8") == tool.page(), "run: python tools/write_worlds_reference.py"


def test_the_fields_of_specs_are_those_of_the_classes() -> None:
    tool = tool_of("write_spec_reference")
    assert tool.PAGE.read_text("utf-8") == tool.page(), "run: python tools/write_spec_reference.py"
    told = tool.page()
    for spec in (AdapterSpec, AgentSpec, BackendSpec, MemorySpec, ToolSpec, OptionDef, ScoreMetric, ParamDef):
        rows = told.partition(f"### {spec.__name__}\n")[2].partition("\n###")[0].splitlines()
        cells = {row.split(" | ")[0].strip("|` "): row.rsplit(" | ", 1)[1].strip("| ") for row in rows if "| `" in row}
        assert list(cells) == [field.name for field in fields(spec)]
        assert all(cells.values()), f"{spec.__name__}: a field has no meaning"


def test_the_gallery_has_each_installed_game_with_its_picture() -> None:
    tool = tool_of("write_gallery")
    assert tool.PAGE.read_text("utf-8") == tool.page(), "run: python tools/write_gallery.py"
    shown = {each.game.partition(":")[0] for each in tool.GAMES}
    assert shown | tool.ELSEWHERE == set(PluginHost.discovered().games.names())
    for each in tool.GAMES:
        picture = tool.picture_of(each).read_text("utf-8")
        assert picture.startswith("<svg")
        assert not re.search(r"url\(['\"]?http|href=['\"]http|@import", picture), "it loads nothing"


def test_the_rules_of_the_embedded_world_are_those_of_its_engine() -> None:
    tool = tool_of("write_embedded_world")
    assert tool.PAGE.read_text("utf-8") == tool.page(), "run: python tools/write_embedded_world.py"


@pytest.mark.parametrize(
    ("plain", "markup"),
    [
        ("Give `x` back.", "Give ``x`` back."),
        ("All `World`s of ``y``.", "All ``World``\\ s of ``y``."),
        ("Code `over\ntwo lines` stays one.", "Code ``over two lines`` stays one."),
        ("Takes *args, a|b and name_ too.", "Takes \\*args, a\\|b and name\\_ too."),
        ("Return it.\n\nRaises:\n    WireError: it is `bad`.", "Return it.\n\n\n:raises WireError: it is ``bad``."),
        ("Args:\n    name: who.\n        Goes on.", "\n:param name: who.\n        Goes on."),
    ],
)
def test_prose_keeps_its_words_and_code_is_marked(plain: str, markup: str) -> None:
    assert as_rst(plain) == markup


def test_an_indented_example_is_shown_as_it_stands() -> None:
    shown = as_rst("Like this:\n\n    x = `a` | *b\n\n    y = 2\n\nAnd `on`.")
    assert "::\n\n    x = `a` | *b\n\n    y = 2\n" in shown
    assert shown.endswith("And ``on``.")


def test_a_list_is_not_taken_for_an_example() -> None:
    assert "::" not in as_rst("Either:\n\n- one that goes\n  on, or\n- two.")


def exists(name: str) -> bool:
    """Tell whether a dotted name is a module, or an attribute or field that can be reached from one."""
    module, *rest = name.split(".")
    found: object = importlib.import_module(module)
    for part in rest:
        module = f"{module}.{part}"
        if hasattr(found, part):
            found = getattr(found, part)
        elif part in getattr(found, "__annotations__", {}):
            return True
        elif importlib.util.find_spec(module) is not None:
            found = importlib.import_module(module)
        else:
            return False
    return True


def test_every_python_name_on_a_page_exists() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in PAGES
        for name in sorted({*re.findall(r"\bwsap_\w+(?:\.\w+)+", page.read_text(encoding="utf-8"))} - EXAMPLES)
        if not exists(name)
    ]
    assert missing == []


def test_the_options_of_model_backends_are_as_they_are_declared() -> None:
    pytest.importorskip("wsap_outlines.options")
    tool = tool_of("write_model_options")
    assert tool.PAGE.read_text("utf-8") == tool.page(), "run: python tools/write_model_options.py"


def test_one_command_writes_the_whole_reference() -> None:
    assert "`.venv/bin/nox --no-venv -s regenerate`" in (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    session = (ROOT / "noxfile.py").read_text("utf-8").partition("def regenerate(")[2].partition("@nox.session")[0]
    assert 'ROOT.glob("tools/write_*.py")' in session
    assert '"schema", "--output", "docs/reference/schemas"' in session

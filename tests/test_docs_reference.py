"""Docstrings become reference pages unharmed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

EXTENSION = Path(__file__).resolve().parent.parent / "docs" / "_ext" / "plain_docstrings.py"


def as_rst(text: str) -> str:
    spec = importlib.util.spec_from_file_location("plain_docstrings", EXTENSION)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return "\n".join(module.as_rst(text.split("\n")))


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

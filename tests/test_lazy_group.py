"""A group of commands imports a command when it is used, and not before."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from wsap_core.cli.grouped import lazy_group


def test_help_imports_nothing_and_a_command_is_imported_when_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "greetings_of_a_test.py").write_text(
        "import click\n\n@click.command()\ndef hello():\n    click.echo('Hello.')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    group = lazy_group("talk", "Say things.", {"hello": ("greetings_of_a_test:hello", "Greet.")})

    shown = CliRunner().invoke(group, ["--help"])
    assert "Say things." in shown.output
    assert "Greet." in shown.output
    assert "greetings_of_a_test" not in sys.modules

    assert CliRunner().invoke(group, ["hello"]).output == "Hello.\n"
    monkeypatch.delitem(sys.modules, "greetings_of_a_test")


def test_a_command_that_there_is_not_is_refused() -> None:
    assert CliRunner().invoke(lazy_group("talk", "Say things.", {}), ["hello"]).exit_code == 2

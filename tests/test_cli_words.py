"""What the command line says of a value or command that it can't use, in every command of every distribution."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from wsap_core.cli.app import run, wsap
from wsap_core.cli.params import FiniteRange, WholeNumber


def commands(here: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Yield every command below a context, with the words that call it."""
    yield here.command_path, here.command
    if isinstance(here.command, click.Group):
        for name in here.command.list_commands(here):
            found = here.command.get_command(here, name)
            assert found is not None
            yield from commands(click.Context(found, parent=here, info_name=name))


ALL = dict(commands(click.Context(wsap, info_name="wsap")))
RANGES = [
    (path, parameter)
    for path, command in ALL.items()
    for parameter in command.params
    if isinstance(parameter.type, WholeNumber | click.types.IntParamType | click.types.FloatParamType)
]


def test_every_range_of_every_command_is_told_in_words() -> None:
    assert len(RANGES) > 20
    for path, parameter in RANGES:
        for text in ("x", "", "nan", "-1e999"):
            with pytest.raises(click.BadParameter) as refused:
                parameter.type.convert(text, parameter, click.Context(ALL[path]))
            assert re.search(r"is not a (whole )?number", refused.value.message), (path, parameter.name)
            assert "range" not in refused.value.message, (path, parameter.name)


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (FiniteRange(0.1, 3600), "7200", "'7200' is not a number from 0.1 to 3600."),
        (FiniteRange(), "inf", "'inf' is not a number."),
        (FiniteRange(0, min_open=True), "0", "'0' is not a number above 0."),
        (WholeNumber(1), "0", "'0' is not a whole number of at least 1."),
    ],
)
def test_a_number_out_of_range_is_told_with_the_range(kind: click.ParamType, text: str, words: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        kind.convert(text, None, None)
    assert refused.value.message == words


GROUPS = [path for path, command in ALL.items() if isinstance(command, click.Group) and path != "wsap"]


@pytest.mark.parametrize("path", GROUPS)
def test_a_misspelt_command_below_the_top_is_met_by_a_similar_one(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    group = ALL[path]
    assert isinstance(group, click.Group)
    for name in group.list_commands(click.Context(group, info_name=path)):
        word = name[0] + name  # a letter twice
        for typed in ([word], [word, "x"]):
            assert run([*path.split()[1:], *typed]) == 2
            told = capsys.readouterr().err
            assert re.search(f"no command called '{word}'. Did you mean .*'{name}'", told), (path, typed, told)
    assert run([*path.split()[1:], "zzzzzzzz"]) == 2
    assert re.search("--help` lists all|no suite called", capsys.readouterr().err)


VALUES = [
    (path, parameter)
    for path, command in ALL.items()
    for parameter in command.params
    if isinstance(parameter, click.Option) and not parameter.is_flag and "''" not in (parameter.help or "")
]


def test_an_empty_value_is_refused_by_every_option_of_every_command() -> None:
    assert len(VALUES) > 100
    for path, option in VALUES:
        assert isinstance(option, click.Option)
        label = max(option.opts, key=len)
        for words in ([label, ""], [f"{label}="]):
            command = ALL[path]
            with pytest.raises(click.UsageError, match=f"{label} has an empty value"):
                command.make_context(path, [*words])


def test_whatever_is_wrong_in_a_command_points_to_the_help_of_that_command(capsys: pytest.CaptureFixture[str]) -> None:
    for path, option in VALUES:
        words = path.split()[1:]
        if option.opts == ["--nexus"]:  # without a value it means the nexus of this machine
            continue
        assert run([*words, max(option.opts, key=len)]) == 2
        assert f"See `{path} --help`." in capsys.readouterr().err, (path, option.name)

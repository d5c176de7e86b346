"""Help in sections with examples, refused options, and completion by a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from wsap_core.cli.app import State, wsap
from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import refuse_given
from wsap_core.errors import UsageError


@click.command(cls=GroupedCommand, sections={"Colour": ("blue", "red")}, examples=("paint --blue", "paint house --red"))
@click.argument("what", default="wall")
@click.option("--red", is_flag=True, help="Paint it red.")
@click.option("--blue", is_flag=True, help="Paint it blue.")
@click.option("--coats", default=1, help="How many coats.")
def paint(what: str, *, red: bool, blue: bool, coats: int) -> None:
    """Paint WHAT."""
    if not (red or blue):
        refuse_given("without a colour", "coats", "what")


def test_options_stand_in_sections_and_examples_at_the_end() -> None:
    assert CliRunner().invoke(paint, ["--help"], prog_name="paint").output.splitlines()[4:] == [
        "Colour:",
        "  --blue  Paint it blue.",
        "  --red   Paint it red.",
        "",
        "Options:",
        "  --coats INTEGER  How many coats.",
        "  --help           Show this message and exit.",
        "",
        "Examples:",
        "  paint --blue",
        "  paint house --red",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--coats", "1"], "--coats has no effect without a colour; leave it out."),
        (["door"], "WHAT has no effect without a colour; leave it out."),
    ],
)
def test_what_was_typed_without_effect_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        paint.main(words, standalone_mode=False)
    paint.main(["--red", *words], standalone_mode=False)


def commands(command: click.Command, words: tuple[str, ...], ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(words), command
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None
            yield from commands(below, (*words, name), click.Context(below, parent=ctx, info_name=name))


ROOT = click.Context(wsap, info_name="wsap", obj=State())
COMMANDS = dict(commands(wsap, ("wsap",), ROOT))


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_one_to_three_examples_that_can_be_typed(path: str) -> None:
    examples: tuple[str, ...] = getattr(COMMANDS[path], "examples", ())
    assert 1 <= len(examples) <= 3
    for example in examples:
        program, *words = shlex.split(example)
        assert program == "wsap"
        assert example.startswith(path)
        command: click.Command = wsap
        ctx = ROOT
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            name = words.pop(0)
            below = command.get_command(ctx, name)
            assert below is not None, f"{example}: no command {name!r}"
            command, ctx = below, click.Context(below, parent=ctx, info_name=name)
        if words or not isinstance(command, click.Group):
            command.make_context(command.name, words, parent=ctx.parent)

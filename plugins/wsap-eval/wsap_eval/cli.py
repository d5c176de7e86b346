"""`wsap eval`: evaluate, and read results back. Each command is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping

import click

from wsap_core.cli.grouped import LazyGroup

COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": (
        "wsap_eval.run_command:run",
        "Play the missing episodes of an evaluation and print its table (the default).",
    ),
    "transfer": (
        "wsap_eval.transfer_command:transfer",
        "Measure whether what was learned in one game helps in another (also: wsap eval --transfer A --to C).",
    ),
    "show": ("wsap_eval.read_commands:show", "Print the table of a folder of results, or its episodes."),
    "compare": ("wsap_eval.read_commands:compare", "Compare entrants, or folders, on the seeds that they share."),
    "export": ("wsap_eval.read_commands:export", "Write results as CSV, an HTML report, Inspect's logs and others."),
}


class _EvalGroup(LazyGroup):
    """Takes what is no command of its own as what `run` evaluates."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what was typed after `wsap eval`."""
        if "--transfer" in args:
            args = ["transfer", *("--from" if word == "--transfer" else word for word in args)]
        elif args and args[0] not in (*COMMANDS, "--help", "-h"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


main = _EvalGroup(
    "eval",
    known=COMMANDS,
    help="Evaluate entrants on games: the same seeds for all, with intervals.",
    no_args_is_help=True,
    examples=(
        "wsap eval --game minigrid --entrant random --entrant minigrid-finder --seeds 20",
        "wsap eval run crafter-20 --entrant ollama/qwen3:8b --entrant crafter-survivor",
    ),
)

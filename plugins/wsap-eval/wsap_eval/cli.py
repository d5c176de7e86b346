"""`wsap eval`: run evaluations and read their results. Each command is imported on first use."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import click

from wsap_core.cli.grouped import LazyGroup

COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": (
        "wsap_eval.commands.run:run",
        "Play the missing episodes of an evaluation and print its table (the default).",
    ),
    "transfer": (
        "wsap_eval.commands.transfer:transfer",
        "Measure whether learning in one game helps in another (also: wsap eval --transfer A --to C).",
    ),
    "show": ("wsap_eval.commands.read:show", "Print the table or the episodes of a results folder."),
    "score": ("wsap_eval.commands.read:score", "Score what was played by another metric, without playing."),
    "compare": ("wsap_eval.commands.read:compare", "Compare entrants or folders on their common seeds."),
    "export": ("wsap_eval.commands.read:export", "Write results as CSV, an HTML report, Inspect logs and others."),
}


class _EvalGroup(LazyGroup):
    """Passes arguments that don't start with a command to `run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the command that is implied."""
        if "--transfer" in args:
            args = ["transfer", *("--from" if word == "--transfer" else word for word in args)]
        elif args and args[0] not in (*COMMANDS, "--help", "-h") and not _is_misspelt(args):
            args = ["run", *args]
        return super().parse_args(ctx, args)


def _is_misspelt(args: list[str]) -> bool:
    """Return whether the first word is no suite, but similar to a command."""
    if args[0].startswith("-") or args[0].endswith(".toml"):
        return False
    from wsap_eval.planning.suite import shipped_suites  # deferred for weight

    suites = shipped_suites()
    nearest = difflib.get_close_matches(args[0], {*suites, *COMMANDS}, n=1)
    return args[0] not in suites and not COMMANDS.keys().isdisjoint(nearest)


main = _EvalGroup(
    "eval",
    known=COMMANDS,
    help="Evaluate entrants on games, on the same seeds, with intervals.",
    no_args_is_help=True,
    examples=(
        "wsap eval --game minigrid --entrant random --entrant minigrid-finder --seeds 20",
        "wsap eval run crafter-20 --entrant ollama/qwen3:8b --entrant crafter-survivor",
    ),
)

"""The registrations of the runtime; implementations are imported on first use."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import AgentSpec, CommandSpec, OptionDef


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Offer the runtime's commands."""
    return [
        CommandSpec("play", "Play a game and record the run.", "wsap_nexus.cli.playing.play:play"),
        CommandSpec("preview", "Show how a game looks on its page, until Ctrl-C.", "wsap_nexus.cli.preview:preview"),
        CommandSpec("runs", "List the recorded runs.", "wsap_nexus.cli.runs:runs"),
        CommandSpec("replay", "Show a recorded run step by step.", "wsap_nexus.cli.replay:replay"),
        CommandSpec("export", "Export runs to a file.", "wsap_nexus.cli.export:export"),
        CommandSpec("nexus", "Run the nexus, where agents live and enter worlds.", "wsap_nexus.cli.nexus.group:nexus"),
        CommandSpec("models", "List the language models and what they can do.", "wsap_nexus.cli.models:models"),
        CommandSpec("schema", "Print the protocol's JSON Schemas.", "wsap_nexus.cli.schema:schema"),
        CommandSpec("doctor", "Check whether this machine is ready to play.", "wsap_nexus.cli.doctor:doctor"),
    ]


@hookimpl
def wsap_agents() -> Iterable[AgentSpec]:
    """Offer the person at the keyboard, the program outside, and the wanderer."""
    return [
        AgentSpec("human", "A person at the keyboard of a terminal.", "wsap_nexus.human:create", interactive=True),
        AgentSpec(
            "external",
            "A program outside, which plays through a door such as `wsap mcp`.",
            "wsap_nexus.doors.outside:create",
            interactive=True,
        ),
        AgentSpec(
            "wanderer",
            "Enters one game after another; needs no model.",
            "wsap_nexus.hub.agents.wanderer:create",
            games=("nexus",),
            options=(
                OptionDef("exit_when", "When to leave a game.", "step >= 400", "an exit condition"),
                OptionDef("curiosity", "The probability of choosing a game at random.", "0.25", "0-1"),
            ),
        ),
    ]

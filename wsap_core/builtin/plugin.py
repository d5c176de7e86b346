"""The hooks of the kernel."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.cli.commands import KERNEL_COMMANDS
from wsap_core.hookspecs import hookimpl
from wsap_core.protocol import Action
from wsap_core.specs import AdapterSpec, AgentSpec, CommandSpec, OptionDef


@hookimpl
def wsap_adapters() -> Iterable[AdapterSpec]:
    """Register the echo world."""
    return [
        AdapterSpec(
            "echo",
            "A room that repeats what you say, for experiments.",
            "wsap_core.builtin.echo:EchoWorld",
            title="Echo",
            abilities=("seed", "snapshot", "render"),
            default_action=Action("wait"),
            genre="sandbox",
            dimensions="text",
            options=(OptionDef("length", "Steps of an episode.", "20", "1 or more"),),
        ),
    ]


@hookimpl
def wsap_agents() -> Iterable[AgentSpec]:
    """Register the baselines."""
    return [
        AgentSpec(
            "random",
            "Picks a declared action at random; half of the parameters are ones that the observation lists.",
            "wsap_core.builtin.random_agents:create_random",
            abilities=("seed", "snapshot"),
        ),
        AgentSpec(
            "random-legal",
            "Picks an available action at random.",
            "wsap_core.builtin.random_agents:create_random_legal",
            abilities=("seed", "snapshot"),
        ),
        AgentSpec(
            "always",
            "Repeats one action.",
            "wsap_core.builtin.random_agents:create_always",
            abilities=("seed", "snapshot"),
            options=(OptionDef("action", "The action to repeat.", "the game's first action", "an action"),),
        ),
    ]


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Register the commands that need no runtime."""
    return [CommandSpec(name, summary, factory) for name, (factory, summary) in KERNEL_COMMANDS.items()]

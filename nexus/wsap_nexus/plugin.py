"""What the runtime registers. Light: nothing of it is imported before it is used."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import AgentSpec, CommandSpec


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Offer what plays, looks back and takes data out."""
    return [
        CommandSpec("play", "Play a game: agents in one world, recorded.", "wsap_nexus.cli.play:play"),
        CommandSpec("runs", "List the recorded runs.", "wsap_nexus.cli.runs:runs"),
        CommandSpec("replay", "Look back at a run, step by step.", "wsap_nexus.cli.replay:replay"),
        CommandSpec("export", "Take a run's data out.", "wsap_nexus.cli.export:export"),
        CommandSpec("nexus", "The hub: agents live there and go into worlds.", "wsap_nexus.cli.nexus.group:nexus"),
        CommandSpec("models", "List the language models that can be asked.", "wsap_nexus.cli.models:models"),
        CommandSpec("doctor", "Is this machine ready?", "wsap_nexus.cli.doctor:doctor"),
    ]


@hookimpl
def wsap_agents() -> Iterable[AgentSpec]:
    """Offer the person at the keyboard."""
    return [
        AgentSpec(
            "human",
            "You: plays by the keys you press, at a terminal.",
            "wsap_nexus.human:create",
            interactive=True,
        ),
        AgentSpec(
            "wanderer",
            "Goes from world to world, and needs no model.",
            "wsap_nexus.hub.wanderer:create",
            games=("nexus",),
        ),
    ]

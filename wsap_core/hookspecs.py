"""The six hooks by which a plugin offers its parts.

A plugin is a light module, named in the entry-point group `wsap`, with functions marked by
`hookimpl`. Each takes no argument and returns an iterable of specs:

    from wsap_core import AdapterSpec, hookimpl

    @hookimpl
    def wsap_adapters():
        return [AdapterSpec("mygame", "A game of mine.", "mygame.adapter:MyGame")]
"""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from wsap_core.specs import AdapterSpec, AgentSpec, BackendSpec, CommandSpec, MemorySpec, ToolSpec

PROJECT = "wsap"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def wsap_adapters() -> Iterable[AdapterSpec]:  # type: ignore[empty-body]  # a hook has no body
    """Offer games: `return [AdapterSpec("mygame", "One line.", "mygame.adapter:MyGame")]`."""


@hookspec
def wsap_agents() -> Iterable[AgentSpec]:  # type: ignore[empty-body]
    """Offer agents: `return [AgentSpec("bold", "One line.", "mygame.bold:Bold")]`."""


@hookspec
def wsap_backends() -> Iterable[BackendSpec]:  # type: ignore[empty-body]
    """Offer language-model backends: `return [BackendSpec("mine", "One line.", "mine.llm:connect")]`."""


@hookspec
def wsap_memories() -> Iterable[MemorySpec]:  # type: ignore[empty-body]
    """Offer kinds of memory: `return [MemorySpec("fifo", "One line.", "mine.memory:Fifo")]`."""


@hookspec
def wsap_tools() -> Iterable[ToolSpec]:  # type: ignore[empty-body]
    """Offer tools for agents: `return [ToolSpec("dice", "One line.", "mine.tools:Dice")]`."""


@hookspec
def wsap_commands() -> Iterable[CommandSpec]:  # type: ignore[empty-body]
    """Offer subcommands of `wsap`: `return [CommandSpec("mygame", "One line.", "mygame.cli:group")]`."""

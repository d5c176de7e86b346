"""The six hooks that a plugin implements to register its games, agents and other parts.

A plugin is a light module, named in the entry-point group `wsap`, with functions marked by
`hookimpl`. Each takes no arguments and returns an iterable of specs:

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
    """Register games: `return [AdapterSpec("mygame", "One line.", "mygame.adapter:MyGame")]`."""


@hookspec
def wsap_agents() -> Iterable[AgentSpec]:  # type: ignore[empty-body]
    """Register agents: `return [AgentSpec("bold", "One line.", "mygame.bold:Bold")]`."""


@hookspec
def wsap_backends() -> Iterable[BackendSpec]:  # type: ignore[empty-body]
    """Register language-model backends: `return [BackendSpec("mine", "One line.", "mine.llm:connect")]`."""


@hookspec
def wsap_memories() -> Iterable[MemorySpec]:  # type: ignore[empty-body]
    """Register kinds of memory: `return [MemorySpec("fifo", "One line.", "mine.memory:Fifo")]`."""


@hookspec
def wsap_tools() -> Iterable[ToolSpec]:  # type: ignore[empty-body]
    """Register tools for agents: `return [ToolSpec("dice", "One line.", "mine.tools:Dice")]`."""


@hookspec
def wsap_commands() -> Iterable[CommandSpec]:  # type: ignore[empty-body]
    """Register subcommands of `wsap`: `return [CommandSpec("mygame", "One line.", "mygame.cli:group")]`."""

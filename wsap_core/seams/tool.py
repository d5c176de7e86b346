"""What tools have in common; tools register by the hook `wsap_tools`.

A factory takes a `Context` like any other. One that is for a tool is given a `ToolContext`, which
also says whose tool it is: the agent's memory and the game. A tool that keeps something may offer
`snapshot() -> bytes` and `restore(data)` as agents do (`wsap_core.seams.game.Snapshots`). A factory
that can't know its tools before it has asked somebody gives a `ToolSource` in place of a tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, runtime_checkable

from wsap_core.protocol import Tool
from wsap_core.seams.context import Context
from wsap_core.seams.memory import AgentMemory


@runtime_checkable
class AgentTool(Protocol):
    """Something an agent can use while it thinks.

    One whose effects stay within the agent, like notes or a search of the memory, says so by `inward = True`. It is
    run again when a recorded run is gone through again. Of any other the recorded result is taken, and what it keeps is
    restored.
    """

    @property
    def definition(self) -> Tool:
        """Its name, what it does, and what it takes."""

    def run(self, parameters: Mapping[str, Any]) -> str | Awaitable[str]:
        """Return the result as text for the model.

        Parameters have been checked against the definition. A result that says what went wrong
        is better than an exception; an exception is told to the model in one line.
        """


@runtime_checkable
class ToolSource(Protocol):
    """Gives tools that are only known when somebody has been asked, such as a server."""

    async def open(self) -> Sequence[AgentTool]:
        """Return the tools there are; asked once, in the event loop that will use them.

        Raises:
            WsapError: none can be had; the message says why.
        """

    async def aclose(self) -> None:
        """Give back what it holds; its tools can't be used afterwards."""


@dataclass(frozen=True)
class ToolContext(Context):
    """What the factory of a tool is given: a context, and whose tool it will be."""

    memory: AgentMemory | None = None
    """The memory of the agent; None where it has none."""

    @classmethod
    def of(cls, context: Context, *, memory: AgentMemory | None = None, world: str = "") -> ToolContext:
        """Return a context with everything that another has, for the tools of one agent."""
        taken = {f.name: getattr(context, f.name) for f in fields(Context)}
        return cls(**{**taken, "world": world or context.world}, memory=memory)

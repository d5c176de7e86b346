"""The protocols of tools, which plugins register by the hook `wsap_tools`.

The factory of a tool is passed a `ToolContext`, and returns an `AgentTool` or a `ToolSource`. A tool with state may
implement `wsap_core.seams.game.Snapshots`.
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
    """A tool that an agent can use while it thinks.

    A tool whose effects stay within the agent, such as notes or a search of its memory, sets `inward = True`: it runs
    again when a recorded run is replayed. For all others the recorded result is used, and their state restored.
    """

    @property
    def definition(self) -> Tool:
        """Its name, description and parameters."""

    def run(self, parameters: Mapping[str, Any]) -> str | Awaitable[str]:
        """Return the result as text for the model; the parameters are valid. Prefer a result that explains a failure to
        an exception, of which the model gets one line."""


@runtime_checkable
class ToolSource(Protocol):
    """A provider of tools that are known only at run time, such as a server."""

    async def open(self) -> Sequence[AgentTool]:
        """Return the tools; called once, in the event loop that will use them. `WsapError` if that fails."""

    async def aclose(self) -> None:
        """Release resources; its tools can't be used afterwards."""


@dataclass(frozen=True)
class ToolContext(Context):
    """The context of a tool's factory."""

    memory: AgentMemory | None = None
    """The memory of the agent, if it has one."""

    @classmethod
    def of(cls, context: Context, *, memory: AgentMemory | None = None, world: str = "") -> ToolContext:
        """Return a copy of a context, for the tools of one agent."""
        taken = {f.name: getattr(context, f.name) for f in fields(Context)}
        return cls(**{**taken, "world": world or context.world}, memory=memory)

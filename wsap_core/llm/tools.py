"""What tools have in common; tools register by the hook `wsap_tools`."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol, runtime_checkable

from wsap_core.models import Tool


@runtime_checkable
class AgentTool(Protocol):
    """Something an agent can use while it thinks."""

    @property
    def definition(self) -> Tool:
        """Its name, what it does, and what it takes."""
        ...

    def run(self, parameters: Mapping[str, Any]) -> str | Awaitable[str]:
        """Return the result as text for the model.

        Parameters have been checked against the definition. A result that says what went wrong
        is better than an exception; an exception is told to the model in one line.
        """
        ...

"""Where one agent's calls to its models and tools are kept, and had again from; a runtime implements it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from wsap_core.seams.model import Abilities, Reply, Request
from wsap_llm.tool_journal import ToolJournal


class Journal(Protocol):
    """Where replies are kept, in order, under the key of their request."""

    def add(self, key: str, request: Request, reply: Reply) -> None:
        """Keep the next reply to a request; where it is written down, `get` need not know it any more."""
        ...

    def get(self, key: str, occurrence: int) -> Reply | None:
        """Return the reply to the nth time (from 0) that a request was sent, or None."""
        ...

    async def asking(self, key: str) -> None:
        """Return once it is known, where that matters, that a request is sent: a process that dies before the reply is
        kept has it asked again, and counted."""

    def ask_failed(self, key: str) -> None:
        """Keep, where that matters, that the request that was sent gave no reply."""

    def refuse(self, key: str, reason: str) -> None:
        """Keep that the constraint of a request was refused, and in which words."""
        ...

    def refusal(self, key: str) -> str | None:
        """Return in which words the constraint of a request was refused, or None."""
        ...


@runtime_checkable
class CallJournal(Journal, Protocol):
    """The journal of one agent: the kernel's `Journal` with what the agent `llm` writes and reads there."""

    tools: ToolJournal
    """The calls to the agent's tools."""

    @property
    def offline(self) -> bool:
        """Whether a recorded run is played again, so that no model may be asked."""
        ...

    def again(self, key: str, request: Request, reply: Reply) -> None:
        """Record a call whose reply comes from another run."""
        ...

    def fail(self, key: str, kind: str, words: str) -> None:
        """Record that a request failed, with which class of failure."""
        ...

    def failure(self, key: str, occurrence: int) -> tuple[str, str] | None:
        """Return the class and words of the failure at the nth time (from 0) that a request was sent, or None."""
        ...

    def note_model(self, address: str, abilities: Abilities, prompts: str) -> None:
        """Record what a model can do, and the version of the prompt templates."""
        ...

    def abilities(self, address: str) -> Abilities:
        """Return what the recorded model could do."""
        ...

"""Every reply is kept, and a whole run can be had again from what was kept, without a network."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from wsap_core.errors import UsageError
from wsap_core.seams.model import Abilities, Backend, Chunk, Reply, Request, collect
from wsap_core.seams.model_errors import ConstraintError
from wsap_llm.keys import request_key
from wsap_llm.wrappers.base import Wrapper
from wsap_llm.wrappers.cache import chunks_of


class Journal(Protocol):
    """Where replies are kept, in order, under the key of their request."""

    def add(self, key: str, request: Request, reply: Reply) -> None:
        """Keep the next reply to a request; where it is written down, `get` need not know it any more."""
        ...

    def get(self, key: str, occurrence: int) -> Reply | None:
        """Return the reply to the nth time (from 0) that a request was sent, or None."""
        ...

    def refuse(self, key: str, reason: str) -> None:
        """Keep that the constraint of a request was refused, and in which words."""
        ...

    def refusal(self, key: str) -> str | None:
        """Return in which words the constraint of a request was refused, or None."""
        ...


class MemoryJournal:
    """A journal in memory."""

    def __init__(self) -> None:
        self._replies: dict[str, list[Reply]] = {}
        self._refusals: dict[str, str] = {}

    def add(self, key: str, request: Request, reply: Reply) -> None:
        """Keep the next reply to a request."""
        self._replies.setdefault(key, []).append(reply)

    def get(self, key: str, occurrence: int) -> Reply | None:
        """Return the reply to the nth time that a request was sent, or None."""
        replies = self._replies.get(key, [])
        return replies[occurrence] if occurrence < len(replies) else None

    def refuse(self, key: str, reason: str) -> None:
        """Keep that the constraint of a request was refused."""
        self._refusals[key] = reason

    def refusal(self, key: str) -> str | None:
        """Return in which words the constraint of a request was refused, or None."""
        return self._refusals.get(key)


class Recorded(Wrapper):
    """Keeps every reply in a journal before passing it on; a request whose reply is there already is not sent.

    The second is what makes going on with a run free: replies that were journaled are not bought twice.
    That a constraint was refused is kept in the same way, because the agent goes another way after it.
    """

    def __init__(self, inner: Backend, journal: Journal) -> None:
        super().__init__(inner)
        self._journal = journal
        self._seen: dict[str, int] = {}

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply, kept or new.

        Raises:
            ConstraintError: the backend refuses the constraint, now or when the request was kept.
        """
        key = request_key(self.model, request)
        _refused_before(self._journal, key)
        occurrence = self._seen.get(key, 0)
        self._seen[key] = occurrence + 1
        reply = self._journal.get(key, occurrence)
        if reply is None:
            try:
                reply = await collect(self.inner, request)
            except BaseException as error:
                self._uncount(key)
                if isinstance(error, ConstraintError):
                    self._journal.refuse(key, str(error))
                raise
            self._journal.add(key, request, reply)
            if self._journal.get(key, occurrence) is None:
                self._uncount(key)  # nobody will look for it, and memory does not grow with each decision
        for chunk in chunks_of(reply):
            yield chunk

    def _uncount(self, key: str) -> None:
        self._seen[key] -= 1
        if not self._seen[key]:
            del self._seen[key]


class Replayed:
    """Gives back what was recorded, and never asks anybody.

    Args:
        model: the address of the model that was recorded.
        journal: what was recorded.
        abilities: what that model could do.
    """

    def __init__(self, model: str, journal: Journal, abilities: Abilities | None = None) -> None:
        self._model = model
        self._journal = journal
        self._abilities = abilities or Abilities()
        self._seen: dict[str, int] = {}

    @property
    def model(self) -> str:
        """The address of the model that was recorded."""
        return self._model

    @property
    def abilities(self) -> Abilities:
        """What that model could do."""
        return self._abilities

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the recorded reply.

        Raises:
            UsageError: this was never asked in the recorded run.
            ConstraintError: the recorded backend refused the constraint.
        """
        key = request_key(self._model, request)
        _refused_before(self._journal, key)
        occurrence = self._seen.get(key, 0)
        reply = self._journal.get(key, occurrence)
        if reply is None:
            raise UsageError(
                f"The recorded run has no reply of {self._model} to this request (time {occurrence + 1}): it ends "
                "before, or something that the prompts are made of has changed."
            )
        self._seen[key] = occurrence + 1
        for chunk in chunks_of(reply):
            yield chunk

    async def aclose(self) -> None:
        """Do nothing: there is nothing to give back."""


def _refused_before(journal: Journal, key: str) -> None:
    if (reason := journal.refusal(key)) is not None:
        raise ConstraintError(reason)

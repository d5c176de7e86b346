"""Models for the memory of an agent, recorded and replayed like those that the agent itself asks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Protocol, cast

from wsap_core.seams import model_errors as errors
from wsap_core.seams.model import Backend, Chunk, Request, collect
from wsap_core.seams.model_errors import BackendError, ConstraintError
from wsap_llm.account import Account, Counted
from wsap_llm.journal import CallJournal
from wsap_llm.keys import request_key
from wsap_llm.wrappers import Recorded, Replayed
from wsap_llm.wrappers.base import Wrapper
from wsap_llm.wrappers.cache import chunks_of

_CLASSES: Mapping[str, type[BackendError]] = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BackendError)
}


class Again(Wrapper):
    """Records in a run's own log what it has from another's: a run that is played again is a whole run, too."""

    def __init__(self, inner: Backend, journal: CallJournal) -> None:
        super().__init__(inner)
        self._journal = journal

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the recorded reply.

        Raises:
            ConstraintError: the recorded backend refused the constraint.
            UsageError: this was never asked in the recorded run.
        """
        key = request_key(self.model, request)
        try:
            reply = await collect(self.inner, request)
        except ConstraintError as error:
            self._journal.refuse(key, str(error))
            raise
        self._journal.again(key, request, reply)
        for chunk in chunks_of(reply):
            yield chunk


class FailuresKept(Wrapper):
    """Keeps failures in a journal beside the replies, for somebody who goes on from them: they are part of the run.

    A memory whose summary fails keeps what it wanted to sum up and asks another time. Was the
    failure forgotten, the run played again would go another way.
    """

    def __init__(self, inner: Backend, journal: CallJournal) -> None:
        super().__init__(inner)
        self._journal = journal
        self._seen: dict[str, int] = {}

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply, or fail as it was recorded.

        Raises:
            BackendError: now, or when it was recorded.
        """
        key = request_key(self.model, request)
        occurrence = self._seen.get(key, 0)
        self._seen[key] = occurrence + 1
        if (failure := self._journal.failure(key, occurrence)) is not None:
            kind, words = failure
            if self._journal.offline:
                self._journal.fail(key, kind, words)
            raise _CLASSES.get(kind, BackendError)(words)
        try:
            async with aclosing(self.inner.stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except BackendError as error:
            self._journal.fail(key, type(error).__name__, str(error))
            raise


class Asks(Protocol):
    """Whoever hands out backends by address."""

    def backend(self, name: str) -> object:
        """Return the backend of that address."""
        ...


class JournalledModels:
    """Models for the parts of an agent: what they ask is recorded, replayed, and put down to the agent.

    Args:
        models: who hands out backends; not asked where a recorded run is played again.
        journal: the agent's; None where nothing is recorded.
        account: the agent's.
        configure: told an address before its backend is asked for, so that it can be given options.
    """

    def __init__(
        self,
        models: Asks | None,
        journal: CallJournal | None,
        account: Account,
        configure: Callable[[str], None] | None = None,
    ) -> None:
        self._models = models
        self._configure = configure
        self._journal = journal
        self._account = account

    def backend(self, name: str) -> Backend:
        """Return the backend of that address.

        Raises:
            UnknownNameError: no backend of that name is installed.
        """
        journal = self._journal
        if journal is not None and journal.offline:
            backend: Backend = Again(Replayed(name, journal), journal)
        else:
            if self._configure is not None:
                self._configure(name)
            models: Any = self._models  # Any: whoever is there has `backend`, or says what to install
            backend = cast(Backend, models.backend(name))
            if journal is not None:
                backend = Recorded(backend, journal)
        if journal is not None:
            backend = FailuresKept(backend, journal)
        return Counted(backend, self._account)

"""Recording of replies, from which a whole run can be replayed without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from wsap_core.errors import RecordMismatchError
from wsap_core.seams import model_errors as errors
from wsap_core.seams.model import Abilities, OnText, Reply, Request
from wsap_core.seams.model_errors import BackendError, ConstraintError, ContextTooSmallError
from wsap_llm.journal import CallJournal
from wsap_llm.keys import request_key
from wsap_llm.middleware import Ask, each_sent

_CLASSES: Mapping[str, type[BackendError]] = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BackendError)
}


@dataclass(frozen=True)
class Record:
    """Records the outcome of every request in a journal before passing it on, and returns recorded outcomes without
    sending the request, so that resuming a run does not pay for a reply twice.

    Refused constraints, and prompts refused as too large that the agent shortens, are recorded as well, because they
    change the agent's later requests.
    """

    journal: CallJournal
    model: str
    """The model's address."""
    failures: bool = False
    """Whether failures are recorded, too, for a caller that continues after them, such as a memory whose summary fails,
    so that a replayed run does the same."""

    async def __call__(self, request: Request, on_text: OnText | None, ask: Ask) -> Reply:
        """Return the reply, recorded or new. Raises ConstraintError and BackendError as the backend does or did."""
        key = request_key(self.model, request)
        if (reason := self.journal.refusal(key)) is not None:
            raise ConstraintError(reason)
        outcome = self.journal.next(key, request)
        if isinstance(outcome, BackendError):
            raise outcome
        return outcome or await self._asked(key, request, on_text, ask)

    async def _asked(self, key: str, request: Request, on_text: OnText | None, ask: Ask) -> Reply:
        try:
            with each_sent(partial(self._sending, key)):
                reply = await ask(request, on_text)
        except BackendError as error:
            if isinstance(error, ConstraintError):
                self.journal.refuse(key, str(error))
            if self.failures or (request.shortens and isinstance(error, ContextTooSmallError)):
                self.journal.fail(key, error)
            raise
        self.journal.add(key, request, reply)
        return reply

    @asynccontextmanager
    async def _sending(self, key: str) -> AsyncIterator[None]:
        try:
            await self.journal.asking(key)
        except asyncio.CancelledError:
            self.journal.ask_failed(key)  # it was not sent
            raise
        try:
            yield
        except BackendError:
            self.journal.ask_failed(key)
            raise


@dataclass(frozen=True)
class Replayed:
    """Replaces a recorded model whose replies come from `Record`; it is never asked."""

    model: str
    """The address of the recorded model."""
    abilities: Abilities = field(default_factory=Abilities)
    """The abilities of that model."""

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Raise RecordMismatchError: the recorded run has no further reply to this request."""
        raise RecordMismatchError(
            f"The recorded run has no further reply of {self.model} to this request: it ends earlier, or the prompts "
            "have changed."
        )

    async def aclose(self) -> None:
        """Do nothing."""


def kind_of(error: BackendError) -> str:
    """Return the name of the kernel's class of a failure, for the record."""
    return next(cls.__name__ for cls in type(error).__mro__ if cls.__name__ in _CLASSES)


def failure_of(kind: str, words: str) -> BackendError:
    """Return the error for a recorded failure."""
    return _CLASSES.get(kind, BackendError)(words)

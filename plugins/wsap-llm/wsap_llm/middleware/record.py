"""Replies that are kept: a whole run can be replayed from them without a network."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from wsap_core.errors import UsageError
from wsap_core.seams import model_errors as errors
from wsap_core.seams.model import Abilities, Chunk, Reply, Request, TextChunk, ThinkingChunk, collect_from
from wsap_core.seams.model_errors import BackendError, ConstraintError
from wsap_llm.journal import CallJournal, Journal
from wsap_llm.keys import request_key
from wsap_llm.middleware.model import Ask

_CLASSES: Mapping[str, type[BackendError]] = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BackendError)
}


class Record:
    """Keeps every reply in a journal before passing it on; a request whose reply is kept already is not sent.

    The second makes resuming a run free: no reply is paid for twice. That a constraint was refused is kept in the same
    way, because the agent goes another way after it.
    """

    def __init__(self, journal: Journal, model: str) -> None:
        self._journal = journal
        self._model = model
        self._seen: dict[str, int] = {}

    async def stream(self, request: Request, ask: Ask) -> AsyncGenerator[Chunk, None]:
        """Give the reply, kept or new. Raises ConstraintError if the backend refuses the constraint, now or when the
        request was kept."""
        key = request_key(self._model, request)
        if (reason := self._journal.refusal(key)) is not None:
            raise ConstraintError(reason)
        occurrence = self._seen.get(key, 0)
        self._seen[key] = occurrence + 1
        reply = self._journal.get(key, occurrence)
        if reply is None:
            try:
                await self._journal.asking(key)
                reply = await collect_from(ask(request), self._model)
            except BaseException as error:
                self._uncount(key)
                if isinstance(error, BackendError):
                    self._journal.ask_failed(key)
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
    """A backend that gives back what was recorded of a model, and never asks anybody.

    What it gives goes into the journal once more: a replayed run is a whole run, too.
    """

    def __init__(self, model: str, journal: CallJournal, abilities: Abilities | None = None) -> None:
        self.model = model
        """The address of the model that was recorded."""
        self.abilities = abilities or Abilities()
        """What that model could do."""
        self._journal = journal
        self._seen: dict[str, int] = {}

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the recorded reply. Raises UsageError if this was never asked in the recorded run, and ConstraintError
        if the recorded backend refused the constraint."""
        key = request_key(self.model, request)
        if (reason := self._journal.refusal(key)) is not None:
            self._journal.refuse(key, reason)
            raise ConstraintError(reason)
        occurrence = self._seen.get(key, 0)
        reply = self._journal.get(key, occurrence)
        if reply is None:
            raise UsageError(
                f"The recorded run has no reply of {self.model} to this request (time {occurrence + 1}): it ends "
                "before, or something that the prompts are made of has changed."
            )
        self._seen[key] = occurrence + 1
        self._journal.again(key, request, reply)
        for chunk in chunks_of(reply):
            yield chunk

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


class KeepFailures:
    """Keeps failures in a journal beside the replies, for a caller that goes on from them: they are part of the run.

    A memory whose summary fails keeps what it wanted to sum up and asks another time. If the failure
    were forgotten, the replayed run would go another way.
    """

    def __init__(self, journal: CallJournal, model: str) -> None:
        self._journal = journal
        self._model = model
        self._seen: dict[str, int] = {}

    async def stream(self, request: Request, ask: Ask) -> AsyncGenerator[Chunk, None]:
        """Give the reply, or fail as it was recorded.

        Raises:
            BackendError: now, or when it was recorded.
        """
        key = request_key(self._model, request)
        occurrence = self._seen.get(key, 0)
        self._seen[key] = occurrence + 1
        if (failure := self._journal.failure(key, occurrence)) is not None:
            kind, words = failure
            if self._journal.offline:
                self._journal.fail(key, kind, words)
            raise failure_of(kind, words)
        try:
            async with aclosing(ask(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except BackendError as error:
            self._journal.fail(key, type(error).__name__, str(error))
            raise


def failure_of(kind: str, words: str) -> BackendError:
    """Return a recorded failure as an error again."""
    return _CLASSES.get(kind, BackendError)(words)


def chunks_of(reply: Reply) -> list[Chunk]:
    """Return a whole reply as chunks."""
    chunks: list[Chunk] = [ThinkingChunk(reply.thinking)] if reply.thinking else []
    if reply.text:
        chunks.append(TextChunk(reply.text))
    return [*chunks, reply.finish]

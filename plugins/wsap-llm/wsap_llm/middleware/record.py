"""Replies that are kept: a whole run can be replayed from them without a network."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

from wsap_core.errors import UsageError
from wsap_core.seams import model_errors as errors
from wsap_core.seams.model import Abilities, Chunk, Reply, Request, TextChunk, ThinkingChunk, collect_from
from wsap_core.seams.model_errors import BackendError, ConstraintError
from wsap_llm.journal import CallJournal
from wsap_llm.keys import request_key
from wsap_llm.middleware import Ask

_CLASSES: Mapping[str, type[BackendError]] = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BackendError)
}


class Record:
    """Keeps what came of every request in a journal before passing it on; a request is not sent of which that is kept.

    The second makes resuming a run free: no reply is paid for twice. That a constraint was refused is kept in the same
    way, because the agent goes another way after it.

    Args:
        journal: where it is kept.
        model: the model's address.
        failures: whether failures are kept, too, for a caller that goes on from them: a memory whose summary fails
            keeps what it wanted to sum up and asks another time, and a replayed run goes the same way.
    """

    def __init__(self, journal: CallJournal, model: str, *, failures: bool = False) -> None:
        self._journal = journal
        self._model = model
        self._failures = failures

    async def stream(self, request: Request, ask: Ask) -> AsyncGenerator[Chunk, None]:
        """Give the reply, kept or new. Raises ConstraintError if the backend refuses the constraint, now or when the
        request was kept, and BackendError as the backend does, or as it was kept."""
        key = request_key(self._model, request)
        if (reason := self._journal.refusal(key)) is not None:
            raise ConstraintError(reason)
        outcome = self._journal.next(key, request)
        if isinstance(outcome, BackendError):
            raise outcome
        for chunk in chunks_of(outcome or await self._asked(key, request, ask)):
            yield chunk

    async def _asked(self, key: str, request: Request, ask: Ask) -> Reply:
        try:
            await self._journal.asking(key)
            reply = await collect_from(ask(request), self._model)
        except BackendError as error:
            self._journal.ask_failed(key)
            if isinstance(error, ConstraintError):
                self._journal.refuse(key, str(error))
            if self._failures:
                self._journal.fail(key, error)
            raise
        self._journal.add(key, request, reply)
        return reply


class Replayed:
    """In place of a model that was recorded, whose replies `Record` gives: nobody is ever asked."""

    def __init__(self, model: str, abilities: Abilities | None = None) -> None:
        self.model = model
        """The address of the model that was recorded."""
        self.abilities = abilities or Abilities()
        """What that model could do."""

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Raise UsageError: this was never asked in the recorded run, or not so often."""
        raise UsageError(
            f"The recorded run has no reply of {self.model} to this request left: it ends before, or something that "
            "the prompts are made of has changed."
        )

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


def failure_of(kind: str, words: str) -> BackendError:
    """Return a recorded failure as an error again."""
    return _CLASSES.get(kind, BackendError)(words)


def chunks_of(reply: Reply) -> list[Chunk]:
    """Return a whole reply as chunks."""
    chunks: list[Chunk] = [ThinkingChunk(reply.thinking)] if reply.thinking else []
    if reply.text:
        chunks.append(TextChunk(reply.text))
    return [*chunks, reply.finish]

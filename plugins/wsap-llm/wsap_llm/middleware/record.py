"""Replies that are kept: a whole run can be replayed from them without a network."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class Record:
    """Keeps what came of every request in a journal before passing it on; a request is not sent of which that is kept.

    The second makes resuming a run free: no reply is paid for twice. That a constraint was refused is kept in the same
    way, because the agent goes another way after it.
    """

    journal: CallJournal
    model: str
    """The model's address."""
    failures: bool = False
    """Whether failures are kept, too, for a caller that goes on from them: a memory whose summary fails keeps what it
    wanted to sum up and asks another time, and a replayed run goes the same way."""

    async def stream(self, request: Request, ask: Ask) -> AsyncGenerator[Chunk, None]:
        """Give the reply, kept or new. Raises ConstraintError if the backend refuses the constraint, now or when the
        request was kept, and BackendError as the backend does, or as it was kept."""
        key = request_key(self.model, request)
        if (reason := self.journal.refusal(key)) is not None:
            raise ConstraintError(reason)
        outcome = self.journal.next(key, request)
        if isinstance(outcome, BackendError):
            raise outcome
        for chunk in chunks_of(outcome or await self._asked(key, request, ask)):
            yield chunk

    async def _asked(self, key: str, request: Request, ask: Ask) -> Reply:
        try:
            await self.journal.asking(key)
            reply = await collect_from(ask(request), self.model)
        except BackendError as error:
            self.journal.ask_failed(key)
            if isinstance(error, ConstraintError):
                self.journal.refuse(key, str(error))
            if self.failures:
                self.journal.fail(key, error)
            raise
        self.journal.add(key, request, reply)
        return reply


@dataclass(frozen=True)
class Replayed:
    """In place of a model that was recorded, whose replies `Record` gives: nobody is ever asked."""

    model: str
    """The address of the model that was recorded."""
    abilities: Abilities = field(default_factory=Abilities)
    """What that model could do."""

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Raise UsageError: this was never asked in the recorded run, or not so often."""
        raise UsageError(
            f"The recorded run has no reply of {self.model} to this request left: it ends before, or something that "
            "the prompts are made of has changed."
        )

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


def kind_of(error: BackendError) -> str:
    """Return the class by which a failure is recorded: that of the kernel which it is of."""
    return next(cls.__name__ for cls in type(error).__mro__ if cls.__name__ in _CLASSES)


def failure_of(kind: str, words: str) -> BackendError:
    """Return a recorded failure as an error again."""
    return _CLASSES.get(kind, BackendError)(words)


def chunks_of(reply: Reply) -> list[Chunk]:
    """Return a whole reply as chunks."""
    chunks: list[Chunk] = [ThinkingChunk(reply.thinking)] if reply.thinking else []
    if reply.text:
        chunks.append(TextChunk(reply.text))
    return [*chunks, reply.finish]

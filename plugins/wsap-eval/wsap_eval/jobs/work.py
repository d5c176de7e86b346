"""What is played in other processes: any work whose parts have keys, such as the episodes of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self, TypeVar

from wsap_core.seams.agent import Usage


class Keyed(Protocol):
    """A job, or the record of one."""

    @property
    def key(self) -> Hashable:
        """Tells jobs apart; a record has that of its job."""


J = TypeVar("J", bound=Keyed)
R = TypeVar("R", bound=Keyed)
J_in = TypeVar("J_in", bound=Keyed, contravariant=True)
J_out = TypeVar("J_out", bound=Keyed, covariant=True)
R_out = TypeVar("R_out", bound=Keyed, covariant=True)


class Work(Protocol[J_in, R_out]):
    """Plays jobs in any process. It is sent to each process once, so it can be pickled, and equal ones are the same.

    Workers of this machine and of a cluster play it alike: what a worker needs to know is in here and in its jobs.
    """

    def opened(self) -> AbstractContextManager[Callable[[J_in], Coroutine[Any, Any, R_out]]]:
        """Yield the function that plays a job in this process, also several at once in one event loop.

        Its WsapErrors end the whole work; an error of one job is part of its record. Raises WsapError if nothing can
        be played here.
        """

    def lost(self, job: J_in, reason: str, taken: Usage) -> R_out:
        """Return the record of a job with which several processes died, or raise a WsapError that ends the work."""

    def elsewhere(self) -> Self:
        """Return the work for other machines."""


class Jobs(Protocol[J_out]):
    """The jobs to play, for any number of tasks: each waits for its next one while there is no room for it."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> J_out: ...

    def at_once(self) -> J_out | None:
        """Return the next job; None if there is none, or none has room now."""

    def close(self) -> None:
        """Offer no further job to anyone."""

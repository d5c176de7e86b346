"""Idempotency keys: a request is handled once, however often a caller sends it.

The intent of a request is stored before it is handled (status 0), and then replaced by the reply. A repetition with the
same key waits for a request in progress, or gets the stored reply of a finished one. A request interrupted by the end
of the process is looked up in the log, and handled again only if it had no effect. Refusals are not stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wsap_core.protocol.wire import dumps
from wsap_nexus.http.refusals import KeyInUseError, KeyReusedError
from wsap_nexus.http.replies import Reply
from wsap_nexus.store.entities import AnswerRecord
from wsap_nexus.store.nexus_store import NexusStore, Transaction

KEPT_SECONDS = 24 * 3600.0
"""Seconds to keep replies, while the nexus runs."""
_IN_PROGRESS = 0
_MAX_OPEN = 10_000
_SWEEP_EVERY = 500

Intent = Mapping[str, Any]
"""JSON-ready data from which `IdempotentRequest.recall` later determines whether a request took effect."""


@dataclass(frozen=True)
class IdempotentRequest:
    """A request that is handled once per key."""

    what: str
    """The operation and body that a key identifies."""
    intend: Callable[[], Intent]
    """Returns the intent, just before the request is handled."""
    do: Callable[[], Awaitable[Reply]]
    """Handles the request."""
    recall: Callable[[Intent], Reply | None]
    """Returns the reply to a request handled by an earlier process; None if it had no effect."""

    @property
    def fingerprint(self) -> str:
        """The hash of `what`."""
        return hashlib.sha256(self.what.encode()).hexdigest()


class IdempotencyStore:
    """The replies of a nexus, by caller and key.

    Their age is the time for which the nexus ran since: a clock that is set or wrong makes none of them older, and a
    request never takes effect twice because of it.
    """

    def __init__(self, nexus_store: NexusStore, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._nexus_store = nexus_store
        self._monotonic = monotonic
        self._began = monotonic()
        self._newest: float | None = None
        self._open: dict[tuple[str, str], tuple[str, asyncio.Task[Reply]]] = {}
        self._tasks: set[asyncio.Task[Reply]] = set()
        self._count = 0

    async def once(self, who: str, key: str | None, request: IdempotentRequest, wait: float) -> Reply | None:
        """Return the reply to a request, handled each time if it has no key; None if not done in `wait` seconds.

        Raises:
            KeyReusedError: the key was used for another request.
            WsapError: the request was refused.
        """
        if key is None:
            task = asyncio.ensure_future(request.do())
            self._hold(task)
        else:
            found = self._find(who, key, request)
            if isinstance(found, Reply):
                return found
            task = found
        done, _ = await asyncio.wait({task}, timeout=wait)
        return task.result() if done else None

    def knows(self, who: str, key: str) -> bool:
        """Return whether a caller's key belongs to a finished request or one in progress."""
        if (who, key) in self._open:
            return True
        return self._stored(who, key) is not None

    def _now(self, tx: Transaction) -> float:
        """Return the seconds since 1970, without the time in which the nexus did not run since its newest reply."""
        if self._newest is None:
            newest = tx.newest_answer()
            self._newest = tx.now if newest is None else newest
        return self._newest + self._monotonic() - self._began

    def _find(self, who: str, key: str, request: IdempotentRequest) -> Reply | asyncio.Task[Reply]:
        opened = self._open.get((who, key))
        if opened is not None:
            _check_same(opened[0], request, key)
            return opened[1]
        row = self._stored(who, key)
        if row is not None:
            _check_same(row.fingerprint, request, key)
            if row.status != _IN_PROGRESS:
                return Reply(row.status, row.body, repeated=True)
            known = request.recall(json.loads(row.body))
            if known is not None:
                self._finish(who, key, known)
                return Reply(known.status, known.body, repeated=True)
        if len(self._open) >= _MAX_OPEN:
            raise KeyInUseError("Too many requests with idempotency keys are in progress.")
        self._begin(who, key, request, fresh=row is None)
        task = asyncio.ensure_future(self._do(who, key, request))
        self._open[who, key] = (request.fingerprint, task)
        self._hold(task)
        task.add_done_callback(lambda _: self._open.pop((who, key), None))
        return task

    def _stored(self, who: str, key: str) -> AnswerRecord | None:
        with self._nexus_store.look() as tx:
            return tx.answer(who, key, since=self._now(tx) - KEPT_SECONDS)

    async def _do(self, who: str, key: str, request: IdempotentRequest) -> Reply:
        try:
            reply = await request.do()
        except Exception as error:
            if 400 <= getattr(error, "http_status", 500) < 500:
                self._forget(who, key)
            raise
        self._finish(who, key, reply)
        return reply

    def _hold(self, task: asyncio.Task[Reply]) -> None:
        self._tasks.add(task)

        def discard(done: asyncio.Task[Reply]) -> None:
            self._tasks.discard(done)
            if not done.cancelled():
                done.exception()  # marks it as retrieved, if the caller is gone

        task.add_done_callback(discard)

    def _begin(self, who: str, key: str, request: IdempotentRequest, *, fresh: bool) -> None:
        values = {"fingerprint": request.fingerprint, "status": _IN_PROGRESS, "body": dumps(request.intend())}
        self._count += 1
        with self._nexus_store.change() as tx:
            now = self._now(tx)
            if fresh:
                tx.put_answer(who, key, created=now, **values)
            else:
                tx.change_answer(who, key, created=now, **values)
            if self._count % _SWEEP_EVERY == 1:
                tx.drop_answers_before(now - KEPT_SECONDS)

    def _finish(self, who: str, key: str, reply: Reply) -> None:
        with self._nexus_store.change() as tx:
            tx.change_answer(who, key, status=reply.status, body=reply.body)

    def _forget(self, who: str, key: str) -> None:
        with self._nexus_store.change() as tx:
            tx.drop_answer(who, key)


def _check_same(fingerprint: str, request: IdempotentRequest, key: str) -> None:
    if fingerprint != request.fingerprint:
        raise KeyReusedError(f"The idempotency key {key[:80]!r} was used for another request; choose a new one.")

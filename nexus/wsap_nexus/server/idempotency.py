"""Doing a thing once, however often it is asked for: answers kept under the caller's idempotency keys.

Before anything is done, what is intended is written down (status 0). When it is through, the answer
takes its place. Asked again with the same key: what is under way is waited for, what is through is
answered as before, and what was cut off by the end of the process is looked up in the log; it is done
anew only if it never happened. A refusal is not kept, because nothing was done.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, select, update

from wsap_core.protocol.wire import dumps
from wsap_nexus.http.refusals import KeyInUseError, KeyReusedError
from wsap_nexus.http.replies import Reply
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.store.tables import METADATA

_ANSWER = METADATA.tables["answer"]
KEPT_SECONDS = 24 * 3600.0
"""How long answers are kept."""
_UNDER_WAY = 0
_MOST_OPEN = 10_000
_SWEEP_EVERY = 500

Intent = Mapping[str, Any]
"""What has to be known to find out later whether it happened; JSON-ready."""


@dataclass(frozen=True)
class IdempotentRequest:
    """Something that is to be done once.

    It is described by what it is, how it is done, and how to find out what became of it.
    """

    what: str
    """The request: path and body. A key stands for one."""
    intend: Callable[[], Intent]
    """Says, just before it is done, what has to be known later."""
    do: Callable[[], Awaitable[Reply]]
    """Does it."""
    recall: Callable[[Intent], Reply | None]
    """Returns the answer to what happened before the process ended; None if it never happened."""

    @property
    def fingerprint(self) -> str:
        """What tells this request from others."""
        return hashlib.sha256(self.what.encode()).hexdigest()


class IdempotencyStore:
    """The answers of a nexus, by caller and key.

    Args:
        ledger: where they are kept.
        keep: for how many seconds.
    """

    def __init__(self, ledger: NexusStore, keep: float = KEPT_SECONDS) -> None:
        self._ledger = ledger
        self._keep = keep
        self._open: dict[tuple[str, str], tuple[str, asyncio.Task[Reply]]] = {}
        self._loose: set[asyncio.Task[Reply]] = set()
        self._count = 0

    async def once(self, who: str, key: str | None, errand: IdempotentRequest, wait: float) -> Reply | None:
        """Return the answer to an errand; None if it is still under way after `wait` seconds.

        Without a key it is done each time it is asked for.

        Raises:
            KeyReusedError: the key stands for another request.
            WsapError: it was refused.
        """
        if key is None:
            task = asyncio.ensure_future(errand.do())
            self._hold(task)
        else:
            found = self._find(who, key, errand)
            if isinstance(found, Reply):
                return found
            task = found
        done, _ = await asyncio.wait({task}, timeout=wait)
        return task.result() if done else None

    def knows(self, who: str, key: str) -> bool:
        """Return whether a key of a caller stands for something that was done, or is under way."""
        if (who, key) in self._open:
            return True
        with self._ledger.look() as book:
            row = book.connection.execute(select(_ANSWER.c.created).where(_where(who, key))).one_or_none()
            return row is not None and bool(row.created >= book.now - self._keep)

    def _find(self, who: str, key: str, errand: IdempotentRequest) -> Reply | asyncio.Task[Reply]:
        opened = self._open.get((who, key))
        if opened is not None:
            self._same(opened[0], errand, key)
            return opened[1]
        with self._ledger.look() as book:
            row = book.connection.execute(select(_ANSWER).where(_where(who, key))).one_or_none()
            now = book.now
        if row is not None and row.created < now - self._keep:
            row = None
        fresh = row is None
        if row is not None:
            self._same(row.fingerprint, errand, key)
            if row.status != _UNDER_WAY:
                return Reply(row.status, row.body, repeated=True)
            known = errand.recall(json.loads(row.body))
            if known is not None:
                self._finish(who, key, known)
                return Reply(known.status, known.body, repeated=True)
        if len(self._open) >= _MOST_OPEN:
            raise KeyInUseError("Too many requests with idempotency keys are under way.")
        self._begin(who, key, errand, fresh=fresh)
        task = asyncio.ensure_future(self._do(who, key, errand))
        self._open[who, key] = (errand.fingerprint, task)
        self._hold(task)
        task.add_done_callback(lambda _: self._open.pop((who, key), None))
        return task

    async def _do(self, who: str, key: str, errand: IdempotentRequest) -> Reply:
        try:
            reply = await errand.do()
        except Exception as error:
            if 400 <= getattr(error, "http_status", 500) < 500:
                self._forget(who, key)
            raise
        self._finish(who, key, reply)
        return reply

    def _hold(self, task: asyncio.Task[Reply]) -> None:
        self._loose.add(task)

        def let_go(done: asyncio.Task[Reply]) -> None:
            self._loose.discard(done)
            if not done.cancelled():
                done.exception()  # whoever waited may be gone

        task.add_done_callback(let_go)

    def _same(self, fingerprint: str, errand: IdempotentRequest, key: str) -> None:
        if fingerprint != errand.fingerprint:
            raise KeyReusedError(f"The idempotency key {key[:80]!r} was used for another request; choose a new one.")

    def _begin(self, who: str, key: str, errand: IdempotentRequest, *, fresh: bool) -> None:
        values = {"fingerprint": errand.fingerprint, "status": _UNDER_WAY, "body": dumps(errand.intend())}
        self._count += 1
        with self._ledger.change() as book:
            if fresh:
                book.connection.execute(delete(_ANSWER).where(_where(who, key)))
                book.connection.execute(insert(_ANSWER).values(scope=who, key=key, created=book.now, **values))
            else:
                book.connection.execute(update(_ANSWER).where(_where(who, key)).values(created=book.now, **values))
            if self._count % _SWEEP_EVERY == 1:
                book.connection.execute(delete(_ANSWER).where(_ANSWER.c.created < book.now - self._keep))

    def _finish(self, who: str, key: str, reply: Reply) -> None:
        with self._ledger.change() as book:
            values = {"status": reply.status, "body": reply.body}
            book.connection.execute(update(_ANSWER).where(_where(who, key)).values(**values))

    def _forget(self, who: str, key: str) -> None:
        with self._ledger.change() as book:
            book.connection.execute(delete(_ANSWER).where(_where(who, key)))


def _where(who: str, key: str) -> Any:
    # Any: SQLAlchemy's expressions.
    return (_ANSWER.c.scope == who) & (_ANSWER.c.key == key)

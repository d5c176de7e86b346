"""What the client knows of HTTP: how a request is put, what an answer means, when it is tried again."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import httpx2

from wsap_core.errors import WireError
from wsap_core.protocol.wire import dumps
from wsap_nexus.client.parts import Ask, Event, NoAnswerError, RefusedError, StillPendingError
from wsap_nexus.http.retries import Retries, Tries

# Any, in this module: JSON, and what httpx2 takes.

T = TypeVar("T")

WAIT = 20.0
"""Seconds that the nexus is asked to wait before it answers 202."""
PENDING = object()
"""Stands for an answer that is not there yet."""


def options(base_url: str, token: str | None) -> dict[str, Any]:
    """Return how a client of httpx2 is made."""
    headers = {"Accept": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return {"base_url": base_url.rstrip("/"), "headers": headers, "timeout": httpx2.Timeout(WAIT + 15, connect=5)}


def put(ask: Ask[Any]) -> dict[str, Any]:
    """Return a request as httpx2 takes it."""
    headers = {} if ask.key is None else {"Idempotency-Key": ask.key}
    params = {**ask.params, **({"wait": WAIT} if ask.waits else {})}
    request: dict[str, Any] = {"method": ask.method, "url": ask.path, "headers": headers, "params": params}
    if ask.body is not None:
        headers["Content-Type"] = "application/json"
        request["content"] = dumps(ask.body)
    return request


class Attempt:
    """One request's tries: what to make of each, and how long to wait before the next.

    Args:
        within: seconds for all of it; None for as long as it takes.
    """

    def __init__(
        self,
        ask: Ask[Any],
        retries: Retries,
        within: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._tries = Tries(retries, repeatable=ask.repeatable, chance=random.random)
        self._clock = clock
        self._until = None if within is None else clock() + within

    def failed(self, error: httpx2.TransportError) -> float:
        """Return how long to wait after no answer came.

        Raises:
            NoAnswerError: it was tried often enough, or may have been done and must not be sent again.
        """
        wait = self._tries.unanswered(error)
        if wait is None:
            raise NoAnswerError(f"The nexus does not answer: {str(error) or type(error).__name__}") from error
        return wait

    def answered(self, response: httpx2.Response) -> Any:
        """Return what an answer says, `PENDING`, or the seconds (a float) to wait before the next try.

        Raises:
            RefusedError: the nexus refused.
            StillPendingError: it is not through in time.
            NoAnswerError: what answers is no nexus.
        """
        data = self._json(response)
        if response.status_code == 202:
            if self._until is not None and self._clock() >= self._until:
                raise StillPendingError(str(data.get("message") or "It is not through yet."))
            return PENDING
        if response.status_code < 400:
            try:
                return Answer(self._ask.read(data))
            except (KeyError, TypeError, AttributeError, WireError) as error:
                raise NoAnswerError(f"The nexus answered {self._ask.path} with what can't be read: {error}") from error
        refused = refusal(response.status_code, data)
        wait = self._tries.refused(retryable=refused.retry, after=response.headers.get("retry-after", ""))
        if wait is None:
            raise refused
        return wait

    def _json(self, response: httpx2.Response) -> dict[str, Any]:
        try:
            data = json.loads(response.content)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise NoAnswerError(f"What answers at {response.url} ({response.status_code}) is no nexus.")
        return data


class Answer:
    """What a request came to."""

    def __init__(self, value: Any) -> None:
        self.value = value


def refusal(status: int, data: Mapping[str, Any]) -> RefusedError:
    """Return the error that a refusal stands for."""
    error = data.get("error")
    known: Mapping[str, Any] = error if isinstance(error, dict) else {}
    details = known.get("details")
    return RefusedError(
        str(known.get("message") or f"The nexus refused ({status})."),
        str(known.get("code") or "UNKNOWN"),
        status,
        retry=known.get("retry") is True,
        details=details if isinstance(details, dict) else {},
    )


def read_event(data: str) -> Event | None:
    """Return the event that a part of a stream holds; None for a sign of life."""
    if not data:
        return None
    known = json.loads(data)
    return Event(**{name: known[name] for name in Event.__dataclass_fields__ if name in known})

"""A command's connection to a nexus: over HTTP to a running one, else to its database."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from wsap_core.errors import UnknownNameError, UsageError, WsapError
from wsap_core.untrusted import single_line
from wsap_nexus import state
from wsap_nexus.cli.common import open_for_reading
from wsap_nexus.paths import database_location

if TYPE_CHECKING:
    from wsap_nexus.store.nexus_store import NexusStore, Transaction


def running_on(database: str | None) -> NexusHttp | None:
    """Return the nexus that is running on a database; None if there is none."""
    running = state.read(state.state_file(database_location(database, os.environ), os.environ))
    return None if running is None else NexusHttp(running)


@contextmanager
def reading(database: str | None) -> Iterator[NexusStore | None]:
    """Yield the store of the nexus for reading; None if there is none yet."""
    from wsap_nexus.store.nexus_store import NexusStore

    opened = open_for_reading(database)
    if opened is None:
        yield None
        return
    with opened:
        yield NexusStore(opened)


@contextmanager
def looking(database: str | None, name: str) -> Iterator[Transaction]:
    """Yield a transaction for reading an agent; UnknownNameError if there is no nexus yet, and so no agent."""
    with reading(database) as nexus_store:
        if nexus_store is None:
            raise UnknownNameError("agent", name, ())
        with nexus_store.look() as tx:
            yield tx


@contextmanager
def writing(database: str | None, *, lock: bool = True) -> Iterator[NexusStore]:
    """Yield the store of the nexus for writing; `lock` excludes a running nexus (NexusRunningError)."""
    from wsap_nexus.runs.store import open_database
    from wsap_nexus.store.locks.nexus_lock import instance_lock
    from wsap_nexus.store.nexus_store import NexusStore

    with open_database(database) as opened:
        instance = instance_lock(opened)
        if lock:
            instance.acquire()
        try:
            nexus_store = NexusStore(opened)
            if lock:
                _settle(nexus_store)
            yield nexus_store
        finally:
            if lock:
                instance.release()


def _settle(nexus_store: NexusStore) -> None:
    """Close the sessions of runs outside the nexus whose process was killed."""
    with nexus_store.look() as tx:
        if not tx.run_sessions():
            return
    from wsap_core.host import PluginHost
    from wsap_nexus.hub.outside.run_sessions import settle_runs
    from wsap_nexus.store.repository import Repository

    settle_runs(nexus_store, Repository(nexus_store.database), PluginHost.discovered())


def require_nexus(database: str | None, what: str) -> NexusHttp:
    """Return the HTTP client of the nexus that runs on a database; UsageError, which names `what`, if there is none."""
    nexus = running_on(database)
    if nexus is None:
        raise UsageError(f"A running nexus is needed to {what}; start it with: wsap nexus start")
    return nexus


TIMEOUT = 60.0
"""Seconds to wait for a response; an agent may finish a decision first."""

HEALTH_TIMEOUT = 10.0
"""Seconds to wait for its health: a busy machine needs some, and a nexus that hangs never responds."""

_LARGEST = 1 << 28


class NoAnswerError(WsapError):
    """The nexus is running, but does not respond."""

    code = "NO_ANSWER"
    retryable = True


class RefusedError(WsapError):
    """The nexus refused a request.

    The message is that of the nexus.
    """

    code = "REFUSED"
    exit_code = 2

    def __init__(self, message: str, reason: str = "REFUSED", health: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        """The error code of the nexus."""
        self.health = health
        """The nexus' health, in response to a request for it. Any: the shape is the API's."""


class NexusHttp:
    """The HTTP API of a running nexus."""

    def __init__(self, running: state.Running) -> None:
        self.running = running

    def health(self) -> dict[str, Any] | None:
        """Return its health; None if it does not respond in time. Any: the shape is the API's."""
        try:
            found: dict[str, Any] = self.get("nexus", "health", timeout=HEALTH_TIMEOUT)
            return found
        except RefusedError as error:
            return error.health
        except NoAnswerError:
            return None

    def events(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the events of one kind from now on, until the connection ends. Any: the shape is the API's.

        Raises:
            NoAnswerError: the connection broke.
            RefusedError: the nexus refused, or its token can't be read.
        """
        with self._opened("GET", f"nexus/events?kind={quote(kind, safe='')}", None, TIMEOUT) as answer:
            for line in answer:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

    def _ask(self, method: str, *path: str, body: object = None, timeout: float = TIMEOUT) -> Any:
        """Send a request and return the response, both JSON. Any: the shape is the API's."""
        if unknown := next((part for part in path if "/" in part), ""):  # no path leads to such a name
            raise UnknownNameError(path[1].removesuffix("s"), unknown, ())
        place = "/".join(quote(part, safe="") for part in path)
        with self._opened(method, place, body, timeout) as answer:
            return json.loads(answer.read(_LARGEST) or b"null")

    @contextmanager
    def _opened(self, method: str, place: str, body: object, timeout: float) -> Iterator[Any]:
        """Yield the response to a request, to be read within the block. Any: urllib's response."""
        import urllib.error  # deferred for weight, as is the next
        import urllib.request

        headers = {"Accept": "application/json", "Authorization": f"Bearer {self._token()}"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.running.url + place, data, headers, method=method)  # noqa: S310 our own
        try:
            # Never through a proxy: the nexus is on this machine.
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(request, timeout=timeout) as answer:
                yield answer
        except urllib.error.HTTPError as error:
            raise _refusal(error) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise NoAnswerError(
                f"The nexus at {self.running.url} (process {self.running.pid}) does not respond: "
                f"{single_line(reason)}. "
                "If it hangs, kill it with: wsap nexus stop --force"
            ) from None

    get = partialmethod(_ask, "GET")
    post = partialmethod(_ask, "POST", body={})
    put = partialmethod(_ask, "PUT")
    patch = partialmethod(_ask, "PATCH")
    delete = partialmethod(_ask, "DELETE")

    def _token(self) -> str:
        path = state.token_file(os.environ)
        try:
            return path.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            raise RefusedError(
                f"The token of the nexus can't be read from {path}; was it started with the same WSAP_HOME?"
            ) from None


def _refusal(error: Any) -> WsapError:
    # Any: urllib's HTTPError.
    try:
        body = json.loads(error.read(_LARGEST))
        if error.code == 503 and "status" in body:  # it runs, but can't use its database
            return RefusedError(single_line(body["reason"]), "DEGRADED", body)
        told = body["error"]
        message, code = str(told["message"]), str(told["code"])
    except (OSError, ValueError, KeyError, TypeError):
        message, code = f"The nexus answered {error.code}.", "REFUSED"
    if code == "UNAUTHORIZED":
        message += " Was the nexus started with the same WSAP_HOME?"
    return RefusedError(single_line(message), code)

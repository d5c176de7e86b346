"""The HTTP client of a running nexus, with the operator's token."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from functools import partialmethod
from typing import Any
from urllib.parse import quote

from wsap_core.errors import WsapError
from wsap_core.untrusted import single_line
from wsap_nexus.state import Running, token_file

TIMEOUT = 60.0
"""Seconds to wait for a response; an agent may have to finish a decision first."""

_LARGEST = 1 << 28


class NoAnswerError(WsapError):
    """The nexus is running, and does not respond."""

    code = "NO_ANSWER"
    retryable = True


class RefusedError(WsapError):
    """The nexus refused a request; the message is its own."""

    code = "REFUSED"
    exit_code = 2

    def __init__(self, message: str, reason: str = "REFUSED", health: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        """The error code of the nexus."""
        self.health = health
        """Its health, in answer to a question about that. Any: the shape is the API's."""


class NexusHttp:
    """The HTTP API of a running nexus."""

    def __init__(self, running: Running) -> None:
        self.running = running
        # Never through a proxy: the nexus is on this machine.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def health(self) -> dict[str, Any] | None:
        """Return its health, from JSON; None if it does not respond within two seconds. Any: the shape is the API's."""
        try:
            found: dict[str, Any] = self.get("nexus", "health", timeout=2.0)
            return found
        except RefusedError as error:
            return error.health
        except NoAnswerError:
            return None

    def _ask(self, method: str, *path: str, body: object = None, timeout: float = TIMEOUT) -> Any:
        """Send a request, with a JSON body if there is one, and return the response, from JSON.

        Any: the shape is the API's.
        """
        url = self.running.url + "/".join(quote(part, safe="") for part in path)
        headers = {"Accept": "application/json", "Authorization": f"Bearer {self._token()}"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 our own address
        try:
            with self._opener.open(request, timeout=timeout) as answer:
                return json.loads(answer.read(_LARGEST) or b"null")
        except urllib.error.HTTPError as error:
            raise _refusal(error) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise NoAnswerError(
                f"The nexus at {self.running.url} (process {self.running.pid}) does not respond: "
                f"{single_line(reason)}. "
                "If it hangs, end it with: wsap nexus stop --force"
            ) from None

    get = partialmethod(_ask, "GET")
    post = partialmethod(_ask, "POST", body={})
    put = partialmethod(_ask, "PUT")
    delete = partialmethod(_ask, "DELETE")

    def _token(self) -> str:
        path = token_file(os.environ)
        try:
            return path.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            raise RefusedError(
                f"The token of the nexus can't be read from {path}; was it started with the same WSAP_HOME?"
            ) from None


def _refusal(error: urllib.error.HTTPError) -> WsapError:
    try:
        body = json.loads(error.read(_LARGEST))
        if error.code == 503 and "status" in body:  # it runs, and can't read or write its database
            return RefusedError(single_line(body["reason"]), "DEGRADED", body)
        told = body["error"]
        message, code = str(told["message"]), str(told["code"])
    except (OSError, ValueError, KeyError, TypeError):
        message, code = f"The nexus answered {error.code}.", "REFUSED"
    if code == "UNAUTHORIZED":
        message += " Was the nexus started with the same WSAP_HOME?"
    return RefusedError(single_line(message), code)

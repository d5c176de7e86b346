"""A running nexus, asked over HTTP with the token of whoever runs it."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

from wsap_core.errors import WsapError
from wsap_core.untrusted import one_line
from wsap_nexus.state import Running, token_file

PATIENCE = 60.0
"""Seconds that an answer may take; an agent may have to finish a decision first."""

_LARGEST = 1 << 28


class NoAnswerError(WsapError):
    """The nexus runs, and does not answer."""

    code = "NO_ANSWER"
    retryable = True


class RefusedError(WsapError):
    """The nexus refused what was asked; the message is its own."""

    code = "REFUSED"
    exit_code = 2

    def __init__(self, message: str, told: str = "REFUSED") -> None:
        super().__init__(message)
        self.told = told
        """The code that the nexus gave."""


class Wire:
    """The wire API of a running nexus.

    Args:
        running: where it is.
    """

    def __init__(self, running: Running) -> None:
        self.running = running
        """Where it is."""
        # Never through a proxy: the nexus is on this machine.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, *path: str, patience: float = PATIENCE) -> Any:
        """Return what is at a path, from JSON. Any: the shape is the API's.

        Raises:
            RefusedError: it refuses.
            NoAnswerError: it does not answer.
        """
        return self._ask("GET", path, None, patience)

    def post(self, *path: str, body: object = None, patience: float = PATIENCE) -> Any:
        """Send JSON to a path and return the answer, from JSON. Any: the shape is the API's.

        Raises:
            RefusedError: it refuses.
            NoAnswerError: it does not answer.
        """
        return self._ask("POST", path, body if body is not None else {}, patience)

    def put(self, *path: str, body: object, patience: float = PATIENCE) -> Any:
        """Put JSON in the place of what is at a path and return the answer. Any: the shape is the API's.

        Raises:
            RefusedError: it refuses.
            NoAnswerError: it does not answer.
        """
        return self._ask("PUT", path, body, patience)

    def delete(self, *path: str, patience: float = PATIENCE) -> Any:
        """Take away what is at a path and return the answer, from JSON. Any: the shape is the API's.

        Raises:
            RefusedError: it refuses.
            NoAnswerError: it does not answer.
        """
        return self._ask("DELETE", path, None, patience)

    def answers(self) -> bool:
        """Return whether it answers within a moment."""
        try:
            self.get("nexus", patience=2.0)
        except WsapError:
            return False
        return True

    def _ask(self, method: str, path: tuple[str, ...], body: object, patience: float) -> Any:
        url = self.running.url + "/".join(quote(part, safe="") for part in path)
        headers = {"Accept": "application/json", "Authorization": f"Bearer {self._token()}"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 our own address
        try:
            with self._opener.open(request, timeout=patience) as answer:
                return json.loads(answer.read(_LARGEST) or b"null")
        except urllib.error.HTTPError as error:
            raise _refusal(error) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise NoAnswerError(
                f"The nexus at {self.running.url} (process {self.running.pid}) does not answer: {one_line(reason)}. "
                "If it hangs, end it with: wsap nexus stop --force"
            ) from None

    def _token(self) -> str:
        path = token_file(os.environ)
        try:
            return path.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            raise RefusedError(
                f"The token of the nexus can't be read from {path}; is WSAP_HOME the one that it was started with?"
            ) from None


def _refusal(error: urllib.error.HTTPError) -> WsapError:
    try:
        told = json.loads(error.read(_LARGEST))["error"]
        message, code = str(told["message"]), str(told["code"])
    except (OSError, ValueError, KeyError, TypeError):
        message, code = f"The nexus answered {error.code}.", "REFUSED"
    if code == "UNAUTHORIZED":
        message += " Is WSAP_HOME the one that the nexus was started with?"
    return RefusedError(one_line(message), code)

"""A connection to an environment that is served somewhere, in plain calls."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

import httpx2
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from wsap_core.errors import ConfigError, PluginError, WorldError
from wsap_core.untrusted import error_line, single_line
from wsap_nexus.http.refusals import NotJsonError
from wsap_nexus.http.strict import read_json

# Any, in this module: JSON.

LONGEST = 2**22
"""Maximum bytes of an answer."""


class RefusedError(Exception):
    """The environment refuses a message, and goes on."""


class Connection:
    """One session of an environment's server.

    Args:
        url: its address, such as http://127.0.0.1:8000.
        timeout: seconds to wait for an answer.

    Raises:
        ConfigError: the address is invalid.
        PluginError: nobody answers there, or it is no OpenEnv server.
    """

    def __init__(self, url: str, timeout: float) -> None:
        try:
            address = httpx2.URL(url.rstrip("/"))
        except httpx2.InvalidURL:
            address = httpx2.URL("")
        if address.scheme not in ("http", "https") or not address.host:
            raise ConfigError(f"{single_line(url)[:200]!r} is no address of a server, such as http://127.0.0.1:8000.")
        self._url, self._timeout = str(address).rstrip("/"), timeout
        self._socket: ClientConnection | None = None
        self._held = contextlib.ExitStack()
        self.schema = self._described("schema")
        """The JSON Schemas of actions and observations."""
        self.metadata = self._described("metadata")
        """The environment's name and description."""

    def _described(self, what: str) -> Mapping[str, Any]:
        try:
            with httpx2.Client(timeout=self._timeout) as client, client.stream("GET", f"{self._url}/{what}") as answer:
                answer.raise_for_status()
                body = b""
                for part in answer.iter_bytes():
                    body += part
                    if len(body) > LONGEST:
                        raise PluginError(f"{self._url} answers with more than {LONGEST} bytes.")
            data = read_json(body)
        except httpx2.HTTPError as error:
            raise PluginError(f"No OpenEnv environment answers at {self._url}: {error_line(error, 200)}") from error
        except NotJsonError as error:
            raise PluginError(f"{self._url}/{what} is not of OpenEnv: {error}") from error
        if not isinstance(data, dict):
            raise PluginError(f"{self._url}/{what} is not of OpenEnv: it is no JSON object.")
        return data

    def ask(self, kind: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to a message.

        Raises:
            RefusedError: the environment says that the message is invalid.
            WorldError: it has failed, is gone, or takes too long.
        """
        try:
            socket = self._opened()
            socket.send(json.dumps({"type": kind, "data": dict(data)}))
            answer = read_json(_bytes(socket.recv(self._timeout)))
        except TimeoutError as error:
            self.close()  # a late answer would be taken for that of the next message
            raise WorldError(f"{self._url} did not answer within {self._timeout:g} seconds.") from error
        except (WebSocketException, OSError, EOFError) as error:
            self.close()
            raise WorldError(f"The connection to {self._url} is lost: {error_line(error, 200)}") from error
        except NotJsonError as error:
            raise WorldError(f"{self._url} answers with what is not JSON: {error}") from error
        told = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(told, dict):
            raise WorldError(f"{self._url} answers with what is not of OpenEnv.")
        if answer.get("type") != "error":
            return told
        said = single_line(str(told.get("message", "no reason given")))[:300]
        if told.get("code") == "VALIDATION_ERROR":
            raise RefusedError(said)
        raise WorldError(f"{self._url} has failed: {said} ({single_line(str(told.get('code')))[:40]})")

    def close(self) -> None:
        """Leave the environment."""
        self._socket = None
        with contextlib.suppress(WebSocketException, OSError):
            self._held.close()

    def _opened(self) -> ClientConnection:
        if self._socket is None:
            address = f"ws{self._url.removeprefix('http')}/ws"
            opening = connect(address, open_timeout=self._timeout, close_timeout=2, max_size=LONGEST)
            self._socket = self._held.enter_context(opening)
        return self._socket


def _bytes(message: str | bytes) -> bytes:
    return message.encode() if isinstance(message, str) else message

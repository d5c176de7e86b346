"""What is said on a web socket: the messages of one client, answered one after the other."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Mapping
from typing import Any, Protocol

from fastapi import WebSocket, WebSocketDisconnect

from wsap_core.errors import UsageError, WsapError
from wsap_core.protocol import Action, ActionSpace
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import strip_control
from wsap_nexus.http.refusals import NotJsonError
from wsap_nexus.http.strict import read_json
from wsap_openenv.messages import InvalidError, action_of, observation_of, reset_of, state_of
from wsap_openenv.rpc import CALL, LIST, called, result_text, rpc_error, rpc_request, rpc_response, tools_of
from wsap_openenv.sessions import Session, Sessions, Told
from wsap_openenv.tasks import NoTaskError

# Any, in this module: JSON.

_LOG = logging.getLogger("wsap.openenv")
WAITING = 16
"""Messages that may wait while one is answered; a client that sends more waits itself."""
Reply = dict[str, Any]


class Describes(Protocol):
    """What is known of the game."""

    spec: AdapterSpec
    space: ActionSpace


class _Closed(Exception):
    """The client has said that it is through."""


class Conversation:
    """Answers the messages of a client."""

    def __init__(self, sessions: Sessions, served: Describes) -> None:
        self._sessions, self._served = sessions, served

    async def probe(self, data: Mapping[str, Any]) -> Reply:
        """Return what a reset tells, of an episode that is not kept.

        Raises:
            FullError: there are too many sessions.
            WsapError: the parameters are invalid, or the game can't be played.
        """
        seed, episode = reset_of(data)
        session = self._sessions.open()
        try:
            told = self._observation(session, await session.reset(seed, episode))
        finally:
            await asyncio.shield(session.close(keep=False))
        told["metadata"].pop("run")
        return told

    async def held(self, socket: WebSocket, session: Session) -> None:
        """Answer all messages until the client leaves or is lost, or nobody has used the session for long.

        The session is closed then, even in the middle of an action.
        """
        given = asyncio.Queue[str | bytes](WAITING)
        listening = asyncio.create_task(self._listen(socket, given))
        answering = asyncio.create_task(self._answer_all(socket, session, given))
        expiring = asyncio.create_task(session.expired.wait())
        try:
            await asyncio.wait({listening, answering, expiring}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (listening, answering, expiring):
                task.cancel()
            await asyncio.wait({listening, answering, expiring})
            await asyncio.shield(session.close())
            if not answering.cancelled() and (error := answering.exception()) is not None:
                _LOG.error("A session ended with an unexpected error.", exc_info=error)
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await socket.close()

    async def _listen(self, socket: WebSocket, given: asyncio.Queue[str | bytes]) -> None:
        """Queue what arrives, until the client is gone."""
        while (message := await socket.receive())["type"] != "websocket.disconnect":
            await given.put(message.get("text") or message.get("bytes") or "")

    async def _answer_all(self, socket: WebSocket, session: Session, given: asyncio.Queue[str | bytes]) -> None:
        with contextlib.suppress(_Closed, WebSocketDisconnect):
            while True:
                text = await given.get()
                session.used, session.busy = self._sessions.now(), True
                reply, ends = await self._reply(session, text)
                session.used, session.busy = self._sessions.now(), False
                await socket.send_text(json.dumps(reply))
                if ends:
                    return

    async def _reply(self, session: Session, text: str | bytes) -> tuple[Reply, bool]:
        """Return the reply to a message, and whether it ends the session."""
        try:
            data = read_json(text.encode() if isinstance(text, str) else text)
            if not isinstance(data, dict):
                raise InvalidError("A message is a JSON object with a type.")
            return await self._answer(session, data), False
        except NotJsonError as error:
            return _error("INVALID_JSON", str(error).replace("The body", "The message", 1)), False
        except (InvalidError, NoTaskError) as error:
            return _error("VALIDATION_ERROR", str(error)), False
        except UsageError as error:
            return _error("EXECUTION_ERROR", str(error)), False
        except WsapError as error:
            # The game or another player has failed, so no reward would be true.
            return _error("EXECUTION_ERROR", str(error)), True

    async def _answer(self, session: Session, message: Mapping[str, Any]) -> Reply:
        kind, data = message.get("type"), message.get("data", {})
        if not isinstance(data, dict):
            raise InvalidError("The data of a message is an object.")
        match kind:
            case "reset":
                told = await session.reset(*reset_of(data))
                return {"type": "observation", "data": self._observation(session, told)}
            case "step":
                return {"type": "observation", "data": await self._step(session, data)}
            case "state":
                return {"type": "state", "data": state_of(session, self._served.spec.name)}
            case "mcp":
                try:
                    asked = rpc_request(data)
                except ValueError as error:
                    return {"type": "mcp", "data": rpc_error(None, error)}
                answer = await rpc_response(asked, self._served.space, lambda action: self._taken(session, action))
                return {"type": "mcp", "data": answer}
            case "close":
                raise _Closed
        return _error("UNKNOWN_TYPE", f"There is no message of the type {str(kind)[:60]!r}.")

    async def _step(self, session: Session, data: Mapping[str, Any]) -> Reply:
        if data.get("type") == LIST:
            tools = tools_of(self._served.space, "input_schema")
            return {"observation": {"tools": tools, "metadata": {}}, "reward": None, "done": False}
        if data.get("type") != CALL:
            return await self._taken(session, action_of(data))
        try:
            action = called(data.get("tool_name"), data.get("arguments", {}))
        except ValueError as error:
            raise InvalidError(str(error)) from None
        told = await self._taken(session, action)
        seen = told["observation"]
        more = {"tool_name": action.name, "result": result_text(seen), "error": None}
        return {**told, "observation": {**seen, **more}}

    async def _taken(self, session: Session, action: Action) -> Reply:
        return self._observation(session, await session.step(action))

    def _observation(self, session: Session, told: Told) -> Reply:
        return observation_of(session, told, self._served.space, structured=self._sessions.terms.structured)


def _error(code: str, message: str) -> Reply:
    return {"type": "error", "data": {"message": strip_control(message)[:2000], "code": code}}

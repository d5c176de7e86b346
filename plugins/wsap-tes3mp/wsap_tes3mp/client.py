"""A client for bridges over HTTP: any with the seed's three endpoints, and ours with the additions of 1.1.0."""

from __future__ import annotations

import contextlib
import random
import secrets
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx2
from pydantic import JsonValue, ValidationError
from typing_extensions import override

from wsap_core.errors import UsageError
from wsap_core.protocol.wire import dumps
from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.untrusted import single_line
from wsap_nexus.http.listening import is_loopback
from wsap_nexus.http.refusals import NotJsonError
from wsap_nexus.http.retries import Retries, Tries, never_sent
from wsap_nexus.http.strict import read_json
from wsap_nexus.state import read
from wsap_tes3mp.engines.engine import BridgePort
from wsap_tes3mp.paths import serving_file, token_file
from wsap_tes3mp.protocol import errors
from wsap_tes3mp.protocol.bridge import AgentInfo, AgentList, BridgeStatus, ItemsReceipt, ItemsRequest, JoinRequest
from wsap_tes3mp.protocol.commands import FINAL, CommandAccepted, CommandInput, Outcome
from wsap_tes3mp.protocol.errors import PROTOCOL_VERSION, SEED_VERSION, check_version
from wsap_tes3mp.protocol.perception import Payload, PerceptionOutput

P = TypeVar("P", bound=Payload)
LARGEST = 8 * 2**20
"""Maximum bytes read of a response."""
LONGEST_WAIT = 20.0
"""Maximum seconds the bridge is asked to wait for an outcome in one request."""
_ERRORS = {error.code: error for error in (*errors.SEED_CODES, *errors.ADDED_CODES)}


class BridgeRefusedError(errors.BridgeError, code="BRIDGE_REFUSED", http_status=502):
    """The bridge refused with a code we don't know, or the server is not a bridge.

    Args:
        message: the bridge's message.
        told: its code; "" if none.
        status: the HTTP status.
        retry: whether the bridge says that the request may succeed later.
    """

    def __init__(self, message: str, *, told: str = "", status: int = 0, retry: bool = False) -> None:
        super().__init__(message, {"code": told, "status": status})
        self.told, self.status, self.retry = told, status, retry


class BridgeClient(AsyncExitStack, BridgePort):
    """A bridge over HTTP; an asynchronous context manager.

    Responses with a retryable code are retried by the seed's policy. A bridge with only the seed's endpoints is sent
    each command once: without a response, or with status 500, `UnknownOutcomeError` is raised. Our bridge is sent
    commands with an idempotency key, repeated by the same policy until a response arrives.

    Args:
        url: such as `http://127.0.0.1:8765`.
        token: the bridge's token; required for changes.
        clock: for waits.
        chance: returns numbers from 0 to 1, for jitter.
        keys: returns idempotency keys.
        timeout: seconds after which a response counts as lost.
        transport: replaces the network.
        strict: whether payloads have to fit the schema exactly; else a text is taken for the number in it.

    Raises:
        UsageError: an invalid URL.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
        keys: Callable[[], str] = secrets.token_hex,
        timeout: float = 10.0,
        transport: httpx2.AsyncBaseTransport | None = None,
        strict: bool = False,
    ) -> None:
        super().__init__()
        self.url = _checked(url)
        headers = {"Accept": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._http = httpx2.AsyncClient(
            base_url=self.url, headers=headers, timeout=httpx2.Timeout(timeout, connect=5), transport=transport
        )
        self.push_async_callback(self._http.aclose)
        self._timeout, self._strict = timeout, strict
        self._clock, self._chance, self._keys = clock or SystemClock(), chance, keys
        self._offers: bool | None = None

    @override
    async def perception(self, agent_id: str | None = None) -> PerceptionOutput:
        params = {} if agent_id is None else {"agent_id": agent_id}
        seen = self._read(PerceptionOutput, await self._ask("GET", "/perception", params=params))
        if agent_id not in (None, seen.agent_id):
            told = f"The bridge was asked for the perception of {agent_id!r} and returned that of {seen.agent_id!r}."
            raise errors.SchemaMismatchError(told)
        return seen

    @override
    async def command(self, command: CommandInput, *, key: str | None = None) -> CommandAccepted:
        ours = await self.offers_additions()
        added = {} if ours else {"context": {"perception_sequence"}}
        key = (key or self._keys()) if ours else None
        body = command.model_dump(mode="json", exclude_none=True, exclude=added)
        if not ours and command.protocol_version == PROTOCOL_VERSION:
            body["protocol_version"] = SEED_VERSION
        answer = await self._ask("POST", "/command", body=body, key=key)
        try:
            return CommandAccepted.exactly(answer) if self._strict else CommandAccepted.model_validate(answer)
        except ValidationError as error:
            told = f"The bridge's answer to the command can't be read ({errors.first_problem(error)})"
            raise errors.UnknownOutcomeError(f"{told}; it may have accepted the command.") from None

    @override
    async def status(self) -> BridgeStatus:
        status = self._read(BridgeStatus, await self._ask("GET", "/morrowind/status"))
        self._offers = status.abilities is not None
        return status

    @override
    async def outcome(self, command_id: str, *, wait: float = 0.0) -> Outcome:
        until = self._clock.now() + wait
        while True:
            left = min(LONGEST_WAIT, max(0.0, until - self._clock.now()))
            params = {"wait": str(left)}
            outcome = await self._added(Outcome, "GET", f"/command/{quote(command_id, '')}", params=params, longer=left)
            if outcome.state in FINAL or self._clock.now() >= until or wait <= 0:
                return outcome

    @override
    async def agents(self) -> list[AgentInfo]:
        return list((await self._added(AgentList, "GET", "/agents")).agents)

    @override
    async def join(self, request: JoinRequest) -> AgentInfo:
        return await self._added(AgentInfo, "POST", "/agents", request)

    @override
    async def leave(self, agent_id: str, mode: str = "dormant") -> None:
        await self._added(Payload, "DELETE", f"/agents/{quote(agent_id, '')}", params={"mode": mode})

    @override
    async def respawn(self, agent_id: str) -> AgentInfo:
        return await self._added(AgentInfo, "POST", f"/agents/{quote(agent_id, '')}/respawn")

    @override
    async def transfer(self, agent_id: str, request: ItemsRequest) -> ItemsReceipt:
        return await self._added(ItemsReceipt, "POST", f"/agents/{quote(agent_id, '')}/items", request)

    async def offers_additions(self) -> bool:
        """Return whether the bridge has the additions of 1.1.0; asks once, and again after a lost connection."""
        if self._offers is None:
            await self.status()
        return self._offers is True

    async def _added(
        self, model: type[P], method: str, path: str, body: Payload | None = None, **how: Any
    ) -> P:  # Any: as `_ask` takes it
        if not await self.offers_additions():
            told = f"The bridge at {self.url} has only the endpoints of protocol 1.0.0, not {method} {path}."
            raise errors.NotOfferedError(told)
        sent = None if body is None else body.model_dump(mode="json", exclude_none=True)
        return self._read(model, await self._ask(method, path, body=sent, **how))

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: JsonValue = None,
        key: str | None = None,
        longer: float = 0.0,
    ) -> dict[str, Any]:  # Any: JSON
        headers = {} if key is None else {"Idempotency-Key": key}
        request: dict[str, Any] = {"params": dict(params or {}), "headers": headers}
        if method == "POST":
            headers["Content-Type"] = "application/json"
            request["content"] = dumps({} if body is None else body)
        if longer:
            request["timeout"] = httpx2.Timeout(self._timeout + longer, connect=5)
        commands, perhaps = path == "/command", False
        repeatable = not commands or key is not None
        tries = Tries(Retries(), repeatable=repeatable, chance=self._chance)
        while True:
            try:
                status, after, content = await self._send(method, path, request)
            except httpx2.TransportError as error:
                perhaps = perhaps or (commands and not never_sent(error))
                wait, ours = tries.unanswered(error), True
                if wait is not None:
                    await self._clock.sleep(wait)
                if wait is not None and key is not None:
                    # Another bridge may be answering now, one without idempotency keys.
                    self._offers, ours = None, False
                    with contextlib.suppress(errors.BridgeError):
                        ours = await self.offers_additions()
                if wait is None or not ours:
                    raise self._lost(error, perhaps=perhaps) from error
                continue
            if status < 400:
                return self._data(content, status, repeatable=repeatable)
            refused = _refusal(content, status)
            own = refused if isinstance(refused, BridgeRefusedError) else None
            retryable = (own.retry if own else refused.retryable) and not (method == "POST" and status == 500)
            # The seed sets the pauses of its codes; other codes may ask for longer ones.
            wait = tries.refused(retryable=retryable, after=after if own else "")
            if wait is None:
                if not repeatable and status >= 500 and (own or isinstance(refused, errors.BridgeInternalError)):
                    told = f"The bridge failed ({status}: {refused}); it may have accepted the command."
                    raise errors.UnknownOutcomeError(told) from refused
                raise refused
            await self._clock.sleep(wait)

    async def _send(self, method: str, path: str, request: Mapping[str, Any]) -> tuple[int, str, bytes]:
        async with self._http.stream(method, path, **request) as response:
            content = bytearray()
            async for part in response.aiter_bytes():
                content += part
                if len(content) > LARGEST:
                    raise httpx2.ReadError(f"the answer is over {LARGEST} bytes")
            return response.status_code, response.headers.get("retry-after", ""), bytes(content)

    def _lost(self, error: httpx2.TransportError, *, perhaps: bool) -> errors.BridgeError:
        """Return the error for an unanswered request; `perhaps` it was a command that was accepted."""
        self._offers = None
        reason = single_line(str(error)) or type(error).__name__
        if not perhaps:
            return errors.BridgeUnavailableError(f"The bridge at {self.url} does not answer: {reason}.")
        return errors.UnknownOutcomeError(
            f"The answer of the bridge at {self.url} was lost ({reason}); it may have accepted the command."
        )

    def _data(self, content: bytes, status: int, *, repeatable: bool) -> dict[str, Any]:  # Any: JSON
        reason = "It is not a JSON object."
        try:
            data = read_json(content) if content else {}
        except NotJsonError as error:
            data, reason = None, str(error)
        if isinstance(data, dict) and status < 300:
            return data
        if not repeatable:
            told = f"The bridge's answer can't be read: {reason} It may have accepted the command."
            raise errors.UnknownOutcomeError(told)
        raise errors.SchemaMismatchError(f"The server at {self.url} is not a bridge (status {status}): {reason}")

    def _read(self, model: type[P], data: Mapping[str, Any]) -> P:
        """Return a payload of the bridge, after checking its version. Any: JSON."""
        if "protocol_version" in model.model_fields:
            version = data.get("protocol_version")
            if not isinstance(version, str):
                raise errors.SchemaMismatchError(f"The bridge's {model.__name__} has no protocol_version.")
            check_version(version, where=model.__name__)
        try:
            if self._strict:
                return model.exactly(dict(data))
            # Nothing depends on the opaque data.
            return model.model_validate({k: v for k, v in data.items() if v is not None or k != "raw_engine_data"})
        except ValidationError as error:
            told = errors.first_problem(error)
            raise errors.SchemaMismatchError(f"The bridge's {model.__name__} does not fit the schema: {told}") from None


def local_token(url: str) -> str | None:
    """Return the token of the bridge that `wsap tes3mp serve` runs on this machine; None if that is not at the URL.

    Another program on this machine does not get it, not even at the address of a bridge that has stopped.
    """
    parts = urlsplit(_checked(url))
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        here = is_loopback(parts.hostname or "") and read(serving_file(port)) is not None
        return token_file().read_text("utf-8").strip() if here else None
    except OSError:
        return None


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        fine = known and url.isprintable() and " " not in url and "@" not in url
    except ValueError:
        fine = False
    if not fine:
        raise UsageError(f"Invalid bridge address {url!r}; expected for example http://127.0.0.1:8765")
    return url.rstrip("/")


def _refusal(content: bytes, status: int) -> errors.BridgeError:
    try:
        data = read_json(content)
    except NotJsonError:
        data = None
    error = data.get("error") if isinstance(data, dict) else None
    if not isinstance(error, dict):
        return BridgeRefusedError(f"The bridge refuses ({status}).", status=status)
    code, details = str(error.get("code") or ""), error.get("details")
    message = single_line(str(error.get("message") or f"The bridge refuses ({status})."))[:2000]
    if (known := _ERRORS.get(code)) is not None:
        return known(message, details if isinstance(details, dict) else {})
    return BridgeRefusedError(message, told=code[:100], status=status, retry=error.get("retry") is True)

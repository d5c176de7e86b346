"""The connection to one tool server, with restarts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any

from wsap_core.errors import MissingServiceError, WsapError
from wsap_core.installing import install_line
from wsap_core.untrusted import single_line
from wsap_llm.mcp.config import ServerConfig
from wsap_llm.mcp.mapping import MOST_TOOLS, text_of

if TYPE_CHECKING:
    import anyio
    from mcp import Client
    from mcp.client import Transport
    from mcp.types import Tool as RemoteTool

Tell = Callable[[str], None]
"""Shows one sentence to the user."""


class ToolServerError(WsapError, code="TOOL_SERVER", exit_code=3, http_status=502, retryable=True):
    """A tool server can't be reached or used."""


def sdk_missing() -> MissingServiceError:
    """Return the error for a missing SDK."""
    return MissingServiceError(
        "Tools of MCP servers require the package mcp, version 2.3 or newer 2.x; "
        f"install it with: {install_line('wsap-llm[mcp]')}"
    )


class Connection:
    """Holds the connection to one server, and calls its tools.

    If a server exits, times out or sends an unreadable response, the connection is closed (a program is ended with its
    child processes), and the next call starts it again, at most `restarts` times. The failed call is not repeated,
    because it may have had effects. The user is informed once of the first failure, and once when no restarts are left.
    """

    def __init__(self, server: ServerConfig, tell: Tell) -> None:
        self._server = server
        self._tell = tell
        self._client: Client | None = None
        self._scope: anyio.CancelScope | None = None
        self._holder: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._starts = 0
        self._told: set[str] = set()
        self._closed = False

    async def open(self) -> list[RemoteTool]:
        """Connect to the server and return its tools, at most `MOST_TOOLS`. Raises MissingServiceError if the SDK is
        not installed, and ToolServerError if the server can't be reached or does not list its tools in time."""
        async with self._lock:
            client = await self._started(first=True)
            try:
                async with asyncio.timeout(self._server.start_timeout):
                    return await _all_tools(client)
            except Exception as error:
                reason = self._reason(error)
                await self._drop()
                raise ToolServerError(
                    f"The tool server {self._server.name} did not list its tools: {reason}."
                ) from error

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return a tool's result as text, or one line with the error. Any: parameters of every type."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        server, name = self._server, self._server.name
        try:
            async with self._lock:
                client = self._client or await self._started()
        except ToolServerError as error:
            return str(error)
        try:
            async with asyncio.timeout(server.timeout):
                result = await client.call_tool(tool, dict(arguments))
            return server.hide(text_of(result, server.longest))
        except Exception as error:
            if isinstance(error, MCPError) and error.code not in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
                return f"The tool server {name} refused: {server.hide(single_line(error.message)[:200])}"
            reason = self._reason(error)
            async with self._lock:
                if self._client is client:  # another call may have closed it first
                    await self._drop()
            self._tell_failure(reason)
            return f"The tool server {name} failed in this call: {reason}. Whether anything was done is not known."

    async def aclose(self) -> None:
        """Close the connection and end the program."""
        self._closed = True
        async with self._lock:
            await self._drop()

    async def _started(self, *, first: bool = False) -> Client:
        server = self._server
        if self._closed:
            raise ToolServerError(f"The tool server {server.name} is closed.")
        if self._starts > server.restarts:
            self._tell_once(
                "given up", f"The tool server {server.name} failed {self._starts} times and will not be restarted."
            )
            raise ToolServerError(f"The tool server {server.name} is out of order; do without it.")
        self._starts += 1
        tail = _Tail() if server.command else None
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._holder = asyncio.create_task(self._hold(ready, tail), name=f"tool server {server.name}")
        try:
            async with asyncio.timeout(server.start_timeout):
                self._client = await asyncio.shield(ready)
        except BaseException as error:
            await self._drop()
            if not isinstance(error, Exception) or isinstance(error, MissingServiceError):
                raise
            said = server.hide(await asyncio.to_thread(tail.last_line)) if tail is not None else ""
            reason = self._reason(error) + (f" ({said})" if said else "")
            if not first:
                self._tell_failure(reason)
            raise ToolServerError(f"The tool server {server.name} ({server.where}) can't be used: {reason}.") from error
        return self._client

    async def _hold(self, ready: asyncio.Future[Client], tail: _Tail | None) -> None:
        """Hold the connection until the scope is cancelled. The SDK requires the same task to open and close it."""
        try:
            try:
                import anyio
                from mcp import Client
            except ImportError:
                raise sdk_missing() from None
            _quieten()
            with anyio.CancelScope() as self._scope:
                async with self._transport(tail) as transport, Client(transport) as client:
                    ready.set_result(client)
                    await anyio.sleep_forever()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error if isinstance(error, Exception) else ToolServerError("it was closed"))
                ready.exception()  # marked as retrieved, because no one may be waiting
            if not isinstance(error, Exception):
                raise
        finally:
            if not ready.done():
                ready.cancel()
            if tail is not None:
                tail.file.close()

    @contextlib.asynccontextmanager
    async def _transport(self, tail: _Tail | None) -> AsyncIterator[Transport]:
        server = self._server
        if tail is not None:
            from mcp import StdioServerParameters, stdio_client

            program, *arguments = server.command
            parameters = StdioServerParameters(
                command=program, args=arguments, env=dict(server.env), cwd=server.cwd, encoding_error_handler="replace"
            )
            yield stdio_client(parameters, errlog=tail.file)
            return
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        # Tools may be slow; timeouts of calls are enforced by this class, not by the HTTP client.
        limits = httpx2.Timeout(server.start_timeout, read=server.timeout + server.start_timeout)
        async with httpx2.AsyncClient(headers=dict(server.headers), timeout=limits) as http:
            yield streamable_http_client(server.url, http_client=http)

    async def _drop(self) -> None:
        holder, scope = self._holder, self._scope
        self._client = self._holder = self._scope = None
        if holder is None:
            return
        if scope is not None:
            scope.cancel()  # unlike cancelling the task, this lets the SDK end the program
        else:
            holder.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([holder])

    def _tell_failure(self, reason: str) -> None:
        server = self._server
        left = max(0, server.restarts + 1 - self._starts)
        again = f"it will be restarted when needed, at most {left} times" if left else "it will not be restarted"
        self._tell_once("failed", f"The tool server {server.name} ({server.where}) failed: {reason}; {again}.")

    def _tell_once(self, what: str, sentence: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self._tell(sentence)

    def _reason(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, TimeoutError):
            return "it did not respond in time"
        if isinstance(error, FileNotFoundError):
            return "program or working directory not found"
        if isinstance(error, PermissionError):
            return "permission denied"
        kind = type(error).__name__
        if kind == "ValidationError":
            return "it sent an invalid response"
        if kind in ("ConnectError", "ConnectTimeout"):
            return "no server responds at the address"
        said = self._server.hide(single_line(error))[:200].rstrip(".")
        return "the connection was lost" if said in ("", "Connection closed") else said


class _Tail:
    """Keeps the end of a program's error output. An unread pipe would block the program, the terminal would show
    unsanitized text, and a file would grow for months."""

    def __init__(self) -> None:
        read, write = os.pipe()
        self.file = os.fdopen(write, "w")
        """Our end, to be closed; reading ends when the program closes its end."""
        self._kept = b""
        self._thread = threading.Thread(target=self._keep, args=[read], daemon=True)
        self._thread.start()

    def last_line(self) -> str:
        self._thread.join(1.0)
        lines = [line for raw in self._kept.splitlines() if (line := single_line(raw.decode("utf-8", "replace")))]
        return lines[-1][:200] if lines else ""

    def _keep(self, read: int) -> None:
        with os.fdopen(read, "rb", buffering=0) as pipe:
            while piece := pipe.read(4096):
                self._kept = (self._kept + piece)[-2000:]


async def _all_tools(client: Client) -> list[RemoteTool]:
    found: list[RemoteTool] = []
    cursor: str | None = None
    while len(found) < MOST_TOOLS:  # the caller's timeout stops endless empty pages
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return found[:MOST_TOOLS]


def _quieten() -> None:
    """Keep the SDK's log, which has tracebacks for invalid input, off the terminal unless logging is configured."""
    logger = logging.getLogger("mcp")
    if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
        logger.addHandler(logging.NullHandler())

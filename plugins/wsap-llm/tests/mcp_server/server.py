"""A real MCP server, for tests: `server.py stdio`, or `server.py http`, which prints its port first.

It has well-behaved and misbehaving tools. `server.py garbage` does not speak MCP.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from pathlib import Path
from typing import Literal

from mcp.server.mcpserver import Image, MCPServer
from pydantic import BaseModel


class Spot(BaseModel):
    """A place on a map."""

    x: int
    y: int = 0


def serve(transport: str) -> None:
    """Serve the tools until the program is ended."""
    server = MCPServer("test")

    @server.tool()
    def add(a: int, b: float = 0.5, mode: Literal["plain", "loud"] = "plain", note: str | None = None) -> str:
        """Adds two numbers."""
        return f"{a + b}{'!' if mode == 'loud' else ''}{note or ''}"

    @server.tool()
    def spot(where: Spot, others: list[Spot] | None = None) -> str:
        """Says where a spot is."""
        return f"{where.x},{where.y} and {len(others or [])} others"

    @server.tool()
    def says(text: str, times: int = 1) -> str:
        """Says a text, as often as wanted."""
        return text * times

    @server.tool()
    def fails() -> str:
        """Raises."""
        raise ValueError("the lake is frozen")

    @server.tool()
    def picture() -> Image:
        """Gives a picture."""
        return Image(data=b"\x89PNG", format="png")

    _offer_trouble(server)
    if transport == "stdio":
        server.run("stdio")
    else:
        _serve_over_http(server)


def _offer_trouble(server: MCPServer) -> None:
    """Add the tools that hang, exit, print, write and report."""

    @server.tool()
    async def hangs() -> str:
        """Never answers."""
        await asyncio.sleep(3600)
        return "too late"

    @server.tool()
    def dies() -> str:
        """Ends the whole program in the middle of a call."""
        print("the server falls over", file=sys.stderr, flush=True)
        os._exit(3)

    @server.tool()
    def prints() -> str:
        """Writes what is no message among the messages."""
        os.write(1, b"\x00\xff this is no JSON\n{}\n[1]\n")
        return "printed"

    @server.tool()
    def writes(path: str, text: str) -> str:
        """Adds a line to a file, and says how many it has: doing it again is not the same."""
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
        return f"{len(Path(path).read_text(encoding='utf-8').splitlines())} lines"

    @server.tool()
    def secret() -> str:
        """Tells what it was told to keep."""
        return f"my key is {os.environ.get('LAKE_KEY')}"

    @server.tool()
    def environment() -> str:
        """Gives the names of its variables."""
        return " ".join(sorted(os.environ))


def _serve_over_http(server: MCPServer) -> None:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)).run(sockets=[listening])


if __name__ == "__main__":
    if sys.argv[1] == "garbage":
        for line in sys.stdin:
            sys.stdout.write(f"{line.strip()[:5]} what?\n")
            sys.stdout.flush()
    elif sys.argv[1] == "crash":
        print("Traceback (most recent call last):\n\x1b[31mModuleNotFoundError: no furnace", file=sys.stderr)
        sys.exit(1)
    elif sys.argv[1] == "telling":
        print(f"the key {os.environ['LAKE_KEY']} is not accepted", file=sys.stderr)
        sys.exit(1)
    elif sys.argv[1] == "silent":
        time.sleep(3600)
    else:
        serve(sys.argv[1])

"""Runs a nexus with its wire API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from fastapi import FastAPI

from wsap_core.errors import ConfigError, StorageError
from wsap_nexus.dashboard.key import OneTimeKey
from wsap_nexus.errors import NexusRunningError
from wsap_nexus.http.access.auth import Tokens, own_token
from wsap_nexus.http.access.guard import HttpLimits
from wsap_nexus.http.listening import Address, listen
from wsap_nexus.http.serving import HttpServer
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.server.app import create_app


async def serve(
    nexus: Nexus,
    address: Address,
    token_file: Path,
    *,
    ready: Callable[[str], None] | None = None,
    until: asyncio.Event | None = None,
    limits: HttpLimits | None = None,
    key: OneTimeKey | None = None,
) -> None:
    """Start a nexus, serve it until stopped, and stop it.

    Args:
        token_file: the file with the owner's token.
        ready: called with the URL once requests are served.
        until: set to stop; None to serve until the task is cancelled.
        key: unlocks the dashboard once; None to accept only the token.

    Raises:
        PortInUseError: the port is in use.
        NexusRunningError: another nexus runs on the database.
        LockLostError: another nexus took over the database; this one has stopped.
        StorageDamagedError: the database turned out to be damaged; the nexus has stopped.
    """
    address.check()
    limits = limits or HttpLimits()
    app = _app(nexus, address, token_file, limits)
    listening = listen(address)
    app.state.one_time_key = key
    server = HttpServer(app, listening, limits, until=until, ready=ready)
    losing: asyncio.Task[StorageError] | None = None
    try:
        try:
            await nexus.start()
            losing = asyncio.create_task(_end_when_lost(server, nexus))
            await server.run()
        except NexusRunningError:
            raise  # another nexus has the database: nothing was started, and nothing must be written
        except BaseException:
            await nexus.stop()
            raise
        await nexus.stop()
        if losing.done():
            raise losing.result()
    finally:
        if losing is not None:
            losing.cancel()
        listening.close()


def _app(nexus: Nexus, address: Address, token_file: Path, limits: HttpLimits) -> FastAPI:
    # If other machines can reach the nexus, reading needs the token, too.
    try:
        token = own_token(token_file)
        tokens = Tokens(nexus.nexus_store, token)
        near = address.is_loopback
        return create_app(
            nexus,
            tokens,
            limits=limits,
            hosts=frozenset({address.host}) if near else None,
            guarded=not near,
            host=address.host,
        )
    except OSError as error:
        raise ConfigError(f"The token file {token_file} can't be used ({error.strerror}).") from None


async def _end_when_lost(server: HttpServer, nexus: Nexus) -> StorageError:
    error = await nexus.until_lost()
    server.end()
    return error

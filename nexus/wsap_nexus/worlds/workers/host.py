"""The worker's side: many worlds on one event loop."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from wsap_core.errors import WireError
from wsap_core.loading import load_object
from wsap_core.protocol.wire import dumps
from wsap_core.seams.context import Context
from wsap_core.spec_json import spec_of_json
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.tasks import TURNS, ended
from wsap_nexus.worlds.operations import OPERATIONS, Create
from wsap_nexus.worlds.port import LocalWorld
from wsap_nexus.worlds.workers.asked import Asking
from wsap_nexus.worlds.workers.blame import Blamed, BlameFile
from wsap_nexus.worlds.workers.frames import BEAT, DAMAGED, TAKEN, TAKEN_BACK, answer, failure, frame, read_request

# Any, in this module: JSON.

_exit = os._exit  # before a game can replace it


class WorldHost:
    """Handles frames; `send` writes bytes to the nexus."""

    def __init__(self, send: Callable[[bytes], None], mark: BlameFile) -> None:
        self._send = send
        self._mark = mark
        self._worlds: dict[int, LocalWorld] = {}
        self._games: dict[int, str] = {}
        self._asking: dict[int, Asking] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._begun: set[int] = set()
        self._ordering: set[asyncio.Task[None]] = set()
        self._in_order: dict[int, deque[tuple[int, Mapping[str, Any]]]] = {}
        """What worlds that live were told and have not begun yet, with the number of each call."""

    def receive(self, number: int, content: bytes) -> None:
        """Start the operation of a frame."""
        asked = json.loads(content)
        loop = asyncio.get_running_loop()
        if asked["op"] == "cancel":
            waiting = next((q for q in self._in_order.values() if any(n == asked["call"] for n, _ in q)), None)
            if waiting is not None:
                waiting.append((number, asked))
            else:
                # Later, so that a call received just before has started, whether or not both came in one chunk.
                loop.call_soon(self._cancel, asked["call"])
        elif (queue := self._in_order.get(asked["world"])) is not None:
            queue.append((number, asked))
        else:
            self._begin(number, asked)

    def _begin(self, number: int, asked: Mapping[str, Any]) -> None:
        """Begin an operation, or take what else the nexus says.

        After a move in a world that lives, all comes of it that comes at once, and then only the world is told of the
        next: it must not matter whether that has arrived by then.
        """
        loop = asyncio.get_running_loop()
        if asked["op"] == "cancel":
            loop.call_soon(self._cancel, asked["call"])
        elif asked["op"] == "told":
            if (asking := self._asking.get(asked["world"])) is not None:
                asking.told(asked["id"], asked["said"])
        else:
            self._tasks[number] = loop.create_task(self._serve(number, asked))
            if _moves(asked) and asked["world"] in self._asking.keys() - self._in_order.keys():
                self._in_order[asked["world"]] = deque()
                self._ordering.add(task := loop.create_task(self._begin_others(asked["world"])))
                task.add_done_callback(self._ordering.discard)

    async def _begin_others(self, world: int) -> None:
        queue = self._in_order[world]
        moved = True
        while moved or queue:
            for _ in range(TURNS if moved else 0):
                await asyncio.sleep(0)
            if not queue:
                break
            number, asked = queue.popleft()
            moved = _moves(asked)
            self._begin(number, asked)
        del self._in_order[world]

    def beat(self) -> None:
        """Send a heartbeat with the started calls."""
        self._send(frame(BEAT, dumps({"begun": sorted(self._begun)}).encode()))

    async def close(self) -> None:
        """Cancel all calls and close all worlds."""
        await ended(*self._ordering, *self._tasks.values())
        for port in self._worlds.values():
            await asyncio.gather(port.close(), return_exceptions=True)

    def _cancel(self, number: int) -> None:
        task = self._tasks.get(number)
        if task is not None:
            task.cancel()

    async def _serve(self, number: int, asked: Mapping[str, Any]) -> None:
        world = int(asked["world"])
        self._begun.add(number)
        try:
            out = await self._carry_out(number, asked, world)
            self._begun.discard(number)
            self._tasks.pop(number, None)
            self._send(out)
        except BaseException:  # what makes and sends replies has been damaged
            self._mark.at(world)
            _exit(DAMAGED)

    async def _carry_out(self, number: int, asked: Mapping[str, Any], world: int) -> bytes:
        try:
            return frame(number, await Blamed(self._reply(number, asked, world), self._mark, world))
        except asyncio.CancelledError:
            return frame(number, TAKEN_BACK)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            return frame(number, failure(error, self._games.get(world, "?")))

    async def _reply(self, number: int, asked: Mapping[str, Any], world: int) -> bytes:
        operation = read_request(asked)
        if isinstance(operation, Create):
            self._games[world] = operation.spec["name"]
            self._worlds[world] = self._created(operation, world)
            return answer(None)
        port = self._worlds.pop(world, None) if operation.ends else self._worlds.get(world)
        if port is None:
            if operation.ends:
                return answer(None)
            raise WorldFailedError(f"The worker has no world {world}.")
        if operation.is_announced and world in self._asking:
            self._send(frame(number, TAKEN))
        reply, seen = operation.split(await operation.hosted(port.world))
        return answer(reply, None if seen is None else dumps(seen))

    def _created(self, create: Create, world: int) -> LocalWorld:
        spec = spec_of_json(create.spec, load_object(create.factory))
        context = Context()
        if create.lives:
            asking = self._asking[world] = Asking(self._send, world)
            context = Context(services=asking.services)
        return LocalWorld(spec, create.seed, create.options, context)


def _moves(asked: Mapping[str, Any]) -> bool:
    operation = OPERATIONS.get(asked["op"])
    return operation is not None and operation.moves


def read_hello(content: bytes) -> None:
    """Set the import path sent in the first frame; WireError if it is another frame."""
    hello = json.loads(content)
    if hello.get("op") != "hello":
        raise WireError("The first frame of a worker must be its greeting.")
    sys.path[:] = hello["path"]

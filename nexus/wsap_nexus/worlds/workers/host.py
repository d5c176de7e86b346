"""The worker's side: many worlds on one event loop, each behind its bridge."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from wsap_core.errors import WireError
from wsap_core.loading import load_object
from wsap_core.protocol import Observation
from wsap_core.protocol.wire import dumps
from wsap_core.seams.context import Context
from wsap_core.spec_json import spec_of_json
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.tasks import ended
from wsap_nexus.worlds.bridge import Bridge, LivingBridge
from wsap_nexus.worlds.port import LocalWorld
from wsap_nexus.worlds.workers.asked import Asking
from wsap_nexus.worlds.workers.blame import Blamed, BlameFile
from wsap_nexus.worlds.workers.frames import BEAT, DAMAGED, TAKEN, TAKEN_BACK, answer, failure, frame

# Any, in this module: JSON.

_UNSEEN = Observation()
_exit = os._exit  # before a game can replace it


class WorldHost:
    """Handles frames; `send` writes bytes to the nexus."""

    def __init__(self, send: Callable[[bytes], None], mark: BlameFile) -> None:
        self._send = send
        self._mark = mark
        self._worlds: dict[int, Bridge] = {}
        self._games: dict[int, str] = {}
        self._asking: dict[int, Asking] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._begun: set[int] = set()

    def receive(self, number: int, content: bytes) -> None:
        """Start the operation of a frame."""
        asked = json.loads(content)
        loop = asyncio.get_running_loop()
        if asked["op"] == "cancel":
            # Later, so that a call received just before has started, whether or not both came in one chunk.
            loop.call_soon(self._cancel, asked["call"])
            return
        if asked["op"] == "told":
            if (asking := self._asking.get(asked["world"])) is not None:
                asking.told(asked["id"], asked["said"])
            return
        self._tasks[number] = loop.create_task(self._serve(number, asked))

    def beat(self) -> None:
        """Send a heartbeat with the started calls."""
        self._send(frame(BEAT, dumps({"begun": sorted(self._begun)}).encode()))

    async def close(self) -> None:
        """Cancel all calls and close all worlds."""
        await ended(*self._tasks.values())
        for bridge in self._worlds.values():
            await asyncio.gather(bridge.port.close(), return_exceptions=True)

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
        if asked["op"] == "create":
            self._games[world] = asked["spec"]["name"]
            spec = spec_of_json(asked["spec"], load_object(asked["factory"]))
            self._worlds[world] = self._bridge(spec, asked, world)
            return answer(None)
        if asked["op"] == "close":
            bridge = self._worlds.pop(world, None)
            if bridge is not None:
                await bridge.port.close()
            return answer(None)
        if world not in self._worlds:
            raise WorldFailedError(f"The worker has no world {world}.")
        if asked["op"] == "resolve" and isinstance(self._worlds[world], LivingBridge):
            self._send(frame(number, TAKEN))
        values = {name: value for name, value in asked.items() if name not in ("op", "world")}
        return _framed(await getattr(self._worlds[world], asked["op"])(**values))

    def _bridge(self, spec: AdapterSpec, asked: Mapping[str, Any], world: int) -> Bridge:
        if not asked.get("lives"):
            return Bridge(LocalWorld(spec, asked["seed"], asked["options"]))
        asking = self._asking[world] = Asking(self._send, world)
        return LivingBridge(LocalWorld(spec, asked["seed"], asked["options"], Context(services=asking.services)))


def _framed(told: dict[str, Any]) -> bytes:
    seen = told.pop("observation", None)
    if (result := told.get("result")) is not None:
        seen, told["result"] = result.observation, replace(result, observation=_UNSEEN)
    return answer(told, None if seen is None else dumps(seen))


def read_hello(content: bytes) -> None:
    """Set the import path sent in the first frame; WireError if it is another frame."""
    hello = json.loads(content)
    if hello.get("op") != "hello":
        raise WireError("The first frame of a worker must be its greeting.")
    sys.path[:] = hello["path"]

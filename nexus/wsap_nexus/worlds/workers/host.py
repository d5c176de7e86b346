"""The worker's side: many worlds in one process, each behind its bridge, on one event loop."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from wsap_core.errors import WireError
from wsap_core.loading import load_object
from wsap_core.protocol import Action, AvatarSpec, Entry, Observation
from wsap_core.protocol.wire import Codec, dumps
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.worlds.port import LocalWorld, WorldPort
from wsap_nexus.worlds.seats import SeatPort, default_action, leave
from wsap_nexus.worlds.workers.blame import Blamed, BlameFile
from wsap_nexus.worlds.workers.frames import BEAT, TAKEN_BACK, answer, failure, frame

# Any, in this module: JSON.

_UNSEEN = Observation()


class Bridge:
    """Answers requests about one world."""

    def __init__(self, face: WorldPort) -> None:
        self.face = face
        self._seats: dict[str, SeatPort] = {}
        self._codec = Codec()
        self._operations: Mapping[str, Callable[[Mapping[str, Any]], Awaitable[bytes]]] = {
            "begin": self._begin,
            "open_seat": self._open_seat,
            "avatars": self._avatars,
            "create_avatar": self._create_avatar,
            "admit": self._admit,
            "release": self._release,
            "death": self._death,
            "respawn": self._respawn,
            "snapshot": self._snapshot,
            "restore": self._restore,
            "render": self._render,
            "observe": self._observe,
            "resolve": self._resolve,
            "look": self._look,
            "leave": self._leave,
            "default_action": self._default_action,
        }

    async def handle(self, asked: Mapping[str, Any]) -> bytes:
        """Return the reply to a request; `op` is its operation.

        Raises:
            WsapError: the world refuses or fails.
            WireError: the request is invalid.
        """
        operation = self._operations.get(str(asked.get("op")))
        if operation is None:
            raise WireError(f"A world has no operation {asked.get('op')!r}.")
        return await operation(_Asked(asked))

    # --- the world --------------------------------------------------------------------------------

    async def _begin(self, asked: Mapping[str, Any]) -> bytes:
        await self.face.begin(asked["seed"])
        return answer({"can_snapshot": self.face.can_snapshot, "seats": self._states()})

    async def _open_seat(self, asked: Mapping[str, Any]) -> bytes:
        seat = self._seats[asked["seat"]] = await self.face.open_seat(asked["seat"])
        return answer({"action_space": seat.action_space, **self._state(seat)})

    async def _avatars(self, asked: Mapping[str, Any]) -> bytes:
        return answer({"avatars": list(await self.face.avatars(asked["agent"]))})

    async def _create_avatar(self, asked: Mapping[str, Any]) -> bytes:
        wanted = self._codec.decode(AvatarSpec, asked["wanted"], where="wanted avatar")
        return answer({"avatar": await self.face.create_avatar(asked["agent"], wanted)})

    async def _admit(self, asked: Mapping[str, Any]) -> bytes:
        entry = self._codec.decode(Entry, asked["entry"], where="entry")
        receipt = await self.face.admit(asked["avatar"], entry)
        return answer({"receipt": receipt, "seats": self._states()})

    async def _release(self, asked: Mapping[str, Any]) -> bytes:
        return answer({"package": await self.face.release(asked["avatar"], asked["transfer"])})

    async def _death(self, asked: Mapping[str, Any]) -> bytes:
        return answer({"death": await self.face.death(asked["avatar"])})

    async def _respawn(self, asked: Mapping[str, Any]) -> bytes:
        message = await self.face.respawn(asked["agent"], asked["avatar"], asked["option"])
        return answer({"message": message, "seats": self._states()})

    async def _snapshot(self, asked: Mapping[str, Any]) -> bytes:
        return answer(base64.b64encode(await self.face.snapshot()).decode("ascii"))

    async def _restore(self, asked: Mapping[str, Any]) -> bytes:
        await self.face.restore(base64.b64decode(asked["state"]))
        return answer({"seats": self._states()})

    async def _render(self, asked: Mapping[str, Any]) -> bytes:
        return answer({"view": await self.face.render()})

    # --- seats ------------------------------------------------------------------------------------

    async def _observe(self, asked: Mapping[str, Any]) -> bytes:
        seat = self._seat(asked)
        observation = dumps(await seat.observe())
        return answer({"ended": seat.ended}, observation)

    async def _resolve(self, asked: Mapping[str, Any]) -> bytes:
        seat = self._seat(asked)
        outcome = await seat.step(self._codec.decode(Action, asked["action"], where="action"))
        head = {
            "action": outcome.action,
            # The observation is on its own line.
            "result": replace(outcome.result, observation=_UNSEEN),
            "stepped": outcome.stepped,
            "out": outcome.left,
            "death": outcome.death,
            "done": seat.done,
            "left": seat.left,
        }
        return answer(head, dumps(outcome.result.observation))

    async def _look(self, asked: Mapping[str, Any]) -> bytes:
        return answer({"view": await self._seat(asked).look()})

    async def _leave(self, asked: Mapping[str, Any]) -> bytes:
        return answer({"jack_out": await leave(self._seat(asked), asked["mode"])})

    async def _default_action(self, asked: Mapping[str, Any]) -> bytes:
        return answer({"default_action": await default_action(self._seat(asked))})

    def _seat(self, asked: Mapping[str, Any]) -> SeatPort:
        seat = self._seats.get(asked["seat"])
        if seat is None:
            raise WireError(f"The world has no open seat {asked['seat']!r}.")
        return seat

    def _states(self) -> dict[str, Any]:
        return {name: self._state(seat) for name, seat in sorted(self._seats.items())}

    @staticmethod
    def _state(seat: SeatPort) -> dict[str, Any]:
        return {"description": seat.game_description, "done": seat.done, "left": seat.left}


class _Asked(dict[str, Any]):
    """A request; a missing field raises a `WireError`."""

    def __missing__(self, key: str) -> Any:
        raise WireError(f"The operation {self.get('op')!r} needs {key!r}.")


# Any, in this module: JSON.

_CARRIED = (
    "name", "summary", "title", "abilities", "seats", "seat_names", "timing", "deadline", "max_avatars", "blocking",
    "persistent", "protocol_version", "preset", "language",
)  # fmt: skip
_SEQUENCES = ("abilities", "seats", "seat_names")


def spec_to_json(spec: AdapterSpec, factory: str) -> dict[str, Any]:
    """Return the data of a game for a worker; `factory` names it in any process."""
    return {**{name: getattr(spec, name) for name in _CARRIED}, "factory": factory, "default": spec.default_action}


def spec_of_json(data: Mapping[str, Any]) -> AdapterSpec:
    """Return the game of `spec_to_json`; PluginError if it can't be loaded, WsapError if it is not found."""
    values: dict[str, Any] = {name: tuple(data[name]) if name in _SEQUENCES else data[name] for name in _CARRIED}
    default = None if data["default"] is None else Codec().decode(Action, data["default"], where="default action")
    return AdapterSpec(factory=load_object(data["factory"]), default_action=default, **values)


class WorldHost:
    """Replies to frames. `send`: writes bytes to the nexus."""

    def __init__(self, send: Callable[[bytes], None], mark: BlameFile) -> None:
        self._send = send
        self._mark = mark
        self._worlds: dict[int, Bridge] = {}
        self._games: dict[int, str] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._begun: set[int] = set()

    def receive(self, number: int, content: bytes) -> None:
        """Start the operation of a frame."""
        asked = json.loads(content)
        loop = asyncio.get_running_loop()
        if asked["op"] == "cancel":
            # Later, so that a call that came just before has begun, whether both came in one chunk or not.
            loop.call_soon(self._cancel, asked["call"])
            return
        self._tasks[number] = loop.create_task(self._serve(number, asked))

    def beat(self) -> None:
        """Send the heartbeat, with the calls that have begun and the memory in use."""
        self._send(frame(BEAT, dumps({"begun": sorted(self._begun), "memory": memory_in_use()}).encode()))

    async def close(self) -> None:
        """Cancel all calls and close all worlds."""
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for bridge in self._worlds.values():
            await asyncio.gather(bridge.face.close(), return_exceptions=True)

    def _cancel(self, number: int) -> None:
        task = self._tasks.get(number)
        if task is not None:
            task.cancel()

    async def _serve(self, number: int, asked: Mapping[str, Any]) -> None:
        world = int(asked["world"])
        self._begun.add(number)
        try:
            reply = await Blamed(self._reply(asked, world), self._mark, world)
            out = frame(number, reply)
        except asyncio.CancelledError:
            out = frame(number, TAKEN_BACK)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            out = frame(number, failure(error, self._games.get(world, "?")))
        finally:
            self._begun.discard(number)
            self._tasks.pop(number, None)
        self._send(out)

    async def _reply(self, asked: Mapping[str, Any], world: int) -> bytes:
        if asked["op"] == "create":
            self._games[world] = asked["spec"]["name"]
            self._worlds[world] = Bridge(LocalWorld(spec_of_json(asked["spec"]), asked["seed"], asked["options"]))
            return answer(None)
        if asked["op"] == "close":
            bridge = self._worlds.pop(world, None)
            if bridge is not None:
                await bridge.face.close()
            return answer(None)
        if world not in self._worlds:
            raise WorldFailedError(f"The worker has no world {world}.")
        return await self._worlds[world].handle(asked)


def read_hello(content: bytes) -> None:
    """Set the import path of the nexus, from the first frame; WireError if it is not the first frame."""
    hello = json.loads(content)
    if hello.get("op") != "hello":
        raise WireError("The first frame of a worker must be its greeting.")
    sys.path[:] = hello["path"]


def memory_in_use() -> int | None:
    """Return the resident bytes of this process; None where /proc does not have them."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None

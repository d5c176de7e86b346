"""A world behind the protocol: one request in, one reply out, in the words of a game's bridge over HTTP."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from wsap_core.errors import WireError
from wsap_core.protocol import Action, AvatarSpec, Entry, Observation
from wsap_core.protocol.wire import Codec, dumps
from wsap_nexus.worlds.port import WorldPort
from wsap_nexus.worlds.seats import SeatPort, default_action, leave
from wsap_nexus.worlds.workers.frames import answer

# Any, in this module: JSON.

_UNSEEN = Observation()


class Bridge:
    """Answers requests about one world."""

    def __init__(self, face: WorldPort) -> None:
        self.face = face
        """The world."""
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

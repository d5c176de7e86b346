"""The worlds of a game served by `wsap_nexus.worlds.remote.serve_world`."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import Response

from wsap_core.errors import UnknownNameError, UsageError, WsapError
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import encode
from wsap_core.seams.context import Context
from wsap_core.spec_json import spec_to_json
from wsap_core.specs import AdapterSpec
from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.http.refusals import AbilityMissingError, KeyReusedError
from wsap_nexus.http.replies import Reply, pending, reply_of
from wsap_nexus.worlds.local_options import check_value
from wsap_nexus.worlds.operations import Admit
from wsap_nexus.worlds.port import LocalWorld

ANSWERS_KEPT = 4096
"""Responses kept for retries, by idempotency key."""
WORLDS_MOST = 1000
"""The maximum number of worlds in one process."""


def echoing(told: Mapping[str, Any], key: str | None) -> dict[str, Any]:
    """Return a reply that repeats the key of its request, if there is one."""
    return {**told, **({} if key is None else {"request": key})}


class GameHost:
    """The worlds of a game in this process, with responses by idempotency key and entries by transfer.

    Raises:
        WireError: an option that the spec presets can't be written as JSON.
    """

    def __init__(self, spec: AdapterSpec) -> None:
        self.spec = spec
        named = {option.name for option in spec.options if option.names}
        # Whoever asks may read it: not what is preset of files, programs, secrets and servers of this machine.
        told = {**spec_to_json(spec), "preset": {k: v for k, v in spec.preset.items() if k not in named}}
        self._described = encode(told)
        self.process_id = secrets.token_hex(8)
        """New for each process, so that a nexus detects a restart, which loses all worlds."""
        self.worlds: dict[str, LocalWorld] = {}
        self._answers: OrderedDict[str, tuple[str, asyncio.Task[Reply]]] = OrderedDict()
        self._admitted: dict[str, tuple[str, str]] = {}
        self._withdrawn: set[str] = set()

    def about(self) -> dict[str, Any]:
        """Return the game's description."""
        return {
            "protocol_version": PROTOCOL_VERSION,
            "boot": self.process_id,
            "echoes": True,
            "game": self._described,
        }

    def world(self, world_id: str) -> LocalWorld:
        """Return a world; UnknownNameError if there is none of that name."""
        if world_id not in self.worlds:
            raise UnknownNameError("world", world_id, ())
        return self.worlds[world_id]

    async def begin(
        self, world_id: str, *, world_seed: int, seed: int, options: Mapping[str, JsonValue]
    ) -> dict[str, Any]:
        """Create a world and start its first episode; a world of the same name is closed first.

        Raises ForbiddenError if an option names a file, a program, a secret or a server of this process' machine.
        """
        if world_id not in self.worlds and len(self.worlds) >= WORLDS_MOST:
            raise UsageError(f"This process has {WORLDS_MOST} worlds, which is the maximum.")
        declared = {known.name: known for known in self.spec.options}
        for name, value in options.items():
            check_value(declared.get(name), name, value, "set it where the game is served")
        await self.end(world_id)
        hosted = self.worlds[world_id] = LocalWorld(self.spec, world_seed, options, Context())
        try:
            await hosted.begin(seed)
        except BaseException:
            await self.end(world_id)
            raise
        return {"can_snapshot": hosted.can_snapshot}

    async def end(self, world_id: str) -> None:
        """Close a world, if it exists."""
        hosted = self.worlds.pop(world_id, None)
        self._admitted = {t: where for t, where in self._admitted.items() if where[0] != world_id}
        if hosted is not None:
            await hosted.close()

    async def admit(self, world_id: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out the operation `Admit` of these values, unless the transfer was withdrawn."""
        transfer_id = str(values["entry"].get("transfer_id"))
        if transfer_id in self._withdrawn:
            raise UsageError(f"The transfer {transfer_id!r} was withdrawn.")
        hosted = self.world(world_id)
        self.needs(Admit.ability)
        operation = Admit.of(values)
        reply = await operation.hosted(hosted.world)
        self._admitted[transfer_id] = (world_id, operation.avatar)
        return reply

    async def withdraw(self, transfer_id: str) -> dict[str, Any]:
        """Undo the import of a transfer, and refuse any later import of it."""
        self._withdrawn.add(transfer_id)
        where = self._admitted.pop(transfer_id, None)
        if where is None or where[0] not in self.worlds:
            return {"known": False, "boot": self.process_id, "package": None}
        package = await self.worlds[where[0]].release(where[1], f"{transfer_id}:back")
        return {"known": True, "boot": self.process_id, "package": package}

    def needs(self, ability: str) -> None:
        """Raise AbilityMissingError if an ability is required and the game does not declare it."""
        if ability and ability not in self.spec.abilities:
            raise AbilityMissingError(f"{self.spec.display_title} lacks the ability {ability!r}.")

    async def once(self, key: str | None, what: str, do: Callable[[], Awaitable[Any]], wait: float) -> Response:
        """Run an operation once per idempotency key; respond with its result and the key, or 202 while it runs.

        A refusal that asks for a repetition (`retry`) is not stored, so that the repetition is carried out.
        """
        kept = self._answers.get(key) if key is not None else None
        if kept is not None and kept[0] != what:
            raise KeyReusedError("The idempotency key was used for another request.")
        if kept is None:

            async def run() -> Reply:
                try:
                    return reply_of(echoing(await do(), key))
                except WsapError as error:
                    if error.retryable and key is not None:
                        self._answers.pop(key, None)
                    raise

            kept = (what, asyncio.ensure_future(run()))
            self._answers[key or secrets.token_hex(8)] = kept
            while len(self._answers) > ANSWERS_KEPT:
                self._answers.popitem(last=False)
        task = kept[1]
        done, _ = await asyncio.wait({task}, timeout=wait)
        if not done:
            return pending("The request is in progress; repeat it with the same key.")
        reply = task.result()
        return Response(reply.body, reply.status, media_type="application/json")

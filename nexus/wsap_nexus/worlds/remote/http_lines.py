"""Lines to a world in another process, over HTTP, across restarts of its game.

For a `RebuildingLine` this is the counterpart of the worker pool: it provides lines and reports lost ones. A line is
lost when the game is unreachable for a while, when its process is a new one, or when a reply is late. The nexus does
not restart the game; it waits for it.

A world that crashes its process whenever it is rebuilt would do so forever, so a world blamed for two ends in a row is
abandoned. A world is blamed if it *alone* had an open request when the process ended. That is known where a request is
interrupted, not where the end is detected, which happens after the restart, in one world after the other.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from wsap_core.errors import WsapError
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.worlds.operations import Create, Operation
from wsap_nexus.worlds.remote.game_client import GameClient, GameLostError
from wsap_nexus.worlds.workers.frames import TAKEN_BACK, answer, failure
from wsap_nexus.worlds.workers.pool import WorkerTimeouts
from wsap_nexus.worlds.workers.rebuild import OnFailure, RebuildingLine

# Any, in this module: JSON.

SECONDS = 60.0
"""Seconds for one call; a longer deadline of the game has precedence."""
BACK = 60.0
"""Seconds to wait for a lost game to return before its agents are recalled."""


class HttpLine:
    """The line to one world during one process of its game, which may report its `process_id`.

    `on_lost` is called once, with the reason and whether this world alone had an open request.
    """

    where = ""

    def __init__(
        self,
        client: GameClient,
        path: str,
        process_id: str | None,
        game: str,
        on_lost: Callable[[HttpLine, str, bool], None],
    ) -> None:
        self.process_id = process_id
        self.gone = False
        self.ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        """Done when the line is lost."""
        self.late = False
        """Whether it was lost because of a late reply."""
        self._client = client
        self._path = path
        self._game = game
        self._on_lost = on_lost
        self._numbers = itertools.count(1)
        self._calls: dict[int, tuple[asyncio.Task[None], Operation[Any], Callable[[bytes], None]]] = {}
        self._created: Create | None = None

    def call(
        self, world: int, operation: Operation[Any], on_reply: Callable[[bytes], None], deadline: float | None
    ) -> int:
        """Send an operation and return its number; `on_reply` gets the content of the reply, if one comes."""
        number = next(self._numbers)
        carrying = self._carry(number, operation, on_reply, deadline)
        task = asyncio.create_task(carrying, name=f"{self._game}: {operation.name}")
        self._calls[number] = (task, operation, on_reply)
        self._client.begin_work(self._path)
        task.add_done_callback(lambda _: self._through(number))
        return number

    def take_back(self, number: int) -> None:
        """Cancel a call that can be dropped; others are completed."""
        if number in self._calls and self._calls[number][1].can_be_dropped:
            task, _, on_reply = self._calls[number]
            task.cancel()
            on_reply(TAKEN_BACK)

    def give_up(self, world: int, why: str) -> None:
        """Lose the line because the world does not answer."""
        self.late = True
        self._lose(why, to_blame=True)

    def close(self) -> None:
        """Cancel all calls."""
        self.gone = True
        if not self.ended.done():
            self.ended.set_result(None)
        for task, _, _ in list(self._calls.values()):
            if task is not asyncio.current_task():
                task.cancel()

    def _through(self, number: int) -> None:
        self._calls.pop(number, None)
        self._client.end_work(self._path)

    async def _carry(
        self, number: int, operation: Operation[Any], on_reply: Callable[[bytes], None], deadline: float | None
    ) -> None:
        try:
            async with asyncio.timeout(deadline):
                reply = await self._reply(operation)
        except TimeoutError:
            self.late = True
            self._lose(f"it did not answer {operation.name} within {deadline:g} s", to_blame=True)
            return
        except GameLostError as error:
            # The world with the only open request may have crashed the process.
            why = "its process ended" if error.answered else str(error).rstrip(".")
            self._lose(why, to_blame=error.at_work == {self._path})
            return
        except WsapError as error:
            reply = failure(error, self._game)
        self._calls.pop(number, None)
        if not self.gone:
            on_reply(reply)

    async def _reply(self, operation: Operation[Any]) -> bytes:
        try:
            return answer(await self._ask(operation))
        except GameLostError as error:
            if error.answered and await self._is_the_same():
                # The same process does not know the world.
                return failure(WorldFailedError(str(error)), self._game)
            raise
        except Exception as error:
            return failure(error, self._game)

    async def _is_the_same(self) -> bool:
        try:
            return self.process_id is not None and await self._client.process_id() == self.process_id
        except GameLostError:
            return False  # it ended after its reply

    async def _ask(self, operation: Operation[Any]) -> Any:
        if isinstance(operation, Create):
            self._created = operation
        if operation.route is None:
            return {}
        body = operation.http_body()
        if operation.begins and body is not None and (created := self._created) is not None:
            body |= {"world_seed": created.seed, "options": created.options}
        # `_carry` limits the time; in a world of several seats a seat may wait for the others.
        path = self._path + operation.http_path()
        reply = await self._client.ask(operation.route.method, path, body, within=None)
        operation.check(reply, self._game)
        return reply

    def _lose(self, why: str, *, to_blame: bool) -> None:
        if not self.gone:
            self.close()
            self._on_lost(self, why, to_blame)


class HttpLines:
    """Provides the lines of one world to its `RebuildingLine`, one after another.

    `world_id` is its id in the game's process; `on_failure` is called once for each process that ended.
    """

    def __init__(self, spec: AdapterSpec, world_id: str, client: GameClient, on_failure: OnFailure) -> None:
        self.timeouts = WorkerTimeouts(deadline=SECONDS)
        self._spec = spec
        self._path = f"/worlds/{quote(world_id, safe='')}"
        self._client = client
        self._on_failure = on_failure
        self._line: HttpLine | None = None
        self._rebuilding: RebuildingLine | None = None

    def new_number(self) -> int:
        """Return a number for the world."""
        return 1

    async def place(self, rebuilding: RebuildingLine) -> HttpLine:
        """Return a line once the game is reachable; WorldFailedError if it is not, or its world can't be rebuilt."""
        self._rebuilding, before = rebuilding, self._line
        if before is None:
            process_id = await self._client.process_id()
        else:
            self._check_able(rebuilding, before)
            process_id = await self._find_again(before)
        line = self._line = HttpLine(self._client, self._path, process_id, self._spec.name, self._lost)
        return line

    def leave(self, rebuilding: RebuildingLine) -> None:
        """Close the line."""
        if self._line is not None:
            self._line.close()

    def held_by(self, rebuilding: RebuildingLine) -> None:
        """Return None: the nexus can't end the process."""

    def _lost(self, line: HttpLine, why: str, to_blame: bool) -> None:
        if self._rebuilding is not None:
            # Only the first report of an end can blame a world.
            to_blame = to_blame and (self._report_dead(line) or line.late)
            self._rebuilding.worker_lost(line, why, to_blame=to_blame)

    async def _find_again(self, before: HttpLine) -> str | None:
        try:
            async with asyncio.timeout(BACK):
                process_id = await self._wait_for_it()
        except TimeoutError:
            error = WorldFailedError(
                f"The game {self._spec.name!r} at {self._client.url} did not return within {BACK:g} s."
            )
            error.counted = not self._report_dead(before)
            raise error from None
        if (process_id is None or process_id != before.process_id) and self._report_dead(before):
            self._on_failure(WorldFailedError(f"The process of the game {self._spec.name!r} ended and was restarted."))
        return process_id

    async def _wait_for_it(self) -> str | None:
        while True:
            try:
                return await self._client.process_id()
            except GameLostError:
                continue  # the client has waited for some seconds

    def _report_dead(self, line: HttpLine) -> bool:
        # True for the first report of a process' end by any of its worlds.
        process_id = line.process_id or f"{self._path} {id(line)}"
        if process_id in self._client.reported_dead:
            return False
        self._client.reported_dead.add(process_id)
        return True

    def _check_able(self, rebuilding: RebuildingLine, before: HttpLine) -> None:
        journal = rebuilding.journal
        if journal.state is None and journal.position and "seed" not in self._spec.abilities:
            what = "no saved state" if "snapshot" in self._spec.abilities else "no snapshots"
            error = WorldFailedError(
                f"The process of the game {self._spec.name!r} ended or can't be reached, and the game has {what} and "
                "no seeds, so its world can't be rebuilt."
            )
            error.counted = not self._report_dead(before)
            raise error

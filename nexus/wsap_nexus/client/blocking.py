"""The synchronous client, which runs an `AsyncNexusClient` in a thread."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from wsap_nexus.client.awaited import AsyncNexusClient
from wsap_nexus.http.retries import Retries

P = ParamSpec("P")
T = TypeVar("T")


def _called(
    method: Callable[Concatenate[AsyncNexusClient, P], Awaitable[T]],
) -> Callable[Concatenate[NexusClient, P], T]:
    @functools.wraps(method)
    def call(self: NexusClient, /, *args: P.args, **options: P.kwargs) -> T:
        return _wait(self.portal, functools.partial(method, self.client, *args, **options))

    return call


def _iterated(
    method: Callable[Concatenate[AsyncNexusClient, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[NexusClient, P], Iterator[T]]:
    @functools.wraps(method)
    def iterate(self: NexusClient, /, *args: P.args, **options: P.kwargs) -> Iterator[T]:
        each = method(self.client, *args, **options)
        self.open.add(each)
        end = object()
        try:
            while (value := _wait(self.portal, functools.partial(anext, each, end))) is not end:
                yield value
        finally:
            self.open.discard(each)
            with suppress(RuntimeError):  # the client was closed, and thus the generator
                _wait(self.portal, each.aclose)

    return iterate


def _wait(portal: BlockingPortal, call: Callable[[], Awaitable[T]]) -> T:
    waiting = portal.start_task_soon(call)
    try:
        return waiting.result()
    except BaseException:
        # After Ctrl-C the request would continue, and `close` would wait for it.
        waiting.cancel()
        raise


class NexusClient:
    """A synchronous client of a nexus, with the arguments and methods of `AsyncNexusClient`."""

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        wire_types: Iterable[type] = (),
        retries: Retries | None = None,
        within: float | None = None,
    ) -> None:
        self.client = AsyncNexusClient(base_url, token, wire_types=wire_types, retries=retries, within=within)
        self._closing = ExitStack()
        self.portal = self._closing.enter_context(start_blocking_portal(name="nexus-client"))
        """Runs the asynchronous client."""
        self.open: set[AsyncGenerator[Any, None]] = set()
        """The generators in use. Any: of any type."""
        self._closing.callback(self.portal.call, self.portal.stop, True)  # cancels the requests of other threads
        self._closing.callback(self.portal.call, self._aclose)

    def close(self) -> None:
        """Close the connections."""
        self._closing.close()

    async def _aclose(self) -> None:
        for each in list(self.open):
            with suppress(RuntimeError):  # another thread is using it
                await each.aclose()
        await self.client.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    register = _called(AsyncNexusClient.register)
    agents = _iterated(AsyncNexusClient.agents)
    agent = _called(AsyncNexusClient.agent)
    change = _called(AsyncNexusClient.change)
    observation = _called(AsyncNexusClient.observation)
    action_space = _called(AsyncNexusClient.action_space)
    description = _called(AsyncNexusClient.description)
    act = _called(AsyncNexusClient.act)
    send = _called(AsyncNexusClient.send)
    talk = _called(AsyncNexusClient.talk)
    talked = _iterated(AsyncNexusClient.talked)
    diary = _iterated(AsyncNexusClient.diary)
    games = _called(AsyncNexusClient.games)
    add_game = _called(AsyncNexusClient.add_game)
    enter = _called(AsyncNexusClient.enter)
    leave = _called(AsyncNexusClient.leave)
    session = _called(AsyncNexusClient.session)
    avatars = _called(AsyncNexusClient.avatars)
    view = _called(AsyncNexusClient.view)
    stage = _called(AsyncNexusClient.stage)
    overview = _called(AsyncNexusClient.overview)
    worlds = _iterated(AsyncNexusClient.worlds)
    world = _called(AsyncNexusClient.world)
    world_view = _called(AsyncNexusClient.world_view)
    runs = _iterated(AsyncNexusClient.runs)
    run = _called(AsyncNexusClient.run)
    steps = _called(AsyncNexusClient.steps)
    step = _called(AsyncNexusClient.step)
    prompt = _called(AsyncNexusClient.prompt)
    sessions = _iterated(AsyncNexusClient.sessions)
    memories = _called(AsyncNexusClient.memories)
    now = _called(AsyncNexusClient.now)
    recall = _called(AsyncNexusClient.recall)
    log = _called(AsyncNexusClient.log)
    events = _iterated(AsyncNexusClient.events)

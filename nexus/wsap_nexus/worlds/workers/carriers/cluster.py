"""A worker as a process on a node of a Ray cluster, where an actor starts it and carries its messages.

The actor starts the same process with the same keeper as on the machine of the nexus (`pipe.py`), so that limits,
blame, and the end of what games have started are as there. It only passes bytes on, and never reads what a game sends.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import socket
import struct
import sys
import time
from collections import Counter, deque
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wsap_core.discovery import find_plugins
from wsap_core.errors import MissingServiceError, UsageError, WorldError
from wsap_core.installing import install_line
from wsap_core.pipes import output_to_stderr
from wsap_core.untrusted import error_line, single_line
from wsap_nexus.worlds.workers.carriers.pipe import BY_FORCE, WorkerPipe
from wsap_nexus.worlds.workers.link import End, Hears

# Any, in this module: Ray is optional.

AVOIDED = 60.0
"""Seconds for which no worker is put on a node where one was lost, while there are others."""
PLACED = 120.0
"""Seconds in which the cluster must start a worker."""
REACHED = 10.0
"""Seconds in which the address of the cluster must answer."""
LISTENING = 4
"""The most calls that wait for news of a worker at once."""


@dataclass(frozen=True)
class Marked:
    """What an actor read of the mark of its worker."""

    world: int = 0
    excess: int = 0
    crowd: int = 0


@dataclass(frozen=True)
class News:
    """What has come from a worker since the last time.

    It travels as bytes, which Ray passes on as they are: anything else it would pickle, in twice the time of a call.
    """

    number: int
    heard: bytes
    printed: bytes
    mark: Marked
    pid: int
    """The id of its process on its node."""
    end: End | None
    """How it has ended; then no more will come."""

    def packed(self) -> bytes:
        """Return this as bytes."""
        how, code = (0, 0) if self.end is None else (1, 0) if self.end.code is None else (2, self.end.code)
        mark = self.mark
        head = _HEAD.pack(self.number, mark.world, mark.excess, mark.crowd, self.pid, len(self.heard), how, code)
        return b"".join((head, self.heard, self.printed))

    @classmethod
    def unpacked(cls, data: bytes) -> News:
        """Return what was packed."""
        number, world, excess, crowd, pid, length, how, code = _HEAD.unpack_from(data)
        heard = data[_HEAD.size : _HEAD.size + length]
        end = None if how == 0 else End(None if how == 1 else code)
        return cls(number, heard, data[_HEAD.size + length :], Marked(world, excess, crowd), pid, end)


_HEAD = struct.Struct(">QQQQQQBi")


class WorkerActor:
    """Starts a worker on its node, and passes on what it is told and what the worker sends.

    Each call of `talk` may bring bytes for the worker, and is answered with the next news of it, not with a reply to
    them. So one call to the actor does for a call to a world and its reply.
    """

    def __init__(self) -> None:
        self._pipe: WorkerPipe | None = None
        self._beat = 1.0
        self._next = 0
        """The number of the bytes that the worker gets next."""
        self._early: dict[int, bytes | None] = {}
        """What came before it, by number."""
        self._heard, self._printed = bytearray(), bytearray()
        self._mark = Marked()
        self._end: End | None = None
        self._told = 0
        self._listening: deque[asyncio.Future[News]] = deque()
        """Calls that wait for news."""

    async def start(self, path: Sequence[str], beat: float, memory: int | None) -> tuple[str, int]:
        """Start the worker, and return what its node is called and the id of its process.

        It finds games on the import path of the node, and then on the `path` of the nexus as far as that is here.
        """
        ray: Any = importlib.import_module("ray")
        self._pipe, self._beat = WorkerPipe(_path_here(path), aside=True), beat
        await self._pipe.start(self, beat, memory)
        node = ray.get_runtime_context().get_node_id()
        return f"{socket.gethostname()} ({node[:8]})", self._pipe.pid

    async def installed(self) -> Mapping[str, str]:
        """Return the versions of what is installed here."""
        return installed()

    async def talk(self, data: bytes) -> bytes:
        """Pass bytes on to the worker, after those with smaller numbers; return packed `News` of it.

        That is as soon as there is some, but at the latest after a heartbeat, or when several calls wait for it.
        `data` is what `_numbered` returns.
        """
        number, is_last = _NUMBER.unpack_from(data)
        self._early[number] = None if is_last else data[_NUMBER.size :]
        while self._next in self._early:
            self._pass_on(self._early.pop(self._next))
            self._next += 1
        listening: asyncio.Future[News] = asyncio.get_running_loop().create_future()
        self._listening.append(listening)
        if len(self._listening) > LISTENING or self._has_news:
            self._tell()
        await asyncio.wait({listening}, timeout=self._beat)
        if not listening.done():
            self._listening.remove(listening)
            return self._news().packed()
        return listening.result().packed()

    async def kill(self) -> None:
        """Kill the worker."""
        if self._pipe is not None:
            self._pipe.kill()

    def heard(self, data: bytes) -> None:
        """Keep what the worker sent, and tell it."""
        self._heard += data
        self._tell()

    def printed(self, data: bytes) -> None:
        """Keep what games printed, and tell it."""
        self._printed += data
        self._tell()

    def has_ended(self, end: End) -> None:
        """Keep how the worker ended, and what it left, and tell it."""
        assert self._pipe is not None
        self._look()
        self._end = end
        self._pipe.close()
        self._tell()

    @property
    def _has_news(self) -> bool:
        return bool(self._heard or self._printed or self._end)

    def _pass_on(self, data: bytes | None) -> None:
        assert self._pipe is not None
        if data is None:
            self._pipe.finish()
        elif data:
            self._pipe.write(data)

    def _tell(self) -> None:
        if self._listening:
            self._listening.popleft().set_result(self._news())

    def _news(self) -> News:
        self._look()
        pid = 0 if self._pipe is None else self._pipe.pid
        news = News(self._told, bytes(self._heard), bytes(self._printed), self._mark, pid, self._end)
        self._told += 1
        self._heard.clear()
        self._printed.clear()
        return news

    def _look(self) -> None:
        if self._pipe is not None and self._end is None:
            mark = self._pipe.mark
            self._mark = Marked(mark.world, mark.excess, mark.crowd)


_NUMBER = struct.Struct(">Q?")


def _numbered(number: int, data: bytes | None) -> bytes:
    """Return bytes for a worker with their number; None lets it exit."""
    return _NUMBER.pack(number, data is None) + (data or b"")


class RayCarrier:
    """A `Carrier` to a process on a node."""

    def __init__(self, cluster: RayCluster) -> None:
        self.mark = Marked()
        self.pid = 0
        """The id of the worker's process on its node, or of its keeper until the first message."""
        self.where = ""
        self._cluster = cluster
        self._actor: Any = None
        self._hears: Hears | None = None
        self._waiting = bytearray()
        """What is sent in the next turn of the event loop."""
        self._sent = 0
        self._listening = 0
        """The calls that wait for news."""
        self._early: dict[int, News] = {}
        """News that came before others, by number."""
        self._next = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_ended = False

    async def start(self, hears: Hears, beat: float, memory: int | None) -> None:
        """Have the cluster start the process; WorldError if it does not, or lacks what is needed."""
        self._hears = hears
        lost = self._cluster.ray.exceptions.RayError
        try:
            async with asyncio.timeout(PLACED):
                for last in (False, False, True):
                    await asyncio.to_thread(self._cluster.look)
                    self._actor = self._cluster.actor(self)
                    try:
                        there = await self._actor.installed.remote()
                        path = [str(place) for place in sys.path if place]
                        name, self.pid = await self._actor.start.remote(path, beat, memory)
                        break
                    except lost:  # its node has just died, which is not known everywhere yet
                        if last:
                            raise
                        self._cluster.avoid(self)
        except TimeoutError:
            self.close()
            raise WorldError(f"The Ray cluster started no worker within {PLACED:g} s.") from None
        except Exception as error:  # whatever Ray raises
            self.close()
            raise WorldError(f"The Ray cluster could not start a worker: {error_line(error, 200)}") from error
        self.where = f"node {single_line(str(name))[:80]}"
        if differing := differences(installed(), there):
            self.close()
            raise WorldError(f"On {self.where} of the Ray cluster {differing}; install the same version everywhere.")
        self._talk(b"")

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._send)
        self._waiting += data

    def finish(self) -> None:
        """Let the process exit, once it has what was sent before."""
        self._send()
        self._talk(None)

    def kill(self) -> None:
        """Kill the process; if its node does not answer, count it as lost."""
        if not self._has_ended:
            self._run(self._kill())
            lost = End(lost=f"{self.where} of the Ray cluster does not answer")
            asyncio.get_running_loop().call_later(2 * BY_FORCE, self._lose, lost)

    def close(self) -> None:
        """End the actor, and with it whatever is left of the process."""
        self._has_ended = True
        for task in self._tasks:
            task.cancel()
        self._cluster.forget(self)
        actor, self._actor = self._actor, None
        if actor is not None:
            with contextlib.suppress(Exception):  # its node, or the cluster, may be gone
                self._cluster.ray.kill(actor)

    def _send(self) -> None:
        if self._waiting:
            data = bytes(self._waiting)
            self._waiting.clear()
            self._talk(data)

    def _talk(self, data: bytes | None) -> None:
        if not self._has_ended:
            number, self._sent = self._sent, self._sent + 1
            self._listening += 1
            self._run(self._listen(number, data))

    async def _listen(self, number: int, data: bytes | None) -> None:
        try:
            news = News.unpacked(await self._actor.talk.remote(_numbered(number, data)))
        except Exception as error:
            self._lose(End(lost=f"{self.where} of the Ray cluster was lost ({type(error).__name__})"))
            return
        self._listening -= 1
        self._early[news.number] = news
        while (news_now := self._early.pop(self._next, None)) is not None:
            self._next += 1
            self._take(news_now)
        if not self._listening:
            self._talk(b"")

    def _take(self, news: News) -> None:
        if self._hears is None or self._has_ended:
            return
        self.mark, self.pid = news.mark, news.pid
        if news.printed:
            self._hears.printed(news.printed)
        if news.heard:
            self._hears.heard(news.heard)
        if news.end is not None:
            self._lose(news.end)

    async def _kill(self) -> None:
        with contextlib.suppress(Exception):  # then the other calls say that it is lost
            await self._actor.kill.remote()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=f"worker on {self.where}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _lose(self, end: End) -> None:
        if not self._has_ended and self._hears is not None:
            self._has_ended = True
            if end.lost:
                self._cluster.avoid(self)
            self._hears.has_ended(end)


class RayCluster:
    """The nodes of a Ray cluster, on which workers run instead of on this machine.

    A new worker is put on the node with the fewest workers for its processors. It reserves none: a worker mostly waits
    for the decisions of agents.
    """

    def __init__(self, ray: Any) -> None:
        self.ray = ray
        self._processors: dict[str, float] = {}
        """Of each node."""
        self._nodes: dict[RayCarrier, str] = {}
        """Where each worker is."""
        self._avoided: dict[str, float] = {}
        """When a worker was lost on a node."""
        self.look()

    @property
    def size(self) -> int:
        """The number of processors."""
        return max(1, int(sum(self._processors.values())))

    def look(self) -> None:
        """Look which nodes there are."""
        alive = {node["NodeID"]: node["Resources"].get("CPU", 0.0) for node in self.ray.nodes() if node["Alive"]}
        # A node without processors, as the head of a large cluster, is not meant for work.
        self._processors = {node: cpus for node, cpus in alive.items() if cpus} or dict.fromkeys(alive, 1.0)

    def carrier(self) -> RayCarrier:
        """Return a carrier for a new worker."""
        return RayCarrier(self)

    def actor(self, carrier: RayCarrier) -> Any:
        """Return a new actor for a worker."""
        used = Counter(self._nodes.values())
        avoided = {node for node, lost in self._avoided.items() if time.monotonic() - lost < AVOIDED}
        node = min(
            self._processors.keys() - avoided or self._processors,
            key=lambda node: ((used[node] + 1) / self._processors[node], node),
        )
        self._nodes[carrier] = node
        affinity = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        options = {"num_cpus": 0, "scheduling_strategy": affinity(node_id=node, soft=False)}
        return self.ray.remote(WorkerActor).options(**options).remote()

    def avoid(self, carrier: RayCarrier) -> None:
        """Put no other worker on the node of a lost one for a while."""
        self._avoided[self._nodes[carrier]] = time.monotonic()

    def forget(self, carrier: RayCarrier) -> None:
        """Forget a worker that has ended."""
        self._nodes.pop(carrier, None)


@contextmanager
def ray_cluster() -> Iterator[RayCluster]:
    """Yield the cluster of RAY_ADDRESS, else the one that runs on this machine, else one that is started here.

    Raises:
        MissingServiceError: Ray is not installed.
        UsageError: the cluster can't be reached.
    """
    try:
        ray: Any = importlib.import_module("ray")
    except ModuleNotFoundError:
        line = install_line("wsap-nexus[ray]")
        raise MissingServiceError(f"--workers ray needs Ray; install it with: {line}") from None
    own = not ray.is_initialized()
    if own:
        refuse_unreachable(os.environ.get("RAY_ADDRESS", ""))
        try:
            with output_to_stderr():
                ray.init(log_to_driver=False, configure_logging=False)
        except (ConnectionError, ImportError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            raise UsageError(f"The Ray cluster can't be reached: {error_line(error, 200)}") from error
    try:
        yield RayCluster(ray)
    finally:
        if own:
            ray.shutdown()


def refuse_unreachable(address: str) -> None:
    """Raise UsageError if nobody listens at an address; Ray itself tries for minutes."""
    at = urlsplit(address if "://" in address else f"//{address}")
    try:
        if at.hostname and at.port:
            socket.create_connection((at.hostname, at.port), timeout=REACHED).close()
    except (OSError, ValueError) as error:
        told = (
            f"There is no Ray cluster at {single_line(address)[:80]}, which RAY_ADDRESS names: {error_line(error, 100)}"
        )
        raise UsageError(told) from error


def _path_here(path: Sequence[str]) -> list[str]:
    own = [place for place in sys.path if place]
    return own + [place for place in path if place not in own and Path(place).exists()]


def installed() -> dict[str, str]:
    """Return the versions of Python and of all distributions with plugins here."""
    found = {plugin.distribution: plugin.version for plugin in find_plugins()}
    return {**found, "Python": ".".join(map(str, sys.version_info[:2]))}


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """Return the first difference between versions of what is installed here and there; empty if there is none.

    What is installed in one place only makes none: a game that is missing says so when it is played.
    """
    for name in sorted(here.keys() & there.keys()):
        if here[name] != there[name]:
            return f"{name} is {there[name]}, and here {here[name]}"
    return ""

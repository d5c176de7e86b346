"""Letting agents live when a nexus starts: some at once, and the many others little by little.

Ten thousand agents that all go about their lives in the same moment would keep the nexus from answering
anybody for minutes. So those in worlds come first, and the rest follow at the pace at which there is
time left: after each few, it waits twice as long as their coming to life took.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from wsap_nexus.store.book import Ledger
from wsap_nexus.store.entities import AgentIdentity

AT_ONCE = 50
"""Agents that live at once when a nexus starts; more than that follow."""
PAGE = 200
"""Agents that are read from the database together."""
TOGETHER = 4
"""Agents that come to life together, of those that follow."""


class Waking:
    """The agents of a nexus that are still to come to life.

    Args:
        ledger: where they are.
        awaken: lets one live; does nothing for one that does.
    """

    def __init__(self, ledger: Ledger, awaken: Callable[[AgentIdentity], None]) -> None:
        self._ledger = ledger
        self._awaken = awaken
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Let the first live, and the others follow."""
        agents = self._sleeping()
        for number, agent in enumerate(agents, start=1):
            self._awaken(agent)
            if number == AT_ONCE:
                self._task = asyncio.create_task(self._follow(agents), name="waking agents")
                return

    async def stop(self) -> None:
        """Let nobody else live."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self, agents: Iterator[AgentIdentity]) -> None:
        loop = asyncio.get_running_loop()
        await self._breathe(loop)
        for number, agent in enumerate(agents, start=1):
            self._awaken(agent)
            if number % TOGETHER == 0:
                await self._breathe(loop)

    async def _breathe(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until those who came to life have had a turn or two, and then twice as long as that took."""
        began = loop.time()
        for _ in range(3):
            await asyncio.sleep(0)
        await asyncio.sleep(min(1.0, 2 * (loop.time() - began)))

    def _sleeping(self) -> Iterator[AgentIdentity]:
        """Give the active agents, those in worlds first, reading them page by page."""
        for place in ("world", "nexus"):
            last = ""
            while True:
                with self._ledger.look() as book:
                    page = book.agents(state="active", place=place, after=last, limit=PAGE)
                yield from page
                if len(page) < PAGE:
                    break
                last = page[-1].id

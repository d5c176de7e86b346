"""Play the village, or go on with it, and die by SIGKILL soon after so many answers of its model.

Arguments: the database, the file that every answer is written to, the ticks of the run, the answers after which to die
(0 for never), and the turns of the event loop until then.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "kit"))

from asking_world import Teller, village_host, village_plan

from wsap_core.seams.agent import Usage
from wsap_core.seams.model import Finish, OnText, Reply, Request
from wsap_nexus.runs.session import resume, start
from wsap_nexus.runs.store import open_store


class Counting(Teller):
    """Answers what follows from the key and the words, and writes down the keys that it answered."""

    def __init__(self, answered: str, last: int, turns: int) -> None:
        super().__init__()
        self._answered = os.open(answered, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._left = last
        self._turns = turns

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        text = hashlib.sha256(f"{request.key} {request.messages[0].text()}".encode()).hexdigest()[:8]
        for _ in range(int(text, 16) % 7):
            await asyncio.sleep(0)
        os.write(self._answered, f"{request.key}\n".encode())
        self._left -= 1
        if self._left == 0:
            self._dying = asyncio.create_task(self._die())
        return Reply(text, finish=Finish(usage=Usage(1, 10, 2, 0.5)))

    async def _die(self) -> None:
        for _ in range(self._turns):
            await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGKILL)


def main(database: str, answered: str, ticks: int, last: int, turns: int) -> None:
    host = village_host(Counting(answered, last, turns))
    with open_store(database) as store:
        begun = store.repository.list_runs(limit=1)
        around = resume("last", host, store) if begun else start(village_plan(ticks, every=5), host, store)
        with around as session:
            summary = asyncio.run(session.play())
    print(summary.trajectory_hash, summary.world_usage.usage.calls, summary.world_usage.asked_again)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))

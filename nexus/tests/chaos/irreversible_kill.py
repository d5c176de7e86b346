"""Plays a bell in a process that is killed: `irreversible_kill.py DATABASE RUN FILE STEPS KILL`.

It is killed when event number KILL of this session is appended, at times after that is committed, never for 0.
`BELL_DIES` has the bell kill it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "kit"))

from kill_kit import die_at

from wsap_core.host import PluginHost
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.session import resume, start
from wsap_nexus.runs.store import open_store


def main(database: str, run: str, file: str, steps: int, kill: int) -> None:
    host = PluginHost.discovered()
    with open_store(database) as store:
        die_at(store, kill)
        known = store.repository.find_run(run)
        plan = RunPlan("irreversible_worlds:BELL", (SeatPlan("seat-1", "random"),), steps=steps, options={"file": file})
        begun = start(plan, host, store, run_id=run) if known is None else resume(run, host, store)
        with begun as session:
            asyncio.run(session.play())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))

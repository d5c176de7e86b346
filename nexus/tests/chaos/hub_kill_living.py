"""Kill a nexus with a world that lives, start it again, and look whether anything was lost or happened twice.

    python nexus/tests/chaos/hub_kill_living.py [--kills N] [--seed N] [--agents N] [--json]

Agents rove into a fair that goes on by itself and out of it, with goals, and with things that they bring and take; some
of what they do is not possible, and the weather and a person interfere. After each kill cancelled arrivals are
forgotten outside the log, and a tick is looked at and branched. At the end the whole run is gone through again without
any saved state, from its first tick, and has to come to the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import hub_checks
import hub_kill
import hub_kit
from living_worlds import FAIR
from sqlalchemy import text

from wsap_core import Action, ActionResult, ActionSpace, AgentSpec, Context, Observation
from wsap_core.errors import WsapError
from wsap_core.host import PluginHost, Registration
from wsap_core.protocol import Goal
from wsap_llm.backends.pool import ModelPool
from wsap_nexus.agents.talk import leave_message
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.runs.store import open_store
from wsap_nexus.runs.views.restoring import Runs
from wsap_nexus.services import StoreRunner
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import Policy
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.nexus_store import NexusStore

RUN = "nexus-fair"


class Planter:
    """Plants and rests by chance, and leaves by choice now and then."""

    def __init__(self, context: Context) -> None:
        self._random = context.random

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    def decide(self, observation: Observation) -> Action:
        chance = self._random.random()
        if chance < 0.06:
            return Action("exit_game" if chance < 0.03 else "fly")
        return Action("plant" if chance < 0.5 else "rest")

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: list[Goal]) -> list[str]:
        return []

    def snapshot(self) -> bytes:
        version, inner, gauss = self._random.getstate()
        return json.dumps([version, list(inner), gauss]).encode()

    def restore(self, data: bytes) -> None:
        version, inner, gauss = json.loads(data)
        self._random.setstate((version, tuple(inner), gauss))


def host() -> PluginHost:
    found = hub_kit.host(more=[FAIR])
    found.agents.add(Registration(AgentSpec("planter", "Plants.", Planter, abilities=("snapshot",)), "kit", "tests"))
    return found


def settings(seed: int) -> Settings:
    return Settings(seed=seed, games=("fair",), worlds=(KeptWorld("fair", "fair"),), snapshot_every=25, pace=500.0)


def policies(number: int) -> dict[str, Policy]:
    return {
        "nexus": Policy("rover", {"games": ["fair"], "steps": 6 + 3 * (number % 4), "goals": "grow; rest"}),
        "fair": Policy("planter"),
    }


def live(database: str, out: int, options: argparse.Namespace) -> None:
    """Run a nexus until it is killed; say on `out` what was committed."""
    import os

    def say(*words: object) -> None:
        os.write(out, (" ".join(map(str, words)) + "\n").encode())

    logging.getLogger("wsap_nexus").addHandler(hub_kill.Failures(say))

    async def run() -> None:
        with open_store(database) as store:
            nexus = Nexus(host(), store, settings(options.seed))
            with nexus.nexus_store.change() as tx:
                for number in range(options.agents):
                    tx.register(f"agent-{number}", policies=policies(number))

            def heard(event: NexusEvent) -> None:
                say("event", event.seq, event.kind)
                if nexus.store.writer.committed(RUN) >= 0:
                    say("run", RUN, nexus.store.writer.committed(RUN))

            nexus.nexus_store.listen(heard)
            await nexus.start()
            for problem in hub_checks.problems(store.database):
                say("PROBLEM", problem)
            say("ready")
            await asyncio.Event().wait()

    asyncio.run(run())


def checked_log(database: str) -> list[str]:
    """Return what is wrong in the log of the world's run: ticks and steps follow each other, each once."""
    found, ticks, steps, there = [], 0, Counter[str](), set[str]()
    with Database.open(database) as opened, opened.read() as connection:
        rows = hub_checks.rows(connection, f"SELECT kind, seat, step FROM event WHERE run_id = '{RUN}' ORDER BY seq")
    for row in rows:
        if row.kind == "tick":
            ticks += 1
            if row.step != ticks:
                found.append(f"tick {row.step} follows tick {ticks - 1}")
        elif row.kind == "step":
            if row.step != steps[row.seat] or row.seat not in there:
                found.append(f"step {row.step} of {row.seat} follows {steps[row.seat]}, there: {sorted(there)}")
            steps[row.seat] += 1
        elif row.kind in ("joined", "departed"):
            (there.add if row.kind == "joined" else there.discard)(row.seat)
    return found


def seen(database: str, number: int, rng: random.Random) -> list[str]:
    """Prune what is old, interfere, and look at a tick and branch it; return what went wrong."""
    with open_store(database) as store:
        if store.repository.find_run(RUN) is None:
            return []
        store.repository.add_to_inbox(RUN, {"rain": number})
        with NexusStore(store.database).change() as tx:
            # As pruning does once they are old; the rest is needed to check what happened.
            tx.connection.execute(text("DELETE FROM transfer WHERE state = 'cancelled' AND kind = 'enter'"))
            leave_message(tx, f"agent-{number % 4}", f"Hear: {number}.")
        runs = Runs(host(), store.repository)
        newest = runs.ticks(RUN)
        if not newest:
            return []
        tick = rng.randint(1, newest)
        try:
            world = asyncio.run(runs.restored(RUN, tick))
            body = next(event["body"]["body"] for event in runs.history(RUN, "tick", first=tick, last=tick))
            if (world.number, world.flowers) != (tick, body["flowers"]):  # type: ignore[attr-defined]
                return [f"tick {tick} is restored with {world.flowers} flowers"]  # type: ignore[attr-defined]
            asyncio.run(StoreRunner(host(), store, ModelPool(host())).branch(RUN, tick, f"branch-{number}"))
        except WsapError as error:
            return [f"tick {tick} can't be looked at: {error}"]
    return []


def through_again(database: str, seed: int) -> list[str]:
    """Go through the whole run without any saved state, and return what is wrong."""
    found: list[str] = []
    logging.getLogger("wsap_nexus").addHandler(
        hub_kill.Failures(lambda *words: found.append(" ".join(map(str, words))))
    )
    with Database.open(database) as opened, opened.write() as connection:
        connection.execute(text("DELETE FROM saved_state"))
        gone = connection.execute(text(f"UPDATE event SET kind = 'saved' WHERE kind = 'snapshot' AND run_id = '{RUN}'"))
        if not gone.rowcount:
            found.append("no state was ever saved")

    async def run() -> None:
        with open_store(database) as store:
            nexus = Nexus(host(), store, settings(seed))
            before = store.repository.last_event(RUN, "tick")
            await nexus.start()
            for _ in range(10_000):
                await asyncio.sleep(0.02)
                store.writer.flush()
                now = store.repository.last_event(RUN, "tick")
                if found or (now and before and now.seq > before.seq):
                    break
            else:
                found.append("the run does not go on")
            await nexus.stop()

    asyncio.run(run())
    return found


def campaign(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Kill the nexus of one database that often and return what was found."""
    database, rng = hub_kill.location(folder, options), random.Random(options.seed)
    hub_kill.live = live
    found: list[str] = []
    ups = 0
    for number in range(options.kills):
        said, up = hub_kill.one_life(database, options, rng)
        ups += up
        problems = [*hub_kill.check(database, said), *checked_log(database), *seen(database, number, rng)]
        found += [f"kill {number + 1}: {problem}" for problem in problems]
        if found:
            break
    found += through_again(database, options.seed)
    found += checked_log(database)
    with Database.open(database) as opened, opened.read() as connection:
        found += hub_checks.problems(opened)
        counted = Counter(row.kind for row in hub_checks.rows(connection, "SELECT kind FROM nexus_event"))
        ticks = hub_checks.rows(connection, "SELECT count(*) AS n FROM event WHERE kind = 'tick'")[0].n
    return {"problems": found, "kills": number + 1, "while_up": ups, "ticks": ticks, "events": dict(counted)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agents", type=int, default=4)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, hub_kill.served(options):
        found = campaign(Path(folder), options)
    print(json.dumps(found, indent=None if options.json else 2))
    return bool(found["problems"])


if __name__ == "__main__":
    sys.exit(main())

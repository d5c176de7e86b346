"""Kill a nexus whose agents come and go with goals of their own, and look whether a world was lost.

    python nexus/tests/chaos/hub_kill_worlds.py [--kills N] [--seed N] [--agents N] [--workers N]
        [--database postgresql] [--json]

Agents enter and leave two worlds that live (a fair, and a village that asks a model) and two games of several seats,
with goals, and act wrongly now and then. The model never answers the same twice. People whisper to agents, call them
home, and influence the village; records are pruned at once and copied, all the time. After each kill the books are
checked, random ticks of the living worlds are looked at, and one is branched. In the next life each world has to go on.
At the end all ticks of each living world are repeated from its start, without the states saved on the way.

With `--database postgresql` the database is on a private server, which is stopped or killed and started again, too,
while the nexus works.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import random
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import hub_checks
import hub_kill
import hub_kit
import sqlalchemy
from life_kit import Script
from living_worlds import FAIR
from several_seats import WAKE

from wsap_core import Action, ActionResult, ActionSpace, AgentSpec, Context, Observation
from wsap_core.errors import WsapError
from wsap_core.host import PluginHost, Registration
from wsap_core.protocol import Goal
from wsap_core.seams.model import Request
from wsap_core.specs import BackendSpec
from wsap_llm.backends.pool import ModelPool
from wsap_llm.keys import request_key
from wsap_llm.scripted import ScriptedBackend
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.runs.store import open_store
from wsap_nexus.runs.views.restoring import Runs
from wsap_nexus.services import StoreRunner
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import Policy
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.repository import Repository
from wsap_nexus.store.upkeep.backup import back_up
from wsap_nexus.store.upkeep.prune import prune

VILLAGE, FAIR_RUN = "nexus-village", "nexus-fair"
LIVING = (VILLAGE, FAIR_RUN)
GAMES = ("sandbox:village", "fair", "matrix", "wake")
LOST = (
    "world_crashed", "world_rewound", "agent_failed", "session_force_closed", "game_offline", "transfer_unresolved",
)  # fmt: skip
"""Kinds of events that must not happen: no game here fails, and every world can be gone on with."""
STANDSTILL = 600.0
"""Seconds without a word after which a nexus, or one of its living worlds, has come to a standstill: many, since a busy
machine repeats a world slowly."""


class Meddler:
    """Does what is legal and what is not by chance, and leaves by choice now and then."""

    def __init__(self, context: Context) -> None:
        self._random = context.random
        self._names: tuple[str, ...] = ()

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        self._names = tuple(action_space.names)

    def decide(self, observation: Observation) -> Action:
        chance = self._random.random()
        if chance < 0.05:
            return Action("exit_game", {"reason": "I have seen enough."})
        if chance < 0.08:
            return Action("jack_out")
        if chance < 0.2:
            return Action(self._random.choice(("fly", "wait", "say", "plant")), {"to": "nobody", "n": 7})
        name = self._random.choice(self._names)
        given = {"text": f"I count {self._random.randrange(1000)} clouds."} if name == "intend" else {}
        return Action(name, given)

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: list[Goal]) -> list[str]:
        return []


class SavedMeddler(Meddler):
    """A meddler whose state can be saved."""

    def snapshot(self) -> bytes:
        version, inner, gauss = self._random.getstate()
        return json.dumps([version, list(inner), gauss]).encode()

    def restore(self, data: bytes) -> None:
        version, inner, gauss = json.loads(data)
        self._random.setstate((version, tuple(inner), gauss))


class Seeker:
    """Goes anywhere by chance, mostly with a goal."""

    def __init__(self, context: Context) -> None:
        self._random = context.random

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    def decide(self, observation: Observation) -> Action:
        game = self._random.choice(GAMES)
        where: dict[str, Any] = {"game": game, "exit_when": f"step >= {self._random.randrange(2, 20)}"}
        if self._random.random() < 0.8:
            where["goals"] = self._random.choice(("win", "plant a tree", "find out who took the flour"))
        if game in ("sandbox:village", "fair"):
            where["world"] = game.rpartition(":")[2]
        return Action("enter_game", where)

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: list[Goal]) -> list[str]:
        return []


AGENTS = (
    AgentSpec("meddler", "Does anything.", Meddler),
    AgentSpec("saved-meddler", "Does anything, and can be saved.", SavedMeddler, abilities=("snapshot",)),
    AgentSpec("seeker", "Goes anywhere.", Seeker),
)
SCRIPTED = {"model": "script/it", "memory": "none", "plan": False, "style": "json"}


def answered(request: Request) -> str:
    """Return what a model says that never says the same twice."""
    number = time.monotonic_ns() ^ os.getpid()
    chance = random.Random(number)
    if request.purpose == "intent":
        return json.dumps({"intention": f"I do thing number {number}."})
    if request.purpose == "decide":
        action = chance.choice(("wait", "intend", "plant", "rest", "exit_game", "cooperate", "left"))
        return json.dumps({"action": action, "params": {"text": f"Thing {number}."} if action == "intend" else {}})
    return f"Nothing but {number}."


def host(database: str) -> PluginHost:
    """Return what is installed, with the worlds, agents and the model of this trial.

    The model says so on the standard error output if a call of a world is asked again whose reply is recorded.
    """
    found = hub_kit.host(more=[FAIR, WAKE])
    for spec in AGENTS:
        found.agents.add(Registration(spec, "kit", "tests"))
    bought = world_calls(database)

    def answer(request: Request) -> str:
        if request.key and (request.key, request_key("script/it", request)) in bought:
            raise AssertionError(f"PROBLEM the call {request.key} is paid twice")
        return answered(request)

    script = Script(dict.fromkeys(("intent", "decide", "scene", "story", "memory"), answer))
    made = BackendSpec("script", "A scripted model.", lambda context: ScriptedBackend(script, model="script/it"))
    found.backends.add(Registration(made, "kit", "tests"))
    return found


def world_calls(database: str) -> set[tuple[str, str]]:
    """Return the keys and hashes of the world's recorded calls since its last return to an earlier tick."""
    if "://" not in database and not Path(database).exists():
        return set()
    found: set[tuple[str, str]] = set()
    with Database.open(database) as opened, contextlib.suppress(WsapError):
        for event in Repository(opened).read_events(VILLAGE, kinds=("call", "rewound")):
            if event.kind == "rewound":
                found.clear()
            elif event.seat is None:
                found.add((event.data["key"], event.data["request"]))
    return found


def settings(seed: int, workers: int) -> Settings:
    worlds = (
        KeptWorld("village", "sandbox:village", {"language": "en", "model": "script/it"}), KeptWorld("fair", "fair"),
    )  # fmt: skip
    every = random.Random(seed).choice((1, 7, 200))
    return Settings(
        seed=5, games=GAMES, worlds=worlds, snapshot_every=every, lobby_seconds=0.05, pace=40.0, workers=workers,
        living_in_workers=workers > 0,
    )  # fmt: skip


def policies(number: int) -> dict[str, Policy]:
    player = (Policy("meddler"), Policy("saved-meddler"), Policy("llm", SCRIPTED))[number % 3]
    return {"nexus": Policy("seeker"), "*": player}


def live(database: str, out: int, options: argparse.Namespace, life: int) -> None:
    """Run a nexus until it is killed; say on `out` what was committed, and each tick of a living world."""

    def say(*words: object) -> None:
        os.write(out, (" ".join(map(str, words)) + "\n").encode())

    logging.getLogger("wsap_nexus").addHandler(hub_kill.Failures(say))
    rng = random.Random(options.seed * 1000 + life)

    async def run() -> None:
        with open_store(database) as store:
            nexus = Nexus(host(database), store, settings(options.seed * 1000 + life, options.workers))
            with nexus.nexus_store.change() as tx:
                for number in range(options.agents):
                    tx.register(f"agent-{number}", policies=policies(number))

            def heard(event: NexusEvent) -> None:
                say("event", event.seq, event.kind)
                # The model answers nothing that can be used, so an agent that stays is paused at times.
                if event.kind in LOST and event.body.get("code") != "FORCED_DECISIONS":
                    say("PROBLEM", f"{event.kind} of {event.game or event.agent_id}: {event.body}")

            def waiting() -> None:
                for task in asyncio.all_tasks():
                    say("waits", task.get_name(), *waits_at(task))
                say("waits held", nexus.live.held, "runs", sorted(nexus.live.run_tasks))
                for run_id in LIVING:
                    last = store.repository.last_event(run_id)
                    say("waits", run_id, None if last is None else (last.seq, last.kind, last.step))
                    for event in store.repository.read_events(run_id, from_seq=max(0, (last.seq if last else 0) - 40)):
                        say("waits", run_id, event.seq, event.kind, event.seat, event.step)

            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, waiting)
            nexus.nexus_store.listen(heard)
            await nexus.start()
            say("ready")
            await asyncio.gather(ticks(nexus, say), people(nexus, rng, options), keeping(nexus, database, rng))

    asyncio.run(run())


def waits_at(task: asyncio.Task[Any]) -> Iterator[str]:
    """Yield the places at which a suspended task waits, the innermost last."""
    waiting: Any = task.get_coro()
    while waiting is not None:
        for kind in ("cr", "gi", "ag"):
            if (frame := getattr(waiting, f"{kind}_frame", None)) is not None:
                yield f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}:{frame.f_code.co_name}"
        waiting = next((found for name in ("cr_await", "gi_yieldfrom", "ag_await")
                        if (found := getattr(waiting, name, None)) is not None), None)  # fmt: skip


async def ticks(nexus: Nexus, say: Any) -> None:
    """Say each tick that is committed."""
    seen: dict[str, int] = {}
    while True:
        for run_id in LIVING:
            with contextlib.suppress(WsapError):  # while the server is away
                nexus.store.writer.flush()
                last = nexus.store.repository.last_event(run_id, "tick")
                if last is not None and last.seq != seen.get(run_id, last.seq):
                    say("tick", run_id, last.step)
                seen[run_id] = -1 if last is None else last.seq
        await asyncio.sleep(0.02)


async def people(nexus: Nexus, rng: random.Random, options: argparse.Namespace) -> None:
    """Whisper to agents, call them home, and influence the village."""
    runner = StoreRunner(nexus.host, nexus.store, ModelPool(nexus.host))
    while True:
        await asyncio.sleep(rng.random() * 0.2)
        who = f"agent-{rng.randrange(options.agents)}"
        with contextlib.suppress(WsapError):
            match rng.randrange(4):
                case 0 | 1:
                    with nexus.nexus_store.look() as tx:
                        away = tx.agent(who).place != "nexus"
                    if away:
                        await nexus.agent_context.words.talk(who, f"Think of {rng.randrange(100)}.")
                case 2:
                    nexus.recall(who)
                case _:
                    runner.influence(VILLAGE, {"kind": "event", "place": "square", "text": f"Thunder {rng.random()}."})


async def keeping(nexus: Nexus, database: str, rng: random.Random) -> None:
    """Prune everything that may be pruned, and make copies."""
    while True:
        await asyncio.sleep(rng.random() * 0.5)
        with contextlib.suppress(WsapError):
            if rng.random() < 0.5:
                await asyncio.to_thread(prune, nexus.store.database, 0.0)
            elif nexus.store.database.is_sqlite:
                await asyncio.to_thread(back_up, nexus.store.database, Path(database).with_name("copy.db"), force=True)


def one_life(
    database: str, options: argparse.Namespace, rng: random.Random, life: int
) -> tuple[list[list[str]], bool, bool]:
    """Start a nexus and kill it; return what it said, whether each world went on, and whether its server stopped.

    Mostly it is killed after all living worlds have gone on, after a restart of the server again; now and then at any
    moment, before it is up, too.
    """
    lines: list[bytes] = []
    early = rng.random() < 0.3
    wanted, moved = rng.randrange(1, 60), set[bytes]()
    shaken = rng.randrange(wanted) if options.server is not None and rng.random() < 0.4 else -1
    restarted = False
    with hub_kill.forked(lambda out: live(database, out, options, life)) as (pid, pipe):
        until = time.monotonic() + STANDSTILL
        while len(lines) < wanted or (not early and len(moved) < len(LIVING)):
            # Not before it is up: a start without a server is refused.
            if 0 <= shaken <= len(lines) and b"ready\n" in lines:
                options.server.restart(rng.choice(("fast", "immediate")))
                shaken, restarted, wanted = -1, True, max(wanted, len(lines) + rng.randrange(1, 60))
                moved.clear()
            if not select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
                still = [name for name in LIVING if name.encode() not in moved]
                lines.append(f"PROBLEM the nexus came to a standstill; not a tick of: {still}\n".encode())
                for _ in range(2):  # twice, as what differs does not stand still
                    os.kill(pid, signal.SIGUSR1)  # what it waits for
                    told = time.monotonic() + 10.0  # one of its worlds may go on, and then it never falls silent
                    while (
                        time.monotonic() < told and select.select([pipe], [], [], 2.0)[0] and (line := pipe.readline())
                    ):
                        print(line.decode(), end="", file=sys.stderr)
                break
            if not (line := pipe.readline()):
                break
            lines.append(line)
            if line.startswith(b"tick "):
                moved.add(line.split()[1])
            if line.startswith(b"PROBLEM"):
                break
        if rng.random() < 0.5:
            time.sleep(rng.random() * 0.05)
        os.kill(pid, signal.SIGKILL)
        lines += pipe.readlines()
    return hub_kill.words_of(lines), len(moved) == len(LIVING), restarted


def books(database: Database) -> Iterator[str]:
    """Yield what is wrong with places and items, as far as it can be told after pruning."""
    with database.read() as connection:
        yield from hub_checks._places(connection)
        yield from hub_checks._inside(connection)
        open_ways = {row.id for row in hub_checks.rows(
            connection, "SELECT id FROM transfer WHERE state IN ('prepared', 'unknown')")}  # fmt: skip
        worlds = {row.id for row in hub_checks.rows(connection, "SELECT id FROM world")}
        for row in hub_checks.rows(connection, "SELECT id, place, place_id FROM item"):
            there = {"escrow": {None}, "lost": {None}, "transfer": open_ways, "world": worlds}[row.place]
            if row.place_id not in there:
                yield f"item {row.id} is in {row.place} {row.place_id}, which there is not"


def logs(database: Database) -> Iterator[str]:
    """Yield what is wrong in the logs of the living worlds: ticks out of order, calls answered twice."""
    repository = Repository(database)
    for run_id in LIVING:
        last, calls = 0, Counter[tuple[str, str]]()
        with contextlib.suppress(WsapError):
            for event in repository.read_events(run_id, kinds=("tick", "rewound", "call")):
                if event.kind == "rewound":
                    last = int(event.data["to"])
                    calls.clear()
                elif event.kind == "tick":
                    if event.step != last + 1:
                        yield f"{run_id}: tick {event.step} follows tick {last}"
                    last = event.step or 0
                elif event.seat is None:
                    calls[event.data["key"], event.data["request"]] += 1
        yield from (f"{run_id}: {count} answers to the call {key[0]}" for key, count in calls.items() if count > 1)


async def looked_at(database: str, rng: random.Random) -> list[str]:
    """Look at a random tick of each living world, branch one, and return what failed."""
    found: list[str] = []
    with open_store(database) as store:
        installed = host(database)
        for run_id in LIVING:
            last = store.repository.last_event(run_id, "tick")
            if last is None:
                continue
            tick = rng.randint(1, last.step or 1)
            try:
                await Runs(installed, store.repository).restored(run_id, tick)
                if rng.random() < 0.5:
                    name = f"branch-{time.monotonic_ns():x}"
                    await StoreRunner(installed, store, ModelPool(installed)).branch(run_id, tick, name)
                    await Runs(installed, store.repository).restored(name)
                    store.repository.delete_run(name)
            except WsapError as error:
                found.append(f"{run_id}: tick {tick} of {last.step} can't be looked at: {error}")
    return found


async def repeated(database: str) -> list[str]:
    """Repeat each living world from its start, forgetting its saved states, and return what failed."""
    found: list[str] = []
    with open_store(database) as store:
        with store.database.write() as connection:
            connection.execute(sqlalchemy.text("UPDATE event SET kind = 'saved' WHERE kind = 'snapshot'"))
        for run_id in LIVING:
            try:
                await Runs(host(database), store.repository).restored(run_id)
            except WsapError as error:
                found.append(f"{run_id}: it can't be repeated from its start: {error}")
    return found


def campaign(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Kill the nexus of one database that often and return what was found."""
    database, rng = hub_kill.location(folder, options), random.Random(options.seed)
    found: list[str] = []
    moved = restarts = 0
    for number in range(options.kills):
        said, all_moved, restarted = one_life(database, options, rng, number)
        moved += all_moved
        restarts += restarted
        problems = [" ".join(words[1:]) for words in said if words[0] == "PROBLEM"]
        if ["ready"] in said or number:
            with Database.open(database) as opened:
                problems += [*books(opened), *logs(opened)]
            problems += asyncio.run(looked_at(database, rng))
        found += [f"kill {number + 1}: {problem}" for problem in problems]
        print(f"kill {number + 1} of {options.kills}", file=sys.stderr)
        if found:
            break
    else:
        found = asyncio.run(repeated(database))
    with Database.open(database) as opened, opened.read() as connection:
        kinds = Counter(row.kind for row in hub_checks.rows(connection, "SELECT kind FROM event"))
        reasons = Counter(row.reason for row in hub_checks.rows(connection, "SELECT reason FROM session"))
    wanted = ("tick", "joined", "departed", "call", "whisper", "influence", "snapshot", "rewound")
    return {
        "problems": found, "kills": number + 1, "all_worlds_went_on": moved, "restarts": restarts,
        "events": {kind: kinds[kind] for kind in wanted}, "sessions": {str(k): n for k, n in reasons.items()},
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agents", type=int, default=6)
    parser.add_argument("--workers", type=int, default=0, help="worker processes")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--keep", action="store_true", help="keep the database, or its server, and print where it is")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        stack.enter_context(hub_kill.served(options))
        folder = tempfile.mkdtemp() if options.keep else stack.enter_context(tempfile.TemporaryDirectory())
        found = campaign(Path(folder), options)
        if options.keep:
            found["folder"] = folder
    print(json.dumps(found, indent=None if options.json else 2))
    return bool(found["problems"])


if __name__ == "__main__":
    sys.exit(main())

"""Measure the nexus: duration of a transit, startup with a large database, and concurrent agents.

    python benchmarks/bench_nexus.py [--case transit|start|wake|load] [--quick] [--json]

transit   One agent moves from Crafter through the nexus to Crafter again; its world is saved and restored each time.
          Measures the time from its last decision in one world to its entry into the next, without the game's part
          (restore, save, entry and exit), which is printed separately, as is the time of a commit to the same
          database. Limit: a median of 50 ms.
start     A database with 10,000 agents, 1,000,000 nexus events and 1,000,000 run events. Measures the time from
          process start to the first HTTP response, the slowest response in the next ten seconds, and memory.
          Limit: 3 s to the first response.
wake      2,000 wandering agents in a nexus with all games. Measures the time from the first HTTP response until all
          agents have a session and an observation, and until all have decided, with CPU time and response times.
          Limit: 15 s until all have a session.
load      1,000 agents, 800 of them idle in the nexus and 200 in Crafter with a model behind HTTP that replies after
          1 s, everything recorded. Measures decisions relative to the ideal of one per agent and second. Limit: 95 %.

The exit status is 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench_agents import reply, resident
from bench_backends import server

from wsap_core.host import PluginHost
from wsap_core.seams.context import Context
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec
from wsap_llm.backends.pool import ModelPool
from wsap_llm.backends.pool import RequestPolicy as Calls
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.gc_tuning import tune_gc
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EXTERNAL, EntryRequest, Policy, WorldRecord
from wsap_nexus.store.events import NexusEvent, OtherEvent
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.worlds.port import LocalWorld

LIMITS: Mapping[str, tuple[str, float]] = {
    "transit": ("median_ms", 50.0), "start": ("seconds", 3.0), "wake": ("alive_s", 15.0), "load": ("of_ideal", 0.95),
}  # fmt: skip
TIMED = ("begin", "restore", "snapshot", "admit", "release", "create_avatar", "open_seat", "avatars", "close")


# --- transit ----------------------------------------------------------------------------------------


class TimedWorld(LocalWorld):
    """A world in this process that sums up its game's time for entries and exits."""

    spent = 0.0
    """Wall-clock seconds of all such worlds."""
    used = 0.0
    """CPU seconds, likewise."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in TIMED:
            return found

        async def timed(*args: Any, **kwargs: Any) -> Any:
            began, used = time.perf_counter(), time.process_time()
            try:
                return await found(*args, **kwargs)
            finally:
                TimedWorld.spent += time.perf_counter() - began
                TimedWorld.used += time.process_time() - used

        return timed


def make_timed(spec: AdapterSpec, record: WorldRecord) -> TimedWorld:
    """Return a world whose game is timed, including its creation."""
    began, used = time.perf_counter(), time.process_time()
    made = TimedWorld(spec, record.seed, record.options, Context())
    TimedWorld.spent += time.perf_counter() - began
    TimedWorld.used += time.process_time() - used
    return made


async def transit(count: int, database: str) -> dict[str, Any]:
    """Let one agent move that often, and return the durations."""
    whole: list[float] = []
    game: list[float] = []
    processor: list[float] = []
    left = spent = used = 0.0
    done = asyncio.Event()

    def stepped(stay: LiveSession, step: StepTaken) -> None:
        nonlocal left, spent, used
        left, spent, used = time.perf_counter(), TimedWorld.spent, time.process_time() - TimedWorld.used

    def heard(event: NexusEvent) -> None:
        if event.kind == "entered" and left:
            own = TimedWorld.spent - spent
            whole.append(time.perf_counter() - left - own)
            game.append(own)
            processor.append(time.process_time() - TimedWorld.used - used)
            if len(whole) >= count:
                done.set()

    with open_store(database) as store:
        nexus = Nexus(PluginHost.discovered(), store, Settings(games=("crafter",)), make_world=make_timed)
        with nexus.nexus_store.change() as tx:
            visits = Policy("wanderer", {"exit_when": "step >= 10", "curiosity": 0})
            tx.register("ada", policies={"nexus": visits, "crafter": Policy("random")})
        nexus.on_step(stepped)
        nexus.nexus_store.listen(heard)
        tune_gc()  # as `wsap nexus start` does
        await nexus.start()
        await done.wait()
        await nexus.stop()
        commits = []
        for _ in range(200):
            began = time.perf_counter()
            with nexus.nexus_store.change() as tx:
                tx.note(OtherEvent(kind="measured"))
            commits.append(time.perf_counter() - began)
    return {
        "transits": len(whole), **_spread(whole), "game_ms": round(statistics.median(game) * 1000, 2),
        "commit_ms": round(statistics.median(commits) * 1000, 3),
        "cpu_ms": round(statistics.median(processor) * 1000, 2),
    }  # fmt: skip


def _spread(seconds: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(seconds, n=20)
    return {
        "median_ms": round(statistics.median(seconds) * 1000, 2), "p5_ms": round(cuts[0] * 1000, 2),
        "p95_ms": round(cuts[-1] * 1000, 2), "most_ms": round(max(seconds) * 1000, 2),
    }  # fmt: skip


# --- start ------------------------------------------------------------------------------------------


def fill(database: str, agents: int, events: int) -> None:
    """Write that many agents, nexus events and run events."""
    from sqlalchemy import insert

    from wsap_nexus.store.records import NewRun
    from wsap_nexus.store.tables import METADATA

    with open_store(database) as store:
        run = store.repository.create_run(NewRun(game="crafter", agent="random")).id
        common = {
            "created": "2026-11-20T00:00:00.000+00:00", "state": "active", "place": "nexus", "persona": "",
            "policies": {"*": {"agent": "external", "options": {}}}, "lifetime_steps": 0, "playtime": 0.0,
            "lore": {"core_memories": [], "strategies": []},
        }  # fmt: skip
        with store.database.write() as connection:
            rows = [{"id": f"agent-{n:05d}", "name": f"Agent {n}", **common} for n in range(agents)]
            connection.execute(insert(METADATA.tables["agent"]), rows)
    body = json.dumps({"steps": 12, "reward": 3, "achievements": ["collect_wood"], "why": "." * 60})
    kinds = ("entered", "left", "skill_gained", "item_moved")
    raw = sqlite3.connect(database, isolation_level=None)
    raw.execute("BEGIN")
    raw.executemany(
        "INSERT INTO nexus_event (kind, agent_id, game, time, body) VALUES (?, ?, 'crafter', ?, ?)",
        ((kinds[n % 4], f"agent-{n % agents:05d}", 1.8e9 + n, body) for n in range(events)),
    )
    raw.executemany(
        "INSERT INTO event (run_id, seq, kind, seat, episode, step, time, form, codec, body)"
        " VALUES (?, ?, 'step', 'seat-1', 0, ?, ?, 'json', 'raw', ?)",
        ((run, n, n, 1.8e9 + n, body.encode()) for n in range(events)),
    )
    raw.execute("COMMIT")
    raw.close()


def start(agents: int, events: int, folder: str) -> dict[str, Any]:
    """Start a nexus with a full database in a new process, and return its response times."""
    database = str(Path(folder) / "full.db")
    fill(database, agents, events)
    began = time.perf_counter()
    with serving(folder, database) as (process, port):
        seconds = time.perf_counter() - began
        first = _memory(process.pid)
        times = []
        until = time.perf_counter() + 10
        while time.perf_counter() < until:
            asked = time.perf_counter()
            _answers(port)
            times.append(time.perf_counter() - asked)
            time.sleep(0.02)
        return {
            "seconds": round(seconds, 2),
            "answer_ms": round(statistics.median(times) * 1000, 1),
            "slowest_answer_ms": round(max(times) * 1000, 1),
            "memory_mb": first,
            "memory_later_mb": _memory(process.pid),
            "database_mb": round(Path(database).stat().st_size / 2**20),
            "only_importing_s": _bare(),
        }


@contextlib.contextmanager
def serving(folder: str, database: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a nexus in a new process; yield the process and its port once it responds."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "wsap_core", "nexus", "start", "--port", str(port), "--database", database]
    environ = {**os.environ, "WSAP_HOME": folder}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        while not _answers(port):
            if process.poll() is not None:
                raise RuntimeError(f"the nexus ended: {process.stderr.read() if process.stderr else ''}")
            time.sleep(0.02)
        yield process, port
    finally:
        process.kill()
        process.wait()
        if process.stderr:
            process.stderr.close()


# --- wake -------------------------------------------------------------------------------------------


def wake(agents: int, folder: str) -> dict[str, Any]:
    """Start a nexus with many agents; return the times until all have a session and have decided."""
    database = str(Path(folder) / "many.db")
    with open_store(database) as store, NexusStore(store.database).change() as tx:
        for number in range(agents):
            tx.register(f"agent-{number:05d}", policies={"nexus": Policy("wanderer")})
    with serving(folder, database) as (process, port), contextlib.closing(sqlite3.connect(database)) as reader:
        began, used = time.perf_counter(), _processor(process.pid)
        found: dict[str, float] = {}
        times = []
        while "decided_s" not in found:
            asked = time.perf_counter()
            _answers(port)
            times.append(time.perf_counter() - asked)
            for name, query in (
                ("alive", "SELECT count(*) FROM run WHERE game = 'nexus'"),
                ("decided", "SELECT count(DISTINCT seat) FROM event WHERE kind = 'step'"),
            ):
                if f"{name}_s" not in found and reader.execute(query).fetchone()[0] >= agents:
                    found[f"{name}_s"] = round(time.perf_counter() - began, 2)
                    found[f"{name}_cpu_s"] = round(_processor(process.pid) - used, 2)
            time.sleep(0.1)
        return {
            "agents": agents, **found, "answer_ms": round(statistics.median(times) * 1000, 1),
            "slowest_answer_ms": round(max(times) * 1000, 1), "memory_mb": _memory(process.pid),
        }  # fmt: skip


def _processor(pid: int) -> float:
    """Return a process's CPU seconds."""
    row = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(row[11]) + int(row[12])) / os.sysconf("SC_CLK_TCK")


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/nexus/games", timeout=20) as answer:
            return bool(answer.read())
    except urllib.error.HTTPError:
        return True  # it wants a token, and says so: it serves
    except OSError:
        return False


def _memory(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def _bare() -> float:
    """Return the time of a process that only imports the nexus and its server."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import wsap_nexus.hub.nexus, wsap_nexus.server.serve, uvicorn"], check=True)
    return round(time.perf_counter() - began, 2)


# --- load -------------------------------------------------------------------------------------------


async def load(
    registered: int, playing: int, latency: float, seconds: float, port: int, database: str
) -> dict[str, Any]:
    """Let some of many agents play with a model of that latency; return decisions relative to the ideal."""
    host = PluginHost.discovered()
    models = ModelPool(
        host, options={"openai": {"base_url": f"http://127.0.0.1:{port}/v1"}}, policy=Calls(concurrency=10_000)
    )
    steps = 0

    def stepped(stay: LiveSession, step: StepTaken) -> None:
        nonlocal steps
        steps += 1

    with open_store(database) as store:
        nexus = Nexus(host, store, Settings(games=("crafter",)), services=Services(models=models))
        model = Policy("llm", {"model": "openai/m", "plan": "no"})
        with nexus.nexus_store.change() as tx:
            for number in range(registered):
                policies = {"*": model, "nexus": EXTERNAL} if number < playing else {"*": EXTERNAL}
                tx.register(f"agent-{number:04d}", policies=policies)
        nexus.on_step(stepped)
        tune_gc()  # as `wsap nexus start` does
        await nexus.start()
        began = time.perf_counter()
        for number in range(playing):
            await nexus.enter(f"agent-{number:04d}", "crafter", EntryRequest())
        entered = time.perf_counter() - began
        await asyncio.sleep(3 * latency)
        before, began, used = steps, time.perf_counter(), time.process_time()
        await asyncio.sleep(seconds)
        counted, took, processor = steps - before, time.perf_counter() - began, time.process_time() - used
        found = {
            "of_ideal": round(counted / took / (playing / latency), 4),
            "decisions_per_second": round(counted / took, 1),
            "cpu_ms_per_decision": round(processor / max(1, counted) * 1000, 2),
            "cpu_share": round(processor / took, 3),
            "entered_per_second": round(playing / entered, 1),
            "in_worlds": len(nexus.live.sessions),
            "memory_mb": round(resident(), 1),
            "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        }
        await nexus.stop()
        await models.aclose()
        return found


def one_case(case: str, *, quick: bool) -> dict[str, Any]:
    """Measure one case in this process."""
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "nexus.db")
        if case == "transit":
            return asyncio.run(transit(20 if quick else 300, database))
        if case == "start":
            return start(200 if quick else 10_000, 5_000 if quick else 1_000_000, folder)
        if case == "wake":
            return wake(100 if quick else 2_000, folder)
        agents, playing, seconds = (40, 10, 3.0) if quick else (1_000, 200, 20.0)
        with server(1.0, reply("crafter"), 1) as port:
            return asyncio.run(load(agents, playing, 1.0, seconds, port, database))


def main() -> int:
    """Measure and print; 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=sorted(LIMITS))
    parser.add_argument("--quick", action="store_true", help="small numbers, as a smoke test")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {case: one_case(case, quick=options.quick) for case in ([options.case] if options.case else LIMITS)}
    if options.json:
        json.dump(found, sys.stdout, indent=1)
    else:
        for case, row in found.items():
            print(f"{case:<8}" + ", ".join(f"{name} {value}" for name, value in row.items()))
    missed = [
        case for case, row in found.items()
        if (row[LIMITS[case][0]] < LIMITS[case][1] if case == "load" else row[LIMITS[case][0]] > LIMITS[case][1])
    ]  # fmt: skip
    return 1 if missed and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure the event log's speed, size and cost for the caller.

    python benchmarks/bench_log.py [--quick] [--json]

Bodies have about 200 bytes, or the size of a Crafter step (5 to 7 KB of canonical JSON; from the real adapter under
random play if wsap-crafter is installed, else synthetic). Three methods alternate in every round, so that load on the
machine affects all alike:

    log          wsap_nexus.store.log.eventlog.LogWriter: appended one by one, compressed, committed in groups;
                 timed from the first append until all is committed and flushed to disk
    autocommit   sqlite3, one commit per event, uncompressed: the naive method
    executemany  sqlite3, groups of 256 in one commit, uncompressed: SQLite's maximum

All use the same table, in WAL mode with `synchronous = NORMAL`. Goals: at least 50,000 events/s in groups, at most 900
bytes per event on disk at Crafter's size, about 5 µs for the caller.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from wsap_nexus.store.database import Database
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.records import NewRun
from wsap_nexus.store.repository import Repository

ASKED = {"events_per_s": 50_000, "bytes_per_event": 900, "caller_us": 5.0}
GROUP = 256


def small_bodies(count: int) -> list[str]:
    """Return bodies of about 200 bytes, such as a decision's cost."""
    rng = random.Random(1)
    return [
        json.dumps(
            {
                "decision": {"forced": False, "repaired": rng.random() < 0.1, "seconds": round(rng.random(), 4)},
                "reasoning": rng.choice(["The cow is near.", "It gets dark.", "Wood first."]),
                "step": {"action": rng.choice(["do", "sleep", "move_left"]), "reward": round(rng.random(), 3), "n": n},
                "usage": {"input": rng.randrange(3000), "output": rng.randrange(300)},
            },
            sort_keys=True,
            separators=(",", ":"),
        )
        for n in range(count)
    ]


def crafter_bodies(count: int) -> tuple[list[str], str]:
    """Return the bodies of Crafter steps, and their origin."""
    try:
        return _real_bodies(count), "wsap-crafter under random play"
    except ImportError:
        return _made_up_bodies(count), "synthetic (wsap-crafter is not installed)"


def _real_bodies(count: int) -> list[str]:
    from wsap_core import Action, Context
    from wsap_core.protocol import wire
    from wsap_crafter.adapter import CrafterAdapter

    rng = random.Random(2)
    game = CrafterAdapter(Context.create(2))
    game.reset(2)
    names = [action.name for action in game.action_space.actions]
    bodies: list[str] = []
    while len(bodies) < count:
        action = Action(rng.choice(names))
        result = game.act(action)
        step = {
            "action": {"name": action.name, "parameters": action.parameters},
            "observation": result.observation,
            "result": {
                name: getattr(result, name) for name in ("achievements", "done", "message", "reward", "success")
            },
            "seat": "agent-1",
        }
        bodies.append(wire.dumps({"decision": {"forced": False, "repaired": False}, "reasoning": None, "step": step}))
        if result.done:
            game.reset(rng.randrange(2**31))
    return bodies


def _made_up_bodies(count: int) -> list[str]:
    rng = random.Random(3)
    words = ["collect", "place", "make", "eat", "defeat", "wake"]
    things = ["wood", "stone", "coal", "iron", "diamond", "drink", "sapling", "table", "plant", "cow", "zombie"]
    goals = [
        {
            "id": f"{w}_{t}",
            "description": f"{w} {t} where you find it",
            "hints": [f"do, facing {t}"],
            "progress": "next",
        }
        for w, t in [(rng.choice(words), rng.choice(things)) for _ in range(22)]
    ]
    actions = [{"name": f"{w}_{t}", "reason": f"needs 1 {t}, you have none"} for w in words[:3] for t in things[:6]]
    bodies: list[str] = []
    for n in range(count):
        near = [
            {
                "type": rng.choice(things),
                "direction": rng.choice(["north", "southeast"]),
                "distance": rng.randrange(9),
                "description": f"{rng.randrange(5)} north {rng.randrange(5)} east",
            }
            for _ in range(rng.randrange(11))
        ]
        seen = {
            "available_actions": [{**action, "available": rng.random() < 0.3} for action in actions],
            "current_goals": goals,
            "local_map": ["".join(rng.choice("....TTC#~") for _ in range(9)) for _ in range(7)],
            "nearby_entities": near,
            "status": {name: rng.randrange(10) for name in ("drink", "energy", "food", "health")},
            "step": n,
        }
        bodies.append(json.dumps({"action": rng.choice(words), "observation": seen}, sort_keys=True))
    return bodies


# --- the three ways -------------------------------------------------------------------------


def _new(folder: Path, name: str) -> tuple[Path, str]:
    path = folder / f"{name}.db"
    with Database.open(path) as database:
        return path, Repository(database).create_run(NewRun(game="crafter", agent="random")).id


def record_with_log(path: Path, run_id: str, bodies: Sequence[str], count: int) -> float:
    """Return the seconds to append, commit and flush to disk."""
    with Database.open(path) as database:
        log = LogWriter(database)
        began = time.perf_counter()
        for n in range(count):
            log.append(run_id, "step", bodies[n % len(bodies)], seat="agent-1", step=n)
        log.close()
        return time.perf_counter() - began


_SQL = "INSERT INTO event VALUES (?, ?, 'step', 'agent-1', 0, ?, ?, 'json', 'raw', NULL, ?)"


def _plain(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def record_one_by_one(path: Path, run_id: str, bodies: Sequence[str], count: int) -> float:
    """Return the seconds with one commit per event."""
    connection = _plain(path)
    began = time.perf_counter()
    for n in range(count):
        connection.execute(_SQL, (run_id, n, n, time.time(), bodies[n % len(bodies)].encode()))
    taken = time.perf_counter() - began
    connection.close()
    return taken


def record_in_groups(path: Path, run_id: str, bodies: Sequence[str], count: int) -> float:
    """Return the seconds with groups through executemany."""
    connection = _plain(path)
    began = time.perf_counter()
    for start in range(0, count, GROUP):
        connection.execute("BEGIN")
        rows = [
            (run_id, n, n, time.time(), bodies[n % len(bodies)].encode())
            for n in range(start, min(start + GROUP, count))
        ]
        connection.executemany(_SQL, rows)
        connection.execute("COMMIT")
    taken = time.perf_counter() - began
    connection.close()
    return taken


WAYS: dict[str, Callable[[Path, str, Sequence[str], int], float]] = {
    "log": record_with_log,
    "autocommit": record_one_by_one,
    "executemany": record_in_groups,
}


def measure_rates(bodies: Sequence[str], count: int, rounds: int) -> dict[str, object]:
    """Return events per second and bytes per event of each method, and the ratios by round."""
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    sizes: dict[str, float] = {}
    for _ in range(rounds):
        for way, record in WAYS.items():
            with tempfile.TemporaryDirectory() as name:
                path, run_id = _new(Path(name), way)
                empty = path.stat().st_size
                share = count // 10 if way == "autocommit" else count  # it would take all day
                rates[way].append(share / record(path, run_id, bodies, share))
                sizes[way] = (path.stat().st_size - empty) / share
    return {
        "body_bytes": round(statistics.mean(map(len, bodies))),
        "events": count,
        "events_per_s": {way: spread(values) for way, values in rates.items()},
        "bytes_per_event": {way: round(size) for way, size in sizes.items()},
        "log_against": {
            other: spread([a / b for a, b in zip(rates["log"], rates[other], strict=True)])
            for other in ("autocommit", "executemany")
        },
    }


# --- the caller -----------------------------------------------------------------------------


def measure_caller(bodies: Sequence[str], rounds: int) -> dict[str, object]:
    """Return the caller's microseconds for an append, an append with flush, and a computing step."""
    with tempfile.TemporaryDirectory() as name:
        path, run_id = _new(Path(name), "caller")
        with Database.open(path) as database, LogWriter(database) as log:
            appends, flushes, last = list[float](), list[float](), list[int]()

            def appended(body: str) -> None:
                last.append(log.append(run_id, "step", body))

            for _ in range(rounds):
                began = time.perf_counter()
                for n in range(100):
                    log.append(run_id, "step", bodies[n], seat="agent-1", step=n)
                appends.append((time.perf_counter() - began) / 100 * 1e6)
                log.flush()
            for n in range(rounds * 5):
                began = time.perf_counter()
                log.append(run_id, "step", bodies[n % len(bodies)], seat="agent-1", step=n)
                log.flush()
                flushes.append((time.perf_counter() - began) * 1e6)
            without, with_log, behind = [], [], []
            for _ in range(rounds // 10):
                # Alternating, each for long enough that the writer reaches a steady state.
                log.flush()
                without += [computing_step(None) for _ in range(200)]
                for n in range(200):
                    with_log.append(computing_step(partial(appended, bodies[n])))
                    behind.append(last.pop() - log.committed(run_id))
            return {
                "append_us": spread(appends),
                "append_and_flush_us": spread(flushes),
                "computing_step_us": {"without": spread(without), "with_log": spread(with_log)},
                "events_behind_while_computing": spread(behind),
            }


def computing_step(record: Callable[[], object] | None) -> float:
    """Return the microseconds of a step that keeps the interpreter busy, recorded or not."""
    began = time.perf_counter()
    total = 0
    for n in range(4000):
        total += n * n
    if record is not None:
        record()
    return (time.perf_counter() - began) * 1e6


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the median, 10th and 90th percentiles, and the mean, which includes rare long waits."""
    deciles = statistics.quantiles(values, n=10) if len(values) > 1 else [values[0]] * 9
    digits = 2 if statistics.median(values) < 100 else 0
    return {
        "median": round(statistics.median(values), digits),
        "p10": round(max(deciles[0], min(values)), digits),
        "p90": round(min(deciles[-1], max(values)), digits),
        "mean": round(statistics.mean(values), digits),
    }


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer events and rounds")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    options = parser.parse_args()
    count, rounds = (4_000, 3) if options.quick else (30_000, 7)
    real, source = crafter_bodies(1500 if options.quick else 5000)
    report = {
        "asked": ASKED,
        "crafter_bodies": source,
        "small": measure_rates(small_bodies(5000), count, rounds),
        "crafter": measure_rates(real, count, rounds),
        "caller": measure_caller(real, 40 if options.quick else 200),
    }
    print(json.dumps(report, indent=2) if options.json else as_text(report))
    return 0


def as_text(report: Mapping[str, object]) -> str:
    """Return the report as text."""
    lines = [f"Bodies of Crafter's size: {report['crafter_bodies']}.", ""]
    for size in ("small", "crafter"):
        part: dict[str, dict[str, dict[str, float]]] = report[size]  # type: ignore[assignment]
        lines.append(f"{size}, {part['body_bytes']} bytes a body, {part['events']} events (autocommit: a tenth)")
        for way, rate in part["events_per_s"].items():
            lines.append(
                f"  {way:12} {_range(rate, ',.0f'):>32} events/s  {part['bytes_per_event'][way]:6} bytes/event"
            )
        for other, ratio in part["log_against"].items():
            lines.append(f"  log against {other:12} {_range(ratio, '.2f')} times")
    caller: dict[str, dict[str, float]] = report["caller"]  # type: ignore[assignment]
    step: dict[str, dict[str, float]] = caller["computing_step_us"]  # type: ignore[assignment]
    lines += [
        "the caller, at Crafter's size",
        f"  append                {_range(caller['append_us'], '.2f')} µs",
        f"  append and flush      {_range(caller['append_and_flush_us'], '.0f')} µs",
        f"  a computing step      {_range(step['without'], '.0f')} µs, mean {step['without']['mean']:.0f}",
        f"    the same, recorded  {_range(step['with_log'], '.0f')} µs, mean {step['with_log']['mean']:.0f}",
        f"  behind meanwhile      {_range(caller['events_behind_while_computing'], '.0f')} events",
    ]
    return "\n".join(lines)


def _range(values: dict[str, float], form: str) -> str:
    return f"{values['median']:{form}} ({values['p10']:{form}} to {values['p90']:{form}})"


if __name__ == "__main__":
    sys.exit(main())

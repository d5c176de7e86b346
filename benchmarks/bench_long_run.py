"""Measure the time to read and resume a long run, relative to a short one.

    python benchmarks/bench_long_run.py [--steps 500000] [--game echo] [--rounds 5] [--database FILE] [--json]

Records a run of `--steps` steps, unless `--database` already has one, and one of 20 steps for the cold start
(interpreter, imports, plugins, game). Commands run as processes alternately on both runs; the result is the difference
of the fastest ones, since other processes can only slow them down. `resume` is measured up to the first new step in
the log and then stopped by Ctrl-C, so that the run grows with each round. For reference: steps per second read by
`--verify`.

Goal at 500,000 steps: `replay --from 1 --to 3` and the start of `resume` take less than a second each.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from wsap_core.host import PluginHost
from wsap_nexus.runs.plan import RunPlan, plan_seats
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.session import run_to_end, start
from wsap_nexus.runs.store import open_database, open_store
from wsap_nexus.store.repository import Repository

ASKED = 1.0
"""Seconds, beyond the cold start."""
FEW = 20
ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""An installed `wsap` has its modules compiled."""
WSAP = (sys.executable, "-c", "from wsap_core.cli import main; raise SystemExit(main())")


def record(path: Path, game: str, steps: int) -> None:
    """Play that many steps of all seats together with random agents."""
    host, controls, taken = PluginHost.discovered(), Controls(), 0

    def watch(step: object) -> None:
        nonlocal taken
        taken += 1
        if taken >= steps:
            controls.stop()

    plan = RunPlan(game, plan_seats(host.games.get(game), agent="random-legal"), 1, 10 * max(steps, 10**6))
    with open_store(str(path)) as store, start(plan, host, store, controls=controls, observers=[watch]) as session:
        run_to_end(session)


def replayed(path: Path, *words: str) -> tuple[float, float]:
    """Return the wall-clock and CPU seconds of a command in a new process."""
    before, began = os.times(), time.perf_counter()
    subprocess.run([*WSAP, *words, "--database", str(path)], check=True, stdout=subprocess.DEVNULL, env=ENVIRON)
    taken, after = time.perf_counter() - began, os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return taken, spent


def resumed(path: Path) -> tuple[float, float]:
    """Return the wall-clock and CPU seconds from the start of a process that resumes the run to its first new step."""
    with open_database(str(path), read_only=True) as database:
        repository = Repository(database)
        run = repository.get_run("last").id
        last = repository.last_event(run)
        assert last is not None
        began = time.time()
        words = ["play", "--resume", run, "--database", str(path), "--no-watch"]
        process = subprocess.Popen([*WSAP, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRON)
        first = None
        while first is None and process.poll() is None:
            time.sleep(0.01)
            first = next(repository.read_events(run, from_seq=last.seq + 1, kinds=("step",)), None)
        spent = _spent(process.pid)
        process.send_signal(signal.SIGINT)
        process.wait()
        assert first is not None, "the process ended without a step"
        return first.time - began, spent


def _spent(process: int) -> float:
    """Return a process's CPU seconds so far; NaN if unknown."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return math.nan
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(path: Path, game: str, steps: int, rounds: int) -> dict[str, object]:
    """Return the seconds of each command on the long run minus those on the short one."""
    with tempfile.TemporaryDirectory() as name:
        short, long = Path(name) / "short.db", Path(name) / "long.db"
        record(short, game, FEW)
        shutil.copy(path, long)
        commands: dict[str, Callable[[Path, int], tuple[float, float]]] = {
            "runs": lambda at, of: replayed(at, "runs"),
            "replay --from 1 --to 3": lambda at, of: replayed(at, "replay", "last", "--from", "1", "--to", "3"),
            "replay, the last three": lambda at, of: replayed(at, "replay", "last", "--from", str(of - 2)),
            "start of resume": lambda at, of: resumed(at),
        }
        found = {}
        for command, measured in commands.items():
            times = [(measured(long, steps), measured(short, FEW)) for _ in range(rounds)]
            whole, cold = (min(pair[i][0] for pair in times) for i in (0, 1))
            spent = [min(pair[i][1] for pair in times) for i in (0, 1)]
            found[command] = {"seconds": whole - cold, "cold": cold, "processor": spent[0] - spent[1]}
        with open_database(str(path), read_only=True) as database:
            repository = Repository(database)
            began, run = time.perf_counter(), repository.get_run("last").id
            read = sum(1 for _ in repository.read_events(run, kinds=("step",)))
            rate = read / (time.perf_counter() - began)
        size = path.stat().st_size
    return {"game": game, "steps": steps, "bytes_per_step": size / steps, "read_per_s": rate, "commands": found}


def main() -> int:
    """Measure and report; 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--game", default="echo", help="a game of random-legal agents")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--database", type=Path, help="has the long run, as its last; made if it is missing")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = given.database or Path(name) / "wsap.db"
        if not path.exists():
            record(path, given.game, given.steps)
        found = measure(path, given.game, given.steps, given.rounds)
    commands: dict[str, dict[str, float]] = found["commands"]  # type: ignore[assignment]
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        print(
            f"{given.game}, {given.steps:,} steps, {found['bytes_per_step']:.0f} bytes a step; "
            f"reading all of them at {found['read_per_s']:,.0f} steps/s takes {given.steps / found['read_per_s']:.1f} s"
        )
        for command, times in commands.items():
            print(
                f"  {command:24} {times['seconds']:6.2f} s beyond the cold start of {times['cold']:.2f} s"
                + ("" if math.isnan(times["processor"]) else f", CPU {times['processor']:.2f} s")
            )
    asked = ("replay --from 1 --to 3", "start of resume")
    return 0 if all(commands[command]["seconds"] < ASKED for command in asked) else 1


if __name__ == "__main__":
    sys.exit(main())

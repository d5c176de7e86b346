"""Kill an evaluation's worker processes and its driver at random moments, and look whether its figures are the same.

    python plugins/wsap-eval/tests/eval_kill.py [--kills N] [--seed N] [--steps N] [--json]

The same command is started again whenever its driver was killed, until nothing is missing; then once more in another
folder, until there were as many kills as asked for. Agents that follow their seeds play in two worker processes, and
two entrants ask a model behind HTTP on loopback. At the end of each round the score columns have to be the bytes of
an undisturbed evaluation in one process, and each request that the server received twice has to be the one that was
on its way when the driver was killed, and be counted in `asked_again`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "wsap-llm" / "tests"))

from llm_server.says import Say  # noqa: E402
from llm_server.server import ModelServer  # noqa: E402

from wsap_eval.jobs.local import UNREADY  # noqa: E402
from wsap_eval.records import SCORE_COLUMNS  # noqa: E402

COMMAND = "import sys; from wsap_core.cli import main; sys.exit(main())"
SEEDS, STEPS, LATENCY = 4, 60, 0.01
PATIENCE = 60
"""Seconds in which a worker ends after its driver, also one that was still starting on a busy machine."""


def suite(server: ModelServer, steps: int) -> str:
    """Return the suite: two games, two agents that follow their seeds, two models."""
    games = [
        {"game": f"{HERE / 'hazard.py'}:Hazard", "label": "hazard", "options": {"steps": str(steps)}},
        {"game": "minigrid", "steps": 5 * steps // 2},
    ]
    models = [
        {
            "agent": f"openai/{name}", "label": name,
            "options": {"model.base_url": server.base_url, "model.concurrency": 64, "style": "json"},
        }
        for name in ("qwen3:8b", "llama3.2:latest")
    ]  # fmt: skip
    parts = ['name = "kills"', f"[seeds]\ncount = {SEEDS}"]
    for kind, tables in (("games", games), ("entrants", [{"agent": "random"}, *models])):
        for table in tables:
            parts += [f"[[{kind}]]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    return "\n".join(parts) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {_toml(each)}' for key, each in value.items()) + "}"
    return json.dumps(value)


def answer(body: Any) -> Say:
    """Return the reply to a request: it follows from what was asked."""
    asked = hashlib.sha256(json.dumps(body["messages"]).encode()).digest()
    return Say(json.dumps({"action": "left" if asked[0] % 2 else "right"}), latency=LATENCY)


def command(suite_file: Path, out: Path, jobs: int) -> subprocess.Popen[bytes]:
    """Start the evaluation."""
    words = ["eval", str(suite_file), "--out", str(out), "--jobs", str(jobs), "--json"]
    env = {**os.environ, "OPENAI_API_KEY": "none"}
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env
    )


def workers_of(driver: int) -> list[int]:
    """Return the driver's children."""
    try:
        return [int(pid) for pid in Path(f"/proc/{driver}/task/{driver}/children").read_text().split()]
    except OSError:
        return []


def runs(pid: int) -> bool:
    """Return whether a process is there and no zombie, which its new parent may reap late."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def score_columns(out: Path) -> list[bytes]:
    """Return the score columns of each line, in order."""
    rows = [json.loads(line) for line in (out / "episodes.jsonl").read_bytes().splitlines()]
    return [json.dumps({name: row[name] for name in SCORE_COLUMNS}).encode() for row in rows]


def bought_twice(server: ModelServer) -> tuple[int, int]:
    """Return how many requests arrived again just after themselves, in their episode, and how many later."""
    latest, seen = dict[Any, bytes](), defaultdict[Any, set[bytes]](set)
    again = late = 0
    for received in server.requests:
        if received.method != "POST":
            continue
        episode = (received.body["model"], received.body.get("seed"), received.body["messages"][0]["content"])
        asked = json.dumps(received.body, sort_keys=True).encode()
        if asked == latest.get(episode):
            again += 1
        elif asked in seen[episode]:
            late += 1
        seen[episode].add(asked)
        latest[episode] = asked
    return again, late


def wait_a_while(driver: subprocess.Popen[bytes], rng: random.Random, server: ModelServer, steps: int) -> None:
    """Return at a random moment: now and then before the driver is up, mostly while it plays, after two calls to models
    for each step of an episode on average."""
    if rng.random() < 0.15:
        time.sleep(rng.uniform(0.0, 1.5))
        return
    wanted = len(server.requests) + rng.randrange(1, 4 * steps)
    while len(server.requests) < wanted and driver.poll() is None:
        time.sleep(0.002)


def one_round(
    suite_file: Path, out: Path, wanted: int, rng: random.Random, server: ModelServer, steps: int, found: Counter[str]
) -> list[str]:
    """Kill an evaluation up to so many times, let it come to its end, and return what is wrong."""
    problems, left = list[str](), wanted
    while True:
        driver, killed = command(suite_file, out, 2), 0
        while left and driver.poll() is None:
            wait_a_while(driver, rng, server, steps)
            workers = workers_of(driver.pid)
            if driver.poll() is not None:
                break
            left -= 1
            if not workers or rng.random() < 0.4:
                driver.kill()
                found["drivers"] += 1
                ended = time.monotonic() + PATIENCE
                while any(map(runs, workers)) and time.monotonic() < ended:
                    time.sleep(0.01)
                if any(map(runs, workers)):
                    problems.append(f"a worker outlived its driver by {PATIENCE} seconds")
            else:
                os.kill(rng.choice(workers), signal.SIGKILL)
                found["workers"] += 1
                killed += 1
        _, words = driver.communicate()
        if driver.returncode == 0:
            return problems
        if killed >= UNREADY and b"Worker processes exit during startup, by signal 9" in words:
            found["unready"] += 1  # on a busy machine a worker may be killed that often before it has begun
            continue
        if driver.returncode != -signal.SIGKILL:
            # An episode that is killed too often in a worker counts as failed, and is played by the next command.
            found["failed"] += driver.returncode == 10
            if driver.returncode != 10:
                problems.append(f"exit status {driver.returncode}: {words.decode()[-500:]}")
                return problems


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill as often as asked for, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS, help="length of the episodes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rng, found, problems = random.Random(options.seed), Counter[str](), list[str]()
    with tempfile.TemporaryDirectory() as name, ModelServer(answer) as server:
        folder = Path(name)
        suite_file = folder / "kills.toml"
        suite_file.write_text(suite(server, options.steps), "utf-8")
        undisturbed = command(suite_file, folder / "undisturbed", 1)
        _, words = undisturbed.communicate()
        if undisturbed.returncode:
            sys.exit(words.decode())
        expected, calls = score_columns(folder / "undisturbed"), len(server.requests)
        while found["drivers"] + found["workers"] < options.kills and not problems:
            server.requests.clear()
            out = folder / f"round-{found['rounds']}"
            done = found["drivers"] + found["workers"]
            kills = min(15, options.kills - done)
            problems += one_round(suite_file, out, kills, rng, server, options.steps, found)
            if problems:
                break
            found["rounds"] += 1
            for one, other in zip(expected, score_columns(out), strict=False):
                if one != other:
                    problems.append(f"score columns differ: {one.decode()} and {other.decode()}")
            if len(score_columns(out)) != len(expected):
                problems.append("there are more or fewer episodes")
            again, late = bought_twice(server)
            rows = [json.loads(line) for line in (out / "episodes.jsonl").read_bytes().splitlines()]
            counted = sum(row["asked_again"] for row in rows)
            found["requests_again"] += again
            found["asked_again"] += counted
            if late:
                problems.append(f"{late} calls that were answered and recorded were made again")
            if again > counted:
                problems.append(f"{again} requests arrived again, and {counted} are counted")
    told = {
        "drivers": found["drivers"],
        "workers": found["workers"],
        **found,
        "episodes": len(expected),
        "calls": calls,
        "problems": problems,
    }
    print(json.dumps(told) if options.json else "\n".join(f"{name}: {value}" for name, value in told.items()))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())

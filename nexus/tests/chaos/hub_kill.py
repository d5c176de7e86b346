"""Kill a nexus at random moments, start it again, and look whether anything was lost or happened twice.

    python nexus/tests/chaos/hub_kill.py [--kills N] [--seed N] [--workers N] [--agents N]
        [--database postgresql] [--json]

A fresh process is forked for every life of the nexus. It plays with several agents in the quarry, in
Crafter and in a game of two seats, as fast as it can, and says what has been committed: a line for each
event of the nexus, and for each run how far its log is. After a random number of those lines it is
killed with SIGKILL. The books are checked as they lie there; the next life checks them again when it
has settled what was under way, before anything else happens. At the end every session that was closed is
played once more from its beginning by itself, undisturbed, and has to come to the same trajectory hash.

With `--database postgresql` each database is on a private server, which is stopped or killed and started again, too,
while the nexus works.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import hub_checks
import hub_kit
import postgres_kit

from wsap_core.factories import load
from wsap_core.host import PluginHost
from wsap_core.protocol.wire import Codec
from wsap_core.references import load_adapter_spec, load_agent_spec
from wsap_core.seams.clock import SystemClock
from wsap_core.seams.context import Context
from wsap_core.seams.services import Services
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.hub.play.seating import START, KeptVenue
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.record.logged import read_step
from wsap_nexus.runs.run import Run, RunSetup
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import Policy, WorldRecord
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.store.repository import Repository
from wsap_nexus.worlds.port import LocalWorld

GAMES = ("quarry", "crafter", "matrix")
Campaign = Callable[[Path, argparse.Namespace, int, random.Random], dict[str, Any]]
"""Kills around the database in a folder that often, and returns what was found, its problems among it."""
SILENCE = 30.0
"""Seconds without a word after which a nexus has come to a standstill."""


def policies(number: int, games: tuple[str, ...] = GAMES) -> dict[str, Policy]:
    """Return who decides for an agent: it roves, digs, and plays at random, with saved state or without."""
    return {
        "nexus": Policy("rover", {"games": list(games), "steps": 20 + 10 * (number % 4)}),
        "crafter": Policy("random" if number % 2 else "crafter-survivor"),
    }


def settings(seed: int, workers: int, games: tuple[str, ...] = GAMES) -> Settings:
    """Return how the nexus is run under these tests: saving often, so that resumption goes both ways."""
    return Settings(seed=seed, games=games, snapshot_every=10, lobby_seconds=0.05, workers=workers)


# --- the life of a nexus ------------------------------------------------------------------------------


def live(database: str, out: int, options: argparse.Namespace) -> None:
    """Run a nexus until it is killed; say on `out` what was committed."""

    def say(*words: object) -> None:
        os.write(out, (" ".join(map(str, words)) + "\n").encode())

    async def run() -> None:
        with open_store(database) as store:
            nexus = Nexus(hub_kit.host(), store, settings(options.seed, options.workers))
            with nexus.nexus_store.change() as tx:
                for number in range(options.agents):
                    tx.register(f"agent-{number}", policies=policies(number))

            def heard(event: NexusEvent) -> None:
                say("event", event.seq, event.kind)

            nexus.nexus_store.listen(heard)
            with store.database.read() as connection:
                prepared = [r.id for r in hub_checks.rows(
                    connection, "SELECT id FROM transfer WHERE state = 'prepared'")]  # fmt: skip
            await nexus.start()
            with store.database.read() as connection:
                after = {r.id for r in hub_checks.rows(
                    connection, "SELECT id FROM transfer WHERE state = 'prepared'")}  # fmt: skip
            for problem in hub_checks.problems(store.database):
                say("PROBLEM", problem)
            for transfer in prepared:
                if transfer in after:
                    say("PROBLEM", f"the transfer {transfer} was not settled")
            for cut_off in cut_off_runs(store.database):
                say("PROBLEM", f"the run {cut_off} is recorded as running, and nobody goes on with it")
            say("ready")
            tell_progress(nexus, say)
            await asyncio.Event().wait()

    asyncio.run(run())


def cut_off_runs(database: Database) -> list[str]:
    """Return the runs that are running by the records, and that no agent is in."""
    query = (
        "SELECT id FROM run WHERE status = 'running'"
        " AND NOT EXISTS (SELECT 1 FROM session WHERE run_id = run.id AND closed IS NULL)"
    )
    with database.read() as connection:
        return [row.id for row in hub_checks.rows(connection, query)]


def tell_progress(nexus: Nexus, say: Callable[..., None]) -> None:
    """Say from time to time how far the log of each run is."""
    count = 0

    def stepped(*_: object) -> None:
        nonlocal count
        count += 1
        if count % 7 == 0:
            for run_id in list(nexus.sessions.runs):
                if (number := nexus.store.writer.committed(run_id)) >= 0:
                    say("run", run_id, number)

    nexus.on_step(stepped)


class Failures(logging.Handler):
    """Says what the nexus logs as an error, except that its agents are held while the database is away."""

    def __init__(self, say: Callable[..., None]) -> None:
        super().__init__(logging.ERROR)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        if "holds its agents" not in record.getMessage():
            self._say("PROBLEM", record.getMessage().replace("\n", " "))


def one_life(database: str, options: argparse.Namespace, rng: random.Random) -> tuple[list[list[str]], bool]:
    """Start a nexus, kill it at a random moment, and return what it said, and whether it was up by then."""
    lines: list[bytes] = []
    with forked(lambda out: live(database, out, options)) as (pid, pipe):
        # Now and then before it is up, mostly while it works.
        wanted = rng.randrange(1, 12) if rng.random() < 0.15 else rng.randrange(12, 400)
        shaken = rng.randrange(wanted) if options.server is not None and rng.random() < 0.4 else -1
        while len(lines) < wanted:
            # Not before it is up: a start without a server is refused.
            if 0 <= shaken <= len(lines) and b"ready\n" in lines:
                options.server.restart(rng.choice(("fast", "immediate")))
                shaken = -1
            if not select.select([pipe], [], [], SILENCE)[0]:
                lines.append(b"PROBLEM the nexus came to a standstill\n")
                break
            if not (line := pipe.readline()):
                break
            lines.append(line)
        if rng.random() < 0.5:
            time.sleep(rng.random() * 0.01)  # not only just after a line: anywhere between two
        os.kill(pid, signal.SIGKILL)
        lines += pipe.readlines()
    said = words_of(lines)
    return said, ["ready"] in said


def location(folder: Path, options: argparse.Namespace) -> str:
    """Return where a new database is: in a folder, or on the private server."""
    return str(folder / "nexus.db") if options.server is None else str(options.server.new_database())


@contextlib.contextmanager
def served(options: argparse.Namespace) -> Iterator[None]:
    """Give the options the private server that they ask for, as `server`; None if they ask for none."""
    options.server = None
    if options.database == "sqlite":
        yield
        return
    with postgres_kit.private_server(keep=bool(vars(options).get("keep"))) as options.server:
        yield
        if vars(options).get("keep"):
            print(f"Stopped, but kept: {options.server.folder}", file=sys.stderr)


@contextlib.contextmanager
def forked(run: Callable[[int], None]) -> Iterator[tuple[int, IO[bytes]]]:
    """Run a nexus in a process of its own; give its number, and what it says. It is dead at the end of the block."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read)
            os.setpgid(0, 0)
            run(write)
            code = 0
        except BaseException as error:
            import traceback

            os.write(write, f"PROBLEM the nexus ended: {type(error).__name__}: {error}\n".encode())
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    try:
        with os.fdopen(read, "rb", buffering=0) as pipe:
            yield pid, pipe
    finally:
        os.kill(pid, signal.SIGKILL)  # a process that has ended is still there until it is waited for
        os.waitpid(pid, 0)


def words_of(lines: Sequence[bytes]) -> list[list[str]]:
    """Return what was said in whole lines, each in up to three parts."""
    return [line.decode().strip().split(" ", 2) for line in lines if line.endswith(b"\n")]


def check(database: str, said: list[list[str]]) -> list[str]:
    """Return what is wrong after a kill: in the books, or between them and what was acknowledged."""
    found = [" ".join(words[1:]) for words in said if words[0] == "PROBLEM"]
    with Database.open(database) as opened:
        found += hub_checks.problems(opened)
        with opened.read() as connection:
            kinds = {r.seq: r.kind for r in hub_checks.rows(connection, "SELECT seq, kind FROM nexus_event")}
            ends = {r.run_id: r.last for r in hub_checks.rows(
                connection, "SELECT run_id, max(seq) AS last FROM event GROUP BY run_id")}  # fmt: skip
    for words in said:
        if words[0] == "event" and kinds.get(int(words[1])) != words[2]:
            found.append(f"event {words[1]} ({words[2]}) was acknowledged and is missing")
        if words[0] == "run" and ends.get(words[1], -1) < int(words[2]):
            found.append(f"event {words[2]} of run {words[1]} was acknowledged and is missing")
    return found


# --- the same way, undisturbed --------------------------------------------------------------------------


async def undisturbed(repository: Repository, run_id: str, world: WorldRecord, host: PluginHost) -> Mapping[str, str]:
    """Play a recorded stay again from how it began, with nothing in its way; return each seat's trajectory hash."""
    plan = RunPlan.from_config(repository.get_run(run_id).config)
    spec = load_adapter_spec(world.game, host)
    start = next(repository.read_events(run_id, kinds=(START,)))
    steps = Counter(event.seat for event in repository.read_events(run_id, kinds=("step",)))
    face = LocalWorld(spec, world.seed, world.options, Context(clock=SystemClock(), services=Services()))
    controls = {seat.name: Controls() for seat in plan.seats}
    alone = len(plan.seats) == 1
    whole = next(iter(controls.values())) if alone else Controls()

    def count(step: Any) -> None:
        steps[step.seat] -= 1
        if steps[step.seat] <= 0:
            controls[step.seat].stop()

    for name, control in controls.items():
        if not steps[name]:
            control.stop()
    run = Run(
        plan,
        spec,
        {seat.name: load_agent_spec(seat.agent, host) for seat in plan.seats},
        RunSetup(
            controls=whole,
            observers=[count],
            venue=KeptVenue(face, seed=world.seed, start=start.body),
            seat_controls=controls,
        ),
    )
    summary = await run.play()
    await face.close()
    return {seat.name: seat.digest for seat in summary.seats}


def recorded(repository: Repository, run_id: str, world: WorldRecord, host: PluginHost) -> dict[str, str]:
    """Return each seat's trajectory hash as it follows from the log."""
    spec = load_adapter_spec(world.game, host)
    codec = Codec([load(reference) for reference in spec.wire_types])
    hashes: dict[str, str] = {}
    for event in repository.read_events(run_id, kinds=("step",)):
        line = read_step(event.seq, event.episode, event.step or 0, event.body, codec).line
        before = hashes.get(str(event.seat), hashlib.sha256().hexdigest())
        hashes[str(event.seat)] = hashlib.sha256(f"{before}{line}\n".encode()).hexdigest()
    return hashes


def compare(
    database: str, *, most: int, rng: random.Random, host: PluginHost | None = None
) -> tuple[int, int, list[str]]:
    """Return how many stays were played again, how many of them had been resumed, and which came out otherwise."""
    host = host or hub_kit.host()
    with Database.open(database) as opened:
        repository = Repository(opened)
        with NexusStore(opened).look() as tx:
            closed = [s for s in tx.sessions(limit=100_000) if s.closed is not None]
            worlds = {w.id: w for w in tx.worlds()}
            again = {e.session_id for e in tx.events(kinds=("resumed",), limit=1_000_000)}
        # Every stay that was resumed, and some that were not.
        chosen = [s for s in closed if s.id in again and s.world_id in worlds]
        others = [s for s in closed if s.id not in again and s.world_id in worlds]
        chosen = rng.sample(chosen, min(most, len(chosen))) + rng.sample(others, min(len(others), max(1, most // 10)))
        # Rovers leave by themselves after so many steps at the latest: one more would be one decided twice.
        limits = {s.id: int(str(s.terms.exit_when).split()[2]) for s in closed if s.terms.exit_when}
        wrong = [f"{s.id} went on after it was to leave" for s in closed if s.steps > limits.get(s.id, s.steps)]
        for run_id, session in {s.run_id: s for s in chosen}.items():
            world = worlds[session.world_id]
            found = recorded(repository, run_id, world, host)
            wanted = asyncio.run(undisturbed(repository, run_id, world, host))
            if any(found[seat] != wanted[seat] for seat in found):
                wrong.append(f"{session.id} ({session.game}, {session.reason}, run {run_id}) went another way")
        return len(chosen), sum(s.id in again for s in chosen), wrong


# --- all of it -------------------------------------------------------------------------------------------


def campaign(folder: Path, options: argparse.Namespace, kills: int, rng: random.Random) -> dict[str, Any]:
    """Kill the nexus of one database that often and return what was found."""
    database = location(folder, options)
    found: list[str] = []
    ups = 0
    acknowledged = 0
    for number in range(kills):
        said, up = one_life(database, options, rng)
        ups += up
        acknowledged += sum(words[0] == "event" for words in said)
        found += [f"kill {number + 1}: {problem}" for problem in check(database, said)]
        if found:
            break
    compared, resumed, wrong = compare(database, most=options.compare, rng=rng)
    with Database.open(database) as opened, NexusStore(opened).look() as tx:
        reasons = Counter(str(s.reason) for s in tx.sessions(limit=100_000))
        resumptions = len(tx.events(kinds=("resumed",), limit=1_000_000))
        cancelled = len(tx.events(kinds=("transfer_cancelled",), limit=1_000_000))
        failed = [
            f"{e.kind}: {e.body}"
            for e in tx.events(kinds=("agent_failed", "world_crashed", "entry_refused"), limit=100)
        ]
    return {
        "kills": number + 1, "while_up": ups, "acknowledged": acknowledged, "sessions": reasons,
        "resumptions": resumptions, "taken_back": cancelled, "compared": compared, "compared_resumed": resumed,
        "problems": found + wrong + failed,
    }  # fmt: skip


def parsed(description: str, kills: int, arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options; `kills` is how many there are unless another number is given."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("--each", type=int, default=50, help="kills of one database")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agents", type=int, default=5)
    parser.add_argument("--workers", type=int, default=0, help="worker processes, where no game is in another process")
    parser.add_argument("--compare", type=int, default=60, help="resumed stays of each database to play again")
    parser.add_argument("--keep", type=Path, help="a folder for the databases, to look at")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def campaigns(one: Campaign, options: argparse.Namespace) -> int:
    """Kill around one database after the other, check, tell; 1 if anything is wrong."""
    totals: Counter[str] = Counter()
    told: dict[str, Counter[str]] = {}
    problems: list[str] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary, served(options):
        number = 0
        while totals["kills"] < options.kills and not problems:
            seed = options.seed + number
            folder = (options.keep or Path(temporary)) / f"seed-{seed}"
            folder.mkdir(parents=True, exist_ok=True)
            own = argparse.Namespace(**{**vars(options), "seed": seed})
            found = one(folder, own, min(options.each, options.kills - totals["kills"]), random.Random(seed))
            problems += [f"seed {seed}: {problem}" for problem in found.pop("problems")]
            for name in [name for name, value in found.items() if isinstance(value, Counter)]:
                told.setdefault(name, Counter()).update(found.pop(name))
            totals.update(found)
            number += 1
            print(f"seed {seed}: {dict(totals)} after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    answer = {**totals, **{name: dict(sorted(counter.items())) for name, counter in told.items()},
              "problems": problems, "seconds": round(time.monotonic() - began, 1)}  # fmt: skip
    print(json.dumps(answer, indent=None if options.json else 1))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(campaigns(campaign, parsed(__doc__.splitlines()[0], 500)))

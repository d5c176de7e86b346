"""Kill a nexus, and the games in other processes that it plays, at random moments; look whether anything was lost.

    python nexus/tests/chaos/hub_kill_far.py [--kills N] [--seed N] [--agents N] [--database PATH] [--json]

The nexus is one process and each game another: the quarry twice, served over HTTP by `serve_world`, as a
game from elsewhere is, and a third quarry within the nexus, so that things go to and fro. The nexus carries
its own killer: it picks a call to a game (admit, release, jack-in, snapshot, ...), and just before or just after it
kills the game, itself, or both, with SIGKILL. The nexus is killed from outside at any other moment, too. Games
are started again at once, empty. The books are checked as they lie there and again after each start, as
`hub_kill.py` does; moves in doubt have to be settled soon; what lies in worlds that run is asked of the games; and
stays are played once more by themselves, undisturbed, and have to come to the same trajectory hash.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import random
import select
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import hub_checks
import hub_kill
import hub_kit

from wsap_core.errors import WsapError
from wsap_core.host import PluginHost
from wsap_nexus.hub.games import remote_games
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import Policy
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.worlds.remote.game_client import GameClient

FAR = ("far-quarry", "deep-quarry")
GAMES = ("quarry", *FAR)
TOKEN = "t" * 24
SETTLED_WITHIN = 20.0
"""Seconds after which a move may no longer be in doubt, while the games run."""
SEAMS = ("worlds", "avatars", "admit", "jack-in", "observation", "snapshot", "act", "jack-out", "release", "withdraw",
         "restore")  # fmt: skip
"""The calls to a game before and after which something may be killed."""


def far_specs() -> list[Any]:
    """Return the games that run elsewhere. Any: specs."""
    return [replace(hub_kit.QUARRY, name=name, title=name.title()) for name in FAR]


def far_host() -> PluginHost:
    """Return everything with the far games as if they were installed: for playing stays again."""
    return hub_kit.host(more=far_specs())


def policies(number: int) -> dict[str, Policy]:
    """Return who decides for an agent: it roves and digs."""
    rover = Policy("rover", {"games": list(GAMES), "steps": 20 + 10 * (number % 4)})
    return {"nexus": rover, **dict.fromkeys(FAR, Policy("digger"))}


# --- games elsewhere ------------------------------------------------------------------------------------


class Games:
    """The games' processes, started again whenever they were killed.

    Args:
        folder: where it stands which process each is.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pids: dict[str, int] = {}
        self.ports = {name: _free_port() for name in FAR}
        self.started = 0

    def start(self, name: str) -> None:
        """Start a game and wait until it answers."""
        read, write = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(read)
                os.setpgid(0, 0)
                threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
                from wsap_nexus.worlds.remote.serve_world import serve_world

                spec = next(s for s in far_specs() if s.name == name)
                ready: Callable[[str], None] = lambda url: os.write(write, b"ready\n") and None  # noqa: E731
                serve_world(spec, port=self.ports[name], token=TOKEN, ready=ready)
            except BaseException as error:
                os.write(write, f"{type(error).__name__}: {error}\n".encode())
            finally:
                os._exit(1)
        os.close(write)
        self._pids[name] = pid
        with os.fdopen(read, "rb", buffering=0) as pipe:
            line = pipe.readline() if select.select([pipe], [], [], 30)[0] else b"silence"
        if line != b"ready\n":
            raise RuntimeError(f"{name} did not start: {line!r}")
        pid_file(self._folder, name).write_text(str(pid), encoding="ascii")
        self.started += 1

    def see_to_it(self, rng: random.Random) -> int:
        """Start again what has been killed, and return how many that were."""
        dead = [name for name, pid in sorted(self._pids.items()) if os.waitpid(pid, os.WNOHANG)[0]]
        for name in dead:
            del self._pids[name]
        for name in dead:
            time.sleep(rng.random() * 0.3)
            self.start(name)
        return len(dead)

    def kill(self, name: str) -> None:
        """Kill a game; whoever sees to it finds it dead."""
        if name in self._pids:
            os.kill(self._pids[name], signal.SIGKILL)

    def close(self) -> None:
        """Kill all of them."""
        for pid in self._pids.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self._pids.clear()


def _end_with(parent: int) -> None:
    """End this process when the one that started it has been killed: nobody may be left behind."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def pid_file(folder: Path, name: str) -> Path:
    """Return where it stands which process a game is."""
    return folder / f"{name}.pid"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# --- the life of a nexus ------------------------------------------------------------------------------


class Killer:
    """Kills a game, the nexus or both, just before or just after a call to the game.

    Args:
        folder: where it stands which process each game is.
        rng: chooses.
        say: tells what is killed.
    """

    def __init__(self, folder: Path, rng: random.Random, say: Callable[..., None]) -> None:
        self._folder = folder
        self._rng = rng
        self._say = say
        self._killed: set[int] = set()
        self._choose()

    def _choose(self) -> None:
        self._seam = self._rng.choice(SEAMS)
        self._when = self._rng.choice(("before", "after"))
        self._whom = self._rng.choice(("game", "game", "nexus", "both"))
        self._left = self._rng.randrange(1, 30 if self._seam in ("observation", "act") else 4)
        # A seam that is rarely passed must not hold up everything else.
        self._patience = 400

    def passes(self, name: str, seam: str, when: str) -> None:
        """Be told of a call."""
        self._patience -= 1
        if self._patience < 0:
            self._choose()
        if (seam, when) != (self._seam, self._when):
            return
        self._left -= 1
        if self._left > 0:
            return
        whom = self._whom
        if whom in ("game", "both"):
            pid = int(pid_file(self._folder, name).read_text(encoding="ascii"))
            if pid in self._killed:
                return  # it is dead, and not started again yet
            self._killed.add(pid)
            self._say("killing", whom, seam, when)
            os.kill(pid, signal.SIGKILL)
        else:
            self._say("killing", whom, seam, when)
        if whom in ("nexus", "both"):
            os.kill(os.getpid(), signal.SIGKILL)
        self._choose()


class Watched(GameClient):
    """A way to a game on which a killer looks."""

    killer: Killer | None = None
    names: dict[str, str] = {}  # noqa: RUF012 one for all

    async def _send(self, method: str, path: str, *others: Any) -> tuple[int, Any]:
        """Send, with the killer told before and after."""
        seam = "worlds" if method == "PUT" else path.rsplit("/", 1)[-1]
        name, killer = self.names.get(self.url, ""), Watched.killer
        if killer is not None and name:
            killer.passes(name, seam, "before")
        answer = await super()._send(method, path, *others)
        if killer is not None and name:
            killer.passes(name, seam, "after")
        return answer


def live(database: str, out: int, ports: dict[str, int], options: argparse.Namespace, seed: int, last: bool) -> None:
    """Run a nexus until it is killed, or stops by itself when it is the last one; say on `out` what was committed."""

    def say(*words: object) -> None:
        os.write(out, (" ".join(map(str, words)) + "\n").encode())

    remote_games.GameClient = Watched  # type: ignore[misc]
    remote_games.ASK_AGAIN = 0.5

    async def run() -> None:
        with open_store(database) as store:
            settings = Settings(
                seed=options.seed, games=("quarry",), snapshot_every=10, lobby_seconds=0.05, max_failures=10**6
            )
            nexus = Nexus(hub_kit.host(), store, settings)
            await _join(nexus, ports)
            with nexus.nexus_store.change() as tx:
                for number in range(options.agents):
                    tx.register(f"agent-{number}", policies=policies(number))

            def heard(event: NexusEvent) -> None:
                say("event", event.seq, event.kind)

            nexus.nexus_store.listen(heard)
            if not last:
                Watched.killer = Killer(Path(database).parent, random.Random(seed), say)
            await nexus.start()
            for problem in hub_checks.problems(store.database):
                say("PROBLEM", problem)
            say("ready")
            hub_kill.tell_progress(nexus, say)
            if not last:
                await _watch_doubts(nexus, say)
            await _see_to_the_end(nexus, say)

    asyncio.run(run())


async def _join(nexus: Nexus, ports: dict[str, int]) -> None:
    """Have the games join, where they have not yet."""
    for name, port in ports.items():
        url = f"http://127.0.0.1:{port}"
        Watched.names[url] = name
        if name not in nexus.remote_games.specs():
            await nexus.remote_games.join(url, TOKEN, frozenset())


async def _watch_doubts(nexus: Nexus, say: Callable[..., None]) -> None:
    """Say so when a move stays in doubt for long."""
    since: dict[str, float] = {}
    while True:
        await asyncio.sleep(0.2)
        with nexus.nexus_store.look() as tx:
            doubtful = {str(row.id): str(row.data.get("why")) for row in tx.transfers("unknown")}
        now = time.monotonic()
        since = {transfer: since.get(transfer, now) for transfer in doubtful}
        for transfer, began in since.items():
            if now - began > SETTLED_WITHIN:
                say("PROBLEM", f"the move {transfer} is in doubt for long: {doubtful[transfer]}")
                return


async def _see_to_the_end(nexus: Nexus, say: Callable[..., None]) -> None:
    """With nothing killed any more: play on a little, settle what is in doubt, compare with the games, and stop."""
    with nexus.nexus_store.look() as tx:
        done = len(tx.sessions(limit=10**6))
    began = time.monotonic()
    while True:
        with nexus.nexus_store.look() as tx:
            if len(tx.sessions(limit=10**6)) >= done + 5:
                break
        if time.monotonic() - began > 60:
            say("PROBLEM", "nobody gets anywhere any more")
            break
        await asyncio.sleep(0.05)
    with nexus.nexus_store.look() as tx:
        agents = [agent.id for agent in tx.agents()]
    for agent in agents:
        nexus.pause(agent)  # nobody sets out any more
    began = time.monotonic()
    while True:
        await nexus.remote_games.settle()
        with nexus.nexus_store.look() as tx:
            under_way = [row.id for row in tx.transfers("prepared", "unknown")]
        if not under_way:
            break
        if time.monotonic() - began > SETTLED_WITHIN:
            say("PROBLEM", f"{', '.join(under_way)} stay under way")
            break
        await asyncio.sleep(0.1)
    for name in FAR:
        for problem in await _as_the_game_says(nexus, name):
            say("PROBLEM", problem)
    await nexus.stop()
    for problem in hub_checks.problems(nexus.store.database, settled=True):
        say("PROBLEM", problem)
    say("stopped")


async def _as_the_game_says(nexus: Nexus, game: str) -> list[str]:
    """Return where a game's running worlds hold other things than the books say."""
    client = nexus.remote_games.specs()[game].factory
    assert isinstance(client, GameClient)

    def inside() -> dict[str, tuple[str, set[str]]]:
        with nexus.nexus_store.look() as tx:
            leaving = {row.agent_id for row in tx.transfers("prepared")}
            return {
                s.id: (s.world_id, {r.item.item_id for r in tx.items(s.agent_id, place="world", place_id=s.world_id)})
                for s in tx.sessions(only_open=True, limit=1000)
                if s.game == game and s.agent_id not in leaving
            }

    found = []
    for session, (world, booked) in inside().items():
        try:
            told = await client.ask("GET", f"/worlds/{world}/snapshot")
        except WsapError:
            continue  # it has just been left, or is just being begun again
        kept = hub_checks._kept("quarry", base64.b64decode(told["state"]))
        assert kept is not None, "it is a quarry"
        if session in inside() and kept != booked:
            found.append(f"{game} holds {sorted(kept)} in {world}, the books say {sorted(booked)}")
    return found


def one_life(
    database: str, games: Games, options: argparse.Namespace, rng: random.Random, *, last: bool = False
) -> tuple[list[list[str]], Counter[str]]:
    """Start a nexus, have it killed at some moment, and return what it said, and what was killed meanwhile."""
    own = rng.randrange(2**32)
    lines: list[bytes] = []
    killed: Counter[str] = Counter()
    with hub_kill.forked(lambda out: live(database, out, games.ports, options, own, last)) as (pid, pipe):
        # Now and then before it is up; mostly its own killer gets there first.
        wanted = rng.randrange(1, 12) if rng.random() < 0.1 else rng.randrange(200, 2000)
        alone = rng.randrange(20, 400)  # when a game is killed for no reason of the nexus' own
        heard = time.monotonic()
        while last or len(lines) < wanted:
            killed["games"] += games.see_to_it(rng)
            if not select.select([pipe], [], [], 0.02)[0]:
                if time.monotonic() - heard > hub_kill.SILENCE:
                    lines.append(b"PROBLEM the nexus came to a standstill\n")
                    break
                continue
            heard = time.monotonic()
            if not (line := pipe.readline()):
                break
            lines.append(line)
            if not last and len(lines) == alone:
                games.kill(rng.choice(FAR))
        if not last:
            if rng.random() < 0.5:
                time.sleep(rng.random() * 0.01)
            os.kill(pid, signal.SIGKILL)  # it may have done so itself
            killed["nexus"] += 1
        lines += pipe.readlines()
    killed["games"] += games.see_to_it(rng)
    said = hub_kill.words_of(lines)
    if last and ["stopped"] not in said:
        said.append(["PROBLEM", "the last nexus did not stop", ""])
    return said, killed


# --- all of it -------------------------------------------------------------------------------------------


def campaign(folder: Path, options: argparse.Namespace, kills: int, rng: random.Random) -> dict[str, Any]:
    """Kill around one database that often and return what was found."""
    database = hub_kill.location(folder, options)
    games = Games(folder)
    found: list[str] = []
    killed: Counter[str] = Counter()
    seams: Counter[str] = Counter()
    acknowledged = 0
    try:
        for name in FAR:
            games.start(name)
        while killed.total() < kills and not found:
            said, now = one_life(database, games, options, rng)
            killed += now
            acknowledged += sum(words[0] == "event" for words in said)
            seams.update(" ".join(words[1:]) for words in said if words[0] == "killing")
            found += [f"after {killed.total()} kills: {problem}" for problem in hub_kill.check(database, said)]
        said, _ = one_life(database, games, options, rng, last=True)
        found += [f"in the end: {problem}" for problem in hub_kill.check(database, said)]
    finally:
        games.close()
    compared, resumed, wrong = hub_kill.compare(database, most=options.compare, rng=rng, host=far_host())
    with Database.open(database) as opened, NexusStore(opened).look() as tx:
        reasons = Counter(str(s.reason) for s in tx.sessions(limit=100_000))
        kinds = Counter(e.kind for e in tx.events(limit=1_000_000))
        broken = [f"{e.kind}: {e.body}" for e in tx.events(kinds=("agent_failed",), limit=100)]
        errors = [
            str(e.body.get("error"))[:200] for e in tx.events(kinds=("world_crashed", "entry_refused"), limit=10_000)
        ]
        failed = Counter(error for error in errors if "was paused" not in error)  # in the end everybody is
    return {
        "kills": killed.total(), "nexus": killed["nexus"], "games": killed["games"], "acknowledged": acknowledged,
        "sessions": reasons, "resumptions": kinds["resumed"], "in_doubt": kinds["transfer_in_doubt"],
        "taken_back": kinds["transfer_cancelled"], "compared": compared, "compared_resumed": resumed,
        "seams": seams, "failed": failed, "problems": found + wrong + broken,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(hub_kill.campaigns(campaign, hub_kill.parsed(__doc__.splitlines()[0], 200)))

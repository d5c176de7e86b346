"""Measure what lies of a remote game do to the others in a nexus while they play.

    python benchmarks/bench_lies.py [--lies N] [--route NAME] [--pace N] [--seconds S] [--json]

A nexus with six agents that play Crafter at up to eight decisions a second each, in its own process, and a quarry in
another process behind a proxy that lies (`nexus/tests/kit/lies.py`). An agent with items enters the quarry, acts and
leaves, again and again; each time the proxy tells one of 40 lies: broken, foreign, impossible, late or missing replies
to one of the routes. Where a reply never comes, the owner recalls the agent after three seconds.

Measures for each lie the decisions per second of the six before, during and after it, and the seconds until the agent
is home. Limits: in the median the rates during and after a lie are at least 90 % of those before it; the agent is home
within its deadline; the log blames the game and never the agent; no item is lost, doubled or made up; the books
are sound. The exit status is 1 if one is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "nexus" / "tests" / "kit"))

import httpx2
from hub_checks import problems
from lies import Liar, lying

from wsap_nexus.store.database import Database

# Any, in this module: JSON.

TESTS = sys.path[-1]
GAME = """
import sys
from dataclasses import replace
sys.path.insert(0, sys.argv[1])
import hub_kit
from wsap_nexus.worlds.remote.serve_world import serve_world
serve_world(replace(hub_kit.QUARRY, name="far-quarry", title="Far quarry"), port=0)
"""
OTHERS = 6
SETTLED = 130.0
"""Seconds within which an agent is home, recalled or not: a call of a minute that is repeated once, and some more."""
STAYS = 2.0
"""Seconds after which an agent that is still in its world has not noticed the lie."""
RECALLED = 30.0
"""The same once it is recalled: ten seconds to let it go, ten to rebuild its world, and some more."""

LIES: tuple[tuple[str, str], ...] = (
    *(
        ("act", how)
        for how in (
            "malformed",
            "html",
            "list",
            "empty",
            "deep",
            "500",
            "500 again",
            "429 again",
            "503 again",
            "400",
            "404",
            "plain 500",
            "redirect",
            "reward NaN",
            "reward 1e999",
            "reward text",
            "no result",
            "step backwards",
            "cut",
            "of another",
            "an older one",
            "hang",
            "drip",
            "202",
        )
    ),
    *(("observation", how) for how in ("observation list", "inventory list", "429 again", "of another", "hang")),
    *(("admit", how) for how in ("other receipt", "500", "hang")),
    *(
        ("release", how)
        for how in (
            "items twice",
            "items made up",
            "other transfer",
            "503 again",
            "cut",
            "hang",
        )
    ),
    ("avatars", "hang"),
    ("release", "no items"),  # last, as the quarry's state and the books differ from then on
)
"""Route and lie."""
ENDLESS = frozenset({"hang", "drip", "202"})
"""The lies that are told until the agent is recalled."""


@dataclass
class Told:
    """A lie and what came of it."""

    route: str
    how: str
    before: float
    """Decisions per second of the others before it."""
    during: float
    after: float
    home: float
    """Seconds from the lie until the agent was home; 0 if it stayed and left in order."""
    ended: str
    """Why its session ended, or that it did not."""
    blamed: list[str]
    """The errors in the log."""
    wrong: list[str]


class Nexus:
    """A nexus in its own process."""

    def __init__(self, home: Path, pace: float) -> None:
        command = [sys.executable, "-m", "wsap_core", "nexus", "start", "--port", "0", "--json", "--game", "crafter"]
        self._log = (home / "nexus.err").open("wb")
        self._process = subprocess.Popen(
            [*command, "--pace", str(pace), "--workers", "1"],
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "WSAP_HOME": str(home)},
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline() if select.select([self._process.stdout], [], [], 120)[0] else b""
        told = json.loads(line)
        self.database = str(told["database"])
        token = Path(told["token_file"]).read_text(encoding="ascii").strip()
        self._url = str(told["url"])
        self.owner = self.client(token)

    def client(self, token: str) -> httpx2.Client:
        """Return a client with a token."""
        headers = {"Authorization": f"Bearer {token}"}
        return httpx2.Client(base_url=self._url, headers=headers, timeout=100, verify=False)

    def register(self, agent: str, **more: Any) -> httpx2.Client:
        """Register an agent and return a client for it."""
        answer = self.owner.post("/nexus/agents", json={"id": agent, **more})
        answer.raise_for_status()
        return self.client(answer.json()["token"])

    def read(self, query: str, *values: object) -> list[Any]:
        """Return rows of the database."""
        connection = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=30)
        connection.row_factory = sqlite3.Row
        try:
            return connection.execute(query, values).fetchall()
        finally:
            connection.close()

    def decisions(self) -> int:
        """Return the number of decisions of the others."""
        (row,) = self.read(
            "SELECT count(*) AS n FROM event JOIN run ON run.id = event.run_id "
            "WHERE event.kind = 'step' AND run.game != 'far-quarry'"
        )
        return int(row["n"])

    def stop(self) -> int:
        """Stop it and return its exit status."""
        self._process.terminate()
        status = self._process.wait(60)
        self._log.close()
        return status


@contextmanager
def quarry() -> Iterator[str]:
    """Give the address of a quarry in its own process."""
    process = subprocess.Popen([sys.executable, "-c", GAME, TESTS], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().decode().split()[-1]
    finally:
        process.kill()
        process.wait()


def until(holds: Callable[[], object], seconds: float) -> float | None:
    """Wait until something holds and return how long that took; None if it does not in time."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if holds():
            return time.monotonic() - began
        time.sleep(0.05)
    return None


class Trial:
    """An agent that goes to a lying game and back."""

    def __init__(self, nexus: Nexus, liar: Liar, seconds: float) -> None:
        self._nexus, self._liar, self._seconds = nexus, liar, seconds
        self._eve = nexus.register("eve")

    # --- what the agent does ----------------------------------------------------------------------

    def place(self) -> str:
        """Return where the agent is; "transit" while something is under way."""
        (row,) = self._nexus.read("SELECT place FROM agent WHERE id = 'eve'")
        moving = self._nexus.read("SELECT id FROM transfer WHERE agent_id = 'eve' AND state = 'prepared'")
        return "transit" if moving else str(row["place"])

    def items(self) -> set[str]:
        """Return the ids of its items that are not lost."""
        rows = self._nexus.read("SELECT id FROM item WHERE agent_id = 'eve' AND place != 'lost'")
        return {str(row["id"]) for row in rows}

    def enter(self, wait: float = 60) -> int:
        """Enter the quarry."""
        self._nexus.owner.put("/nexus/games/far-quarry/status", json={"status": "available"})
        body = {"agent_id": "eve", "game": "far-quarry"}
        return self._eve.post("/nexus/transit/enter", json=body, params={"wait": wait}).status_code

    def act(self, name: str, wait: float = 60) -> httpx2.Response:
        """Act in the quarry."""
        return self._eve.post("/nexus/agents/eve/act", json={"name": name}, params={"wait": wait})

    def leave(self, wait: float = 60, *, force: bool = False) -> int:
        """Leave it, by the owner's command if forced."""
        who = self._nexus.owner if force else self._eve
        body = {"agent_id": "eve", "force": force}
        return who.post("/nexus/transit/exit", json=body, params={"wait": wait}).status_code

    def gather(self) -> None:
        """Go there and come back with some things, undisturbed."""
        while not self.items():
            assert self.enter() == 201
            for name in ("dig",) * 12 + ("forge",) * 3:
                self.act(name)
            assert self.leave() == 200

    # --- a lie ------------------------------------------------------------------------------------

    def rate(self, since: tuple[float, int]) -> float:
        """Return the decisions per second of the others since a moment."""
        began, number = since
        return (self._nexus.decisions() - number) / max(0.001, time.monotonic() - began)

    def moment(self) -> tuple[float, int]:
        """Return the time and the number of decisions."""
        return time.monotonic(), self._nexus.decisions()

    def settle(self) -> None:
        """Be home, with nothing unresolved, and tell the truth."""
        self._liar.be_honest()
        if until(lambda: self.place() != "transit", SETTLED) is None:
            raise SystemExit("The agent stays in transit.")
        if self.place() == "world":
            self.leave(force=True)
        until(lambda: not self._nexus.read("SELECT id FROM transfer WHERE state = 'unknown'"), SETTLED)

    def tell(self, route: str, how: str) -> Told:
        """Have a lie told and return what came of it."""
        self.settle()
        (last,) = self._nexus.read("SELECT max(seq) AS n FROM nexus_event")
        if route != "admit":
            assert self.enter() == 201
            self.act("dig")
            self._eve.get("/nexus/agents/eve/observation", params={"wait": 60})
        items = self.items()
        since = self.moment()
        time.sleep(self._seconds)
        before = self.rate(since)
        since, endless = self.moment(), how in ENDLESS
        began = time.monotonic()
        self._liar.lie(route, how, -1 if endless or how == "hang" else 1)
        wait = 0.0 if endless else 60.0
        if route == "admit":
            self.enter(wait)
        elif route in ("act", "observation"):
            self.act("dig", wait)
            self._eve.get("/nexus/agents/eve/observation", params={"wait": min(wait, 2)})
        else:
            self.leave(wait)
        limit = SETTLED
        if endless:
            time.sleep(3)
            began, limit = time.monotonic(), RECALLED
            self.leave(60, force=True)
        stays = self._liar.told and until(lambda: self.place() != "world", STAYS) is None
        home = 0.0 if stays else until(lambda: self.place() == "nexus", limit)
        if home is not None and not stays:
            home = time.monotonic() - began
        time.sleep(max(0.0, self._seconds - (time.monotonic() - since[0])))
        during = self.rate(since)
        wrong = [] if home is not None and home < limit else ["it is not home in time"]
        self.settle()
        since = self.moment()
        time.sleep(self._seconds)
        after = self.rate(since)
        told = Told(route, how, before, during, after, home or 0.0, "", [], wrong)
        return self._judged(told, int(last["n"]), items)

    def _judged(self, told: Told, last: int, items: set[str]) -> Told:
        rows = self._nexus.read("SELECT kind, agent_id, game, body FROM nexus_event WHERE seq > ? ORDER BY seq", last)
        for row in rows:
            body = json.loads(row["body"])
            if row["agent_id"] not in ("eve", None):
                continue
            if row["kind"] == "agent_failed":
                told.wrong.append(f"the agent is blamed: {body.get('error')}")
            if row["kind"] in ("world_crashed", "entry_refused", "game_failed", "transfer_unresolved", "game_offline"):
                if row["game"] != "far-quarry":
                    told.wrong.append(f"{row['game']} is blamed: {body}")
                told.blamed.append(f"{row['kind']}: {body.get('error') or body.get('why') or body.get('reason')}")
            if row["kind"] == "left":
                told.ended = str(body["reason"])
        if missing := items - self.items():
            told.wrong.append(f"items are gone: {sorted(missing)}")
        if made := {item for item in self.items() if item.startswith("made-")}:
            told.wrong.append(f"items were made up: {sorted(made)}")
        # What the proxy withholds is in the world, as far as a nexus can know, and nobody gains it.
        told.wrong += [each for each in self.books() if told.how != "no items" or "holds" not in each]
        return told

    def books(self) -> list[str]:
        """Return what is wrong in the books."""
        with Database.open(self._nexus.database, read_only=True) as database:
            return problems(database)


def main() -> int:
    """Measure and print; 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lies", type=int, default=len(LIES), help="how many of the lies")
    parser.add_argument("--route", help="only the lies about this route")
    parser.add_argument("--pace", type=float, default=8.0, help="decisions per second of each other agent")
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds for each measurement of a rate")
    parser.add_argument("--json", action="store_true", help="print one line of JSON for each lie")
    options = parser.parse_args()
    found: list[Told] = []
    with tempfile.TemporaryDirectory() as folder, quarry() as game, lying(game) as liar:
        nexus = Nexus(Path(folder), options.pace)
        try:
            for number in range(2, OTHERS):
                nexus.register(f"other-{number}", policies={"nexus": {"agent": "wanderer"}})
            nexus.owner.post("/nexus/games", json={"base_url": liar.url}).raise_for_status()
            trial = Trial(nexus, liar, options.seconds)
            trial.gather()
            chosen = [lie for lie in LIES if options.route in (None, lie[0])]
            for route, how in chosen[: options.lies]:
                found.append(told := trial.tell(route, how))
                if options.json:
                    print(json.dumps(asdict(told)), flush=True)
                else:
                    rates = f"{told.before:5.1f} {told.during:5.1f} {told.after:5.1f}"
                    why = "; ".join(told.wrong) or (told.blamed[0][:100] if told.blamed else "")
                    print(f"{route:12} {how:16} {rates}  home {told.home:5.1f} s  {told.ended:13} {why}", flush=True)
            trial.settle()
        finally:
            status = nexus.stop()
    before, during, after = (statistics.mean(getattr(t, name) for t in found) for name in ("before", "during", "after"))
    wrong = [f"{told.route} {told.how}: {each}" for told in found for each in told.wrong]
    wrong += ["the nexus did not stop in order"] * (status != 0)
    kept = [statistics.median(getattr(t, name) / t.before for t in found if t.before) for name in ("during", "after")]
    slow = min(kept) < 0.9
    blamed = sum(bool(told.blamed) for told in found)
    print(
        f"{len(found)} lies: the other agents {before:.1f} -> {during:.1f} -> {after:.1f} decisions/s on "
        f"average, of the rate before in the median {kept[0]:.0%} and {kept[1]:.0%}; home within "
        f"{max(told.home for told in found):.1f} s at most; the game blamed {blamed} times, {len(wrong)} problems"
    )
    return 1 if wrong or slow else 0


if __name__ == "__main__":
    sys.exit(main())

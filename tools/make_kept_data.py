"""Write what a release leaves behind, so that tests of later versions open it.

python tools/make_kept_data.py tests/data/v0_1_0

A database (runs of several kinds, finished and stopped, and a nexus with an agent in a world), an agent's file, the
results of an evaluation, and snapshots of worlds. `expected.json` says what they hold. It takes seconds.
"""

from __future__ import annotations

import asyncio
import base64
import json
import lzma
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from wsap_core import Action, PluginHost, World
from wsap_core.cli import main as wsap
from wsap_core.protocol import PortableItem
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import Context
from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.api import play
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.runs.plan import RunPlan, plan_seats
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.session import start
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EXTERNAL, EntryRequest

HOST = PluginHost.discovered()
SPEAKS = {"model": "scripted/x", "model.reply": '{"action": "speak", "params": {"text": "Good day."}}', "plan": False}
SNAPSHOTS: Mapping[str, tuple[Mapping[str, Any], Sequence[str]]] = {
    "crafter": ({}, ("move_right", "move_up", "noop")),
    "echo": ({}, ("wait",)),
    "matrix": ({"rounds": 9}, ("cooperate", "defect")),
    "minigrid": ({}, ("forward", "left", "forward")),
    "morrowind": ({}, ()),
}
"""Game -> its options, and actions that are repeated; none for each seat's default action."""
BEFORE, AFTER = 6, 12
"""Rounds before a snapshot and after it."""


def stopped(database: str, game: str, agent: str, steps: int, at: int, **options: Any) -> str:
    """Record a run that is stopped after `at` steps or ticks; return its id."""
    spec = load_adapter_spec(game, HOST).with_options(options)
    seats = plan_seats(spec, agent=agent, game_options=options, host=HOST) if agent else ()
    plan = RunPlan(game, seats, 3, steps, options, snapshot_every=40).for_game(spec)
    controls, seen = Controls(), [0]

    def count(_: object) -> None:
        seen[0] += 1
        if seen[0] >= at:
            controls.stop()

    watching: dict[str, Any] = {"controls": controls, "observers": [count], "on_tick": count}
    with open_store(database) as store, start(plan, HOST, store, **watching) as session:
        return str(asyncio.run(session.play()).run)


def runs(database: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Record runs; yield what to expect of each."""
    kinds: dict[str, dict[str, Any]] = {
        "echo": {"game": "echo", "agent": "random", "steps": 30},
        "matrix": {"game": "matrix", "seats": {"row": "tit-for-tat", "column": "random"}, "options": {"rounds": 20}},
        "minigrid": {"game": "minigrid", "agent": "minigrid-finder", "steps": 60, "as_": "ada"},
        "model": {"game": "echo", "agent": "llm", "agent_options": SPEAKS, "steps": 12, "as_": "ada"},
        "tossim": {"game": "tossim", "agent": "tossim-player", "options": {"mode": "five"}},
    }
    for name, given in kinds.items():
        done = play(**given, seed=3, database=database, host=HOST).to_json()
        yield name, {"run": done["run"], "hash": done["trajectory_hash"], "steps": done["steps"]}
    for name, game, agent, steps, at in (
        ("stopped", "crafter", "crafter-survivor", 110, 55),
        ("stopped-village", "sandbox:village", "", 4, 2),
    ):
        options = {"language": "en"} if game.startswith("sandbox") else {}
        whole = play(game, agent or None, seed=3, steps=steps, options=options, record=False, host=HOST).to_json()
        run = stopped(database, game, agent, steps, at, **options)
        yield name, {"run": run, "hash": whole["trajectory_hash"], "steps": whole["steps"], "stopped": True}


async def nexus(database: str) -> dict[str, Any]:
    """Let a nexus live for a moment, and stop it with one agent in a game and another in a world that lives."""
    settings = Settings(
        seed=5, games=("echo", "sandbox:village"), lobby_seconds=0.05, pace=50.0,
        worlds=(KeptWorld("village", "sandbox:village", {"language": "en"}),),
    )  # fmt: skip
    with open_store(database) as store:
        place = Nexus(HOST, store, settings)
        with place.nexus_store.change() as tx:
            for agent in ("eve", "fay"):
                tx.register(agent, policies={"*": EXTERNAL}, persona=f"I am {agent}.")
                item = PortableItem(f"t-1:{agent}", "spoon", "tool", 1, origin="kit")
                tx.mint_item(agent, item, game="kit", session="", transfer_id="t-1")
        await place.start()
        try:
            await place.enter("eve", "echo", EntryRequest())
            await place.enter("fay", "sandbox:village", EntryRequest(world="village", seat="anna"))
            for agent, actions in (("eve", ("wait", "wait")), ("fay", ("wait",))):
                for action in actions:
                    seat, _ = await place.live.external.observation(agent)
                    await seat.act(Action(action))
        finally:
            await place.stop()
        ticks = [event.step for event in store.repository.read_events("nexus-village", kinds=("tick",))]
        return {"in": {"eve": "echo", "fay": "sandbox:village"}, "ticks": len(ticks)}


async def snapshot(game: str) -> dict[str, Any]:
    """Return a world's snapshot in mid-play, and how it goes on."""
    options, actions = SNAPSHOTS[game]
    world = World.create(load_adapter_spec(game, HOST), Context.create(7, config=dict(options)))
    names = list(world.spec.with_options(dict(options)).names_of_seats(world.spec.with_options(dict(options)).seats[0]))
    await played(world, names, actions, BEFORE)
    data = world.snapshot()
    return {
        "options": dict(options), "seats": names, "actions": list(actions),
        "snapshot": base64.b64encode(data).decode("ascii"),
        "after": await played(world, names, actions, AFTER),
    }  # fmt: skip


async def played(world: World, names: Sequence[str], actions: Sequence[str], rounds: int) -> list[list[Any]]:
    """Play some rounds; return seat, number, reward, end, achievements, step and inventory of each decision."""
    found: list[list[Any]] = []

    async def one(name: str) -> None:
        seat = world.open_seat(name)
        for number in range(rounds):
            await seat.observe()
            if seat.ended:
                return
            usual = seat.default_action()
            action = Action(actions[number % len(actions)]) if actions else usual or Action("wait")
            result = await seat.act(action)
            seen = result.observation
            facts = [round(result.reward, 9), result.done, sorted(result.achievements), seen.step, dict(seen.inventory)]
            found.append([name, number, *facts])

    await asyncio.gather(*map(one, names))
    for name in names:
        world.close_seat(name)
    return sorted(found, key=lambda row: row[:2])


def command(*words: str) -> None:
    """Type a command; the program ends if it fails."""
    if code := wsap([*words]):
        sys.exit(code)


def pack(database: Path, packed: Path) -> None:
    """Write a database in one compressed file."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
    packed.write_bytes(lzma.compress(database.read_bytes(), preset=9 | lzma.PRESET_EXTREME))


def main(folder: Path) -> int:
    """Write the files."""
    folder.mkdir(parents=True, exist_ok=True)
    agent, scores = (folder / name for name in ("ada.agent", "scores"))
    for path in (agent, folder / "expected.json", *scores.glob("**/*")):
        if path.is_file():
            path.unlink()
    with tempfile.TemporaryDirectory() as tmp:
        os.environ["WSAP_HOME"] = tmp
        database = str(Path(tmp, "wsap.db"))
        expected: dict[str, Any] = {"protocol": PROTOCOL_VERSION, "runs": dict(runs(database))}
        command("nexus", "agents", "export", "ada", str(agent), "--database", database)
        expected["nexus"] = asyncio.run(nexus(database))
        command(
            "eval", "--game", "minigrid", "--game", "matrix", "--entrant", "random", "--entrant", "random-legal",
            "--seeds", "3", "--steps", "20", "--out", str(scores),
        )  # fmt: skip
        pack(Path(database), folder / "wsap.db.xz")
        pack(scores / "runs.db", scores / "runs.db.xz")
        for path in scores.glob("*"):
            if path.name.startswith(("runs.db", ".")) and path.suffix != ".xz":
                path.unlink()
    expected["snapshots"] = {game: asyncio.run(snapshot(game)) for game in SNAPSHOTS}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

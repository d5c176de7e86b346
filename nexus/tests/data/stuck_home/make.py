"""Make the home in which a village, a hamlet, and a game of two are stuck, with the code of commit 869b504b.

python make.py CHECKOUT FILE
"""

from __future__ import annotations

import asyncio
import lzma
import sqlite3
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

CHECKOUT, FILE = Path(sys.argv[1]), Path(sys.argv[2])
sys.path[:0] = [str(CHECKOUT / "nexus" / "tests"), str(CHECKOUT), str(CHECKOUT / "nexus")]
sys.path[:0] = [str(path) for path in (CHECKOUT / "plugins").iterdir()]

from life_kit import Script, host_with, nexus_at  # noqa: E402

from wsap_core.protocol import Action, PortableItem  # noqa: E402
from wsap_nexus.hub.settings import KeptWorld  # noqa: E402
from wsap_nexus.runs import world_calls  # noqa: E402
from wsap_nexus.store.entities import EXTERNAL, EntryRequest  # noqa: E402

AGENTS = ("ann", "bob", "cid", "dan", "eve", "fay")
VILLAGE = KeptWorld("village", "sandbox:village", {"language": "en"})
HAMLET = KeptWorld("hamlet", "sandbox:village", {"language": "en", "model": "script/it"})
ASKED = iter(range(1, 10_000))


def nexus(home: Path, *worlds: KeptWorld, agents: tuple[str, ...] = ()) -> Any:
    script = Script({"intent": lambda request: f'{{"intention": "I do thing {next(ASKED)}."}}'})
    return nexus_at(
        home, {agent: {"*": EXTERNAL} for agent in agents}, host=host_with(script=script),
        games=("matrix", "echo"), pace=20.0, lobby_seconds=50.0, worlds=worlds,
    )  # fmt: skip


def log(place: Any, world: str, *kinds: str) -> list[Any]:
    place.nexus.store.writer.flush()
    return list(place.nexus.store.repository.read_events(f"nexus-{world}", kinds=kinds))


async def act(place: Any, agent: str, name: str) -> None:
    seat, _ = await place.nexus.live.external.observation(agent)
    await seat.act(Action(name))


async def stuck_village(home: Path) -> None:
    """An arrival and a refused action within a tick whose calls are all recorded: its requests differ ever after."""
    async with nexus(home, VILLAGE, agents=AGENTS) as place:
        with place.nexus.nexus_store.change() as tx:
            for agent in AGENTS:
                thing = PortableItem(f"t-1:{agent}", "spoon", "tool", 1, origin="kit")
                tx.mint_item(agent, thing, game="kit", session="", transfer_id="t-1")
        await place.until(lambda: len(log(place, "village", "tick")) >= 2)
        bodies = log(place, "village", "tick")[-1].data["body"]["characters"]
        away = next(body["id"] for body in bodies if body["place"] != "square")
        await place.nexus.enter("ann", "sandbox:village", EntryRequest(world="village", seat=away, goals=("be heard",)))
        await place.nexus.live.external.observation("ann")
        await asyncio.sleep(1)
    async with nexus(home, VILLAGE) as place:
        await place.nexus.enter("bob", "sandbox:village", EntryRequest(world="village"))
        await place.nexus.live.external.observation("bob")
        await asyncio.sleep(1)
        await act(place, "ann", "nonsense")
        await asyncio.sleep(0.5)


async def stuck_hamlet(home: Path) -> None:
    """An agent leaves within a tick: each request has two answers, and a start takes the wrong one."""
    async with nexus(home, HAMLET) as place:
        await place.until(lambda: log(place, "hamlet", "tick"))
        entries = [
            (agent, EntryRequest(world="hamlet", seat=seat)) for agent, seat in (("eve", "anna"), ("fay", "luke"))
        ]
        await asyncio.gather(*(place.nexus.enter(agent, "sandbox:village", entry) for agent, entry in entries))
        await asyncio.gather(*(place.nexus.live.external.observation(agent) for agent in ("eve", "fay")))
        await asyncio.sleep(1)
        await act(place, "eve", "jack_out")
        await asyncio.sleep(1)
        for _ in range(2):
            await act(place, "fay", "wait")
    open_model = world_calls.JournalledModels.open

    async def slowly(models: Any, *words: Any) -> Any:
        await asyncio.sleep(2)
        return await open_model(models, *words)

    world_calls.JournalledModels.open = slowly  # type: ignore[method-assign]


async def stuck_game(home: Path) -> None:
    """A player with a goal of its own was called home; the other one's session would end at the next start."""
    async with nexus(home, VILLAGE, HAMLET) as place:
        goal = EntryRequest(goals=("win",))
        await asyncio.gather(*(place.nexus.enter(agent, "matrix", goal) for agent in ("cid", "dan")))
        await asyncio.gather(act(place, "cid", "defect"), act(place, "dan", "cooperate"))
        await place.nexus.exit("cid")
        await act(place, "dan", "cooperate")


async def start(home: Path) -> None:
    """Start once more, to show what is stuck."""
    async with nexus(home, VILLAGE, HAMLET) as place:
        with suppress(TimeoutError):
            async with asyncio.timeout(12):
                waits = (act(place, agent, "wait") for agent in ("ann", "bob", "fay"))
                await asyncio.gather(*waits, return_exceptions=True)
        for world in ("village", "hamlet"):
            print(world, "is at tick", log(place, world, "tick")[-1].step)
        with place.nexus.nexus_store.look() as tx:
            print([(row.agent_id, row.game, row.reason) for row in tx.sessions()])


async def main(home: Path) -> None:
    await stuck_village(home)
    await stuck_hamlet(home)
    await stuck_game(home)
    with sqlite3.connect(home / "nexus.db") as database:
        database.execute("VACUUM")
    copy = home / "copy"
    copy.mkdir()
    (copy / "nexus.db").write_bytes((home / "nexus.db").read_bytes())
    await start(copy)
    await start(copy)


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(Path(folder)))
    packed = lzma.compress(Path(folder, "nexus.db").read_bytes(), preset=9 | lzma.PRESET_EXTREME)
FILE.write_bytes(packed)
print(FILE, len(packed))

"""Numbers that JSON does not have, left in a database by another program or version, spoil no list and no page."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import cli_nexus_kit as kit
import pytest
from life_kit import Place, host_with, nexus_at
from wire_server import serving

from wsap_nexus.hub.nexus import Settings
from wsap_nexus.store.entities import EntryRequest, Policy

# Any, in this module: JSON.

AGENTS = {name: {"*": Policy("random"), "nexus": Policy("external")} for name in ("ann", "bob")}
PAGES = (
    "/nexus/overview", "/nexus/agents/ann", "/nexus/agents/bob", "/nexus/health",
    "/nexus/log?limit=50", "/nexus/agents", "/nexus/agents/ann", "/nexus/agents/ann/diary", "/nexus/games",
)  # fmt: skip


def strict(text: str) -> Any:
    """Return the data of strict JSON."""

    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A database in which ann's session, run and events have numbers that are none, and a text that is no JSON."""

    async def played(place: Place) -> None:
        for agent in AGENTS:
            await place.nexus.enter(agent, "echo", EntryRequest(steps=3))
            await place.until_events("left", agent=agent)

    async def scene() -> None:
        async with nexus_at(tmp_path, AGENTS, host=host_with(), games=("echo",), pace=0.0) as place:
            await played(place)

    asyncio.run(scene())
    (tmp_path / "nexus.db").rename(tmp_path / "wsap.db")
    with closing(sqlite3.connect(tmp_path / "wsap.db", isolation_level=None)) as connection:
        (run,) = connection.execute("SELECT run_id FROM session WHERE agent_id = 'ann'").fetchone()
        for change in (
            "UPDATE agent SET playtime = 9e999 WHERE id = 'ann'",
            """UPDATE session SET stats = '{"reward":-Infinity,"seconds":NaN}' WHERE agent_id = 'ann'""",
            """UPDATE nexus_event SET body = '{"reward":NaN,"steps":1e999}' WHERE kind = 'left' AND agent_id = 'ann'""",
            "UPDATE nexus_event SET body = 'no JSON' WHERE kind = 'entered' AND agent_id = 'ann'",
            """UPDATE avatar SET data = replace(data, '"health":0', '"health":1e999') WHERE agent_id = 'ann'""",
        ):
            assert connection.execute(change).rowcount, change
        summary = (
            """UPDATE run SET summary = replace(summary, '"reward":', '"reward":1e999,"old_reward":') WHERE id = ?"""
        )
        assert connection.execute(summary, (run,)).rowcount
        last = "SELECT max(seq) FROM event WHERE kind = 'step' AND run_id = ?"
        body = """CAST('{"old":NaN,"huge":1e999}' AS BLOB)"""
        step = f"UPDATE event SET codec = 'raw', dictionary = NULL, body = {body} WHERE run_id = ?"
        assert connection.execute(f"{step} AND seq = ({last})", (run, run)).rowcount
    return tmp_path / "wsap.db"


@pytest.mark.slow
def test_every_page_is_shown_to_everybody(odd: Path) -> None:
    with serving(odd.parent, host=host_with(), settings=Settings(games=("echo",))) as served, served.client() as client:
        for page in PAGES:
            answer = client.get(page)
            assert answer.status_code == 200, (page, answer.text)
            strict(answer.text)
        agents = {each["id"] for each in client.get("/nexus/agents").json()["agents"]}
        assert agents == {"ann", "bob"}
        # She goes on.
        served.in_loop(served.nexus.enter("ann", "echo", EntryRequest(steps=2)))


@pytest.mark.slow
def test_every_list_and_export_is_strict_json(odd: Path, tmp_path: Path) -> None:
    environ = kit.environ_of(tmp_path / "home")
    where = ("--database", str(odd))
    rows = strict(kit.wsap(environ, "runs", "--all", "--json", *where).stdout)
    assert len(rows) >= 2
    for words in (("nexus", "agents", "list"), ("nexus", "agents", "show", "ann"), ("nexus", "status")):
        done = kit.wsap(environ, *words, "--json", *where)
        assert done.returncode == 0, done.stderr
        strict(done.stdout)
    for row in rows:
        done = kit.wsap(environ, "export", row["run"], *where)
        assert done.returncode == 0, done.stderr
        assert all(map(strict, done.stdout.splitlines()))

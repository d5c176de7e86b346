"""What 0.1.0 wrote opens, is shown, resumed, imported and replayed: `data/v0_1_0`, made by `tools/make_kept_data.py`.

After its release these files are never made anew: a test that fails here says that a file of a user does not open.
"""

from __future__ import annotations

import asyncio
import base64
import csv
import importlib.util
import json
import lzma
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from wsap_core import Action, PluginHost, World
from wsap_core.cli import main
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import Context
from wsap_core.specs import BackendSpec
from wsap_nexus.api import resume_run
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.runs.session import replies_of, start
from wsap_nexus.runs.store import open_store

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data" / "v0_1_0"
EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
RUNS: dict[str, dict[str, Any]] = EXPECTED["runs"]
STOPPED = [name for name, run in RUNS.items() if run.get("stopped")]
FINISHED = [name for name in RUNS if name not in STOPPED]


def unpacked(name: str, path: Path) -> Path:
    path.write_bytes(lzma.decompress((DATA / name).read_bytes()))
    path.chmod(0o600)
    return path


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("WSAP_") and not n.startswith("WSAP_TESTS")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(unpacked("wsap.db.xz", tmp_path / "wsap.db"))


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Any:
    """Types a command that must succeed, and returns what it prints."""

    def typed(*words: str) -> str:
        capsys.readouterr()
        code = main(words)
        said = capsys.readouterr()
        assert code == 0, said.err
        return said.out

    return typed


def test_a_database_of_0_1_0_opens_with_all_its_runs_as_recorded(database: str, typed: Any) -> None:
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0.1.0",)]
    listed = json.loads(typed("runs", "--all", "--limit", "100", "--json", "--database", database))
    rows = {row["run"]: row for row in listed}
    for name, run in RUNS.items():
        row = rows[run["run"]]
        if name in FINISHED:
            assert (row["trajectory_hash"], row["steps"], row["status"]) == (run["hash"], run["steps"], "finished")
        assert "as recorded" in typed("replay", run["run"], "--verify", "--database", database)
        lines = typed("export", run["run"], "--database", database).splitlines()
        assert json.loads(lines[0])["run"] == run["run"]
        assert len(lines) > 5


@pytest.mark.parametrize("name", STOPPED)
def test_a_stopped_run_is_resumed_to_the_hash_of_one_that_was_not(name: str, database: str) -> None:
    summary = resume_run(RUNS[name]["run"], database=database).to_json()
    assert summary["trajectory_hash"] == RUNS[name]["hash"]
    assert summary["steps"] == RUNS[name]["steps"]


@pytest.mark.parametrize("name", FINISHED)
def test_a_run_is_played_again_to_the_same_hash_without_a_model(name: str, database: str) -> None:
    host = PluginHost.discovered()
    host.backends = type(host.backends)(BackendSpec, "backend", "backends")  # there is nobody to ask
    with open_store(database) as store:
        plan, past = replies_of(RUNS[name]["run"], store)
        with start(plan, host, store, past=past) as session:
            assert asyncio.run(session.play()).trajectory_hash == RUNS[name]["hash"]


def test_an_agent_has_its_skills_and_memories(database: str, typed: Any) -> None:
    shown = json.loads(typed("nexus", "agents", "show", "ada", "--json", "--database", database))
    assert shown["lifetime_steps"] == RUNS["minigrid"]["steps"] + RUNS["model"]["steps"]
    assert "Good day." in typed("nexus", "agents", "memory", "ada", "--database", database)


def test_an_exported_agent_is_imported_with_its_memories(tmp_path: Path, typed: Any) -> None:
    other = str(tmp_path / "other.db")
    typed("nexus", "agents", "import", str(DATA / "ada.agent"), "--database", other)
    assert "Good day." in typed("nexus", "agents", "memory", "ada", "--database", other)


def test_a_nexus_goes_on_with_its_agents_where_they_were_and_what_they_have(database: str) -> None:
    async def test() -> None:
        settings = Settings(
            seed=5, games=("echo", "sandbox:village"), lobby_seconds=0.05, pace=50.0,
            worlds=(KeptWorld("village", "sandbox:village", {"language": "en"}),),
        )  # fmt: skip
        with open_store(database) as store:
            nexus = Nexus(PluginHost.discovered(), store, settings)
            await nexus.start()
            try:
                async with asyncio.timeout(120):
                    for agent, game in EXPECTED["nexus"]["in"].items():
                        with nexus.nexus_store.look() as tx:
                            session = tx.session(tx.agent(agent).session_id or "")
                        assert session.game == game
                        seat, _ = await nexus.live.external.observation(agent)
                        await seat.act(Action("wait"))
                        await nexus.exit(agent)
            finally:
                await nexus.stop()
            with nexus.nexus_store.look() as tx:
                assert not tx.events(kinds=("world_crashed", "game_failed", "world_rewound"))
                for agent in EXPECTED["nexus"]["in"]:
                    assert (tx.agent(agent).place, [item.place for item in tx.items(agent)]) == ("nexus", ["escrow"])
            ticks = list(store.repository.read_events("nexus-village", kinds=("tick",)))
        assert len(ticks) > EXPECTED["nexus"]["ticks"]

    asyncio.run(test())


def test_results_of_an_evaluation_are_shown_compared_and_exported(tmp_path: Path, typed: Any) -> None:
    scores = tmp_path / "scores"
    shutil.copytree(DATA / "scores", scores)
    unpacked("scores/runs.db.xz", scores / "runs.db")
    with (scores / "table.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    shown = json.loads(typed("eval", "show", str(scores), "--json"))
    assert [(row["game"], row["entrant"], row["figure"]["mean"]) for row in shown["rows"]] == [
        (row["game"], row["entrant"], float(row["score"])) for row in table
    ]
    typed("eval", "compare", str(scores))
    typed("eval", "export", str(scores), "--format", "html", "--out", str(tmp_path / "page.html"))
    first = json.loads((scores / "episodes.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert "as recorded" in typed("replay", first["run"], "--verify", "--database", str(scores / "runs.db"))


@pytest.mark.parametrize("game", EXPECTED["snapshots"])
def test_a_world_is_restored_and_goes_on_the_same(game: str) -> None:
    spec = importlib.util.spec_from_file_location("make_kept_data", ROOT / "tools" / "make_kept_data.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    kept = EXPECTED["snapshots"][game]

    async def after() -> Any:
        world = World.create(load_adapter_spec(game), Context.create(1, config=kept["options"]))
        world.restore(base64.b64decode(kept["snapshot"]))
        return await tool.played(world, kept["seats"], kept["actions"], tool.AFTER)

    assert asyncio.run(after()) == kept["after"]

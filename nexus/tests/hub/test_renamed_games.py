"""Runs and homes that were recorded under the old name of a game go on under its present one."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import insert, select

from wsap_check import IsolatedHost, plugin_host
from wsap_core import AdapterSpec
from wsap_core.host import PluginHost
from wsap_nexus.agents.metagoals import own_goal
from wsap_nexus.cli.export import export
from wsap_nexus.cli.runs import runs
from wsap_nexus.hub.games.renaming import take_new_names
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.renamed import names_of
from wsap_nexus.runs.session import resume, start
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.store.tables import METADATA

OLD = AdapterSpec("cave", "A room.", "wsap_core.builtin.echo:EchoWorld", abilities=("seed", "snapshot"))
NEW = replace(OLD, name="cavern", former_names=("cave",))


def host_of(*specs: AdapterSpec) -> IsolatedHost:
    return plugin_host(*specs)


def test_a_run_that_was_recorded_under_the_old_name_is_gone_on_with(tmp_path: Path) -> None:
    plan = RunPlan("cave", (SeatPlan("seat-1", "random"),), seed=3, steps=9)
    controls = Controls()
    seen: list[StepTaken] = []

    def stop(step: StepTaken) -> None:
        seen.append(step)
        if len(seen) == 3:
            controls.stop()

    with open_store(str(tmp_path / "runs.db")) as store:
        with start(plan, host_of(OLD), store, controls=controls, observers=[stop]) as session:
            asyncio.run(session.play())
            run_id = session.run.run_id
        assert run_id is not None
        with resume(run_id, host_of(NEW), store) as session:
            summary = asyncio.run(session.play())
        assert summary.steps == 9


@pytest.mark.parametrize("asked", ["cave", "cavern"])
def test_runs_of_both_names_are_listed_and_exported_by_either(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = str(tmp_path / "runs.db")
    ids = []
    with open_store(database) as store:
        for game in (OLD, NEW):
            plan = RunPlan(game.name, (SeatPlan("seat-1", "random"),), seed=3, steps=2)
            with start(plan, host_of(game), store) as session:
                asyncio.run(session.play())
                ids.append(session.run.run_id)
    monkeypatch.setattr(PluginHost, "discovered", lambda: host_of(NEW))
    listed = CliRunner().invoke(runs, ["--game", asked, "--json", "--database", database])
    assert [(row["run"], row["game"]) for row in json.loads(listed.stdout)] == [(ids[1], "cavern"), (ids[0], "cave")]
    written = CliRunner().invoke(export, ["--game", asked, "--database", database])
    lines = map(json.loads, written.stdout.splitlines())
    assert [line["run"] for line in lines if line.get("format") == "wsap-run"] == ids


def test_a_name_means_the_game_that_has_it_now() -> None:
    assert names_of("cavern", host_of(NEW)) == ("cavern", "cave")
    assert names_of("cave", host_of(NEW)) == ("cave", "cavern")
    assert names_of("hut", host_of(NEW)) == ("hut",)
    assert names_of("cavern", host_of(NEW, OLD)) == ("cavern",)
    assert names_of("cave", host_of(NEW, OLD)) == ("cave",)
    family = replace(NEW, family="level", members=lambda: ["deep", "wide"])
    assert names_of("cavern:deep", host_of(family)) == ("cavern:deep", "cave:deep")


def test_what_a_nexus_knows_of_a_game_and_what_goals_have_counted_take_the_new_name(tmp_path: Path) -> None:
    agent, game, goal = (METADATA.tables[name] for name in ("agent", "game", "metagoal"))
    with open_store(str(tmp_path / "home.db")) as store, store.database.write() as connection:
        ada = {"id": "ada", "name": "Ada", "created": "", "state": "", "place": "", "persona": ""}
        connection.execute(insert(agent).values(**ada, policies={}, lore={}, lifetime_steps=0, playtime=0.0))
        connection.execute(insert(game).values(name="cave", status="offline", reason="mud", failures=2, data={}))
        own = own_goal("look", "Look around", "visit_game", games="cave,echo", count=2)
        longest = own_goal("stay", "Stay", "survive_steps", count=90)
        for made, tally in (
            (own, {"cave": {"visits": 1}, "cavern": {"visits": 1}}),
            (longest, {"cave": {"longest": 30}, "cavern": {"longest": 20}}),
        ):
            data = {
                "description": made.description,
                "requirements": [one.to_json() for one in made.requirements],
                "reward": None, "games": ["cave", "echo"], "tallies": [tally], "seq": 3,
            }  # fmt: skip
            connection.execute(insert(goal).values(agent_id="ada", id=made.id, state="active", since=1, data=data))
        assert take_new_names(Transaction(connection, 0.0), host_of(NEW)) == ["The game 'cave' is called 'cavern' now."]
        assert take_new_names(Transaction(connection, 0.0), host_of(NEW)) == []
        rows = connection.execute(select(game.c.name, game.c.status, game.c.failures))
        assert [tuple(row) for row in rows] == [("cavern", "offline", 2)]
        held = {row.id: row.data for row in connection.execute(select(goal))}
    assert held["look"]["requirements"][0]["games"] == ["cavern", "echo"]
    assert held["look"]["games"] == ["cavern", "echo"]
    assert held["look"]["tallies"] == [{"cavern": {"visits": 2}}]
    assert held["stay"]["tallies"] == [{"cavern": {"longest": 30}}]
    assert held["stay"]["requirements"][0]["games"] == "any"


@pytest.mark.parametrize("other", [False, True])
def test_a_home_takes_the_new_name(tmp_path: Path, other: bool) -> None:
    agent, world, achievement = (METADATA.tables[name] for name in ("agent", "world", "achievement"))
    with open_store(str(tmp_path / "home.db")) as store, store.database.write() as connection:
        assert {"world", "avatar", "session", "achievement", "evidence"} <= set(METADATA.tables)
        ada = {"id": "ada", "name": "Ada", "created": "", "state": "", "place": "", "persona": ""}
        connection.execute(insert(agent).values(**ada, policies={}, lore={}, lifetime_steps=0, playtime=0.0))
        row: dict[str, object] = {"owner": None, "seed": 1, "options": {}, "created": "", "failures": 0}
        connection.execute(insert(world).values(id="w1", game="cave", **row))
        connection.execute(insert(world).values(id="w2", game="cavernous", **row))
        earned = {"agent_id": "ada", "first": "", "times": 1}
        connection.execute(insert(achievement).values(game="cave", name="light", **earned))
        connection.execute(insert(achievement).values(game="cavern" if other else "elsewhere", name="light", **earned))
        assert take_new_names(Transaction(connection, 0.0), host_of(NEW)) == ["The game 'cave' is called 'cavern' now."]
        assert take_new_names(Transaction(connection, 0.0), host_of(NEW)) == []
        worlds = {row.id: row.game for row in connection.execute(select(world.c.id, world.c.game))}
        assert worlds == {"w1": "cavern", "w2": "cavernous"}
        games = sorted(connection.execute(select(achievement.c.game)).scalars())
        assert games == (["cavern"] if other else ["cavern", "elsewhere"])

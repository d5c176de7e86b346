"""A language model of the nexus lives as a character of a sandbox, and influences reach a run on PostgreSQL."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy
from life_kit import Script, host_with, nexus_at
from test_migrations import server  # noqa: F401 (a fixture)

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_core.seams.model import Request
from wsap_llm.backends.pool import ModelPool
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.runs.store import open_store
from wsap_nexus.runs.views.restoring import Runs
from wsap_nexus.services import StoreRunner
from wsap_nexus.store.entities import EntryRequest, Policy

GAME = "living_worlds:MEADOW"
MODEL = {"model": "script/it", "memory": "none"}


def test_a_language_model_lives_as_a_character_and_leaves_with_what_it_learned(tmp_path: Path) -> None:
    def decide(request: Request) -> str:
        if "the place between the worlds" in request.messages[0].text():
            return '{"action": "wait_for_game", "params": {"timeout": 600}}'
        return '{"action": "intend", "params": {"text": "I ask Vera what she has seen."}}'

    script = Script({"decide": decide, "diary": "They have a dam."})

    async def test() -> None:
        policies = {one: {"*": Policy("llm", MODEL), "nexus": Policy("llm", MODEL)} for one in ("ada", "luna")}
        worlds = (KeptWorld("village", "sandbox:village"),)
        host = host_with(script=script)
        async with nexus_at(tmp_path, policies, host=host, worlds=worlds, pace=50.0) as place:
            await place.nexus.enter("ada", "sandbox:village", EntryRequest(world="village", seat="gregory", steps=3))
            (left,) = await place.until_events("left", agent="ada")
            assert left.body["steps"] == 3
            place.nexus.store.writer.flush()
            ticks = [
                event.data["body"]
                for event in place.nexus.store.repository.read_events("nexus-village", kinds=("tick",))
            ]
            await place.nexus.enter("luna", "sandbox:village", EntryRequest(world="village", steps=2))
            await place.until_events("left", agent="luna")
            with place.nexus.nexus_store.look() as tx:
                skills = tx.skills("ada")
        hers = [one for body in ticks for one in body["characters"] if one["id"] == "gregory"]
        mine = [one for one in hers if one["decided_by"] == "seat"]
        assert len(mine) == 3
        assert {one["intention"] for one in mine} == {"I ask Vera what she has seen."}
        others = [one for body in ticks for one in body["characters"] if one["id"] != "gregory"]
        assert {one["decided_by"] for one in others} == {"model"}
        met = any(
            (one["came_from"] or one["place"]) == (other["came_from"] or other["place"])
            for body in ticks
            for one in body["characters"]
            if one["decided_by"] == "seat"
            for other in body["characters"]
            if other["id"] != one["id"]
        )
        assert ("social" in skills) == met
        with open_store(str(tmp_path / "nexus.db")) as store:
            runs, newest = Runs(host, store.repository), len(ticks) + 2
            for number in range(1, newest + 1):
                state = cast(Any, await runs.restored("nexus-village", number)).state
                assert state.tick == number
                assert number < newest or state.characters[-1].id == "luna"
            await StoreRunner(host, store, ModelPool(host)).branch("nexus-village", newest, "flood")
            assert cast(Any, await runs.restored("flood")).state == state
        asked = [text for text in script.asked("decide") if "the place between the worlds" not in text][:3]
        assert mine[0]["cell"]["came_of_it"] in asked[1]  # what the character remembers, its player is told
        own = {one["internal_state"] for one in mine}  # it may feel the same as others
        host_secrets = [
            one["internal_state"] for one in others if one["internal_state"] and one["internal_state"] not in own
        ]
        assert not [secret for secret in host_secrets if any(secret in text for text in asked)]

    asyncio.run(test())


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.slow
def test_influences_of_another_process_come_once_and_in_order(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = str(tmp_path / "runs.db")
    if kind == "postgresql":
        base = request.getfixturevalue("server")
        engine = sqlalchemy.create_engine(base.replace("postgresql:", "postgresql+psycopg:"))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(sqlalchemy.text("CREATE DATABASE inbox"))
        engine.dispose()
        url = base.replace("/postgres?", "/inbox?")
    plugins = PluginHost.discovered()
    with open_store(url) as playing, open_store(url) as meddling:
        runner, other = (StoreRunner(plugins, store, ModelPool(plugins)) for store in (playing, meddling))
        asyncio.run(runner.play(GAME, {}, run="m", steps=2, seed=3))
        for body in ({"rain": 5}, {"snow": 1}, {"rain": 7}):
            other.influence("m", body)
        assert [json.loads(json.dumps(body)) for _, body in playing.repository.inbox("m")] == [
            {"rain": 5}, {"snow": 1}, {"rain": 7},
        ]  # fmt: skip
        asyncio.run(runner.play(GAME, {}, run="m", steps=2))
        other.influence("m", {"rain": 1})
        asyncio.run(runner.rewind("m", 3))
        asyncio.run(runner.play(GAME, {}, run="m", steps=1))
        assert meddling.repository.inbox("m") == []
        events = [event.data for event in playing.repository.read_events("m", kinds=("influence",))]
    said = ["It rains: 5.", None, "It rains: 7.", "It rains: 1."]
    assert [event.get("said") for event in events] == said
    assert "only rain" in events[1]["refused"]


def test_a_seat_that_a_story_does_not_have_is_refused_with_the_list_and_makes_no_newcomer(tmp_path: Path) -> None:
    async def test() -> None:
        policies = {"ada": {"*": Policy("external"), "nexus": Policy("external")}}
        worlds = (KeptWorld("village", "sandbox:village"),)
        async with nexus_at(tmp_path, policies, host=host_with(), worlds=worlds, pace=50.0) as place:
            for world in ("village", None):
                with pytest.raises(UsageError, match=r"no seat 'ana'; there are: anna, .*vera"):
                    await place.nexus.enter("ada", "sandbox:village", EntryRequest(world=world, seat="ana"))
            (kept,) = place.nexus.kept.open
            assert "ana" not in [seat.name for seat in kept.passages.run.plan.seats]

    asyncio.run(test())


def test_a_seat_is_looked_for_in_every_world_of_the_game_that_is_not_named(tmp_path: Path) -> None:
    """Someone who came as herself has a seat in the second world only."""

    async def test() -> None:
        policies = {name: {"*": Policy("external"), "nexus": Policy("external")} for name in ("ada", "bob", "cid")}
        worlds = (KeptWorld("first", "sandbox:village"), KeptWorld("second", "sandbox:village"))
        async with nexus_at(tmp_path, policies, host=host_with(), worlds=worlds, pace=50.0, patience=0.2) as place:
            nexus = place.nexus
            await nexus.enter("ada", "sandbox:village", EntryRequest(world="second"))
            with pytest.raises(
                UsageError, match=r"No world of .* has a seat 'eve'; there are: first: .*; second: .*ada"
            ):
                await nexus.enter("bob", "sandbox:village", EntryRequest(seat="eve"))
            with pytest.raises(UsageError, match="The world 'first' has no seat 'ada'"):
                await nexus.enter("bob", "sandbox:village", EntryRequest(world="first", seat="ada"))
            await nexus.exit("ada")
            stay = await nexus.enter("bob", "sandbox:village", EntryRequest(seat="ada"))
            assert stay.session.world_id == "second"
            taken = await nexus.enter("ada", "sandbox:village", EntryRequest(seat="anna"))
            free = await nexus.enter("cid", "sandbox:village", EntryRequest(seat="anna"))
            assert [taken.session.world_id, free.session.world_id] == ["first", "second"]

    asyncio.run(test())

"""Worlds that live by themselves: driven, recorded, stopped and gone on with."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import re
import signal
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from living_worlds import Meadow
from script_kit import run_script

from wsap_core import Context
from wsap_core.cli import main
from wsap_core.errors import StorageLockedError, UnknownNameError, UsageError
from wsap_core.host import PluginHost
from wsap_core.protocol import Tick
from wsap_core.seams.services import Player, runtime_services
from wsap_llm.backends.pool import ModelPool
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.record.life_log import Notes
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.session import RunHandle, replies_of, start
from wsap_nexus.runs.store import Store, open_store
from wsap_nexus.runs.views.restoring import Runs
from wsap_nexus.services import StoreRunner
from wsap_nexus.store.locks.run_lock import hold_run
from wsap_nexus.store.records import EventRecord, NewRun, RunStatus

GAME = "living_worlds:MEADOW"


@cache
def plugins() -> PluginHost:
    return PluginHost.discovered()


@contextmanager
def opened(tmp_path: Path) -> Iterator[tuple[StoreRunner, Store]]:
    with open_store(str(tmp_path / "runs.db")) as store:
        yield StoreRunner(plugins(), store, ModelPool(plugins())), store


def played(tmp_path: Path, **more: Any) -> Mapping[str, Any]:
    """Play a meadow without gardeners, in a session of its own, and return the summary."""
    with opened(tmp_path) as (runner, _):
        return asyncio.run(runner.play(GAME, {}, run="m", **more))


def ticks(tmp_path: Path, run: str = "m") -> list[tuple[int, Any]]:
    with opened(tmp_path) as (_, store):
        return [(e.step or 0, e.data) for e in store.repository.read_events(run, kinds=("tick",))]


def test_a_world_without_seats_is_driven_and_recorded(tmp_path: Path) -> None:
    told: list[Tick] = []
    summary = played(tmp_path, steps=5, seed=3, on_tick=told.append)
    assert [tick.number for tick in told] == [1, 2, 3, 4, 5]
    recorded = ticks(tmp_path)
    assert [number for number, _ in recorded] == [1, 2, 3, 4, 5]
    assert recorded[0][1]["summary"].endswith(" flowers")
    digest = hashlib.sha256().hexdigest()
    for _, body in recorded:
        line = json.dumps(body, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(f"{digest}{line}\n".encode()).hexdigest()
    assert summary["world"]["ticks"] == 5
    assert summary["trajectory_hash"] == summary["world"]["trajectory_hash"] == digest
    assert summary["steps"] == 0


def test_a_run_is_gone_on_with_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    whole = played(tmp_path / "b", steps=12, seed=3)
    for steps in (0, 5, 4, 3):
        parts = played(tmp_path, steps=steps, seed=3, snapshot_every=2)
    assert ticks(tmp_path) == ticks(tmp_path / "b")
    assert parts["trajectory_hash"] == whole["trajectory_hash"]
    with opened(tmp_path) as (_, store):
        notes = [e.data["tick"] for e in store.repository.read_events("m", kinds=("story",))]
        assert notes == list(range(1, 13))


def test_a_world_that_ends_ends_its_run(tmp_path: Path) -> None:
    summary = played(tmp_path, options={"ends": 4}, seed=1)
    assert (summary["done"], summary["world"]["ticks"]) == (True, 4)
    again = played(tmp_path, options={"ends": 4}, seed=1)
    assert again["trajectory_hash"] == summary["trajectory_hash"]  # finished: not played again
    assert len(ticks(tmp_path)) == 4


def test_a_run_tells_its_totals_while_it_is_played(tmp_path: Path) -> None:
    told: list[int] = []
    with opened(tmp_path) as (runner, store):
        runs = Runs(plugins(), store.repository)

        def tell(tick: Tick) -> None:
            store.writer.flush()
            told.append(runs.about("m")["summary"]["world"]["ticks"])

        asyncio.run(runner.play(GAME, {}, run="m", steps=3, on_tick=tell))
        assert runs.about("m")["summary"]["world"]["ticks"] == 3
    assert told == [1, 2, 3]


def test_a_world_that_is_stopped_goes_on_also_where_its_ticks_would_no_longer_be_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(tmp_path, steps=7, seed=3)
    before = state(tmp_path)
    grown = Meadow.advance

    async def otherwise(meadow: Meadow) -> Tick:
        tick = await grown(meadow)
        return replace(tick, summary=f"{tick.summary}, says a newer version")

    monkeypatch.setattr(Meadow, "advance", otherwise)
    assert state(tmp_path) == before
    assert played(tmp_path, steps=2)["world"]["ticks"] == 9


def states(tmp_path: Path, run: str, steps: Iterable[int | None]) -> list[bytes]:
    """Return the states of a run's world after these ticks, restored one by one in a session of its own."""
    found = []
    with opened(tmp_path) as (_, store):
        for step in steps:
            world = asyncio.run(Runs(plugins(), store.repository).restored(run, step))
            assert isinstance(world, Meadow)
            found.append(world.snapshot())
    return found


def state(tmp_path: Path, run: str = "m", step: int | None = None) -> bytes:
    return states(tmp_path, run, [step])[0]


def test_any_tick_of_a_run_is_restored_offline_from_the_snapshot_before_it(tmp_path: Path) -> None:
    expected: list[bytes] = []
    meadow = Meadow(Context.create(0, config={}))
    meadow.reset(seed=3)
    for number in range(1, 11):
        expected.append(meadow.snapshot())
        asyncio.run(meadow.advance())
        assert meadow.number == number
    expected.append(meadow.snapshot())
    played(tmp_path, steps=10, seed=3, snapshot_every=4)
    assert states(tmp_path, "m", [*range(11), None]) == [*expected, expected[-1]]
    with pytest.raises(UsageError, match="has ticks 0 to 10, but no tick 11"):
        state(tmp_path, step=11)
    with pytest.raises(UsageError, match="no tick -1"):
        state(tmp_path, step=-1)


def test_influences_wait_for_whoever_plays_and_come_before_the_next_tick(tmp_path: Path) -> None:
    (tmp_path / "dry").mkdir()
    dry = played(tmp_path / "dry", steps=4, seed=3)
    played(tmp_path, steps=2, seed=3, snapshot_every=0)
    with opened(tmp_path) as (runner, store):
        runner.influence("m", {"rain": 5})
        runner.influence("m", {"snow": 1})
        assert len(store.repository.inbox("m")) == 2
    summary = played(tmp_path, steps=2, seed=3)
    assert summary["trajectory_hash"] != dry["trajectory_hash"]
    with opened(tmp_path) as (_, store):
        assert store.repository.inbox("m") == []
        events = [e.data for e in store.repository.read_events("m", kinds=("influence",))]
    assert [event.get("said") for event in events] == ["It rains: 5.", None]
    assert events[1]["refused"] == "It can only rain here."
    flowers = [body["body"]["flowers"] for _, body in ticks(tmp_path)]
    without = [body["body"]["flowers"] for _, body in ticks(tmp_path / "dry")]
    assert [now - then for now, then in zip(flowers, without, strict=True)] == [0, 0, 5, 5]
    again = played(tmp_path, steps=0)  # from the beginning: the rain comes at its place
    assert again["trajectory_hash"] == summary["trajectory_hash"]


def test_a_run_goes_on_from_an_earlier_tick_and_keeps_what_was(tmp_path: Path) -> None:
    played(tmp_path, steps=6, seed=3, snapshot_every=4)
    before, third = ticks(tmp_path), state(tmp_path, step=3)
    with opened(tmp_path) as (runner, _):
        asyncio.run(runner.rewind("m", 3))
        assert state(tmp_path) == third
        runner.influence("m", {"rain": 9})
        for beyond in (-1, 4, 99):
            with pytest.raises(UsageError, match="has ticks 0 to 3"):
                asyncio.run(runner.rewind("m", beyond))
    played(tmp_path, steps=2)
    numbers = [number for number, _ in ticks(tmp_path)]
    assert numbers == [1, 2, 3, 4, 5, 6, 4, 5]
    assert ticks(tmp_path)[:6] == before
    assert ticks(tmp_path)[6][1]["body"]["flowers"] == before[3][1]["body"]["flowers"] + 9
    assert state(tmp_path, step=3) == third
    assert json.loads(state(tmp_path, step=4))[1] == ticks(tmp_path)[6][1]["body"]["flowers"]
    with opened(tmp_path) as (runner, _):
        asyncio.run(runner.rewind("m", 2))
        asyncio.run(runner.rewind("m", 0))
    played(tmp_path, steps=6)
    assert ticks(tmp_path)[-6:] == before  # the rain has not fallen there


def test_a_branch_begins_with_a_tick_of_another_run(tmp_path: Path) -> None:
    played(tmp_path, steps=6, seed=3)
    with opened(tmp_path) as (runner, store):
        asyncio.run(runner.branch("m", 4, "n"))
        branched = store.repository.get_run("n").config["branched_from"]
        assert branched == {"run": "m", "step": 4, "seq": len(list(store.repository.read_events("m")))}
        with pytest.raises(UsageError, match="run 'n' already exists"):
            asyncio.run(runner.branch("m", 4, "n"))
        with pytest.raises(UsageError, match="has ticks 4 to 4, but no tick 3"):
            asyncio.run(runner.rewind("n", 3))
        asyncio.run(runner.play(GAME, {}, run="n", steps=2))
    assert ticks(tmp_path, "n") == ticks(tmp_path)[4:]
    assert state(tmp_path, "n", 4) == state(tmp_path, step=4)
    assert state(tmp_path, "n") == state(tmp_path)


def replayed(tmp_path: Path, run: str = "m") -> tuple[Mapping[str, Any], str]:
    """Play a run again offline, recorded as another, and return the summary and that run's id."""
    with opened(tmp_path) as (_, store):
        plan, past = replies_of(run, store)
        with start(plan, plugins(), store, past=past) as session:
            return asyncio.run(session.play()).to_json(), str(session.run.run_id)


def test_a_run_is_played_again_with_all_that_came_from_outside_and_all_rewinding(tmp_path: Path) -> None:
    played(tmp_path, steps=4, seed=3)
    with opened(tmp_path) as (runner, _):
        runner.influence("m", {"rain": 2})
        asyncio.run(runner.rewind("m", 2))
    first = played(tmp_path, steps=3)
    with opened(tmp_path) as (runner, _):
        asyncio.run(runner.branch("m", 3, "n"))
    again, run = replayed(tmp_path)
    assert again["trajectory_hash"] == first["trajectory_hash"]
    assert ticks(tmp_path, run) == ticks(tmp_path)
    assert state(tmp_path, run) == state(tmp_path)
    with opened(tmp_path) as (runner, _):
        branched = asyncio.run(runner.play(GAME, {}, run="n", steps=3))
    again, run = replayed(tmp_path, "n")
    assert again["trajectory_hash"] == branched["trajectory_hash"]
    assert state(tmp_path, run) == state(tmp_path, "n")


GARDENERS = {"seat-1": Player("random"), "seat-2": Player("random")}


def test_seats_and_the_world_wait_for_each_other(tmp_path: Path) -> None:
    with opened(tmp_path) as (runner, store):
        summary = asyncio.run(runner.play(GAME, GARDENERS, run="s", steps=6, seed=5, snapshot_every=4))
        assert (summary["steps"], summary["world"]["ticks"]) == (12, 6)
        kinds = [(e.kind, e.seat) for e in store.repository.read_events("s", kinds=("chosen", "step", "tick"))]
    a_tick = [("chosen", "seat-1"), ("chosen", "seat-2"), ("tick", "world"), ("step", "seat-1"), ("step", "seat-2")]
    assert kinds == a_tick * 6


@pytest.mark.slow
def test_a_run_with_seats_is_gone_on_with_from_its_snapshot(tmp_path: Path) -> None:
    with opened(tmp_path) as (runner, _):
        whole = asyncio.run(runner.play(GAME, GARDENERS, run="a", steps=12, seed=5))
    for steps in (0, 1, 4, 2, 5):
        with opened(tmp_path) as (runner, store):
            parts = asyncio.run(runner.play(GAME, GARDENERS, run="b", steps=steps, seed=5, snapshot_every=3))
    assert parts["trajectory_hash"] == whole["trajectory_hash"]
    assert ticks_alone(tmp_path, "b") == ticks_alone(tmp_path, "a")
    with opened(tmp_path) as (_, store):
        assert store.repository.count_events("b", "snapshot") >= 3
    assert states(tmp_path, "b", range(13)) == states(tmp_path, "a", range(13))
    again, _ = replayed(tmp_path, "b")
    assert again["trajectory_hash"] == whole["trajectory_hash"]
    with opened(tmp_path) as (runner, _), pytest.raises(UsageError, match="branch it instead"):
        asyncio.run(runner.rewind("b", 2))
    with opened(tmp_path) as (runner, store):
        asyncio.run(runner.branch("b", 7, "c"))
        assert store.repository.get_run("c").config["branched_from"]["step"] == 7
        asyncio.run(runner.play(GAME, {}, run="c", steps=2))
    assert [(number, body["body"]["planted"]) for number, body in ticks(tmp_path, "c")] == [(8, 0), (9, 0)]


def ticks_alone(tmp_path: Path, run: str) -> list[Any]:
    return [{name: part for name, part in body.items() if name != "after"} for _, body in ticks(tmp_path, run)]


@pytest.mark.parametrize("seats", [{}, GARDENERS], ids=["alone", "with seats"])
@pytest.mark.slow
def test_whatever_a_kill_leaves_of_a_run_is_gone_on_with_as_if_nothing_had_happened(
    tmp_path: Path, seats: Mapping[str, Player]
) -> None:
    with opened(tmp_path) as (runner, store):
        repository, writer = store.repository, store.writer
        whole = asyncio.run(runner.play(GAME, seats, run="m", steps=7, seed=5, snapshot_every=3))
        record, events = repository.get_run("m"), list(repository.read_events("m"))
        for length in range(1, len(events), 2 if seats else 1):
            cut = repository.create_run(
                NewRun(game=record.game, agent=record.agent, seed=record.seed, config=record.config, id=f"cut-{length}")
            )
            for e in events[:length]:
                writer.append(cut.id, e.kind, e.body.decode(), seat=e.seat, episode=e.episode, step=e.step)
            writer.flush()
            left = 7 - sum(e.kind == "tick" for e in events[:length])
            if not left and seats:
                break  # stopped at once, with the last results still to be taken in
            summary = asyncio.run(runner.play(GAME, seats, run=cut.id, steps=left))
            assert summary["trajectory_hash"] == whole["trajectory_hash"], length
            notes = [e.data["tick"] for e in repository.read_events(cut.id, kinds=("story",))]
            assert notes == list(range(1, 8)), length


@pytest.mark.slow
def test_no_influence_is_lost_or_comes_twice_however_often_the_run_is_killed(tmp_path: Path) -> None:
    database, ticks_wanted, dice = str(tmp_path / "runs.db"), 24, random.Random(8)
    asked: list[int] = []
    for kill in [*(dice.randint(2, 25) for _ in range(12)), 0]:
        with open_store(database) as store:
            if store.repository.find_run("killed") is not None:
                asked.append(2 ** len(asked))
                store.repository.add_to_inbox("killed", {"rain": asked[-1]})
        ended = run_script(Path(__file__).parents[1] / "chaos/living_kill.py", database, str(ticks_wanted), str(kill))
        assert ended.returncode == (-signal.SIGKILL if kill else 0), ended.stderr
    with open_store(database) as store:
        events = list(store.repository.read_events("killed"))
        assert store.repository.inbox("killed") == []
    assert [e.data["body"]["rain"] for e in events if e.kind == "influence"] == asked
    assert [e.step for e in events if e.kind == "tick"] == list(range(1, ticks_wanted + 1))
    assert [e.data["tick"] for e in events if e.kind == "story"] == list(range(1, ticks_wanted + 1))
    assert replayed(tmp_path, "killed")[0]["trajectory_hash"] == events_hash(events)


def events_hash(events: Iterable[EventRecord]) -> str:
    digest = hashlib.sha256().hexdigest()
    for event in events:
        if event.kind == "tick":
            line = json.dumps(event.data, sort_keys=True, separators=(",", ":"))
            digest = hashlib.sha256(f"{digest}{line}\n".encode()).hexdigest()
    return digest


def test_ticks_pause_step_and_go_on_at_the_runs_controls(tmp_path: Path) -> None:
    controls = Controls()
    plan = RunPlan(GAME, (), seed=3, steps=9)
    numbers: list[int] = []

    def on_tick(tick: Tick) -> None:
        numbers.append(tick.number)
        if tick.number in (3, 5):
            controls.pause()

    async def played_with_pauses(run: RunHandle) -> Mapping[str, Any]:
        playing = asyncio.create_task(run.play())
        for expected in ([1, 2, 3], [1, 2, 3, 4]):
            for _ in range(1000):  # turns of the event loop, long enough for a tick too many
                await asyncio.sleep(0)
            assert numbers == expected
            assert controls.paused
            controls.step_once()
        for _ in range(1000):
            await asyncio.sleep(0)
        assert numbers == [1, 2, 3, 4, 5]
        controls.resume()
        return (await playing).to_json()

    with opened(tmp_path) as (_, store), start(plan, plugins(), store, controls=controls, on_tick=on_tick) as run:
        summary = asyncio.run(played_with_pauses(run))
    assert numbers == list(range(1, 10))
    (tmp_path / "b").mkdir()
    assert summary["trajectory_hash"] == played(tmp_path / "b", steps=9, seed=3)["trajectory_hash"]


def test_a_tick_that_is_cancelled_is_carried_out_again(tmp_path: Path) -> None:
    async def cancelled(runner: StoreRunner) -> None:
        def cancel(tick: Tick) -> None:
            if tick.number == 3:
                playing.cancel()

        playing = asyncio.create_task(runner.play(GAME, GARDENERS, run="m", seed=3, on_tick=cancel))
        with pytest.raises(asyncio.CancelledError):
            await playing

    with opened(tmp_path) as (runner, store):
        asyncio.run(cancelled(runner))
        assert store.repository.get_run("m").status is RunStatus.INTERRUPTED
        parts = asyncio.run(runner.play(GAME, GARDENERS, run="m", steps=3))
        whole = asyncio.run(runner.play(GAME, GARDENERS, run="n", steps=6, seed=3))
    assert parts["trajectory_hash"] == whole["trajectory_hash"]
    assert ticks_alone(tmp_path, "m") == ticks_alone(tmp_path, "n")


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    played(tmp_path, options={"ends": 2}, seed=1)
    with opened(tmp_path) as (runner, _):
        with pytest.raises(UsageError, match="at least 0, not -1"):
            asyncio.run(runner.play(GAME, {}, steps=-1))
        with pytest.raises(UsageError, match="is finished and takes no influence"):
            runner.influence("m", {"rain": 1})
        with pytest.raises(UnknownNameError):
            runner.influence("nobody", {"rain": 1})
        with pytest.raises(UsageError, match="can't have a seat named 'world'"):
            RunPlan(GAME, (SeatPlan("world", "random"),), lives=True)
        with pytest.raises(UsageError, match="is played for one episode"):
            RunPlan(GAME, (), episodes=2, lives=True)
        notes = Notes(Recorder(None, None))
        with pytest.raises(UsageError, match="'tick' is reserved for the run"):
            notes.note("tick", {})
        asyncio.run(runner.rewind("m", 1))
        runner.influence("m", {"rain": 1})
        assert asyncio.run(runner.play(GAME, {}, run="m"))["done"]


def test_two_processes_do_not_play_one_run(tmp_path: Path) -> None:
    played(tmp_path, steps=1, seed=1)
    with opened(tmp_path) as (runner, store), hold_run(store.database, "m"):
        for doing in (runner.play(GAME, {}, run="m", steps=1), runner.rewind("m", 0)):
            with pytest.raises(StorageLockedError, match="is being played by another process"):
                asyncio.run(doing)


@pytest.mark.slow
def test_ticks_beside_seats_that_nobody_waits_for_are_gone_through_again_in_their_order(tmp_path: Path) -> None:
    with opened(tmp_path) as (runner, store):
        repository, writer = store.repository, store.writer
        asyncio.run(runner.play("living_worlds:MARKET", GARDENERS, run="m", steps=6, seed=5, snapshot_every=4))
        record, events = repository.get_run("m"), list(repository.read_events("m"))
        recorded = [e.data["body"] for e in events if e.kind == "tick"]
        assert sum(body["planted"] for body in recorded) > 3
        assert any(e.kind == "chosen" for e in events)
        for length in range(2, len(events), max(3, len(events) // 12)):
            cut = repository.create_run(
                NewRun(game=record.game, agent=record.agent, seed=record.seed, config=record.config, id=f"cut-{length}")
            )
            for e in events[:length]:
                writer.append(cut.id, e.kind, e.body.decode(), seat=e.seat, episode=e.episode, step=e.step)
            writer.flush()
            asyncio.run(runner.play("living_worlds:MARKET", GARDENERS, run=cut.id, steps=2))
            now = [e.data["body"] for e in repository.read_events(cut.id, kinds=("tick",))]
            before = sum(e.kind == "tick" for e in events[:length])
            assert now[:before] == recorded[:before]
            assert len(now) == before + 2


@pytest.mark.slow
def test_a_world_that_lives_is_played_listed_looked_at_and_verified_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WSAP_DATABASE", raising=False)

    def typed(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(words)
        return code, *capsys.readouterr()

    code, out, _ = typed("play", GAME, "--steps", "3", "--seed", "3")
    assert code == 0
    assert re.match(r"meadow, without agents, seed 3, 3 ticks, recorded as \S+\ntick 1: \d+ flowers\ntick 2: ", out)
    assert "\n3 ticks, " in out
    (row,) = json.loads(typed("runs", "--json")[1])
    assert (row["ticks"], row["steps"], row["agent"]) == (3, 0, "world")
    assert typed("runs")[1].split("\t")[4] == "3t"
    assert [line.split("\t")[0] for line in typed("replay", "last")[1].splitlines()] == ["1", "2", "3"]
    (second,) = [
        json.loads(line) for line in typed("replay", "last", "--from", "2", "--to", "2", "--json")[1].splitlines()
    ]
    assert (second["tick"], second["done"]) == (2, False)
    code, out, _ = typed("replay", "last", "--verify")
    assert (code, out.split(": ")[1][:24]) == (0, "3 ticks, trajectory hash")
    assert typed("play", "--replay", "last")[0] == 0
    killed = tmp_path / "killed.db"
    with sqlite3.connect(tmp_path / "home" / "wsap.db") as connection:
        connection.execute("VACUUM INTO ?", (str(killed),))
    with sqlite3.connect(killed) as connection:  # as if it was gone on with, and killed after a tick
        where = "run_id = (SELECT run_id FROM event ORDER BY time DESC LIMIT 1) AND kind = 'tick'"
        connection.execute(f"UPDATE run SET status = 'running' WHERE id = (SELECT run_id FROM event WHERE {where})")
        connection.execute(f"DELETE FROM event WHERE {where} AND step = 3")
    code, _, err = typed("replay", "last", "--verify", "--database", str(killed))
    assert (code, "was cut off before its hash was recorded; its 2 ticks give" in err) == (2, True), err
    with runtime_services(str(killed)) as services:
        asyncio.run(services.require("runner").rewind(services.require("runs").runs()[0], 1))
    code, _, err = typed("replay", "last", "--verify", "--database", str(killed))
    assert (code, "was cut off before its hash was recorded" in err) == (2, True), err
    with sqlite3.connect(tmp_path / "home" / "wsap.db") as connection:
        where = "run_id = (SELECT run_id FROM event ORDER BY time DESC LIMIT 1) AND kind = 'tick' AND step = 2"
        connection.execute(f"DELETE FROM event WHERE {where}")
    code, _, err = typed("replay", "last", "--verify")
    assert code != 0
    assert "recorded 2 ticks" in err
    assert "the database was changed" in err
    code, _, err = typed("play", GAME, "--episodes", "2")
    assert code == 2
    assert "one episode" in err

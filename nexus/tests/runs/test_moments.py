"""What is worth telling of a run is written with its steps, and is the same whenever it is played again."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from wsap_core.host import PluginHost
from wsap_core.protocol import ActionResult, DeathEvent, Event, Observation
from wsap_core.references import load_adapter_spec
from wsap_nexus.api import play
from wsap_nexus.runs.plan import RunPlan, plan_seats
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.record.moments import LONGEST, MOST, moment_of_death, moments_of_step
from wsap_nexus.runs.session import resume, start
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.database import Database
from wsap_nexus.store.log.bodies import BodyEncoder
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.log.sinks import Item, make_group, open_sink
from wsap_nexus.store.records import NewMoment, NewRun
from wsap_nexus.store.repository import Repository

HOST = PluginHost.discovered()
STEPS = 150


def stepped(*events: Event, achieved: tuple[str, ...] = (), step: int = 7) -> ActionResult:
    return ActionResult(True, "", 0.0, achievements=achieved, observation=Observation(recent_events=events, step=step))


@pytest.mark.parametrize(
    ("result", "worked", "told"),
    [
        (stepped(), {}, []),
        (
            stepped(achieved=("collect_wood",)),
            {"achievement:collect_wood": 1},
            [("achievement", 50.0, ", for the first time: collect wood", ", впервые: collect wood")],
        ),
        (
            stepped(achieved=("collect_wood",)),
            {"achievement:collect_wood": 2},
            [("again", 10.0, ", again: collect wood", ", снова: collect wood")],
        ),
        (
            stepped(Event("A zombie hit you.", "damage", step=7)),
            {},
            [("hit", 25.0, ": A zombie hit you", ": A zombie hit you")],
        ),
        # A death tells of the hit that it came from, and what is long past is not told again.
        (
            stepped(Event("Hit.", "damage"), Event("You died.", "death")),
            {},
            [("died", 100.0, ": You died", ": You died")],
        ),
        (stepped(Event("A zombie hit you.", "damage", step=3)), {}, []),
        (stepped(Event("", "death")), {}, [("died", 100.0, ": it died", ": смерть")]),
        # Text of a game stays on one line, without what a terminal obeys.
        (stepped(Event("Ow\n\x1b[31m!", "damage")), {}, [("hit", 25.0, ": Ow [31m!", ": Ow [31m!")]),
    ],
)
def test_what_is_told_of_a_step(
    result: ActionResult, worked: dict[str, int], told: list[tuple[str, float, str, str]]
) -> None:
    found = moments_of_step(result, worked)
    assert [(one.kind, one.weight, one.words["en"], one.words["ru"]) for one in found] == told
    assert {one.audience for one in found} <= {"seat"}


def test_a_game_cannot_flood_the_moments() -> None:
    found = moments_of_step(stepped(Event("x" * 9000, "death"), achieved=tuple(map(str, range(5000)))), {})
    assert len(found) == MOST
    assert all(len(word) <= LONGEST + 30 for one in found for word in one.words.values())


def test_a_death_that_the_world_reports_names_cause_and_killer() -> None:
    assert moment_of_death(DeathEvent("b-1", "damage", "zombie")).words == {
        "en": " died of damage, killed by zombie",
        "ru": ": смерть, damage, zombie",
    }


def told(database: Path, run: str) -> list[tuple[object, ...]]:
    """Return the moments of a run, without the time and the numbers of events."""
    with Database.open(database) as opened:
        found = Repository(opened).moments_of(run, limit=1000)
    return [(one.seat, one.agent, one.step, one.number, one.kind, one.weight, one.words) for one in found]


def survive(database: Path) -> str:
    return str(play("crafter", "crafter-survivor", seed=3, steps=STEPS, database=str(database), host=HOST).run)


def test_moments_name_the_steps_in_which_they_happened_and_come_again_when_it_is_played_again(tmp_path: Path) -> None:
    run = survive(tmp_path / "a.db")
    found = told(tmp_path / "a.db", run)
    assert {"achievement", "again"} & {one[4] for one in found}
    with Database.open(tmp_path / "a.db") as opened:
        steps = list(Repository(opened).read_events(run, kinds=("step",)))
    expected = [
        (event.step + 1, name.replace("_", " "))
        for event in steps
        if event.step is not None
        for name in event.data["step"]["result"].get("achievements", ())
    ]
    assert [
        (one[2], one[6]["en"].rpartition(": ")[2])  # type: ignore[index]
        for one in found
        if one[4] in ("achievement", "again")
    ] == expected
    assert told(tmp_path / "b.db", survive(tmp_path / "b.db")) == found


def test_a_run_that_was_stopped_and_resumed_has_the_moments_of_one_that_was_not(tmp_path: Path) -> None:
    whole = told(tmp_path / "a.db", survive(tmp_path / "a.db"))
    assert any(one[2] > 60 for one in whole)  # type: ignore[operator]
    spec = load_adapter_spec("crafter", HOST)
    plan = RunPlan("crafter", plan_seats(spec, agent="crafter-survivor", host=HOST), 3, STEPS, {}).for_game(spec)
    controls, seen = Controls(), [0]

    def count(_: object) -> None:
        seen[0] += 1
        if seen[0] >= 60:
            controls.stop()

    with open_store(str(tmp_path / "b.db")) as store:
        with start(plan, HOST, store, controls=controls, observers=[count]) as session:
            run = str(asyncio.run(session.play()).run)
        with resume(run, HOST, store) as session:
            asyncio.run(session.play())
    assert told(tmp_path / "b.db", run) == whole


def test_moments_are_committed_with_their_event_or_not_at_all_and_go_with_their_run(tmp_path: Path) -> None:
    one = NewMoment("hit", 25.0, "seat", {"en": ": ow", "ru": ": ой"})
    with Database.open(tmp_path / "wsap.db") as database:
        repository = Repository(database)
        run = repository.create_run(NewRun(game="crafter", agent="random")).id
        with LogWriter(database, wall_clock=lambda: 100.0) as log:
            log.append(run, "step", "{}", seat="ada", step=4, moments=(one, one), agent="a-1")
            log.flush()
            found = repository.moments_of(run, limit=9)
            assert [(m.seq, m.number, m.seat, m.agent, m.step, m.time, m.told("ru")) for m in found] == [
                (0, 0, "ada", "a-1", 5, 100.0, ": ой"),
                (0, 1, "ada", "a-1", 5, 100.0, ": ой"),
            ]
            assert found == repository.moments_between(99.0, 100.0, limit=9)
            assert repository.moments_between(100.0, 200.0, limit=9) == []
            assert found[1:] == repository.moments_between(99.0, 100.0, limit=1)  # the newest
        # A group that can't be committed leaves nothing behind: its second event has the number of its first.
        sink = open_sink(database)
        items = [Item(run, seq, "step", "ada", 0, seq, 100.0, "json", b"{}", moments=(one,)) for seq in (1, 1)]
        with pytest.raises(sqlite3.IntegrityError):
            sink.commit(make_group(items[:2], BodyEncoder()))
        sink.close()
        assert repository.count_events(run) == 1
        assert len(repository.moments_of(run, limit=9)) == 2
        repository.delete_run(run)
        with database.read() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM moment").scalar() == 0

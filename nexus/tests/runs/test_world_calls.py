"""A world's calls to its models are part of its run: recorded, counted, and never bought twice."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asking_world import A_TICK, Teller, Village, village_host, village_plan
from asking_world_kill import Counting
from life_kit import nexus_at
from script_kit import run_script
from several_seats import Log

from wsap_core import Observation
from wsap_core.cli import main
from wsap_core.errors import RecordMismatchError, StorageUnavailableError, UsageError
from wsap_core.protocol.wire import dumps, encode
from wsap_core.seams.context import Context
from wsap_core.seams.model import Reply, Request
from wsap_core.seams.model_errors import BadRequestError, BudgetReachedError, ServerFailedError
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec
from wsap_llm.backends.pool import ModelPool, RequestPolicy
from wsap_llm.middleware.budgets import Budget, BudgetLimits, Budgets
from wsap_nexus.api import resume_run
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.record.replay_order import ReplayOrder
from wsap_nexus.runs.record.summary import RunSummary
from wsap_nexus.runs.record.world_calls import Recorded, WorldJournal
from wsap_nexus.runs.session import replies_of, resume, start
from wsap_nexus.runs.store import open_database, open_store
from wsap_nexus.runs.views.restoring import Runs
from wsap_nexus.services import StoreRunner
from wsap_nexus.store.entities import EntryRequest, Policy, WorldRecord
from wsap_nexus.store.records import EventRecord
from wsap_nexus.store.repository import Repository
from wsap_nexus.tasks import TURNS
from wsap_nexus.worlds.placement import Placement
from wsap_nexus.worlds.port import LocalWorld
from wsap_nexus.worlds.remote.serve_world import world_app
from wsap_nexus.worlds.workers.pool import WorkerPool


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


def recorded(
    plan: RunPlan | None,
    teller: Teller,
    database: str,
    *,
    stop: int | None = None,
    saved: bool = True,
    limit: int | None = None,
) -> RunSummary:
    """Play a recorded run, or go on with the last one, and stop it after so many ticks; no call is tried twice."""
    controls, taken = Controls(), []
    host = village_host(teller, saved=saved)
    models = ModelPool(host, policy=RequestPolicy(attempts=1), budgets=[Budget("run", calls=limit)])

    def observe(step: Any) -> None:
        taken.append(step)
        if len(taken) == stop:
            controls.stop()

    more: dict[str, Any] = {"controls": controls, "observers": [observe], "services": Services(models=models)}
    with open_store(database) as store:
        around = resume("last", host, store, **more) if plan is None else start(plan, host, store, **more)
        with around as session:
            return asyncio.run(session.play())


def replayed(teller: Teller, database: str, run: str = "last", steps: int | None = None, **changed: Any) -> RunSummary:
    """Play a recorded run again."""
    with open_store(database) as store:
        plan, past = replies_of(run, store)
        plan = replace(plan, options={**plan.options, **changed}, steps=steps or plan.steps)
        with start(plan, village_host(teller), store, past=past) as session:
            return asyncio.run(session.play())


def test_a_worlds_calls_are_recorded_and_counted(database: str) -> None:
    teller = Teller()
    summary = recorded(village_plan(5), teller, database)
    assert len(teller.requests) == 5 * A_TICK
    assert summary.world_usage.usage.calls == 5 * A_TICK
    assert summary.to_json()["usage"]["calls"] == 5 * A_TICK
    assert summary.to_json()["world"]["usage"]["cost"] == 10.0


def test_a_replay_gives_each_its_own_reply_and_asks_nobody(database: str) -> None:
    teller = Teller()
    summary = recorded(village_plan(5), teller, database)
    nobody = Teller()
    again = replayed(nobody, database)
    assert again.trajectory_hash == summary.trajectory_hash
    assert again.world_usage == summary.world_usage
    assert not nobody.requests
    assert not nobody.opened
    assert replayed(nobody, database).trajectory_hash == summary.trajectory_hash  # of a replay, too


@pytest.mark.parametrize("saved", [True, False])
def test_a_resumed_run_asks_only_what_was_not_answered(database: str, saved: bool) -> None:
    whole = recorded(village_plan(9, every=4), Teller(), f"{database}.whole")
    teller = Teller()
    recorded(village_plan(9, every=4), teller, database, stop=6, saved=saved)
    assert len(teller.requests) == 6 * A_TICK
    resumed = recorded(None, teller, database, saved=saved)
    assert len(teller.requests) == 9 * A_TICK
    assert resumed.trajectory_hash == whole.trajectory_hash
    assert resumed.world_usage == whole.world_usage


def test_a_world_that_asks_something_else_is_told_apart_when_it_is_replayed(database: str) -> None:
    recorded(village_plan(3), Teller(), database)
    with pytest.raises(RecordMismatchError, match=r"request 1/intent/anna/0 to its model differs"):
        replayed(Teller(), database, model="teller/it", keyed=True, words="Who are you?")


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_between_paid_calls_nothing_that_was_committed_is_asked_again(tmp_path: Path, kills: int) -> None:
    ticks, draw = 2 * kills + 2, random.Random(kills)
    committed: Counter[str] = Counter()
    before = 0
    for _ in range(kills):
        assert killed(tmp_path, ticks, draw.randint(1, 2 * A_TICK - 1), draw.choice((0, 3, 30, 100))) is None
        answered = (tmp_path / "answered").read_text().split()
        assert not committed.keys() & set(answered[before:])  # nothing of what was there before is paid again
        before, committed = len(answered), replies(str(tmp_path / "cut.db"))
        assert committed.keys() <= set(answered)
    end = killed(tmp_path, ticks, 0, 0)
    assert end is not None
    answered = (tmp_path / "answered").read_text().split()
    assert not committed.keys() & set(answered[before:])
    assert set(replies(str(tmp_path / "cut.db")).values()) == {1}
    assert len(replies(str(tmp_path / "cut.db"))) == ticks * A_TICK == int(end[1])
    assert len(answered) - ticks * A_TICK <= int(end[2])  # what was paid twice is counted
    whole = recorded(village_plan(ticks, every=5), Counting(str(tmp_path / "whole"), 0, 0), str(tmp_path / "whole.db"))
    assert end[0] == whole.trajectory_hash


def killed(folder: Path, ticks: int, last: int, turns: int) -> list[str] | None:
    """Go on with a run in a process that dies after so many answers; return what it printed if it came to the end."""
    words = [str(folder / "cut.db"), str(folder / "answered"), str(ticks), str(last), str(turns)]
    done = run_script(Path(__file__).parents[1] / "chaos/asking_world_kill.py", *words)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.stdout.split() if done.returncode == 0 else None


def replies(database: str) -> Counter[str]:
    """Return the keys of the replies in the log, and how often each is there."""
    with open_database(database, read_only=True) as opened:
        repository = Repository(opened)
        (run,) = repository.list_runs(games=["village"])
        calls = repository.read_events(run.id, kinds=("call",))
        return Counter(event.data["key"] for event in calls)


def test_a_call_that_failed_is_part_of_the_run(database: str) -> None:
    """The second attempt stands beside the first, also when the run is gone on with or played again."""

    def answer(request: Request, number: int) -> str | Exception:
        return ServerFailedError("down") if request.key.endswith("boris/0") else f"#{number}"

    teller = Teller(answer)
    recorded(village_plan(4), teller, database, stop=2)
    resumed = recorded(None, teller, database)
    assert len(teller.requests) == 4 * (A_TICK + 1)
    assert resumed.world_usage.usage.calls == 4 * A_TICK
    assert replayed(Teller(), database).trajectory_hash == resumed.trajectory_hash


@pytest.mark.slow
def test_what_ended_the_run_is_asked_again(database: str) -> None:
    broken = Teller(lambda request, number: BadRequestError("no") if number == 7 else f"#{number}")
    with pytest.raises(BadRequestError, match="no"):
        recorded(village_plan(3), broken, database)
    resumed = recorded(None, broken, database)
    assert resumed.steps == 3
    assert len(replies(database)) == 3 * A_TICK
    assert len(broken.requests) <= 3 * A_TICK + 2  # that call, and what was on its way beside it
    assert replayed(Teller(), database).trajectory_hash == resumed.trajectory_hash


def test_a_world_that_lives_has_its_replies_again_also_after_it_was_rewound(database: str) -> None:
    async def lived(teller: Teller) -> RunSummary:
        host = village_host(teller)
        with open_store(database) as store:
            models = ModelPool(host)
            runner = StoreRunner(host, store, models)
            await runner.play("hamlet", {}, run="home", steps=6, snapshot_every=4)
            assert len(teller.requests) == 6 * A_TICK
            await runner.rewind("home", 3)
            assert len(teller.requests) == 6 * A_TICK  # none was needed to go back
            await runner.play("hamlet", {}, run="home", steps=5)
            assert len(teller.requests) == 11 * A_TICK
            world = await Runs(host, store.repository).restored("home", 7)
            assert isinstance(world, Village)
            assert world.told[-1] == f"#{10 * A_TICK}"
            with resume("home", host, store, services=Services(models=models), controls=stopped()) as session:
                return await session.play()

    teller, nobody = Teller(), Teller()
    summary = asyncio.run(lived(teller))
    assert len(teller.requests) == 11 * A_TICK
    assert summary.world_usage.usage.calls == 11 * A_TICK
    assert replayed(nobody, database, "home").trajectory_hash == summary.trajectory_hash
    assert not nobody.requests


def stopped() -> Controls:
    controls = Controls()
    controls.finish()
    return controls


def test_a_key_is_in_no_record_of_a_failure(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLERS_KEY", "sesame-1234")
    teller = Teller(lambda request, number: ServerFailedError("sesame-1234 is not welcome here"))
    plan = replace(village_plan(1), options={"model.api_key": "env:TELLERS_KEY"})
    recorded(plan, teller, database)
    with open_database(database, read_only=True) as opened:
        repository = Repository(opened)
        events = list(repository.read_events(repository.get_run("last").id))
    assert {e.data["words"] for e in events if e.kind == "failure"} == {"(hidden) is not welcome here"}
    assert not [e for e in events if b"sesame" in e.body]
    monkeypatch.delenv("TELLERS_KEY")
    assert replayed(Teller(), database).steps == 1  # nobody is asked, so no key is needed


def test_a_limit_of_the_run_counts_the_worlds_calls(database: str) -> None:
    teller = Teller()
    with pytest.raises(BudgetReachedError, match="4 calls a run"):
        recorded(village_plan(3), teller, database, limit=4)
    with pytest.raises(BudgetReachedError, match="4 calls a run"):
        resume_run(database=database, host=village_host(teller), budgets=Budgets(run=BudgetLimits(calls=4)))
    assert len(teller.requests) == 4
    resumed = recorded(None, teller, database)
    assert len(teller.requests) == 3 * A_TICK
    assert resumed.world_usage.usage.calls == 3 * A_TICK


def test_a_resumed_world_that_asks_something_else_in_a_tick_that_is_over_has_the_recorded_reply(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorded step tells whether it is still the same world; a new version may put its questions otherwise."""
    teller = Teller()
    recorded(village_plan(5), teller, database, stop=2, saved=False)
    monkeypatch.setattr(Village, "question", "Who are you?")
    assert recorded(None, teller, database, saved=False).steps == 5
    keys = [request.key for request in teller.requests]
    assert len(keys) == len(set(keys)) == 5 * A_TICK


def test_a_resumed_world_that_comes_to_something_else_is_refused(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    teller = Teller()
    recorded(village_plan(5), teller, database, stop=2, saved=False)
    monkeypatch.setattr(Village, "observe", lambda self: Observation({"told": "nothing"}, step=self.tick))
    with pytest.raises(RecordMismatchError, match="diverged from the recording at step 1"):
        recorded(None, teller, database, saved=False)
    assert len(teller.requests) == 2 * A_TICK


# --- what the journal reads ---------------------------------------------------------------


def event(seq: int, kind: str, seat: str | None = None, **body: Any) -> EventRecord:
    return EventRecord(
        run_id="run", seq=seq, kind=kind, seat=seat, episode=0, step=None, time=0.0, body=dumps(body).encode(),
        is_text=True,
    )  # fmt: skip


def tick(seq: int, number: int) -> EventRecord:
    return replace(event(seq, "tick", "world"), step=number)


def call(seq: int, key: str, text: str, request: str = "r") -> EventRecord:
    return event(seq, "call", key=key, request=request, reply=encode(Reply(text)))


def journal(*events: EventRecord, offline: bool = False, strict: bool = False) -> WorldJournal:
    """Return the journal of a world that lives."""
    return WorldJournal(Recorder(None, None), events, offline=offline, strict=strict, lives=True)


def text(answer: object) -> str:
    assert isinstance(answer, Recorded)
    assert isinstance(answer.answer, Reply)
    return answer.answer.text


def test_in_a_tick_that_is_not_over_another_request_is_asked() -> None:
    kept = journal(call(0, "1/a", "one"), tick(1, 1), call(2, "2/a", "two"))
    assert kept.find("2/a", "other") is None
    assert text(kept.find("2/a", "r")) == "two"
    assert text(kept.find("2/a", "r")) == "two"  # as often as it is asked


def test_in_a_tick_that_is_over_a_request_has_the_reply_of_its_key_whatever_it_says() -> None:
    events = [call(0, "1/a", "one"), tick(1, 1), call(2, "2/a", "two")]
    assert text(journal(*events).find("1/a", "other")) == "one"
    assert text(journal(*events, offline=True).find("1/a", "other")) == "one"
    with pytest.raises(RecordMismatchError, match="request 1/a to its model differs"):
        journal(*events, offline=True, strict=True).find("1/a", "other")


def test_a_step_of_a_seat_settles_no_call_of_a_tick_that_is_not_over() -> None:
    kept = journal(call(0, "1/a", "one"), event(1, "step", "ada"))
    assert kept.find("1/a", "other") is None
    games = WorldJournal(Recorder(None, None), [call(0, "1/a", "one"), event(1, "step", "ada")])
    assert text(games.find("1/a", "other")) == "one"


def test_of_two_answers_to_one_request_the_tick_was_made_of_the_last() -> None:
    kept = journal(call(0, "1/a", "one"), call(1, "1/a", "two"), call(2, "1/a", "three", "s"), tick(3, 1))
    assert text(kept.find("1/a", "r")) == "two"
    assert text(kept.find("1/a", "s")) == "three"
    assert text(kept.find("1/a", "other")) == "three"


def test_a_recorded_answer_is_given_again_after_what_the_world_was_told_before_it_and_no_later() -> None:
    kept = journal(call(4, "1/a", "one"), call(6, "1/b", "two"), tick(9, 1))
    kept.order = order = ReplayOrder([(3, 0, "ada"), (5, 0, "bob"), (8, 0, "bob")])
    given: list[str] = []

    async def give(key: str) -> None:
        found = kept.find(key, "r")
        assert found is not None
        await kept.is_due(found)
        given.append(key)

    async def turns() -> list[str]:
        for _ in range(TURNS):
            await asyncio.sleep(0)
        return given

    async def test() -> None:
        giving = [asyncio.create_task(give(key)) for key in ("1/b", "1/a")]
        assert await turns() == []
        order.passed((3, 0, "ada"))
        assert await turns() == ["1/a"]
        order.passed((5, 0, "bob"))
        assert await turns() == ["1/a", "1/b"]
        await asyncio.gather(*giving)

    asyncio.run(test())


def test_when_play_stops_in_the_middle_of_a_replay_no_answer_is_withheld() -> None:
    kept = journal(call(4, "1/a", "one"), tick(9, 1))
    kept.order = ReplayOrder([(3, 0, "ada")])

    async def test() -> None:
        found = kept.find("1/a", "r")
        assert found is not None
        giving = asyncio.create_task(kept.is_due(found))
        await asyncio.sleep(0)
        assert kept.order is not None
        kept.order.stop()
        await asyncio.wait_for(giving, 60)

    asyncio.run(test())


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("removed", [True, False])
def test_a_removal_between_an_answer_and_its_way_to_the_world_comes_first_in_each_replay(
    given: bool, removed: bool
) -> None:
    """`given`: before the tick is over; otherwise the tick began again, and did without the answer."""

    class Slowly(Log):
        """Commits when it may."""

        may = asyncio.Event()

        async def flushed(self) -> None:
            await self.may.wait()

    log = Slowly()
    recorder = Recorder(log, "run")  # type: ignore[arg-type]
    kept = WorldJournal(recorder, lives=True)
    kept.order = ReplayOrder()

    async def test() -> None:
        replying = asyncio.create_task(kept.reply("1/a", "r", "m", "", Reply("one")))
        await asyncio.sleep(0)
        if removed:
            recorder.left("ada", 0, 0)
        log.may.set()
        await replying
        for _ in range(2 * given):
            kept.gave("1/a", "r")
        kept.ends()
        recorder.tick(0, 1, "{}")

    asyncio.run(test())
    assert [e.kind for e in log.events] == ["call", *["left", "given"] * removed, "tick"]
    found = journal(*log.events).find("1/a", "r")
    assert found is not None
    assert found.given == 2 * removed


def test_what_was_answered_in_this_process_is_given_again_until_its_tick_is_long_over() -> None:
    kept = journal()

    async def test() -> None:
        await kept.reply("1/a", "r", "m", "", Reply("one"))
        assert text(kept.find("1/a", "r")) == "one"
        assert kept.find("1/a", "other") is None
        kept.passed(1)
        kept.passed(2)
        assert text(kept.find("1/a", "r")) == "one"  # its story may still be told
        kept.passed(3)
        assert kept.find("1/a", "r") is None

    asyncio.run(test())


def test_after_a_rewinding_the_same_keys_have_the_replies_of_then() -> None:
    events = [
        call(0, "1/a", "first"),
        event(1, "tick", "world"),
        call(2, "1/late", "told after its tick"),
        call(3, "2/a", "never finished"),
        event(4, "rewound", "world", to=0),
        call(5, "1/a", "second"),
        event(6, "tick", "world"),
        call(7, "2/a", "later"),
    ]
    again = journal(*events, offline=True)
    assert text(again.find("1/a", "r")) == "first"
    assert text(again.find("1/late", "r")) == "told after its tick"
    with pytest.raises(RecordMismatchError, match="no reply to the world's request 1/b"):
        again.find("1/b", "r")
    again.rewind()
    assert text(again.find("1/a", "r")) == "second"
    assert text(again.find("2/a", "r")) == "later"


def test_a_failure_that_ended_the_run_is_forgotten_and_one_that_was_lived_with_is_not() -> None:
    failed = event(0, "failure", key="1/a", request="r", failed="ServerFailedError", words="down")
    ended = event(1, "run", what="stopped", error="ServerFailedError: down")
    assert journal(failed, ended).find("1/a", "r") is None
    assert journal(failed).find("1/a", "r") is None  # the tick is made anew
    game = WorldJournal(Recorder(None, None), [failed, event(1, "step", "seat-1"), ended])
    for kept in (game, journal(failed, tick(1, 1), ended)):
        found = kept.find("1/a", "r")
        assert found is not None
        assert isinstance(found.answer, ServerFailedError)


@pytest.mark.parametrize("lives", [True, False])
def test_a_record_that_could_not_be_read_on_is_never_taken_for_its_end(lives: bool) -> None:
    # Else the world would ask its model again for what is recorded, and go another way than before.
    def record() -> Iterator[EventRecord]:
        yield call(0, "1/a", "one")
        yield tick(1, 1) if lives else event(1, "step", "ada")
        raise StorageUnavailableError("The server is away.")

    kept = WorldJournal(Recorder(None, None), record(), lives=lives)
    assert text(kept.find("1/a", "r")) == "one"
    for _ in range(2):
        with pytest.raises(StorageUnavailableError, match="away"):
            kept.find("2/a", "r")
        with pytest.raises(StorageUnavailableError, match="away"):
            kept.abilities("script/it")


# --- where it may be ----------------------------------------------------------------------


SPEC = AdapterSpec("village", "A village.", "asking_world:Village", title="The village", asks_models=True)


def test_a_world_that_asks_models_stays_where_they_are() -> None:
    record = WorldRecord("w", SPEC.name, None, 0, {}, "")
    home = Context(services=Services(models=ModelPool(village_host(Teller()))))
    placement = Placement(WorkerPool(1), lambda: home, lambda game, world, error: None)
    assert isinstance(placement.make(SPEC, record), LocalWorld)
    with pytest.raises(UsageError, match="The village calls language models itself, so it can't be served separately"):
        world_app(SPEC)


@pytest.mark.parametrize("workers", [0, 1])
def test_in_the_nexus_a_worlds_calls_are_in_the_run_that_is_played_there(tmp_path: Path, workers: int) -> None:
    teller, ticks = Teller(), 6
    host = village_host(teller)
    policies = {"ida": {"nexus": Policy("external"), "village": Policy("random")}}
    around: dict[str, Any] = {"host": host, "games": ("village",), "workers": workers}

    async def begin() -> None:
        async with nexus_at(tmp_path, policies, **around) as place:
            reached = asyncio.Event()
            place.nexus.on_step(lambda stay, step: reached.set() if step.step == 3 else None)
            await place.nexus.enter("ida", "village", EntryRequest(steps=ticks))
            await reached.wait()

    async def go_on() -> None:
        async with nexus_at(tmp_path, {}, **around) as place:
            await place.until_events("left")

    asyncio.run(begin())
    database = str(tmp_path / "nexus.db")
    before, asked = replies(database), len(teller.requests)
    asyncio.run(go_on())
    assert len(before) >= 3 * A_TICK
    assert not before.keys() & {request.key for request in teller.requests[asked:]}
    assert set(replies(database).values()) == {1}
    assert len(replies(database)) == ticks * A_TICK


@pytest.mark.slow
def test_a_world_is_told_its_model_by_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path))
    village = f"{Path(__file__).parents[1] / 'kit/asking_world.py'}:Village"
    model = ("--option", "model=scripted/it", "--option", "model.reply=The wind turns.")

    def typed(*words: str) -> tuple[int, str, str]:
        code = main(words)
        out, err = capsys.readouterr()
        return code, out, err

    code, out, _ = typed("play", village, *model, "--steps", "3", "--limit", f"calls={3 * A_TICK}", "--no-watch")
    assert code == 0
    assert "world: 12 calls, " in out
    code, out, _ = typed("play", "--replay", "last", "--json")
    assert json.loads(out)["world"]["usage"]["calls"] == 3 * A_TICK
    code, out, _ = typed("replay", "last", "--calls", "--from", "5", "--to", "5")
    assert out.startswith("call 5, world 2/intent/anna/0: ")
    assert "The wind turns." in out
    code, _, err = typed("play", village, *model, "--steps", "3", "--limit", "calls=5")
    assert code == 9
    assert "limit of 5 calls a run" in err
    code, out, _ = typed("runs", "--json")
    assert A_TICK <= json.loads(out)[0]["world"]["usage"]["calls"] <= 5
    code, _, err = typed("play", village, *model, "--option", "model.api_key=sesame-1234")
    assert code == 2
    assert "--option model.api_key=env:NAME" in err
    hamlet = f"{Path(__file__).parents[1] / 'kit/asking_world.py'}:Hamlet"
    code, _, err = typed("play", hamlet, "--model", "scripted/it", "--steps", "1")
    assert code == 2
    assert "--model has no effect in a run without seats" in err
    code, _, err = typed("play", village, "--option", "model=nonsense/x")
    assert "no backend called 'nonsense'" in err

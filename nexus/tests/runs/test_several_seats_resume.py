"""Runs of several seats, cut after every single event of their log and gone on with.

Whatever is in the log has happened: what a seat chose is not chosen anew, however it came about,
what it saw it sees again, and who was taken out is taken out again.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from living_worlds import MEADOW, Gardener, Meadow
from several_seats import LIVES, SEEN, WAKE, Log, agent, play

from wsap_core import (
    Action,
    ActionDef,
    ActionResult,
    ActionSpace,
    AdapterSpec,
    AgentSpec,
    Context,
    Observation,
)
from wsap_core.builtin import plugin as builtin
from wsap_core.errors import RecordMismatchError
from wsap_core.protocol.wire import dumps
from wsap_matrix import plugin as matrix
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.record.replay_order import ReplayOrder

Choose = Callable[[Context, int, Observation], str]
GAMES = {spec.name: spec for part in (builtin, matrix) for spec in part.wsap_adapters()}
MATRIX = [GAMES["matrix"], GAMES["matrix-turns"], GAMES["matrix-free"]]


@pytest.fixture(autouse=True)
def own_lives() -> None:
    """Have what is chosen by lot depend on nothing that was played before this test."""
    LIVES.clear()


def of(*names: str, steps: int | None = None, **options: object) -> RunPlan:
    return RunPlan(
        "game", tuple(SeatPlan(n, "agent") for n in names), seed=3, steps=steps, options=options, snapshot_every=4
    )


def matrix_plan(steps: int | None = None) -> RunPlan:
    return of("row", "column", steps=steps, rounds=4)


def by_chance(context: Context, asked: int, observation: Observation) -> str:
    return context.random.choice(["cooperate", "defect"])


def never_the_same() -> Choose:
    """Return a way to choose that no two askings agree on."""
    count = itertools.count()

    def choose(context: Context, asked: int, observation: Observation) -> str:
        return "cooperate" if next(count) * 7 % 5 < 2 else "defect"

    return choose


def choices(log: Log, seat: str) -> list[str]:
    return [json.loads(e.body)["action"]["name"] for e in log.of("chosen", seat)]


def cuts(log: Log) -> range:
    """Give every length that a kill can leave of a log, from the one after which the run has begun."""
    return range(1, len(log.events) + 1)


def check_prefix(whole: Log, resumed: Log, length: int, seats: tuple[str, ...]) -> None:
    """Make sure that everything a cut log says was done, was done, once, and is in one piece."""
    assert resumed.events[:length] == whole.events[:length]
    for seat in seats:
        done, chosen = resumed.actions(seat), choices(resumed, seat)
        assert done == chosen, f"cut at {length}: {seat} did something else than it had chosen"
        numbers = [e.step for e in resumed.of("step", seat)]
        assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize("spec", MATRIX, ids=lambda s: s.name)
def test_agents_that_decide_the_same_again_end_the_same_wherever_the_run_was_cut(spec: AdapterSpec) -> None:
    agents = {"row": agent("a", by_chance), "column": agent("b", by_chance)}
    whole = Log()
    hashes = play(whole, matrix_plan(), spec, agents)
    assert hashes == whole.hashes()
    for length in cuts(whole):
        log = whole.cut(length)
        again = play(log, matrix_plan(), spec, agents)
        assert again == log.hashes(), length
        check_prefix(whole, log, length, ("row", "column"))
        if spec.timing != "free":  # where nobody waits for the other, chance decides what comes after the cut
            assert again == hashes, length


@pytest.mark.parametrize("spec", MATRIX, ids=lambda s: s.name)
@pytest.mark.parametrize("interactive", [False, True], ids=["fickle", "person"])
def test_what_was_chosen_is_not_chosen_anew_by_one_who_would_choose_otherwise(
    spec: AdapterSpec, interactive: bool
) -> None:
    choose = never_the_same()
    agents = {"row": agent("a", by_chance), "column": agent("b", choose, interactive=interactive)}
    whole = Log()
    play(whole, matrix_plan(), spec, agents)
    for length in cuts(whole):
        log = whole.cut(length)
        before = len(choices(log, "column"))
        assert play(log, matrix_plan(), spec, agents) == log.hashes()
        check_prefix(whole, log, length, ("row", "column"))
        assert len(log.actions("row")) == len(log.actions("column")) == 4
        asked = len(SEEN["column"])
        assert asked == (4 - before if interactive else 4), length


@pytest.mark.parametrize("spec", MATRIX[:2], ids=lambda s: s.name)
@pytest.mark.slow
def test_a_default_that_was_forced_stays_even_if_the_agent_would_answer_now(spec: AdapterSpec) -> None:
    spec = replace(spec, deadline=0.01)
    mood = {"silent": True}

    def choose(context: Context, asked: int, observation: Observation) -> str:
        return "never" if mood["silent"] and asked % 2 else "defect"

    agents = {"row": agent("a", by_chance), "column": agent("b", choose)}
    whole = Log()
    play(whole, matrix_plan(), spec, agents)
    assert whole.actions("column") == ["cooperate", "defect"] * 2  # the default, and its own
    for mood["silent"] in (True, False):
        for length in cuts(whole):
            log = whole.cut(length)
            forced = [json.loads(e.body)["decision"] is not None for e in log.of("chosen", "column")]
            assert play(log, matrix_plan(), spec, agents) == log.hashes()
            check_prefix(whole, log, length, ("row", "column"))
            told = [(json.loads(e.body)["decision"] or {}).get("forced", False) for e in log.of("step", "column")]
            assert told[: len(forced)] == forced, length


@pytest.mark.parametrize("spec", MATRIX, ids=lambda s: s.name)
def test_one_who_was_taken_out_midway_is_not_there_when_the_run_is_gone_on_with(spec: AdapterSpec) -> None:
    agents = {"row": agent("a", lambda *_: "defect"), "column": agent("b", by_chance)}

    def kick(step: StepTaken, controls: Mapping[str, Controls]) -> None:
        if step.seat == "row" and step.step == 2:
            controls["row"].stop()

    whole = Log()
    hashes = play(whole, matrix_plan(), spec, agents, watch=kick)
    assert whole.actions("row") == ["defect"] * 2
    (left,) = whole.of("left")
    assert (left.seat, left.step) == ("row", 2)
    for length in cuts(whole):
        log = whole.cut(length)
        again = play(log, matrix_plan(), spec, agents)  # nobody asks it to leave this time
        assert again == log.hashes()
        check_prefix(whole, log, length, ("row", "column"))
        if length > left.seq:
            assert len(log.of("left")) == 1
            assert again == hashes
        else:
            assert log.actions("row") == ["defect"] * 4


@pytest.mark.parametrize(
    ("spec", "taken"),
    [
        (GAMES["matrix"], 8),  # row looks at itself before each of its four choices
        (GAMES["matrix-turns"], 8),
        (replace(GAMES["matrix"], persistent=True), 4),  # such a world may have no end, so row leaves at its limit
    ],
    ids=["together", "in turn", "without end"],
)
def test_a_step_limit_lets_seats_that_wait_for_each_other_play_the_episode_to_its_end(
    spec: AdapterSpec, taken: int
) -> None:
    agents = {"row": agent("a", lambda c, n, o: "inspect_self" if n % 2 else "defect"), "column": agent("b", by_chance)}
    whole = Log()
    hashes = play(whole, matrix_plan(steps=4), spec, agents)
    assert (len(whole.actions("row")), len(whole.actions("column"))) == (taken, 4)
    assert bool(whole.of("left")) == (taken == 4)
    for length in cuts(whole):
        log = whole.cut(length)
        assert play(log, matrix_plan(steps=4), spec, agents) == hashes
        check_prefix(whole, log, length, ("row", "column"))


# --- results that come rounds later -----------------------------------------------------------------------


NAMES = ("ann", "bob", "cid", "dora")


def looks_and_goes(context: Context, asked: int, observation: Observation) -> str:
    """Choose by chance and by what is seen, with a look around now and then."""
    number = context.random.randrange(10) + observation.status["peek"]
    return "peek" if number % 3 == 0 else "right" if number % 2 else "left"


def as_seen() -> dict[str, list[str]]:
    return {name: list(SEEN[name]) for name in NAMES}


def test_a_choice_may_be_without_its_result_for_long_while_others_go_on() -> None:
    agents = {n: agent(n, looks_and_goes) for n in NAMES}
    whole = Log()
    play(whole, of(*NAMES), WAKE, agents)
    chosen, steps = ([(e.seat, e.step, e.seq) for e in whole.of(kind)] for kind in ("chosen", "step"))
    resolved = {(seat, step): seq for seat, step, seq in steps}
    gaps = [sum(seq < s < resolved[seat, step] for _, _, s in steps) for seat, step, seq in chosen]
    assert max(gaps) > 5  # the world is what it is meant to be
    assert any(name == "peek" for seat in NAMES for name in whole.actions(seat))


@pytest.mark.parametrize("fickle", [False, True])
@pytest.mark.slow
def test_a_world_that_holds_results_back_goes_on_from_any_point(fickle: bool) -> None:
    def any_way(context: Context, asked: int, observation: Observation) -> str:
        return ("left", "peek", "right", "right")[next(count) * 7 % 4]

    count = itertools.count()
    agents: dict[str, AgentSpec] = {
        n: agent(n, any_way if fickle and n in "bob dora" else looks_and_goes) for n in NAMES
    }
    whole = Log()
    play(whole, of(*NAMES), WAKE, agents)
    seen = as_seen()
    for length in cuts(whole):
        log = whole.cut(length)
        decided = {name: len(choices(log, name)) for name in NAMES}
        assert play(log, of(*NAMES), WAKE, agents) == log.hashes(), length
        check_prefix(whole, log, length, NAMES)
        for name in NAMES:  # what was decided before was decided along again, upon the same sights
            assert SEEN[name][: decided[name]] == seen[name][: decided[name]], (length, name)


def test_a_run_that_is_cut_again_and_again_keeps_all_that_it_had() -> None:
    agents = {n: agent(n, looks_and_goes) for n in NAMES}
    log = Log()
    play(log, of(*NAMES), WAKE, agents)
    for part in (2, 3, 5, 7, 11, 13):
        length = max(2, len(log.events) * part // 14)
        before, log = log, log.cut(length)
        assert play(log, of(*NAMES), WAKE, agents) == log.hashes(), part
        check_prefix(before, log, length, NAMES)


@pytest.mark.slow
def test_a_seat_that_is_taken_out_while_others_sleep_is_out_again() -> None:
    agents = {n: agent(n, looks_and_goes) for n in NAMES}

    def kick(step: StepTaken, controls: Mapping[str, Controls]) -> None:
        if step.seat == "cid":
            controls["cid"].stop()

    whole = Log()
    hashes = play(whole, of(*NAMES), WAKE, agents, watch=kick)
    (left,) = whole.of("left")
    for length in cuts(whole):
        log = whole.cut(length)
        assert play(log, of(*NAMES), WAKE, agents) == log.hashes(), length
        check_prefix(whole, log, length, NAMES)
        assert len(log.of("left")) == (length > left.seq)
    assert hashes == whole.hashes()


class Watched(Gardener):
    """A gardener who sees something else at each look, though not in the results."""

    looks, resolving = 0, False

    def observe(self) -> Observation:
        self.looks += 1
        return super().observe() if self.resolving else replace(super().observe(), status={"looks": self.looks})

    def resolve(self, done: bool) -> None:
        self.resolving = True
        super().resolve(done)
        self.resolving = False


class Park(Meadow):
    """A meadow of such gardeners."""

    def seat(self, agent_id: str) -> Gardener:
        return self._gardeners.setdefault(agent_id, Watched(self))


PARK = replace(MEADOW, name="park", factory=Park)


def gardening() -> tuple[RunPlan, dict[str, AgentSpec]]:
    """Return four ticks of the park with two gardeners."""
    plan = replace(of("ann", "bob", steps=4), lives=True)
    return plan, {name: agent(name, lambda c, *_: c.random.choice(("plant", "rest"))) for name in ("ann", "bob")}


def several(spec: AdapterSpec) -> tuple[RunPlan, dict[str, AgentSpec]]:
    if spec is PARK:
        return gardening()
    if spec is WAKE:
        return of(*NAMES), {name: agent(name, looks_and_goes) for name in NAMES}
    return matrix_plan(), {name: agent(name, by_chance) for name in ("row", "column")}


@pytest.mark.parametrize("spec", [*MATRIX, WAKE, PARK], ids=lambda s: s.name)
def test_one_that_is_taken_out_while_its_choices_are_repeated_sees_and_chooses_nothing_after_it(
    spec: AdapterSpec,
) -> None:
    plan, agents = several(spec)
    out, *_ = agents
    whole = Log()
    play(whole, plan, spec, agents)
    for length in cuts(whole):
        log = whole.cut(length)
        hashes = play(log, plan, spec, agents, stopped=[out])
        assert hashes.items() >= log.hashes().items(), length
        check_prefix(whole, log, length, tuple(agents))
        if left := log.of("left", out):  # else its play was over before
            later = {event.kind for event in log.events if event.seat == out and event.seq > left[0].seq}
            assert later <= {"step"}, length  # the result of its last choice
            if spec is not WAKE:  # there it depends on who is faster what comes later
                assert play(log.cut(left[0].seq + 1), plan, spec, agents) == hashes, length


def test_a_look_that_is_recorded_after_its_seat_was_taken_out_is_not_waited_for() -> None:
    """Such looks were recorded once, and the runs with them stood still for ever."""
    plan, agents = gardening()
    log = Log()
    play(log, plan, PARK, agents, stopped=["ann"])
    (left,) = log.of("left", "ann")
    looked = log.cut(left.seq + 1)
    looked.append("", "observation", dumps(Observation({"looks": 9}, step=0)), seat="ann", episode=0, step=0)
    for event in log.events[left.seq + 1 :]:
        looked.append("", event.kind, event.body.decode(), seat=event.seat, episode=event.episode, step=event.step)
    assert looked.of("chosen", "bob")[-1].seq > left.seq + 1
    assert play(looked, plan, PARK, agents).items() >= log.hashes().items()


# --- older and damaged recordings -------------------------------------------------------------------------


@pytest.mark.parametrize("spec", MATRIX[:2], ids=lambda s: s.name)
def test_a_run_recorded_without_choices_is_gone_on_with(spec: AdapterSpec) -> None:
    agents = {"row": agent("a", by_chance), "column": agent("b", by_chance)}
    whole = Log()
    hashes = play(whole, matrix_plan(), spec, agents)
    old = [e for e in whole.events if e.kind not in ("chosen", "left")]
    for length in range(1, len(old) + 1):
        log = Log()
        for e in old[:length]:
            log.append(e.run_id, e.kind, e.body, seat=e.seat, episode=e.episode, step=e.step)
        assert play(log, matrix_plan(), spec, agents) == hashes, length


def test_a_world_that_goes_another_way_is_noticed() -> None:
    agents = {"row": agent("a", by_chance), "column": agent("b", by_chance)}
    log = Log()
    play(log, matrix_plan(), GAMES["matrix"], agents)
    with pytest.raises(RecordMismatchError, match="diverged from the recording at step 1"):
        play(log, replace(matrix_plan(), options={"rounds": 5}), GAMES["matrix"], agents)


# --- a game that has changed since ------------------------------------------------------------------------


def recorded(spec: AdapterSpec) -> Log:
    log = Log()
    play(log, matrix_plan(), spec, {"row": agent("a", by_chance), "column": agent("b", by_chance)})
    return log


def test_a_game_that_no_longer_gives_a_recorded_seat_its_turn_is_refused_in_a_sentence() -> None:
    """Both had looked before either chose; now the column sees the row's choice before it looks."""
    log = recorded(GAMES["matrix"])
    agents = {"row": agent("a", by_chance), "column": agent("b", by_chance)}
    for length in cuts(log):
        before = log.cut(length)
        if not any(e.kind == "chosen" and e.seat == "row" for e in before.events):
            continue
        with pytest.raises(RecordMismatchError) as caught:
            play(before, matrix_plan(), GAMES["matrix-turns"], agents, clock=Standing())
        if "does not reach" in str(caught.value):
            assert str(caught.value) == (
                "'matrix-turns' does not reach step 1 of seat 'column', which is recorded and which all seats wait "
                "for, so the run can't be resumed. Has the game changed?"
            )
            break
    else:
        raise AssertionError("the games wait for the same")
    assert (caught.value.code, caught.value.exit_code) == ("RECORD_MISMATCH", 4)


class Standing:
    """A clock that stands still, unless it is told to ring."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.set: list[asyncio.Future[None]] = []

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        self.set.append(asyncio.get_running_loop().create_future())
        self.rung()
        await self.set[-1]

    def rung(self) -> None:
        """Be told that somebody waits."""


class Ringing(Standing):
    """A clock on which all time passes at once."""

    def rung(self) -> None:
        self.set[-1].set_result(None)


class Doors:
    """Each of two does one thing; `b` may look when `a` has done its thing, or only when `a` has done another.

    What it waits with is its own affair: it uses no `Barrier`.
    """

    game_description, action_space = "Doors.", ActionSpace((ActionDef("go", "Go"),))

    def __init__(self, context: Context) -> None:
        self.wanted = int(context.config.get("wanted", 1))
        self.slow = bool(context.config.get("slow", False))
        self.done: list[str] = []
        self.open = asyncio.Event()

    def reset(self, seed: int | None = None) -> Observation:
        return Observation()

    def observe(self) -> Observation:
        raise AssertionError("ask a seat")

    def act(self, action: Action) -> ActionResult:
        raise AssertionError("ask a seat")

    def seat(self, agent_id: str) -> Door:
        return Door(self, agent_id)


class Door:
    """One of the two."""

    game_description, action_space = Doors.game_description, Doors.action_space

    def __init__(self, world: Doors, seat: str) -> None:
        self._world, self._seat = world, seat

    async def observe(self) -> Observation:
        world = self._world
        if self._seat == "b":
            await world.open.wait()
        if self._seat == "b" and world.slow:
            for _ in range(1000):  # as one that is busy elsewhere
                await asyncio.sleep(0)
        return Observation(step=len(world.done))

    async def act(self, action: Action) -> ActionResult:
        self._world.done.append(self._seat)
        if len(self._world.done) >= self._world.wanted:
            self._world.open.set()
        return ActionResult(True, done=True, observation=Observation(step=len(self._world.done)))

    def reset(self) -> Observation:
        raise AssertionError("reset the world")


DOORS = AdapterSpec("doors", "Two doors.", Doors, seats=(2, 2), abilities=("seed", "multi-seat"), timing="free")


def goes(name: str) -> AgentSpec:
    return agent(name, lambda *_: "go")


def test_a_world_that_does_not_say_what_it_waits_for_is_given_minutes_of_the_clock() -> None:
    log = Log()
    agents = {"a": goes("a"), "b": goes("b")}
    play(log, of("a", "b"), DOORS, agents)
    stopped = log.cut(max(e.seq for e in log.of("chosen", "b")) + 1)
    clock = Ringing()
    changed = replace(of("a", "b"), options={"wanted": 2})
    with pytest.raises(RecordMismatchError, match="does not reach step 1 of seat 'b'"):
        play(stopped.cut(len(stopped.events)), changed, DOORS, agents, clock=clock)
    assert clock.asked[-1] == 180


def test_a_world_that_is_only_slow_is_waited_for() -> None:
    log = Log()
    agents = {"a": goes("a"), "b": goes("b")}
    hashes = play(log, of("a", "b"), DOORS, agents)
    stopped = log.cut(max(e.seq for e in log.of("chosen", "b")) + 1)
    clock = Standing()
    assert play(stopped, replace(of("a", "b"), options={"slow": True}), DOORS, agents, clock=clock) == hashes
    assert set(clock.asked) <= {180}


def test_seats_that_wait_for_one_who_is_not_there_any_more_are_at_a_standstill() -> None:
    async def wait() -> str:
        order = ReplayOrder([(3, 0, "ann"), (5, 0, "bob"), (7, 0, "cid")])
        order.deadlock.begin(["ann", "bob", "cid"])
        noticed = asyncio.create_task(order.deadlock.noticed())
        waiting = [asyncio.create_task(order.reach(mark)) for mark in ((5, 0, "bob"), (7, 0, "cid"))]
        for _ in range(100):
            await asyncio.sleep(0)
        assert not noticed.done()  # ann is busy, and may come yet
        order.deadlock.leave("ann")
        found = await noticed
        for task in waiting:
            task.cancel()
        return found

    assert asyncio.run(wait()) == "ann"


def test_one_seat_alone_records_no_choices() -> None:
    log = Log()
    play(log, replace(of("seat-1"), steps=5), GAMES["echo"], {"seat-1": agent("a", lambda *_: "say_nothing")})
    assert len(log.of("step")) == 5
    assert not log.of("chosen")

"""An agent that is called back from a game of several comes home at once, and the others play on.

The game is the prisoner's dilemma of ten rounds: a choice of "cooperate" pays (3, 3) or (0, 5), one of
"defect" (5, 0) or (1, 1); a seat that is empty cooperates, its first choice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import hub_checks
import pytest
from life_kit import Place, Script, host_with, nexus_at

from wsap_core import AdapterSpec
from wsap_core.protocol import Action, ActionResult
from wsap_core.protocol.wire import Codec
from wsap_nexus.hub.live_session import SessionStats
from wsap_nexus.hub.play.failures import force_close
from wsap_nexus.hub.play.sessions import SessionRunner
from wsap_nexus.runs.record.logged import read_step
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EXTERNAL, EntryRequest, Policy
from wsap_nexus.store.nexus_store import NexusStore

pytestmark = pytest.mark.every_database

ROUNDS = 10
GAMES = ("matrix", "echo")


def play(
    path: Path,
    scene: Callable[[Place], Any],
    *,
    agents: Sequence[str] | Mapping[str, Policy] = ("ann", "bob"),
    workers: int = 0,
    script: Script | None = None,
) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(300):
            deciders = agents if isinstance(agents, Mapping) else dict.fromkeys(agents, EXTERNAL)
            policies = {agent: {"*": policy, "nexus": EXTERNAL} for agent, policy in deciders.items()}
            # Nobody plays alone because the other one was slow to come.
            settings = {"games": GAMES, "workers": workers, "lobby_seconds": 50.0}
            async with nexus_at(path, policies, host=host_with(script=script), **settings) as place:
                await scene(place)
            assert hub_checks.problems(place.nexus.store.database, settled=True) == []

    asyncio.run(bounded())


async def sit_down(place: Place, terms: EntryRequest | None = None) -> None:
    """Have ann and bob sit down together: ann is row."""
    going = [
        asyncio.ensure_future(place.nexus.enter(agent, "matrix", terms or EntryRequest())) for agent in ("ann", "bob")
    ]
    stays = await asyncio.gather(*going)
    assert len({stay.session.run_id for stay in stays}) == 1


async def act(place: Place, agent: str, name: str) -> ActionResult:
    seat, _ = await place.nexus.live.external.observation(agent)
    return await seat.act(Action(name))


async def both(place: Place, ann: str, bob: str) -> None:
    await asyncio.gather(act(place, "ann", ann), act(place, "bob", bob))


async def play_out(place: Place, agent: str, choice: str) -> list[float]:
    """Have an agent make one choice until the game is over, and return what each paid."""
    await place.until(lambda: agent in place.nexus.live.sessions)
    leaving = place.nexus.await_exit(agent)
    paid: list[float] = []
    while True:
        result = await act(place, agent, choice)
        paid.append(result.reward)
        if result.done:
            await leaving
            return paid


def seats_of(place: Place, agent: str) -> tuple[str, str | None]:
    with place.nexus.nexus_store.look() as tx:
        found = tx.agent(agent)
    return found.place, found.session_id


def test_one_that_is_to_decide_comes_home_at_once_and_the_other_plays_on(tmp_path: Path) -> None:
    async def scene(place: Place) -> None:
        await sit_down(place)
        await both(place, "defect", "cooperate")
        waiting = asyncio.ensure_future(act(place, "bob", "defect"))
        await place.nexus.live.external.observation("ann")
        closed = await place.nexus.exit("ann")
        assert (closed.reason, closed.steps, closed.stats["reward"]) == ("kicked", 1, 5.0)
        assert seats_of(place, "ann") == ("nexus", None)
        # The round that bob waited in is over: an empty seat cooperates.
        assert (await waiting).reward == 5.0
        assert "bob" in place.nexus.live.sessions
        # Before the game is over ann is somewhere else, and stays there when it is.
        stay = await place.nexus.enter("ann", "echo", EntryRequest())
        assert await play_out(place, "bob", "defect") == [5.0] * (ROUNDS - 2)
        with place.nexus.nexus_store.look() as tx:
            bob = tx.sessions(agent_id="bob")[0]
        assert (bob.reason, bob.steps, bob.stats["reward"]) == ("finished", ROUNDS, 5.0 * (ROUNDS - 1))
        assert place.nexus.live.sessions["ann"] is stay
        assert (await act(place, "ann", "wait")).observation.step == 1

    play(tmp_path, scene)


@pytest.mark.parametrize("workers", [0, 1], ids=["here", "worker"])
@pytest.mark.slow
def test_one_that_has_chosen_and_waits_for_the_other_comes_home_at_once_and_its_choice_counts(
    tmp_path: Path, workers: int
) -> None:
    async def scene(place: Place) -> None:
        await sit_down(place)
        await both(place, "cooperate", "cooperate")
        chosen = asyncio.ensure_future(act(place, "ann", "defect"))
        run = next(iter(place.nexus.sessions.runs.values()))
        await place.until(lambda: place.nexus.store.repository.count_events(str(run.run_id), "chosen") == 3)
        closed = await place.nexus.exit("ann")
        assert (closed.reason, closed.steps, closed.stats["reward"]) == ("kicked", 2, 3.0)
        assert (await chosen).message == "You have left this world."
        assert (await act(place, "bob", "cooperate")).reward == 0.0
        assert await play_out(place, "bob", "cooperate") == [3.0] * (ROUNDS - 2)

    play(tmp_path, scene, workers=workers)


def test_one_whose_condition_comes_about_comes_home_by_it(tmp_path: Path) -> None:
    async def scene(place: Place) -> None:
        going = asyncio.ensure_future(place.nexus.enter("ann", "matrix", EntryRequest(exit_when="step >= 2")))
        await place.nexus.enter("bob", "matrix", EntryRequest())
        await going
        leaving = place.nexus.await_exit("ann")
        await both(place, "cooperate", "cooperate")
        await both(place, "cooperate", "cooperate")
        closed = await leaving
        assert (closed.reason, closed.steps) == ("condition", 2)
        assert await play_out(place, "bob", "defect") == [5.0] * (ROUNDS - 2)

    play(tmp_path, scene)


def test_one_that_leaves_by_choice_is_home_before_the_game_is_over(tmp_path: Path) -> None:
    async def scene(place: Place) -> None:
        await sit_down(place)
        leaving = place.nexus.await_exit("ann")
        await act(place, "ann", "exit_game")
        assert (await leaving).reason == "exit_game"
        assert seats_of(place, "ann") == ("nexus", None)
        assert await play_out(place, "bob", "defect") == [5.0] * ROUNDS

    play(tmp_path, scene)


def test_a_game_that_all_were_called_back_from_is_over(tmp_path: Path) -> None:
    async def scene(place: Place) -> None:
        await sit_down(place)
        await both(place, "cooperate", "defect")
        tables = list(place.nexus.sessions.tasks.values())
        assert [(await place.nexus.exit(agent)).steps for agent in ("ann", "bob")] == [1, 1]
        await asyncio.gather(*tables)
        assert place.nexus.sessions.tasks == {}
        assert place.nexus.live.ports == {}

    play(tmp_path, scene)


def test_a_game_that_was_left_goes_on_as_it_was_after_the_nexus_was_stopped_and_started(tmp_path: Path) -> None:
    async def before(place: Place) -> None:
        await sit_down(place)
        await both(place, "defect", "cooperate")
        chosen = asyncio.ensure_future(act(place, "ann", "defect"))
        run = next(iter(place.nexus.sessions.runs.values()))
        await place.until(lambda: place.nexus.store.repository.count_events(str(run.run_id), "chosen") == 3)
        await place.nexus.exit("ann")
        await chosen
        assert [(await act(place, "bob", "defect")).reward for _ in range(3)] == [1.0, 5.0, 5.0]

    async def after(place: Place) -> None:
        assert seats_of(place, "ann") == ("nexus", None)
        await place.nexus.enter("ann", "echo", EntryRequest())
        assert await play_out(place, "bob", "cooperate") == [3.0] * (ROUNDS - 4)
        assert "ann" in place.nexus.live.sessions
        with place.nexus.nexus_store.look() as tx:
            bob = tx.sessions(agent_id="bob")[0]
            (ann,) = [s for s in tx.sessions(agent_id="ann") if s.game == "matrix"]
        assert bob.stats["reward"] == 0 + 1 + 5 + 5 + 3.0 * (ROUNDS - 4)
        assert (ann.reason, ann.steps) == ("kicked", 2)
        repository = place.nexus.store.repository
        events = [e for e in repository.read_events(bob.run_id, kinds=("step",)) if e.seat == "column"]
        steps = [read_step(e.seq, e.episode, e.step or 0, e.body, Codec()) for e in events]
        assert [step.step for step in steps] == list(range(ROUNDS))

    play(tmp_path, before)
    play(tmp_path, after, agents=())


@pytest.mark.parametrize("rounds", [0, 1])
def test_one_that_is_called_back_while_its_recorded_choices_are_repeated_leaves_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, rounds: int
) -> None:
    async def before(place: Place) -> None:
        await sit_down(place)
        for _ in range(rounds):
            await both(place, "cooperate", "cooperate")
        chosen = asyncio.ensure_future(act(place, "ann", "defect"))
        run = next(iter(place.nexus.sessions.runs.values()))
        await place.until(
            lambda: place.nexus.store.repository.count_events(str(run.run_id), "chosen") == 2 * rounds + 1
        )
        chosen.cancel()

    async def after(place: Place) -> None:
        await place.until(lambda: seats_of(place, "ann") == ("nexus", None))
        with place.nexus.nexus_store.look() as tx:
            (ann,) = tx.sessions(agent_id="ann")
        assert (ann.reason, ann.steps, ann.stats["reward"]) == ("kicked", rounds + 1, 3.0 * rounds)
        # Its choice counts.
        assert await play_out(place, "bob", "cooperate") == [0.0, *[3.0] * (ROUNDS - rounds - 1)]
        with place.nexus.nexus_store.look() as tx:
            assert not tx.events(kinds=("world_crashed",))

    play(tmp_path, before)
    start = SessionRunner._start_run

    def called_back(self: SessionRunner, sessions: Mapping[str, Any], *words: Any, **more: Any) -> None:
        start(self, sessions, *words, **more)
        if len(sessions) > 1:
            self.context.live.sessions["ann"].stop("kicked")

    monkeypatch.setattr(SessionRunner, "_start_run", called_back)
    play(tmp_path, after, agents=())


@pytest.mark.parametrize("workers", [0, 1], ids=["here", "worker"])
@pytest.mark.parametrize("way", ["recalled", "exit_game", "jack_out"])
@pytest.mark.slow
def test_a_game_goes_on_without_one_that_came_with_a_goal_after_the_nexus_was_stopped_and_started(
    tmp_path: Path, way: str, workers: int
) -> None:
    """What the agent wanted is in its recorded observations, whether it is still there or not."""

    async def before(place: Place) -> None:
        await sit_down(place, EntryRequest(goals=("get rich", "be fair")))
        await both(place, "defect", "cooperate")
        await place.nexus.agent_context.words.talk("ann", "look behind you")
        if way == "recalled":
            await both(place, "cooperate", "cooperate")
            await place.nexus.exit("ann")
        else:
            leaving = place.nexus.await_exit("ann")
            await act(place, "ann", way)
            await leaving
        await act(place, "bob", "cooperate")

    async def after(place: Place) -> None:
        await place.until(lambda: "bob" in place.nexus.live.sessions)
        assert (await act(place, "bob", "cooperate")).reward == 3.0
        assert place.nexus.breaker.of("matrix").status == "available"

    async def to_the_end(place: Place) -> None:
        await play_out(place, "bob", "cooperate")
        with place.nexus.nexus_store.look() as tx:
            bob = tx.sessions(agent_id="bob")[0]
        assert (bob.reason, bob.steps) == ("finished", ROUNDS)

    play(tmp_path, before, workers=workers)
    for scene in (after, after, to_the_end):
        play(tmp_path, scene, agents=(), workers=workers)


def test_the_model_of_one_that_has_left_is_asked_nothing_when_the_game_is_gone_on_with(tmp_path: Path) -> None:
    script = Script({"decide": '{"action": "cooperate", "params": {}}'})
    model = Policy("llm", {"model": "script/it", "memory": "none"})

    async def before(place: Place) -> None:
        await sit_down(place, EntryRequest(goals=("get rich",)))
        await act(place, "bob", "cooperate")
        await place.nexus.agent_context.words.talk("ann", "look behind you")
        for _ in range(2):
            await act(place, "bob", "cooperate")
        assert (await place.nexus.exit("ann")).steps >= 3
        await act(place, "bob", "cooperate")

    async def after(place: Place) -> None:
        assert await play_out(place, "bob", "cooperate") == [3.0] * (ROUNDS - 4)

    play(tmp_path, before, agents={"ann": model, "bob": EXTERNAL}, script=script)
    asked = len(script.requests)
    assert any("look behind you" in text for text in script.asked("decide"))
    play(tmp_path, after, agents=(), script=script)
    assert [request.purpose for request in script.requests[asked:] if request.purpose == "decide"] == []


@pytest.mark.slow
def test_a_game_goes_on_after_one_was_called_back_that_nothing_played(tmp_path: Path) -> None:
    """Its removal is in no log, since no run was open: it is removed when the game is gone on with."""

    async def before(place: Place) -> None:
        await sit_down(place, EntryRequest(goals=("get rich",)))
        await both(place, "defect", "cooperate")

    async def after(place: Place) -> None:
        assert await play_out(place, "bob", "defect") == [5.0] * (ROUNDS - 1)

    play(tmp_path, before)
    with open_store(str(tmp_path / "nexus.db")) as store, NexusStore(store.database).change() as tx:
        (ann,) = tx.sessions(agent_id="ann")
        force_close(tx, ann, AdapterSpec("matrix", "", ""), stats=SessionStats(), reason="kicked")
    play(tmp_path, after, agents=())

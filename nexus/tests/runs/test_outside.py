"""One seat of a recorded run for a program outside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from wsap_core.errors import ConfigError, PluginError, UsageError, WsapError
from wsap_core.host import PluginHost
from wsap_core.protocol import Action, ActionResult
from wsap_core.seams.services import Services
from wsap_nexus import api
from wsap_nexus.doors import outside
from wsap_nexus.doors.outside import ActionPendingError, OutsideRun, OutsideRuns
from wsap_nexus.runs.session import resume

T = TypeVar("T")

MOVES = ("move_left", "move_up", "noop", "move_left", "move_down", "no_such_action", "move_right")
"""Steps in Crafter; the last but one is refused."""


@contextmanager
def games(tmp_path: Path) -> Iterator[OutsideRuns]:
    with outside.opened(str(tmp_path / "wsap.db")) as opened:
        yield opened


def within(tmp_path: Path, use: Callable[[OutsideRuns], Awaitable[T]]) -> T:
    async def main() -> T:
        with games(tmp_path) as opened:
            return await use(opened)

    return asyncio.run(main())


async def walked(run: OutsideRun, moves: tuple[str, ...] = MOVES) -> list[ActionResult]:
    await run.observation()
    return [await run.act(Action(move)) for move in moves]


def test_what_is_done_from_outside_is_recorded_as_if_an_agent_had_done_it(tmp_path: Path) -> None:
    class Walks:
        """The same steps by an agent."""

        def __init__(self) -> None:
            self.moves = iter(MOVES)

        def initialize(self, *about: object) -> None: ...

        def decide(self, observation: object) -> Action:
            return Action(next(self.moves, "noop"))

        def reflect(self, result: object) -> None: ...

        def plan(self, goals: object) -> list[str]:
            return []

    async def use(opened: OutsideRuns) -> str:
        run = opened.play("crafter", seed=7, options={"length": len(MOVES) - 1})
        results = await walked(run)
        assert [result.success for result in results[-2:]] == [False, True]
        assert results[-1].done
        assert run.over
        assert run.summary is not None
        assert (await run.observation()).step == len(MOVES) - 1, "afterwards, what was seen last"
        with pytest.raises(UsageError, match="The game is over"):
            await run.act(Action("noop"))
        return str(run.summary["trajectory_hash"])

    own = within(tmp_path, use)
    told = api.play("crafter", Walks, seed=7, options={"length": len(MOVES) - 1}, episodes=1, record=False)
    assert own == told.to_json()["trajectory_hash"]


def test_a_stopped_run_goes_on_where_it_was_in_another_process_too(tmp_path: Path) -> None:
    async def first(opened: OutsideRuns) -> tuple[str, str]:
        run = opened.play("crafter", seed=7)
        await walked(run)
        seen = (await run.observation()).to_text()
        await run.stop()
        assert run.over
        return run.run_id, seen

    async def then(opened: OutsideRuns) -> None:
        run = opened.resume(name)
        assert (await run.observation()).to_text() == seen
        assert (await run.act(Action("noop"))).observation.step == len(MOVES)
        await run.stop()
        with (
            resume(name, PluginHost.discovered(), opened.store, services=Services()) as session,
            pytest.raises(UsageError, match=r"'external' is a program outside.*wsap mcp --resume"),
        ):
            await session.play()

    name, seen = within(tmp_path, first)
    within(tmp_path, then)


def test_the_other_seats_are_played_by_agents(tmp_path: Path) -> None:
    async def use(opened: OutsideRuns) -> None:
        run = opened.play("matrix", seat="column", opponents="tit-for-tat", options={"rounds": 3})
        await run.observation()
        assert {"cooperate", "defect"} <= set(run.action_space.names)
        assert "column" in run.description or run.description
        pay = [(await run.act(Action(move))).reward for move in ("cooperate", "defect", "defect")]
        assert pay == [3.0, 5.0, 1.0]
        assert run.last is not None
        assert run.last.done

    within(tmp_path, use)


def test_one_action_at_a_time(tmp_path: Path) -> None:
    async def use(opened: OutsideRuns) -> None:
        run = opened.play("echo")
        await run.observation()
        first = asyncio.ensure_future(run.act(Action("wait")))
        await asyncio.sleep(0)
        with pytest.raises(ActionPendingError):
            await run.act(Action("wait"))
        assert (await first).success
        await run.stop()

    within(tmp_path, use)


def test_what_can_t_be_played_is_said_and_leaves_no_run(tmp_path: Path) -> None:
    source = (
        "from wsap_core.builtin.echo import EchoWorld\nclass Bad(EchoWorld):\n    def __init__(self): raise OSError\n"
    )
    (tmp_path / "bad.py").write_text(source, encoding="utf-8")

    async def use(opened: OutsideRuns) -> None:
        for wanted, game, options in (
            ("no seat 'nobody'", "matrix", {"seat": "nobody"}),
            ("is the program's own", "matrix", {"opponents": {"row": "random"}}),
            ("craftr", "craftr", {}),
        ):
            with pytest.raises(WsapError, match=wanted):
                opened.play(game, **options)  # type: ignore[arg-type]  # of one type each
        with pytest.raises(ConfigError, match="no option 'nonsense'"):
            await opened.play("crafter", options={"nonsense": 1}).observation()
        with pytest.raises(PluginError, match="could not be created"):
            await opened.play(f"{tmp_path}/bad.py:Bad").observation()
        assert opened.store.repository.list_runs() == []

    within(tmp_path, use)


def test_a_game_that_fails_says_so_to_whoever_acts(tmp_path: Path) -> None:
    source = (
        "from wsap_core.builtin.echo import EchoWorld\n"
        "class Falls(EchoWorld):\n    def act(self, action): raise ValueError('it fell')\n"
    )
    (tmp_path / "falls.py").write_text(source, encoding="utf-8")

    async def use(opened: OutsideRuns) -> None:
        run = opened.play(f"{tmp_path}/falls.py:Falls")
        await run.observation()
        with pytest.raises(WsapError, match="it fell"):
            await run.act(Action("wait"))
        with pytest.raises(WsapError, match="it fell"):
            await run.observation()

    within(tmp_path, use)


def test_only_runs_of_programs_outside_are_continued_so(tmp_path: Path) -> None:
    played = api.play("echo", "random", steps=2, database=str(tmp_path / "wsap.db"))

    async def use(opened: OutsideRuns) -> None:
        with pytest.raises(UsageError, match=r"not played by a program outside.*wsap play --resume"):
            opened.resume(played.run or "")

    within(tmp_path, use)


def test_a_turn_returns_what_is_seen_at_the_next_decision_and_all_that_was_paid_until_then(tmp_path: Path) -> None:
    async def play(opened: OutsideRuns) -> tuple[float, dict[str, object]]:
        run = opened.play("matrix", seat="column", opponents="tit-for-tat", seed=5, options={"rounds": 5})
        await run.observation()
        paid, steps = 0.0, list[int]()
        while not run.over:
            result = await run.turn(Action("cooperate"))
            paid += result.reward
            steps.append(result.observation.step)
        assert steps == sorted(steps)
        assert result.done
        return paid, dict(run.summary or {})

    paid, summary = within(tmp_path, play)
    mine = next(seat for seat in summary["seats"] if seat["seat"] == "column")  # type: ignore[attr-defined]
    assert paid == mine["reward"] > 0


def test_what_the_last_move_of_another_pays_is_part_of_the_turn_before(tmp_path: Path) -> None:
    (tmp_path / "turns.py").write_text(
        "from wsap_core.authoring.rounds import RoundGame\n"
        "from wsap_core import ActionDef, ActionSpace, Observation\n"
        "class Turns(RoundGame):\n"
        "    seats = ('a', 'b')\n"
        "    game_description = 'One after the other.'\n"
        "    action_space = ActionSpace((ActionDef('go', 'Go.'),))\n"
        "    def begin(self): self.moves = 0\n"
        "    def legal(self, seat): return ('go',)\n"
        "    def to_move(self): return () if self.moves >= 2 else (self.seats[self.moves % 2],)\n"
        "    def apply(self, moves): self.moves += 1\n"
        "    def see(self, seat): return Observation(step=self.moves)\n"
        "    def returns(self): return {'a': 7.0 * (self.moves >= 2), 'b': 0.0}\n"
        "    def dump(self): return self.moves\n"
        "    def load(self, data): self.moves = data\n"
    )

    async def play(opened: OutsideRuns) -> ActionResult:
        run = opened.play(f"{tmp_path / 'turns.py'}:Turns", seat="a", opponents="random", seed=1)
        await run.observation()
        return await run.turn(Action("go"))

    result = within(tmp_path, play)
    assert (result.success, result.done, result.reward, result.observation.step) == (True, True, 7.0, 2)

"""The repeated matrix games: payoffs, what is seen when, and who is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from wsap_core import Action, ActionResult, Context, Observation, Seat, World
from wsap_matrix.plugin import wsap_adapters


def matrix(name: str = "matrix", **options: object) -> World:
    spec = next(s for s in wsap_adapters() if s.name == name)
    return World.create(spec, Context.create(0, config=options))


async def rounds(world: World, choices: Mapping[str, list[str]], *, late_first: bool = False) -> dict[str, float]:
    """Play each seat's choices in a task of its own and return the seats' totals."""
    totals = dict.fromkeys(choices, 0.0)

    async def play(seat: Seat) -> None:
        for choice in choices[seat.agent_id]:
            await seat.observe()
            result = await seat.act(Action(choice))
            assert result.success, result.message
            totals[seat.agent_id] += result.reward

    seats = [world.open_seat(name) for name in ("row", "column")]
    await asyncio.gather(*(play(s) for s in (reversed(seats) if late_first else seats)))
    return totals


# Payoffs of the prisoner's dilemma, Axelrod (1984): T=5, R=3, P=1, S=0.
@pytest.mark.parametrize("late_first", [False, True])
def test_tit_for_tat_against_a_defector_loses_only_the_first_round(late_first: bool) -> None:
    totals = asyncio.run(
        rounds(
            matrix(rounds=10),
            {"row": ["cooperate"] + ["defect"] * 9, "column": ["defect"] * 10},
            late_first=late_first,
        )
    )
    assert totals == {"row": 0 + 9 * 1, "column": 5 + 9 * 1}


def test_the_second_mover_of_matching_pennies_sees_the_first_and_always_wins() -> None:
    async def play() -> tuple[float, float]:
        world = matrix("matrix-turns", game="matching-pennies", rounds=6)
        row, column = world.open_seat("row"), world.open_seat("column")
        rewards = {"row": 0.0, "column": 0.0}

        async def first() -> None:
            for choice in ["heads", "tails", "tails", "heads", "heads", "tails"]:
                await row.observe()
                rewards["row"] += (await row.act(Action(choice))).reward

        async def second() -> None:
            for _ in range(6):
                seen = (await column.observe()).status["row's choice"]
                answer = "tails" if seen == "heads" else "heads"
                rewards["column"] += (await column.act(Action(answer))).reward

        await asyncio.gather(second(), first())
        return rewards["row"], rewards["column"]

    assert asyncio.run(play()) == (-6, 6)


def test_a_free_running_world_resolves_each_choice_against_the_others_last_one() -> None:
    async def play() -> list[float]:
        world = matrix("matrix-free", rounds=2)
        row, column = world.open_seat("row"), world.open_seat("column")
        first = await row.act(Action("defect"))  # column has not chosen: its first choice, cooperate, stands
        second = await column.act(Action("defect"))
        third = await row.act(Action("cooperate"))
        return [first.reward, second.reward, third.reward]

    assert asyncio.run(play()) == [5, 1, 0]


def test_choices_of_a_round_stay_hidden_until_both_have_chosen() -> None:
    async def play() -> tuple[Observation, Observation]:
        world = matrix()
        row, column = world.open_seat("row"), world.open_seat("column")
        before = await column.observe()
        task = asyncio.create_task(row.act(Action("defect")))
        await asyncio.sleep(0)
        after = await column.observe()
        await column.act(Action("cooperate"))
        await task
        return before, after

    before, after = asyncio.run(play())
    assert before == after


def test_a_seat_that_misses_the_deadline_gets_the_default_and_its_late_action_is_refused() -> None:
    async def play() -> tuple[float, ActionResult]:
        world = matrix(rounds=3)
        row, column = world.open_seat("row"), world.open_seat("column")
        await row.observe()
        await column.observe()
        waiting = asyncio.create_task(row.act(Action("defect")))
        await asyncio.sleep(0)
        assert world.adapter.expire() == ("column",)  # type: ignore[attr-defined]
        result = await waiting
        return result.reward, await column.act(Action("defect"))

    reward, late = asyncio.run(play())
    assert reward == 5  # against the default, cooperate
    assert not late.success
    assert "Too late" in late.message


def test_a_player_who_leaves_is_replaced_by_the_default_choice() -> None:
    async def play() -> list[float]:
        world = matrix(rounds=3)
        row, column = world.open_seat("row"), world.open_seat("column")
        await row.observe()
        waiting = asyncio.create_task(row.act(Action("defect")))
        await asyncio.sleep(0)
        left = await column.act(Action("jack_out"))
        assert left.success
        assert left.done
        rewards = [(await waiting).reward]
        for _ in range(2):
            await row.observe()
            rewards.append((await row.act(Action("defect"))).reward)
        assert not (await column.act(Action("defect"))).success
        return rewards

    assert asyncio.run(play()) == [5, 5, 5]

"""A snapshot of a game of several seats, restored into worlds that have been used in other ways."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import pytest
from rounds_kit import Standoff, from_page

from wsap_core import Action, ActionResult, AgentMessage, Context, Observation, World
from wsap_core.authoring.rounds import RoundGame
from wsap_core.errors import SnapshotError
from wsap_core.protocol.values import JsonValue
from wsap_core.references import load_adapter_spec


class ByRound(Standoff):
    """All but one seat move at once; which one rests depends on the round."""

    timing = "phased"

    def begin(self) -> None:
        self.log: list[str] = []

    def to_move(self) -> tuple[str, ...]:
        return tuple(s for s in self.seats if s != self.seats[self.round % 3]) if self.round < 6 else ()

    def apply(self, moves: Mapping[str, Action]) -> None:
        self.log += [f"{self.round} {seat} {action.name}" for seat, action in moves.items()]

    def see(self, seat: str) -> Observation:
        return Observation(status={"log": list(self.log), "seed": self.seed, "episode": self.episode})

    def returns(self) -> dict[str, float]:
        return {seat: float(sum(f"{seat} take" in line for line in self.log)) for seat in self.seats}

    def dump(self) -> JsonValue:
        return self.log

    def load(self, data: JsonValue) -> None:
        self.log = [str(line) for line in data]


class ByLog(ByRound):
    """The same, by the last line of the log."""

    def to_move(self) -> tuple[str, ...]:
        played = int(self.log[-1].split()[0]) if self.log else 0
        return tuple(s for s in self.seats if s != self.seats[played % 3]) if played < 6 else ()


class LoadsByRound(ByRound):
    """A game whose `load` asks the kit where it is."""

    def load(self, data: JsonValue) -> None:
        super().load(data)
        if len(data) != 2 * self.round or self.episode < 0:
            raise ValueError(f"round {self.round} of episode {self.episode} has no log of {len(data)} lines")


class Talking(ByRound):
    """A game whose seats talk."""

    talks = True


T = TypeVar("T")

RUNNING: set[asyncio.Future[Any]] = set()
"""What waits for other seats; the end of an event loop cancels it."""

AUCTION: type[RoundGame] = from_page("auction.py")["Auction"]


def world_of(game: type[RoundGame]) -> World:
    world = World.create(load_adapter_spec(game), Context.create(0))
    for name in world.spec.seat_names:
        world.open_seat(name)
    return world


async def at_once(awaitable: Coroutine[Any, Any, T]) -> T | None:
    """Return what an awaitable returns without waiting for others, or None; it is left running."""
    task = asyncio.ensure_future(awaitable)
    RUNNING.add(task)
    for _ in range(20):
        await asyncio.sleep(0)
    return task.result() if task.done() else None


async def play(world: World, rounds: int) -> list[tuple[str, ActionResult | None]]:
    """Let all that can decide act, some rounds long, and return who acted and what it was told at once."""
    told: list[tuple[str, ActionResult | None]] = []
    for number in range(rounds):
        asked = {name: await at_once(seat.face.observe()) for name, seat in world.seats.items()}  # type: ignore[arg-type]
        for name, seen in asked.items():
            offer = next((a for a in seen.available_actions or () if a.available), None) if seen else None
            if offer is None:
                continue
            choices = getattr(offer, "choices", {})
            given = {p: words[number % len(words)] for p, words in choices.items()}
            told.append((name, await at_once(world.seats[name].act(Action(offer.name, given)))))
    return told


def shown(world: World) -> list[Any]:
    """Return all that a world says of itself."""
    game = world.adapter
    assert isinstance(game, RoundGame)
    seats = [(game.observation(s), game.done(s), game.closing_result(s), game.default_action(s)) for s in game.seats]
    return [game.round, game.seed, game.episode, tuple(game.to_move()), seats, world.snapshot()]


@pytest.mark.parametrize("game", [ByRound, ByLog, LoadsByRound, AUCTION])
def test_a_restored_world_is_where_the_saved_one_was_whatever_it_did_before(game: type[RoundGame]) -> None:
    async def run() -> None:
        rounds = 7
        saved: list[tuple[bytes, list[Any], list[Any]]] = []
        for number in range(rounds):
            world = world_of(game)
            await world.reset(5)
            await play(world, number)
            state = world.snapshot(), shown(world)
            saved.append((*state, await play(world, 1)))
        used = world_of(game)
        for number in range(rounds):
            for data, before, after in saved:
                await used.reset(90 + number)
                await play(used, number)
                used.restore(data)
                assert shown(used) == before
                assert await play(used, 1) == after

    asyncio.run(run())


def test_a_restored_world_asks_the_seat_that_is_to_move_and_no_other() -> None:
    async def run() -> tuple[list[str], str]:
        world = world_of(ByRound)
        await world.reset(0)
        await play(world, 1)
        data, fresh = world.snapshot(), world_of(ByRound)
        fresh.restore(data)
        refused = await at_once(fresh.seats["bob"].act(Action("take")))
        return [name for name, _ in await play(fresh, 1)], refused.message if refused else "it waits"

    assert asyncio.run(run()) == (["ann", "cid"], "It is not your turn.")


@pytest.mark.parametrize("rounds", [0, 3, 6])
def test_a_refused_snapshot_changes_nothing_of_a_game_whose_movers_depend_on_the_round(rounds: int) -> None:
    async def run() -> None:
        world, other = world_of(LoadsByRound), world_of(LoadsByRound)
        await play(world, rounds)
        await play(other, 2)
        wrong = other.adapter
        assert isinstance(wrong, RoundGame)
        wrong.log = wrong.log[:1]  # type: ignore[attr-defined]
        before = shown(world)
        for data in (other.snapshot(), b"", world.snapshot()[:-9]):
            with pytest.raises(SnapshotError):
                world.restore(data)
            assert shown(world) == before

    asyncio.run(run())


def test_messages_are_those_of_the_snapshot_and_of_no_other_time() -> None:
    world = world_of(Talking)
    assert world.mailbox is not None
    before = world.snapshot()
    world.mailbox.send(AgentMessage("ann", "later", "broadcast"))
    world.mailbox.deliver()
    after = world.snapshot()
    damaged = after.replace(b'"state":"', b'"state":"AAAA')
    silent = world_of(ByRound).snapshot().replace(b"by-round", b"talking")  # of a version without messages
    assert b'"messages":null' in silent
    with pytest.raises(SnapshotError):
        world.restore(damaged)
    assert world.snapshot() == after
    wrong = after.replace(b'"sender":"ann"', b'"sender":7')
    assert wrong != after
    world.restore(before)
    assert not world.mailbox.waiting("bob")
    with pytest.raises(SnapshotError):
        world.restore(wrong)
    assert world.snapshot() == before
    world.restore(after)
    assert [m.content for m in world.mailbox.waiting("bob")] == ["later"]

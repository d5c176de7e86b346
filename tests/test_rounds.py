"""The base class of games of several seats, shown with the games of the how-to and small ones made here."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rounds_kit import Standoff, from_page, value

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Context, Observation, ParamDef, Seat, World
from wsap_core.authoring.rounds import RoundGame
from wsap_core.errors import PluginError, SnapshotError, UsageError
from wsap_core.protocol.values import JsonValue
from wsap_core.references import load_adapter_spec
from wsap_core.specs import Timing
from wsap_core.worlds import GAME_OVER
from wsap_core.worlds.legality import check_action, index_actions

KUHN: type[RoundGame] = from_page("kuhn.py")["KuhnPoker"]
DEALS = list(itertools.permutations(["jack", "queen", "king"]))


def mean_value(policy: Any) -> dict[str, float]:
    """Return the value of a policy over the six deals of Kuhn poker."""
    total = dict.fromkeys(KUHN.seats, 0.0)
    for deal in DEALS:
        game = KUHN()
        game.load({"deck": list(deal), "moves": ""})
        for seat, pay in value(game, policy).items():
            total[seat] += pay / len(DEALS)
    return total


# --- rules, against published values ------------------------------------------------------------------


def test_kuhn_poker_played_at_random_is_worth_an_eighth_to_the_first_player() -> None:
    # The value that OpenSpiel's policy evaluation gives for the uniform policy.
    at_random = mean_value(lambda game, seat: {"pass": 0.5, "bet": 0.5})
    assert at_random == pytest.approx({"first": 1 / 8, "second": -1 / 8})


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1 / 3])
def test_kuhn_poker_in_equilibrium_costs_the_first_player_an_eighteenth(alpha: float) -> None:
    # H. W. Kuhn, A Simplified Two-Person Poker (1950): any alpha from 0 to 1/3 is an equilibrium.
    bets = {
        ("jack", 0): alpha, ("queen", 0): 0.0, ("king", 0): 3 * alpha,
        ("jack", 1, "p"): 1 / 3, ("queen", 1, "p"): 0.0, ("king", 1, "p"): 1.0,
        ("jack", 1, "b"): 0.0, ("queen", 1, "b"): 1 / 3, ("king", 1, "b"): 1.0,
        ("jack", 2): 0.0, ("queen", 2): alpha + 1 / 3, ("king", 2): 1.0,
    }  # fmt: skip

    def equilibrium(game: RoundGame, seat: str) -> Mapping[str, float]:
        status = game.see(seat).status
        moves = "".join(move[0] for move in status["moves so far"])
        at = (status["your card"], len(moves), moves) if len(moves) == 1 else (status["your card"], len(moves))
        return {"bet": bets[at], "pass": 1 - bets[at]}

    assert mean_value(equilibrium) == pytest.approx({"first": -1 / 18, "second": 1 / 18})


# --- results and the last pay -------------------------------------------------------------------------

AUCTION: type[RoundGame] = from_page("auction.py")["Auction"]


def world_of(game: type[RoundGame]) -> World:
    return World.create(load_adapter_spec(game), Context.create(0))


async def play(world: World, choose: Any, slowness: Mapping[str, int]) -> dict[str, list[ActionResult]]:
    """Play one episode, each seat in a task of its own, and return every result by seat."""
    results: dict[str, list[ActionResult]] = {}

    async def one(seat: Seat) -> None:
        mine = results.setdefault(seat.agent_id, [])
        while not seat.done:
            seen = await seat.observe()
            for _ in range(slowness[seat.agent_id]):
                await asyncio.sleep(0)
            action = GAME_OVER if seat.ended else choose(seat, seen)
            mine.append((await seat.step(action)).result)

    seats = [world.open_seat(name) for name in world.spec.seat_names]
    await asyncio.wait_for(asyncio.gather(*map(one, seats)), 60)
    return results


@given(
    game=st.sampled_from([KUHN, AUCTION, Standoff]),
    seed=st.integers(0, 999),
    slowness=st.lists(st.integers(0, 3), min_size=3, max_size=3),
)
@pytest.mark.slow
def test_every_seat_is_told_the_end_once_and_paid_what_the_game_says(
    game: type[RoundGame], seed: int, slowness: list[int]
) -> None:
    rng, world = random.Random(seed), world_of(game)
    asyncio.run(world.reset(seed))

    def choose(seat: Seat, seen: Any) -> Action:
        named = rng.choice([a for a in seen.available_actions if a.available])
        choices = getattr(named, "choices", {})
        return Action(named.name, {name: rng.choice(words) for name, words in choices.items()})

    results = asyncio.run(play(world, choose, dict(zip(world.spec.seat_names, slowness, strict=False))))
    assert {seat: sum(r.reward for r in mine) for seat, mine in results.items()} == world.adapter.returns()  # type: ignore[attr-defined]
    assert [[r.done for r in mine] for mine in results.values()] == [
        [False] * (len(mine) - 1) + [True] for mine in results.values()
    ]


def test_a_seat_that_never_came_to_move_is_paid_and_not_asked() -> None:
    asked: list[str] = []

    def choose(seat: Seat, seen: Any) -> Action:
        asked.append(seat.agent_id)
        return Action("take")

    results = asyncio.run(play(world_of(Standoff), choose, dict.fromkeys(Standoff.seats, 0)))
    assert asked == ["ann"]
    assert {seat: [r.reward for r in mine] for seat, mine in results.items()} == {"ann": [2], "bob": [-1], "cid": [-1]}


def test_a_game_says_that_a_limit_ended_it_and_not_its_rules() -> None:
    class Timed(Standoff):
        def truncated(self, seat: str) -> bool:
            return not self.taken

    def last(game: type[RoundGame], name: str) -> dict[str, list[bool]]:
        results = asyncio.run(play(world_of(game), lambda seat, seen: Action(name), dict.fromkeys(game.seats, 0)))
        return {seat: [result.truncated for result in mine] for seat, mine in results.items()}

    assert last(Timed, "pass") == {seat: [False, True] for seat in Timed.seats}  # six passes are its limit
    assert last(Timed, "take") == {seat: [False] for seat in Timed.seats}
    assert last(Standoff, "pass") == {seat: [False, False] for seat in Standoff.seats}


def test_who_misses_the_deadline_that_ends_the_game_is_paid_when_it_acts() -> None:
    async def late() -> tuple[ActionResult, ActionResult]:
        world = world_of(AUCTION)
        ann, bob, cid = (world.open_seat(name) for name in AUCTION.seats)
        for _ in range(2):
            await asyncio.gather(*(seat.step(Action("bid", {"coins": "0"})) for seat in (ann, bob, cid)))
        await ann.observe()
        others = [asyncio.ensure_future(s.act(Action("bid", {"coins": c}))) for s, c in ((bob, "1"), (cid, "2"))]
        await asyncio.sleep(0)
        assert world.adapter.expire() == ("ann",)  # type: ignore[attr-defined]
        return await others[1], await ann.act(Action("bid", {"coins": "5"}))

    winner, loser = asyncio.run(late())
    assert (winner.reward, winner.done) == (10, True)
    assert (loser.success, loser.reward, loser.done) == (False, 0, True)


def test_an_agent_that_leaves_is_replaced_by_default_moves() -> None:
    async def leave() -> list[ActionResult]:
        world = world_of(KUHN)
        first, second = world.open_seat("first"), world.open_seat("second")
        await first.observe()
        second.leave()
        return [await first.act(Action("bet"))]

    (result,) = asyncio.run(leave())
    assert (result.reward, result.done) == (1, True)  # second passes, which folds


# --- seats and snapshots ------------------------------------------------------------------------------


def test_agents_take_free_seats_by_any_name_and_one_too_many_is_refused() -> None:
    game = KUHN()
    assert "You are first." in game.seat("ada").game_description
    assert "You are second." in game.seat("bert").game_description
    with pytest.raises(UsageError, match="2 seats"):
        game.seat("cleo")


def test_a_snapshot_whose_state_cannot_be_is_refused_and_changes_nothing() -> None:
    class Reckless(Standoff):
        def load(self, data: Any) -> None:
            self.passed, self.taken = data  # whatever it is

    game = Reckless()
    game.apply({"ann": Action("pass")})
    before = game.snapshot()
    game.passed = "six"  # type: ignore[assignment]
    wrong = game.snapshot()
    game.passed = 1
    for data in (wrong, b"", before[:-4], KUHN().snapshot()):
        with pytest.raises(SnapshotError):
            game.restore(data)
        assert game.snapshot() == before


def test_chance_in_the_middle_of_an_episode_is_the_same_after_a_restore() -> None:
    class Dice(Standoff):
        def apply(self, moves: Mapping[str, Action]) -> None:
            super().apply(moves)
            self.rolls.append(self.random.random())

        def begin(self) -> None:
            super().begin()
            self.rolls: list[float] = []

    async def play_on(game: Dice, *seats: str) -> list[float]:
        moves = []
        for seat in seats:
            moves.append(asyncio.ensure_future(game.seat(seat).act(Action("pass"))))
            await asyncio.sleep(0)
        return game.rolls[-2:]

    async def twice() -> tuple[list[float], list[float]]:
        one, other = Dice(Context.create(4)), Dice(Context.create(5))
        await play_on(one, "ann")
        other.restore(one.snapshot())
        return await play_on(one, "bob", "cid"), await play_on(other, "bob", "cid")

    one, other = asyncio.run(twice())
    assert one == other
    assert len(set(one)) == 2


# --- rounds that take time ----------------------------------------------------------------------------


@pytest.mark.parametrize("timing", ["alternating", "free"])
def test_a_game_whose_moves_take_time_goes_as_one_whose_moves_take_none(timing: Timing) -> None:
    class Slow(Standoff):
        async def apply(self, moves: Mapping[str, Action]) -> None:
            self.taken = True  # half a round
            for _ in range(5):
                await asyncio.sleep(0)
            self.taken = False
            super().apply(moves)

    async def play(game: Standoff) -> list[tuple[str, float, bool, JsonValue]]:
        told = []

        async def sit(seat: str, *names: str) -> None:
            face = game.seat(seat)
            for name in names:
                await face.observe()
                result = await face.act(Action(name))
                told.append((seat, result.reward, result.done, game.dump()))

        await asyncio.gather(sit("ann", "pass", "pass"), sit("bob", "pass", "take"), sit("cid", "pass", "pass"))
        return sorted(told)

    quick, slow = Standoff(), Slow()
    quick.timing = slow.timing = timing
    if timing == "alternating":
        assert asyncio.run(play(slow)) == asyncio.run(play(quick))
    else:
        assert len(asyncio.run(play(slow))) == 6
        assert slow.round <= 6


def test_a_snapshot_in_the_middle_of_a_round_that_takes_time_is_that_of_before() -> None:
    class Slow(Standoff):
        async def apply(self, moves: Mapping[str, Action]) -> None:
            self.passed = 99
            await let.wait()
            self.passed = 0
            super().apply(moves)

    let = asyncio.Event()

    async def run() -> tuple[bytes, bytes, bytes]:
        game = Slow()
        first = game.snapshot()
        acting = asyncio.create_task(game.seat("ann").act(Action("pass")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert game.passed == 99
        midway = game.snapshot()
        late = asyncio.create_task(game.seat("bob").act(Action("take")))
        let.set()
        assert (await late).done
        await acting
        return first, midway, game.snapshot()

    first, midway, last = asyncio.run(run())
    assert midway == first != last


# --- default actions ----------------------------------------------------------------------------------


class Purse(Standoff):
    """A seat that is to move spends coins, as many as it has."""

    action_space = ActionSpace(
        [
            ActionDef("think", "Think", category="tool"),
            ActionDef("spend", "Spend", [ParamDef("coins", schema={"type": "integer", "minimum": 4, "maximum": 40})]),
            ActionDef("say", "Say", [ParamDef("word", "red|green|blue"), ParamDef("loud", "yes|no")]),
        ]
    )
    accepted: tuple[str, ...] = ("spend",)

    def legal(self, seat: str) -> tuple[str, ...]:
        assert seat in self.to_move(), f"{seat} is not to move"
        return ("spend", "say")

    def refusal(self, seat: str, action: Action) -> str:
        if why := super().refusal(seat, action):
            return why
        if action.name not in self.accepted:
            return "Not now."
        if action.name == "spend":
            return "" if action.parameters["coins"] % 8 == 7 else "Only 7, 15, 23 and so on."
        return "" if (action.parameters["word"], action.parameters["loud"]) == ("blue", "no") else "Say it softly."


@pytest.mark.parametrize("name", ["spend", "say"])
def test_the_default_action_is_one_that_the_game_does_not_refuse(name: str) -> None:
    game = Purse()
    game.accepted = (name,)
    action = game.default_action("ann")
    assert (action.name, game.refusal("ann", action)) == (name, "")
    assert game.default_action("ann") == action


def test_a_seat_that_is_not_to_move_has_a_declared_default_action_and_is_not_asked_what_is_legal() -> None:
    action, reason = check_action(Purse().default_action("bob"), index_actions(Purse.action_space))
    assert (action.name, reason) == ("spend", "")


# --- seats that are out -------------------------------------------------------------------------------


class Lives(Standoff):
    """All act at once; ann is out after one round, bob after two, each with a pay, and cid plays to the end."""

    timing = "simultaneous"
    rounds = 4

    def begin(self) -> None:
        self.played = 0

    def to_move(self) -> tuple[str, ...]:
        return tuple(self.seats) if self.played < self.rounds else ()

    def out(self, seat: str) -> bool:
        return self.played > self.seats.index(seat) < 2

    def apply(self, moves: Mapping[str, Action]) -> None:
        self.played += 1
        self.movers = list(moves)

    def see(self, seat: str) -> Observation:
        return Observation(status={"played": self.played})

    def returns(self) -> dict[str, float]:
        return {seat: float(min(self.played, number)) for number, seat in enumerate(self.seats, 1)}

    def dump(self) -> JsonValue:
        return self.played

    def load(self, data: JsonValue) -> None:
        self.played = int(data)


def test_a_seat_that_is_out_gets_its_last_result_at_once_and_observes_without_waiting() -> None:
    async def run() -> tuple[list[ActionResult], Observation, ActionResult, list[str], bool]:
        world = world_of(Lives)
        ann, bob, cid = (world.open_seat(name) for name in Lives.seats)
        await world.reset(0)
        told = list(await asyncio.gather(*(seat.act(Action("take")) for seat in (ann, bob, cid))))
        seen = await asyncio.wait_for(ann.observe(), 60)
        late = await asyncio.wait_for(ann.act(Action("take")), 60)
        await asyncio.gather(bob.act(Action("take")), cid.act(Action("take")))
        other = world_of(Lives)
        for name in Lives.seats:
            other.open_seat(name)
        other.restore(world.snapshot())
        await asyncio.wait_for(asyncio.gather(*(other.seats[name].observe() for name in Lives.seats)), 60)
        last = await other.seats["cid"].act(Action("take"))
        return told, seen, late, other.adapter.movers, last.done  # type: ignore[attr-defined]

    told, seen, late, movers, over = asyncio.run(run())
    assert [(r.done, r.reward) for r in told] == [(True, 1), (False, 1), (False, 1)]
    assert told[0].message == "You are out of the game. You get 1."
    assert seen.status == {"played": 1}
    assert {a.reason for a in seen.available_actions or ()} == {"you are out of the game"}
    assert (late.success, late.done, late.message, late.reward) == (False, True, "You are out of the game.", 0)
    assert (movers, over) == (["cid"], False)


def test_a_seat_put_out_while_it_waits_for_its_turn_is_woken_with_its_closing_result() -> None:
    class Duel(Standoff):
        """Whoever takes puts the next seat out."""

        def out(self, seat: str) -> bool:
            return self.taken and seat == "bob"

        def to_move(self) -> tuple[str, ...]:
            return ("cid",) if self.taken else ("ann",)

    async def run() -> tuple[bool, ActionResult]:
        world = world_of(Duel)
        ann, bob, _ = (world.open_seat(name) for name in Duel.seats)
        await world.reset(0)
        waiting = asyncio.create_task(bob.observe())
        await asyncio.sleep(0)
        acting = asyncio.create_task(ann.act(Action("take")))
        await asyncio.wait_for(waiting, 60)
        acting.cancel()
        return bob.ended, (await bob.step(GAME_OVER)).result

    ended, closing = asyncio.run(run())
    assert ended
    assert (closing.done, closing.reward, closing.message) == (True, -1, "You are out of the game. You get -1.")


def test_a_game_whose_seats_are_all_out_is_over() -> None:
    game = Lives()
    game.rounds = 9
    game.out = lambda seat: game.played > 0  # type: ignore[method-assign]
    results = asyncio.run(game_of(game))
    assert [(r.done, r.message) for r in results] == [(True, "The game is over. You get 1.")] * 3


async def game_of(game: RoundGame) -> list[ActionResult]:
    return await asyncio.gather(*(game.seat(name).act(Action("take")) for name in game.seats))


# --- names of the kit ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["turn", "done", "message", "leave", "round", "seed", "_paid", "_told", "_named"])
@pytest.mark.parametrize("when", ["begin", "apply"])
def test_a_name_of_the_kit_that_a_game_sets_is_refused(name: str, when: str) -> None:
    class Clash(Standoff):
        def begin(self) -> None:
            super().begin()
            if when == "begin":
                setattr(self, name, 9)

        def apply(self, moves: Mapping[str, Action]) -> None:
            super().apply(moves)
            setattr(self, name, 9)

    with pytest.raises(PluginError, match=f"Clash sets self.{name}, a name of RoundGame; use another"):
        asyncio.run(Clash().seat("ann").act(Action("pass")))


@pytest.mark.parametrize("name", ["_declared", "_offers", "_resolve", "turn", "done", "message", "play"])
def test_a_member_of_a_subclass_that_hides_one_of_the_kit_is_refused_when_it_is_defined(name: str) -> None:
    with pytest.raises(TypeError, match=f"Clash.{name} can't stand for that of RoundGame; choose another name"):
        type("Clash", (Standoff,), {name: lambda self: 0})


def test_methods_that_are_overridden_on_purpose_are_accepted() -> None:
    class Fine(Standoff):
        def message(self, seat: str, pay: float, loud: bool = False) -> str:
            return "Well done."

        def done(self, *names: Any) -> bool:
            return super().done(*names)

        def reset(self, seed: int | None = None) -> Observation:
            return super().reset(seed)

    assert Fine().message("ann", 0.0) == "Well done."

"""The floor by bids, as the reference has it: who may bid, who has the floor, when the talk ends, and who knows."""

from __future__ import annotations

import asyncio
import random

import pytest

from wsap_core.errors import UsageError
from wsap_core.protocol import Action
from wsap_tossim.engine.data.model import Choice, Phase, Verb
from wsap_tossim.engine.data.rules import CLASSIC, rule_set
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.random_play import play_out
from wsap_tossim.engine.setups import Setup, setup
from wsap_tossim.options import TownOptions
from wsap_tossim.players.match import play_match
from wsap_tossim.players.scripted import ScriptedDecider
from wsap_tossim.verbs import action_space
from wsap_tossim.world import Town

WAIT = Choice(Verb.WAIT)
LEVELS = {0: Verb.WAIT, 1: Verb.BID_1, 2: Verb.BID_2, 3: Verb.BID_3}


def town(*roles: str, seed: int = 1, **switches: object) -> Game:
    """Return a game in which the floor is bid for, whose first day is a whole one with one round of each kind."""
    short = {"floor": "bids", "first_day": "vote", "discussion_rounds": 1, "nomination_rounds": 1}
    rules = rule_set("classic", short | {"night_talk_rounds": 0} | switches)
    return Game(Setup("test", roles), rules, seed, roles=roles)


def five(**switches: object) -> Game:
    return town("Sheriff", "Citizen", "Citizen", "Citizen", "Mafioso", **switches)


def bid(game: Game, *levels: int) -> int | None:
    """Have those who are asked bid, by seat; return who has the floor, or None if nobody has."""
    phase = game.phase
    game.resolve({p: Choice(LEVELS[level]) for p, level in zip(game.waiting, levels, strict=True)})
    return game.waiting[0] if len(game.waiting) == 1 and game.phase is phase else None


def speak(game: Game) -> None:
    game.resolve({player: Choice(Verb.SPEAK, (), "Good morning.") for player in game.waiting})


def on_nomination(**switches: object) -> Game:
    """Return a game in which nobody has wanted to discuss anything."""
    game = five(**switches)
    bid(game, 0, 0, 0, 0, 0)
    assert game.phase is Phase.NOMINATION
    return game


def test_all_are_asked_at_once_and_can_bid_or_wait() -> None:
    game = five()
    assert game.waiting == (0, 1, 2, 3, 4)
    for player in game.waiting:
        assert [o.verb.value for o in game.options(player)] == ["bid_1", "bid_2", "bid_3", "wait"]
        assert game.options(player, talk=False) == game.options(player)
    with pytest.raises(UsageError, match="You can't speak now"):
        game.resolve({p: Choice(Verb.SPEAK, (), "Me!") for p in game.waiting})


def test_the_highest_bid_has_the_floor_alone_and_all_learn_who_that_is() -> None:
    game = five()
    assert bid(game, 1, 2, 0, 3, 2) == 3
    assert [o.verb for o in game.options(3)] == [Verb.SPEAK, Verb.WHISPER, Verb.WAIT]
    assert [game.options(p) for p in (0, 1, 2, 4)] == [()] * 4
    speak(game)
    assert game.waiting == (0, 1, 2, 3, 4)

    said = [(e.kind, e.data["player"], e.known_by) for e in game.log if e.kind in ("floor", "speech")]
    assert said == [("floor", 3, 0b11111), ("speech", 3, 0b11111)]


def test_a_bid_is_known_by_the_bidder_alone_and_who_waits_has_made_none() -> None:
    game = five()
    bid(game, 1, 2, 0, 3, 2)

    bids = [(e.data["player"], e.data["level"], e.known_by) for e in game.log if e.kind == "bid"]
    assert bids == [(0, 1, 0b00001), (1, 2, 0b00010), (3, 3, 0b01000), (4, 2, 0b10000)]
    assert not [e for e in game.log if e.kind == "silent"]


def test_among_equal_bids_whoever_has_had_the_floor_least_often_today_has_it() -> None:
    game = five()
    taken = []
    for levels in ((0, 2, 0, 0, 0), (0, 1, 1, 0, 0), (0, 2, 2, 2, 0)):
        taken.append(bid(game, *levels))
        speak(game)
    assert taken == [1, 2, 3]
    assert bid(game, 0, 3, 2, 2, 0) == 1, "a higher bid counts more than how often one has had the floor"


def test_how_often_one_has_had_the_floor_counts_through_the_whole_day_and_not_longer() -> None:
    game = five()
    assert bid(game, 0, 0, 1, 0, 0) == 2
    speak(game)
    bid(game, 0, 0, 0, 0, 0)
    assert game.phase is Phase.NOMINATION
    assert bid(game, 0, 0, 1, 1, 0) == 3
    speak(game)
    bid(game, 0, 0, 0, 0, 0)
    while game.state.day == 1:
        game.resolve(dict.fromkeys(game.waiting, WAIT))
    assert bid(game, 0, 1, 0, 0, 0) == 1
    speak(game)
    assert bid(game, 0, 1, 1, 0, 0) == 2, "what was yesterday counts no more"


def test_a_tie_is_settled_by_a_lot_that_falls_on_each_alike_and_moves_no_other_lot() -> None:
    taken = [0] * 5
    for seed in range(300):
        game = town("Sheriff", "Citizen", "Citizen", "Citizen", "Mafioso", seed=seed)
        before = game.state.public.getstate()
        winner = bid(game, 0, 2, 2, 2, 1)
        assert winner is not None
        taken[winner] += 1
        assert game.state.public.getstate() == before
    assert taken[0] == taken[4] == 0
    assert all(70 <= count <= 130 for count in taken[1:4]), taken  # 100 each, within 3.6 standard deviations


def test_where_nobody_bids_the_talk_is_over() -> None:
    game = five()
    bid(game, 0, 0, 0, 0, 0)
    assert game.phase is Phase.NOMINATION
    assert game.waiting == (0, 1, 2, 3, 4)
    bid(game, 0, 0, 0, 0, 0)
    assert game.state.phase in (Phase.DUSK, Phase.NIGHT)


@pytest.mark.parametrize(("rounds", "turns"), [(0, 0), (1, 5), (3, 15)])
def test_there_are_as_many_turns_as_rounds_times_those_who_live(rounds: int, turns: int) -> None:
    game = five(discussion_rounds=rounds)
    spoken = 0
    while game.phase is Phase.DISCUSSION:
        assert bid(game, 3, 0, 0, 0, 0) == 0
        speak(game)
        spoken += 1
    assert game.phase is Phase.NOMINATION
    assert spoken == turns


def test_who_has_the_floor_and_waits_uses_the_turn_up() -> None:
    game = five()
    for _ in range(5):
        bid(game, 1, 0, 0, 0, 0)
        game.resolve({0: WAIT})
    assert game.phase is Phase.NOMINATION
    assert [e.data["player"] for e in game.log if e.kind == "silent"] == [0] * 5


def test_who_is_blackmailed_bids_for_nothing_while_there_is_only_talk_but_may_vote() -> None:
    game = town("Sheriff", "Citizen", "Citizen", "Citizen", "Mafioso", "Blackmailer")
    while game.state.phase is not Phase.NIGHT:
        game.resolve(dict.fromkeys(game.waiting, WAIT))
    game.resolve({p: Choice(Verb.BLACKMAIL, (1,)) if p == 5 else WAIT for p in game.waiting})
    assert game.phase is Phase.DISCUSSION
    assert game.waiting == (0, 2, 3, 4, 5)
    bid(game, 0, 0, 0, 0, 0)
    assert game.phase is Phase.NOMINATION
    assert game.waiting == (0, 1, 2, 3, 4, 5)
    assert bid(game, 0, 1, 0, 0, 0, 0) == 1
    assert [o.verb for o in game.options(1)] == [Verb.VOTE, Verb.WAIT]


def test_one_on_trial_speaks_and_all_others_judge_without_a_bid() -> None:
    game = on_nomination(nomination_rounds=2)
    for voter in (0, 1, 2):
        levels = [0] * 5
        levels[voter] = 1
        assert bid(game, *levels) == voter
        game.resolve({voter: Choice(Verb.VOTE, (4,))})
    assert game.phase is Phase.DEFENSE
    assert game.waiting == (4,)
    assert [o.verb for o in game.options(4)] == [Verb.SPEAK, Verb.WAIT]
    speak(game)
    assert game.phase is Phase.JUDGEMENT
    assert game.waiting == (0, 1, 2, 3)


def test_after_an_acquittal_the_turns_that_are_left_go_on() -> None:
    game = on_nomination(nomination_rounds=1)
    for voter in (0, 1, 2):
        bid(game, *(3 if n == voter else 0 for n in range(5)))
        game.resolve({voter: Choice(Verb.VOTE, (4,))})
    speak(game)
    game.resolve({p: Choice(Verb.INNOCENT) for p in game.waiting})
    assert game.phase is Phase.NOMINATION
    for _ in range(2):  # of five turns three were taken
        assert bid(game, 0, 0, 0, 0, 1) == 4
        speak(game)
    assert game.phase in (Phase.DUSK, Phase.NIGHT)


def test_a_seat_that_is_out_of_time_has_bid_nothing() -> None:
    options = TownOptions.read({"mode": "five", "floor": "bids"})
    world = Town(options, 3)

    async def play() -> None:
        seats = [world.seat(f"player-{n}") for n in range(1, 6)]
        for seat in seats:
            await seat.observe()
        tasks = [asyncio.create_task(seats[n].act(Action(f"bid_{n + 1}"))) for n in range(2)]
        for _ in range(5):
            await asyncio.sleep(0)  # so that both have bid
        assert world.expire() == ("player-3", "player-4", "player-5")
        result = await asyncio.wait_for(tasks[1], 300)
        assert result.success
        tasks[0].cancel()

    asyncio.run(play())
    assert world.game.waiting == (1,)
    assert [(e.player, e.verb, e.forced) for e in world.game.record] == [
        (0, "bid_1", False),
        (1, "bid_2", False),
        (2, "wait", True),
        (3, "wait", True),
        (4, "wait", True),
    ]
    assert sorted(e.data["player"] for e in world.game.log if e.kind == "bid") == [0, 1]


@pytest.mark.slow
def test_a_game_is_the_same_again_from_its_record_and_can_be_forked_between_bid_and_speech() -> None:
    rules = rule_set("classic", {"floor": "bids"})
    for seed in range(12):
        played = play_out(Game(setup("nine"), rules, seed), random.Random(seed), talk=True)
        assert Game.from_json(played.to_json()).log == played.log
    for rounds in (1, 2, 3):
        fork = played.fork(rounds)
        assert fork.log == played.log[: len(fork.log)]
        assert (len(fork.waiting) == 1) == (rounds % 2 == 1)


def test_scripted_players_bid_and_use_what_they_get() -> None:
    game = Game(setup("nine"), rule_set("classic", {"floor": "bids"}), 4)
    rng, names = random.Random(4), [f"Player {n + 1}" for n in range(9)]
    played = play_match(game, [ScriptedDecider(n, rng, names) for n in range(9)])
    assert played.refused == []
    kinds = [e.kind for e in game.log]
    assert {e.verb for e in game.record} >= {"bid_1", "bid_2", "bid_3", "speak", "vote"}
    after = {kinds[at + 1] for at, kind in enumerate(kinds) if kind == "floor"}
    assert "silent" not in after, "nobody bids for the floor to say nothing"


def test_there_are_no_bids_where_the_floor_goes_round() -> None:
    names = ["Ann", "Bob", "Cid", "Dora", "Eve"]
    assert not [a.name for a in action_space(names, ["Sheriff"], CLASSIC).actions if a.name.startswith("bid")]
    bids = rule_set("classic", {"floor": "bids"})
    assert [a.name for a in action_space(names, ["Sheriff"], bids).actions if a.name.startswith("bid")] == [
        "bid_1",
        "bid_2",
        "bid_3",
    ]


def test_a_player_is_told_that_it_bids_and_what_that_does() -> None:
    world = Town(TownOptions.read({"mode": "five", "floor": "bids"}), 3)
    text = world.observation("player-1").to_text()
    assert "You can now: bid_1, bid_2, bid_3 or wait." in text
    assert "The highest bid has it; among equals, whoever has had it least often today." in text
    assert "the highest secret bid for it wins" in world.game_description
    plain = Town(TownOptions.read({"mode": "five"}), 3)
    assert "bid" not in plain.game_description + plain.observation("player-1").to_text()

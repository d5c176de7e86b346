"""The day by the rules: the floor, votes, trials, ballots, and how a game ends. Expectations are from the reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core.errors import SnapshotError, UsageError
from wsap_tossim.engine.data.model import Choice, Phase, Verb
from wsap_tossim.engine.data.rules import rule_set
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.random_play import random_choice
from wsap_tossim.engine.setups import Setup
from wsap_tossim.engine.victory import ending

WAIT = Choice(Verb.WAIT)


def town(*roles: str, **switches: object) -> Game:
    """Return a game with these roles, in which the first day is a whole one and everybody has the floor once."""
    rules = rule_set("classic", {"first_day": "vote", "discussion_rounds": 0, "night_talk_rounds": 0} | switches)
    return Game(Setup("test", roles), rules, 1, roles=roles)


def five(**switches: object) -> Game:
    return town("Sheriff", "Citizen", "Citizen", "Citizen", "Mafioso", **switches)


def one(game: Game, verb: Verb, *targets: int, text: str = "") -> int:
    """Have whoever has the floor do something; return who it was."""
    (player,) = game.waiting
    game.resolve({player: Choice(verb, targets, text)})
    return player


def vote(game: Game, target: int, voters: int) -> None:
    """Have the next players vote for one; whoever is that one waits."""
    while voters:
        (player,) = game.waiting
        if player == target:
            one(game, Verb.WAIT)
        else:
            one(game, Verb.VOTE, target)
            voters -= 1


def judge(game: Game, guilty: int, innocent: int) -> None:
    verdicts = [Verb.GUILTY] * guilty + [Verb.INNOCENT] * innocent
    verdicts += [Verb.ABSTAIN] * (len(game.waiting) - len(verdicts))
    game.resolve({p: Choice(v) for p, v in zip(game.waiting, verdicts, strict=True)})


def kinds(game: Game, kind: str) -> list[dict[str, object]]:
    return [dict(e.data) for e in game.log if e.kind == kind]


def test_the_floor_goes_round_by_seat_and_begins_one_further_each_day() -> None:
    game = five(discussion_rounds=1, nomination_rounds=1)
    first = [one(game, Verb.SPEAK, text="Good morning.") for _ in range(5)]
    assert game.phase is Phase.NOMINATION
    while game.state.day == 1:
        game.resolve(dict.fromkeys(game.waiting, WAIT))
    second = [one(game, Verb.SPEAK, text="Good morning.") for _ in range(5)]

    assert first == [0, 1, 2, 3, 4]
    assert second == [1, 2, 3, 4, 0]


def test_more_than_half_of_the_living_put_somebody_on_trial() -> None:
    game = five()
    vote(game, 4, 2)
    assert game.phase is Phase.NOMINATION
    assert game.needed == 3
    vote(game, 4, 1)

    assert game.phase is Phase.DEFENSE
    assert game.waiting == (4,)


def test_six_living_need_four_votes() -> None:
    game = town("Sheriff", "Citizen", "Citizen", "Citizen", "Citizen", "Mafioso")
    vote(game, 5, 3)

    assert game.phase is Phase.NOMINATION
    assert game.needed == 4


def test_a_vote_can_be_taken_back_and_changed() -> None:
    game = five(nomination_rounds=3)
    one(game, Verb.VOTE, 4)
    for _ in range(4):
        one(game, Verb.WAIT)
    one(game, Verb.UNVOTE)
    assert game.votes == {}
    one(game, Verb.VOTE, 0)
    one(game, Verb.VOTE, 0)
    one(game, Verb.WAIT)
    one(game, Verb.WAIT)
    assert game.votes == {1: 0, 2: 0}
    one(game, Verb.WAIT)
    one(game, Verb.VOTE, 4)

    assert game.votes == {1: 4, 2: 0}


def test_a_revealed_mayor_counts_three_and_whispers_no_more() -> None:
    game = town("Mayor", "Citizen", "Citizen", "Citizen", "Mafioso")
    one(game, Verb.REVEAL)
    for _ in range(4):
        one(game, Verb.WAIT)
    assert [o.verb for o in game.options(0)] == [Verb.SPEAK, Verb.VOTE, Verb.WAIT]
    one(game, Verb.VOTE, 4)

    assert game.phase is Phase.DEFENSE  # three of the three that are needed
    one(game, Verb.WAIT)
    game.resolve({p: Choice(Verb.GUILTY if p == 0 else Verb.INNOCENT) for p in game.waiting})
    assert kinds(game, "judged")[0] == {"player": 4, "guilty": 3, "innocent": 3, "condemned": False}


@pytest.mark.parametrize(
    ("guilty", "innocent", "condemned"), [(2, 1, True), (2, 2, False), (1, 2, False), (0, 0, False), (1, 0, True)]
)
def test_guilty_must_exceed_innocent_and_a_tie_acquits(guilty: int, innocent: int, condemned: bool) -> None:
    game = five()
    vote(game, 1, 3)
    one(game, Verb.SPEAK, text="It was not me.")
    assert game.phase is Phase.JUDGEMENT
    assert set(game.waiting) == {0, 2, 3, 4}  # not the accused
    judge(game, guilty, innocent)

    assert kinds(game, "judged")[0]["condemned"] is condemned
    assert (game.phase is Phase.LAST_WORDS) is condemned


def test_a_lynching_ends_the_day_after_the_last_words() -> None:
    game = five()
    vote(game, 1, 3)
    one(game, Verb.WAIT)
    judge(game, 3, 0)
    assert game.waiting == (1,)
    one(game, Verb.SPEAK, text="You will regret this.")

    assert not game.state.players[1].alive
    assert game.phase is Phase.NIGHT
    assert kinds(game, "death")[0]["role"] == "Citizen"


def test_there_are_three_trials_a_day_at_most() -> None:
    game = five(nomination_rounds=10)
    for _ in range(3):
        assert game.phase is Phase.NOMINATION
        vote(game, 4, 3)
        one(game, Verb.WAIT)
        judge(game, 0, 1)

    assert game.phase is Phase.NIGHT
    assert game.trials_today == 3


def test_votes_are_forgotten_after_a_trial() -> None:
    game = five(nomination_rounds=10)
    vote(game, 4, 3)
    one(game, Verb.WAIT)
    judge(game, 0, 1)

    assert game.votes == {}


def test_a_round_in_which_nobody_does_anything_ends_the_day() -> None:
    game = five(nomination_rounds=10)
    for _ in range(5):
        one(game, Verb.WAIT)

    assert game.phase is Phase.NIGHT


def test_there_is_no_vote_on_the_first_day_unless_the_rules_say_so() -> None:
    game = town("Sheriff", "Citizen", "Citizen", "Citizen", "Mafioso", first_day="talk", discussion_rounds=1)
    assert game.phase is Phase.DISCUSSION
    for _ in range(5):
        one(game, Verb.WAIT)

    assert game.phase is Phase.NIGHT
    assert five(first_day="none").phase is Phase.NIGHT


def test_a_ballot_lynches_whoever_has_most() -> None:
    game = five(lynching="ballot")
    assert game.phase is Phase.BALLOT
    game.resolve({0: Choice(Verb.VOTE, (4,)), 1: Choice(Verb.VOTE, (0,)), 2: Choice(Verb.VOTE, (4,)), 3: WAIT, 4: WAIT})

    assert not game.state.players[4].alive
    assert game.ending is not None
    assert game.ending.side == "Town"


def test_a_tied_ballot_is_decided_by_lot_among_those_who_lead() -> None:
    lynched = set()
    for seed in range(40):
        rules = rule_set("classic", {"first_day": "vote", "discussion_rounds": 0, "lynching": "ballot"})
        roles = ("Sheriff", "Citizen", "Citizen", "Citizen", "Mafioso")
        game = Game(Setup("test", roles), rules, seed, roles=roles)
        votes = {0: 1, 1: 2, 2: 1, 3: 2, 4: 3}
        game.resolve({p: Choice(Verb.VOTE, (t,)) for p, t in votes.items()})
        lynched |= {p.number for p in game.state.players if not p.alive}

    assert lynched == {1, 2}


@pytest.mark.parametrize(
    ("player", "choice", "why"),
    [
        (0, Choice(Verb.VOTE, (0,)), "You can't vote yourself."),
        (0, Choice(Verb.VOTE, (1,)), "You can't vote the dead."),
        (0, Choice(Verb.VOTE, (9,)), "There is no player number 9."),
        (0, Choice(Verb.VOTE, ()), "takes 1 players, not 0"),
        (0, Choice(Verb.VOTE, (2, 3)), "takes 1 players, not 2"),
        (0, Choice(Verb.GUILTY), "You can't guilty now (nomination)"),
        (0, Choice(Verb.SPEAK), "needs words"),
        (0, Choice(Verb.SPEAK, (), " \n "), "needs words"),
        (0, Choice(Verb.SPEAK, (), "x" * 401), "401 characters; at most 400"),
        (0, Choice(Verb.WAIT, (), "x"), "takes no words"),
        (1, Choice(Verb.WAIT), "The dead do not act."),
        (2, Choice(Verb.WAIT), "It is not your turn."),
        (7, Choice(Verb.WAIT), "There is no player number 7."),
        (-1, Choice(Verb.WAIT), "There is no player number -1."),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_happens(player: int, choice: Choice, why: str) -> None:
    game = five()
    vote(game, 1, 3)
    one(game, Verb.WAIT)
    judge(game, 3, 0)
    one(game, Verb.WAIT)
    while game.state.day == 1:
        game.resolve(dict.fromkeys(game.waiting, WAIT))
    while game.waiting != (0,):
        one(game, Verb.SPEAK, text="Hm.")
    before = len(game.log)

    assert why in game.refusal(player, choice)
    with pytest.raises(UsageError):
        game.resolve({0: WAIT, player: choice})
    assert len(game.log) == before


def test_a_round_waits_for_everybody_who_is_asked() -> None:
    game = five(lynching="ballot")

    with pytest.raises(UsageError, match="has not chosen"):
        game.resolve({0: WAIT})


def test_nobody_dies_for_three_days_and_it_is_a_draw() -> None:
    game = five()
    while not game.over:
        game.resolve(dict.fromkeys(game.waiting, WAIT))

    assert game.ending is not None
    assert game.ending.side is None
    assert game.ending.winners == ()
    assert game.state.day == 4


def test_the_parity_rule_ends_the_game_as_soon_as_evil_is_half() -> None:
    game = town("Citizen", "Citizen", "Citizen", "Mafioso", "Framer", lynching="ballot", parity=True)
    game.resolve(dict.fromkeys(game.waiting, Choice(Verb.VOTE, (0,))) | {0: WAIT})

    assert game.ending is not None
    assert game.ending.side == "Mafia"
    assert game.ending.winners == (3, 4)


def test_without_it_two_against_two_goes_on() -> None:
    game = town("Citizen", "Citizen", "Citizen", "Mafioso", "Framer", lynching="ballot")
    game.resolve(dict.fromkeys(game.waiting, Choice(Verb.VOTE, (0,))) | {0: WAIT})

    assert not game.over


def test_the_dead_win_with_their_side() -> None:
    game = five(lynching="ballot")
    game.resolve(dict.fromkeys(game.waiting, Choice(Verb.VOTE, (0,))) | {0: WAIT})
    while game.phase is not Phase.BALLOT:
        game.resolve(dict.fromkeys(game.waiting, WAIT))
    game.resolve({p: Choice(Verb.VOTE, (4,)) if p != 4 else WAIT for p in game.waiting})

    assert game.ending is not None
    assert game.ending.side == "Town"
    assert game.ending.winners == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("last", "side", "winners"),
    # The others are three Citizens, a Mafioso (5) and a Serial Killer (6), all dead.
    [
        (("Arsonist", "Serial Killer"), "Arsonist", {0}),
        (("Werewolf", "Mafioso"), "Werewolf", {0}),
        (("Serial Killer", "Godfather"), "Serial Killer", {0, 6}),
        (("Mafioso", "Vampire"), "Mafia", {0, 5}),
        (("Citizen", "Mafioso"), "Mafia", {1, 5}),
        (("Doctor", "Serial Killer"), "Serial Killer", {1, 6}),
        (("Survivor", "Mafioso"), "Mafia", {0, 1, 5}),
        (("Witch", "Mafioso"), "Mafia", {0, 1, 5}),
        (("Witch", "Doctor"), "Town", {1, 2, 3, 4}),
        (("Survivor", "Jester"), None, {0}),
    ],
)
def test_the_last_two(last: tuple[str, str], side: str | None, winners: set[int]) -> None:
    found = ending(the_last(*last).state)

    assert found is not None
    assert found.side == side
    assert set(found.winners) == winners


@pytest.mark.parametrize("townsman", ["Mayor", "Veteran", "Vigilante", "Jailor"])
def test_a_last_townsman_who_can_still_kill_or_outvote_plays_on(townsman: str) -> None:
    assert ending(the_last(townsman, "Framer").state) is None


def the_last(one: str, other: str) -> Game:
    game = town(one, other, "Citizen", "Citizen", "Citizen", "Mafioso", "Serial Killer")
    for player in game.state.players[2:]:
        player.alive = False
    return game


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
@pytest.mark.slow
def test_a_game_played_again_from_its_record_is_the_same_game(seed: int, rng: object) -> None:
    import random

    assert isinstance(rng, random.Random)
    game = Game(Setup("test", ("Any",) * 7), rule_set("classic", {"longest_game": 3}), seed)
    written = 0
    while not game.over:
        if rng.random() < 0.2:
            written += not game.write(rng.randrange(7), rng.choice(["will", "note", "notebook"]), f"Page {written}")
        game.resolve({p: random_choice(game, p, rng, talk=True) for p in game.waiting})
    again = Game.from_json(game.to_json())
    half = game.round // 2
    fork = game.fork(half)

    assert again.log == game.log
    assert again.ending == game.ending
    assert fork.round == half
    assert fork.log == game.log[: len(fork.log)]
    assert fork.state.public.getstate() == Game.from_json(game.to_json(), rounds=half).state.public.getstate()


def test_a_record_of_another_kind_is_refused() -> None:
    game = five()
    one(game, Verb.WAIT)
    good = game.to_json()
    for wrong in (
        {},
        {**good, "format": 2},
        {**good, "record": [[5, 0, "wait", [], "", False]]},
        {**good, "record": [[0, 0, "fly", [], "", False]]},
        {**good, "record": [[0, 0, "vote", [0], "", False]]},
        {**good, "rules": {"name": "classic", "gravity": True}},
        {**good, "roles": ["Nobody"] * 5},
    ):
        with pytest.raises(SnapshotError):
            Game.from_json(wrong)


def test_a_game_cannot_be_forked_where_it_has_not_been() -> None:
    with pytest.raises(UsageError, match="0 to 0"):
        five().fork(1)

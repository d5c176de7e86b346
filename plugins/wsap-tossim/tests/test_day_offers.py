"""What a player is offered by day follows what has happened since it was last asked."""

from __future__ import annotations

from wsap_tossim.engine.data.model import Choice, Phase, Verb
from wsap_tossim.engine.data.rules import rule_set
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.setups import setup

ROLES = ["Mayor", "Citizen", "Citizen", "Citizen", "Mafioso"]


def begun(**switches):
    return Game(setup(roles=ROLES), rule_set("classic", switches), 1, roles=ROLES)


def turn(game, player, verb=Verb.WAIT, *targets):
    assert game.waiting == (player,)
    game.resolve({player: Choice(verb, targets)})


def offered(game, player):
    return {o.verb: o.slots for o in game.options(player)}


def test_nobody_whispers_to_a_mayor_once_it_has_revealed():
    game = begun()
    turn(game, 0)
    assert offered(game, 1)[Verb.WHISPER] == ((0, 2, 3, 4),)
    for player in range(1, 5):
        turn(game, player)
    assert Verb.REVEAL in offered(game, 0)
    turn(game, 0, Verb.REVEAL)
    assert offered(game, 1)[Verb.WHISPER] == ((2, 3, 4),)


def test_a_revealed_mayor_is_offered_neither_revealing_nor_whispers():
    game = begun(discussion_rounds=3)
    for round_ in range(3):
        offers = offered(game, 0)
        assert (Verb.REVEAL in offers, Verb.WHISPER in offers) == ((True, True) if round_ == 0 else (False, False))
        turn(game, 0, Verb.REVEAL if round_ == 0 else Verb.WAIT)
        for player in range(1, 5):
            if game.waiting == (player,):
                game.resolve({player: Choice(Verb.WHISPER, (1 if player != 1 else 2,), "Hm.")})


def test_a_vote_changes_what_is_offered_and_its_withdrawal_changes_it_back():
    game = begun(first_day="vote", discussion_rounds=0)
    assert game.phase is Phase.NOMINATION
    before = game.options(0)
    assert offered(game, 0)[Verb.VOTE] == ((1, 2, 3, 4),)
    turn(game, 0, Verb.VOTE, 3)
    for player in range(1, 5):
        turn(game, player)
    assert offered(game, 0)[Verb.VOTE] == ((1, 2, 4),)
    assert Verb.UNVOTE in offered(game, 0)
    turn(game, 0, Verb.UNVOTE)
    for player in range(1, 5):
        turn(game, player)
    assert game.options(0) == before


def test_the_blackmailed_may_vote_but_neither_speak_nor_whisper():
    game = begun(first_day="vote", discussion_rounds=0)
    assert {Verb.SPEAK, Verb.WHISPER} <= set(offered(game, 0))
    game.state.players[0].blackmailed = True
    assert set(offered(game, 0)) == {Verb.VOTE, Verb.REVEAL, Verb.WAIT}


def test_the_dead_are_offered_to_nobody():
    game = begun(first_day="vote", discussion_rounds=0, lynching="ballot")
    assert game.options(0)[0].slots == ((1, 2, 3, 4),)
    game.resolve({p: Choice(Verb.VOTE, (1 if p != 1 else 2,)) for p in range(5)})
    assert not game.state.players[1].alive
    while game.phase is not Phase.BALLOT and not game.over:
        game.resolve({p: Choice(Verb.WAIT) for p in game.waiting})
    assert game.options(0)[0].slots == ((2, 3, 4),)

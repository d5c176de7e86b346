"""What a game keeps of itself is the same whenever it is read, and is let go with the game."""

from __future__ import annotations

import gc
import random
import weakref

from wsap_tossim.engine.data.model import Choice, Phase, Verb
from wsap_tossim.engine.data.rules import rule_set
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.random_play import play_out, random_choice
from wsap_tossim.engine.setups import setup

WORDS = {Verb.SPEAK, Verb.WHISPER, Verb.SAY}


def test_log_and_record_are_the_same_whether_they_are_read_each_round_or_at_the_end() -> None:
    read, unread = (Game(setup("nine"), rule_set("classic"), 4) for _ in range(2))
    rng = random.Random(4)
    while not read.over:
        before, begun = len(read.log), len(read.record)
        choices = {p: random_choice(read, p, rng, talk=True) for p in read.waiting}
        asked = read.waiting
        for game in (read, unread):
            game.carry_out(choices)
        assert [(e.player, e.verb, e.targets, e.text) for e in read.record[begun:]] == [(p, *choices[p]) for p in asked]
        assert read.starts[-1] == before < len(read.log)
    assert unread.log == read.log
    assert [event.number for event in unread.log] == list(range(len(unread.log)))
    assert unread.record == read.record
    assert unread.starts == read.starts


def test_a_will_written_between_two_rounds_stands_between_their_choices() -> None:
    game = Game(setup("lesson"), rule_set("classic"), 1)
    first, second, third = 0, 1, 2
    game.resolve({first: Choice(Verb.WAIT)})
    assert game.write(third, "will", "Mine.") == ""
    game.resolve({second: Choice(Verb.SPEAK, (), "Hello.")})
    assert [tuple(entry) for entry in game.record] == [
        (0, first, "wait", (), "", False),
        (1, third, "will", (), "Mine.", False),
        (1, second, "speak", (), "Hello.", False),
    ]


def test_choices_that_are_changed_afterwards_do_not_change_the_record() -> None:
    game = Game(setup("lesson"), rule_set("classic"), 1)
    choices = {0: Choice(Verb.SPEAK, (), "As it was.")}
    game.resolve(choices)
    choices[0] = Choice(Verb.WAIT)
    assert game.record[0].text == "As it was."


def test_who_does_not_talk_is_offered_all_that_needs_no_talk() -> None:
    game = Game(setup("any"), rule_set("classic", {"night_talk_rounds": 1}), 11)
    rng = random.Random(11)
    phases: set[Phase] = set()
    while not game.over:
        phases.add(game.phase)
        for player in game.waiting:
            everything = game.options(player)
            silent = game.options(player, talk=False)
            assert silent == tuple(option for option in everything if option.verb not in WORDS)
        game.carry_out({p: random_choice(game, p, rng, talk=True) for p in game.waiting})
    assert {Phase.DISCUSSION, Phase.NOMINATION, Phase.NIGHT} <= phases


def test_the_vote_of_a_mayor_who_reveals_later_counts_three() -> None:
    roles = ["Mayor", "Citizen", "Citizen", "Citizen", "Mafioso"]
    rules = rule_set("classic", {"first_day": "vote", "discussion_rounds": 0})
    game = Game(setup(roles=roles), rules, 1, roles=roles)
    game.resolve({0: Choice(Verb.VOTE, (4,))})
    for player in range(1, 5):
        game.resolve({player: Choice(Verb.WAIT)})
    game.resolve({0: Choice(Verb.REVEAL)})
    assert game.phase is Phase.NOMINATION
    game.resolve({1: Choice(Verb.VOTE, (4,))})  # three and one, of three that are needed
    assert game.phase is Phase.DEFENSE
    assert game.waiting == (4,)


def test_a_game_that_is_over_is_let_go_with_its_last_reference() -> None:
    game = play_out(Game(setup("five"), rule_set("quick"), 2), random.Random(2))
    kept = weakref.ref(game)
    on = gc.isenabled()
    gc.disable()
    try:
        del game
        assert kept() is None, "it does not wait for the cycles to be looked for"
    finally:
        if on:
            gc.enable()

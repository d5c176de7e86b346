"""A day's words by the token, as the reference has it: four characters begun are one token, and each morning is new."""

from __future__ import annotations

import random

import pytest

from wsap_core.errors import ConfigError
from wsap_tossim.engine.data.model import Choice, Phase, Verb
from wsap_tossim.engine.data.rules import rule_set
from wsap_tossim.engine.data.tokens import tokens
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.random_play import play_out
from wsap_tossim.engine.setups import Setup, setup
from wsap_tossim.options import TownOptions
from wsap_tossim.players.match import play_match
from wsap_tossim.players.scripted import ScriptedDecider
from wsap_tossim.world import Town

WAIT = Choice(Verb.WAIT)


def five(**switches: object) -> Game:
    """Return a game with 10 tokens a day, which are 40 characters, and a first day with votes."""
    roles = ("Sheriff", "Citizen", "Citizen", "Citizen", "Mafioso")
    short = {"first_day": "vote", "discussion_rounds": 2, "nomination_rounds": 1, "tokens_a_day": 10}
    return Game(Setup("test", roles), rule_set("classic", short | switches), 1, roles=roles)


def one(game: Game, verb: Verb, *targets: int, text: str = "") -> int:
    """Have whoever has the floor do something; return who it was."""
    (player,) = game.waiting
    game.resolve({player: Choice(verb, targets, text)})
    return player


def can(game: Game, player: int) -> list[Verb]:
    return [o.verb for o in game.options(player)]


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a", 1), ("four", 1), ("fiver", 2), ("ä" * 8, 2), (" " * 9, 3)])
def test_four_characters_begun_are_a_token(text: str, count: int) -> None:
    assert tokens(text) == count


def test_what_is_longer_than_what_is_left_is_refused_in_a_sentence() -> None:
    game = five()
    assert game.tokens_left(0) == 10
    assert game.refusal(0, Choice(Verb.SPEAK, (), "x" * 40)) == ""
    told = game.refusal(0, Choice(Verb.SPEAK, (), "x" * 41))
    assert told == "That is 11 tokens, and you have 10 left today: say it in at most 40 characters."
    one(game, Verb.SPEAK, text="x" * 33)
    assert game.tokens_left(0) == 1
    for _ in range(4):
        one(game, Verb.WAIT)
    told = game.refusal(0, Choice(Verb.WHISPER, (1,), "Hello"))
    assert told == "That is 2 tokens, and you have 1 left today: say it in at most 4 characters."
    assert game.refusal(0, Choice(Verb.WHISPER, (1,), "Psst")) == ""


def test_who_has_used_all_up_can_do_what_needs_no_words_and_the_others_can_talk() -> None:
    game = five(discussion_rounds=1)
    one(game, Verb.WHISPER, 1, text="y" * 40)
    assert can(game, 1) == [Verb.SPEAK, Verb.WHISPER, Verb.WAIT]
    for _ in range(4):
        one(game, Verb.WAIT)
    assert game.phase is Phase.NOMINATION
    assert can(game, 0) == [Verb.VOTE, Verb.WAIT]
    assert "You can't speak now" in game.refusal(0, Choice(Verb.SPEAK, (), "a"))


def test_the_defense_costs_words_too() -> None:
    game = five(discussion_rounds=0)
    one(game, Verb.VOTE, 4)
    one(game, Verb.VOTE, 4)
    one(game, Verb.VOTE, 4)
    assert game.phase is Phase.DEFENSE
    one(game, Verb.SPEAK, text="z" * 40)
    game.resolve({p: Choice(Verb.GUILTY) for p in game.waiting})
    assert game.phase is Phase.LAST_WORDS
    assert can(game, 4) == [Verb.WAIT]


def test_the_night_is_free_and_each_morning_all_have_the_whole_number_again() -> None:
    roles = ("Sheriff", "Citizen", "Citizen", "Citizen", "Mafioso", "Framer")
    rules = rule_set("classic", {"discussion_rounds": 1, "tokens_a_day": 1})
    game = Game(Setup("test", roles), rules, 1, roles=roles)
    for _ in range(6):
        one(game, Verb.SPEAK, text="Hey.")
    while game.phase is not Phase.TALK_AT_NIGHT:
        game.resolve(dict.fromkeys(game.waiting, WAIT))
    assert game.options(4)[0].verb is Verb.SAY
    game.resolve({p: Choice(Verb.SAY, (), "Whom do we kill tonight?") for p in game.waiting})
    while game.phase is not Phase.DISCUSSION:
        game.resolve(dict.fromkeys(game.waiting, WAIT))
    assert [game.tokens_left(p) for p in range(6)] == [1] * 6


def test_without_the_switch_there_is_no_limit() -> None:
    game = five(tokens_a_day=0)
    assert game.tokens_left(0) is None
    for _ in range(10):
        one(game, Verb.SPEAK, text="x" * 400)
    assert Verb.SPEAK in can(game, game.waiting[0])


def test_the_limit_is_a_number_that_can_be() -> None:
    with pytest.raises(ConfigError, match="The rule tokens_a_day is -1; it must be from 0 to 100000"):
        rule_set("classic", {"tokens_a_day": -1})


def test_what_is_left_is_shown_in_the_turn() -> None:
    town = Town(TownOptions.read({"mode": "five", "tokens_a_day": 10}), 3)
    assert "at most 10 tokens, which are 40 characters" in town.game_description
    assert "You have 10 tokens left to speak and whisper today: 40 characters in all." in shown(town, 0)
    one(town.game, Verb.SPEAK, text="x" * 33)
    for _ in range(4):
        one(town.game, Verb.WAIT)
    assert "You have 1 tokens left" not in shown(town, 0)
    assert "You have 1 token left to speak and whisper today: 4 characters in all." in shown(town, 0)
    one(town.game, Verb.SPEAK, text="Bye.")
    assert "You have" not in shown(town, 0).split("**Today's Live Chat")[-1], "it is not asked now"
    plain = Town(TownOptions.read({"mode": "five"}), 3)
    assert "token" not in plain.game_description + shown(plain, 0)


def shown(town: Town, player: int) -> str:
    return town.observation(f"player-{player + 1}").to_text()


@pytest.mark.parametrize("floor", ["round robin", "bids"])
def test_a_game_is_the_same_again_from_its_record(floor: str) -> None:
    rules = rule_set("classic", {"floor": floor, "tokens_a_day": 12})
    for seed in range(6):
        played = play_out(Game(setup("nine"), rules, seed), random.Random(seed), talk=True)
        assert Game.from_json(played.to_json()).log == played.log


@pytest.mark.parametrize("floor", ["round robin", "bids"])
def test_scripted_players_say_no_more_than_they_have(floor: str) -> None:
    game = Game(setup("nine"), rule_set("classic", {"floor": floor, "tokens_a_day": 30}), 4)
    rng, names = random.Random(4), [f"Player {n + 1}" for n in range(9)]
    played = play_match(game, [ScriptedDecider(n, rng, names) for n in range(9)])
    assert played.refused == []
    said: dict[tuple[int, int], int] = {}
    for event in game.log:
        if event.kind in ("speech", "whisper"):
            key = (event.day, event.data["player"])
            said[key] = said.get(key, 0) + -(-len(event.data["text"]) // 4)
    assert 25 < max(said.values()) <= 30

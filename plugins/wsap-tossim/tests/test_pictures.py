"""The town as something to look at: who is who, as far as it is known, and what was said."""

from __future__ import annotations

import random

from wsap_core.models import ChatBlock, TableBlock
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.random_play import random_choice
from wsap_tossim.engine.rules import rule_set
from wsap_tossim.engine.setups import setup
from wsap_tossim.knowledge import Knowledge, seen_by
from wsap_tossim.pictures import town_view

NAMES = ("Ann", "Bob", "Cid", "Dora", "Eve")


def played(seed: int) -> Game:
    game, rng = Game(setup("five"), rule_set("quick"), seed), random.Random(seed)
    while not game.over and not (game.votes and any(not p.alive for p in game.state.players)):
        game.carry_out({p: random_choice(game, p, rng, talk=True) for p in game.waiting})
    return game


def test_the_picture_tells_who_died_as_what_and_who_votes_for_whom() -> None:
    game = next(g for g in map(played, range(50)) if g.votes and not g.over)
    view = town_view(Knowledge(None).take_all(seen_by(None, game.log)), NAMES)
    table = next(b for b in view.blocks if isinstance(b, TableBlock))
    assert tuple(table.columns) == ("player", "known of it", "votes for")
    for player, row in zip(game.state.players, table.rows, strict=True):
        vote = game.votes.get(player.number)
        told = row[1].startswith("died day") if not player.alive else row[1] == ""
        assert told
        assert row[2] == ("" if vote is None else NAMES[vote])


def test_all_roles_are_shown_to_onlookers_who_may_see_them_and_what_happened_is_told_by_the_town() -> None:
    game = next(g for g in map(played, range(50)) if g.votes and not g.over)
    public = Knowledge(None).take_all(seen_by(None, game.log))
    view = town_view(public, NAMES, game)
    table = next(b for b in view.blocks if isinstance(b, TableBlock))
    for player, row in zip(game.state.players, table.rows, strict=True):
        assert player.role.name in row[1]
    chat = next(b for b in view.blocks if isinstance(b, ChatBlock))
    assert any(line.speaker == "Town" and "votes to try" in line.text for line in chat.lines)

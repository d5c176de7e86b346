"""TextArena's games as games for agents, by WSAP's own checker and beside TextArena itself."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

import pytest
import textarena

from wsap_check import run_checks
from wsap_core.errors import MissingServiceError, SnapshotError, UsageError
from wsap_core.protocol import Action
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import Context, derive_seed
from wsap_core.specs import EpisodeSummary
from wsap_nexus import api
from wsap_textarena.catalogue import games
from wsap_textarena.game import PLAY, TextArenaGame, players_of, seats_of
from wsap_textarena.plugin import BY_FORFEIT, FORFEITED, forfeits, mean_return

GAMES = (
    "2048-v0-ultra-easy", "Bandit-v0", "Battleship-v0", "Blackjack-v0", "Briscola-v0",
    "ColonelBlotto-v0-small", "Countdown-v0", "Crosswords-v0", "Crusade-v0", "Cryptarithm-v0",
    "FifteenPuzzle-v0", "FrozenLake-v0", "GermanWhist-v0", "GuessTheNumber-v0", "HighSociety-v0",
    "IteratedMatchingPennies-v0", "IteratedRockPaperScissors-v0", "KuhnPoker-v0", "LiarsDice-v0-small",
    "LightsOut-v0", "LogicPuzzle-v0", "Mastermind-v0", "MemoryGame-v0", "Othello-v0-tiny", "PegJump-v0",
    "QuantumTicTacToe-v0", "Secretary-v0", "SimpleNegotiation-v0-short", "SpiteAndMalice-v0", "Surround-v0",
    "Tak-v0", "TicTacToe-v0", "TowerOfHanoi-v0", "TruthAndDeception-v0", "UltimateTicTacToe-v0",
)  # fmt: skip


def begun(name: str, seed: int = 0, players: int = 2) -> TextArenaGame:
    game = TextArenaGame(name, players, Context.create(seed))
    game.reset(seed)
    return game


def say(game: TextArenaGame, *texts: str) -> None:
    for text in texts:
        (seat,) = game.to_move()
        game.apply({seat: Action(PLAY, {"text": text})})


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_it_conforms(name: str) -> None:
    report = run_checks(load_adapter_spec(f"textarena:{name}"), steps=10, subprocesses=name == "TicTacToe-v0")
    assert report.ok, report.findings


def test_it_is_the_game_of_textarena_that_is_played() -> None:
    game = begun("TicTacToe-v0", 4)
    moves = ("[4]", "[0]", "[1]", "[2]", "[7]")
    say(game, *moves)
    original = textarena.make("TicTacToe-v0-raw")
    original.reset(num_players=2, seed=derive_seed(4, 0))
    for move in moves:
        original.step(move)
    rewards, facts = original.close()
    assert list(game.returns().values()) == [rewards[0], rewards[1]] == [1, -1]
    assert facts[0]["reason"] in game.message("seat-1", 1.0)
    assert not game.to_move()
    assert game.achieved("seat-2") == (), "a loss is no forfeit"


def test_a_seat_reads_the_rules_and_what_happened() -> None:
    game = begun("TicTacToe-v0")
    say(game, "[4]")
    text = game.see("seat-2").to_text()
    assert "[GAME] You are Player 1 in Tic Tac Toe." in text
    assert "[Player 0] [4]" in text
    assert "You are Player 0" not in text, "that was for the other seat alone"


def test_a_forfeit_is_no_loss() -> None:
    game = begun("TicTacToe-v0")
    say(game, "[4]", "[4]")
    assert game.to_move() == ("seat-2",), "it may try again"
    say(game, "[4]")
    assert game.returns() == {"seat-1": 1.0, "seat-2": -1.0}
    assert (game.achieved("seat-1"), game.achieved("seat-2")) == ((BY_FORFEIT,), (FORFEITED,))
    assert "Forfeited by moves that are not possible: seat-2." in game.message("seat-1", 1.0)

    def episodes(*kinds: Sequence[str]) -> list[EpisodeSummary]:
        return [EpisodeSummary(0, 1, -1.0 if kind else 1.0, tuple(kind), True) for kind in kinds]

    mixed = episodes((), (FORFEITED,), (BY_FORFEIT,), ())
    assert mean_return(mixed) == 1.0
    assert forfeits(mixed) == 25.0
    assert (mean_return([]), forfeits([])) == (0.0, 0.0)


def test_games_that_are_played_at_once_do_not_share_their_chance() -> None:
    alone = begun("LiarsDice-v0", 3)
    say(alone, "[Bid: 1, 2]", "[Call]")
    text = alone.see("seat-1").to_text()
    random.seed(77)
    mine = random.random()
    random.seed(77)
    one, other = begun("LiarsDice-v0", 3), begun("LiarsDice-v0", 4)
    for game in (one, other, one, other):
        say(game, "[Bid: 1, 2]" if not game.dump() else "[Call]")
    assert one.see("seat-1").to_text() == text
    assert other.see("seat-1").to_text() != text
    assert random.random() == mine, "nor change that of others"


def test_a_snapshot_is_gone_on_from_with_the_same_chance() -> None:
    game, other = begun("LiarsDice-v0", 3), begun("LiarsDice-v0", 8)
    say(game, "[Bid: 1, 2]")
    saved = game.snapshot()
    say(game, "[Call]")
    other.restore(saved)
    say(other, "[Call]")
    assert [other.see(seat) for seat in other.seats] == [game.see(seat) for seat in game.seats]


@pytest.mark.parametrize("damage", ["text", {"0": "a"}, [1], [["[1]"]], ["[4]"] * 9])
def test_what_was_not_said_is_no_snapshot(damage: object) -> None:
    from wsap_core.authoring.packing import pack

    game = begun("TicTacToe-v0")
    say(game, "[4]")
    state, before = game.unpacked(game.snapshot()), game.see("seat-2")
    with pytest.raises(SnapshotError):
        game.restore(pack(game._header, {**state, "game": damage}))
    assert (game.dump(), game.see("seat-2")) == (["[4]"], before)


def test_the_same_seed_and_moves_give_the_same_trajectory() -> None:
    hashes = [
        api.play("textarena:LiarsDice-v0", "random", seed=seed, episodes=2, record=False).to_json()["trajectory_hash"]
        for seed in (3, 3, 4)
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_game_has_as_many_players_as_it_takes() -> None:
    assert seats_of("TicTacToe-v0", None) == 2
    assert seats_of("GuessTheNumber-v0", None) == 1
    assert seats_of("LiarsDice-v0", 4) == 4
    with pytest.raises(UsageError, match="TicTacToe-v0 can't be played by 3 players"):
        seats_of("TicTacToe-v0", 3)
    for given in ("0", "16", "x", "-1"):
        with pytest.raises(UsageError, match="must be a number from 1 to 15"):
            players_of({"players": given})


@pytest.mark.parametrize(
    ("name", "words"),
    [("NoSuch-v0", "no game 'NoSuch-v0'"), ("TwentyQuestions-v0", "can't be played: "), ("", "no game ''")],
)
def test_what_can_t_be_played_is_refused_in_one_sentence(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        seats_of(name, None)
    assert "\n" not in str(raised.value)


def test_most_games_can_be_played_and_the_others_say_why_not() -> None:
    known = games()
    kinds = {name.partition("-v")[0] for name, why in known.items() if not why}
    assert len(kinds) >= 65
    assert known["TicTacToe-v0"] == ""


def test_without_textarena_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textarena", None)
    with pytest.raises(MissingServiceError, match=r"need the package textarena.*wsap-textarena"):
        games()

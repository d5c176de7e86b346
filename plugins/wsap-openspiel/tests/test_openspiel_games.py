"""OpenSpiel's games as games for agents, by WSAP's own checker and beside OpenSpiel itself."""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any, ClassVar

import pyspiel
import pytest

from wsap_check import run_checks
from wsap_core.errors import MissingServiceError, SnapshotError, UsageError
from wsap_core.protocol import Action, Observation, Possible
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import Context
from wsap_nexus import api
from wsap_openspiel.catalogue import games, loaded
from wsap_openspiel.game import PLAY, OpenSpielGame

GAMES = (
    "2048", "bargaining", "battleship", "blackjack", "blotto", "breakthrough", "catch", "checkers", "coin_game",
    "colored_trails", "connect_four", "coop_box_pushing", "coordinated_mp", "crazy_eights", "dark_hex", "euchre",
    "first_sealed_auction", "goofspiel", "hanabi", "hex(board_size=5)", "kuhn_poker", "leduc_poker", "liars_dice",
    "matrix_pd", "nim", "oshi_zumo", "pig", "repeated_game(stage_game=matrix_pd(),num_repetitions=3)", "sheriff",
    "snake", "solitaire", "tic_tac_toe", "tiny_hanabi", "trade_comm",
)  # fmt: skip


def begun(call: str, seed: int = 0) -> OpenSpielGame:
    game = OpenSpielGame(call, Context.create(seed))
    game.reset(seed)
    return game


def choices(game: OpenSpielGame, seat: str) -> list[str]:
    (offer,) = game.legal(seat)
    return list(offer.choices["move"])


def played(game: OpenSpielGame, chance: Random) -> Iterator[dict[str, Action]]:
    """Play at random to the end, and yield each round's moves."""
    while movers := game.to_move():
        moves = {seat: Action(PLAY, {"move": chance.choice(choices(game, seat))}) for seat in movers}
        game.apply(moves)
        yield moves


@pytest.mark.slow
@pytest.mark.parametrize("call", GAMES)
def test_it_conforms(call: str) -> None:
    report = run_checks(load_adapter_spec(f"openspiel:{call}"), steps=15, subprocesses=call == "kuhn_poker")
    assert report.ok, report.findings


def test_hidden_cards_are_dealt_anew_without_the_other_player_seeing_it() -> None:
    report = run_checks(load_adapter_spec("openspiel:kuhn_poker"), only=["secrets", "zero-sum"], steps=60)
    assert [outcome.status for outcome in report.checks] == ["passed", "passed"], report.findings


@pytest.mark.parametrize("call", ["tic_tac_toe", "kuhn_poker", "goofspiel", "hanabi"])
def test_it_is_the_game_of_openspiel_that_is_played(call: str) -> None:
    game, state = begun(call, 5), pyspiel.load_game(call).new_initial_state()
    log = iter(game.dump())
    for _ in played(game, Random(1)):
        log = iter(game.dump())
    for move in log:
        if isinstance(move, list):
            state.apply_actions(move)
        else:
            state.apply_action(move)
    assert state.is_terminal()
    assert list(game.returns().values()) == state.returns()


def test_a_seat_sees_its_own_card_and_not_the_others() -> None:
    seen: dict[tuple[str, int], set[str]] = defaultdict(set)
    deals = set()
    for seed in range(40):
        game = begun("kuhn_poker", seed)
        cards = game.dump()
        deals.add(tuple(cards))
        for seat, card in zip(game.seats, cards, strict=True):
            text = game.see(seat).drawing
            assert text.startswith(str(card))
            seen[seat, card].add(text)
    assert len(deals) == 6, "chance comes from the seed"
    assert [len(texts) for texts in seen.values()] == [1] * 6, "whatever the other player has"


def test_the_same_seed_and_moves_give_the_same_trajectory() -> None:
    hashes = Counter(
        api.play("openspiel:leduc_poker", "random-legal", seed=seed, episodes=3, record=False).trajectory_hash
        for seed in (3, 3, 4)
    )
    assert sorted(hashes.values()) == [1, 2]


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("bridge_uncontested_bidding", marks=pytest.mark.slow),
        "negotiation",
        "stones_and_gems",
        "tarok",
    ],
)
def test_chance_that_a_game_draws_itself_comes_from_the_seed_too(call: str) -> None:
    one, same, other = begun(call, 3), begun(call, 3), begun(call, 5)
    for _ in zip(played(one, Random(1)), range(30), strict=False):
        pass
    same.load(one.dump())
    seen = [[game.see(seat) for seat in game.seats] for game in (one, same)]
    assert seen[0] == seen[1]
    again = begun(call, 3)
    for moves in played(again, Random(2)):
        if [again.see(seat) for seat in again.seats] != [other.see(seat) for seat in other.seats]:
            break
        other.apply(moves)
    else:
        pytest.fail("another seed made no difference")


def test_moves_that_differ_only_in_case_are_told_apart() -> None:
    # A pawn and a bishop can both take on c3.
    game = begun("chess")
    for move in ("b4", "e5", "b5", "Bb4", "Nc3", "h6", "a3", "h5", "b6", "h4", "Bb2", "h3"):
        (seat,) = game.to_move()
        assert not game.refusal(seat, Action(PLAY, {"move": move})), move
        game.apply({seat: Action(PLAY, {"move": move})})
    (seat,) = game.to_move()
    assert not game.refusal(seat, Action(PLAY, {"move": "AXB4"})), "in any case where that is clear"
    assert game._move(seat, "axb4") == game._move(seat, "AXB4") is not None


def test_a_move_that_is_not_possible_is_refused_with_similar_ones() -> None:
    game = begun("kuhn_poker")
    assert game.refusal("seat-1", Action(PLAY, {"move": "Bett"})) == (
        "'Bett' is no move that is possible now. Did you mean 'Bet'?"
    )
    assert "There are: Pass, Bet." in game.refusal("seat-1", Action(PLAY, {"move": "\x1b[31mx"}))
    assert "\x1b" not in game.refusal("seat-1", Action(PLAY, {"move": "\x1b[31mx"}))


def test_of_very_many_moves_the_text_tells_the_first_and_how_many_there_are() -> None:
    game = begun("battleship")
    seen = game.observation("seat-1")
    (offer,) = seen.available_actions or ()
    assert isinstance(offer, Possible)
    assert len(offer.choices["move"]) == 180
    text = seen.to_text()
    assert len(text) < 8000
    assert "more, written alike" in text


@pytest.mark.parametrize("call", ["kuhn_poker", "goofspiel", "tic_tac_toe"])
@pytest.mark.parametrize(
    "damage", ["none", [0, 0, 0], [99], [[0, 1]], [0, 1, "1"], [0, 1, True], {"0": 1}, [2**70], [-1]]
)
def test_moves_that_are_not_possible_are_no_snapshot(call: str, damage: Any) -> None:
    game = begun(call)
    saved = game.snapshot()
    before = game.dump()
    state = game.unpacked(saved)
    with pytest.raises(SnapshotError):
        game.restore(repacked(game, {**state, "game": damage}))
    assert game.dump() == before


def repacked(game: OpenSpielGame, state: Any) -> bytes:
    from wsap_core.authoring.packing import pack

    return pack(game._header, state)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("nosuch", "no game 'nosuch'"),
        ("mfg_garnet", "population"),
        ("crossword", "can't be listed"),
        ("misere", "needs parameters, such as misere"),
        ("efg_game(filename=/etc/passwd)", "read from a file"),
        ("bargaining(instances_file=/etc/passwd)", "names a file"),
        ("hex(board_size=100000)", "above 10,000"),
        ("hex(board_size=5", "closing parenthesis"),
        ("hex(foo=1)", "Unknown parameter 'foo'"),
        ("hex(board_size=abc)", "Wrong type"),
        ("kuhn_poker(players=99)", "can't load"),
        ("misere(game=nosuch())", "can't load"),
    ],
)
def test_what_can_t_be_played_is_refused_in_one_sentence(call: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        loaded(call)
    assert "\n" not in str(raised.value)


def test_most_games_can_be_played_and_the_others_say_why_not() -> None:
    known = games()
    assert sum(not why for why in known.values()) >= 100
    assert all(why.strip() for name, why in known.items() if name.startswith(("mfg_", "efg_", "nfg_")))
    for name, why in known.items():
        if "such as" in why:
            assert loaded(why.rpartition("such as ")[2]).num_players() >= 1, name


def test_without_openspiel_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(MissingServiceError, match=r"need the package open_spiel.*wsap-openspiel"):
        games()


def test_a_list_of_games_imports_no_openspiel() -> None:
    import subprocess

    script = "import sys, wsap_openspiel.plugin as p; list(p.wsap_adapters()); sys.exit('pyspiel' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


class Equilibrium:
    """Kuhn's equilibrium of the first player's family with a given share of bluffs, and the second player's only one.

    Its card and the moves are read from the observation's text.
    """

    bluffs: ClassVar[float] = 0.2

    def __init__(self, context: Context) -> None:
        self.chance = context.random

    def initialize(self, *about: object) -> None: ...

    def decide(self, observation: Observation) -> Action:
        share = self.share(observation.to_text())
        return Action(PLAY, {"move": "Bet" if self.chance.random() < share else "Pass"})

    @classmethod
    def share(cls, text: str) -> float:
        """Return how often to bet, which is also to call."""
        known = text.partition("What you know of all moves so far:\n")[2].split()[0]
        card, moves = int(known[0]), known[1:]
        if moves == "":
            return (cls.bluffs, 0.0, 3 * cls.bluffs)[card]
        if moves == "p":
            return (1 / 3, 0.0, 1.0)[card]
        if moves == "b":
            return (0.0, 1 / 3, 1.0)[card]
        return (0.0, 1 / 3 + cls.bluffs, 1.0)[card]

    def reflect(self, result: object) -> None: ...

    def plan(self, goals: object) -> list[str]:
        return []


def outcomes(state: Any) -> dict[float, float]:
    """Return each return of the first player -> its probability, if both play `Equilibrium`."""
    if state.is_terminal():
        return {state.returns()[0]: 1.0}
    if state.is_chance_node():
        branches = state.chance_outcomes()
    else:
        bet = Equilibrium.share(f"What you know of all moves so far:\n{state.information_state_string()}")
        branches = [(0, 1 - bet), (1, bet)]
    found: dict[float, float] = defaultdict(float)
    for move, share in branches:
        for value, chance in outcomes(state.child(move)).items():
            found[value] += share * chance
    return found


@pytest.mark.slow
def test_kuhn_poker_agrees_with_its_exact_value() -> None:
    """Over 5,000 games in equilibrium the first player loses 1/18 a game, within an interval of 99 %."""
    exact = outcomes(pyspiel.load_game("kuhn_poker").new_initial_state())
    value = sum(pay * chance for pay, chance in exact.items())
    assert value == pytest.approx(-1 / 18), "by OpenSpiel's own rules"
    deviation = math.sqrt(sum((pay - value) ** 2 * chance for pay, chance in exact.items()))

    count = 5000
    played = api.play("openspiel:kuhn_poker", Equilibrium, seed=1, episodes=count, record=False).to_json()
    assert played["episodes"] == count
    first, second = (seat["reward"] for seat in played["seats"])
    assert first == -second
    interval = 2.576 * deviation / math.sqrt(count)
    assert abs(first / count - value) < interval < 0.06


def test_a_new_deal_is_dealt_once_and_nobody_s_moves_are_in_it() -> None:
    one, other = OpenSpielGame("kuhn_poker", Context.create(3)), OpenSpielGame("kuhn_poker", Context.create(3))
    dealt = one.dump()
    one.apply({one.to_move()[0]: Action(PLAY, {"move": "Bet"})})
    assert other.dump() == dealt
    other.load(one.dump())
    assert other.dump() == one.dump()
    assert str(other._state) == str(one._state)
    one.reset(3)
    assert one.dump() == dealt
    with pytest.raises(ValueError, match="is nothing that chance can draw here"):
        other.load([7, *dealt[1:]])

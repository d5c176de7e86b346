"""Who sits where: everybody plays everything alike, and all follows from the seed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core.errors import ConfigError
from wsap_tossim.engine.setups import deal, setup
from wsap_tossim.engine.victory import side_of
from wsap_tossim.tournament.plan import Settings, entrants_of, fixture


def field(many: int) -> tuple[str, ...]:
    return tuple(f"e{n}=scripted" for n in range(many))


@given(
    many=st.integers(2, 12),
    seed=st.integers(0, 1000),
    block=st.integers(0, 50),
    mode=st.sampled_from(["five", "nine", "any:7"]),
)
@settings(max_examples=25, deadline=None)
def test_over_a_block_each_entrant_plays_each_seat_once(many: int, seed: int, block: int, mode: str) -> None:
    cup = Settings(entrants_of(field(many)), {"mode": mode}, seed)
    games = [fixture(cup, block * many + turn) for turn in range(many)]
    assert {g.seed for g in games} == {games[0].seed}, "a block has one deal"
    assert {g.block for g in games} == {block}
    roles = [r.name for r in deal(setup(mode), games[0].seed)]
    for seat in range(len(roles)):
        assert sorted(g.seats[seat] for g in games) == list(range(many))
    played = {e: Counter(roles[s] for g in games for s, who in enumerate(g.seats) if who == e) for e in range(many)}
    assert all(counts == Counter(roles) for counts in played.values())
    for g in games:
        counts = Counter(g.seats)
        assert max(counts.values()) - min(counts.get(e, 0) for e in range(many)) <= 1


@pytest.mark.parametrize("mode", ["nine", "classic", "any:10"])
def test_sides_go_to_one_entrant_each(mode: str) -> None:
    cup = Settings(entrants_of(field(3)), {"mode": mode}, 5, "sides")
    for number in range(9):
        game = fixture(cup, number)
        players: dict[str, set[int]] = {}
        for seat, role in enumerate(deal(setup(mode), game.seed)):
            players.setdefault(side_of(role) or f"seat {seat}", set()).add(game.seats[seat])
        assert all(len(who) == 1 for who in players.values())
    for seat in range(len(fixture(cup, 0).seats)):
        assert sorted(fixture(cup, n).seats[seat] for n in range(3)) == [0, 1, 2]


def test_names_are_shuffled_and_seeds_differ() -> None:
    cup = Settings(entrants_of(field(2)), {"mode": "five"}, 1)
    games = [fixture(cup, n) for n in range(20)]
    assert len({g.names for g in games}) == 20
    assert all(len(set(g.names)) == 5 for g in games)
    assert len({g.seed for g in games}) == 10
    assert len({s for g in games for s in g.decider_seeds}) == 100
    named = Settings(cup.entrants, {"mode": "five", "names": "Al, Bea, Col, Dot, Em"}, 1)
    assert {frozenset(fixture(named, n).names) for n in range(4)} == {frozenset(("Al", "Bea", "Col", "Dot", "Em"))}
    assert fixture(cup, 3) == fixture(cup, 3) != fixture(Settings(cup.entrants, cup.options, 2), 3)


def test_entrants_are_scripted_random_and_models_by_address() -> None:
    found = entrants_of(["scripted", "random", "ollama/qwen3:8b", "big=openai/gpt=4"])
    assert [(e.label, e.kind, e.address) for e in found] == [
        ("scripted", "scripted", ""),
        ("random", "random", ""),
        ("ollama/qwen3:8b", "model", "ollama/qwen3:8b"),
        ("big", "model", "openai/gpt=4"),
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["scripted"], "2 to 50 entrants, not 1"),
        (["scripted", "scripted"], "called 'scripted'; rename one: other=scripted"),
        (["scripted", "rndom"], "'rndom' is not an entrant; use scripted, random, or the address"),
        (["=scripted", "random"], "label '' has 0 characters"),
        ([f"{'x' * 61}=scripted", "random"], "has 61 characters"),
    ],
)
def test_a_wrong_field_is_refused_in_a_sentence(words: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        entrants_of(words)


def test_settings_that_cannot_be_are_refused() -> None:
    two = entrants_of(field(2))
    with pytest.raises(ConfigError, match="no mode 'nein'"):
        Settings(two, {"mode": "nein"})
    with pytest.raises(ConfigError, match="must be mixed or sides"):
        Settings(two, {}, 0, "teams")
    with pytest.raises(ConfigError, match="The entrants determine the models"):
        Settings(two, {}, model_options={"model": "openai/x"})
    with pytest.raises(ConfigError, match="they can't contain an API key"):
        Settings(two, {}, model_options={"model.api_key": "sk-123"})
    assert Settings(two, {}, model_options={"model.api_key": "env:KEY"})

"""What players are asked about a day, and how their answers are read."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_llm.schemas.strict_schema import strict_violation
from wsap_tossim.engine.game import Game
from wsap_tossim.options import TownOptions
from wsap_tossim.players.match import play_match
from wsap_tossim.players.scripted import ScriptedDecider
from wsap_tossim.tournament.questions import evenings, percentages, question, schema, scripted_beliefs

NAMES = ("Ann", "Bo", "Cy", "Dana", "Eve")
ABOUT = (0, 1, 3)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"Ann": 10, "Bo": 0, "Dana": 100}', {0: 0.1, 1: 0.0, 3: 1.0}),
        ('<think>{"Ann": 90}</think>So: ```json\n{"Ann": 35.0, "bo ": "5 %"}\n```', {0: 0.35, 1: 0.05}),
        ('{"beliefs": {"Ann": 10, "Bo": 20}}', {0: 0.1, 1: 0.2}),
        ('{"Ann": 10} or rather {"Ann": 20, "Bo": 20}', {1: 0.2}),
        ('{"Ann": 0.7, "Bo": 101, "Dana": -1}', {}),
        ('{"Ann": true, "Bo": null, "Dana": "very"}', {}),
        ('{"Ann": "1e1", "Bo": "²", "Dana": [50]}', {}),
        ('{"Cy": 50, "Eve": 50, "Zoe": 50, "Ann": 50}', {0: 0.5}),
        ("Ann is surely evil. 90 %", {}),
        ("wait", {}),
        ("", {}),
        ('{"Ann": 10, "Bo": 2', {0: 0.1}),
    ],
)  # fmt: skip
def test_only_whole_per_cents_of_living_players_are_read(text: str, read: dict[int, float]) -> None:
    assert percentages(text, ABOUT, NAMES) == read


@given(st.text(max_size=200))
def test_any_text_is_read_without_a_fault(text: str) -> None:
    found = percentages(text, ABOUT, NAMES)
    assert set(found) <= set(ABOUT)
    assert all(0 <= chance <= 1 for chance in found.values())


def test_an_answer_is_bound_to_the_living_others_within_what_every_engine_takes() -> None:
    made = schema(ABOUT, NAMES)
    assert made["required"] == ["Ann", "Bo", "Dana"]
    assert strict_violation(made) is None
    assert made["properties"]["Ann"]["enum"][:3] == [0, 5, 10]
    assert made["properties"]["Ann"]["enum"][-1] == 100


def played(seed: int) -> tuple[Game, tuple[str, ...], list[tuple[int, int, dict[int, float]]]]:
    options = TownOptions.read({"mode": "nine"})
    game = Game(options.setup, options.rules, seed)
    minds = [ScriptedDecider(n, random.Random(n), options.names) for n in range(9)]
    return game, options.names, play_match(game, minds).beliefs


def test_whoever_lives_at_the_end_of_a_day_is_asked_of_all_others_who_do() -> None:
    game, names, beliefs = played(3)
    asked = [question(evening, names) for evening in evenings(game)]
    assert [(q.day, q.player) for q in asked] == [(day, player) for day, player, _ in beliefs]
    assert [set(q.about) for q in asked] == [set(evil) for _, _, evil in beliefs]
    for q in asked:
        assert f"Day {q.day} is over" in q.text
        assert f"You are {names[q.player]}, the " in q.text


def test_scripted_players_believe_afterwards_what_they_believed_in_the_game() -> None:
    game, names, beliefs = played(4)
    minds: dict[int, object] = {}
    again = [(e[0], e[1], scripted_beliefs("scripted", e, names, minds)) for e in evenings(game)]  # type: ignore[arg-type]
    assert again == [(day, who, pytest.approx(evil)) for day, who, evil in beliefs]


def test_a_question_holds_nothing_that_came_later_and_no_secret_of_others() -> None:
    """The same game, left off after a day, gives the same questions about it; others' papers aren't in them."""
    options = TownOptions.read({"mode": "five", "rules": "quick"})
    game = Game(options.setup, options.rules, 5)
    for player in range(5):
        game.write(player, "will", f"SECRET-WILL-{player}")
        game.write(player, "notebook", f"SECRET-BOOK-{player}")
    play_match(game, [ScriptedDecider(n, random.Random(n), options.names) for n in range(5)], beliefs=False)
    whole = [question(e, options.names) for e in evenings(game)]
    first = [q for q in whole if q.day == 1]
    assert len(first) == 5
    for q in first:
        assert {n for n in range(5) if f"SECRET-BOOK-{n}" in q.text or f"SECRET-WILL-{n}" in q.text} <= {q.player}
        assert "Your Notebook" in q.text
    early = Game(options.setup, options.rules, 5)
    days = [e.day for e in game.log]
    assert days[-1] > 1
    early.repeat(list(game.record), next(n for n, start in enumerate(game.starts) if days[start] > 1))
    assert not early.over
    assert [question(e, options.names) for e in evenings(early) if e[0] == 1] == first

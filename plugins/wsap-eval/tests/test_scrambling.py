"""Scrambled texts keep their shape and nothing of what they say."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_eval.memories.scrambling import FUNCTION_WORDS, scrambled

TEXTS = st.lists(st.text("abdе жуы UÉ 0179.,→ 上", max_size=40), min_size=1, max_size=6)


def words_of(text: str) -> set[str]:
    return {word for word in re.findall(r"[^\W\d_]+|\d+|→", text.lower()) if word not in FUNCTION_WORDS}


@given(TEXTS)
def test_no_word_number_or_sign_of_a_text_is_left_in_it(texts: list[str]) -> None:
    for before, after in zip(texts, scrambled(texts), strict=True):
        assert not {word for word in words_of(before) & words_of(after) if not word.isdigit()}
        assert after != before or not words_of(before)


@given(TEXTS)
@pytest.mark.slow
def test_the_shape_stays(texts: list[str]) -> None:
    for before, after in zip(texts, scrambled(texts), strict=True):
        assert [bool(c.strip()) for c in re.split(r"(\s+)", before)] == [
            bool(c.strip()) for c in re.split(r"(\s+)", after)
        ]
        assert [len(n) for n in re.findall(r"\d+", before)] == [len(n) for n in re.findall(r"\d+", after)]


@given(TEXTS)
@pytest.mark.slow
def test_the_result_depends_on_nothing_but_the_texts(texts: list[str]) -> None:
    assert scrambled(texts) == scrambled([*texts])


@pytest.mark.parametrize(
    "text", ["at 17 go up", "use red key, not axe", "Eat cow at (12, 7)", "amber", "it is", "янтарь", "на 17", "↑", "8"]
)
def test_a_lesson_of_any_form_is_changed(text: str) -> None:
    (changed,) = scrambled([text])
    assert changed != text
    assert not [word for word in words_of(text) if word in words_of(changed)]


def test_words_come_from_other_texts_if_there_are_some_of_their_length() -> None:
    before = ["take the amber stones", "leave the black bricks"]
    first, second = scrambled(before)
    assert words_of(first) == words_of(before[1])
    assert words_of(second) == words_of(before[0])


def test_one_word_becomes_one_word_everywhere() -> None:
    texts = ["Red keys open red doors.", "Red boxes hold nothing.", "Blue lava kills."]
    first, second, _ = scrambled(texts)
    assert first.split()[0] == second.split()[0] == first.split()[3].capitalize()

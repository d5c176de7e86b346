"""Skills grow by evidence, less each time, and by nothing else."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_nexus.agents.skills import ACHIEVEMENT_RATE, ACTION_RATE, skill_gains

DECLARED = {"crafting": ("make_pick", "forge"), "exploration": ("dig", "make_pick")}
SOURCES = ("achievement:make_pick", "action:forge", "action:dig", "action:rest", "achievement:unheard_of")

sessions = st.lists(st.dictionaries(st.sampled_from(SOURCES), st.integers(0, 10_000)), max_size=12)


def live_through(done: list[dict[str, int]]) -> tuple[dict[str, float], list[float]]:
    """Return the levels after some sessions, and every gain on the way."""
    levels: dict[str, float] = {}
    shown: dict[tuple[str, str], int] = {}
    gains = []
    for session in done:
        for gain in list(skill_gains(DECLARED, session, levels=levels, shown=shown)):
            assert gain.source.partition(":")[2] in DECLARED[gain.domain]
            assert gain.times == session[gain.source]
            assert gain.gain > 0
            levels[gain.domain] = gain.level
            shown[gain.domain, gain.source] = shown.get((gain.domain, gain.source), 0) + gain.times
            gains.append(gain.gain)
    return levels, gains


@settings(max_examples=200, deadline=None)
@given(done=sessions)
@pytest.mark.slow
def test_a_level_stays_below_one_and_is_the_sum_of_its_gains(done: list[dict[str, int]]) -> None:
    levels, gains = live_through(done)
    assert all(0 < level < 1 for level in levels.values())
    assert abs(sum(levels.values()) - sum(gains)) < 1e-9


@settings(max_examples=200, deadline=None)
@given(source=st.sampled_from(SOURCES[:4]), times=st.lists(st.integers(1, 10**6), min_size=1, max_size=30))
def test_one_source_adds_at_most_twice_its_first_gain_however_often_it_is_repeated(
    source: str, times: list[int]
) -> None:
    levels, _ = live_through([{source: count} for count in times])
    rate = ACHIEVEMENT_RATE if source.startswith("achievement") else ACTION_RATE
    assert all(level <= 2 * rate for level in levels.values())


@settings(max_examples=100, deadline=None)
@given(times=st.integers(1, 60), cuts=st.lists(st.integers(0, 60), max_size=5))
def test_what_is_done_in_one_session_or_in_many_is_worth_the_same(times: int, cuts: list[int]) -> None:
    ends = sorted({min(cut, times) for cut in cuts} | {0, times})
    parts = [{"achievement:make_pick": b - a} for a, b in itertools.pairwise(ends) if b > a]
    whole, _ = live_through([{"achievement:make_pick": times}])
    apart, _ = live_through(parts)
    assert whole.keys() == apart.keys()
    assert all(abs(whole[domain] - apart[domain]) < 1e-12 for domain in whole)


def test_each_time_adds_less_than_the_time_before() -> None:
    _, gains = live_through([{"action:forge": 1}] * 15)
    assert gains == sorted(gains, reverse=True)
    assert gains[0] == ACTION_RATE


def test_what_was_never_done_adds_nothing() -> None:
    assert live_through([{"action:forge": 0}, {"action:rest": 5}, {"achievement:unheard_of": 1}]) == ({}, [])

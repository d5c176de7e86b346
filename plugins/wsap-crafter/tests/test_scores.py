"""Both scores, compared with manual calculations."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from wsap_crafter.catalogue import ACHIEVEMENTS
from wsap_crafter.scores import official_score, progression, success_rates


@dataclass(frozen=True)
class Played:
    achievements: tuple[str, ...]


ALL = tuple(a.name for a in ACHIEVEMENTS)


def test_everything_always_is_one_hundred():
    assert official_score([Played(ALL)] * 3) == pytest.approx(100)
    assert progression([Played(ALL)] * 3) == pytest.approx(100)


def test_nothing_is_zero():
    assert official_score([Played(())]) == 0
    assert official_score([]) == 0
    assert progression([]) == 0


def test_one_achievement_in_half_of_the_episodes():
    episodes = [Played(("collect_wood",)), Played(())]
    # 51 to the power of 1/22, less 1: ln 51 = 3.931826, over 22 is 0.178719, e to that is 1.195685.
    assert official_score(episodes) == pytest.approx(0.195685, abs=2e-6)
    # One of 44 possible.
    assert progression(episodes) == pytest.approx(2.272727, abs=1e-6)


def test_play_that_unlocks_five_achievements_now_and_then():
    # The number of 1000 episodes in which each is unlocked.
    counts = {"collect_sapling": 500, "place_plant": 450, "wake_up": 900, "collect_wood": 250, "collect_drink": 100}
    episodes = [Played(tuple(name for name, count in counts.items() if i < count)) for i in range(1000)]
    rates = success_rates(episodes)
    assert rates["collect_drink"] == 10
    assert rates["collect_coal"] == 0
    # ln 51 + ln 46 + ln 91 + ln 26 + ln 11 = 17.927319, over 22 is 0.814878, e to that is 2.258900.
    assert official_score(episodes) == pytest.approx(1.258900, abs=2e-6)
    # 500 + 450 + 900 + 250 + 100 of 22000.
    assert progression(episodes) == pytest.approx(10)


def test_what_is_no_achievement_of_crafter_counts_nothing():
    assert progression([Played(("collect_wood", "win_the_lottery"))]) == pytest.approx(100 / 22)

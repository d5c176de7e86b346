"""Who is on stage: tables of moments and times against the world that is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_nexus.runs.record.moments import WEIGHTS
from wsap_nexus.server.watched.director import PERIOD, Moment, Shot, Standing, heats, next_shot, reason, watched

PLAYED, LIVING, EMPTY = Standing(False, 1), Standing(True, 0), Standing(False, 0)


def moment(kind: str, time: float, world: str, words: str = "") -> Moment:
    return Moment(time, world, "ada", kind, WEIGHTS[kind], words or f"{kind} in {world}", public=True)


@pytest.mark.parametrize(
    ("on", "moments", "now", "shown"),
    [
        (None, [], 0.0, "b"),  # nothing happens: one with agents before one that lives on its own
        (None, [moment("achievement", 0.0, "c")], 0.0, "c"),
        (None, [moment("achievement", 0.0, "c"), moment("achievement", 0.0, "b")], 0.0, "b"),
        (Shot("b", 0.0), [moment("achievement", 11.0, "c")], 11.0, "b"),  # 12 s are not over
        (Shot("b", 0.0), [moment("achievement", 11.0, "c")], 12.0, "c"),
        (Shot("b", 0.0), [moment("died", 3.0, "c")], 3.9, "b"),
        (Shot("b", 0.0), [moment("died", 3.0, "c")], 4.0, "c"),  # a death waits for 4 s only
        # 50 against 25: 1.5 x 25 + 10 = 47.5 is passed
        (Shot("b", 0.0), [moment("hit", 20.0, "b"), moment("achievement", 20.0, "c")], 20.0, "c"),
        # 70 against 50: 1.5 x 50 + 10 = 85 is not, but half of 50 is, after 90 s
        (Shot("b", 0.0), [moment("achievement", 20.0, "b"), moment("meta_goal_reached", 20.0, "c")], 20.0, "b"),
        (Shot("b", 0.0), [moment("achievement", 90.0, "b"), moment("meta_goal_reached", 90.0, "c")], 90.0, "c"),
        # 50 after a minute are 3.1: nothing to cut to
        (Shot("b", 0.0), [moment("achievement", 0.0, "c")], 60.0, "b"),
        (Shot("gone", 0.0), [], 1.0, "b"),
    ],
)
def test_the_world_on_stage(on: Shot | None, moments: list[Moment], now: float, shown: str) -> None:
    found = next_shot(on, {"a": LIVING, "b": PLAYED, "c": PLAYED, "d": EMPTY}, moments, now)
    assert found is not None
    assert found.world == shown


def test_nobody_is_on_stage_where_nobody_plays() -> None:
    assert next_shot(Shot("d", 0.0), {"d": EMPTY}, [moment("died", 0.0, "d")], 1.0) is None


def test_a_world_of_which_all_agents_are_paused_makes_room() -> None:
    assert next_shot(Shot("a", 0.0), {"a": EMPTY, "b": LIVING}, [], 1.0) == Shot("b", 1.0)


def test_a_moment_counts_half_after_fifteen_seconds_and_nothing_before_it_happened() -> None:
    died = moment("died", 100.0, "a")
    assert [died.heat(t) for t in (99.0, 100.0, 115.0, 130.0)] == [0.0, 100.0, 50.0, 25.0]
    assert heats(["a", "b"], [died, moment("hit", 100.0, "a"), moment("hit", 100.0, "z")], 100.0) == {
        "a": 125.0,
        "b": 0.0,
    }


def test_the_reason_is_what_counts_most_now() -> None:
    seen = [moment("died", 0.0, "b", "Bob died"), moment("hit", 60.0, "b", "A zombie hit Cleo")]
    assert reason("b", PLAYED, seen, 5.0) == "Bob died"
    assert reason("b", PLAYED, seen, 60.0) == "A zombie hit Cleo"
    assert reason("b", PLAYED, seen, 6000.0) == "nothing else happens elsewhere"
    assert reason("a", LIVING, seen, 5.0) == "it goes on by itself"


@given(
    st.lists(
        st.builds(moment, st.sampled_from(sorted(WEIGHTS)), st.floats(0, 100), st.sampled_from("abc")), max_size=12
    ),
    st.lists(st.floats(0, 200), max_size=30).map(sorted),
)
def test_a_shot_lasts_and_the_order_of_moments_does_not_matter(moments: list[Moment], times: list[float]) -> None:
    worlds = {"a": LIVING, "b": PLAYED, "c": PLAYED}
    shot = None
    for now in times:
        found = next_shot(shot, worlds, moments, now)
        assert found == next_shot(shot, worlds, moments[::-1], now)
        assert found is not None
        if shot is not None and found != shot:
            assert found.world != shot.world
            assert now - shot.since >= 4.0
        shot = found


@given(
    st.lists(
        st.builds(moment, st.sampled_from(sorted(WEIGHTS)), st.floats(0, 900), st.sampled_from("abc")), max_size=12
    ),
    st.lists(st.integers(0, 1200), min_size=1, max_size=20).map(sorted),
)
def test_who_looked_all_the_time_sees_the_same_as_who_never_looked_before(
    moments: list[Moment], seconds: list[int]
) -> None:
    worlds, seen = {"a": LIVING, "b": PLAYED, "c": PLAYED}, sorted(moments, key=lambda one: one.time)
    before = None
    for second in seconds:
        # Only what has happened by then is known.
        before = watched(before, worlds, [one for one in seen if one.time <= second], second)
        assert before.shot == watched(None, worlds, seen, second).shot


def test_a_watch_begins_between_one_and_two_periods_ago() -> None:
    died = [moment("died", 5.0, "c")]
    assert watched(None, {"b": PLAYED, "c": PLAYED}, died, 20).shot == Shot("c", 5.0)
    late = watched(None, {"b": PLAYED, "c": PLAYED}, died, 3 * PERIOD)
    assert (late.since, late.shot) == (2 * PERIOD, Shot("b", 2.0 * PERIOD))  # the death is forgotten

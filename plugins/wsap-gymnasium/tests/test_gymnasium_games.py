"""Gymnasium environments as games, by WSAP's own checker."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from wsap_check import run_checks
from wsap_core.errors import PluginError, SnapshotError, UsageError, WsapError
from wsap_core.protocol import Action
from wsap_core.references import load_adapter_spec
from wsap_nexus import api
from wsap_nexus.doors.driven import Driven
from wsap_nexus.doors.foreign import drawn

ENVIRONMENTS = (
    "FrozenLake-v1", "Taxi-v4", "CliffWalking-v1", "Blackjack-v1", "CartPole-v1", "MountainCarContinuous-v0",
    "Acrobot-v1", "Pendulum-v1",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_it_conforms(name: str) -> None:
    report = run_checks(load_adapter_spec(f"gymnasium:{name}"), steps=60)
    assert report.ok, report.findings


@pytest.mark.parametrize("kwargs", ['{"is_slippery": false}', {"is_slippery": False}])
def test_it_is_the_environment_itself_that_is_played(kwargs: object) -> None:
    world = Driven("gymnasium:FrozenLake-v1", {"kwargs": kwargs})
    original = gymnasium.make("FrozenLake-v1", is_slippery=False)
    world.reset(5)
    original.reset(seed=5)
    moves = ("move_down", "move_down", "move_right", "move_right", "move_down", "move_right")
    for move in moves:
        number = ("move_left", "move_down", "move_right", "move_up").index(move)
        state, reward, terminated, _, _ = original.step(number)
        result = world.step(Action(move)).result
        assert (result.observation.status, result.reward, result.done) == ({"state": state}, reward, terminated)
    assert (reward, terminated) == (1, True), "the goal"
    assert "[G]" in result.observation.to_text(), "where the player is, is red"


def test_a_time_limit_of_an_environment_is_no_end_by_its_rules() -> None:
    world = Driven("gymnasium:FrozenLake-v1", {"kwargs": {"is_slippery": False, "max_episode_steps": 2}})
    world.reset(1)
    ends = [(result.done, result.truncated) for result in (world.step(Action("move_left")).result for _ in range(2))]
    assert ends == [(False, False), (True, True)]


def test_numbers_have_the_names_of_the_documentation() -> None:
    seen = Driven("gymnasium:CartPole-v1").reset(1)
    assert list(seen.status) == ["Cart Position", "Cart Velocity", "Pole Angle", "Pole Angular Velocity"]


def test_a_mask_of_the_environment_says_what_is_possible() -> None:
    world = Driven("gymnasium:Taxi-v4")
    seen = world.reset(3)
    _, info = gymnasium.make("Taxi-v4").reset(seed=3)
    offered = [each.available for each in seen.available_actions or ()]
    assert offered == info["action_mask"].astype(bool).tolist()
    assert not all(offered)


def test_a_restored_game_goes_on_the_same_also_in_its_next_episode() -> None:
    one, other = Driven("gymnasium:Blackjack-v1"), Driven("gymnasium:Blackjack-v1")
    one.reset(4)
    while not one.done:
        one.step(Action(one.action_space.names[0]))
    one.reset()
    saved = one.snapshot()
    other.reset(9)
    other.restore(saved)
    assert other.observe() == one.observe()
    assert one.reset() == other.reset()
    with pytest.raises(SnapshotError):
        other.restore(saved[:-9])
    assert other.observe() == one.observe(), "nothing has changed"


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("NoSuchThing-v1", UsageError, "no environment 'NoSuchThing-v1'"),
        ("MiniGrid-Empty-5x5-v0", WsapError, "no environment|no text form"),
        ("CarRacing-v3", WsapError, "needs another package|no text form"),
    ],
)
def test_what_can_t_be_told_is_refused_in_one_sentence(name: str, error: type[WsapError], words: str) -> None:
    with pytest.raises(error, match=words):
        Driven(f"gymnasium:{name}")


@pytest.mark.parametrize("kwargs", ["{", "[]", '"x"', '{"no_such": 1}', [], 1])
def test_bad_arguments_are_refused(kwargs: object) -> None:
    with pytest.raises((UsageError, PluginError)):
        Driven("gymnasium:FrozenLake-v1", {"kwargs": kwargs})


def test_an_agent_plays_it_to_the_end() -> None:
    summary = api.play("gymnasium:Taxi-v4", "random-legal", seed=1, episodes=2, record=False).to_json()
    assert summary["episodes"] == 2


def test_colours_become_brackets() -> None:
    assert drawn("S\x1b[41mF\x1b[0mH") == "S[F]H"
    assert drawn("\x1b[2J\x1b[41mG") == "[G]"


def test_a_continuous_action_takes_numbers_within_its_bounds() -> None:
    world = Driven("gymnasium:Pendulum-v1")
    world.reset(2)
    original = gymnasium.make("Pendulum-v1")
    original.reset(seed=2)
    _, reward, *_ = original.step(np.array([1.5], np.float32))
    assert world.step(Action("act", {"x0": 1.5})).result.reward == pytest.approx(float(reward))
    assert not world.step(Action("act", {"x0": 9.0})).result.success

"""WSAP's games as PettingZoo environments, by PettingZoo's own checkers."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of PettingZoo's own old names
    from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

from wsap_core.errors import UsageError
from wsap_core.protocol import Action
from wsap_gymnasium.multi import aec, parallel
from wsap_nexus import api

GAMES = ("matrix", "matrix-turns", "matrix-free", "tossim")


@pytest.fixture(autouse=True)
def only_their_errors() -> Iterator[None]:
    """Their checkers warn about names of agents and about observations that are no arrays."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        yield


@pytest.mark.parametrize("game", GAMES)
def test_the_checkers_of_pettingzoo_pass_for_agents_in_turn(game: str) -> None:
    cycles = 20 if game == "tossim" else 100
    api_test(aec(game, max_steps=40), num_cycles=cycles)
    seed_test(lambda: aec(game, max_steps=40), num_cycles=cycles)


@pytest.mark.parametrize("game", GAMES)
def test_the_checkers_of_pettingzoo_pass_for_agents_at_once(game: str) -> None:
    cycles = 20 if game == "tossim" else 100
    parallel_api_test(parallel(game, max_steps=40), num_cycles=cycles)
    parallel_seed_test(lambda: parallel(game, max_steps=40), num_cycles=cycles)


def number(env: Any, agent: str, name: str) -> np.int64:
    return np.int64([action.name for action in env.actions(agent)].index(name))


def test_a_round_is_carried_out_when_the_last_has_chosen_and_nobody_sees_it_before() -> None:
    env = aec("matrix", options={"game": "prisoners-dilemma", "rounds": 1})
    env.reset(seed=3)
    assert env.agent_selection == "row"
    before = env.observe("column")
    env.step(number(env, "row", "defect"))
    assert env.agent_selection == "column"
    assert env.observe("column")["text"] == before["text"]
    assert not env.observe("row")["action_mask"].any(), "it has chosen"
    assert env.rewards == {"row": 0.0, "column": 0.0}
    env.step(number(env, "column", "cooperate"))
    assert env.terminations == {"row": True, "column": True}
    assert env.rewards["row"] > env.rewards["column"]


@pytest.mark.parametrize("game", ["matrix", "matrix-turns"])
def test_the_same_actions_pay_the_same_as_in_a_run(game: str) -> None:
    taken = defaultdict[str, list[Action]](list)
    run = api.play(
        game, "random", seed=5, episodes=1, record=False, options={"rounds": 5},
        observers=[lambda step: taken[step.seat].append(step.action)],
    )  # fmt: skip
    paid = {seat["seat"]: seat["reward"] for seat in run.to_json()["seats"]}
    in_turn = aec(game, options={"rounds": 5})
    in_turn.reset(seed=5)
    moves = {seat: iter(actions) for seat, actions in taken.items()}
    total = dict.fromkeys(in_turn.possible_agents, 0.0)
    for agent in in_turn.agent_iter():
        _, reward, over, late, _ = in_turn.last()
        total[agent] += reward
        in_turn.step(None if over or late else np.int64(in_turn.actions(agent).index(next(moves[agent]))))
    assert total == paid


def test_an_impossible_action_is_refused_with_the_reason_and_the_agent_asked_again() -> None:
    env = aec("tossim", max_steps=5)
    env.reset(seed=1)
    agent = env.agent_selection
    impossible = int(np.flatnonzero(env.observe(agent)["action_mask"] == 0)[0])
    together = parallel("tossim", max_steps=5)
    seen, _ = together.reset(seed=1)
    acting = {name: np.int64(impossible) for name in together.agents if seen[name]["action_mask"].any()}
    seen, rewards, terminations, truncations, infos = together.step(acting)
    assert infos[agent]["refused"]
    assert seen[agent]["action_mask"].any()
    assert set(rewards.values()) == {0.0}
    assert not any(terminations.values())
    assert not any(truncations.values())


def test_after_so_many_rounds_an_episode_is_truncated() -> None:
    env = parallel("matrix", max_steps=2)
    env.reset(seed=1)
    for late in (False, True):
        *_, terminations, truncations, _ = env.step(dict.fromkeys(env.agents, np.int64(0)))
        assert set(truncations.values()) == {late}
        assert set(terminations.values()) == {False}
    assert env.agents == []


@pytest.mark.parametrize(
    ("game", "how", "words"),
    [
        ("matrix", {"seats": 3}, "has 2 to 2 seats, not 3"),
        ("matrix", {"render_mode": "human"}, "no render mode 'human'"),
        ("openspiel:kuhn_poker", {}, "No action of seat-1 in Kuhn Poker can be numbered"),
    ],
)
def test_what_is_no_such_environment_is_refused_in_one_sentence(game: str, how: dict[str, Any], words: str) -> None:
    for made in (aec, parallel):
        with pytest.raises(UsageError, match=words):
            made(game, **how)

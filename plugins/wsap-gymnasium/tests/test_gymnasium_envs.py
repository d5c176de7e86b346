"""WSAP's games as Gymnasium environments, by Gymnasium's own checker."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import wsap_gymnasium.envs
from wsap_core.errors import UsageError
from wsap_core.protocol import Action, ActionDef, ActionSpace, Observation, ParamDef, Possible
from wsap_core.seams.context import derive_seed
from wsap_gymnasium.envs import WORLD, WsapEnv
from wsap_gymnasium.numbering import Numbering
from wsap_nexus import api


def made(game: str, **how: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make(f"wsap_gymnasium.envs:{WORLD}", game=game, **how)


@pytest.mark.parametrize("game", ["crafter", "minigrid", "echo", "gymnasium:FrozenLake-v1"])
def test_the_checker_of_gymnasium_passes(game: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(render modes|render fps|No render|not within).*")
        check_env(made(game).unwrapped, skip_render_check=True)


def test_the_same_steps_give_the_same_trajectory_as_a_run() -> None:
    env = made("crafter", options={"length": 40})
    seen, _ = env.reset(seed=derive_seed(7, 0))
    taken: list[Action] = []
    observed: list[Observation] = []
    chance = np.random.default_rng(3)
    over = False
    while not over:
        number = int(chance.choice(np.flatnonzero(seen["action_mask"])))
        taken.append(env.unwrapped.actions[number])
        seen, _, terminated, truncated, info = env.step(np.int64(number))
        observed.append(info["observation"])
        over = terminated or truncated
    assert (len(taken), terminated, truncated) == (40, False, True), "the limit is that of Crafter"

    class Repeats:
        """An agent that takes the same steps."""

        def __init__(self) -> None:
            self.moves = iter(taken)

        def initialize(self, *about: object) -> None: ...

        def decide(self, observation: object) -> Action:
            return next(self.moves)

        def reflect(self, result: object) -> None: ...

        def plan(self, goals: object) -> list[str]:
            return []

    by_run: list[Observation] = []
    api.play("crafter", Repeats, seed=7, options={"length": 40}, episodes=1, record=False,
             observers=[lambda step: by_run.append(step.result.observation)])  # fmt: skip
    assert observed == by_run


def test_a_limit_truncates_and_a_refusal_says_why() -> None:
    env = made("minigrid", max_steps=3)
    seen, _ = env.reset(seed=1)
    impossible = int(np.flatnonzero(seen["action_mask"] == 0)[0])
    for number in range(3):
        seen, reward, terminated, truncated, info = env.step(np.int64(impossible))
        assert info["refused"]
        assert (reward, terminated, truncated) == (0.0, False, number == 2)


def test_without_a_text_nothing_is_written() -> None:
    env = made("crafter", text=False)
    seen, info = env.reset(seed=1)
    assert set(seen) == {"action_mask"}
    assert info["observation"].status["food"] == 9
    assert env.unwrapped.action_masks().dtype == np.bool_


def test_a_game_for_several_is_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match="needs 2 players"):
        WsapEnv("matrix")


def test_actions_are_numbered_with_their_parameters_and_masked_by_their_choices() -> None:
    space = ActionSpace(
        (
            ActionDef("wait"),
            ActionDef("go", "", (ParamDef("where", "north|south"), ParamDef("how_far", "1-3"))),
            ActionDef("say", "", (ParamDef("text", "what to say"),)),
            ActionDef("hum", "", (ParamDef("tune", "any tune", True),)),
            ActionDef("dial", "", (ParamDef("number", "1-5000"),)),
        )
    )
    numbering = Numbering(space)
    assert len(numbering) == 1 + 6 + 1
    assert numbering.left_out == ("say", "dial")
    assert numbering.actions[1] == Action("go", {"where": "north", "how_far": 1})
    seen = Observation(available_actions=[Possible("go", choices={"where": ["south"]})])
    assert numbering.mask(seen).tolist() == [0, 0, 0, 0, 1, 1, 1, 0]
    assert numbering.mask(Observation()).all()


def test_the_module_registers_the_environment() -> None:
    assert gymnasium.spec(WORLD).entry_point == "wsap_gymnasium.envs:WsapEnv"
    assert wsap_gymnasium.envs.WORLD == WORLD

"""The levels are MiniGrid's own: the same seed and the same actions give what the original gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import gymnasium
import pytest

from wsap_core import Action, Context, Observation
from wsap_core.seams.context import derive_seed
from wsap_minigrid.adapter import MiniGridAdapter
from wsap_minigrid.catalogue import name_of
from wsap_minigrid.finder import Finder
from wsap_minigrid.plugin import LEVELS

NUMBERS = {"turn_left": 0, "turn_right": 1, "forward": 2, "pickup": 3, "drop": 4, "toggle": 5}


class Original:
    """MiniGrid itself through the levels of an episode, each begun anew from the seed that this world takes for it."""

    def __init__(self, seed: int, level: int = 0) -> None:
        self._seed, self.level, self.solved = seed, level, 0
        self._begin()

    def _begin(self) -> None:
        self.env: Any = gymnasium.make(list(LEVELS.values())[self.level]).unwrapped
        self.env.reset(seed=derive_seed(self._seed, "level", 0, self.level))

    def act(self, name: str) -> tuple[float, bool]:
        """Return the reward, and whether the episode of levels is over: after the last one, or one not solved."""
        _, reward, over, late, _ = self.env.step(NUMBERS[name])
        if not over or reward <= 0:
            return float(reward), bool(over or late)
        self.solved += 1
        self.level += 1
        if self.level < len(LEVELS):
            self._begin()
        return float(reward), self.level == len(LEVELS)


def in_step(seed: int, choose: Callable[[Observation], str], steps: int, level: int = 1) -> tuple[int, int]:
    """Play this world and the original side by side, and return the steps and the levels that the original solved."""
    world = MiniGridAdapter(Context(seed=seed, config={"level": level}))
    original = Original(seed, level - 1)
    for step in range(steps):
        seen, env = world.observe(), original.env
        assert seen.location.region == list(LEVELS)[original.level]
        assert seen.current_goals[0].description == env.mission
        assert seen.location.coordinates == tuple(map(int, env.agent_pos))
        assert seen.facing == ["east", "south", "west", "north"][env.agent_dir]
        assert seen.status["in_hand"] == (name_of(env.carrying) if env.carrying else "nothing")
        assert seen.status["steps_left"] == env.max_steps - env.step_count
        assert world._env.hash(size=64) == env.hash(size=64)
        chosen = choose(seen)
        result = world.act(Action(chosen))
        assert result.success
        reward, over = original.act(chosen)
        assert result.reward == reward
        assert result.done == over
        if over:
            return step + 1, original.solved
    return steps, original.solved


def by_chance(number: int) -> Callable[[Observation], str]:
    player = random.Random(number)
    return lambda seen: player.choice([a.name for a in seen.available_actions or () if a.available])


@pytest.mark.parametrize("level", range(1, 9))
def test_a_level_goes_as_in_the_original(level: int) -> None:
    steps, _ = in_step(11, by_chance(level), 150, level)
    assert steps > 5


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.slow
def test_whole_episodes_go_as_in_the_original_level_after_level(seed: int) -> None:
    finder = Finder()
    _, solved = in_step(seed, lambda seen: finder.decide(seen).name, 1000)
    assert solved == 8
    in_step(seed, by_chance(seed), 1000)


def test_what_is_refused_would_have_changed_nothing_in_the_original() -> None:
    world = MiniGridAdapter(Context(seed=3))
    original: Any = gymnasium.make(LEVELS["key"]).unwrapped
    original.reset(seed=derive_seed(3, "level", 0, 0))
    player, refused = random.Random(5), 0
    for _ in range(120):
        chosen = player.choice(list(NUMBERS))
        before = original.hash(size=32)
        world_could = world.act(Action(chosen)).success
        if world_could:
            _, _, over, _, _ = original.step(NUMBERS[chosen])
            if over:
                break
            continue
        refused += 1
        original.step(NUMBERS[chosen])
        assert original.hash(size=32) == before
    assert refused > 20


def test_the_map_shows_what_the_original_lets_see_and_nothing_beyond() -> None:
    world = MiniGridAdapter(Context(seed=7, config={"level": 7}))
    player = random.Random(2)
    for _ in range(60):
        seen, env = world.observe(), world._env
        image = env.gen_obs()["image"]  # 7 by 7, turned so that the player looks up; 0 is not seen
        image[3, 6] = 0  # where the player is, and shown as what is in its hand
        kinds = {4: "door", 5: "key", 6: "ball", 7: "box"}
        visible = sorted(kinds[int(kind)] for kind in image[:, :, 0].ravel() if int(kind) in kinds)
        assert sorted(entity.type for entity in seen.nearby_entities) == visible
        floor = sum(int(kind) == 1 for kind in image[:, :, 0].ravel())
        assert sum(row.count(".") for row in seen.local_map) == floor
        world.act(Action(player.choice([a.name for a in seen.available_actions or () if a.available])))

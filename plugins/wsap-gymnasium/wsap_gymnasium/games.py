"""Gymnasium environments as games: `gymnasium:FrozenLake-v1`."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from wsap_core.errors import PluginError, SnapshotError, UsageError
from wsap_core.protocol import (
    Action,
    ActionAvailability,
    ActionDef,
    ActionResult,
    ActionSpace,
    Observation,
    ParamDef,
)
from wsap_core.seams.context import SEED_LIMIT, Context
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import error_line
from wsap_gymnasium.plugin import DEFAULT
from wsap_gymnasium.telling import (
    MOST_NUMBERS,
    lines_of,
    names_of_actions,
    names_of_numbers,
    numbers_in,
    told,
    word,
)
from wsap_nexus.doors.foreign import TextObservation, checked, drawn

# Any, in this module: environments, and what they observe.

MOST_NAMED = 64
"""Maximum number of actions that are actions of their own; of more, one action takes the number."""
MOST_ACTION_NUMBERS = 8
"""Maximum number of numbers in one action."""
_ABOUT = 1500
"""Maximum characters of a description."""
AGAIN = "reset"
"""In a log of moves: the next episode of the same sequence."""


def variant(spec: AdapterSpec, options: Mapping[str, Any]) -> AdapterSpec:
    """Return the spec of one environment; one that there is not is refused where it is created."""
    name = str(options.get("id", DEFAULT))
    try:
        known = None if ":" in name else gymnasium.spec(name)  # `make` imports what stands before the colon
    except gymnasium.error.Error:
        known = None
    repeats = known is None or not known.nondeterministic
    return replace(spec, title=name.rpartition(":")[2], abilities=("seed", "snapshot") if repeats else ())


def create(context: Context) -> GymnasiumGame:
    """Return the game of an environment.

    Raises:
        UsageError: there is no such environment, its arguments are invalid, or it can't be told in words.
        PluginError: it can't be created; the message says what is missing.
    """
    config = context.config
    name = str(config.get("id", DEFAULT))
    return GymnasiumGame(_made(name, given_arguments(config)), name)


def given_arguments(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the option `kwargs`, a JSON object or its text; UsageError if it is neither."""
    given: object = options.get("kwargs", "{}")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise UsageError(f"The option kwargs is no JSON object: {error}") from error
    if not isinstance(given, Mapping):
        raise UsageError("The option kwargs is no JSON object.")
    return given


def _made(name: str, given: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    try:
        modes: Sequence[str] = []
        if ":" not in name:
            entry = gymnasium.spec(name)
            modes = getattr(gymnasium.envs.registration.load_env_creator(str(entry.entry_point)), "metadata", {}).get(
                "render_modes", []
            )
        more = {"render_mode": "ansi"} if "ansi" in modes else {}
        return gymnasium.make(name, disable_env_checker=True, **{**more, **given})
    except gymnasium.error.DependencyNotInstalled as error:
        raise PluginError(f"{name} needs another package: {error_line(error, 300)}") from error
    except gymnasium.error.Error as error:
        raise UsageError(f"Gymnasium has no environment {name!r}: {error_line(error, 300)}") from error
    except Exception as error:
        raise PluginError(f"{name} can't be created: {error_line(error, 300, kind=True)}") from error


class GymnasiumGame:
    """An environment as a game. Snapshots are the moves since the seed, which restoring repeats."""

    def __init__(self, env: gymnasium.Env[Any, Any], name: str) -> None:
        self._env = env
        self._name = name
        self._doc = inspect.cleandoc(type(env.unwrapped).__doc__ or "")
        self._draws = env.render_mode == "ansi"
        count = numbers_in(env.observation_space)
        self._told = count is not None and count <= MOST_NUMBERS
        if not self._draws and not self._told:
            what = "pictures or other large arrays" if count else "what can't be told"
            raise UsageError(
                f"{name} observes {what}, and has no text form, so no language model can read it; write an adapter."
            )
        self._numbers = names_of_numbers(self._doc)
        self._actions = actions_of(env, self._doc, name)
        self.action_space = ActionSpace(tuple(self._actions.values()))
        self._log: list[Any] = []
        self._steps, self.done = 0, False
        self._begin(0)

    @property
    def game_description(self) -> str:
        """What the environment's documentation says of it."""
        about = lines_of(self._doc, "Description") or self._doc
        rewards = lines_of(self._doc, "Rewards")
        text = re.sub(r"<[^>]{1,300}>|!\[[^\]]*\]\([^)]*\)", "", about)[:_ABOUT].strip()
        return f"{self._name}. {text}" + (f"\n\nRewards: {rewards[:_ABOUT].strip()}" if rewards else "")

    def reset(self, seed: int | None = None) -> Observation:
        """Start an episode of the seed, or the next of the sequence that the last seed began."""
        if seed is None:
            self._log.append(AGAIN)
            self._take(self._env.reset())
        else:
            self._begin(seed)
        return self.observe()

    def observe(self) -> Observation:
        """Return the state."""
        return self._seen

    def act(self, action: Action) -> ActionResult:
        """Take a step."""
        action, refused = checked(action, self._actions, self._seen, done=self.done)
        if refused is not None:
            return refused
        given = self._value(action)
        self._log.append(given)
        reward, truncated = self._step(given)
        words = f"Reward: {reward:g}." if reward else "No reward."
        return ActionResult(True, words, reward, done=self.done, observation=self._seen, truncated=truncated)

    def snapshot(self) -> bytes:
        """Return the seed and the moves since."""
        return json.dumps({"seed": self._seed, "log": self._log}).encode()

    def restore(self, data: bytes) -> None:
        """Repeat the moves of a snapshot."""
        before = self._seed, list(self._log)
        try:
            state = json.loads(data)
            if type(state["seed"]) is not int:
                raise TypeError("the seed is no whole number")
            self._repeat(state["seed"], list(state["log"]))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, AssertionError, RecursionError) as error:
            self._repeat(*before)
            raise SnapshotError(f"The snapshot of {self._name} is damaged: {error_line(error, 200)}") from error

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    # --- parts ------------------------------------------------------------------------------------------

    def _begin(self, seed: int) -> None:
        self._seed, self._log = seed, []
        self._take(self._env.reset(seed=seed))

    def _repeat(self, seed: int, log: list[Any]) -> None:
        if not 0 <= seed <= SEED_LIMIT:
            raise ValueError(f"{seed} is no seed")
        for given in log:
            if given != AGAIN and not self._env.action_space.contains(self._native(given)):
                raise ValueError(f"{given!r} is no move")
        self._begin(seed)
        for given in log:
            self._log.append(given)
            if given == AGAIN:
                self._take(self._env.reset())
            elif self.done:
                raise ValueError("there are moves after the end")
            else:
                self._step(given)

    def _step(self, given: Any) -> tuple[float, bool]:
        """Take a step; return its reward, and whether a limit ended the episode."""
        seen, reward, terminated, truncated, info = self._env.step(self._native(given))
        self._steps += 1
        self.done = bool(terminated or truncated)
        self._show(seen, info)
        return float(reward), bool(truncated and not terminated)

    def _take(self, begun: tuple[Any, dict[str, Any]]) -> None:
        self.done, self._steps = False, 0
        self._show(*begun)

    def _show(self, seen: Any, info: Mapping[str, Any]) -> None:
        drawing = self._env.render() if self._draws else None
        text = drawn(drawing) if isinstance(drawing, str) else ""
        values = told(seen, self._numbers) if self._told else {}
        self._seen = TextObservation(
            status=values, step=self._steps, drawing=text, available_actions=self._possible(info)
        )

    def _possible(self, info: Mapping[str, Any]) -> list[ActionAvailability]:
        mask = info.get("action_mask")
        names = list(self._actions)
        if self.done:
            return [ActionAvailability(name, False, "the game is over") for name in names]
        if mask is None or len(mask) != len(names):
            return [ActionAvailability(name) for name in names]
        return [
            ActionAvailability(name, bool(may), "" if may else "it is not possible here")
            for name, may in zip(names, mask, strict=True)
        ]

    def _value(self, action: Action) -> Any:
        """Return the environment's action, JSON-ready."""
        space, given = self._env.action_space, action.parameters
        if isinstance(space, spaces.Discrete):
            number = given["number"] if "number" in given else list(self._actions).index(action.name)
            return int(space.start) + int(number)
        return [given[parameter.name] for parameter in self._actions[action.name].parameters]

    def _native(self, given: Any) -> Any:
        space = self._env.action_space
        if isinstance(space, spaces.Discrete):
            return int(given)
        return np.asarray(given, dtype=space.dtype).reshape(space.shape or ())


def actions_of(env: gymnasium.Env[Any, Any], doc: str, name: str) -> dict[str, ActionDef]:
    """Return the actions of an environment by name; UsageError if they can't be told in words."""
    space = env.action_space
    match space:
        case spaces.Discrete() if space.n > MOST_NAMED:
            number = ParamDef("number", f"0-{int(space.n) - 1}")
            return {"choose": ActionDef("choose", "Choose an action by its number", (number,))}
        case spaces.Discrete():
            count = int(space.n)
            meanings: Sequence[str] = getattr(env.unwrapped, "get_action_meanings", list)()
            words = [str(each) for each in meanings] or names_of_actions(doc, count)
            names = [word(text) for text in words]
            if len(names) != count or len(set(names)) < count or not all(names):
                names = [f"action_{number}" for number in range(count)]
                words = [f"Action {number} of the environment" for number in range(count)]
            return {one: ActionDef(one, text) for one, text in zip(names, words, strict=True)}
        case spaces.Box() if int(np.prod(space.shape)) <= MOST_ACTION_NUMBERS:
            limits = zip(space.low.ravel().tolist(), space.high.ravel().tolist(), strict=True)
            parameters = [ParamDef(f"x{i}", schema=_number(low, high)) for i, (low, high) in enumerate(limits)]
        case spaces.MultiDiscrete() if len(space.nvec.ravel()) <= MOST_ACTION_NUMBERS:
            parameters = [ParamDef(f"x{i}", f"0-{int(most) - 1}") for i, most in enumerate(space.nvec.ravel())]
        case _:
            raise UsageError(f"{name} takes actions that can't be told in words or few numbers; write an adapter.")
    return {"act": ActionDef("act", "Take a step", tuple(parameters))}


def _number(low: float, high: float) -> dict[str, Any]:
    bounds = {"minimum": low, "maximum": high}
    return {"type": "number", **{key: value for key, value in bounds.items() if np.isfinite(value)}}

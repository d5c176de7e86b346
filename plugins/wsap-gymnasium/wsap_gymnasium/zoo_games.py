"""PettingZoo environments as games: `pettingzoo:classic/connect_four-v3`."""

from __future__ import annotations

import importlib
import inspect
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium import spaces

from wsap_core.authoring.rounds import RoundGame
from wsap_core.errors import MissingServiceError, PluginError, UsageError
from wsap_core.installing import install_line
from wsap_core.protocol import Action, ActionDef, ActionSpace, Observation, ParamDef, Possible
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context, derive_seed
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import error_line, strip_control
from wsap_gymnasium.games import given_arguments
from wsap_gymnasium.plugin import ZOO_DEFAULT
from wsap_gymnasium.telling import MOST_NUMBERS, numbers_in, told
from wsap_gymnasium.zoo_telling import READERS, REASONS
from wsap_nexus.doors.foreign import TextObservation, drawn

# Any, in this module: environments, and what they observe.

PLAY = "play"
"""The only action; its parameter `move` names one of the environment's."""
MOST_NAMED = 64
"""Maximum number of moves that are declared by name; of more, they are in the observations only."""
_ABOUT = 1500
"""Maximum characters of a description."""


def registry() -> Mapping[str, Any]:
    """Return PettingZoo's environments in turn, by id; MissingServiceError if it is not installed."""
    try:
        from pettingzoo import aec_registry  # deferred: an extra
    except ImportError as error:
        raise MissingServiceError(
            f"PettingZoo's environments need the package pettingzoo; install it with: "
            f"{install_line('wsap-gymnasium[pettingzoo]')}"
        ) from error
    return aec_registry  # type: ignore[no-any-return]  # it may be installed or not


def environments() -> dict[str, str]:
    """Return each of PettingZoo's environments -> why it can't be played, empty if it can."""
    return {name: _why_not(name) for name in registry()}


def _why_not(name: str) -> str:
    family, base = name.partition("/")[0], _base(name)
    return "" if base in READERS else REASONS.get(base) or REASONS.get(family, "")


def _base(name: str) -> str:
    return re.sub(r"-v\d+$", "", name.rpartition("/")[2])


@lru_cache(maxsize=32)
def _seats(name: str, arguments: str) -> tuple[str, ...]:
    env = made(name, json.loads(arguments))
    seats = tuple(map(str, env.possible_agents))
    env.close()
    return seats


def variant(spec: AdapterSpec, options: Mapping[str, Any]) -> AdapterSpec:
    """Return the spec of one environment; UsageError if it can't be played."""
    name = str(options.get("id", ZOO_DEFAULT))
    seats = _seats(name, json.dumps(given_arguments(options), sort_keys=True))
    return replace(spec, title=name, seats=(len(seats), len(seats)), seat_names=seats)


def create(context: Context) -> PettingZooGame:
    """Return the game of an environment.

    Raises:
        UsageError: there is no such environment, its arguments are invalid, or it can't be told in words.
        PluginError: it can't be created; the message says what is missing.
        MissingServiceError: PettingZoo is not installed.
    """
    name = str(context.config.get("id", ZOO_DEFAULT))
    return PettingZooGame(name, given_arguments(context.config), context)


def made(name: str, arguments: Mapping[str, Any]) -> Any:
    """Return an environment by its id, or by `module:function`; see `create` for errors."""
    known = registry()
    try:
        if ":" in name:
            module, _, function = name.partition(":")
            env = getattr(importlib.import_module(module), function)(**arguments)
        elif name not in known:
            raise UsageError(f"PettingZoo has no environment {name!r}; `wsap games pettingzoo` lists them.")
        elif why := _why_not(name):
            raise UsageError(f"{name} can't be played by language models: {why}; write an adapter.")
        else:
            env = importlib.import_module("pettingzoo").make("aec", name, **arguments)
        env.reset(seed=0)
    except UsageError:
        raise
    except ImportError as error:
        raise PluginError(
            f"{name} needs another package ({error_line(error, 200)}); install it with: "
            f"{install_line('wsap-gymnasium[pettingzoo]')}"
        ) from error
    except Exception as error:
        raise PluginError(f"{name} can't be created: {error_line(error, 300, kind=True)}") from error
    _admitted(env, name)
    return env


def _admitted(env: Any, name: str) -> None:
    """Raise UsageError if an environment can't be told in words."""
    if not all(hasattr(env, part) for part in ("possible_agents", "agent_selection", "observe", "last")):
        raise UsageError(f"{name} is no environment whose agents act in turn; pass its `env`, not its `parallel_env`.")
    for agent in env.possible_agents:
        if not isinstance(env.action_space(agent), spaces.Discrete):
            raise UsageError(f"{name} takes actions that are no single number; write an adapter.")
        space = env.observation_space(agent)
        if isinstance(space, spaces.Dict) and "action_mask" in space.spaces:
            space = space["observation"]
        count = numbers_in(space)
        if _base(name) not in READERS and (count is None or count > MOST_NUMBERS):
            what = "pictures or other large arrays" if count else "what can't be told"
            raise UsageError(f"{name} observes {what}, so no language model can read it; write an adapter.")


class PettingZooGame(RoundGame):
    """An environment as a game. Snapshots are the moves since the seed, which restoring repeats."""

    def __init__(self, name: str, arguments: Mapping[str, Any], context: Context | None = None) -> None:
        self._env = made(name, arguments)
        self._raw: dict[str, Any] = {agent: self._env.observe(agent) for agent in self._env.agents}
        self._name = name
        self._reader = READERS.get(_base(name))
        self.seats = tuple(map(str, self._env.possible_agents))
        self.action_space = ActionSpace((ActionDef(PLAY, "Make a move", (self._declared_move(),)),))
        doc = inspect.cleandoc(inspect.getmodule(type(self._env.unwrapped)).__doc__ or "")
        about = self._reader.about if self._reader else _plain(doc)[:_ABOUT]
        self.game_description = f"{name}, for {len(self.seats)} players. {about}".strip()
        super().__init__(context)

    def _declared_move(self) -> ParamDef:
        env = self._env
        counts = {int(env.action_space(agent).n) for agent in env.possible_agents}
        names = {tuple(self._names(agent)) for agent in env.possible_agents} if max(counts) <= MOST_NAMED else set()
        if len(names) == 1 and all(all(each) for each in names):
            return ParamDef("move", "|".join(*names))
        return ParamDef("move", "a move, written as in the list of what is possible now")

    # --- the rules --------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start from the seed."""
        self._start()

    def _start(self) -> None:
        self._env.reset(seed=derive_seed(self.seed, self.episode))
        self._log: list[int] = []
        self._cut: set[str] = set()
        self._paid_so_far = dict.fromkeys(self.seats, 0.0)
        self._look()

    def to_move(self) -> Sequence[str]:
        """Return the agent whose turn it is."""
        return (str(self._env.agent_selection),) if self._env.agents else ()

    def legal(self, seat: str) -> Sequence[Possible]:
        """Return what the environment's mask allows."""
        return [Possible(PLAY, choices={"move": list(self._moves(seat))})]

    def apply(self, moves: Mapping[str, Action]) -> None:
        """Make a move, and step agents that are done."""
        ((seat, action),) = moves.items()
        given, moves_of = str(action.parameters["move"]), self._moves(seat)
        if given not in moves_of:  # the kit has accepted it, in any case and with blanks around it
            given = next(name for name in moves_of if name.lower() == given.strip().lower())
        self._take(moves_of[given])

    def see(self, seat: str) -> Observation:
        """Return what an agent saw last."""
        return self._seen[seat]

    def out(self, seat: str) -> bool:
        """Return whether an agent is done while others go on."""
        return bool(self._env.agents) and seat not in self._env.agents

    def truncated(self, seat: str) -> bool:
        """Return whether the environment truncated an agent's episode."""
        return seat in self._cut

    def returns(self) -> Mapping[str, float]:
        """Return the rewards so far."""
        return self._paid_so_far

    def dump(self) -> JsonValue:
        """Return the moves."""
        return list(self._log)

    def load(self, data: JsonValue) -> None:
        """Repeat moves, each of which must be possible."""
        if not isinstance(data, list):
            raise TypeError("the moves are no list")
        self._start()
        for move in data:
            if not self._env.agents or type(move) is not int or move not in self._allowed(self._env.agent_selection):
                raise ValueError(f"{move!r} is no move that is possible here")
            self._take(move)

    # --- parts ------------------------------------------------------------------------------------------

    def _take(self, move: int) -> None:
        env = self._env
        self._log.append(move)
        env.step(move)
        for agent, reward in env.rewards.items():
            if not math.isfinite(reward):
                raise ValueError(f"{self._name} gave {agent} the reward {reward}, which is no number")
            self._paid_so_far[str(agent)] += float(reward)
        self._cut |= {str(agent) for agent, cut in env.truncations.items() if cut and not env.terminations[agent]}
        self._look()
        while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
            env.step(None)
            self._look()

    def _look(self) -> None:
        """Take down what all agents see: of one that is done, nothing can be asked later."""
        before: dict[str, Observation] = getattr(self, "_seen", {})
        self._raw = {agent: self._env.observe(agent) for agent in self._env.agents}
        self._known: dict[str, dict[str, int]] = {}
        self._seen = {**before, **{str(agent): self._noted(agent) for agent in self._env.agents}}

    def _noted(self, agent: str) -> Observation:
        seen = self._raw[agent]
        if self._reader is not None:
            return TextObservation(drawing=drawn(self._reader.text(self._env, agent, seen)))
        if isinstance(seen, Mapping) and "action_mask" in seen:
            seen = seen["observation"]
        return TextObservation(status=told(seen, ()))

    def _allowed(self, agent: str) -> list[int]:
        seen, info = self._raw[agent], self._env.infos[agent]
        mask = seen.get("action_mask") if isinstance(seen, Mapping) else None
        mask = info.get("action_mask") if mask is None else mask
        space = self._env.action_space(agent)
        if mask is None:
            return [int(space.start) + number for number in range(int(space.n))]
        return [int(space.start) + int(number) for number in np.flatnonzero(mask)]

    def _names(self, agent: str) -> Sequence[str]:
        if self._reader is not None:
            return self._reader.names(self._env, agent, self._raw[agent])
        space = self._env.action_space(agent)
        return [str(int(space.start) + number) for number in range(int(space.n))]

    def _moves(self, seat: str) -> dict[str, int]:
        """Return the moves of the agent whose turn it is, by name."""
        if seat not in self._known:
            names, start = self._names(seat), int(self._env.action_space(seat).start)
            self._known[seat] = {names[number - start]: number for number in self._allowed(seat)}
        return self._known[seat]

    def close(self) -> None:
        """Close the environment."""
        self._env.close()


def _plain(doc: str) -> str:
    """Return documentation without its title, tables and pictures."""
    lines = [line for line in doc.splitlines() if not line.lstrip().startswith(("#", "|", "`", ":", "<"))]
    return strip_control(re.sub(r"\n{2,}", "\n", "\n".join(lines))).strip()

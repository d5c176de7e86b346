"""WSAP's games as PettingZoo environments, in which agents act in turn (`aec`) or all at once (`parallel`).

from wsap_gymnasium.multi import aec
env = aec("matrix", max_steps=500)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import seeding

from wsap_core.errors import MissingServiceError, UsageError
from wsap_core.installing import install_line
from wsap_core.protocol import Action, Observation
from wsap_core.seams.context import SEED_LIMIT
from wsap_core.worlds import Outcome
from wsap_gymnasium.envs import CHARACTERS, LONGEST, Seen, spelled
from wsap_gymnasium.numbering import Numbering
from wsap_nexus.doors.driven import DrivenTable

try:
    from pettingzoo import AECEnv, ParallelEnv
except ImportError as error:
    raise MissingServiceError(
        f"This needs PettingZoo; install it with: {install_line('wsap-gymnasium[pettingzoo]')}"
    ) from error

# Any, in this module: JSON and Gymnasium's own types.


def aec(game: str, **how: Any) -> WsapAEC:
    """Return a game as an environment in which agents act in turn; see `WsapAEC`."""
    return WsapAEC(game, **how)


def parallel(game: str, **how: Any) -> WsapParallel:
    """Return a game as an environment in which agents act at once; see `WsapParallel`."""
    return WsapParallel(game, **how)


class _Table:
    """A game with its numbered actions and spaces, by seat.

    Args:
        game: a registered game, or `./file.py:Name`.
        options: options of the game.
        seats: the number of players; None for the fewest.
        max_steps: rounds after which an episode is truncated, those with refused actions included; None for no limit.
        text: whether observations have a text, which takes time to write.
        render_mode: "ansi" to have `render` return the texts of all agents, or None.

    Raises:
        UsageError: the game has no such number of players, or one of them has no action that can be numbered.
        WsapError: the game can't be created.
    """

    def __init__(
        self,
        game: str,
        *,
        options: Mapping[str, Any] | None = None,
        seats: int | None = None,
        max_steps: int | None = None,
        text: bool = True,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "ansi"):
            raise UsageError(f"There is no render mode {render_mode!r}; there is 'ansi'.")
        self.world = DrivenTable(game, options, seats=seats)
        self.names = list(self.world.seats)
        self.numberings = {name: Numbering(self.world.action_space(name)) for name in self.names}
        for name, numbering in self.numberings.items():
            if not len(numbering):
                raise UsageError(f"No action of {name} in {self.world.spec.display_title} can be numbered.")
        self.text, self.max_steps = text, max_steps
        self.rounds = 0
        self._cut: set[str] = set()
        self.chance = seeding.np_random(None)[0]
        self.action_spaces = {name: spaces.Discrete(len(numbers)) for name, numbers in self.numberings.items()}
        self.observation_spaces = {name: self._space(name) for name in self.names}

    def _space(self, name: str) -> spaces.Dict:
        parts: dict[str, spaces.Space[Any]] = {"action_mask": spaces.MultiBinary(len(self.numberings[name]))}
        if self.text:
            parts["text"] = spaces.Text(LONGEST, min_length=0, charset=CHARACTERS)
        return spaces.Dict(parts)

    def reset(self, seed: int | None) -> dict[str, dict[str, Any]]:
        """Start an episode, and return infos: of a seed, or of one that is drawn from the sequence of the last seed."""
        if seed is not None:
            self.chance = seeding.np_random(seed)[0]
        chosen = int(self.chance.integers(SEED_LIMIT + 1)) if seed is None else seed % (SEED_LIMIT + 1)
        self.rounds = 0
        self._cut.clear()
        self.world.reset(chosen)
        return {name: {"observation": self.observation(name), "seed": chosen} for name in self.names}

    def step(self, numbers: Mapping[str, Any]) -> dict[str, Outcome]:
        """Let ready seats take the actions of these numbers, and return what seats were told."""
        self.rounds += 1
        told = self.world.step({name: self.action(name, number) for name, number in numbers.items()})
        self._cut |= {name for name, outcome in told.items() if outcome.result.truncated}
        return told

    def action(self, name: str, number: Any) -> Action:
        """Return the action of a number."""
        return self.numberings[name].actions[int(number)]

    def observation(self, name: str) -> Observation:
        """Return what a seat saw last."""
        return self.world.ready.get(name) or self.world.seen.get(name) or Observation()

    def seen(self, name: str, *, waits: bool = False) -> Seen:
        """Return a seat's observation; nothing is possible for one that `waits` or is not asked."""
        observation = self.observation(name)
        asked = name in self.world.ready and not waits
        seen: Seen = {"action_mask": self.numberings[name].mask(observation) if asked else self._nothing(name)}
        if self.text:
            seen["text"] = spelled(observation.to_text())
        return seen

    def _nothing(self, name: str) -> npt.NDArray[np.int8]:
        return np.zeros(len(self.numberings[name]), np.int8)

    def terminated(self, name: str) -> bool:
        """Return whether the game is over for a seat by its own rules."""
        return name in self.world.done and name not in self._cut

    def truncated(self, name: str) -> bool:
        """Return whether a limit ended the episode of a seat: of the game's own, or `max_steps`."""
        late = self.max_steps is not None and self.rounds >= self.max_steps
        return name in self._cut or (late and name not in self.world.done)

    def info(self, name: str, outcome: Outcome | None) -> dict[str, Any]:
        """Return what is told beside an observation."""
        told: dict[str, Any] = {"observation": self.observation(name)}
        if outcome is None:
            return told
        result = outcome.result
        told |= {"message": result.message, "success": result.success, "achievements": list(result.achievements)}
        return told if result.success else {**told, "refused": result.message}

    def drawing(self, agents: list[str]) -> str:
        """Return what all agents see, as text."""
        return "\n\n".join(f"{name}\n{spelled(self.observation(name).to_text())}" for name in agents)


class WsapAEC(AECEnv[str, Seen, np.int64]):  # type: ignore[misc]  # it may be installed or not
    """A game whose agents are asked one after the other. Where several decide at the same time, their actions are
    carried out together after the last one's.

    An action is the number of one of `actions(agent)`. An observation has `action_mask`, which says for each number
    whether it is possible now, and with `text` also `text`, what a language model would read. An impossible action is
    refused: `infos[agent]["refused"]` says why, and the agent is asked again. The arguments are those of `_Table`.
    """

    metadata = {"render_modes": ["ansi"], "name": "wsap_v0", "is_parallelizable": False}  # noqa: RUF012  as PettingZoo

    def __init__(self, game: str, *, render_mode: str | None = None, **how: Any) -> None:
        super().__init__()
        self.table = _Table(game, render_mode=render_mode, **how)
        """The game, its world and its numbered actions."""
        self.render_mode = render_mode
        self.possible_agents = list(self.table.names)
        self.agents: list[str] = []
        self._chosen: dict[str, Any] = {}

    def actions(self, agent: str) -> tuple[Action, ...]:
        """Return number -> action of an agent."""
        return self.table.numberings[agent].actions

    def observation_space(self, agent: str) -> spaces.Dict:
        """Return the space of an agent's observations."""
        return self.table.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """Return the space of an agent's actions."""
        return self.table.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start an episode: of a seed, or of one that is drawn from the sequence that the last seed began."""
        self.infos = self.table.reset(seed)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._chosen = {}
        self._skip_agent_selection = None
        self.agent_selection = next(iter(self.table.world.ready), self.agents[0])

    def observe(self, agent: str) -> Seen:
        """Return what an agent sees."""
        return self.table.seen(agent, waits=agent in self._chosen)

    def step(self, action: Any) -> None:
        """Take the action of the selected agent; None for one that is done."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self._chosen[agent] = action
        waiting = [name for name in self.table.world.ready if name not in self._chosen]
        if not waiting:
            chosen, self._chosen = self._chosen, {}
            self._told(self.table.step(chosen))
            waiting = list(self.table.world.ready)
        self.agent_selection = waiting[0] if waiting else agent
        self._accumulate_rewards()
        self._deads_step_first()

    def _told(self, told: Mapping[str, Outcome]) -> None:
        for name in self.agents:
            outcome = told.get(name)
            if outcome is not None:
                self.rewards[name] = float(outcome.result.reward)
            self.infos[name] = self.table.info(name, outcome)
            self.terminations[name] = self.table.terminated(name)
            self.truncations[name] = self.table.truncated(name)

    def render(self) -> str | None:
        """Return what all agents see."""
        return self.table.drawing(self.agents) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Close the game."""
        self.table.world.close()


class WsapParallel(ParallelEnv[str, Seen, np.int64]):  # type: ignore[misc]  # as above
    """A game whose agents act at once. Nothing is possible for one that waits for others; its action is ignored.

    See `WsapAEC` for actions, observations and refusals. The arguments are those of `_Table`.
    """

    metadata = {"render_modes": ["ansi"], "name": "wsap_v0"}  # noqa: RUF012  as PettingZoo

    def __init__(self, game: str, *, render_mode: str | None = None, **how: Any) -> None:
        self.table = _Table(game, render_mode=render_mode, **how)
        """The game, its world and its numbered actions."""
        self.render_mode = render_mode
        self.possible_agents = list(self.table.names)
        self.agents: list[str] = []

    def actions(self, agent: str) -> tuple[Action, ...]:
        """Return number -> action of an agent."""
        return self.table.numberings[agent].actions

    def observation_space(self, agent: str) -> spaces.Dict:
        """Return the space of an agent's observations."""
        return self.table.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """Return the space of an agent's actions."""
        return self.table.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Seen], dict[str, dict[str, Any]]]:
        """Start an episode: of a seed, or of one that is drawn from the sequence that the last seed began."""
        infos = self.table.reset(seed)
        self.agents = list(self.possible_agents)
        return {name: self.table.seen(name) for name in self.agents}, infos

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Seen], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:  # fmt: skip
        """Take the actions of all agents that are asked."""
        ready = self.table.world.ready
        told = self.table.step({name: number for name, number in actions.items() if name in ready})
        agents = self.agents
        terminations = {name: self.table.terminated(name) for name in agents}
        truncations = {name: self.table.truncated(name) for name in agents}
        self.agents = [name for name in agents if not terminations[name] and not truncations[name]]
        return (
            {name: self.table.seen(name) for name in agents},
            {name: float(told[name].result.reward) if name in told else 0.0 for name in agents},
            terminations,
            truncations,
            {name: self.table.info(name, told.get(name)) for name in agents},
        )

    def render(self) -> str | None:
        """Return what all agents see."""
        return self.table.drawing(self.agents) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Close the game."""
        self.table.world.close()

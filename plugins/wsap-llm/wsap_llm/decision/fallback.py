"""The fallback action, and a limit on actions that end no turn."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from wsap_core.builtin.random_agents import RandomAgent
from wsap_core.errors import ConfigError
from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace, Observation
from wsap_core.seams.agent import GetDefault
from wsap_core.worlds.legality import check_action, index_actions
from wsap_core.worlds.mailbox import SHARED_NAMES
from wsap_llm.tools.lookup import is_lookup, split

MOST_IDLE = 5
"""Maximum number of times that an action may be taken in a turn without ending it."""
FORCED = "(the reply could not be understood)"
"""The reasoning of a fallback action."""


class Fallback:
    """The action for an unusable reply: the declared fallback, the seat's default action or, if neither is legal, a
    random legal action of the game, as the agent `random-legal` takes it."""

    def __init__(self, declared: str | None, generator: random.Random) -> None:
        self._declared = declared
        self._random = generator
        self.get_default: GetDefault | None = None
        """Returns the seat's default action."""

    def check(self, space: ActionSpace) -> None:
        """Raise ConfigError if the game lacks the declared action, or the action requires parameters."""
        if self._declared is not None and (why := check_action(Action(self._declared), index_actions(space))[1]):
            raise ConfigError(f"Invalid option fallback={self._declared!r}: {why}")

    async def action(self, legal: Sequence[ActionDef], observation: Observation) -> Action:
        """Return the fallback action for an observation."""
        default = await self.get_default() if self.get_default is not None else None
        offered = {action.name: action for action in split(legal)[0]}
        chance = RandomAgent(self._random, legal_only=True)
        chance.initialize("", ActionSpace(tuple(offered.values())))
        candidates = (Action(self._declared) if self._declared else None, default)
        fits = (action for action in candidates if action is not None and not check_action(action, offered)[1])
        return replace(next(fits, None) or chance.decide(observation), reasoning=FORCED)


class IdleActions:
    """Counts how often each action was taken in a turn without ending it, to stop models that repeat one forever."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def note(self, before: Observation, action: Action, result: ActionResult) -> None:
        """Count an action by its result."""
        if _took_no_turn(before, action, result):
            self.counts[action.name] += 1
        else:
            self.counts.clear()

    def without(self, legal: Sequence[ActionDef]) -> Sequence[ActionDef]:
        """Return the legal actions without those taken too often; all if none that can end a turn would be left."""
        left = [action for action in legal if self.counts[action.name] < MOST_IDLE]
        return legal if all(map(is_lookup, left)) else left


def _took_no_turn(before: Observation, action: Action, result: ActionResult) -> bool:
    now = result.observation
    if result.done or now.step != before.step:
        return False
    # A game that counts no steps is always at step 0 and needs other criteria.
    return before.step > 0 or not result.success or action.name in SHARED_NAMES or _state(now) == _state(before)


def _state(observation: Observation) -> Observation:
    return replace(observation, recent_events=(), messages=())

"""Baseline agents without a model."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from wsap_core.errors import ConfigError, SnapshotError
from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace, Goal, Observation
from wsap_core.protocol.availability import choices_of
from wsap_core.sampling import sample
from wsap_core.seams.context import Context
from wsap_core.worlds.legality import narrowed
from wsap_core.worlds.mailbox import SHARED_NAMES


def _own_actions(space: ActionSpace) -> tuple[ActionDef, ...]:
    """Return the game's own actions, without avatar and message actions, tools and the category "meta"."""
    return tuple(a for a in space.actions if a.name not in SHARED_NAMES and a.category != "meta" and not a.is_tool)


def _listed(
    action: ActionDef, choices: Mapping[str, Sequence[str]], observation: Observation
) -> Mapping[str, Sequence[str]]:
    """Return parameter -> the values that an observation lists for it, without parameters for which it lists none."""
    if choices := {name: values for name, values in choices.items() if values}:
        return choices
    entities = getattr(observation, "nearby_entities", ())
    things = [*(entity.name for entity in entities if entity.name), *observation.inventory]
    texts = (p.name for p in action.parameters if p.json_schema() == {"type": "string"})
    return dict.fromkeys(texts, things) if things else {}


class _Baseline:
    def reflect(self, result: ActionResult) -> None:
        pass

    def plan(self, goals: list[Goal]) -> list[str]:
        return []


class RandomAgent(_Baseline):
    """Picks actions and their parameters uniformly at random; with `legal_only`, only available ones.

    Otherwise half of the parameters are drawn from all declared values, and half from what the observation lists for
    the action: its choices or, for a text without any, the names of entities and items. It does not pick avatar and
    message actions unless the game has no other ones, nor tools unless nothing else is possible.
    """

    def __init__(self, generator: random.Random, *, legal_only: bool = False) -> None:
        self._random = generator
        self._legal_only = legal_only
        self._actions: tuple[ActionDef, ...] = ()
        self._tools: tuple[ActionDef, ...] = ()

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Receive the declared actions."""
        own = _own_actions(action_space)
        self._tools = tuple(a for a in action_space.actions if a.is_tool)
        self._actions = own or tuple(a for a in action_space.actions if not a.is_tool) or self._tools

    def decide(self, observation: Observation) -> Action:
        """Return a random action."""
        candidates = self._actions
        told = {a.name: a for a in observation.available_actions or ()}
        if told and self._legal_only:
            some = (candidates, self._tools)
            legal = (tuple(a for a in group if a.name not in told or told[a.name].available) for group in some)
            candidates = next(filter(None, legal), candidates)
        chosen = candidates[self._random.randrange(len(candidates))]
        if not chosen.parameters:
            return Action(chosen.name)
        choices = choices_of(told[chosen.name]) if chosen.name in told else {}
        parameters = chosen.parameters
        if self._legal_only:
            parameters = narrowed(chosen, choices).parameters
        elif (listed := _listed(chosen, choices, observation)) and self._random.random() < 0.5:
            known = [p for p in parameters if not p.optional or p.name in listed or self._random.random() < 0.5]
            parameters = narrowed(replace(chosen, parameters=tuple(known)), listed).parameters
        return Action(chosen.name, {p.name: sample(p.json_schema(), self._random) for p in parameters})

    def snapshot(self) -> bytes:
        """Return the state of the generator."""
        version, state, gauss = self._random.getstate()
        return json.dumps([version, list(state), gauss]).encode()

    def restore(self, data: bytes) -> None:
        """Restore a snapshot; `SnapshotError` if it is damaged."""
        try:
            version, state, gauss = json.loads(data)
            self._random.setstate((version, tuple(state), gauss))
        except (ValueError, TypeError) as error:
            raise SnapshotError(f"The random agent's snapshot is damaged: {error}.") from error


class AlwaysAgent(_Baseline):
    """Repeats one action: the given one, or the game's first that needs no parameters."""

    def __init__(self, action: str | None = None) -> None:
        self._action = action
        self._choices: tuple[str, ...] = ()

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Receive the declared actions; `ConfigError` if the given action is not one of them."""
        own = list(_own_actions(action_space))
        own.sort(key=lambda action: any(not p.optional for p in action.parameters))
        self._choices = tuple(action.name for action in own)
        if self._action is not None and self._action not in action_space.names:
            raise ConfigError(
                f"The option action={self._action!r} is not an action of this game; "
                f"there are: {', '.join(self._choices)}."
            )

    def decide(self, observation: Observation) -> Action:
        """Return the action."""
        return Action(self._action or self._choices[0])

    def snapshot(self) -> bytes:
        """Return no data: there is no state."""
        return b""

    def restore(self, data: bytes) -> None:
        """Do nothing: there is no state."""


def create_random(context: Context) -> RandomAgent:
    """Return the random baseline."""
    return RandomAgent(context.random)


def create_random_legal(context: Context) -> RandomAgent:
    """Return the random baseline of available actions."""
    return RandomAgent(context.random, legal_only=True)


def create_always(context: Context) -> AlwaysAgent:
    """Return an agent that repeats the option `action`."""
    action = context.config.get("action")
    return AlwaysAgent(None if action is None else str(action))

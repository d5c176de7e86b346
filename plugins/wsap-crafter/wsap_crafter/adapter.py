"""Crafter as a world of the protocol: one seat, one body, everything in words."""

from __future__ import annotations

from wsap_core.context import Context
from wsap_core.errors import ConfigError
from wsap_core.models import Action, ActionResult, ActionSpace, Avatar, AvatarState
from wsap_crafter.engine import CrafterEngine
from wsap_crafter.narration import note_before, tell_action, tell_step
from wsap_crafter.observation import NOTHING, CrafterObservation, Happenings, build_observation, carried
from wsap_crafter.rules import ACTION_SPACE, GAME_ACTIONS, Situation, availability, situation_of
from wsap_crafter.sight import Sight, ground_table, look_around

_NUMBER = {name: number for number, name in enumerate(GAME_ACTIONS)}


class CrafterAdapter:
    """One Crafter world and the player in it.

    Configuration: ``length``, the steps after which an episode is over (10000; 0 for no limit).
    """

    def __init__(self, context: Context | None = None) -> None:
        context = context or Context()
        self._seed = context.seed
        self._engine = CrafterEngine(context.seed, _length(context))
        self._characters = ground_table(self._engine.world)
        self._sight: Sight
        self._situation: Situation
        self._observation: CrafterObservation
        self.reset(context.seed)

    @property
    def game_description(self) -> str:
        """The rules of the game in words."""
        from wsap_crafter.description import DESCRIPTION

        return DESCRIPTION

    @property
    def action_space(self) -> ActionSpace:
        """The game's 17 actions."""
        return ACTION_SPACE

    def reset(self, seed: int | None = None) -> CrafterObservation:
        """Begin the first episode of a seed, or with None the next one of the seed at hand.

        The world of a seed's first episode is that of ``crafter.Env(seed=seed)``.
        """
        self._engine.reset(seed)
        return self._perceive(NOTHING)

    def observe(self) -> CrafterObservation:
        """Return what the player perceives now; the same object until something changes."""
        return self._observation

    def act(self, action: Action) -> ActionResult:
        """Carry out one of the 17 actions as one step of the game.

        An action that is impossible now takes a step too, as in the game, and is reported with
        ``success=False`` and the reason. An action that the game does not have, and any action
        after the end of the episode, takes no step.
        """
        number = _NUMBER.get(action.name)
        if self._engine.done:
            return self._refuse("The episode is over; nothing can be done until the next one begins.")
        if number is None:
            known = ", ".join(GAME_ACTIONS)
            return self._refuse(f"There is no action {action.name!r} in Crafter; it has {known}.")
        if action.parameters:
            return self._refuse(f"{action.name} takes no parameters.")
        return self._step(action.name, number)

    def _step(self, name: str, number: int) -> ActionResult:
        engine = self._engine
        player = engine.player
        possible = availability(self._situation)[number]
        before = note_before(player, self._sight, self._situation.facing)
        report = engine.step(name)
        observation = self._perceive(tell_step(report, before, player, engine.steps))
        message = f"Nothing came of {name}: {possible.reason}."
        if possible.available:
            message = tell_action(name, before, player)
        return ActionResult(possible.available, message, report.reward, report.unlocked, engine.done, observation)

    def _refuse(self, message: str) -> ActionResult:
        return ActionResult(False, message, 0.0, (), self._engine.done, self._observation)

    def _perceive(self, happenings: Happenings) -> CrafterObservation:
        engine = self._engine
        self._sight = look_around(engine.world, engine.player, self._characters)
        self._situation = situation_of(engine.player, self._sight)
        self._observation = build_observation(engine, self._sight, self._situation, self._avatar(), happenings)
        return self._observation

    def _avatar(self) -> Avatar:
        player = self._engine.player
        x, y = player.pos.tolist()
        return Avatar(
            "avatar-1",
            "crafter",
            None,
            AvatarState.UNBOUND,
            "Player",
            (x, y),
            {},
            player.inventory["health"],
            9,
            carried(self._situation.items),
        )


def _length(context: Context) -> int:
    length = context.config.get("length", 10_000)
    if isinstance(length, bool) or not isinstance(length, int) or length < 0:
        raise ConfigError(f"Crafter's `length` is a whole number of steps, 0 for no limit, not {length!r}.")
    return length

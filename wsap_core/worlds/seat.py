"""A seat: one agent bound to one avatar in one world."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, cast

from wsap_core.errors import WorldError, WsapError
from wsap_core.protocol import Action, ActionResult, ActionSpace, EmbodiedObservation, Observation, View
from wsap_core.protocol.avatars import AVATAR_ACTIONS, Avatar, AvatarState, DeathEvent, JackOutResult
from wsap_core.protocol.lines import shown
from wsap_core.protocol.words import ENGLISH, words_of
from wsap_core.seams.game import ChoiceKey, GameAdapter, HasClosingResult, HasDefaultAction, Irreversible, Renders
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import error_line, raised_at, single_line
from wsap_core.worlds.answers import judged, wrong_in
from wsap_core.worlds.legality import check_action, index_actions, wrong_parameter
from wsap_core.worlds.mailbox import Mailbox, message_of

T = TypeVar("T")

_GESTURES = frozenset({"look", "emote"})
"""The avatar actions that go to the game even if it does not declare them."""
_BODILY = ActionSpace(tuple(action for action in AVATAR_ACTIONS.actions if action.name in ("look", "inspect_self")))
"""The avatar actions that every world with avatars lists; the nexus adds `jack_out`, and a game may declare `emote`."""

GAME_OVER = Action("game_over")
"""Stands for the decision of a seat for which the game ended without an action of its own."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one decision."""

    action: Action
    """The action, with parameters in declared form."""
    result: ActionResult
    stepped: bool
    """Whether it went to the game: False for refusals, messages, and actions that the seat carries out."""
    left: JackOutResult | None = None
    """Set if the agent left the world."""
    death: DeathEvent | None = None
    """Set if the avatar was destroyed."""


class SeatedWorld(Protocol):
    """The members of `World` that a seat needs."""

    spec: AdapterSpec
    mailbox: Mailbox | None
    has_avatars: bool

    def avatar_of(self, agent_id: str) -> Avatar:
        """See `World`."""

    def release(self, agent_id: str, mode: str, *, forced: bool = False) -> JackOutResult:
        """See `World`."""

    def death_of(self, agent_id: str, result: ActionResult) -> DeathEvent | None:
        """See `World`."""


class Seat:
    """One agent's interface to a world, created by `World.open_seat`.

    It checks actions before the game sees them, carries out `jack_out`, `inspect_self` and messages itself, and turns
    a game's exceptions into `WorldError` with their cause.
    """

    def __init__(self, world: SeatedWorld, agent_id: str, face: GameAdapter) -> None:
        self.world = world
        self.agent_id = agent_id
        self.left: JackOutResult | None = None
        """Set once the agent has left the world."""
        self.done = False
        """Whether the episode of this seat is over."""
        self.closing: ActionResult | None = None
        """Set by `observe` when the game ended without an action of this seat; `step(GAME_OVER)` returns it."""
        self.face = face
        """The game's own object for this seat."""
        self._closes = face if isinstance(face, HasClosingResult) else None
        self._blocking = world.spec.blocking
        self.last_observation: Observation | None = None
        self._words = words_of(world.spec.language)
        own = self._own_space()
        self.own_actions = frozenset(own.names)
        """The names of the actions that the game declares."""
        offered = own.merged(_BODILY.worded(self._words)) if world.has_avatars else own
        if world.mailbox is not None:
            offered = offered.merged(world.mailbox.actions_of(agent_id).worded(self._words))
        self.action_space = offered
        """All listed actions: the game's own, messages, and with avatars `look` and `inspect_self`."""
        self._declared = index_actions(self.action_space.merged(AVATAR_ACTIONS))

    @property
    def game_description(self) -> str:
        """The game's goals and mechanics."""
        return self._checked(lambda: self.face.game_description)

    def default_action(self) -> Action | None:
        """Return the action that is taken if the agent misses its deadline, or None if the world declares none."""
        if isinstance(self.face, HasDefaultAction):
            default = self._checked(self.face.default_action)
            return judged(self.world.spec.name, "has as its default action", default, Action)
        return self.world.spec.default_action

    async def observe(self) -> Observation:
        """Return this seat's observation at its next decision point; changes nothing."""
        observation = await self._call(self.face.observe)
        if not isinstance(observation, Observation):
            raise WorldError(f"{self._name} returned a {type(observation).__name__}, not an Observation.")
        if wrong := wrong_in(observation):
            raise WorldError(f"{self._name} observed {wrong}.")
        mailbox = self.world.mailbox
        if mailbox is not None and (messages := mailbox.waiting(self.agent_id)):
            observation = replace(observation, messages=(*observation.messages, *messages))
        observation = self._in_language(observation)
        if self._closes is not None and self.closing is None and not self.done:
            closing = self._checked(self._closes.closing_result)
            if closing is not None:
                self.closing = self._worded(judged(self.world.spec.name, "closed with", closing, ActionResult))
        self.last_observation = observation
        return observation

    @property
    def ended(self) -> bool:
        """Whether the game ended without an action of this seat, and only `step(GAME_OVER)` is left."""
        return self.closing is not None and not self.done

    async def look(self) -> View | None:
        """Return this seat's own view, never the world's view for spectators; None if the game has none."""
        if "render" not in self.world.spec.abilities or not isinstance(self.face, Renders):
            return None
        return judged(self.world.spec.name, "rendered", await self._call(self.face.render), View)

    async def act(self, action: Action) -> ActionResult:
        """Carry out an action and return its result."""
        return (await self.step(action)).result

    async def step(self, action: Action, key: ChoiceKey | None = None) -> Outcome:
        """Carry out an action and return its outcome; an `irreversible` world is passed the key of the choice."""
        if self.left is not None:
            return await self._refuse(action, "You have left this world.", done=True)
        if self.closing is not None and action.name == GAME_OVER.name:
            self.done, self.last_observation = True, self.closing.observation
            return Outcome(GAME_OVER, self.closing, stepped=False)
        action, why_not = check_action(action, self._declared)
        if why_not:
            return await self._refuse(action, why_not)
        if action.name not in self.own_actions and not (self.world.has_avatars and action.name in _GESTURES):
            return await self._carry_out(action)
        mailbox = self.world.mailbox
        heard = len(mailbox.waiting(self.agent_id)) if mailbox is not None else 0
        result = await self._call(lambda: self._act(action, key))
        if not isinstance(result, ActionResult):
            raise WorldError(f"{self._name} answered {action.name!r} with a {type(result).__name__}.")
        if wrong := wrong_in(result):
            raise WorldError(f"{self._name} answered {action.name!r} with {wrong}.")
        result = self._worded(result)
        if mailbox is not None:
            mailbox.mark_read(self.agent_id, heard)
        self.done, self.last_observation = result.done, result.observation
        death = self.world.death_of(self.agent_id, result) if result.done else None
        return Outcome(action, result, stepped=True, death=death)

    def _act(self, action: Action, key: ChoiceKey | None) -> ActionResult | Awaitable[ActionResult]:
        if key is not None and isinstance(self.face, Irreversible):
            return self.face.act_once(action, key)
        return self.face.act(action)

    def leave(self, mode: str = "dormant") -> JackOutResult:
        """Take the agent out of the world, even if its body is not safe."""
        self.left = self.world.release(self.agent_id, mode, forced=True)
        return self.left

    def begin_episode(self) -> None:
        """Forget the last episode; the world calls this after a reset."""
        self.done, self.closing = False, None
        self.left = None
        self.last_observation = None

    @property
    def _name(self) -> str:
        return f"The game {self.world.spec.name!r}"

    async def _carry_out(self, action: Action) -> Outcome:
        """Carry out an action that takes no game step."""
        if action.name == "inspect_self":
            observation = await self.observe()
            return Outcome(action, ActionResult(True, self._describe(observation), observation=observation), False)
        if action.name == "jack_out":
            return await self._jack_out(action)
        message = message_of(
            action, sender=self.agent_id, step=self.last_observation.step if self.last_observation else None
        )
        if message is not None and self.world.mailbox is not None:
            if reason := self.world.mailbox.send(message):
                return await self._refuse(action, reason)
            result = ActionResult(True, self._words.say("Said."), observation=await self._state())
            return Outcome(action, result, False)
        return await self._refuse(action, f"This world has no way to {action.name}.")

    async def _jack_out(self, action: Action) -> Outcome:
        left = self.world.release(self.agent_id, str(action.parameters.get("mode", "dormant")))
        if not left.success:
            return await self._refuse(action, left.message)
        observation = await self._state()
        self.left = left
        message = self._words.say(left.message or "You have left.")
        result = ActionResult(True, message, done=True, observation=observation)
        return Outcome(action, result, False, left=left)

    async def _refuse(self, action: Action, reason: str, *, done: bool | None = None) -> Outcome:
        over = self.done if done is None else done
        result = ActionResult(False, self._words.say(reason), done=over, observation=await self._state())
        return Outcome(action, result, False)

    def _worded(self, result: ActionResult) -> ActionResult:
        """Return a result with its texts in the language of the game."""
        if self._words is ENGLISH:
            return result
        said, seen = self._words.say(result.message), self._in_language(result.observation)
        return replace(result, message=said, observation=seen)

    def _in_language(self, observation: Observation) -> Observation:
        return observation if self._words is ENGLISH else replace(observation, language=self._words.language)

    async def _state(self) -> Observation:
        """Return the last observation, without waiting for a turn."""
        if self.last_observation is not None:
            return self.last_observation
        if inspect.iscoroutinefunction(self.face.observe):
            return self._in_language(Observation())
        return await self.observe()

    def _own_space(self) -> ActionSpace:
        space = judged(self.world.spec.name, "declares", self._checked(lambda: self.face.action_space), ActionSpace)
        for action in space.actions:
            for parameter in action.parameters:
                if wrong := wrong_parameter(parameter):
                    raise WorldError(f"{self._name} declares {action.name!r} with {parameter.name!r}: {wrong}")
        return space

    def _describe(self, observation: Observation) -> str:
        avatar = observation.avatar if isinstance(observation, EmbodiedObservation) else None
        avatar = avatar or self.world.avatar_of(self.agent_id)
        parts = [f"You are {single_line(avatar.name or avatar.avatar_id)}."]
        if avatar.state is AvatarState.DESTROYED:
            parts.append("You are dead.")
        if avatar.max_health:
            parts.append(f"Health {avatar.health:g} of {avatar.max_health:g}.")
        status = ", ".join(f"{single_line(k)} {shown(v)}" for k, v in observation.status.items())
        parts.append(f"Status: {status}." if status else "")
        carried = ", ".join(f"{n} {single_line(k)}" for k, n in observation.inventory.items())
        parts.append(f"You carry {carried}." if carried else "You carry nothing.")
        worn = ", ".join(f"{single_line(v)} ({single_line(k)})" for k, v in avatar.equipment.items())
        parts.append(f"You wear {worn}." if worn else "")
        return " ".join(self._words.say(p) for p in parts if p)

    async def _call(self, method: Callable[[], T | Awaitable[T]]) -> T:
        with blamed(f"{self._name} raised"):
            value = await asyncio.to_thread(method) if self._blocking else method()
            return cast(T, await value if inspect.isawaitable(value) else value)

    def _checked(self, read: Callable[[], T]) -> T:
        with blamed(f"{self._name} raised"):
            return read()


@contextmanager
def blamed(words: str, kind: type[WorldError] = WorldError) -> Iterator[None]:
    """Turn any exception of a game within the block into a `WorldError` whose message starts with these words."""
    try:
        yield
    except WsapError:
        raise
    except (Exception, SystemExit) as error:
        raise kind(f"{words} {error_line(error, kind=True)}{raised_at(error)}") from error

"""Checks of the life of avatars: created, entered, left dormant, suspended, destroyed, respawned."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from wsap_check.episodes import play_to_the_end
from wsap_check.play import RandomPlayer, Table, settle, walk
from wsap_check.raised import called, describe
from wsap_check.steps import Step, fresh_text
from wsap_check.subject import Notes, NothingToCheck, Subject, check
from wsap_core.errors import WsapError
from wsap_core.protocol import (
    Action,
    Avatar,
    AvatarSpec,
    AvatarState,
    DeathEvent,
    EmbodiedObservation,
    JackInResult,
    JackOutResult,
)
from wsap_core.protocol.avatars import can_become
from wsap_core.seams.game import AvatarGameAdapter

_MODES = {"dormant": AvatarState.DORMANT, "suspend": AvatarState.SUSPENDED, "despawn": AvatarState.DESTROYED}
R = TypeVar("R", JackInResult, JackOutResult)

_ME, _OTHER = "conformance-a", "conformance-b"


class _Bodies:
    """A fresh world of avatars, asked with an eye on what it answers."""

    def __init__(self, notes: Notes, subject: Subject) -> None:
        self.notes = notes
        self.game = cast(AvatarGameAdapter, subject.world().adapter)

    def create(self, agent: str) -> Avatar | None:
        """Return a new avatar, or None after a note of what is wrong with it."""
        avatar: Any = self.game.create_avatar(agent, AvatarSpec(name=agent))
        if not isinstance(avatar, Avatar):
            self.notes.error(f"create_avatar() returned a {type(avatar).__name__}, not an Avatar.")
            return None
        if avatar.state is not AvatarState.UNBOUND or avatar.bound_agent is not None:
            self.notes.error(f"A new avatar is {avatar.state.value}; it must be unbound.")
        if avatar.avatar_id not in [a.avatar_id for a in self.game.list_avatars(agent)]:
            self.notes.error("A new avatar is not among those that list_avatars() gives.")
        return avatar

    def now(self, agent: str, avatar_id: str) -> Avatar | None:
        """Return an avatar as it is listed now."""
        return next((a for a in self.game.list_avatars(agent) if a.avatar_id == avatar_id), None)

    def enter(self, agent: str, avatar_id: str) -> JackInResult:
        """Jack in, or note what was returned instead of a result."""
        return self._result("jack_in", agent, avatar_id, JackInResult(False))

    def leave(self, agent: str, mode: str) -> JackOutResult:
        """Jack out, or note what was returned instead of a result."""
        return self._result("jack_out", agent, mode, JackOutResult(False))

    def _result(self, name: str, agent: str, what: str, refusal: R) -> R:
        try:
            result: object = getattr(self.game, name)(agent, what)
        except Exception as error:
            message = f"{describe(error, called(name, agent, what))}; it must refuse with success=False."
            self.notes.error(message, about=name)
            return refusal
        if isinstance(result, type(refusal)):
            return result
        self.notes.error(f"{name}() returned a {type(result).__name__}.", about=name)
        return refusal


@check("avatars")
async def jack_in(notes: Notes, subject: Subject) -> None:
    """An avatar is created unbound, and one agent at a time can enter it."""
    bodies = _Bodies(notes, subject)
    avatar = bodies.create(_ME)
    if avatar is None:
        return
    if bodies.enter(_ME, "no-such-avatar").success:
        notes.error("jack_in() into an avatar that does not exist succeeded.")
    result = bodies.enter(_ME, avatar.avatar_id)
    if not result.success:
        notes.error(f"An agent can't jack in to its own new avatar: {result.message or '(no message)'}")
        return
    _look_at_entry(notes, result)
    if bodies.enter(_OTHER, avatar.avatar_id).success:
        notes.error("A second agent entered an avatar that is already bound.")
    now = bodies.now(_ME, avatar.avatar_id)
    if now is None or now.state is not AvatarState.BOUND or now.bound_agent != _ME:
        shown = "not listed" if now is None else f"{now.state.value}, bound to {now.bound_agent!r}"
        notes.error(f"After jack_in() the avatar is {shown}.")


def _look_at_entry(notes: Notes, result: JackInResult) -> None:
    if result.avatar is None or result.avatar.state is not AvatarState.BOUND:
        notes.error("A successful jack_in() must return the avatar, bound.")
    if result.initial_observation is None:
        notes.error("A successful jack_in() must return the first observation.")


@check("avatars")
async def jack_out(notes: Notes, subject: Subject) -> None:
    """An avatar is left dormant, suspended or destroyed as asked, and can be entered again if it lives."""
    refused = []
    for mode, expected in _MODES.items():
        bodies = _Bodies(notes, subject)
        avatar = bodies.create(_ME)
        if avatar is None or not bodies.enter(_ME, avatar.avatar_id).success:
            return
        if bodies.leave(_OTHER, mode).success:
            notes.error(f"An agent left ({mode}) an avatar that it is not in.")
        if bodies.leave(_ME, "no-such-mode").success:
            notes.error("jack_out() took a mode that does not exist.")
        left = bodies.leave(_ME, mode)
        if not left.success:
            if not left.message.strip():
                notes.error(f"jack_out({mode!r}) was refused without a reason.")
            refused.append(mode)
            continue
        now = bodies.now(_ME, avatar.avatar_id)
        state = now.state if now is not None else AvatarState.DESTROYED
        if left.avatar_state is not expected or state is not expected:
            notes.error(
                f"After jack_out({mode!r}) the avatar is {state.value}, and the result says {left.avatar_state}."
            )
        if now is not None and now.bound_agent is not None:
            notes.error(f"After jack_out({mode!r}) the avatar is still bound to {now.bound_agent!r}.")
        await _act_from_outside(notes, subject, bodies, mode)
        back = bodies.enter(_ME, avatar.avatar_id).success
        if back != can_become(expected, AvatarState.BOUND):
            how = "was not let back into" if not back else "jacked in to"
            notes.error(f"The agent {how} an avatar that is {expected.value}.")
    if len(refused) == len(_MODES):
        raise NothingToCheck("no agent may leave this world at the start")


async def _act_from_outside(notes: Notes, subject: Subject, bodies: _Bodies, mode: str) -> None:
    if subject.can("multi-seat"):
        return
    game = bodies.game
    before = fresh_text(await settle(game.observe(), subject))
    result = await settle(game.act(Action(game.action_space.names[0])), subject)
    if result is not None and result.success:
        notes.error(f"An action succeeded with nobody in the avatar (after jack_out({mode!r})).", about="outside")
    elif fresh_text(await settle(game.observe(), subject)) != before:
        notes.error(f"An action with nobody in the avatar changed the state (after jack_out({mode!r})).", about="moved")


@check("avatars")
async def avatar_states(notes: Notes, subject: Subject) -> None:
    """Avatars change state only as the protocol allows."""
    last: dict[str, tuple[int, AvatarState]] = {}
    for step in await walk(subject, 100, "available"):
        for observation in (step.before, step.result.observation):
            if not isinstance(observation, EmbodiedObservation):
                continue
            avatar = observation.avatar
            episode, state = last.get(avatar.avatar_id, (step.episode, avatar.state))
            if episode == step.episode and state is not avatar.state and not can_become(state, avatar.state):
                message = f"The avatar went from {state.value} to {avatar.state.value}."
                notes.error(message, step.where, about=message)
            last[avatar.avatar_id] = (step.episode, avatar.state)
        _look_at_life(notes, step)


def _look_at_life(notes: Notes, step: Step) -> None:
    observation = step.result.observation
    if not isinstance(observation, EmbodiedObservation):
        return
    avatar = observation.avatar
    if avatar.state is AvatarState.DESTROYED and not step.result.done:
        notes.error("The avatar is destroyed, and the episode is not done.", step.where, about="undead")
    if avatar.state is AvatarState.BOUND and avatar.bound_agent != step.seat:
        notes.error(f"{step.seat} acts in an avatar bound to {avatar.bound_agent!r}.", step.where, about="bound")


@check("avatars")
async def death(notes: Notes, subject: Subject) -> None:
    """A dead avatar does nothing, reports its death, and lives again through one of its respawn options."""
    table = await play_to_the_end(subject)
    for episode in range(10):
        avatar = table.world.avatar_of(table.seat.agent_id)
        if avatar.state is AvatarState.DESTROYED:
            break
        await table.next_episode()
        await table.play(RandomPlayer(101 + episode, "available"), 20 * subject.steps)
    else:
        raise NothingToCheck("nobody died")
    if not table.over:
        raise NothingToCheck("nobody died")
    game = cast(AvatarGameAdapter, table.world.adapter)
    action = Action(table.seat.face.action_space.names[0])
    result = await table.tried(table.seat, action)
    if result is None or result.success:
        notes.error("A dead avatar acted.", table.where(table.seat, action))
    if game.jack_in(table.seat.agent_id, avatar.avatar_id).success:
        notes.error("jack_in() entered a dead avatar; it lives again by respawn() only.", table.where())
    event: Any = game.handle_death(avatar.avatar_id)
    if not isinstance(event, DeathEvent) or event.avatar_id != avatar.avatar_id:
        notes.error(f"handle_death() returned {event!r:.100}, not the DeathEvent of {avatar.avatar_id}.", table.where())
        return
    if not event.cause.strip():
        notes.error("The DeathEvent has no cause.", table.where())
    _come_back(notes, table, game, event)


def _come_back(notes: Notes, table: Table, game: AvatarGameAdapter, event: DeathEvent) -> None:
    agent = table.seat.agent_id
    try:
        unknown = game.respawn(event.avatar_id, "no-such-option")
    except WsapError:
        unknown = JackInResult(False)
    if unknown.success:
        notes.error("respawn() took an option that does not exist.", table.where())
    if not event.respawn_options:
        return
    back = game.respawn(event.avatar_id, event.respawn_options[0].id)
    if not back.success:
        notes.error(f"respawn() refused an option of the DeathEvent: {back.message}", table.where())
        return
    _look_at_entry(notes, back)
    if table.world.avatar_of(agent).state is not AvatarState.BOUND:
        notes.error("After respawn() the avatar is not bound to its agent.", table.where())


@check()
async def avatar_actions(notes: Notes, subject: Subject) -> None:
    """The actions that all avatars share are carried out or refused, and inspecting oneself takes no step."""
    table = await Table(subject).begin()
    seat = table.seat
    before = fresh_text(await seat.observe())
    tries = [Action("inspect_self"), Action("look", {"target": "north"}), Action("look", {"target": "no such thing"})]
    tries += [Action("emote", {"emote": word}) for word in ("wave", "sleep")]
    for action in tries:
        result = await seat.act(action)
        if not result.message.strip():
            notes.error("The result has no message.", table.where(seat, action), about=action.name)
        if action.name == "inspect_self" and (not result.success or fresh_text(await seat.observe()) != before):
            notes.error("inspect_self must succeed and change nothing.", table.where(seat, action))

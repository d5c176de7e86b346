"""Checks of avatars: creation, jacking in and out, death and respawn."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from wsap_check.checks.episodes import play_to_the_end
from wsap_check.play import RandomPlayer, Table, settle, walk
from wsap_check.raised import called, describe
from wsap_check.steps import Step, fresh_text
from wsap_check.subject import Notes, NothingToCheck, Subject, check
from wsap_core.errors import WsapError
from wsap_core.protocol import Action, Avatar, AvatarSpec, AvatarState, EmbodiedObservation
from wsap_core.protocol.avatars import LEAVING, DeathEvent, JackInResult, JackOutResult, can_become
from wsap_core.seams.game import AvatarGameAdapter

R = TypeVar("R", JackInResult, JackOutResult)

_ME, _OTHER = "conformance-a", "conformance-b"


class _Bodies:
    """A fresh world of avatars whose answers are checked."""

    def __init__(self, notes: Notes, subject: Subject) -> None:
        self.notes = notes
        self.game = cast(AvatarGameAdapter, subject.world().adapter)

    def create(self) -> Avatar | None:
        avatar: Any = self.game.create_avatar(_ME, AvatarSpec(name=_ME))
        if not isinstance(avatar, Avatar):
            self.notes.error(f"create_avatar() returned a {type(avatar).__name__}, not an Avatar.")
            return None
        unbound = avatar.state is AvatarState.UNBOUND and avatar.bound_agent is None
        self.notes.expect(unbound, f"A new avatar is {avatar.state.value}; it must be unbound.")
        listed = self.now(avatar.avatar_id) is not None
        self.notes.expect(listed, "A new avatar is not among those that list_avatars() returns.")
        return avatar

    def now(self, avatar_id: str) -> Avatar | None:
        return next((a for a in self.game.list_avatars(_ME) if a.avatar_id == avatar_id), None)

    def enter(self, agent: str, avatar_id: str) -> JackInResult:
        return self._result("jack_in", agent, avatar_id, JackInResult(False))

    def leave(self, agent: str, mode: str) -> JackOutResult:
        return self._result("jack_out", agent, mode, JackOutResult(False))

    def _result(self, name: str, agent: str, what: str, refusal: R) -> R:
        try:
            result: object = getattr(self.game, name)(agent, what)
        except Exception as error:
            raised = describe(error, called(name, agent, what))
            self.notes.error(f"{raised}; it must refuse with success=False.", about=name)
            return refusal
        if isinstance(result, type(refusal)):
            return result
        self.notes.error(f"{name}() returned a {type(result).__name__}.", about=name)
        return refusal


@check("avatars")
async def jack_in(notes: Notes, subject: Subject) -> None:
    """An avatar is created unbound, and one agent at a time can enter it."""
    bodies = _Bodies(notes, subject)
    if (avatar := bodies.create()) is None:
        return
    absent = not bodies.enter(_ME, "no-such-avatar").success
    notes.expect(absent, "jack_in() into an avatar that does not exist succeeded.")
    result = bodies.enter(_ME, avatar.avatar_id)
    refused = f"An agent can't jack in to its own new avatar: {result.message or '(no message)'}"
    if not notes.expect(result.success, refused):
        return
    _look_at_entry(notes, result)
    taken = not bodies.enter(_OTHER, avatar.avatar_id).success
    notes.expect(taken, "A second agent entered an avatar that is already bound.")
    now = bodies.now(avatar.avatar_id)
    shown = "not listed" if now is None else f"{now.state.value}, bound to {now.bound_agent!r}"
    bound = now is not None and now.state is AvatarState.BOUND and now.bound_agent == _ME
    notes.expect(bound, f"After jack_in() the avatar is {shown}.")


def _look_at_entry(notes: Notes, result: JackInResult) -> None:
    bound = result.avatar is not None and result.avatar.state is AvatarState.BOUND
    notes.expect(bound, "A successful jack_in() must return the avatar, bound.")
    seen = result.initial_observation is not None
    notes.expect(seen, "A successful jack_in() must return the first observation.")


@check("avatars")
async def jack_out(notes: Notes, subject: Subject) -> None:
    """An avatar is left in the requested state, and can be entered again if it is alive."""
    refused = 0
    for mode, expected in LEAVING.items():
        bodies = _Bodies(notes, subject)
        avatar = bodies.create()
        if avatar is None or not bodies.enter(_ME, avatar.avatar_id).success:
            return
        outside = not bodies.leave(_OTHER, mode).success
        notes.expect(outside, f"An agent left ({mode}) an avatar that it is not in.")
        known = not bodies.leave(_ME, "no-such-mode").success
        notes.expect(known, "jack_out() accepted a mode that does not exist.")
        left = bodies.leave(_ME, mode)
        if not left.success:
            notes.expect(left.message.strip(), f"jack_out({mode!r}) was refused without a reason.")
            refused += 1
            continue
        now = bodies.now(avatar.avatar_id)
        state = now.state if now is not None else AvatarState.DESTROYED
        after = f"After jack_out({mode!r}) the avatar is"
        as_asked = left.avatar_state is expected and state is expected
        notes.expect(as_asked, f"{after} {state.value}, and the result says {left.avatar_state}.")
        if now is not None:
            notes.expect(now.bound_agent is None, f"{after} still bound to {now.bound_agent!r}.")
        await _act_from_outside(notes, subject, bodies, mode)
        back = bodies.enter(_ME, avatar.avatar_id).success
        how = "jacked in to" if back else "was not let back into"
        allowed = back == can_become(expected, AvatarState.BOUND)
        notes.expect(allowed, f"The agent {how} an avatar that is {expected.value}.")
    if refused == len(LEAVING):
        raise NothingToCheck("no agent may leave this world at the start")


async def _act_from_outside(notes: Notes, subject: Subject, bodies: _Bodies, mode: str) -> None:
    if subject.can("multi-seat"):
        return
    game, after = bodies.game, f"(after jack_out({mode!r}))."
    before = fresh_text(await settle(game.observe(), subject))
    result = await settle(game.act(Action(game.action_space.names[0])), subject)
    if result is not None and result.success:
        notes.error(f"An action succeeded with nobody in the avatar {after}", about="outside")
    elif fresh_text(await settle(game.observe(), subject)) != before:
        notes.error(f"An action with nobody in the avatar changed the state {after}", about="moved")


@check("avatars")
async def avatar_states(notes: Notes, subject: Subject) -> None:
    """Avatars change state only as the protocol allows."""
    last: dict[str, tuple[int, AvatarState]] = {}
    for step in await walk(subject, 100, "available"):
        for observation in (step.before, step.result.observation):
            if isinstance(observation, EmbodiedObservation):
                avatar = observation.avatar
                episode, state = last.get(avatar.avatar_id, (step.episode, avatar.state))
                allowed = episode != step.episode or state is avatar.state or can_become(state, avatar.state)
                notes.expect(allowed, f"The avatar went from {state.value} to {avatar.state.value}.", step)
                last[avatar.avatar_id] = (step.episode, avatar.state)
        _look_at_life(notes, step)


def _look_at_life(notes: Notes, step: Step) -> None:
    observation = step.result.observation
    if not isinstance(observation, EmbodiedObservation):
        return
    avatar = observation.avatar
    ended = avatar.state is not AvatarState.DESTROYED or step.result.done
    notes.expect(ended, "The avatar is destroyed, and the episode is not done.", step, "undead")
    own = avatar.state is not AvatarState.BOUND or avatar.bound_agent == step.seat
    notes.expect(own, f"{step.seat} acts in an avatar bound to {avatar.bound_agent!r}.", step, "bound")


@check("avatars")
async def death(notes: Notes, subject: Subject) -> None:
    """A dead avatar can't act, reports its death, and is revived by one of its respawn options."""
    table = await play_to_the_end(subject)
    for episode in range(10):
        avatar = table.world.avatar_of(table.seat.agent_id)
        if avatar.state is AvatarState.DESTROYED:
            break
        await table.next_episode()
        await table.play(RandomPlayer(101 + episode, "available"), 20 * subject.steps)
    if avatar.state is not AvatarState.DESTROYED or not table.over:
        raise NothingToCheck("nobody died")
    game = cast(AvatarGameAdapter, table.world.adapter)
    action = Action(table.seat.face.action_space.names[0])
    result = await table.tried(table.seat, action)
    still = result is not None and not result.success
    notes.expect(still, "A dead avatar acted.", table.where(table.seat, action))
    entered = game.jack_in(table.seat.agent_id, avatar.avatar_id).success
    notes.expect(not entered, "jack_in() entered a dead avatar; it lives again by respawn() only.", table.where())
    event: Any = game.handle_death(avatar.avatar_id)
    told = isinstance(event, DeathEvent) and event.avatar_id == avatar.avatar_id
    wrong = f"handle_death() returned {event!r:.100}, not the DeathEvent of {avatar.avatar_id}."
    if notes.expect(told, wrong, table.where()):
        notes.expect(event.cause.strip(), "The DeathEvent has no cause.", table.where())
        _come_back(notes, table, game, event)


def _come_back(notes: Notes, table: Table, game: AvatarGameAdapter, event: DeathEvent) -> None:
    try:
        unknown = game.respawn(event.avatar_id, "no-such-option").success
    except WsapError:
        unknown = False
    notes.expect(not unknown, "respawn() accepted an option that does not exist.", table.where())
    if not event.respawn_options:
        return
    back = game.respawn(event.avatar_id, event.respawn_options[0].id)
    refused = f"respawn() refused an option of the DeathEvent: {back.message}"
    if notes.expect(back.success, refused, table.where()):
        _look_at_entry(notes, back)
        bound = table.world.avatar_of(table.seat.agent_id).state is AvatarState.BOUND
        notes.expect(bound, "After respawn() the avatar is not bound to its agent.", table.where())


@check()
async def avatar_actions(notes: Notes, subject: Subject) -> None:
    """The actions shared by all avatars are carried out or refused, and inspect_self takes no step."""
    table = await Table(subject).begin()
    if (seat := await table.ready()) is None:
        raise NothingToCheck("no seat can decide at the start")
    before = fresh_text(await seat.observe())
    tries = [Action("inspect_self"), Action("look", {"target": "north"}), Action("look", {"target": "no such thing"})]
    tries += [Action("emote", {"emote": word}) for word in ("wave", "sleep")]
    for action in tries:
        result, where = await seat.act(action), table.where(seat, action)
        notes.expect(result.message.strip(), "The result has no message.", where, action.name)
        if action.name == "inspect_self" and (not result.success or fresh_text(await seat.observe()) != before):
            notes.error("inspect_self must succeed and change nothing.", where)

"""Crafter as a world of the protocol: one seat, one body, everything in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wsap_core.authoring.body import LEAVING, Body
from wsap_core.errors import ConfigError, UsageError
from wsap_core.protocol import (
    Action,
    ActionResult,
    ActionSpace,
    Avatar,
    AvatarSpec,
    AvatarState,
    DeathEvent,
    Entry,
    GridMapBlock,
    ImageBlock,
    JackInResult,
    JackOutResult,
    Receipt,
    RespawnOption,
    TransitPackage,
    View,
)
from wsap_core.seams.context import Context
from wsap_core.seams.game import AvatarGameAdapter
from wsap_crafter.bodies import NEW_WORLD, avatar_of, death_of, unsafe_reason
from wsap_crafter.dormancy import LONGEST_SLEEP
from wsap_crafter.engine import CrafterEngine
from wsap_crafter.frames import FramePainter
from wsap_crafter.gestures import GESTURES, gesture
from wsap_crafter.ledger import dump_ledger, load_ledger
from wsap_crafter.narration import note_before, tell_action, tell_step
from wsap_crafter.observation import NOTHING, CrafterObservation, Happenings, build_observation, carried
from wsap_crafter.records import Record, dump_record, load_record
from wsap_crafter.rules import ACTION_SPACE, GAME_ACTIONS, Situation, availability, in_the_open, situation_of
from wsap_crafter.sight import WORDS, Sight, ground_table, look_around
from wsap_crafter.snapshot import dump_engine, load_engine, pack, restoring, unpack
from wsap_crafter.transit import admit, release

_NUMBER = {name: number for number, name in enumerate(GAME_ACTIONS)}


class CrafterAdapter(AvatarGameAdapter):
    """One Crafter world and the player in it.

    Configuration (``context.config``): ``length``, the steps after which an episode is over (10000; 0
    for no limit), ``frame_size``, the width and height of frames in pixels (360; 0 for no frames), and
    ``longest_sleep``, the most steps for which the world goes on while its agent is away (300, a day).

    Raises:
        ConfigError: one of these is not a whole number in its range.
    """

    def __init__(self, context: Context | None = None) -> None:
        context = context or Context()
        self._engine = CrafterEngine(context.seed, _option(context, "length", 10_000, 0, 2**31))
        self._frame_size = _option(context, "frame_size", 360, 0, 4096)
        self._longest_sleep = _option(context, "longest_sleep", LONGEST_SLEEP, 0, 10_000)
        self._painter: FramePainter | None = None
        self._characters = ground_table(self._engine.world)
        self._record = Record()
        self._sight: Sight
        self._situation: Situation
        self._observation: CrafterObservation
        self.reset(context.seed)

    # --- the world ----------------------------------------------------------------------------

    @property
    def game_description(self) -> str:
        """The rules of the game in words."""
        # Deferred for weight: it is asked for once a session, and by no score or benchmark.
        from wsap_crafter.description import DESCRIPTION

        return DESCRIPTION

    @property
    def action_space(self) -> ActionSpace:
        """The game's 17 actions."""
        return ACTION_SPACE

    def reset(self, seed: int | None = None) -> CrafterObservation:
        """Begin the first episode of a seed, or with None the next one of the seed at hand.

        The world of a seed's first episode is that of ``crafter.Env(seed=seed)``. The body is the
        same one, made anew; one that was despawned makes room for another.
        """
        self._begin(self._record.body.after(self._engine.steps), seed)
        return self._observation

    def observe(self) -> CrafterObservation:
        """Return what the player perceives now; the same object until something changes."""
        return self._observation

    def act(self, action: Action) -> ActionResult:
        """Carry out one of the 17 actions as one step of the game.

        An action that is impossible now takes a step too, as in the game, and is reported with
        ``success=False`` and the reason. An action that the game does not have, and any action
        after the end of the episode or without a body, takes no step. ``look`` describes what lies
        where one asks, without a step.
        """
        name = action.name
        number = _NUMBER.get(name)
        body = self._record.body
        if self._engine.done:
            return self._refuse("The episode is over; nothing can be done until the next one begins.")
        if body.state not in (AvatarState.BOUND, AvatarState.UNBOUND):
            return self._refuse(f"Nobody is in the body: {body.avatar_id} is {body.state.value}. Jack in first.")
        if name in GESTURES:
            succeeded, message = gesture(action, self._observation)
            return replace(self._refuse(message), success=succeeded)
        if number is None:
            known = ", ".join(GAME_ACTIONS)
            return self._refuse(f"There is no action {name[:60]!r} in Crafter; it has {known}.")
        if action.parameters:
            return self._refuse(f"{name} takes no parameters.")
        return self._step(name, number)

    def _step(self, name: str, number: int) -> ActionResult:
        engine, record = self._engine, self._record
        player = engine.player
        possible = availability(self._situation)[number]
        before = note_before(player, self._sight, self._situation.facing)
        report = engine.step(name)
        happenings = tell_step(report, before, player, engine.steps)
        done = engine.done
        record.after_step(report, happenings, dead=engine.dead)
        if record.ledger.kept:
            record.ledger.settle(record.body.avatar_id, player.inventory)
        observation = self._perceive(happenings)
        if possible.available:
            message = tell_action(name, before, player)
        else:
            message = f"Nothing came of {name}: {possible.reason}."
        return ActionResult(possible.available, message, report.reward, report.unlocked, done, observation)

    def _refuse(self, message: str) -> ActionResult:
        return ActionResult(False, message, 0.0, (), self._engine.done, self._observation)

    def _begin(self, body: Body, seed: int | None = None) -> None:
        """Begin an episode with that body."""
        self._engine.reset(seed)
        self._record = self._record.next_episode(body)
        self._perceive(NOTHING)

    def _perceive(self, happenings: Happenings) -> CrafterObservation:
        engine = self._engine
        player = engine.player
        self._sight = look_around(engine.world, player, self._characters)
        self._situation = situation_of(player, self._sight)
        items = carried(self._situation.items)
        self._observation = build_observation(
            engine,
            self._sight,
            self._situation,
            items,
            avatar_of(self._record.body, player, items, engine.steps),
            happenings,
        )
        return self._observation

    # --- bodies -------------------------------------------------------------------------------

    def list_avatars(self, agent_id: str) -> list[Avatar]:
        """Return the body that this agent has here, dead or alive; at most one."""
        return [self._observation.avatar] if self._record.body.owner == agent_id else []

    def create_avatar(self, agent_id: str, spec: AvatarSpec) -> Avatar:
        """Make the world's body the agent's, unbound; after its end, begin a new world for another.

        Raises:
            UsageError: a body lives here already that is somebody's.
        """
        body = self._record.body
        if body.state is AvatarState.DESTROYED:
            self._begin(Body(number=body.number + 1).claimed(agent_id, spec))
            return self._observation.avatar
        if body.owner is not None:
            raise UsageError(
                f"A Crafter world holds one body, and {body.avatar_id} of {body.owner!r} lives in this one;"
                " jack in to it, or open another world."
            )
        return self._become(body.claimed(agent_id, spec))

    def jack_in(self, agent_id: str, avatar_id: str) -> JackInResult:
        """Bind the agent to its body and return what it perceives."""
        body = self._record.body
        if avatar_id != body.avatar_id or body.owner != agent_id:
            return JackInResult(False, None, f"{agent_id!r} has no avatar {avatar_id!r} in this world.")
        if body.state is AvatarState.DESTROYED:
            return JackInResult(False, self._observation.avatar, self._how_it_ended())
        if body.state is AvatarState.BOUND:
            return JackInResult(False, self._observation.avatar, f"{agent_id!r} is in {avatar_id} already.")
        record = self._record
        record.begin_session(self._engine.steps)
        avatar = self._become(replace(body, state=AvatarState.BOUND))
        message = f"You are {body.name}, in the world of Crafter."
        bonuses = record.ledger.tell_news()
        return JackInResult(True, avatar, message, bonuses, self._observation)

    def _how_it_ended(self) -> str:
        death = self.handle_death(self._record.body.avatar_id)
        if self._record.body.despawned:
            return f"{death.avatar_id} is destroyed: it was despawned."
        whom = f" ({death.killer})" if death.killer else ""
        return (
            f"{death.avatar_id} is destroyed: it died of {death.cause}{whom} at {death.timestamp}; "
            f"respawn it with {NEW_WORLD.id!r}."
        )

    def jack_out(self, agent_id: str, mode: str = "dormant", *, force: bool = False) -> JackOutResult:
        """Release the agent's body: ``dormant`` (asleep in its world), ``suspend`` or ``despawn``.

        Args:
            agent_id: who leaves.
            mode: what becomes of the body.
            force: leave even where that is not safe.
        """
        body = self._record.body
        if mode not in LEAVING:
            return JackOutResult(False, body.state, f"There is no mode {mode!r}; it is {', '.join(LEAVING)}.")
        if body.driver != agent_id:
            return JackOutResult(False, body.state, f"{agent_id!r} is in no avatar in this world.")
        danger = unsafe_reason(self._observation, self._sight)
        if danger and not force:
            return JackOutResult(False, body.state, f"You can't leave now: {danger}.")
        state = LEAVING[mode]
        stats = self._record.session_stats(self._engine.steps)
        self._become(replace(body, state=state, despawned=mode == "despawn"))
        message = f"{body.avatar_id} is {state.value} now"
        if state is AvatarState.DORMANT and in_the_open(self._situation):
            message += ", in the open: whatever walks can reach it while it sleeps"
        return JackOutResult(True, state, f"{message}.", stats)

    def handle_death(self, avatar_id: str) -> DeathEvent:
        """Return what destroyed the body, and how it can live again.

        Raises:
            UsageError: there is no such body, or it is not destroyed.
        """
        body = self._record.body
        if avatar_id != body.avatar_id:
            raise UsageError(f"There is no avatar {avatar_id!r} in this world.")
        if body.state is not AvatarState.DESTROYED:
            raise UsageError(f"{avatar_id} is not dead: it is {body.state.value}.")
        return death_of(body, self._observation, self._record.death_cause)

    def respawn(self, avatar_id: str, option: RespawnOption | str) -> JackInResult:
        """Begin anew in the next world of this seed, which is all that Crafter offers, and bind again."""
        body = self._record.body
        chosen = option.id if isinstance(option, RespawnOption) else option
        if avatar_id != body.avatar_id or body.state is not AvatarState.DESTROYED or body.despawned:
            return JackInResult(False, None, f"There is no avatar {avatar_id!r} in this world to bring back.")
        if chosen != NEW_WORLD.id:
            return JackInResult(False, self._observation.avatar, f"The only way back is {NEW_WORLD.id!r}.")
        self._begin(body.after(self._engine.steps))
        message = f"You are {body.name} again, in another world, with nothing."
        return JackInResult(True, self._observation.avatar, message, {}, self._observation)

    def _become(self, body: Body) -> Avatar:
        """Put the body into that state and show it in the observation; no time passes."""
        self._record.body = body
        avatar = avatar_of(body, self._engine.player, self._observation.inventory, self._engine.steps)
        self._observation = replace(self._observation, avatar=avatar)
        return avatar

    # --- coming and going with skills and things ------------------------------------------------

    def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        """Wake a sleeping body to what time has done to it, and give it what its agent brings along.

        See :mod:`wsap_crafter.transit`; asked again with the same transfer id, it answers the same.

        Raises:
            UsageError: the agent has no such avatar here.
        """
        receipt = admit(self._engine, self._record, avatar_id, entry, self._longest_sleep)
        self._perceive(self._record.happenings)
        return receipt

    def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        """Take what is portable out of the body; asked again with the same transfer id, answer the same.

        Raises:
            UsageError: there was never such an avatar here.
        """
        package = release(self._engine, self._record, avatar_id, transfer_id)
        self._perceive(self._record.happenings)
        return package

    # --- looking in from outside, and keeping ---------------------------------------------------

    def render(self) -> View:
        """Return the game's own picture of the moment and the map in characters. Changes nothing."""
        seen = self._observation
        present = sorted(set("".join(seen.local_map)), key=list(WORDS).index)
        chart = GridMapBlock(seen.local_map, {character: WORDS[character] for character in present})
        if not self._frame_size:
            return View((chart,), "Crafter")
        if self._painter is None:
            self._painter = FramePainter(self._frame_size)
        frame = ImageBlock.from_png(
            self._painter.png(self._engine),
            width=self._frame_size,
            height=self._frame_size,
            alt=f"Crafter, step {seen.step}: {seen.location.description}",
        )
        return View((frame, chart), "Crafter")

    def snapshot(self) -> bytes:
        """Return the whole state: the game, its random numbers, the body, its belongings, what just happened."""
        record = self._record
        ledger = dump_ledger(record.ledger)
        return pack({"engine": dump_engine(self._engine), "record": dump_record(record), "ledger": ledger})

    def restore(self, data: bytes) -> None:
        """Become what the snapshot was taken of.

        Raises:
            SnapshotError: the data is no snapshot of this version; nothing has changed.
        """
        state: dict[str, Any] = unpack(data)
        engine, record = load_engine(state.get("engine")), load_record(state.get("record"))
        record.ledger = load_ledger(restoring(lambda: state["ledger"]), engine.player.inventory)
        self._engine, self._record = engine, record
        self._perceive(record.happenings)


def _option(context: Context, name: str, default: int, low: int, high: int) -> int:
    value = context.config.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"Crafter's `{name}` is a whole number from {low} to {high}, not {value!r}.")
    return value

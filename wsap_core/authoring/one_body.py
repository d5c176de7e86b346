"""A game of one seat with one body in it: bodies, transit and snapshots are done, the game is yours.

Most games that exist already have one player. `OneBodyGame` makes an adapter of such a game from what
only its author can say: how an episode begins, what a step does, what is perceived, what a skill is
worth, and what a thing from elsewhere is here.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from wsap_core.authoring.body import LEAVING, Body
from wsap_core.authoring.luggage import Luggage, Refused
from wsap_core.errors import SnapshotError, UsageError
from wsap_core.protocol import (
    Action,
    ActionAvailability,
    ActionResult,
    Avatar,
    AvatarSpec,
    AvatarState,
    DeathEvent,
    EmbodiedObservation,
    Entry,
    JackInResult,
    JackOutResult,
    PortableItem,
    Receipt,
    RespawnOption,
    TransitPackage,
)
from wsap_core.protocol.spatial import entity_line
from wsap_core.protocol.transit import Bonus, TransferRule
from wsap_core.seams.game import AvatarGameAdapter
from wsap_core.worlds.legality import check_action, index_actions

__all__ = ["OneBodyGame", "Refused"]

ANEW = RespawnOption(
    id="anew",
    type="spawn_point",
    location="the beginning of another episode",
    penalties=("lose_inventory",),
    description="Begin anew, with nothing.",
)
"""The way back that a dead body has, unless the game knows better ones."""

_LARGEST = 4_000_000


class OneBodyGame(AvatarGameAdapter):
    """The base of an adapter; write `begin`, `refusal`, `play` and `observe`, and what you need of the rest.

    Abilities that it gives: `seed`, `avatars`, `transit`, and with `dump` and `load` also `snapshot`.
    Call `reset` at the end of `__init__`.
    """

    game_id: ClassVar[str]
    """The game's name in its spec."""
    transfer_rules: ClassVar[Sequence[TransferRule]] = ()
    """The same as in its spec."""
    way_back: ClassVar[RespawnOption] = ANEW
    """How a body that died lives again: always by another episode."""

    def __init__(self) -> None:
        self.body = Body()
        self.luggage = Luggage()
        self.gifts: Counter[str] = Counter()
        """What skills were worth to this body, by the bonus' name."""
        self.steps = 0
        """Steps of this episode."""
        self.done = False
        """Whether the episode is over; set it, or call `die`."""
        self._death: tuple[str, str | None] = ("", None)

    # --- what the author writes -------------------------------------------------------------------

    def begin(self, seed: int | None) -> None:
        """Begin the first episode of a seed; with None the next one of the seed at hand."""
        raise NotImplementedError

    def refusal(self, action: Action) -> str:
        """Return why a declared action can't be done now; empty if it can."""
        raise NotImplementedError

    def play(self, action: Action) -> ActionResult:
        """Carry out an action that can be done; `steps` counts it already."""
        raise NotImplementedError

    def observe(self) -> EmbodiedObservation:
        """Return what is perceived now, with `self.avatar(...)` as the body and `self.possible()` as what is legal."""
        raise NotImplementedError

    def give(self, bonus: Bonus) -> Any:
        """Carry out what a skill is worth, and return what really changed (JSON-ready), or nothing if nothing did.

        As it stands it adds to `gifts`, for a game that reads its body's powers from there.
        """
        self.gifts[bonus.name] += int(bonus.amount)
        return {bonus.name: int(bonus.amount)}

    def thing_for(self, item: PortableItem) -> str | Refused:
        """Return what an item is in this game, or why it is not let in; `self.luggage.kept` has what was."""
        return Refused("nothing from elsewhere is let in here")

    def take_out(self) -> Sequence[PortableItem]:
        """Take the game's own portable things out of the body, and return them; ids are given to them later."""
        return ()

    def sleep(self, steps: int) -> Sequence[str]:
        """Let time pass for a sleeping body, and tell its agent what happened."""
        return ()

    def danger(self) -> str:
        """Return why the body must not be left here now; empty if it may."""
        return ""

    def dump(self) -> Any:
        """Return what the next step depends on, as JSON-ready data."""
        raise NotImplementedError

    def load(self, data: Any) -> None:
        """Become what `dump` was asked of. The data is not trusted: raise ValueError or TypeError where it is wrong.

        If it raises half-way, the state before is loaded again.
        """
        raise NotImplementedError

    # --- what the author calls --------------------------------------------------------------------

    def avatar(self, **known: Any) -> Avatar:
        """Return the body with what the game knows of it: `position`, `health`, `inventory` ... (see `Body.avatar`)."""
        # Any: the keyword arguments of Body.avatar.
        return self.body.avatar(self.game_id, self.steps, **known)

    def possible(self) -> list[ActionAvailability]:
        """Return all actions with the reason why they can't be done now, by the rule that `act` obeys."""
        over = "the episode is over" if self.done else ""
        reasons = ((name, over or self.refusal(Action(name))) for name in self.action_space.names)
        return [ActionAvailability(name, not why, why) for name, why in reasons]

    def die(self, cause: str, killer: str | None = None) -> None:
        """Destroy the body and what it carries, and end the episode."""
        self.luggage.lose_all(self.body.avatar_id, "lost when the avatar died")
        self.body = replace(self.body, state=AvatarState.DESTROYED, deaths=self.body.deaths + 1)
        self.done, self._death = True, (cause, killer)

    def use_up(self, thing: str, reason: str) -> bool:
        """Write off the oldest such thing that was brought along; return whether there was one."""
        for item_id, (name, _) in self.luggage.kept.items():
            if name == thing:
                self.luggage.lose(self.body.avatar_id, item_id, reason)
                return True
        return False

    # --- the game ---------------------------------------------------------------------------------

    def reset(self, seed: int | None = None) -> EmbodiedObservation:
        """Begin the first episode of a seed, or with None the next one of the seed at hand.

        The body is the same one; one that was despawned makes room for another. What was brought along stays
        with a body that lives.
        """
        self._begin(self.body.after(self.steps), seed)
        return self.observe()

    def act(self, action: Action) -> ActionResult:
        """Carry out an action as one step, or refuse it with a reason and without a step."""
        if self.done:
            return self._refuse("The episode is over; nothing can be done until the next one begins.")
        if self.body.state not in (AvatarState.BOUND, AvatarState.UNBOUND):
            return self._refuse(f"Nobody is in {self.body.avatar_id}: it is {self.body.state.value}. Jack in first.")
        declared = index_actions(self.action_space)
        if action.name not in declared and action.name in ("look", "emote"):
            return self._gesture(action)
        action, why = check_action(action, declared)
        why = why or self.refusal(action)
        if why:
            return self._refuse(f"That does not work: {why}")
        self.steps += 1
        return self.play(action)

    def _gesture(self, action: Action) -> ActionResult:
        """Do what every body can be asked for, without a step."""
        if action.name == "emote":
            return self._refuse("This body has no gestures.")
        seen = self.observe()
        target = str(action.parameters.get("target") or "")
        lines = [entity_line(e) for e in seen.nearby_entities if not target or target in (e.direction, e.type, e.name)]
        message = "; ".join(lines) or f"There is nothing of note{f' ({target[:60]})' if target else ''}."
        return ActionResult(True, message, observation=seen)

    def _refuse(self, message: str) -> ActionResult:
        return ActionResult(False, message, done=self.done, observation=self.observe())

    def _begin(self, body: Body, seed: int | None = None) -> None:
        if body.avatar_id != self.body.avatar_id:
            self.luggage.lose_all(self.body.avatar_id, "lost when the avatar was despawned")
            self.luggage.new_avatar()
            self.gifts.clear()
        self.body, self.steps, self.done, self._death = body, 0, False, ("", None)
        self.begin(seed)

    # --- bodies -----------------------------------------------------------------------------------

    def list_avatars(self, agent_id: str) -> list[Avatar]:
        """Return the body that this agent has here, dead or alive; at most one."""
        return [self.observe().avatar] if self.body.owner == agent_id else []

    def create_avatar(self, agent_id: str, spec: AvatarSpec) -> Avatar:
        """Make the world's body the agent's, unbound; after its end, begin anew for another.

        Raises:
            UsageError: a body lives here already that is somebody's.
        """
        body = self.body
        if body.state is AvatarState.DESTROYED:
            self._begin(Body(number=body.number + 1).claimed(agent_id, spec))
        elif body.owner is not None:
            raise UsageError(
                f"A world of {self.game_id} holds one body, and {body.avatar_id} of {body.owner!r} lives in this one;"
                " jack in to it, or open another world."
            )
        else:
            self.body = body.claimed(agent_id, spec)
        return self.observe().avatar

    def jack_in(self, agent_id: str, avatar_id: str) -> JackInResult:
        """Bind the agent to its body and return what it perceives."""
        body = self.body
        if avatar_id != body.avatar_id or body.owner != agent_id:
            return JackInResult(False, None, f"{agent_id!r} has no avatar {avatar_id!r} in this world.")
        if body.state is AvatarState.DESTROYED:
            how = "despawned" if body.despawned else f"dead ({self._death[0]}); respawn it with {self.way_back.id!r}"
            return JackInResult(False, self.observe().avatar, f"{avatar_id} is {how}.")
        if body.state is AvatarState.BOUND:
            return JackInResult(False, self.observe().avatar, f"{agent_id!r} is in {avatar_id} already.")
        self.body = replace(body, state=AvatarState.BOUND)
        seen = self.observe()
        return JackInResult(True, seen.avatar, f"You are {body.name}.", self.luggage.tell_news(), seen)

    def jack_out(self, agent_id: str, mode: str = "dormant") -> JackOutResult:
        """Release the agent's body: `dormant` (asleep in its world), `suspend` or `despawn`."""
        body = self.body
        if mode not in LEAVING:
            return JackOutResult(False, body.state, f"There is no mode {mode!r}; it is {', '.join(LEAVING)}.")
        if body.driver != agent_id:
            return JackOutResult(False, body.state, f"{agent_id!r} is in no avatar in this world.")
        if danger := self.danger():
            return JackOutResult(False, body.state, f"You can't leave now: {danger}.")
        self.body = replace(body, state=LEAVING[mode], despawned=mode == "despawn")
        message = f"{body.avatar_id} is {self.body.state.value} now."
        return JackOutResult(True, self.body.state, message, {"playtime": self.steps})

    def handle_death(self, avatar_id: str) -> DeathEvent:
        """Return what destroyed the body, and how it can live again.

        Raises:
            UsageError: there is no such body, or it is not destroyed.
        """
        body = self.body
        if avatar_id != body.avatar_id:
            raise UsageError(f"There is no avatar {avatar_id!r} in this world.")
        if body.state is not AvatarState.DESTROYED:
            raise UsageError(f"{avatar_id} is not dead: it is {body.state.value}.")
        cause, killer = ("despawned", None) if body.despawned else self._death
        options = () if body.despawned else (self.way_back,)
        at = tuple(self.observe().location.coordinates)
        return DeathEvent(avatar_id, cause, killer, at, f"step {self.steps}", respawn_options=options)

    def respawn(self, avatar_id: str, option: RespawnOption | str) -> JackInResult:
        """Bring a dead body back in another episode, and bind it again."""
        body = self.body
        chosen = option.id if isinstance(option, RespawnOption) else option
        if avatar_id != body.avatar_id or body.state is not AvatarState.DESTROYED or body.despawned:
            return JackInResult(False, None, f"There is no avatar {avatar_id!r} in this world to bring back.")
        if chosen != self.way_back.id:
            return JackInResult(False, self.observe().avatar, f"The only way back is {self.way_back.id!r}.")
        self._begin(body.after(self.steps))
        seen = self.observe()
        return JackInResult(True, seen.avatar, f"You are {body.name} again.", {}, seen)

    # --- coming and going -------------------------------------------------------------------------

    def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        """Let time pass for a sleeping body, give it what its agent's skills are worth and what it brings along.

        Asked again with the same transfer id, it does nothing and answers the same.

        Raises:
            UsageError: the agent has no such avatar here.
        """
        luggage, body = self.luggage, self.body
        if entry.transfer_id in luggage.receipts:
            return luggage.receipts[entry.transfer_id]
        if avatar_id != body.avatar_id or entry.agent_id != body.owner:
            raise UsageError(f"{entry.agent_id!r} has no avatar {avatar_id!r} in this world of {self.game_id}.")
        asleep = body.state is AvatarState.DORMANT and entry.steps_away > 0 and not self.done
        notes = tuple(self.sleep(entry.steps_away)) if asleep else ()
        if self.body.state is AvatarState.DESTROYED:
            reason = "the body was despawned" if body.despawned else "the body is dead"
            receipt = Receipt(entry.transfer_id, {}, (), {item.item_id: reason for item in entry.items}, notes)
        else:
            bonuses = luggage.apply_rules(self.transfer_rules, entry.skills, self.give)
            admitted, refused = luggage.take_in(entry.items, self.thing_for)
            receipt = Receipt(entry.transfer_id, bonuses, admitted, refused, notes)
        luggage.answered(receipt)
        return receipt

    def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        """Take what is portable out of the body, tell what was lost, and return both.

        Asked again with the same transfer id, it does nothing and answers the same. A body that died has nothing left.

        Raises:
            UsageError: there was never such an avatar here.
        """
        luggage, body = self.luggage, self.body
        if transfer_id in luggage.packages:
            return luggage.packages[transfer_id]
        if avatar_id not in {replace(body, number=n).avatar_id for n in range(1, body.number + 1)}:
            raise UsageError(f"There is no avatar {avatar_id!r} in this world of {self.game_id}.")
        dead = body.state is AvatarState.DESTROYED and not body.despawned
        there = avatar_id == body.avatar_id and not dead
        items = luggage.let_out(transfer_id, self.take_out()) if there else []
        package = TransitPackage(transfer_id, items, luggage.lost.pop(avatar_id, {}))
        luggage.answered(package)
        return package

    # --- keeping ----------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state: the game, the body, what was brought along and what was answered."""
        text = json.dumps(self._state(), separators=(",", ":"), allow_nan=False)
        return self._header + zlib.compress(text.encode("ascii"), 6)

    def restore(self, data: bytes) -> None:
        """Become what the snapshot was taken of.

        Raises:
            SnapshotError: the data is no snapshot of this game; nothing has changed.
        """
        if not data.startswith(self._header):
            raise SnapshotError(f"This is not a snapshot of {self.game_id}, or it is of another version.")
        before = self._state()
        try:
            reader = zlib.decompressobj()
            text = reader.decompress(data[len(self._header) :], _LARGEST)
            if not reader.eof or reader.unused_data:
                raise ValueError("it ends too early or too late")
            self._become(json.loads(text))
        except (ValueError, TypeError, LookupError, AttributeError, zlib.error, RecursionError) as error:
            self._become(before)
            raise SnapshotError(f"The snapshot of {self.game_id} is damaged: {error}.") from error

    @property
    def _header(self) -> bytes:
        return f"WSAP {self.game_id} 1\n".encode()

    def _state(self) -> dict[str, Any]:
        # Any: JSON.
        return {
            "body": self.body.to_json(),
            "luggage": self.luggage.to_json(),
            "gifts": dict(self.gifts),
            "episode": [self.steps, self.done, *self._death],
            "game": self.dump(),
        }

    def _become(self, state: Any) -> None:
        # Any: JSON, checked here and in `load`.
        body, luggage = Body.from_json(state["body"]), Luggage()
        luggage.load_json(state["luggage"], {rule.id for rule in self.transfer_rules})
        steps, done, cause, killer = state["episode"]
        sound = type(steps) is int and steps >= 0 and type(done) is bool and isinstance(cause, str)
        if not sound or not isinstance(killer, str | None):
            raise ValueError("the episode is not what it should be")
        names, gifts = {rule.bonus.name for rule in self.transfer_rules}, Counter(state["gifts"])
        if any(name not in names or type(amount) is not int or amount < 0 for name, amount in gifts.items()):
            raise ValueError("the gifts are none that this game gives")
        self.gifts = gifts
        self.body, self.luggage, self.steps, self.done, self._death = body, luggage, steps, done, (cause, killer)
        self.load(state["game"])

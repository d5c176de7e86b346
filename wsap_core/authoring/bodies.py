"""The body of a one-body game: creation, jacking in and out, death, respawn and transit."""

from __future__ import annotations

from dataclasses import replace

from typing_extensions import override

from wsap_core.authoring.authored import AuthoredGame
from wsap_core.authoring.body import Body, Session
from wsap_core.errors import UsageError
from wsap_core.protocol import EmbodiedObservation, Entry, Receipt, RespawnOption, TransitPackage
from wsap_core.protocol.avatars import Avatar, AvatarSpec, AvatarState, DeathEvent, JackInResult, JackOutResult


class GameWithBody(AuthoredGame, keeps={}):
    """Abilities `seed`, `avatars` and `transit` for a game of one body."""

    @override
    def reset(self, seed: int | None = None) -> EmbodiedObservation:
        """Start the first episode of a seed, or with None the next one of the current seed.

        The body stays the same unless it was despawned. A living body keeps the items that came with the agent, unless
        the game's `begin` loses them.
        """
        self._begin(self.body.after(self.steps), seed)
        return self.observe()

    def die(self, cause: str, killer: str | None = None) -> None:
        """Destroy the body and its items, and end the episode."""
        self.items.lose_all(self.body.avatar_id, "lost when the avatar died")
        self.body = replace(self.body, state=AvatarState.DESTROYED, deaths=self.body.deaths + 1)
        self.done, self.death = True, (cause, killer)

    def use_up(self, thing: str, reason: str) -> bool:
        """Write off the oldest such thing that came with the agent; return whether there was one."""
        for item_id, (name, _) in self.items.kept.items():
            if name == thing:
                self.items.lose(self.body.avatar_id, item_id, reason)
                return True
        return False

    def _begin(self, body: Body, seed: int | None = None) -> None:
        if body.avatar_id != self.body.avatar_id:
            self.items.lose_all(self.body.avatar_id, "lost when the avatar was despawned")
            self.items.new_avatar()
            self.gifts.clear()
        self.body, self.session = body, Session()
        self.steps, self.done, self.death = 0, False, ("", None)
        self.begin(seed)

    def _become(self, body: Body) -> None:
        """Change the body's owner or state; no time passes."""
        self.body = body
        self.changed()

    # --- bodies -----------------------------------------------------------------------------------

    @override
    def list_avatars(self, agent_id: str) -> list[Avatar]:
        """Return the agent's body, dead or alive; at most one."""
        return [self.observe().avatar] if self.body.owner == agent_id else []

    @override
    def create_avatar(self, agent_id: str, spec: AvatarSpec) -> Avatar:
        """Assign the world's body to the agent, unbound; if it is destroyed, start an episode with a new one.

        Raises:
            UsageError: the body belongs to another agent.
        """
        body = self.body
        if body.state is AvatarState.DESTROYED:
            self._begin(Body(number=body.number + 1).claimed(agent_id, spec))
        elif body.owner is not None:
            raise UsageError(
                f"A world of {self.game_id} has one body, and this one's, {body.avatar_id}, belongs to {body.owner!r};"
                " jack in to it, or create another world."
            )
        else:
            self._become(body.claimed(agent_id, spec))
        self.settle(spawn=spec.spawn_location, loadout=spec.starting_loadout)
        return self.observe().avatar

    @override
    def jack_in(self, agent_id: str, avatar_id: str) -> JackInResult:
        body = self.body
        if avatar_id != body.avatar_id or body.owner != agent_id:
            return JackInResult(False, None, f"{agent_id!r} has no avatar {avatar_id!r} in this world.")
        if body.state is AvatarState.DESTROYED:
            return JackInResult(False, self.observe().avatar, self._why_destroyed())
        if body.state is AvatarState.BOUND:
            return JackInResult(False, self.observe().avatar, f"{agent_id!r} is in {avatar_id} already.")
        self.session = Session(self.steps)
        self._become(replace(body, state=AvatarState.BOUND))
        seen = self.observe()
        return JackInResult(True, seen.avatar, f"You are {body.name}.", self.items.take_news(), seen)

    def _why_destroyed(self) -> str:
        body, (cause, killer) = self.body, self.death
        if body.despawned:
            return f"{body.avatar_id} is destroyed: it was despawned."
        by = f" ({killer})" if killer else ""
        return (
            f"{body.avatar_id} is destroyed: it died of {cause}{by} at step {self.steps}; "
            f"respawn it with {self.way_back.id!r}."
        )

    @override
    def jack_out(self, agent_id: str, mode: str = "dormant", *, force: bool = False) -> JackOutResult:
        """Release the agent's body: `dormant`, `suspend` or `despawn`; with `force`, even in danger."""
        stats = self.session.stats(self.steps)
        body, result = self.body.left(agent_id, mode, stats, "" if force else self.danger())
        if result.success:
            self._become(body)
        return result

    @override
    def handle_death(self, avatar_id: str) -> DeathEvent:
        """Return how the body was destroyed; `UsageError` if there is no such body, or it is not destroyed."""
        if avatar_id != self.body.avatar_id:
            raise UsageError(f"There is no avatar {avatar_id!r} in this world.")
        return self.body.death(*self.death, self.observe().location.coordinates, self.steps, self.way_back)

    @override
    def respawn(self, avatar_id: str, option: RespawnOption | str) -> JackInResult:
        body = self.body
        chosen = option.id if isinstance(option, RespawnOption) else option
        if avatar_id != body.avatar_id or body.state is not AvatarState.DESTROYED or body.despawned:
            return JackInResult(False, None, f"There is no destroyed avatar {avatar_id!r} in this world.")
        if chosen != self.way_back.id:
            return JackInResult(False, self.observe().avatar, f"The only respawn option is {self.way_back.id!r}.")
        self._begin(body.after(self.steps))
        seen = self.observe()
        return JackInResult(True, seen.avatar, f"You are {body.name} again.", {}, seen)

    # --- transit ----------------------------------------------------------------------------------

    def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        """Let time pass for a dormant body, then apply the agent's bonuses and import its items. A repeated transfer id
        changes nothing and returns the same receipt. `UsageError` if the agent has no such body."""
        items, body = self.items, self.body
        if entry.transfer_id in items.receipts:
            return items.receipts[entry.transfer_id]
        if avatar_id != body.avatar_id or entry.agent_id != body.owner:
            raise UsageError(f"{entry.agent_id!r} has no avatar {avatar_id!r} in this world of {self.game_id}.")
        self.settle(difficulty=entry.difficulty)
        asleep = body.state is AvatarState.DORMANT and entry.steps_away > 0 and not self.done
        notes = tuple(self.sleep(entry.steps_away)) if asleep else ()
        if self.body.state is AvatarState.DESTROYED:
            reason = "the body was despawned" if body.despawned else "the body is dead"
            receipt = Receipt(entry.transfer_id, {}, (), {item.item_id: reason for item in entry.items}, notes)
        else:
            bonuses = items.apply_rules(self.transfer_rules, entry.skills, self.give)
            admitted, refused = items.import_items(entry.items, self.thing_for)
            receipt = Receipt(entry.transfer_id, bonuses, admitted, refused, notes)
        items.answered(receipt)
        self.changed()
        return receipt

    def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        """Remove the portable items from the body, and return them with the reasons for lost ones. A repeated transfer
        id changes nothing and returns the same package. `UsageError` if there was no such body."""
        items, body = self.items, self.body
        if transfer_id in items.packages:
            return items.packages[transfer_id]
        if avatar_id not in {replace(body, number=n).avatar_id for n in range(1, body.number + 1)}:
            raise UsageError(f"There is no avatar {avatar_id!r} in this world of {self.game_id}.")
        dead = body.state is AvatarState.DESTROYED and not body.despawned
        there = avatar_id == body.avatar_id and not dead
        out = items.export_items(transfer_id, self.take_out()) if there else []
        package = TransitPackage(transfer_id, out, items.lost.pop(avatar_id, {}))
        items.answered(package)
        self.changed()
        return package

"""The world `starbound`: agents with bodies on planets and ships, in an engine in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import resources

from pydantic import TypeAdapter
from typing_extensions import override

from wsap_core import protocol as wsap
from wsap_core.authoring.body import Body, Session
from wsap_core.authoring.packing import WRONG_DATA, Count, pack, unpack
from wsap_core.errors import SnapshotError, UsageError
from wsap_core.protocol import Action, ActionResult, AvatarState, JackInResult, JackOutResult, Observation
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context, derive_seed
from wsap_core.seams.game import AvatarGameAdapter
from wsap_starbound.catalogue import GAME_ID, TERMS, TRANSFER_RULES, read_options
from wsap_starbound.engine.being import MOST_HEALTH, Being
from wsap_starbound.engine.physics import fits
from wsap_starbound.engine.universe import Universe
from wsap_starbound.world.actions import ACTION_SPACE
from wsap_starbound.world.items import give_bonus, item_of, own_things, take_out, thing_of
from wsap_starbound.world.player import Player

DESCRIPTION = resources.files(__package__).joinpath("description.txt").read_text("utf-8").strip()
"""The description of the world for models."""
FLAG_PRICE = 10
"""Shards that coming back to life at one's flag costs."""
SHIP = wsap.RespawnOption(
    "ship",
    "spawn_point",
    "your ship",
    penalties=("lose_materials",),
    description="Wake up aboard your ship; your materials stay in a pack where you died.",
)
BED = replace(SHIP, id="bed", type="bed", location="your bed", description="Wake up at the bed that you last used.")
FLAG = wsap.RespawnOption(
    "flag",
    "checkpoint",
    "your flag",
    {"shard": FLAG_PRICE},
    ("lose_materials",),
    f"Wake up at your flag, for {FLAG_PRICE} shards.",
)
_OPTIONS = {option.id: option for option in (SHIP, BED, FLAG)}
_HEADER = b"WSAP starbound 1\n"


class StarboundWorld(AvatarGameAdapter):
    """One world and its agents; `ConfigError` if an option is invalid (see `wsap_starbound.catalogue.OPTIONS`)."""

    action_space: wsap.ActionSpace = ACTION_SPACE
    game_description = DESCRIPTION

    def __init__(self, context: Context | None = None) -> None:
        context = context or Context()
        self.options = read_options(context.config)
        self._seed, self._episode, self._bodies = context.seed, 0, 0
        self.universe = Universe(context.seed)
        self._players: dict[str, Player] = {}

    # --- play -------------------------------------------------------------------------------------

    @override
    def observe(self) -> Observation:
        player = self._only()
        return Observation() if player is None else player.observe()

    @override
    def act(self, action: Action) -> ActionResult:
        player = self._only()
        if player is None:
            return ActionResult(False, "There is no avatar in this world; create one first.")
        return self.act_for(player, action)

    def act_for(self, player: Player, action: Action) -> ActionResult:
        """Carry out an action of one agent, and note what it did to the others."""
        result = player.act(action)
        if len(self._players) > 1:
            self._changed()
        for other in self._players.values():
            if other is not player:
                other.look_after()
        return result

    @override
    def reset(self, seed: int | None = None) -> Observation:
        """Start an episode: of the seed, or with None the next one of the world's own seed."""
        self._seed, self._episode = (self._seed, self._episode + 1) if seed is None else (seed, 0)
        self.universe = Universe(derive_seed(self._seed, self._episode))
        for player in list(self._players.values()):
            body = player.body
            if body.despawned:
                del self._players[player.agent_id]
                continue
            player.items.lose_all(body.avatar_id, "lost when the episode ended and another world began")
            player.items.new_avatar()
            player.begin(body.after(player.steps))
            player.enter()
            self._become(player)
        return Observation() if self.options["seats"] > 1 else self.observe()

    def _only(self) -> Player | None:
        if self.options["seats"] > 1:
            raise UsageError("This world has several seats; ask one of them.")
        return next(iter(self._players.values()), None)

    def _owner(self, avatar_id: str) -> Player | None:
        return next((p for p in self._players.values() if p.body.avatar_id == avatar_id), None)

    # --- bodies -----------------------------------------------------------------------------------

    @override
    def list_avatars(self, agent_id: str) -> list[wsap.Avatar]:
        player = self._players.get(agent_id)
        return [] if player is None else [player.avatar()]

    @override
    def create_avatar(self, agent_id: str, spec: wsap.AvatarSpec) -> wsap.Avatar:
        """Put a body for the agent into the world, unbound; `UsageError` if it has a living one, or no seat is free."""
        player = self._players.get(agent_id)
        if player is not None and player.body.state is not AvatarState.DESTROYED:
            raise UsageError(f"{player.body.avatar_id} of {agent_id!r} lives in this world; jack in to it.")
        seats = self.options["seats"]
        if player is None and len(self._players) >= seats:
            raise UsageError(f"All {seats} bodies of this world are taken; allow more with seats=N (at most 4).")
        self._bodies += 1
        if player is None:
            player = self._players[agent_id] = self._new_player(agent_id, self._bodies)
        else:
            player.items.lose_all(player.body.avatar_id, "lost with the body before")
            player.items.new_avatar()
            player.former = (*player.former, player.body.avatar_id)
        player.begin(Body(number=self._bodies).claimed(agent_id, spec))
        wanted = {"spawn": spec.spawn_location, "loadout": spec.starting_loadout}
        player.terms = {name: value for name, value in wanted.items() if value in TERMS[name]}
        player.enter()
        self._changed()
        return player.avatar()

    def _new_player(self, agent_id: str, number: int) -> Player:
        limits = self.options["length"], self.options["quests"]
        return Player(lambda: self.universe, agent_id, number, limits)

    @override
    def jack_in(self, agent_id: str, avatar_id: str) -> JackInResult:
        player = self._players.get(agent_id)
        if player is None or player.body.avatar_id != avatar_id:
            return JackInResult(False, None, f"{agent_id!r} has no avatar {avatar_id!r} in this world.")
        body = player.body
        if body.state is AvatarState.DESTROYED:
            how = "it was despawned" if body.despawned else f"it died of {player.death[0]}; respawn it"
            return JackInResult(False, player.avatar(), f"{avatar_id} is destroyed: {how}.")
        if body.state is AvatarState.BOUND:
            return JackInResult(False, player.avatar(), f"{agent_id!r} is in {avatar_id} already.")
        player.session = Session(player.steps)
        player.body = replace(body, state=AvatarState.BOUND)
        self._become(player)
        return self._entered(player, f"You are {body.name}.")

    def _entered(self, player: Player, message: str) -> JackInResult:
        return JackInResult(True, player.avatar(), message, player.items.take_news(), player.observe())

    def _become(self, player: Player) -> None:
        """Let the body in the world be as the avatar's state says: awake, asleep, or out of the world."""
        being, state = player.being, player.body.state
        back = being.away and state in (AvatarState.BOUND, AvatarState.UNBOUND)
        being.asleep = state is AvatarState.DORMANT
        being.away = state is AvatarState.SUSPENDED or player.body.despawned
        if back:
            self._make_room(being)
        self._changed()

    def _changed(self) -> None:
        """Let all agents see anew: somebody came, left or acted."""
        for player in self._players.values():
            player.changed()

    def _make_room(self, being: Being) -> None:
        """Move a body that comes back into the world out of what was built or went there meanwhile."""
        place = self.universe.where(being)
        others = {cell for b in self.universe.present(place.id) if b is not being for cell in b.cells}
        if not fits(place, being.x, being.y) or others & set(being.cells):
            being.x, being.y = self.universe.landing(place) if place.planet else place.start

    @override
    def jack_out(self, agent_id: str, mode: str = "dormant") -> JackOutResult:
        player = self._players.get(agent_id)
        if player is None:
            return JackOutResult(False, AvatarState.UNBOUND, f"{agent_id!r} is in no avatar in this world.")
        stats = player.session.stats(player.steps)
        player.body, result = player.body.left(agent_id, mode, stats, "" if player.over else player.danger())
        if result.success:
            self._become(player)
        return result

    @override
    def handle_death(self, avatar_id: str) -> wsap.DeathEvent:
        """Return how a body died and its ways back; `UsageError` if there is no such body, or it is not destroyed."""
        player = self._owner(avatar_id)
        if player is None:
            raise UsageError(f"There is no avatar {avatar_id!r} in this world.")
        being = player.being
        event = player.body.death(*player.death, (being.x, being.y), player.steps, SHIP)
        if player.body.despawned:
            return event
        return replace(event, items_dropped=player.dropped, respawn_options=self._ways_back(player))

    def _ways_back(self, player: Player) -> Sequence[wsap.RespawnOption]:
        being, options = player.being, [SHIP]
        if being.bed is not None:
            options.append(BED)
        if being.flag is not None and being.bag.get("shard", 0) >= FLAG_PRICE:
            options.append(FLAG)
        return options

    @override
    def respawn(self, avatar_id: str, option: wsap.RespawnOption | str) -> JackInResult:
        player = self._owner(avatar_id)
        chosen = option.id if isinstance(option, wsap.RespawnOption) else option
        if player is None or player.body.state is not AvatarState.DESTROYED or player.body.despawned:
            return JackInResult(False, None, f"There is no avatar {avatar_id!r} in this world to bring back.")
        ways = [one.id for one in self._ways_back(player)]
        if chosen not in ways:
            return JackInResult(
                False, player.avatar(), f"There is no way back {chosen!r}; there is: {', '.join(ways)}."
            )
        self._revive(player.being, chosen)
        player.over, player.events, player.dropped = "", (), {}
        player.body = replace(player.body, state=AvatarState.BOUND)
        self._become(player)
        return self._entered(player, f"You are {player.body.name} again.")

    def _revive(self, being: Being, way: str) -> None:
        if way == FLAG.id:
            being.lose("shard", FLAG_PRICE)
        spot = {BED.id: being.bed, FLAG.id: being.flag}.get(way)
        being.health, being.breath, being.cause, being.killer = MOST_HEALTH, 40, "", ""
        being.rise = being.fallen = 0
        being.hurt_at = -1000
        place = self.universe.place(spot[0] if spot else f"ship:{being.owner}")
        being.place = place.id
        being.x, being.y = spot[1:] if spot else place.start
        if spot and not fits(place, being.x, being.y):
            being.x, being.y = self.universe.landing(place, being.x) if place.planet else place.start

    # --- transit ----------------------------------------------------------------------------------

    def admit(self, avatar_id: str, entry: wsap.Entry) -> wsap.Receipt:
        """Let time pass for a sleeping body, apply the agent's bonuses and import its items, once per transfer id;
        `UsageError` without such an avatar."""
        player = self._players.get(entry.agent_id)
        if player is not None and entry.transfer_id in player.items.receipts:
            return player.items.receipts[entry.transfer_id]
        if player is None or player.body.avatar_id != avatar_id:
            raise UsageError(f"{entry.agent_id!r} has no avatar {avatar_id!r} in this world of {GAME_ID}.")
        notes = self._sleep(player, entry.steps_away) if player.body.state is AvatarState.DORMANT else []
        if player.body.state is AvatarState.DESTROYED:
            reason = "the body was despawned" if player.body.despawned else "the body is dead"
            receipt = wsap.Receipt(entry.transfer_id, {}, (), {i.item_id: reason for i in entry.items}, notes)
        else:
            being, before = player.being, dict(player.being.bag)
            bonuses = player.items.apply_rules(TRANSFER_RULES, entry.skills, lambda bonus: give_bonus(being, bonus))
            player.gifts.update(
                {name: n - before.get(name, 0) for name, n in being.bag.items() if n > before.get(name, 0)}
            )
            admitted, refused = player.items.import_items(entry.items, lambda item: thing_of(item, being))
            receipt = wsap.Receipt(entry.transfer_id, bonuses, admitted, refused, notes)
        player.items.answered(receipt)
        player.changed()
        return receipt

    def _sleep(self, player: Player, steps: int) -> list[str]:
        """Let beats pass for a sleeping body, unless others are awake, for whom the world goes on anyway."""
        being, world = player.being, self.universe
        beats = 0 if world.awake() else min(steps, self.options["longest_sleep"])
        if not beats:
            return []
        health = being.health
        for _ in range(beats):
            if being.alive:
                world.world_beat()
        notes = [f"Your body slept for {beats} beats."]
        if being.health < health:
            notes.append(f"Meanwhile it lost {health - being.health} health.")
        if not being.alive:
            player.perish()
            notes.append(f"It died in its sleep: {player.death[0]}.")
        return notes

    def release(self, avatar_id: str, transfer_id: str) -> wsap.TransitPackage:
        """Take the portable items out of a body, once per transfer id; `UsageError` if there never was such a body."""
        player = next((p for p in self._players.values() if avatar_id in (p.body.avatar_id, *p.former)), None)
        if player is None:
            raise UsageError(f"There is no avatar {avatar_id!r} in this world of {GAME_ID}.")
        if transfer_id in player.items.packages:
            return player.items.packages[transfer_id]
        dead = player.body.state is AvatarState.DESTROYED and not player.body.despawned
        out: list[wsap.PortableItem] = []
        if avatar_id == player.body.avatar_id and not dead:
            kept = player.items.count()
            own = own_things(player.being, kept, player.gifts)
            take_out(player.being, [*kept.elements(), *own])
            out = player.items.export_items(transfer_id, [item_of(thing) for thing in own])
        package = wsap.TransitPackage(transfer_id, out, player.items.lost.pop(avatar_id, {}))
        player.items.answered(package)
        player.changed()
        return package

    # --- people and state -------------------------------------------------------------------------

    def render(self) -> wsap.View:
        """Return a drawing of what the first agent perceives."""
        player = next(iter(self._players.values()), None)
        return wsap.View((), "Starbound") if player is None else player.render()

    def snapshot(self) -> bytes:
        """Return the whole state."""
        state: dict[str, JsonValue] = {
            "seed": [self._seed, self._episode, self._bodies],
            "world": self.universe.to_json(),
            "players": {agent_id: player.to_json() for agent_id, player in self._players.items()},
        }
        return pack(_HEADER, state)

    def restore(self, data: bytes) -> None:
        """Restore a snapshot; `SnapshotError` if it is invalid: nothing has changed."""
        state = unpack(_HEADER, data, GAME_ID)
        try:
            seed, episode, bodies = TypeAdapter(tuple[Count, Count, Count]).validate_python(state["seed"])
            universe = Universe.from_json(state["world"])
            players = {}
            for agent_id, record in state["players"].items():
                player = players[agent_id] = self._new_player(agent_id, 1)
                player.load_json(record)
            if not players.keys() <= universe.beings.keys() or len(players) > self.options["seats"]:
                raise ValueError("its bodies do not fit its agents, or the option seats")
        except WRONG_DATA as error:
            raise SnapshotError(f"The snapshot of {GAME_ID} is damaged: {error}.") from error
        self._seed, self._episode, self._bodies = seed, episode, bodies
        self.universe, self._players = universe, players


class Seat:
    """The world for one of several agents."""

    action_space: wsap.ActionSpace = ACTION_SPACE
    game_description = DESCRIPTION

    def __init__(self, world: SharedWorld, agent_id: str) -> None:
        self._world, self._agent_id = world, agent_id

    def observe(self) -> Observation:
        """Return what the agent's body perceives."""
        return self._world.player(self._agent_id).observe()

    def act(self, action: Action) -> ActionResult:
        """Carry out an action of the agent."""
        return self._world.act_for(self._world.player(self._agent_id), action)

    def default_action(self) -> Action:
        """Return the action taken when the agent is late."""
        return Action("noop")

    def render(self) -> wsap.View:
        """Return a drawing of what the agent's body perceives."""
        return self._world.player(self._agent_id).render()

    def reset(self) -> Observation:
        """Raise `UsageError`: one agent can't reset a shared world."""
        raise UsageError("One seat can't reset a shared world; reset the world.")


class SharedWorld(StarboundWorld):
    """A world with several seats."""

    def player(self, agent_id: str) -> Player:
        """Return an agent in the world; `UsageError` if it has no avatar."""
        if agent_id not in self._players:
            raise UsageError(f"{agent_id!r} has no avatar in this world.")
        return self._players[agent_id]

    def seat(self, agent_id: str) -> Seat:
        """Return the world for one of several agents."""
        return Seat(self, agent_id)


def create(context: Context) -> StarboundWorld:
    """Return the world described by the options."""
    kind = SharedWorld if read_options(context.config)["seats"] > 1 else StarboundWorld
    return kind(context)

"""The world `morrowind`: agents with bodies behind a bridge, embedded in this process or elsewhere."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from pydantic import ValidationError
from typing_extensions import override

from wsap_core import protocol as wsap
from wsap_core.authoring.body import Body, Session
from wsap_core.authoring.packing import WRONG_DATA, pack, unpack
from wsap_core.errors import SnapshotError, UsageError
from wsap_core.protocol import Action, ActionResult, AvatarState, JackInResult, JackOutResult, Observation
from wsap_core.seams.context import Context, derive_seed
from wsap_core.seams.game import AvatarGameAdapter, ChoiceKey
from wsap_tes3mp.engines.engine import BridgePort
from wsap_tes3mp.protocol.errors import BridgeError
from wsap_tes3mp.world.actions import ACTION_SPACE
from wsap_tes3mp.world.catalogue import GAME_ID, TERMS
from wsap_tes3mp.world.items import bring_in, carry_out
from wsap_tes3mp.world.options import WorldOptions
from wsap_tes3mp.world.player import DESCRIPTION, Player, Seat
from wsap_tes3mp.world.source import MakeEngine, Source, simulated

AWAKE = wsap.RespawnOption("awake", "spawn_point", "where the world brings its dead back", description="Wake up again.")
_WEAK = "Wake up in the inn, with half your health and without a third of your gold."
_HEADER = b"WSAP morrowind 1\n"


class MorrowindWorld(AvatarGameAdapter):
    """One world and its agents; `ConfigError` if an option is invalid (see `wsap_tes3mp.world.options`)."""

    action_space: wsap.ActionSpace = ACTION_SPACE
    game_description = DESCRIPTION

    def __init__(
        self,
        context: Context | None = None,
        *,
        engine: MakeEngine = simulated,
        bridge: BridgePort | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        context = context or Context()
        self.options = options = WorldOptions.read(context.config)
        self._seed, self._episode, self._bodies = context.seed, 0, 0
        self._source, self._engine = Source(options, context, now, bridge), engine
        if not options.live:
            self._source.begin(engine(context.seed))
        self._players: dict[str, Player] = {}
        self._name_episode()

    # --- play -------------------------------------------------------------------------------------

    @override
    async def observe(self) -> Observation:
        if (player := self._only()) is None:
            return Observation()
        await self._source.settle()
        return await player.observe()

    @override
    async def act(self, action: Action, key: ChoiceKey | None = None) -> ActionResult:
        if (player := self._only()) is None:
            return ActionResult(False, "There is no avatar in this world; create one first.")
        await self._source.settle()
        return await player.act(action, key)

    async def act_once(self, action: Action, key: ChoiceKey) -> ActionResult:
        """Carry out an action in a live world, at most once per key."""
        return await self.act(action, key)

    @override
    async def reset(self, seed: int | None = None) -> Observation:
        """Start an episode: of the seed, or the next one of the world's own seed; a live world just continues."""
        self._seed, self._episode = (self._seed, self._episode + 1) if seed is None else (seed, 0)
        self._name_episode()
        if not self.options.live:
            self._source.begin(self._engine(derive_seed(self._seed, self._episode)))
        for player in list(self._players.values()):
            self._begin_again(player)
        await self._source.settle()
        return Observation() if self.options.seats > 1 else await self.observe()

    def _begin_again(self, player: Player) -> None:
        body, dead = player.body, player.body.state is AvatarState.DESTROYED
        if body.despawned:
            del self._players[player.agent_id]
            return
        if not self.options.live:
            player.items.lose_all(body.avatar_id, "lost when the episode ended and another world began")
            player.items.new_avatar()
        player.begin(body.after(player.steps))
        anew = partial(player.wake, new=not self.options.live)
        self._source.do(player.revive if dead and self.options.live else anew)

    def _only(self) -> Player | None:
        if self.options.seats > 1:
            raise UsageError("This world has several seats; ask one of them.")
        return next(iter(self._players.values()), None)

    def _owner(self, avatar_id: str) -> Player | None:
        return next((p for p in self._players.values() if p.body.avatar_id == avatar_id), None)

    def _name_episode(self) -> None:
        self._source.episode = f"seed-{self._seed}-{self._episode}"

    # --- bodies -----------------------------------------------------------------------------------

    @override
    def list_avatars(self, agent_id: str) -> list[wsap.Avatar]:
        player = self._players.get(agent_id)
        return [] if player is None else [player.avatar()]

    @override
    def create_avatar(self, agent_id: str, spec: wsap.AvatarSpec) -> wsap.Avatar:
        player = self._players.get(agent_id)
        if player is not None and player.body.state is not AvatarState.DESTROYED:
            raise UsageError(f"{player.body.avatar_id} of {agent_id!r} lives in this world; jack in to it.")
        if player is None and len(self._players) >= self.options.seats:
            raise UsageError(f"All {self.options.seats} bodies of this world are taken; allow more with seats=N.")
        self._bodies += 1
        if player is None:
            player = self._players[agent_id] = Player(self._source, agent_id, self._bodies)
        else:
            player.items.lose_all(player.body.avatar_id, "lost with the body before")
            player.items.new_avatar()
            player.former = (*player.former, player.body.avatar_id)
            self._source.do(partial(player.leave, "despawn"))
            player.begin(player.body)
        player.body = Body(number=self._bodies).claimed(agent_id, spec)
        wanted = {"spawn": spec.spawn_location, "loadout": spec.starting_loadout}
        player.terms = {name: value for name, value in wanted.items() if value in TERMS[name]}
        self._source.do(partial(player.wake, new=True))
        # Like bonuses, the initial inventory stays with the body.
        player.gifts = Counter(player.avatar().inventory)
        return player.avatar()

    @override
    def jack_in(self, agent_id: str, avatar_id: str) -> JackInResult:
        player = self._players.get(agent_id)
        if player is None or player.body.avatar_id != avatar_id:
            return JackInResult(False, None, f"{agent_id!r} has no avatar {avatar_id!r} in this world.")
        body = player.body
        if body.state is AvatarState.DESTROYED:
            how = "it was despawned" if body.despawned else f"it died; respawn it with {AWAKE.id!r}"
            return JackInResult(False, player.avatar(), f"{avatar_id} is destroyed: {how}.")
        if body.state is AvatarState.BOUND:
            return JackInResult(False, player.avatar(), f"{agent_id!r} is in {avatar_id} already.")
        if body.state is not AvatarState.UNBOUND:
            self._source.do(player.wake)
        player.session, player.emptied = Session(player.steps), False
        player.body = replace(body, state=AvatarState.BOUND)
        return self._entered(player, f"You are {player.body.name}.")

    def _entered(self, player: Player, message: str) -> JackInResult:
        seen = None if player.seen is None else player.observation()
        return JackInResult(True, player.avatar(), message, player.items.take_news(), seen)

    @override
    def jack_out(self, agent_id: str, mode: str = "dormant") -> JackOutResult:
        player = self._players.get(agent_id)
        if player is None:
            return JackOutResult(False, AvatarState.UNBOUND, f"{agent_id!r} is in no avatar in this world.")
        fighting = player.seen is not None and player.seen.environment.is_combat
        stats, danger = player.session.stats(player.steps), "you are in a fight" if fighting else ""
        player.body, result = player.body.left(agent_id, mode, stats, danger)
        if not result.success:
            return result
        # A despawned body is only hidden until its items have been exported.
        self._source.do(partial(player.leave, "suspend" if mode == "despawn" else mode))
        return result

    @override
    def handle_death(self, avatar_id: str) -> wsap.DeathEvent:
        player = self._owner(avatar_id)
        if player is None:
            raise UsageError(f"There is no avatar {avatar_id!r} in this world.")
        way_back = AWAKE
        if not self.options.live:
            gold = 0 if player.seen is None else player.seen.inventory_summary.gold // 3
            way_back = replace(AWAKE, cost={"gold": gold} if gold else None, penalties=("debuff",), description=_WEAK)
        return player.body.death(*player.death, player.avatar().position, player.steps, way_back)

    @override
    def respawn(self, avatar_id: str, option: wsap.RespawnOption | str) -> JackInResult:
        player = self._owner(avatar_id)
        chosen = option.id if isinstance(option, wsap.RespawnOption) else option
        if player is None or player.body.state is not AvatarState.DESTROYED or player.body.despawned:
            return JackInResult(False, None, f"There is no avatar {avatar_id!r} in this world to bring back.")
        if chosen != AWAKE.id:
            return JackInResult(False, player.avatar(), f"The only way back is {AWAKE.id!r}.")
        player.over, player.events = "", ()
        player.body = replace(player.body, state=AvatarState.BOUND)
        self._source.do(player.revive)
        return self._entered(player, f"You are {player.body.name} again.")

    # --- transit ----------------------------------------------------------------------------------

    async def admit(self, avatar_id: str, entry: wsap.Entry) -> wsap.Receipt:
        """Apply the agent's bonuses and import its items, once per transfer id; `UsageError` without such an avatar."""
        player = self._players.get(entry.agent_id)
        if player is not None and entry.transfer_id in player.items.receipts:
            return player.items.receipts[entry.transfer_id]
        if player is None or player.body.avatar_id != avatar_id:
            raise UsageError(f"{entry.agent_id!r} has no avatar {avatar_id!r} in this world of {GAME_ID}.")
        await self._source.settle()
        if player.body.state is AvatarState.DESTROYED:
            reason = "the body was despawned" if player.body.despawned else "the body is dead"
            receipt = wsap.Receipt(entry.transfer_id, {}, (), {item.item_id: reason for item in entry.items})
        else:
            self._make_it(entry.difficulty, player)
            receipt = await bring_in(player, entry)
        player.items.answered(receipt)
        return receipt

    def _make_it(self, difficulty: str, player: Player) -> None:
        """Set how much the body of an embedded world is harmed."""
        if self._source.engine is None or difficulty == player.terms.get("difficulty", "normal"):
            return
        player.terms.pop("difficulty", None)
        if difficulty in TERMS["difficulty"]:
            player.terms["difficulty"] = difficulty
        self._source.engine.settle(player.bridge_id, difficulty=difficulty)

    async def release(self, avatar_id: str, transfer_id: str) -> wsap.TransitPackage:
        """Export the portable items of a body, once per transfer id; `UsageError` if there never was such a body."""
        player = next((p for p in self._players.values() if avatar_id in (p.body.avatar_id, *p.former)), None)
        if player is None:
            raise UsageError(f"There is no avatar {avatar_id!r} in this world of {GAME_ID}.")
        if transfer_id in player.items.packages:
            return player.items.packages[transfer_id]
        await self._source.settle()
        dead = player.body.state is AvatarState.DESTROYED and not player.body.despawned
        out = [] if dead or avatar_id != player.body.avatar_id else await carry_out(player, transfer_id)
        package = wsap.TransitPackage(transfer_id, out, player.items.lost.pop(avatar_id, {}))
        player.items.answered(package)
        return package

    # --- people and state -------------------------------------------------------------------------

    def render(self) -> wsap.View:
        """Return a drawing for the first player."""
        player = next(iter(self._players.values()), None)
        return wsap.View((), "Morrowind") if player is None else player.render()

    def snapshot(self) -> bytes:
        """Return the state of an embedded world; `SnapshotError` for a live one."""
        if self._source.engine is None:
            raise SnapshotError("A live world of morrowind can't be saved.")
        state = {
            "seed": [self._seed, self._episode, self._bodies],
            "engine": b64encode(self._source.engine.snapshot()).decode(),
            "players": {agent_id: player.to_json() for agent_id, player in self._players.items()},
        }
        return pack(_HEADER, state)

    def restore(self, data: bytes) -> None:
        """Restore a snapshot; `SnapshotError` if it is invalid or the world live: nothing has changed."""
        if self._source.engine is None:
            raise SnapshotError("A live world of morrowind can't be restored.")
        state = unpack(_HEADER, data, GAME_ID)
        try:
            seed, episode, bodies = state["seed"]
            if not all(type(n) is int and n >= 0 for n in (seed, episode, bodies)):
                raise ValueError("the seed is invalid")
            players = {}
            for agent_id, record in state["players"].items():
                player = players[str(agent_id)] = Player(self._source, str(agent_id), 1)
                player.load_json(record)
            if len(players) > self.options.seats:
                raise ValueError(f"it has {len(players)} bodies, and the option seats is {self.options.seats}")
            engine = b64decode(state["engine"], validate=True)
        except (*WRONG_DATA, ValidationError) as error:
            raise SnapshotError(f"The snapshot of {GAME_ID} is damaged: {error}.") from error
        self._source.engine.restore(engine)
        self._seed, self._episode, self._bodies, self._players = seed, episode, bodies, players
        self._name_episode()

    async def close(self) -> None:
        """Put the bodies of a live world to sleep, and close the bridge."""
        players = self._players.values() if self.options.live else ()
        try:
            if players:
                await self._source.settle()
            for player in players:
                if player.body.state is AvatarState.BOUND:
                    await player.leave("dormant")
        except BridgeError:
            pass  # it can't be reached; the body stays as it is
        finally:
            await self._source.close()


class SharedWorld(MorrowindWorld):
    """A world with several seats."""

    def seat(self, agent_id: str) -> Seat:
        """Return the world for one of several agents."""

        def player() -> Player:
            if agent_id not in self._players:
                raise UsageError(f"{agent_id!r} has no avatar in this world.")
            return self._players[agent_id]

        return Seat(player)


def create(context: Context) -> MorrowindWorld:
    """Return the world described by the options."""
    kind = SharedWorld if WorldOptions.read(context.config).seats > 1 else MorrowindWorld
    return kind(context)

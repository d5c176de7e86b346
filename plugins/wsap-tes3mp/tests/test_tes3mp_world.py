from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from hamlet import Hamlet, make

from wsap_core.errors import ConfigError, UsageError
from wsap_core.protocol import Action, AvatarSpec, AvatarState, Entry, PortableItem
from wsap_core.protocol.availability import choices_of
from wsap_core.protocol.views import TableBlock
from wsap_core.seams.context import Context
from wsap_core.seams.game import ChoiceKey
from wsap_core.seams.services import Services
from wsap_nexus.terminal.keyboard.keymap import typed_choice
from wsap_tes3mp.bridge.app import create_app
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.client import BridgeClient
from wsap_tes3mp.engines.engine import BridgePort
from wsap_tes3mp.engines.simulated.engine import SimulatedEngine
from wsap_tes3mp.engines.simulated.state import REACH
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.log.query import Filter, newest
from wsap_tes3mp.plugin import wsap_adapters
from wsap_tes3mp.protocol.bridge import AgentInfo, BridgeStatus, ItemsReceipt, ItemsRequest, JoinRequest
from wsap_tes3mp.protocol.commands import CommandAccepted, CommandInput, Outcome
from wsap_tes3mp.protocol.errors import BridgeUnavailableError, NotOfferedError, PayloadError, UnknownOutcomeError
from wsap_tes3mp.protocol.perception import PerceptionOutput
from wsap_tes3mp.world.actions import refusal
from wsap_tes3mp.world.game import MorrowindWorld, SharedWorld
from wsap_tes3mp.world.observation import MorrowindObservation

SPEC = next(iter(wsap_adapters()))
SWORD = PortableItem("item-1", "iron sword", "weapon", 4, {"sharp": True}, "crafter", {"crafter": "iron_sword"})


def world(**options: object) -> MorrowindWorld:
    kind = SharedWorld if options.get("seats", 1) != 1 else MorrowindWorld
    return kind(Context.create(0, config=options), engine=make)


def entered(game: MorrowindWorld, agent: str = "ada") -> str:
    avatar = game.create_avatar(agent, AvatarSpec(name=agent))
    assert game.jack_in(agent, avatar.avatar_id).success
    return avatar.avatar_id


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


async def seen(game: MorrowindWorld) -> MorrowindObservation:
    observation = await game.observe()
    assert isinstance(observation, MorrowindObservation)
    return observation


def test_only_what_is_in_sight_carried_or_said_can_be_named() -> None:
    async def play() -> None:
        game = world()
        entered(game)
        told = {one.name: one for one in (await seen(game)).available_actions or ()}
        assert choices_of(told["interact"])["entity_id"] == ("door_1", "maid", "coin")
        assert not told["dialogue"].available
        assert not told["use_item"].available
        assert not (await game.act(Action("interact", {"entity_id": "rat"}))).success
        await game.act(Action("interact", {"entity_id": "coin"}))
        await game.act(Action("interact", {"entity_id": "maid"}))
        told = {one.name: one for one in (await seen(game)).available_actions or ()}
        assert choices_of(told["use_item"])["item_id"] == ("coin",)
        assert choices_of(told["dialogue"]) == {"entity_id": ("maid",), "topic": ("rats", "weather")}
        assert not (await game.act(Action("dialogue", {"entity_id": "maid", "topic": "gold"}))).success
        assert (await seen(game)).step == 2, "what is refused takes no step"

    run(play)


def test_what_is_offered_is_accepted_and_what_is_carried_can_be_dropped() -> None:
    async def play() -> None:
        game = MorrowindWorld(Context.create(0))
        entered(game)
        observation = await seen(game)
        offered = {one.name: choices_of(one) for one in observation.available_actions or ()}["interact"]["entity_id"]
        carried = [item.item_id for item in observation.seen.inventory or ()]
        near = [one.entity_id for one in observation.seen.nearby_entities if one.distance <= REACH]
        assert carried
        assert len(near) < len(observation.seen.nearby_entities), "some are too far away to be offered"
        assert set(offered) == {*carried, *near}
        for word in offered:
            assert refusal(Action("interact", {"entity_id": word}), observation.seen) == ""
        for word in carried:
            before = (await seen(game)).inventory[word]
            assert (await game.act(Action("interact", {"entity_id": word}))).outcome == "done"
            assert (await seen(game)).inventory.get(word, 0) < before
        assert "carry 'salve'" in refusal(
            Action("interact", {"entity_id": "salve", "interaction_type": "talk"}), observation.seen
        )

    run(play)


def test_a_person_types_the_names_and_numbers_that_are_on_the_screen() -> None:
    async def play() -> None:
        game = MorrowindWorld(Context.create(0))
        entered(game)
        observation = await seen(game)
        near, bag = observation.seen.nearby_entities, observation.seen.inventory or ()
        tables = [block for block in observation.to_view().blocks if isinstance(block, TableBlock)]
        rows = {row[0]: row[1] for table in tables for row in table.rows}
        assert list(rows) == [str(number) for number in range(1, len(near) + len(bag) + 1)]
        person = next(one for one in near if one.entity_type == "npc")
        number = next(key for key, name in rows.items() if name == person.name)
        for typed in (person.name, person.name.lower(), number, person.entity_id):
            action, reason = typed_choice(f"move_to {typed}", game.action_space, observation)
            assert action == Action("move_to", {"target_entity_id": person.entity_id}), reason
        await game.act(Action("move_to", {"target_entity_id": person.entity_id}))
        observation = await seen(game)
        for typed in (person.name, person.name.lower(), person.entity_id):
            action, reason = typed_choice(
                f"interact entity_id='{typed}' interaction_type=talk", game.action_space, observation
            )
            assert action == Action("interact", {"entity_id": person.entity_id, "interaction_type": "talk"}), reason
        note, _ = typed_choice(f"journal_note {person.name} has {number} coins", game.action_space, observation)
        assert note == Action("journal_note", {"content": f"{person.name} has {number} coins"})
        assert typed_choice("move_to 99", game.action_space, observation)[0] is None

    run(play)


def test_game_text_is_quoted_as_data() -> None:
    async def play() -> None:
        game = world()
        entered(game)
        result = await game.act(Action("interact", {"entity_id": "maid"}))
        text = result.observation.to_text()
        assert "<|im_start|>" not in text
        assert "<b>" not in text
        assert "| Good day." in text

    run(play)


def test_stages_completion_and_death_are_rewarded_and_told() -> None:
    async def play() -> None:
        game = world(quests=1)
        avatar = entered(game)
        await game.act(Action("interact", {"entity_id": "maid"}))
        begun = await game.act(Action("dialogue", {"entity_id": "maid", "topic": "rats"}))
        assert begun.achievements == ("begin_quest",)
        assert begun.reward == pytest.approx(0.7)
        await game.act(Action("interact", {"entity_id": "door_1"}))
        for _ in range(3):
            fight = await game.act(Action("combat_action", {"action_type": "attack", "target_entity_id": "rat"}))
        assert "prevail" in fight.achievements
        await game.act(Action("interact", {"entity_id": "door_1"}))
        end = await game.act(Action("interact", {"entity_id": "maid"}))
        assert end.done
        assert "complete_quest" in end.achievements
        assert game.list_avatars("ada")[0].avatar_id == avatar

    run(play)


def test_a_dead_body_lives_again_by_respawning_alone() -> None:
    async def play() -> None:
        game = world()
        avatar = entered(game)
        engine = game._source.engine
        assert isinstance(engine, Hamlet)
        engine.state["bodies"]["ada"]["hp"] = 1
        engine.state["rat"] = 9
        await game.act(Action("interact", {"entity_id": "door_1"}))
        dead = await game.act(Action("combat_action", {"action_type": "attack", "target_entity_id": "rat"}))
        assert dead.done
        assert game.list_avatars("ada")[0].state is AvatarState.DESTROYED
        death = game.handle_death(avatar)
        assert (death.cause, death.killer) == ("combat", "rat")
        assert not game.jack_in("ada", avatar).success
        assert game.respawn(avatar, death.respawn_options[0]).success
        assert (await seen(game)).location.region == "yard"

    run(play)


def test_a_sword_from_elsewhere_arrives_as_a_weapon_of_its_name_and_goes_home_as_it_came() -> None:
    async def play() -> None:
        game = world()
        avatar = entered(game)
        receipt = await game.admit(avatar, Entry("t1", "ada", items=[SWORD]))
        assert receipt.admitted == ("item-1",)
        assert (await seen(game)).inventory == {"brought_weapon_iron_sword": 1}
        assert game.jack_out("ada").success
        package = await game.release(avatar, "t2")
        assert package.items == (SWORD,)
        assert game.list_avatars("ada")[0].state is AvatarState.DORMANT

    run(play)


def test_what_an_item_became_and_is_no_more_is_reported_lost() -> None:
    async def play() -> None:
        game = world()
        avatar = entered(game)
        await game.admit(avatar, Entry("t1", "ada", items=[SWORD]))
        engine = game._source.engine
        assert isinstance(engine, Hamlet)
        del engine.state["bodies"]["ada"]["bag"]["brought_weapon_iron_sword"]
        await game.observe()
        package = await game.release(avatar, "t2")
        assert package.items == ()
        assert package.lost == {"item-1": "used up or given away"}

    run(play)


def test_several_agents_meet_in_one_embedded_world() -> None:
    async def play() -> None:
        game = world(seats=2)
        assert isinstance(game, SharedWorld)
        entered(game, "ada")
        entered(game, "bob")
        ada, bob = game.seat("ada"), game.seat("bob")
        await asyncio.gather(ada.act(Action("interact", {"entity_id": "coin"})), bob.act(Action("noop")))
        assert "player_ada" in (await bob.observe()).to_text()
        assert not (await bob.act(Action("interact", {"entity_id": "coin"}))).success
        with pytest.raises(UsageError):
            await game.act(Action("noop"))

    run(play)


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "doom"},
        {"bridge": "ftp://x"},
        {"seats": 9},
        {"bridge": "http://127.0.0.1:1", "seats": 2},
        {"token": "t"},
        {"agent": "mira"},
        {"address": "127.0.0.1:8766"},
        {"patience": 5},
        {"bridge": "http://127.0.0.1:1", "log": "x.sqlite"},
    ],
)
def test_wrong_options_are_refused_in_a_sentence(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="option"):
        world(**options)


def test_a_world_behind_a_bridge_is_live_and_an_embedded_one_is_not() -> None:
    live = SPEC.with_options({"bridge": "http://127.0.0.1:8765"})
    assert "irreversible" in live.abilities
    assert not {"seed", "snapshot"} & {*live.abilities}
    assert SPEC.with_options({}).seats == (1, 1)
    assert "multi-seat" in SPEC.with_options({"seats": 3}).abilities


# --- live ---------------------------------------------------------------------------------------------------------


class Ticking:
    """A clock that goes on when somebody waits."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)


class Bare(BridgePort):
    """The seed's three endpoints alone, in front of a bridge."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.sent: list[CommandInput] = []
        self.lost = self.down = self.frozen = False
        self._last: PerceptionOutput | None = None

    async def perception(self, agent_id: str | None = None) -> PerceptionOutput:
        if self.down:
            raise BridgeUnavailableError("The bridge is not reached.")
        if not self.frozen or self._last is None:
            found = await self.bridge.perception(agent_id)
            self._last = found.model_copy(update={"boot_id": None, "sequence": None})
        return self._last

    async def command(self, command: CommandInput, *, key: str | None = None) -> CommandAccepted:
        self.sent.append(command)
        accepted = await self.bridge.command(command)
        if self.lost:
            raise UnknownOutcomeError("The answer was lost.")
        return accepted

    async def status(self) -> BridgeStatus:
        return (await self.bridge.status()).model_copy(update={"abilities": None})

    async def outcome(self, command_id: str, *, wait: float = 0.0) -> Outcome:
        raise NotOfferedError("no outcomes")

    async def agents(self) -> list[AgentInfo]:
        raise NotOfferedError("no agents")

    async def join(self, request: JoinRequest) -> AgentInfo:
        raise NotOfferedError("no bodies")

    async def leave(self, agent_id: str, mode: str = "dormant") -> None:
        raise NotOfferedError("no bodies")

    async def respawn(self, agent_id: str) -> AgentInfo:
        raise NotOfferedError("no bodies")

    async def transfer(self, agent_id: str, request: ItemsRequest) -> ItemsReceipt:
        raise NotOfferedError("no items")


async def live(*, bare: bool = False) -> tuple[MorrowindWorld, Any, Hamlet]:
    engine, clock = Hamlet(), Ticking()
    bridge = Bridge(engine, CommandLog(None))
    await bridge.join(JoinRequest(agent_id="hero"))
    port: BridgePort = Bare(bridge) if bare else bridge
    context = Context.create(0, config={"bridge": "http://127.0.0.1:1", "agent": "hero" if bare else ""}, clock=clock)
    game = MorrowindWorld(context, bridge=port, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    avatar = game.create_avatar("hero", AvatarSpec(name="hero"))
    assert game.jack_in("hero", avatar.avatar_id).success
    return game, port, engine


def test_a_bare_bridge_is_played_by_changed_timestamps() -> None:
    async def play() -> None:
        game, _, engine = await live(bare=True)
        await game.observe()
        result = await game.act(Action("interact", {"entity_id": "coin"}))
        assert result.outcome == "done"
        assert result.observation.inventory == {"coin": 1}
        assert engine.commands == [("hero", "interact")]

    run(play)


def test_a_lost_answer_is_unknown_and_is_not_sent_again() -> None:
    async def play() -> None:
        game, port, engine = await live(bare=True)
        port.lost = True
        result = await game.act(Action("wait", {"duration_seconds": 5}))
        assert result.outcome == "unknown"
        assert not result.success
        assert len(port.sent) == 1
        assert len(engine.commands) <= 1

    run(play)


def test_an_old_perception_is_said_to_be_old() -> None:
    async def play() -> None:
        game, port, _ = await live(bare=True)
        await game.observe()
        port.down = True
        await game._source.clock.sleep(30)
        text = (await seen(game)).to_text()
        assert "STALE:\nThis is 30 seconds old" in text

    run(play)


def test_a_choice_is_carried_out_once_in_a_live_world() -> None:
    async def play() -> None:
        game, _, engine = await live()
        await game.observe()
        action = Action("interact", {"entity_id": "coin"}, "A coin!")
        first = await game.act_once(action, ChoiceKey("run/hero/1"))
        again = await game.act_once(Action("noop"), ChoiceKey("run/hero/1", again=True))
        assert first.outcome == again.outcome == "done"
        assert engine.commands == [("hero", "interact")]

    run(play)


def test_a_choice_that_a_bare_bridge_may_have_taken_stays_unknown() -> None:
    async def play() -> None:
        game, port, _ = await live(bare=True)
        await game.observe()
        result = await game.act_once(Action("noop"), ChoiceKey("run/hero/1", again=True))
        assert result.outcome == "unknown"
        assert port.sent == []

    run(play)


def test_commands_carry_the_beat_the_episode_the_perception_and_the_reasoning() -> None:
    async def play() -> None:
        game, port, _ = await live(bare=True)
        before = (await seen(game)).seen
        await game.act(Action("wait", {"duration_seconds": 5}, "I wait for the maid."))
        command = port.sent[0]
        assert command.reasoning == "I wait for the maid."
        assert command.episode_id
        assert command.context is not None
        assert command.context.heartbeat_cycle == 1
        assert command.context.perception_timestamp == before.timestamp

    run(play)


def test_a_live_body_sleeps_when_play_ends() -> None:
    async def play() -> None:
        game, _, engine = await live()
        await game.observe()
        await game.close()
        assert not engine.state["bodies"]["hero"]["in"]

    run(play)


class Restarting(httpx2.AsyncBaseTransport):
    """Reaches the bridge of the embedded engine that runs at the moment."""

    def __init__(self) -> None:
        self._seed = 0
        self.start()

    def start(self) -> None:
        """Start another bridge and engine, which know of nobody but the agent that they begin with."""
        self._seed += 1
        self.engine = SimulatedEngine(seed=self._seed, realtime=False, agents=("agent",))
        self._inner = httpx2.ASGITransport(app=create_app(Bridge(self.engine, CommandLog(None)), "t" * 20))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._inner.handle_async_request(request)


@pytest.mark.parametrize("first", ["act", "observe"])
def test_a_live_run_goes_on_after_the_bridge_was_started_again(first: str) -> None:
    async def play() -> None:
        server = Restarting()
        await server.engine.start()
        async with BridgeClient("http://127.0.0.1:1", "t" * 20, transport=server) as client:
            context = Context.create(0, config={"bridge": "http://127.0.0.1:1"}, clock=Ticking())
            game = MorrowindWorld(context, bridge=client, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
            entered(game, "seat-1")
            assert (await seen(game)).seen.agent_id == "seat-1"
            server.start()
            await server.engine.start()
            if first == "act":
                lost = await game.act(Action("wait", {"duration_seconds": 5}))
                assert (lost.outcome, "There is no agent 'seat-1' here" in lost.message) == ("failed", True)
            assert (await seen(game)).seen.agent_id == "seat-1"
            assert (await game.act(Action("wait", {"duration_seconds": 5}))).outcome == "done"
            # Nobody is brought back whom the owner has sent away.
            await client.leave("seat-1", "despawn")
            with pytest.raises(PayloadError, match="no agent 'seat-1'"):
                await game.observe()

    run(play)


def test_nothing_of_the_engine_s_own_data_reaches_an_agent() -> None:
    async def play(extra: dict[str, Any]) -> str:
        context = Context.create(0, config={})
        game = MorrowindWorld(context, engine=lambda seed: Hamlet(seed, {"raw_engine_data": extra}))
        entered(game)
        return str(replace(await seen(game)))

    assert asyncio.run(play({})) == asyncio.run(play({"secret": "the maid is the thief"}))


def test_two_agents_on_one_bridge_have_a_body_each() -> None:
    """Both sit in `seat-1` of their own runs, as with `wsap play --as`."""

    async def play() -> None:
        engine = Hamlet()
        bridge = Bridge(engine, log := CommandLog(None))
        worlds = []
        for name in ("ada", "bob"):
            services = Services(run=f"run-of-{name}", identities={"seat-1": name})
            context = Context.create(0, config={"bridge": "http://127.0.0.1:1"}, clock=Ticking(), services=services)
            game = MorrowindWorld(context, bridge=bridge, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
            avatar = game.create_avatar("seat-1", AvatarSpec(name="seat-1"))
            assert game.jack_in("seat-1", avatar.avatar_id).success
            worlds.append(game)
        for game in worlds:
            await game.observe()
        results = await asyncio.gather(*(game.act(Action("wait", {"duration_seconds": 5})) for game in worlds))
        assert [result.outcome for result in results] == ["done", "done"]
        assert sorted(agent for agent, _ in engine.commands) == ["ada", "bob"]
        assert {one.agent_id for one in await bridge.agents()} == {"ada", "bob"}
        records = newest(log, Filter(), 9)
        assert {record.agent_id for record in records} == {"ada", "bob"}
        assert {record.episode_id for record in records} == {"run-of-ada/ada/seed-0-0", "run-of-bob/bob/seed-0-0"}

    run(play)

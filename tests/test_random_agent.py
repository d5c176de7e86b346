"""Which actions the random baseline draws from."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping

import pytest
from rounds_kit import from_page

from wsap_core import (
    AVATAR_ACTIONS,
    Action,
    ActionAvailability,
    ActionDef,
    ActionSpace,
    Context,
    Observation,
    ParamDef,
    Seat,
    World,
)
from wsap_core.authoring.rounds import RoundGame
from wsap_core.builtin.random_agents import RandomAgent
from wsap_core.protocol import TOOL, Avatar, EmbodiedObservation, Entity
from wsap_core.protocol.availability import Possible
from wsap_core.references import load_adapter_spec
from wsap_core.worlds import GAME_OVER

KUHN: type[RoundGame] = from_page("kuhn.py")["KuhnPoker"]


def drawn_from(space: ActionSpace) -> set[str]:
    agent = RandomAgent(random.Random(1))
    agent.initialize("a game", space)
    return {agent.decide(Observation()).name for _ in range(300)}


def test_ways_out_of_a_game_are_not_played_as_long_as_it_has_actions_of_its_own() -> None:
    space = ActionSpace([ActionDef("dig", "Dig"), ActionDef("exit_game", "Leave", (), (), "meta")])
    assert drawn_from(space.merged(AVATAR_ACTIONS)) == {"dig"}


def test_where_there_is_nothing_else_they_are() -> None:
    space = ActionSpace([ActionDef("exit_game", "Leave", (), (), "meta")])
    assert drawn_from(space) == {"exit_game"}


TOWN = ActionSpace([ActionDef("graveyard", category=TOOL), ActionDef("vote"), ActionDef("wait")])


def test_tools_of_a_game_are_not_played() -> None:
    assert drawn_from(TOWN.merged(AVATAR_ACTIONS)) == {"vote", "wait"}


def test_a_tool_is_played_where_nothing_else_is_legal() -> None:
    agent = RandomAgent(random.Random(1), legal_only=True)
    agent.initialize("a game", TOWN)
    for closed, left in (({"vote"}, {"wait"}), ({"vote", "wait"}, {"graveyard"})):
        moment = Observation(available_actions=[ActionAvailability(a, a not in closed, "no") for a in TOWN.names])
        assert {agent.decide(moment).name for _ in range(50)} == left


def actions_of(space: ActionSpace, moment: Observation, times: int = 4000) -> list[Action]:
    agent = RandomAgent(random.Random(1))
    agent.initialize("a game", space)
    return [agent.decide(moment) for _ in range(times)]


GO = ActionSpace([ActionDef("go", parameters=[ParamDef("to", "id of a place"), ParamDef("by", "id", optional=True)])])


def test_half_of_the_parameters_are_those_that_the_observation_lists() -> None:
    moment = Observation(available_actions=[Possible("go", choices={"to": ["inn_1", "shed_7"]})])
    places = Counter(action.parameters["to"] for action in actions_of(GO, moment))
    assert places["inn_1"] + places["shed_7"] == pytest.approx(2000, abs=200)
    assert places["inn_1"] == pytest.approx(places["shed_7"], abs=200)
    assert len(places) > 4, "the other half is any declared value"
    # An optional parameter without a listed value may be left out: nothing says what it could be.
    assert 800 < sum("by" not in action.parameters for action in actions_of(GO, moment)) < 1200


def test_a_text_without_choices_is_the_name_of_something_in_sight_or_carried() -> None:
    moment = EmbodiedObservation(
        avatar=Avatar("a", "g"), inventory={"lamp": 1}, nearby_entities=[Entity("npc", "Maud"), Entity("tree")]
    )
    places = Counter(action.parameters["to"] for action in actions_of(GO, moment))
    assert places["Maud"] == pytest.approx(1000, abs=150)
    assert places["lamp"] == pytest.approx(1000, abs=150)


def test_actions_of_which_nothing_is_listed_are_drawn_as_before() -> None:
    """Recorded hashes of games that list nothing stay the same."""
    agent, reference = RandomAgent(random.Random(5)), random.Random(5)
    agent.initialize("a game", GO)
    for _ in range(20):
        words = ("north", "south", "east", "west", "hello", "me")
        reference.randrange(1)
        expected = {name: words[reference.randrange(6)] for name in ("to", "by")}
        assert agent.decide(Observation()).parameters == expected


class Cards(KUHN):  # type: ignore[misc, valid-type]  # from a page
    """Kuhn poker whose move is a text, with the legal ones listed."""

    action_space = ActionSpace([ActionDef("play", "Play", [ParamDef("move", "your move")])])

    def legal(self, seat: str) -> list[Possible]:
        return [Possible("play", choices={"move": ["pass", "bet"]})]

    def apply(self, moves: Mapping[str, Action]) -> None:
        (action,) = moves.values()
        self.moves += str(action.parameters["move"])[0]


async def share_of_legal_moves(games: int) -> float:
    world, successes = World.create(load_adapter_spec(Cards), Context.create(0)), list[bool]()

    async def one(seat: Seat, agent: RandomAgent) -> None:
        agent.initialize("Kuhn", Cards.action_space)
        while not seat.done:
            observation = await seat.observe()
            if seat.ended:
                await seat.step(GAME_OVER)
                return
            successes.append((await seat.act(agent.decide(observation))).success)

    seats = [(world.open_seat(name), RandomAgent(random.Random(name))) for name in Cards.seats]
    for game in range(games):
        await world.reset(game)
        await asyncio.gather(*(one(*pair) for pair in seats))
    return sum(successes) / len(successes)


def test_kuhn_poker_with_its_moves_as_text_is_played_and_not_only_refused() -> None:
    assert 0.4 < asyncio.run(share_of_legal_moves(100)) < 0.6

"""Which actions the random baseline draws from."""

from __future__ import annotations

import random

from wsap_core import AVATAR_ACTIONS, ActionAvailability, ActionDef, ActionSpace, Observation
from wsap_core.builtin.random_agents import RandomAgent
from wsap_core.protocol import TOOL


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

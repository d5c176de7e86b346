"""The actions that a session lists stay the same when its player gets another role."""

from __future__ import annotations

from wsap_tossim.options import TownOptions
from wsap_tossim.world import Town


def roles_of(town: Town) -> list[str]:
    return [player.role.name for player in town.game.state.players]


def test_a_session_keeps_its_action_space_and_the_next_one_gets_that_of_the_role():
    town = Town(TownOptions.read({"mode": "five"}), 0)
    faces = [town.seat(name) for name in town.seats]
    before, roles = [face.action_space for face in faces], roles_of(town)
    town.game.state.players = town.game.state.players[1:] + town.game.state.players[:1]
    assert roles_of(town) != roles
    assert [face.action_space for face in faces] == before

    again = [town.seat(name).action_space for name in town.seats]
    assert [space.names for space in again] == [space.names for space in before]
    assert again == before[1:] + before[:1]

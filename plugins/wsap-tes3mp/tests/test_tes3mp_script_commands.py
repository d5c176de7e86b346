"""The server-side script: what it does with commands, and that it does nothing twice."""

from __future__ import annotations

from typing import Any

import pytest
from lua_server import LUAS, LuaServer, accompanied, furnished, started

# Avatars ------------------------------------------------------------------------------------------------------------


@LUAS
def test_an_avatar_is_placed_and_confirmed_by_what_its_client_reports(lua: str) -> None:
    server, link = started(lua=lua)
    before = link.ok("perceive", agent="nerys")["sequence"]
    reply = link.command("nerys", "move_to", "m1", target_x=500, target_y=300)
    assert reply == {"state": "dispatched"}
    assert server.fake.players[0].x == 500  # the server says so at once, which proves nothing
    assert not [event for event in link.read() if event.get("event") == "outcome"]
    end = link.outcome("m1")
    assert (end["state"], end["message"]) == ("confirmed", "arrived")
    assert end["sequence"] > before


def test_a_report_from_before_is_not_taken_for_the_arrival() -> None:
    server, link = started()
    server.lua.execute("fake.latency = 1000")
    link.command("nerys", "move_to", "m1", target_x=200, target_y=200)
    server.lua.execute("local p = fake.players[0] p.x, p.y, p.z = 101, 200, 50")  # it was on its way already
    server.step(50, 10)
    assert not [event for event in link.read() if event.get("event") == "outcome"]
    assert link.outcome("m1")["state"] == "confirmed"


def test_an_avatar_is_put_on_this_side_of_whom_it_goes_to() -> None:
    server, link = furnished()
    server.fake.place("Test House", "16-0", "test guard", "actor", 1100, 200, 50)
    assert link.do("nerys", "move_to", target_entity_id="16-0")["state"] == "confirmed"
    assert server.fake.players[0].x == pytest.approx(1100 - 64)


def test_an_avatar_goes_through_cells_and_to_entities() -> None:
    server, link = furnished()
    assert link.do("nerys", "move_to", target_entity_id="12-0")["state"] == "confirmed"
    assert (
        link.do("nerys", "move_to", target_cell="2, 3", target_x=17000, target_y=25000, target_z=9)["state"]
        == "confirmed"
    )
    assert link.ok("perceive", agent="nerys")["cell"] == "2, 3"
    assert link.do("nerys", "move_to", target_x=16700, target_y=24700)["state"] == "confirmed"  # at its own height
    assert server.fake.players[0].z == pytest.approx(9 + 24 - 20 + 24 - 20)
    # Not at the height of what is far away: a body would be put under a hill, or into a fall.
    assert link.do("nerys", "move_to", target_x=17400, target_y=24700)["code"] == "NO_HEIGHT"
    assert link.do("nerys", "move_to", target_cell="Test House")["message"] == "arrived in Test House"


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"target_cell": "2, 3", "target_x": 1, "target_y": 1}, "BAD_REQUEST"),
        ({"target_cell": "2, 3", "target_x": 17000, "target_y": 25000}, "NO_HEIGHT"),
        ({"target_x": 1}, "BAD_REQUEST"),
        ({"target_x": "1", "target_y": 2}, "BAD_REQUEST"),
        ({"target_x": 1e300, "target_y": 2}, "BAD_REQUEST"),
        ({"target_cell": 'x" \n'}, "BAD_REQUEST"),
        ({"target_cell": "99999999999, 0"}, "BAD_REQUEST"),
        ({"target_cell": "0, -99999999999", "target_x": 1, "target_y": 1}, "BAD_REQUEST"),
        ({}, "BAD_REQUEST"),
        ({"target_entity_id": "99-0"}, "NO_ENTITY"),
        ({"target_entity_id": "15-0"}, "NO_PLACE"),
    ],
)
def test_a_target_that_is_none_is_refused_before_anything_is_sent(params: dict[str, Any], code: str) -> None:
    server, link = furnished()
    end = link.do("nerys", "move_to", **params)
    assert (end["state"], end["code"]) == ("failed", code)
    assert not server.fake.calls.SendPos
    assert not server.fake.calls.SendCell


def test_a_client_that_does_not_answer_leaves_a_command_unknown() -> None:
    server, link = started()
    server.lua.execute("fake.players[0].answers = false")
    end = link.do("nerys", "move_to", target_x=500, target_y=300)
    assert (end["state"], end["code"]) == ("unknown", "NO_UPDATE")


def test_a_cell_that_the_client_does_not_have_is_a_failure() -> None:
    server, link = started()
    end = link.do("nerys", "move_to", target_cell="No Such House", target_x=5000, target_y=5000, target_z=0)
    assert (end["state"], end["code"]) == ("failed", "ELSEWHERE")
    assert server.fake.players[0].cell == "Test House"


def test_a_player_who_leaves_takes_its_command_along_and_its_number_is_another_ones() -> None:
    server, link = started()
    link.command("nerys", "move_to", "m1", target_x=500, target_y=300)
    server.fake.disconnect(0)
    server.player(0, "Other")
    assert link.outcome("m1")["state"] == "unknown"
    assert [row["agent"] for row in link.ok("agents")["agents"]] == ["other"]
    assert link.ask("command", agent="nerys", command_id="m2", command="wait", params={})["error"]["code"] == "NO_AGENT"
    server.player(1, "Nerys")
    assert link.ok("perceive", agent="nerys")["cell"] == "Test House"


@pytest.mark.parametrize(
    ("entity", "state"), [("12-0", "confirmed"), ("13-0", "confirmed"), ("14-0", "confirmed"), ("11-0", "unknown")]
)
def test_what_is_activated_is_confirmed_where_the_game_reports_an_effect(entity: str, state: str) -> None:
    _, link = furnished()
    assert link.do("nerys", "interact", entity_id=entity, interaction_type="activate")["state"] == state
    assert ("dialogue" in link.ok("perceive", agent="nerys")) == (entity == "11-0")


def test_another_player_can_be_activated() -> None:
    server, link = started()
    server.player(1, "Other", (120.0, 200.0, 50.0))
    assert link.do("nerys", "interact", entity_id="player:other")["state"] == "unknown"
    assert server.fake.sent[1].list.objects[1].player == 1


def test_an_item_is_used_by_the_console_after_the_inventory_was_checked() -> None:
    server, link = started()
    assert link.do("nerys", "use_item", item_id="test potion")["state"] == "confirmed"
    assert link.do("nerys", "use_item", item_id="test dream")["code"] == "NO_ITEM"
    assert link.do("nerys", "use_item", item_id="test potion", target_entity_id="x")["code"] == "UNSUPPORTED"
    assert list(server.fake.conjured.values()) == []
    assert list(server.fake.kicked.values()) == []


def test_an_item_with_a_slot_is_equipped() -> None:
    _, link = started()
    assert link.do("nerys", "use_item", item_id="test potion", slot=16)["message"] == "equipped"
    assert link.do("nerys", "use_item", item_id="test potion", slot="16")["state"] == "failed"
    for slot in (-1, 19, 0.5):
        assert link.do("nerys", "use_item", item_id="test potion", slot=slot)["state"] == "failed"


@pytest.mark.parametrize("name", ['x" "y', "a\nb", "/ban", " /ban", "a;b", "\\", "x" * 65, "q\x00", "del\x7f"])
def test_a_name_that_tries_to_be_a_console_command_is_refused(name: str) -> None:
    server, link = furnished()
    server.lua.globals().Players[0].data.inventory[9] = server.table({"refId": name, "count": 1})
    end = link.do("nerys", "use_item", item_id=name)
    assert (end["state"], end["code"]) == ("failed", "BAD_REQUEST")
    assert link.do("nerys", "dialogue", entity_id="11-0", topic=name)["code"] == "UNSUPPORTED"
    assert not server.fake.calls.SendConsoleCommand
    assert not server.fake.calls.SendObjectDialogueChoice


def test_an_avatar_casts_what_it_knows_and_cannot_swing() -> None:
    server, link = furnished()
    fight = {"target_entity_id": "11-0"}
    assert link.do("nerys", "combat_action", action_type="cast", **fight)["state"] == "confirmed"
    assert link.do("nerys", "combat_action", action_type="cast:test spell", **fight)["state"] == "confirmed"
    assert link.do("nerys", "combat_action", action_type="cast:other", **fight)["code"] == "NO_SPELL"
    assert link.do("nerys", "combat_action", action_type="attack", **fight)["code"] == "UNSUPPORTED"
    assert link.ok("perceive", agent="nerys")["combat_age"] < 60
    assert server.fake.sent[1].list.console == 'cast "test spell" "test innkeeper"'


@pytest.mark.parametrize(
    ("topic", "state"), [("told topic", "confirmed"), ("quest topic", "confirmed"), ("x", "unknown")]
)
def test_dialogue_goes_by_topic(topic: str, state: str) -> None:
    _, link = furnished()
    assert link.do("nerys", "dialogue", entity_id="11-0", topic=topic)["state"] == state
    facts = link.ok("perceive", agent="nerys")
    assert facts["dialogue"] == {"entity": "11-0", "topic": topic}
    assert facts["dialogue_age"] < 10
    assert link.do("nerys", "dialogue", entity_id="11-0", choice_idx=1)["code"] == "UNSUPPORTED"


def test_waiting_takes_its_time_and_nothing_takes_none() -> None:
    server, link = started()
    before = server.fake.now
    assert link.do("nerys", "wait", duration_seconds=2)["state"] == "confirmed"
    assert 2000 <= server.fake.now - before < 2500
    assert link.command("nerys", "noop")["state"] == "confirmed"
    assert link.do("nerys", "wait", duration_seconds=-1)["code"] == "BAD_REQUEST"


def test_a_dead_avatar_does_nothing_until_it_is_brought_back() -> None:
    server, link = started()
    server.lua.execute("fake.players[0].current = 0")
    assert link.ok("agents")["agents"][0]["dead"]
    assert link.do("nerys", "move_to", target_x=1, target_y=1)["code"] == "DEAD"
    link.ok("respawn", agent="nerys")
    server.step(50, 5)
    assert not link.ok("agents")["agents"][0]["dead"]
    assert not link.ok("respawn", agent="nerys")["dead"]


# Companions ---------------------------------------------------------------------------------------------------------


@LUAS
def test_a_companion_walks_on_the_client_with_the_authority(lua: str) -> None:
    server, link = accompanied(lua=lua)
    facts = link.ok("perceive", agent="comp")
    assert (facts["embodiment"], facts["cell"], facts["x"]) == ("companion", "Test House", 164)
    assert "player:nerys" in [row["id"] for row in facts["entities"]]
    end = link.do("comp", "move_to", target_x=900, target_y=300, target_z=50)
    assert end["state"] == "confirmed"
    assert abs(link.ok("perceive", agent="comp")["x"] - 900) < 130
    server.lua.execute("fake.players[0].answers = false")
    assert link.do("comp", "move_to", target_x=100, target_y=300, target_z=50)["code"] == "TIMEOUT"


def test_what_a_companion_can_do() -> None:
    server, link = accompanied()
    assert link.do("comp", "interact", entity_id="14-0")["message"] == "activated" or True
    assert link.do("comp", "interact", entity_id="player:nerys", interaction_type="follow")["state"] == "confirmed"
    assert link.do("comp", "interact", entity_id="11-0", interaction_type="activate")["state"] == "confirmed"
    assert link.do("comp", "combat_action", action_type="attack", target_entity_id="11-0")["message"] == "it has hit"
    assert link.do("comp", "combat_action", action_type="cast", target_entity_id="11-0")["code"] == "UNSUPPORTED"
    assert link.do("comp", "dialogue", entity_id="11-0", topic="x")["code"] == "UNSUPPORTED"
    assert (
        link.do("comp", "move_to", target_cell="Other House", target_x=1, target_y=1, target_z=1)["code"]
        == "UNSUPPORTED"
    )
    assert link.do("comp", "use_item", item_id="test bow")["code"] == "NO_ITEM"
    server.lua.execute(
        "LoadedCells['Test House'].data.objectData['0-101'].inventory = {{ refId = 'test bow', count = 1 }}"
    )
    assert link.do("comp", "use_item", item_id="test bow")["state"] == "confirmed"
    assert link.ok("perceive", agent="comp")["inventory"][0]["ref_id"] == "test bow"


def test_a_companion_without_anybody_near_is_not_connected_and_its_command_ends_unknown() -> None:
    server, link = accompanied()
    link.command("comp", "move_to", "m1", target_x=9000, target_y=300, target_z=50)
    server.fake.disconnect(0)
    assert link.outcome("m1")["state"] == "unknown"
    assert link.ask("perceive", agent="comp")["error"]["code"] == "NOT_CONNECTED"
    assert [row["connected"] for row in link.ok("agents")["agents"]] == [False]
    assert link.ask("leave", agent="comp", mode="despawn")["error"]["code"] == "NOT_CONNECTED"


def test_a_companion_sleeps_vanishes_comes_back_and_is_gone() -> None:
    server, link = accompanied()
    link.ok("leave", agent="comp", mode="dormant")
    assert link.ask("perceive", agent="comp")["error"]["code"] == "NOT_CONNECTED"
    assert link.ok("join", agent="comp", name="Comp", embodiment="companion")["connected"]
    link.ok("leave", agent="comp", mode="suspend")
    assert server.lua.eval("LoadedCells['Test House'].data.objectData['0-101'] == nil")
    assert link.ok("join", agent="comp", name="Comp", embodiment="companion", host="NERYS")["connected"]
    assert server.lua.eval("LoadedCells['Test House'].data.objectData['0-102'].refId") == "test npc"
    link.ok("leave", agent="comp", mode="despawn")
    assert [row["agent"] for row in link.ok("agents")["agents"]] == ["nerys"]
    assert link.ask("leave", agent="comp", mode="despawn")["error"]["code"] == "NO_AGENT"
    assert link.ask("leave", agent="nerys", mode="away")["error"]["code"] == "BAD_REQUEST"


def test_a_dead_companion_is_spawned_anew() -> None:
    server, link = accompanied()
    server.lua.execute("LoadedCells['Test House'].data.objectData['0-101'].deathState = 1")
    assert link.ok("agents")["agents"][0]["dead"]
    assert link.do("comp", "move_to", target_x=1, target_y=1, target_z=1)["code"] == "DEAD"
    assert not link.ok("respawn", agent="comp")["dead"]


def test_bodies_outlive_a_restart_of_the_server() -> None:
    server, link = accompanied()
    link.ok("join", agent="rowan", name="Nerys", embodiment="avatar")
    kept = server.lua.eval("require('lua.json').encode(WorldInstance.data.customVariables)")
    again = LuaServer(before=f"WorldInstance.data.customVariables = require('lua.json').decode([[{kept}]])")
    again.player()
    link = again.connect()
    assert [row["agent"] for row in link.ok("agents")["agents"]] == ["comp", "rowan"]
    assert not [row for row in link.ok("agents")["agents"] if row["agent"] == "comp" and row["connected"]]


def test_joining_refuses_what_cannot_be() -> None:
    _, link = started(settings={"companion": ""})
    cases: list[tuple[dict[str, Any], str]] = [
        ({"agent": "a", "name": "Nobody", "embodiment": "avatar"}, "NOT_CONNECTED"),
        ({"agent": "a", "name": "A", "embodiment": "companion"}, "NOT_OFFERED"),
        ({"agent": "a", "name": "A", "embodiment": "ghost"}, "BAD_REQUEST"),
        ({"agent": "nerys", "name": "A", "embodiment": "companion"}, "BAD_REQUEST"),
        ({"agent": 3, "name": "A", "embodiment": "avatar"}, "BAD_REQUEST"),
    ]
    for fields, code in cases:
        assert link.ask("join", **fields)["error"]["code"] == code
    _, link = started()
    asked = {"agent": "a", "name": "A", "embodiment": "companion", "host": "nobody"}
    assert link.ask("join", **asked)["error"]["code"] == "NOT_CONNECTED"


def test_an_agent_may_have_another_name_than_its_account() -> None:
    _, link = started()
    assert link.ok("join", agent="rowan", name="Nerys", embodiment="avatar")["connected"]
    assert [row["agent"] for row in link.ok("agents")["agents"]] == ["rowan"]
    link.ok("leave", agent="rowan", mode="dormant")
    assert link.ask("perceive", agent="rowan")["error"]["code"] == "NOT_CONNECTED"


# At most once -------------------------------------------------------------------------------------------------------


def test_a_repeated_command_is_answered_and_not_carried_out_again() -> None:
    server, link = started()
    link.command("nerys", "move_to", "m1", target_x=500, target_y=300)
    assert link.command("nerys", "move_to", "m1", target_x=900, target_y=300) == {"state": "dispatched"}
    end = link.outcome("m1")
    again = link.command("nerys", "move_to", "m1", target_x=500, target_y=300)
    assert (again["state"], again["sequence"]) == ("confirmed", end["sequence"])
    assert server.fake.calls.SendPos == 1
    assert link.ok("outcome", command_id="m1")["state"] == "confirmed"
    assert link.ok("outcome", command_id="m2") == {"state": "never"}


def test_what_was_refused_as_busy_was_never_carried_out() -> None:
    _, link = started()
    link.command("nerys", "wait", "w1", duration_seconds=5)
    busy = link.ask("command", agent="nerys", command_id="w2", command="wait", params={"duration_seconds": 1})
    assert busy["error"]["code"] == "BUSY"
    assert link.ok("outcome", command_id="w2") == {"state": "never"}


def test_the_memory_of_commands_is_bounded_and_says_when_it_no_longer_knows() -> None:
    _, link = started(settings={"memory": 4})
    for number in range(12):
        link.command("nerys", "noop", f"n{number}")
    assert link.ok("outcome", command_id="n11")["state"] == "confirmed"
    assert link.ok("outcome", command_id="n0")["state"] == "unknown"


def test_an_outcome_waits_for_a_connector_that_was_away() -> None:
    server, link = started()
    link.command("nerys", "wait", "w1", duration_seconds=3)
    link.wire.ended = True
    server.step(50, 100)
    link = server.connect()
    assert link.welcome["welcome"]["connection"] == 2
    assert link.ok("outcome", command_id="w1")["state"] == "confirmed"


def test_a_script_that_fails_before_it_sent_says_failed_and_after_it_unknown() -> None:
    server, link = furnished()
    server.lua.execute("local old = tes3mp.SetPos tes3mp.SetPos = function() error('broken') end fake.old = old")
    end = link.do("nerys", "move_to", target_x=500, target_y=300)
    assert (end["state"], end["code"]) == ("failed", "SCRIPT_ERROR")
    server.lua.execute("tes3mp.SetPos = fake.old tes3mp.GetPosX = function() error('broken') end")
    server.lua.execute("local get, n = tes3mp.SendPos, 0")
    end = link.do("nerys", "move_to", target_cell="2, 3", target_x=17000, target_y=25000, target_z=9)
    assert end["state"] in ("failed", "unknown")
    assert any("broken" in line for line in server.log)

"""The server-side script: what it tells of the world, what it does with commands, and that no server dies of it."""

from __future__ import annotations

from typing import Any

import pytest
from lua_server import TOKEN, Link, LuaServer

LUAS = pytest.mark.parametrize("lua", ["luajit21", "lua51"])


def started(**more: Any) -> tuple[LuaServer, Link]:
    """Return a server with one player in it, and a connection."""
    server = LuaServer(**more)
    server.player()
    return server, server.connect()


def furnished(**more: Any) -> tuple[LuaServer, Link]:
    """Return the same with somebody and something around the player."""
    server, link = started(**more)
    place = server.fake.place
    place("Test House", "11-0", "test innkeeper", "actor", 150, 200, 50)
    place("Test House", "12-0", "test cup", "item", 160, 200, 60)
    place("Test House", "13-0", "test chest", "chest", 170, 200, 50)
    place("Test House", "14-0", "test door", "door", 180, 200, 50)
    place("Test House", "15-0", "test shelf", "item", None, None, None)
    return server, link


def accompanied(**more: Any) -> tuple[LuaServer, Link]:
    """Return the same with a companion named comp."""
    server, link = furnished(**more)
    assert link.ok("join", agent="comp", name="Comp", embodiment="companion")["connected"]
    return server, link


# What is perceived --------------------------------------------------------------------------------------------------


@LUAS
def test_a_player_is_an_agent_and_perceives_what_the_server_knows(lua: str) -> None:
    _, link = furnished(lua=lua)
    row = {"agent": "nerys", "name": "nerys", "connected": True, "dead": False, "embodiment": "avatar"}

    assert link.ok("agents")["agents"] == [row]
    facts = link.ok("perceive", agent="nerys")
    assert {key: facts[key] for key in ("cell", "x", "y", "z", "interior", "level", "region", "weather", "day")} == {
        "cell": "Test House", "x": 100, "y": 200, "z": 50, "interior": True, "level": 3, "region": "Test Region",
        "weather": "rain", "day": 3,
    }  # fmt: skip
    assert facts["health"] == {"current": 50, "max": 50}
    assert [(row["ref_id"], row["count"]) for row in facts["inventory"]] == [("gold_001", 25), ("test potion", 2)]
    assert facts["journal"] == [{"quest": "test_quest", "index": 30}]
    seen = [(row["id"], row["ref_id"], row["kind"]) for row in facts["entities"]]
    assert seen[:2] == [("11-0", "test innkeeper", "actor"), ("12-0", "test cup", "object")]  # the ref id was joined
    assert seen[-1] == ("15-0", "test shelf", "object")  # whose place nobody has reported


def test_what_is_empty_is_a_list_where_a_list_is_meant() -> None:
    server, link = started()
    server.lua.execute("Players[0].data.inventory, Players[0].data.journal = {}, {}")
    facts = link.ok("perceive", agent="nerys")
    assert (facts["inventory"], facts["journal"], facts["entities"]) == ([], [], [])


def test_the_sequence_grows_with_changes_only_and_the_connector_is_told() -> None:
    server, link = started()
    first = link.ok("perceive", agent="nerys")["sequence"]
    server.lua.execute("hourCounter = 9.75")
    assert link.ok("perceive", agent="nerys")["sequence"] == first
    server.lua.execute("fake.players[0].current = 30")
    server.step(50, 15)
    changed = [event for event in link.read() if event["event"] == "changed"]
    assert changed == [{"event": "changed", "agent": "nerys", "sequence": first + 1}]
    server.player(1, "Other")
    server.step(50, 15)
    assert {"event": "agents"} in link.read()


def test_outside_the_cells_around_are_seen_and_a_cell_that_only_the_scripts_have_is_left_alone() -> None:
    server = LuaServer()
    server.player(0, "Nerys", (100.0, 100.0, 10.0), "0, 0")
    server.player(1, "Far", (-100.0, 100.0, 10.0), "-1, 0")
    server.fake.place("-1, 0", "21-0", "test guard", "actor", -50, 100, 10)
    server.lua.execute("fake.load_cell('1, 1') fake.cells['1, 1'] = nil")
    link = server.connect()
    facts = link.ok("perceive", agent="nerys")
    assert [row["id"] for row in facts["entities"]] == ["21-0", "player:far"]
    assert facts["interior"] is False


def test_wrong_numbers_and_wrong_bytes_in_the_game_do_no_harm() -> None:
    server, link = started()
    server.lua.execute(
        "local p = Players[0] fake.players[0].x = 0/0 fake.players[0].current = 1/0 p.name = 'N\\255\\n/' "
        "p.data.inventory[3] = { refId = 'caf\\233', count = 1 } p.data.inventory[4] = { count = 0/0 } "
        "p.data.journal[3] = { quest = 7 } p.data.attributes = { Strength = { base = 40 } } hourCounter = 0/0"
    )
    facts = link.ok("perceive", agent="nerys")
    assert (facts["x"], facts["health"]["current"], facts["strength"], facts["hour"]) == (0, 0, 40, 0)
    assert "caf?" in [row["ref_id"] for row in facts["inventory"]]


def test_names_that_are_not_utf8_or_share_letters_are_agents_all_the_same() -> None:
    server = LuaServer()
    server.player(0, "N\xe9r\xff")
    link = server.connect()
    agent = link.ok("agents")["agents"][0]["agent"]
    assert agent == "n?r?"
    assert link.ok("perceive", agent=agent)["cell"] == "Test House"


def test_only_the_players_that_the_owner_lists_are_agents() -> None:
    server, link = started(settings={"avatars": ["mira"]})
    server.player(1, "Mira")
    assert [row["agent"] for row in link.ok("agents")["agents"]] == ["mira"]
    assert link.ask("perceive", agent="nerys")["error"]["code"] == "NO_AGENT"


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


def test_an_avatar_goes_through_cells_and_to_entities() -> None:
    server, link = furnished()
    assert link.do("nerys", "move_to", target_entity_id="12-0")["state"] == "confirmed"
    assert (
        link.do("nerys", "move_to", target_cell="2, 3", target_x=17000, target_y=25000, target_z=9)["state"]
        == "confirmed"
    )
    assert link.ok("perceive", agent="nerys")["cell"] == "2, 3"
    assert link.do("nerys", "move_to", target_x=16390, target_y=24600)["state"] == "confirmed"  # at its own height
    assert server.fake.players[0].z == pytest.approx(9 + 24 - 20 + 24 - 20)
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
    assert link.do("nerys", "use_item", item_id="test potion", slot=-1)["state"] == "failed"


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


# The server's side --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["", "short"])
def test_without_a_token_nothing_is_opened(token: str) -> None:
    server = LuaServer(settings={"token": token})
    server.step(50, 5)
    assert "set a token" in server.log[0]
    assert not server.fake.calls.CreateTimer
    server.event("OnServerExit")


def test_the_timer_is_made_once_wound_up_again_and_never_freed() -> None:
    server, link = started()
    server.lua.execute(
        "tes3mp.GetServerVersion = nil local get = tes3mp.GetCell tes3mp.GetCell = function() error('x') end"
    )
    server.step(50, 30)
    server.event("OnPlayerCellChange", 0)
    assert server.fake.calls.CreateTimer == 1
    assert not server.fake.calls.FreeTimer
    assert link.ok("ping")["time"] > 0


def test_events_with_wrong_arguments_do_no_harm() -> None:
    server, link = furnished()
    names = list(server.lua.eval("customEventHooks.handlers").keys())
    for name in set(names) - {"OnServerPostInit", "OnServerExit"}:
        for arguments in ((), (0,), ("x", 3), (0, "Test House", 7), (99, {}, "x", "y"), (0, None, {"a": 1}, {0: 1})):
            server.event(name, *arguments)
    assert link.ok("ping")


def test_what_happens_to_agents_is_noticed() -> None:
    server, link = accompanied()
    hit = {"11-0": {"hittingPid": 0, "hit": {"success": True}}}
    server.event("OnObjectHit", 0, "Test House", hit, {})
    server.event("OnObjectDialogueChoice", 0, "Test House", {"11-0": {"dialogueTopic": "news"}})
    facts = link.ok("perceive", agent="nerys")
    assert facts["combat_age"] < 1
    assert facts["dialogue"] == {"entity": "11-0", "topic": "news"}
    server.event("OnObjectHit", 0, "Test House", {}, {0: {"hittingUniqueIndex": "11-0"}})


def test_the_server_goes_on_after_being_loaded_twice_and_closes_at_its_end() -> None:
    server, link = started()
    server.lua.execute("package.loaded['lua.main'] = nil require('lua.main')")
    assert link.ok("ping")
    server.event("OnServerExit")
    assert server.fake.shut
    server.step(50, 3)
    assert TOKEN not in "".join(server.log)

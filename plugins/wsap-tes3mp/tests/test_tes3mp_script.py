"""The server-side script: what it tells of the world, and that no server dies of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from lua_server import LUA, LUAS, TOKEN, LuaServer, accompanied, furnished, started

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
    assert agent == "bytes:6ee972ff"
    assert link.ok("perceive", agent=agent)["cell"] == "Test House"


def test_only_the_players_that_the_owner_lists_are_agents() -> None:
    server, link = started(settings={"avatars": ["MIRA"]})
    server.player(1, "Mira")
    assert [row["agent"] for row in link.ok("agents")["agents"]] == ["mira"]
    assert link.ask("perceive", agent="nerys")["error"]["code"] == "NO_AGENT"


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
    wrong: list[tuple[Any, ...]] = [
        (), (0,), ("x", 3), (0, "Test House", 7), (99, {}, "x", "y"), (0, None, {"a": 1}, {0: 1}),
    ]  # fmt: skip
    for name in set(names) - {"OnServerPostInit", "OnServerExit"}:
        for arguments in wrong:
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


@LUAS
@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('return { token = "abcdefgh" port = 1 }', "expected"),
        ("token = 1", "it returns no table"),
        ("error({})", "can't be loaded"),
        (None, "not found"),
    ],
)
def test_settings_that_cannot_be_loaded_are_one_line_of_the_log(
    lua: str, content: str | None, why: str, tmp_path: Path
) -> None:
    shutil.copytree(LUA, tmp_path / "wsap")
    settings = tmp_path / "wsap" / "settings.lua"
    settings.unlink()
    if content is not None:
        settings.write_text(content)
    server = LuaServer(lua=lua, folder=tmp_path, module="wsap.main")
    told = [line for line in server.log if "[wsap]" in line]
    assert len(told) == 1
    assert "settings.lua" in told[0]
    assert why in told[0]


def as_bytes(name: str, encoding: str) -> str:
    """Return a name as Lua gets it, one character for each byte."""
    return name.encode(encoding).decode("latin-1")


@LUAS
def test_two_players_whose_names_are_not_utf_8_are_two_agents_with_a_body_each(lua: str) -> None:
    server = LuaServer(lua=lua)
    names = "Иван", "Олег"
    for pid, name in enumerate(names):
        server.player(pid, as_bytes(name, "cp1251"), (1.0 + 100 * pid, 2.0, 3.0))
    link = server.connect()
    agents = [row["agent"] for row in link.ok("agents")["agents"]]
    assert agents == sorted(f"bytes:{name.encode('cp1251').hex()}" for name in names)
    link.command(agents[0], "move_to", "k1", target_x=500.0, target_y=2.0, target_z=3.0)
    server.step(50, 40)
    assert sorted(round(player.x) for player in server.fake.players.values()) == [101, 500]


@LUAS
def test_a_name_that_looks_like_the_bytes_of_another_is_another_agent(lua: str) -> None:
    server = LuaServer(lua=lua)
    other = f"Bytes:{'Иван'.encode('cp1251').hex()}"
    server.player(0, as_bytes("Иван", "cp1251"))
    server.player(1, other)
    server.player(2, as_bytes("Олег", "utf-8"))
    agents = [row["agent"] for row in server.connect().ok("agents")["agents"]]
    assert len(set(agents)) == 3
    assert agents == sorted([other.lower(), f"bytes:{other.lower().encode().hex()}", "Олег"])

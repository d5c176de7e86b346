"""The server-side script: what a connector sees of it."""

from __future__ import annotations

import pytest
from lua_server import LuaServer

LUAS = pytest.mark.parametrize("lua", ["luajit21", "lua51"])


@LUAS
def test_a_player_can_be_perceived_and_moved(lua: str) -> None:
    server = LuaServer(lua=lua)
    server.player()
    link = server.connect()

    assert link.welcome["welcome"]["version"] == 1
    agents = link.ok("agents")["agents"]
    assert agents == [{"agent": "nerys", "name": "nerys", "connected": True, "dead": False, "embodiment": "avatar"}]
    facts = link.ok("perceive", agent="nerys")
    assert (facts["cell"], facts["x"], facts["entities"]) == ("Test House", 100, [])
    end = link.do("nerys", "move_to", target_x=500, target_y=300)
    assert end["state"] == "confirmed"
    assert end["sequence"] > facts["sequence"]

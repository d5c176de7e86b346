"""Passes for a seat: whoever has one plays as one agent, sees what that seat sees, and nothing else."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dashboard_kit import Served

from wsap_core.host import PluginHost
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.server.routes import passes
from wsap_nexus.server.turns import turn_of
from wsap_nexus.store.entities import EXTERNAL, EntryRequest, Policy

pytestmark = pytest.mark.every_database


def prepare(nexus: Nexus) -> None:
    """Register two agents that people play, and one that decides by itself."""
    with nexus.nexus_store.change() as tx:
        for name in ("tom", "zoe"):
            tx.register(name, name=name.title(), policies={"*": EXTERNAL})
        tx.register("ada", name="Ada", policies={"nexus": EXTERNAL, "*": Policy("crafter-survivor")})
        tx.register("ben", policies={"*": Policy("wanderer")})


@pytest.fixture
def served(databases: object, tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path, Settings(lobby_seconds=0.5), prepare, host=PluginHost.discovered) as nexus:
        yield nexus


def seat(served: Served, agent: str) -> str:
    """Make a pass for a seat as the owner, and return its token."""
    body = {"scope": "seat", "target": agent}
    status, _, answer = served.ask("/nexus/passes", method="POST", body=body, headers=served.authorized)
    assert status == 201, answer
    return str(json.loads(answer)["token"])


def ask(served: Served, token: str, path: str, method: str = "GET", body: object = None, **more: str) -> Any:
    headers = {"Authorization": f"Bearer {token}", **more}
    status, _, answer = served.ask(f"/nexus/pass{path}", method=method, body=body, headers=headers)
    return status, json.loads(answer)


def enter(served: Served, game: str, *agents: str) -> None:
    async def together() -> None:
        await asyncio.gather(*(served.nexus.enter(agent, game, EntryRequest()) for agent in agents))

    served.within(together())


def turn(served: Served, token: str) -> dict[str, Any]:
    status, found = ask(served, token, "/turn?wait=60")
    assert status == 200, found
    return dict(found)


def test_a_person_plays_crafter_with_nothing_but_the_pass(served: Served) -> None:
    token = seat(served, "tom")
    assert turn(served, token)["place"] == "nexus"
    enter(served, "crafter", "tom")
    found = turn(served, token)
    assert (found["title"], found["seconds_left"]) == ("Crafter", None)
    assert [block["kind"] for block in found["view"]["blocks"]] == ["image", "grid"]
    actions = {one["name"]: one for one in found["actions"]}
    assert (actions["move_left"]["key"], actions["noop"]["words"]) == ("left", "wait")
    table = actions["place_table"]
    assert not table["possible"]
    assert "wood" in table["reason"]
    key = {"Idempotency-Key": "a-1"}
    status, first = ask(served, token, "/act", "POST", {"name": "move_left"}, **key)
    assert (status, first["result"]["success"]) == (200, True)
    assert ask(served, token, "/act", "POST", {"name": "move_left"}, **key) == (200, first)  # the same step, told again
    assert turn(served, token)["seen"]["step"] == 1
    status, refused = ask(served, token, "/act", "POST", {"name": "place_table"})
    assert (status, refused["result"]["success"]) == (200, False)


def test_only_an_agent_that_somebody_outside_decides_for_has_a_seat_to_give(served: Served) -> None:
    for agent, status in (("tom", 201), ("ada", 201), ("ben", 400), ("nobody", 404)):
        body = {"scope": "seat", "target": agent}
        assert served.ask("/nexus/passes", method="POST", body=body, headers=served.authorized)[0] == status, agent
    talking = {"scope": "seat", "target": "tom", "talks": True}
    assert served.ask("/nexus/passes", method="POST", body=talking, headers=served.authorized)[0] == 400
    token = seat(served, "ada")
    enter(served, "crafter", "ada")  # where it decides by itself
    status, refused = ask(served, token, "/act", "POST", {"name": "noop"})
    assert (status, refused["error"]["code"]) == (409, "NOT_EXTERNAL")
    assert ask(served, token, "/turn")[1]["error"]["code"] == "NOT_EXTERNAL"


def test_who_may_watch_may_not_play_and_who_plays_sees_its_seat_alone(served: Served) -> None:
    body = {"scope": "agent", "target": "tom"}
    watching = json.loads(served.ask("/nexus/passes", method="POST", body=body, headers=served.authorized)[2])["token"]
    assert ask(served, watching, "/turn")[0] == 403
    assert ask(served, watching, "/act", "POST", {"name": "noop"})[0] == 403
    playing = seat(served, "tom")
    assert ask(served, playing, "/view")[0] == 403
    assert ask(served, playing, "/talk", "POST", {"text": "Hello."})[0] == 403
    assert ask(served, playing, "")[1]["name"] == "Tom"


def test_a_seat_that_is_taken_back_can_no_longer_be_played(served: Served) -> None:
    token = seat(served, "tom")
    enter(served, "crafter", "tom")
    assert turn(served, token)["place"] == "crafter"
    (made,) = served.read("/nexus/passes")["passes"]
    assert served.ask(f"/nexus/passes/{made['id']}", method="DELETE", headers=served.authorized)[0] == 200
    status, told = ask(served, token, "/act", "POST", {"name": "noop"})
    assert (status, told["error"]["message"]) == (401, "This pass was taken back; ask for a new one.")
    assert ask(served, token, "/turn")[0] == 401


def test_two_people_on_one_pass_play_one_seat_and_no_action_counts_twice(served: Served) -> None:
    token = seat(served, "tom")
    enter(served, "crafter", "tom")
    before = turn(served, token)["seen"]["step"]
    done = [
        ask(served, token, "/act", "POST", {"name": "noop"}, **{"Idempotency-Key": k}) for k in ("a", "b", "a", "b")
    ]
    assert [status for status, _ in done] == [200] * 4
    assert turn(served, token)["seen"]["step"] == before + 2


def test_the_numbers_and_texts_of_an_action_are_asked_for_in_their_kind(served: Served) -> None:
    token = seat(served, "tom")
    actions = {one["name"]: one for one in turn(served, token)["actions"]}
    entering = {p["name"]: p for p in actions["enter_game"]["parameters"]}
    assert entering["game"]["kind"] == "choice"
    assert "crafter" in [one["value"] for one in entering["game"]["choices"]]
    assert entering["steps"]["kind"] == "whole"
    assert entering["steps"]["optional"]
    assert entering["exit_when"]["kind"] == "text"


def test_things_are_chosen_by_the_names_that_a_person_knows_them_by(served: Served) -> None:
    pytest.importorskip("wsap_tes3mp", reason="needs Morrowind (wsap-tes3mp)")
    token = seat(served, "tom")
    enter(served, "morrowind", "tom")
    found = turn(served, token)
    asked = {(one["name"], p["name"]): p for one in found["actions"] for p in one["parameters"]}
    things = asked["move_to", "target_entity_id"]["choices"]
    assert things
    for thing in things:
        assert thing["words"].lower() in found["seen"]["text"].lower()
    assert not all(thing["words"].isdecimal() for thing in things)
    assert (asked["walk_to", "target_x"]["kind"], asked["wait", "duration_seconds"]["kind"]) == ("number", "whole")


@pytest.mark.slow
def test_nothing_that_another_seat_knows_is_in_the_bytes_of_a_town(served: Served) -> None:
    roles = pytest.importorskip("wsap_tossim.engine.roles.listed", reason="needs the town (wsap-tossim)").ROLES
    tokens = {agent: seat(served, agent) for agent in ("tom", "zoe")}
    enter(served, "tossim", *tokens)
    looked = 0
    for _ in range(4):
        for token in tokens.values():
            status, found = ask(served, token, "/turn?wait=5")
            if status != 200 or "15 of 15 alive" not in found["view"]["title"]:
                continue  # the roles of the dead are known to all
            looked += 1
            own = found["seen"]["status"]["role"]
            rules = {"description": "", "actions": [{**one, "parameters": []} for one in found["actions"]]}
            heard = json.dumps(found | rules).replace(own, "")  # which roles there are stands in the rules
            assert not [role for role in roles if role in heard], heard
            idle = next(one["name"] for one in found["actions"] if one["possible"] and not one["parameters"])
            ask(served, token, "/act", "POST", {"name": idle})
    assert looked >= 2


def act(served: Served, token: str, name: str, **more: str) -> tuple[int, dict[str, Any]]:
    """Take an action, of the turn `turn` if given."""
    status, told = ask(served, token, "/act?wait=60", "POST", {"name": name, **more})
    return status, dict(told)


def test_an_action_for_a_turn_that_is_over_is_taken_in_no_other_turn(served: Served) -> None:
    token = seat(served, "tom")
    enter(served, "crafter", "tom")
    first = turn(served, token)["turn"]
    assert ask(served, token, f"/turn?wait=0&after={first}")[0] == 202  # it is known
    key = {"Idempotency-Key": "one"}
    body = {"name": "noop", "turn": first}
    status, done = ask(served, token, "/act?wait=60", "POST", body, **key)
    assert status == 200
    late = act(served, token, "move_left", turn=first)
    assert (late[0], late[1]["error"]["code"]) == (409, "TURN_OVER")
    assert ask(served, token, "/act", "POST", body, **key) == (200, done)  # what was done is told again
    status, second = ask(served, token, f"/turn?wait=60&after={first}")
    assert (status, second["seen"]["step"], second["turn"] != first) == (200, 1, True)
    served.stop()
    served.start()
    again = turn(served, token)
    assert (again["seen"]["step"], again["turn"] != second["turn"]) == (1, True)
    assert act(served, token, "noop", turn=second["turn"])[1]["error"]["code"] == "TURN_OVER"
    assert act(served, token, "noop", turn=again["turn"])[0] == 200


def test_of_two_people_on_one_seat_only_the_first_acts_while_others_are_waited_for(served: Served) -> None:
    tom, zoe = seat(served, "tom"), seat(served, "zoe")
    enter(served, "matrix", "tom", "zoe")
    shown, theirs = turn(served, tom)["turn"], turn(served, zoe)["turn"]
    body = {"name": "cooperate", "turn": shown}
    assert ask(served, tom, "/act?wait=0", "POST", body, **{"Idempotency-Key": "a"})[0] == 202
    late = act(served, tom, "defect", turn=shown)
    assert (late[0], late[1]["error"]["code"]) == (409, "TURN_OVER")
    assert act(served, zoe, "cooperate", turn=theirs)[0] == 200
    status, done = ask(served, tom, "/act?wait=60", "POST", body, **{"Idempotency-Key": "a"})
    assert (status, "You chose cooperate, the other cooperate" in done["result"]["message"]) == (200, True)
    assert turn(served, tom)["seen"]["step"] == 1  # nothing of the late one is done in the next round


def test_who_waits_with_a_pass_that_is_taken_back_is_told_nothing_of_the_turn_that_comes(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    tom, zoe = seat(served, "tom"), seat(served, "zoe")
    enter(served, "matrix", "tom", "zoe")
    shown = turn(served, tom)["turn"]
    turn(served, zoe)
    told: dict[str, Any] = {}
    waits = threading.Event()

    async def waiting_turn(*asked: Any) -> Any:
        waits.set()
        return await turn_of(*asked)

    monkeypatch.setattr(passes, "turn_of", waiting_turn)

    def wait(name: str, path: str, *more: Any) -> threading.Thread:
        def run() -> None:
            told[name] = ask(served, tom, path, *more)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    waiting = [
        wait("act", "/act?wait=60", "POST", {"name": "cooperate", "turn": shown}),
        wait("turn", f"/turn?wait=60&after={shown}"),
    ]
    (made,) = [one for one in served.read("/nexus/passes")["passes"] if one["target"] == "tom"]
    assert waits.wait(60)
    end = time.monotonic() + 60
    while served.nexus.live.external["tom"].acting is None:
        assert time.monotonic() < end, "the action was not given"
    served.ask(f"/nexus/passes/{made['id']}", method="DELETE", headers=served.authorized)
    assert act(served, zoe, "defect")[0] == 200
    for thread in waiting:
        thread.join(120)
    for name in ("act", "turn"):
        status, answer = told[name]
        assert (status, answer["error"]["message"]) == (401, "This pass was taken back; ask for a new one."), name


def test_the_seat_of_an_agent_that_was_removed_is_no_seat(served: Served) -> None:
    token = seat(served, "zoe")
    assert turn(served, token)["place"] == "nexus"
    assert served.ask("/nexus/agents/zoe", method="DELETE", headers=served.authorized)[0] == 200
    for status, told in (ask(served, token, "/turn?wait=60"), act(served, token, "wait")):
        assert (status, told["error"]["message"]) == (400, "The agent 'zoe' was removed.")
    for path in ("turn", "observation", "action-space"):
        status, _, told = served.ask(f"/nexus/agents/zoe/{path}?wait=60", headers=served.authorized)
        assert (status, json.loads(told)["error"]["message"]) == (400, "The agent 'zoe' was removed."), path

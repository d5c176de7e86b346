"""Passes: what they open, for how long, and that they open nothing else."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dashboard_kit import Served

from wsap_core.host import PluginHost
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.store.entities import EntryRequest, Policy

pytestmark = pytest.mark.every_database

HOUR = 3600.0


def prepare(nexus: Nexus) -> None:
    """Register an agent that plays Crafter, and one of which nobody with a pass for the first may hear."""
    still = {"nexus": Policy("external")}
    with nexus.nexus_store.change() as tx:
        tx.register("ada", name="Ada", policies={**still, "*": Policy("crafter-survivor")}, persona="I fear water.")
        tx.register("ben", name="Benedict", policies={**still, "*": Policy("crafter-survivor")})


@pytest.fixture
def served(databases: object, tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path, Settings(pace=40.0), prepare, host=PluginHost.discovered) as nexus:
        yield nexus


def make(served: Served, **wanted: Any) -> dict[str, Any]:
    """Make a pass as the owner; by default for Ada."""
    body = {"scope": "agent", "target": "ada", **wanted}
    status, _, answer = served.ask("/nexus/passes", method="POST", body=body, headers=served.authorized)
    assert status == 201, answer
    return dict(json.loads(answer))


def ask(served: Served, token: str, path: str, method: str = "GET", body: object = None) -> tuple[int, bytes]:
    status, _, answer = served.ask(path, method=method, body=body, headers={"Authorization": f"Bearer {token}"})
    return status, answer


def enter(served: Served, agent: str) -> str:
    """Let an agent enter a world of its own, and return that once something happened to it there."""
    stay = served.within(served.nexus.enter(agent, "crafter", EntryRequest()))
    end = time.monotonic() + 120
    while agent not in {m["agent"] for m in served.read("/nexus/stage")["moments"] if m["kind"] == "achievement"}:
        assert time.monotonic() < end
    return stay.session.world_id


def test_a_pass_for_an_agent_shows_it_wherever_it_is(served: Served) -> None:
    token = make(served)["token"]
    assert json.loads(ask(served, token, "/nexus/pass/view")[1])["remark"] == "At home, between games."
    enter(served, "ada")
    told = json.loads(ask(served, token, "/nexus/pass")[1])
    assert (told["name"], told["title"], told["agents"], told["talks"]) == ("Ada", "Crafter", ["Ada"], False)
    assert json.loads(ask(served, token, "/nexus/pass/view")[1])["view"]["blocks"][0]["kind"] == "image"


def test_nothing_of_another_agent_or_private_to_this_one_is_in_the_bytes(served: Served) -> None:
    worlds = {agent: enter(served, agent) for agent in ("ada", "ben")}
    assert worlds["ada"] != worlds["ben"]
    done = {m["words"].rpartition(": ")[2] for m in served.read("/nexus/stage")["moments"] if m["kind"] != "entered"}
    secret = {"ben", "benedict", "fear water", "survivor", "reward", "plan", worlds["ben"], served.token, *done}
    for wanted in ({}, {"scope": "world", "target": worlds["ada"]}):
        token = make(served, **wanted)["token"]
        for path in ("/nexus/pass", "/nexus/pass/view", "/nexus/stage", f"/nexus/worlds/{worlds['ben']}/view"):
            _, sent = ask(served, token, path)
            shown = json.loads(sent)
            for block in (shown.get("view") or {}).get("blocks", ()):
                block.pop("base64", None)  # letters in a row by chance
            heard = json.dumps(shown).lower().replace("_", " ")
            assert not {word for word in secret if word.lower().replace("_", " ") in heard}, path


def test_a_pass_opens_no_other_route_of_the_api(served: Served) -> None:
    token = make(served, talks=True)["token"]
    routes = served.read("/openapi.json")["paths"]
    tried = 0
    for path, methods in routes.items():
        if path == "/nexus/pass" or path.startswith("/nexus/pass/"):
            continue
        for method in methods.keys() & {"get", "post", "put", "patch", "delete"}:
            there = path.replace("{agent_id}", "ada")
            body = None if method in ("get", "delete") else {}
            status, sent = ask(served, token, there.replace("{", "").replace("}", ""), method.upper(), body)
            assert (status, json.loads(sent)["error"]["code"]) == (403, "FORBIDDEN"), (method, path)
            tried += 1
    assert tried > 50
    for other in ("/nexus/passport", "/nexus/pass%2F..%2Foverview", "/openapi.json"):
        assert ask(served, token, other)[0] in (403, 404)


def test_a_pass_ends_when_it_expires_or_is_taken_back_and_says_so(served: Served) -> None:
    short, other = make(served, hours=1), make(served, hours=2)
    begun = served.nexus.nexus_store.wall_clock()
    assert HOUR - 60 < short["made"]["expires"] - begun <= HOUR
    served.nexus.nexus_store.wall_clock = lambda: short["made"]["expires"] - 1
    assert ask(served, short["token"], "/nexus/pass/view")[0] == 200
    served.nexus.nexus_store.wall_clock = lambda: short["made"]["expires"]
    status, sent = ask(served, short["token"], "/nexus/pass/view")
    assert (status, json.loads(sent)["error"]["message"]) == (401, "This pass has expired; ask for a new one.")
    assert [one["id"] for one in served.read("/nexus/passes")["passes"]] == [other["made"]["id"]]

    path = f"/nexus/passes/{other['made']['id']}"
    assert ask(served, other["token"], "/nexus/pass/view")[0] == 200
    status, _, sent = served.ask(path, method="DELETE", headers=served.authorized)
    assert (status, json.loads(sent)) == (200, {"passes": []})
    status, sent = ask(served, other["token"], "/nexus/pass/view")
    assert (status, json.loads(sent)["error"]["message"]) == (401, "This pass was taken back; ask for a new one.")
    assert served.ask(path, method="DELETE", headers=served.authorized)[0] == 404


def test_who_may_talk_says_one_short_thing_in_five_seconds(served: Served) -> None:
    watches, talks = make(served)["token"], make(served, talks=True)["token"]
    hello = {"text": "How are you?"}
    assert ask(served, watches, "/nexus/pass/talk", "POST", hello)[0] == 403
    status, sent = ask(served, talks, "/nexus/pass/talk", "POST", hello)
    assert (status, bool(json.loads(sent)["text"])) == (200, True)
    assert ask(served, talks, "/nexus/pass/talk", "POST", hello)[0] == 429
    assert ask(served, talks, "/nexus/pass/talk", "POST", {"text": "x" * 501})[0] == 400
    assert "How are you?" in str(served.read("/nexus/agents/ada/talk"))


def test_only_the_owner_makes_lists_and_takes_back_passes(served: Served) -> None:
    mine = make(served)
    _, _, sent = served.ask("/nexus/agents/ada/token", method="POST", body={}, headers=served.authorized)
    for token in (json.loads(sent)["token"], mine["token"]):
        assert ask(served, token, "/nexus/passes", "POST", {"scope": "agent", "target": "ada"})[0] == 403
        assert ask(served, token, "/nexus/passes")[0] == 403
        assert ask(served, token, f"/nexus/passes/{mine['made']['id']}", "DELETE")[0] == 403
        assert ask(served, token, "/nexus/key", "POST", {})[0] == 403
    assert served.ask("/nexus/passes")[0] == 401
    assert served.ask("/nexus/pass")[0] == 401
    assert ask(served, served.token, "/nexus/pass")[0] == 401  # the owner's token is no pass


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"target": "nobody"}, 404),
        ({"scope": "world", "target": "nowhere"}, 404),
        ({"scope": "everything"}, 400),
        ({"hours": 0}, 400),
        ({"hours": 1e9}, 400),
        ({"page": "javascript:alert(1)"}, 400),
        ({"page": "http://here/#key=x"}, 400),
        ({"token": "mine"}, 400),
    ],
)
def test_a_pass_for_nothing_is_refused(served: Served, wanted: dict[str, Any], status: int) -> None:
    body = {"scope": "agent", "target": "ada", **wanted}
    assert served.ask("/nexus/passes", method="POST", body=body, headers=served.authorized)[0] == status


def test_the_address_comes_as_a_qr_code_and_the_database_has_only_the_hash(served: Served, tmp_path: Path) -> None:
    made = make(served, page="http://192.0.2.7:9998/")
    assert made["address"] == f"http://192.0.2.7:9998/#pass={made['token']}"
    head, _, picture = made["qr"].partition(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(picture).startswith(b"\x89PNG")
    assert made["token"] not in served.do(lambda: str(_rows(served.nexus)))
    assert made["made"]["id"] in served.do(lambda: str(_rows(served.nexus)))


def _rows(nexus: Nexus) -> list[Any]:
    with nexus.nexus_store.database.read() as connection:
        return [tuple(row) for row in connection.exec_driver_sql("SELECT * FROM pass")]


def test_a_new_key_unlocks_once_and_the_one_before_no_more(served: Served) -> None:
    old = served.key.fragment.removeprefix("#key=")
    status, _, sent = served.ask("/nexus/key", method="POST", body={}, headers=served.authorized)
    assert status == 200
    new = json.loads(sent)["fragment"].removeprefix("#key=")

    def unlock(key: str) -> tuple[int, bytes]:
        status, _, sent = served.ask("/unlock", method="POST", body={"key": key})
        return status, sent

    status, sent = unlock(old)
    assert (status, b"wsap nexus key" in sent) == (401, True)
    status, sent = unlock(new)
    assert (status, json.loads(sent)["token"]) == (200, served.token)
    assert unlock(new)[0] == 401

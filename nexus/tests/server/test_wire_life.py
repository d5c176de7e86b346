"""An agent that lives in the nexus over the wire: arrives, acts, enters worlds, leaves them, is never done twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from sqlalchemy import text
from warm import Process, begin_python
from wire_server import Served, problem, serving

from wsap_core.protocol import Action, ActionResult, PortableItem
from wsap_nexus.client import AsyncNexusClient, NexusClient, RefusedError
from wsap_nexus.hub.agents.place import NexusObservation
from wsap_nexus.store.events import OtherEvent
from wsap_nexus.store.nexus_store import Transaction

pytestmark = pytest.mark.every_database

GAME = """
import sys
from dataclasses import replace
from wsap_crafter.plugin import wsap_adapters
from wsap_nexus.worlds.remote.serve_world import serve_world
spec = replace(next(iter(wsap_adapters())), name="far-crafter", title="Far Crafter")
serve_world(spec, port=int(sys.argv[1]), token="t" * 20)
"""


@pytest.fixture(scope="module")
def served(databases: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("nexus")) as nexus:
        yield nexus


def test_a_known_id_is_the_agent_that_is_there(served: Served) -> None:
    with served.register("known", name="First", persona="Kind.") as known, served.client() as owner:
        again = owner.post("/nexus/agents", json={"id": "known", "name": "Second"})
        assert again.status_code == 200
        assert again.json()["agent"]["name"] == "First"
        assert "token" not in again.json()
        assert known.post("/nexus/agents", json={"id": "known"}).json()["agent"]["persona"] == "Kind."


def test_agents_are_listed_a_page_at_a_time(served: Served) -> None:
    with NexusClient(served.url, served.token) as owner:
        for number in range(5):
            owner.register(f"page-{number}")
        everybody = [agent.id for agent in owner.agents()]
        with served.client() as raw:
            page = raw.get("/nexus/agents", params={"limit": 2, "after": "page-0"}).json()
    assert everybody == sorted(everybody)
    assert [agent["id"] for agent in page["agents"]] == ["page-1", "page-2"]
    assert page["next"] == "page-2"


def test_who_an_agent_is_and_who_decides_for_it_can_be_changed(served: Served) -> None:
    with NexusClient(served.url, served.token) as owner:
        owner.register("changed")
        policies = {"*": {"agent": "external"}, "echo": {"agent": "random"}}
        agent = owner.change("changed", name="Changed", persona="Bold.", policies=policies)
        assert (agent.name, agent.persona, agent.policies["echo"].agent) == ("Changed", "Bold.", "random")
        with pytest.raises(RefusedError) as refused:
            owner.change("changed", policies={"*": {"agent": "nobody-of-that-name"}})
        assert refused.value.told == "UNKNOWN_NAME"
        assert owner.agent("changed").agent.policies["*"].external


@pytest.mark.slow
def test_an_agent_lives_through_the_client_from_the_nexus_into_a_world_and_straight_on(served: Served) -> None:
    with NexusClient(served.url, served.token) as owner:
        token = owner.register("alive").token
    with NexusClient(served.url, token) as alive:
        seen = alive.observation("alive")
        assert isinstance(seen.observation, NexusObservation)
        assert seen.place == "nexus"
        assert "enter_game" in alive.action_space("alive").names
        arrived = alive.enter("alive", "crafter", goals=["look around"])
        assert arrived.avatar is not None
        assert arrived.avatar.bound_agent == "alive"
        assert arrived.observation is not None
        assert "survival" in alive.description("alive")
        result = alive.act("alive", Action("move_left"))
        assert isinstance(result, ActionResult)
        refused = alive.act("alive", Action("no_such_action"))
        assert not refused.success
        assert [body.avatar_id for body in alive.avatars(arrived.session.id)] == [arrived.session.avatar_id]
        view = alive.view(arrived.session.id)
        assert view is not None
        left = alive.leave("alive", destination="echo")
        assert (left.session.game, left.session.reason) == ("crafter", "jack_out")
        assert left.entered is not None
        assert left.entered.session.game == "echo"
        assert alive.observation("alive").place == "echo"
        back = alive.leave("alive")
        assert isinstance(back.observation, NexusObservation)
        assert [s.game for s in alive.agent("alive").sessions] == ["echo", "crafter"]


def test_the_client_sees_what_the_page_shows(served: Served) -> None:
    with NexusClient(served.url, served.token) as owner, NexusClient(served.url) as anybody:
        owner.register("shown", name="Shown")
        arrived = owner.enter("shown", "echo")
        owner.act("shown", Action("wait"))
        world, run = arrived.session.world_id, arrived.session.run_id
        assert world in {card["id"] for card in owner.overview()["worlds"]}
        assert world in {row["id"] for row in anybody.worlds()}
        assert [stay["agent"] for stay in anybody.world(world)["stays"]] == ["shown"]
        assert owner.now("shown")["observation"]["step"] == 1
        owner.recall("shown")
        left = next(event for event in owner.events(after=0, kinds=("left",)) if event.body["run"] == run)
        assert next(anybody.runs("echo"))["id"] == run
        assert anybody.run(run)["steps"] == 1
        (first,) = owner.steps(run)
        assert owner.step(run, first["seq"])["after"]["step"] == 1
        assert [session.run_id for session in anybody.sessions("shown")] == [run]
        assert owner.memories("shown")["core"] == []
        (newest,) = owner.log(agent="shown", kinds=("left",), limit=1)
        assert newest.seq == left.seq
        assert newest.sentence.startswith("Shown left echo after 1 decision")
        assert newest.sentence == next(owner.events(after=newest.seq - 1, sentences=True)).sentence
        for private in (lambda: anybody.steps(run), lambda: anybody.memories("shown"), lambda: anybody.recall("shown")):
            with pytest.raises(RefusedError) as refused:
                private()
            assert refused.value.told == "UNAUTHORIZED"
        pulse = next(event for event in owner.events(also=("pulse",)) if event.kind == "pulse")
        assert pulse.body["decisions"] >= 1


def test_the_client_says_how_one_wants_to_begin(served: Served) -> None:
    with NexusClient(served.url, served.token) as owner:
        token = owner.register("choosy").token
    with NexusClient(served.url, token) as choosy:
        for only_in_living_worlds in ({"world": "glade"}, {"seat": "rose"}):
            with pytest.raises(RefusedError, match="no worlds that live"):
                choosy.enter("choosy", "crafter", **only_in_living_worlds)
        for term, values in (("spawn", "random"), ("loadout", "lockpick"), ("difficulty", "hard")):
            with pytest.raises(RefusedError, match=rf"Crafter has no {term}={values}; it takes no {term}"):
                choosy.enter("choosy", "crafter", **{term: values})
        with pytest.raises(RefusedError, match="MiniGrid has no spawn=challenging; it takes spawn=safe or random"):
            choosy.enter("choosy", "minigrid", spawn="challenging")
        assert {game.id: game for game in choosy.games()}["minigrid"].terms["loadout"] == ("lockpick",)
        told = choosy.act("choosy", Action("game_details", {"game": "minigrid"})).message
        assert "You may enter it with difficulty=easy or hard." in told
        arrived = choosy.enter("choosy", "minigrid", spawn="random", difficulty="hard", loadout="lockpick", steps=9)
        terms = arrived.session.terms
        assert (terms.spawn, terms.difficulty, terms.loadout, terms.steps) == ("random", "hard", "lockpick", 9)
        assert "level 'blocked'" in arrived.observation.location.description
        assert arrived.observation.inventory["lockpick"] == 1
        choosy.leave("choosy")
        with pytest.raises(RefusedError, match="spawn=random is for a new avatar"):
            choosy.enter("choosy", "minigrid", spawn="random")
        assert choosy.enter("choosy", "minigrid", spawn="random", avatar="new").session.terms.spawn == "random"


def test_the_same_key_acts_once_and_answers_the_same(served: Served) -> None:
    with served.register("once") as once:
        bridge = enter(once, "once", "echo")
        key = {"Idempotency-Key": "k-1"}
        first = once.post(f"{bridge}/act", json={"name": "noop"}, headers=key)
        steps = (
            once.get("/nexus/agents/once").json()["sessions"][0]["id"],
            served.nexus.live.sessions["once"].stats.steps,
        )
        second = once.post(f"{bridge}/act", json={"name": "noop"}, headers=key)
        assert second.text == first.text
        assert second.headers["idempotent-replayed"] == "true"
        assert served.nexus.live.sessions["once"].stats.steps == steps[1]
        other = once.post(f"{bridge}/act", json={"name": "wait"}, headers=key)
        assert problem(other) == (422, "IDEMPOTENCY_KEY_REUSED")
        bad = once.post(f"{bridge}/act", json={"name": "noop"}, headers={"Idempotency-Key": "a b"})
        assert problem(bad) == (400, "VALIDATION_ERROR")


def test_whoever_was_told_the_result_may_act_again_before_there_is_something_to_decide(served: Served) -> None:
    async def pause(agent_id: str) -> None:
        served.nexus.pause(agent_id)  # its loop stops between the result and the next decision

    async def resume(agent_id: str) -> None:
        served.nexus.resume(agent_id)

    with served.register("quick") as quick:
        act = f"{enter(quick, 'quick', 'echo')}/act"
        served.in_loop(pause("quick"))
        key = {"Idempotency-Key": "second"}
        assert quick.post(act, json={"name": "noop"}).status_code == 200
        assert quick.post(act, json={"name": "wait"}, headers=key, params={"wait": 0}).status_code == 202
        assert problem(quick.post(act, json={"name": "noop"})) == (409, "ACTION_PENDING")
        served.in_loop(resume("quick"))
        again = quick.post(act, json={"name": "wait"}, headers=key, params={"wait": 60})
        assert (again.status_code, served.nexus.live.sessions["quick"].stats.steps) == (200, 2)


def test_keys_of_two_agents_are_two_keys(served: Served) -> None:
    with served.register("key-one") as one, served.register("key-two") as two:
        key = {"Idempotency-Key": "shared"}
        for client, agent in ((one, "key-one"), (two, "key-two")):
            answer = client.post(f"/nexus/agents/{agent}/act", json={"name": "review_self"}, headers=key)
            assert agent in answer.json()["result"]["message"]


@pytest.mark.slow
def test_what_was_done_before_a_restart_is_answered_after_it(tmp_path: Path) -> None:
    key = {"Idempotency-Key": "kept"}
    with serving(tmp_path) as first, first.register("eve") as eve:
        token = eve.headers["authorization"].split()[1]
        entered = eve.post("/nexus/transit/enter", json={"agent_id": "eve", "game": "crafter"}, headers=key)
        path = urlsplit(entered.json()["bridge_url"]).path
        acted = eve.post(f"{path}/act", json={"name": "move_left"}, headers={"Idempotency-Key": "kept-2"})
        assert (entered.status_code, acted.status_code) == (201, 200)
    with serving(tmp_path) as second, second.client(token) as eve:
        again = eve.post("/nexus/transit/enter", json={"agent_id": "eve", "game": "crafter"}, headers=key)
        assert again.text == entered.text
        assert eve.get("/nexus/agents/eve/observation").json()["place"] == "crafter"
        repeated = eve.post(f"{path}/act", json={"name": "move_left"}, headers={"Idempotency-Key": "kept-2"})
        assert repeated.text == acted.text
        assert second.nexus.live.sessions["eve"].stats.steps == 1


@pytest.mark.slow
def test_what_was_cut_off_before_its_answer_was_kept_is_found_in_the_log(tmp_path: Path) -> None:
    key = {"Idempotency-Key": "cut"}
    with serving(tmp_path) as first, first.register("eve") as eve:
        token = eve.headers["authorization"].split()[1]
        entered = eve.post("/nexus/transit/enter", json={"agent_id": "eve", "game": "crafter"}, headers=key)
        path = urlsplit(entered.json()["bridge_url"]).path
        acted = eve.post(f"{path}/act", json={"name": "move_left"}, headers=key | {"Idempotency-Key": "cut-2"})
        run = first.nexus.live.sessions["eve"].session.run_id
        first.in_loop(forget_answers(first, run))
    with serving(tmp_path) as second, second.client(token) as eve:
        assert eve.get("/nexus/agents/eve/observation").json()["place"] == "crafter"
        again = eve.post("/nexus/transit/enter", json={"agent_id": "eve", "game": "crafter"}, headers=key)
        assert again.json()["session"]["id"] == entered.json()["session"]["id"]
        repeated = eve.post(f"{path}/act", json={"name": "move_left"}, headers={"Idempotency-Key": "cut-2"})
        assert repeated.json()["result"]["observation"] == acted.json()["result"]["observation"]
        assert repeated.json()["result"]["message"] == acted.json()["result"]["message"]
        assert second.nexus.live.sessions["eve"].stats.steps == 1


async def forget_answers(served: Served, run: str) -> None:
    """Leave the table of answers as it is when the process ends between the deed and its answer."""
    with served.nexus.nexus_store.change() as tx:
        rows = tx.connection.exec_driver_sql("SELECT key, body FROM answer").all()
        for row in rows:
            intent = {"last": None} if row.key == "cut" else {"run": run, "seat": "eve", "step": 0}
            change = text("UPDATE answer SET status = 0, body = :body WHERE key = :key")
            tx.connection.execute(change, {"body": json.dumps(intent), "key": row.key})


def test_events_are_resumed_where_the_stream_broke_and_filtered(served: Served) -> None:
    with served.register("heard") as heard, served.client() as owner:
        heard.post("/nexus/agents/heard/messages", json={"content": "hello"})
        bridge = enter(heard, "heard", "echo")
        heard.post(f"{bridge}/jack-out", json={})
        last = owner.get("/nexus").json()["last_event"]
        everything = stream(owner, after=0, until=last)
        numbers = [event["seq"] for event in everything]
        assert numbers == list(range(1, last + 1))
        middle = numbers[len(numbers) // 2]
        resumed = stream(owner, {"Last-Event-ID": str(middle)}, until=last)
        assert resumed == everything[len(numbers) // 2 + 1 :]
        own = stream(owner, after=0, until=last, agent="heard", kind=["entered", "left"])
        assert [event["kind"] for event in own] == ["entered", "left"]


@pytest.mark.slow
def test_events_that_are_no_longer_in_memory_are_read_from_the_log(served: Served) -> None:
    from wsap_nexus.server.routes.events import Feed

    async def read() -> tuple[list[int], list[int]]:
        feed = Feed(served.nexus.nexus_store, served.nexus.thoughts)
        with served.nexus.nexus_store.change() as tx:
            for number in range(3000):
                tx.note(OtherEvent(kind="noise", data={"number": number}))
        told: list[int] = []
        at = 0
        while lines := feed.after(at)[0]:
            at = lines[-1].seq
            told += [line.seq for line in lines]
        return told, [len(feed._lines)]

    told, (held,) = served.in_loop(read())
    assert told == list(range(1, len(told) + 1))
    assert len(told) > 3000
    assert held == 2048


@pytest.mark.slow
def test_the_client_goes_on_listening_over_a_restart(tmp_path: Path) -> None:
    async def listen(client: AsyncNexusClient, count: int, after: int) -> list[int]:
        found = []
        async for event in client.events(after=after):
            found.append(event.seq)
            if len(found) == count:
                break
        return found

    async def main(url: str, token: str) -> list[int]:
        async with AsyncNexusClient(url, token) as client:
            await client.register("eve")
            return await listen(client, 2, 0)

    with serving(tmp_path) as first:
        assert asyncio.run(main(first.url, first.token)) == [1, 2]
    with serving(tmp_path) as second, NexusClient(second.url, second.token) as client:
        events = client.events(after=2)
        assert [next(events).seq for _ in range(2)] == [3, 4]


def test_a_number_beyond_the_newest_event_is_refused_with_the_newest(served: Served) -> None:
    with NexusClient(served.url, served.token) as client, served.client() as admin:
        client.register("eve")
        last = admin.get("/nexus").json()["last_event"]
        for more in (1, 10**9):
            with pytest.raises(RefusedError, match=f"the newest is .*after={last}") as refusal:
                next(client.events(after=last + more))
            assert refusal.value.told == "EVENTS_AHEAD"
        resumed = admin.get("/nexus/events", headers={"Last-Event-ID": str(last + 1)})
        assert problem(resumed) == (409, "EVENTS_AHEAD")
        events = client.events(after=last)
        client.register("eva")
        assert next(events).seq == last + 1


def test_a_client_that_is_called_stops_listening_and_is_closed_twice_without_harm(served: Served) -> None:
    with NexusClient(served.url, served.token) as client:
        client.register("eve")
        heard = client.events(after=0, agent="eve")
        assert next(heard).agent_id == "eve"
        heard.close()
        open_still = client.events(after=0)
        assert next(open_still).seq == 1
        assert "eve" in [agent.id for agent in client.agents()]
    client.close()
    open_still.close()
    with pytest.raises(RuntimeError):
        client.agent("eve")


def test_a_message_with_a_recipient_goes_to_it_alone(served: Served) -> None:
    with served.register("sender") as sender, served.register("meant") as meant, served.register("other") as other:
        path = "/nexus/agents/sender/messages"
        assert sender.post(path, json={"to": "meant", "content": "For you."}).json() == {"recipients": ["meant"]}
        (got,) = meant.get("/nexus/agents/meant/messages").json()["messages"]
        assert (got["message"]["content"], got["message"]["type"]) == ("For you.", "direct")
        assert other.get("/nexus/agents/other/messages").json() == {"messages": []}
        for kind in ("broadcast", "team"):
            refused = sender.post(path, json={"to": "meant", "kind": kind, "content": "For you."})
            assert problem(refused) == (400, "USAGE")
        assert other.get("/nexus/agents/other/messages").json() == {"messages": []}
        assert "other" in sender.post(path, json={"content": "For all."}).json()["recipients"]


def test_a_message_to_a_team_reaches_the_others_in_it(served: Served) -> None:
    with served.register("red") as red, served.register("crimson") as crimson, served.register("blue") as blue:
        path, said = "/nexus/agents/red/messages", {"kind": "team", "content": "To the gate."}
        assert problem(red.post(path, json=said)) == (400, "USAGE")
        with served.client() as admin:
            for agent_id in ("red", "crimson"):
                assert admin.patch(f"/nexus/agents/{agent_id}", json={"team": "reds"}).status_code == 200
            assert red.post(path, json=said).json() == {"recipients": ["crimson"]}
            (got,) = crimson.get("/nexus/agents/crimson/messages").json()["messages"]
            assert (got["message"]["content"], got["message"]["type"]) == ("To the gate.", "team")
            assert blue.get("/nexus/agents/blue/messages").json() == {"messages": []}
            assert admin.patch("/nexus/agents/red", json={"team": ""}).status_code == 200
        assert problem(red.post(path, json=said)) == (400, "USAGE")


def test_messages_wait_until_they_are_read(served: Served) -> None:
    with served.register("writer") as writer, served.register("reader") as reader:
        sent = writer.post(
            "/nexus/agents/writer/messages", json={"kind": "direct", "to": "reader", "content": "<b>hi</b>"}
        )
        assert sent.json() == {"recipients": ["reader"]}
        for _ in range(2):
            waiting = reader.get("/nexus/agents/reader/messages").json()["messages"]
            assert [m["message"]["content"] for m in waiting] == ["<b>hi</b>"]
        left = reader.post("/nexus/agents/reader/messages/read", json={"ids": [waiting[0]["id"]]})
        assert left.json() == {"messages": []}


@pytest.mark.slow
def test_others_do_not_wait_for_ever_for_a_client_that_vanished(tmp_path: Path) -> None:
    with serving(tmp_path) as served, served.register("here") as here, served.register("gone") as gone:
        served.nexus.catalog.known["matrix"] = replace(served.nexus.catalog.spec("matrix"), deadline=5.0)
        with ThreadPoolExecutor(2) as both:
            paths = list(both.map(lambda c: enter(c[0], c[1], "matrix"), ((here, "here"), (gone, "gone"))))
        seen = here.get(f"{paths[0]}/observation").json()["observation"]
        action = next(a["name"] for a in seen["available_actions"] or [{"name": "cooperate"}])
        result = here.post(f"{paths[0]}/act", json={"name": action}, headers={"Idempotency-Key": "1"})
        assert result.status_code == 200, result.text
        assert result.json()["result"]["success"] is True


# --- a game in another process --------------------------------------------------------------------


@pytest.fixture
def far(tmp_path: Path) -> Iterator[tuple[str, Process]]:
    with game_process(0) as (url, process):
        yield url, process


@contextmanager
def game_process(port: int) -> Iterator[tuple[str, Process]]:
    process = begin_python(GAME, str(port))
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1], process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_a_game_in_another_process_is_entered_played_and_left_with_items(
    tmp_path: Path, far: tuple[str, Process]
) -> None:
    url, _ = far
    with serving(tmp_path / "nexus") as served, served.client() as owner, served.register("eve") as eve:
        assert problem(owner.post("/nexus/games", json={"base_url": "http://192.0.2.1:80"})) == (400, "GAME_ADDRESS")
        assert problem(owner.post("/nexus/games", json={"base_url": url})) == (502, "WORLD_FAILED")
        assert problem(eve.post("/nexus/games", json={"base_url": url})) == (403, "FORBIDDEN")
        joined = owner.post("/nexus/games", json={"base_url": url, "token": "t" * 20})
        assert joined.status_code == 201
        assert joined.json()["game"]["transit_compatible"] is True
        give(served, "eve")
        arrived = eve.post("/nexus/transit/enter", json={"agent_id": "eve", "game": "far-crafter"}).json()
        assert arrived["receipt"]["admitted"] == ["sword-1"]
        assert where(served, "eve") == {"sword-1": "world"}
        for _ in range(3):
            assert eve.post(f"{arrived['bridge_url']}/act", json={"name": "move_left"}).status_code == 200
        left = eve.post(f"{arrived['bridge_url']}/jack-out", json={}).json()
        assert [item["item_id"] for item in left["package"]["items"]] == ["sword-1"]
        assert where(served, "eve") == {"sword-1": "escrow"}
        woken = eve.post("/nexus/transit/enter", json={"agent_id": "eve", "game": "far-crafter"}).json()
        assert woken["session"]["world_id"] == arrived["session"]["world_id"]
        eve.post(f"{woken['bridge_url']}/jack-out", json={})
    with serving(tmp_path / "nexus") as again, again.client("") as anybody:
        assert "far-crafter" in [game["id"] for game in anybody.get("/nexus/games").json()["games"]]


@pytest.mark.slow
def test_a_move_that_was_cut_off_is_asked_about_by_its_id_and_settled_once(
    tmp_path: Path, far: tuple[str, Process]
) -> None:
    url, process = far
    port = urlsplit(url).port or 0
    folder = tmp_path / "nexus"
    with serving(folder) as served, served.client() as owner:
        owner.post("/nexus/games", json={"base_url": url, "token": "t" * 20})
        served.register("eve").close()
        give(served, "eve")
        served.in_loop(cut_off(served))
    process.kill()
    process.wait()
    with serving(folder) as served:
        # Nobody can be asked: the item is neither in the world nor back, but still on its way.
        assert served.in_loop(served.nexus.remote_games.settle()) == 1
        assert where(served, "eve") == {"sword-1": "transfer"}
        assert states(served) == ["unknown"]
        with game_process(port):
            assert served.in_loop(served.nexus.remote_games.settle()) == 0
            assert where(served, "eve") == {"sword-1": "escrow"}
            assert states(served) == ["cancelled"]
            assert served.in_loop(served.nexus.remote_games.settle()) == 0


@pytest.mark.slow
def test_what_a_game_had_let_in_before_the_cut_comes_back_from_it(tmp_path: Path, far: tuple[str, Process]) -> None:
    url, _ = far
    folder = tmp_path / "nexus"
    with serving(folder) as served, served.client() as owner:
        owner.post("/nexus/games", json={"base_url": url, "token": "t" * 20})
        served.register("eve").close()
        give(served, "eve")
        transfer = served.in_loop(cut_off(served, admitted=True))
    with serving(folder) as served:
        served.in_loop(served.nexus.remote_games.settle())
        assert where(served, "eve") == {"sword-1": "escrow"}
        assert states(served) == ["cancelled"]
        with httpx2.Client(headers={"Authorization": f"Bearer {'t' * 20}"}) as game:
            late = game.post(f"{url}/worlds/w/avatars/avatar-1/admit", json={"entry": entry(transfer)})
            assert problem(late)[0] == 400
            assert "withdrawn" in late.json()["error"]["message"]


async def cut_off(served: Served, *, admitted: bool = False) -> str:
    """Prepare a way into the game elsewhere, and leave it there, as a killed process does."""
    from wsap_nexus.hub.transit.entering import prepare_enter
    from wsap_nexus.store.entities import EntryRequest

    nexus = served.nexus
    with nexus.nexus_store.change() as tx:
        way = prepare_enter(tx, "eve", nexus.remote_games.specs()["far-crafter"], EntryRequest())
    if admitted:
        client = nexus.remote_games.specs()["far-crafter"].factory
        await client.ask("PUT", "/worlds/w", {"world_seed": 1, "seed": 1, "options": {}})
        made = await client.ask("POST", "/worlds/w/seats/eve/avatars", {"wanted": {}})
        avatar = made["avatar"]["avatar_id"]
        told = await client.ask("POST", f"/worlds/w/avatars/{avatar}/admit", {"entry": entry(way.transfer_id)})
        assert told["receipt"]["admitted"] == ["sword-1"]
    return way.transfer_id


def entry(transfer: str) -> dict[str, object]:
    return {"transfer_id": transfer, "agent_id": "eve", "items": [SWORD_JSON]}


SWORD = PortableItem("sword-1", "stone sword", "weapon", 2, origin="crafter", hints={"crafter": "stone_sword"})
SWORD_JSON = {
    "item_id": "sword-1", "name": "stone sword", "category": "weapon", "tier": 2, "origin": "crafter",
    "hints": {"crafter": "stone_sword"},
}  # fmt: skip


def give(served: Served, agent: str) -> None:
    async def mint() -> None:
        with served.nexus.nexus_store.change() as tx:
            tx.mint_item(agent, SWORD, game="crafter", session="before")

    served.in_loop(mint())


def where(served: Served, agent: str) -> dict[str, str]:
    def read(tx: Transaction) -> dict[str, str]:
        return {record.item.item_id: record.place for record in tx.items(agent)}

    with served.nexus.nexus_store.look() as tx:
        return read(tx)


def states(served: Served) -> list[str]:
    with served.nexus.nexus_store.look() as tx:
        return [row.state for row in tx.transfers("prepared", "unknown", "cancelled", "done")]


def enter(client: httpx2.Client, agent: str, game: str) -> str:
    answer = client.post("/nexus/transit/enter", json={"agent_id": agent, "game": game})
    assert answer.status_code == 201, answer.text
    return urlsplit(answer.json()["bridge_url"]).path


def stream(client: httpx2.Client, headers: dict[str, str] | None = None, **params: object) -> list[dict[str, object]]:
    with client.stream("GET", "/nexus/events", params=params, headers=headers or {}) as response:
        return [json.loads(part.data) for part in httpx2.EventSource(response) if part.data]

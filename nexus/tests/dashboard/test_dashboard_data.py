"""What the dashboard is told, and what it may do, over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dashboard_kit import EVIL, HALL, Hall, Served, host
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core.seams.context import Context
from wsap_nexus import dashboard
from wsap_nexus.api import play
from wsap_nexus.dashboard.key import OneTimeKey
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import Store, open_store
from wsap_nexus.server.routes.recorded import curves
from wsap_nexus.server.watched.frames import Frames
from wsap_nexus.store.entities import EntryRequest, Policy
from wsap_nexus.store.events import OtherEvent
from wsap_nexus.store.events.agents import AchievementEarned
from wsap_nexus.store.records import NewRun
from wsap_nexus.store.step_index import STRIDE, StepIndexes

pytestmark = pytest.mark.every_database


def prepare(nexus: Nexus) -> None:
    """Register two agents that stay where they are put."""
    with nexus.nexus_store.change() as tx:
        for agent_id in ("ann", "ben"):
            tx.register(agent_id, name=EVIL[:70], policies={"nexus": Policy("external"), "*": Policy("steady")})
        mind = Policy("llm", {"model": "talker/it", "memory": "fulltext"})
        tx.register("ned", name="Ned", policies={"nexus": Policy("external"), "*": mind})


@pytest.fixture(scope="module")
def served(databases: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("data"), prepare=prepare) as nexus:
        yield nexus


def send(served: Served, agent: str, game: str, steps: int) -> str:
    """Send an agent into a game for some steps, wait until it is back, and return the run."""

    async def go() -> str:
        stay = await served.nexus.enter(agent, game, EntryRequest(steps=steps))
        await served.nexus.await_exit(agent)
        return stay.session.run_id

    return served.within(go())


# --- who may look, and who may do ---------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/assets/app.js", "/nexus/overview"])
def test_everything_that_a_browser_shows_forbids_scripts_and_frames_of_others(served: Served, path: str) -> None:
    status, headers, _ = served.ask(path)
    assert status == 200
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


def test_a_page_whose_name_was_made_to_point_here_reads_nothing(served: Served) -> None:
    status, _, body = served.ask("/nexus/overview", headers={"Host": "evil.example:9998"})
    assert status in (401, 421)
    assert b"ann" not in body


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/nexus/agents/ann/pause", {}),
        ("POST", "/nexus/agents/ann/resume", {}),
        ("POST", "/nexus/agents/ann/step", {}),
        ("POST", "/nexus/agents/ann/recall", {}),
        ("POST", "/nexus/transit/enter", {"agent_id": "ann", "game": "echo"}),
        ("POST", "/nexus/agents/ann/talk", {"text": "hello"}),
        ("POST", "/nexus/agents/ann/settle", {"outcome": "returned", "transfer": "transfer-1"}),
        ("PATCH", "/nexus/agents/ann", {"persona": "someone else"}),
    ],
)
def test_doing_needs_the_token(served: Served, method: str, path: str, body: object) -> None:
    assert served.ask(path, method=method, body=body)[0] == 401
    wrong = {"Authorization": "Bearer " + "x" * 43}
    assert served.ask(path, method=method, body=body, headers=wrong)[0] == 401
    assert served.read("/nexus/agents/ann")["agent"]["persona"] == ""


def test_a_form_of_another_page_changes_nothing(served: Served) -> None:
    request = urllib.request.Request(
        served.url + "nexus/agents/ann/pause",
        b"a=b",
        {"Content-Type": "application/x-www-form-urlencoded", "Authorization": f"Bearer {served.token}"},
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=300)
    assert refused.value.code == 415
    refused.value.close()


def test_an_agents_own_token_opens_nothing_of_others(served: Served) -> None:
    from wsap_nexus.http.access.auth import Tokens

    token = served.do(lambda: Tokens(served.nexus.nexus_store, served.token).issue("ann"))
    own = {"Authorization": f"Bearer {token}"}
    assert "steps" not in json.loads(served.ask("/nexus/agents", headers=own)[2])["agents"][0]
    assert served.ask("/nexus/agents/ben/memories", headers=own)[0] == 403
    assert served.ask("/nexus/runs/echo/steps", headers=own)[0] == 403
    assert served.ask("/nexus/agents/ben/recall", method="POST", body={}, headers=own)[0] == 403


def test_the_printed_key_opens_once(served: Served) -> None:
    key = served.key.fragment.removeprefix("#key=")
    assert served.ask("/unlock", method="POST", body={"key": "not it"})[0] == 401
    status, _, body = served.ask("/unlock", method="POST", body={"key": key})
    assert (status, json.loads(body)["token"]) == (200, served.token)
    assert served.ask("/unlock", method="POST", body={"key": key})[0] == 401
    assert served.key.fragment == ""


def test_a_key_is_not_used_up_by_a_wrong_one() -> None:
    key = OneTimeKey()
    right = key.fragment.removeprefix("#key=")
    assert not key.use("wrong")
    assert not key.use("")
    assert not key.use("ä")
    assert key.use(right)
    assert not key.use(right)


# --- what is told -------------------------------------------------------------------------------------


def test_a_stay_can_be_gone_through_step_by_step(served: Served) -> None:
    run = send(served, "ann", "echo", 12)
    about = served.read(f"/nexus/runs/{run}")
    assert about["steps"] == 12
    assert [player["id"] for player in about["players"]] == ["ann"]
    rows = served.read(f"/nexus/runs/{run}/steps?limit=5")
    assert [row["number"] for row in rows["steps"]] == [1, 2, 3, 4, 5]
    after = served.read(f"/nexus/runs/{run}/steps?limit=200&after={rows['steps'][-1]['seq']}")
    assert [row["number"] for row in after["steps"]] == list(range(6, 13))
    assert after["first"] == 5
    before = served.read(f"/nexus/runs/{run}/steps?limit=3&before={after['steps'][0]['seq']}")
    assert [row["number"] for row in before["steps"]] == [3, 4, 5]
    tenth = served.read(f"/nexus/runs/{run}/steps?limit=1&position=9")["steps"][0]
    whole = served.read(f"/nexus/runs/{run}/steps/{tenth['seq']}")
    assert whole["position"] == 9
    assert whole["seen"]["status"]["steps left"] == 11
    assert whole["after"]["status"]["steps left"] == 10
    assert served.read(f"/nexus/runs/{run}/steps?position=12")["steps"] == []


def test_the_curves_of_a_run_end_where_its_steps_do_however_few_points_they_have(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = send(served, "ann", "hall", 13)  # 0.5 for each step
    whole = served.read(f"/nexus/runs/{run}/curve")
    assert whole["steps"] == 13
    reward, health = whole["curves"]
    assert (reward["name"], reward["kind"], health["name"], health["kind"]) == ("reward", "reward", "health", "meter")
    assert reward["low"] == reward["high"] == [0.5 * step for step in range(1, 14)]
    assert health["low"] == health["high"] == [7.0] * 13
    short = served.read(f"/nexus/runs/{run}/curve?points=3")["curves"][0]
    assert (short["low"], short["high"]) == ([0.5, 3.0, 5.0], [2.5, 4.5, 6.5])  # of 5, 4 and 4 steps
    monkeypatch.setattr(curves, "MOST_STEPS", 12)
    long = served.read(f"/nexus/runs/{run}/curve")
    assert (long["curves"], long["remark"]) == ([], "It has more than 12 steps, so no curves are drawn.")


def test_with_several_seats_the_curves_are_their_rewards(served: Served) -> None:
    path = str(served.folder / "wsap.db")
    run = play("matrix", "random", seed=5, steps=4, database=path).run
    told = served.read(f"/nexus/runs/{run}/curve")["curves"]
    steps = served.read(f"/nexus/runs/{run}/steps?limit=200")["steps"]
    for one, seat in zip(told, ("column", "row"), strict=True):
        assert (one["name"], one["kind"]) == (f"reward of {seat}", "reward")
        assert one["high"][-1] == sum(step["reward"] for step in steps if step["seat"] == seat)


def test_what_an_agent_decided_on_is_what_the_step_before_showed(served: Served) -> None:
    run = send(served, "ann", "hall", 4)
    rows = served.read(f"/nexus/runs/{run}/steps")["steps"]
    for number, row in enumerate(rows):
        whole = served.read(f"/nexus/runs/{run}/steps/{row['seq']}")
        assert (whole["seen"]["step"], whole["after"]["step"]) == (number, number + 1)


@pytest.mark.parametrize(
    "path",
    [
        "runs/nothing", "runs/nothing/steps", "agents/nobody", "agents/nobody/now", "agents/nobody/memories",
        "worlds/nowhere", "worlds/nowhere/view",
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_in_the_one_form(served: Served, path: str) -> None:
    status, headers, body = served.ask(f"/nexus/{path}", headers=served.authorized)
    assert status == 404
    assert headers["content-type"].startswith("application/json")
    assert json.loads(body)["error"]["code"]


@pytest.mark.parametrize("query", ["limit=0", "limit=100000", "before=-1", "after=x", "agent=" + "a" * 999])
def test_a_page_is_never_larger_than_it_may_be(served: Served, query: str) -> None:
    assert served.ask(f"/nexus/log?{query}")[0] == 400


def test_pages_of_the_log_hold_every_event_once_whichever_way_they_are_turned(served: Served) -> None:
    send(served, "ben", "echo", 2)
    with served.nexus.nexus_store.look() as tx:
        everything = [event.seq for event in tx.events(limit=100_000)]

    def page(query: str) -> list[int]:
        found = served.read(f"/nexus/log?limit=7&{query}")["events"]
        return [event["seq"] for event in found if event["seq"] <= everything[-1]]

    down: list[int] = []
    while part := page(f"before={down[-1] if down else everything[-1] + 1}"):
        down += part
    assert down == everything[::-1]
    up: list[int] = []
    while part := page(f"after={up[-1] if up else 0}"):
        up += part[::-1]
    assert up == everything


def test_what_has_not_changed_is_not_sent_again(served: Served) -> None:
    async def enter() -> str:
        return (await served.nexus.enter("ben", "hall", EntryRequest())).session.world_id

    world = served.within(enter())
    try:
        served.do(lambda: served.nexus.pause("ben"))
        path = f"/nexus/worlds/{world}/view"
        _, headers, body = served.ask(path)
        kinds = [block["kind"] for block in json.loads(body)["view"]["blocks"]]
        assert kinds == ["image", "text", "grid", "chat", "table", "text", "places"], "what is no PNG is words"
        status, _, again = served.ask(path, headers={"If-None-Match": headers["etag"]})
        assert (status, again) == (304, b"")
    finally:
        served.do(lambda: served.nexus.resume("ben"))
        served.within(served.nexus.exit("ben"))


def test_what_an_agent_remembers_says_where_it_comes_from(served: Served) -> None:
    run = send(served, "ned", "hall", 6)
    found = served.read("/nexus/agents/ned/memories")["in_mind"]
    assert {item["world"] for item in found} == {"Hall " + EVIL[: 80 - len("Hall ")]}
    assert sorted(item["step"] for item in found if item["kind"] == "event") == [0, 1, 2, 3, 4, 5]
    assert {item["run"] for item in found} == {"run 1"}
    about = served.read(f"/nexus/runs/{run}")
    assert [player["id"] for player in about["players"]] == ["ned"]


STREAM = "nexus/events?also=pulse&also=thinking&sentences=true"
"""What the page is told from."""


def events_from(served: Served, last: str | None, count: int) -> list[int]:
    """Return the numbers of the first events of a stream."""
    headers = served.authorized | ({} if last is None else {"Last-Event-ID": last})
    request = urllib.request.Request(served.url + STREAM, headers=headers)
    found: list[int] = []
    with urllib.request.urlopen(request, timeout=300) as answer:
        while len(found) < count:
            line = answer.readline().decode().rstrip("\n")
            if line.startswith("id: "):
                found.append(int(line[4:]))
    return found


def test_a_stream_goes_on_where_it_was_lost(served: Served) -> None:
    with served.nexus.nexus_store.change() as tx:
        numbers = [tx.note(OtherEvent(kind="test", agent_id="ann", data={"number": number})) for number in range(20)]
    first = events_from(served, str(numbers[0] - 1), 8)
    rest = events_from(served, str(first[-1]), 12)
    assert [n for n in first + rest if n in numbers] == (first + rest)
    assert first + rest == numbers


@pytest.mark.parametrize("last", ["\u00b2", "x", "-1", "9" * 30])
def test_a_stream_from_a_number_that_is_none_begins_now(served: Served, last: str) -> None:
    headers = {**served.authorized, "Last-Event-ID": last}
    with urllib.request.urlopen(urllib.request.Request(served.url + STREAM, headers=headers), timeout=300) as answer:
        assert answer.status == 200


def test_a_stream_of_the_page_tells_events_in_sentences(served: Served) -> None:
    with served.nexus.nexus_store.change() as tx:
        first = tx.note(OtherEvent(kind="test", agent_id="ned", data={}))
        tx.note(AchievementEarned(agent_id="ned", game="hall", name="light_fire"))
    headers = {**served.authorized, "Last-Event-ID": str(first - 1)}
    told: list[dict[str, Any]] = []
    with urllib.request.urlopen(urllib.request.Request(served.url + STREAM, headers=headers), timeout=300) as answer:
        while len(told) < 2:
            line = answer.readline().decode()
            event = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
            if event.get("seq", 0) >= first:
                told.append(event)
    assert told[1]["sentence"] == "Ned achieved in hall: light fire"
    assert told[1]["gain"] == {"lead": "Ned achieved in hall:", "key": "light_fire", "text": "light fire"}
    assert (told[0]["name"], told[0]["gain"]) == ("Ned", None)


# --- the parts ----------------------------------------------------------------------------------------


def test_a_world_is_drawn_when_somebody_looks_and_five_times_a_second_at_most(tmp_path: Path) -> None:
    halls: list[Hall] = []
    now = 0.0

    async def main() -> None:
        nonlocal now
        found = host()
        with open_store(str(tmp_path / "wsap.db")) as store:
            nexus = Nexus(found, store, Settings(pace=50.0))
            prepare(nexus)
            await nexus.start()
            frames = Frames(nexus, clock=lambda: now)
            try:
                stay = await nexus.enter("ann", "hall", EntryRequest())
                run = stay.session.run_id
                face: Any = nexus.live.ports[run]
                halls.append(face.world.adapter)
                assert halls[0].drawn == 0, "nobody has looked"
                first = await frames.of_run(run)
                now = 0.19
                assert await frames.of_run(run) is first
                assert halls[0].drawn == 1
                now = 0.2
                await frames.of_run(run)
                assert halls[0].drawn == 2
                await nexus.exit("ann")
                now = 1.0
                assert (await frames.of_run(run)).view is None, "nobody is there to look at"
            finally:
                await nexus.stop()

    asyncio.run(main())
    assert HALL.abilities


@pytest.mark.slow
def test_looking_at_crafter_does_not_change_what_happens_in_it(tmp_path: Path) -> None:
    pytest.importorskip("wsap_crafter", reason="needs the game Crafter (wsap-crafter)")

    async def play(folder: Path, *, watched: bool) -> tuple[str, int]:
        looked = 0
        with open_store(str(folder / "wsap.db")) as store:
            nexus = Nexus(host(), store, Settings(seed=5, snapshot_every=0))
            with nexus.nexus_store.change() as tx:
                tx.register("ann", policies={"nexus": Policy("external"), "*": Policy("crafter-survivor")})
            frames = Frames(nexus, clock=iter(range(10**6)).__next__)
            await nexus.start()
            try:
                stay = await nexus.enter("ann", "crafter", EntryRequest(steps=60))
                leaving = nexus.await_exit("ann")
                while not leaving.done():
                    if watched:
                        looked += (await frames.of_run(stay.session.run_id)).view is not None
                    await asyncio.sleep(0)
                store.writer.flush()
                summary = store.repository.get_run(stay.session.run_id).summary
                assert summary is not None
                return str(summary["trajectory_hash"]), looked
            finally:
                await nexus.stop()

    for name in ("alone", "watched"):
        (tmp_path / name).mkdir()
    alone, _ = asyncio.run(play(tmp_path / "alone", watched=False))
    watched, looked = asyncio.run(play(tmp_path / "watched", watched=True))
    assert looked > 5
    assert watched == alone


def logged(store: Store, kinds: list[bool]) -> str:
    """Record a run of which the events marked are steps; return its id."""
    run = store.repository.create_run(NewRun(game="echo", agent="random")).id
    for is_step in kinds:
        store.writer.append(run, "step" if is_step else "observation", "{}", seat="one", episode=0, step=0)
    # As a run records its totals now and then, with the number of its steps.
    store.writer.append(run, "totals", "{}", step=sum(kinds))
    store.writer.flush()
    return run


@settings(max_examples=25, deadline=None)
@given(parts=st.lists(st.lists(st.booleans(), max_size=3 * STRIDE), min_size=1, max_size=3), data=st.data())
@pytest.mark.slow
def test_any_step_is_found_by_its_position_while_a_run_grows(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[bool]], data: st.DataObject
) -> None:
    with open_store(str(tmp_path_factory.mktemp("index") / "wsap.db")) as store:
        run = logged(store, parts[0])
        indexes = StepIndexes(store.repository)
        kinds: list[bool] = [*parts[0], False]
        for part in [*parts[1:], []]:
            steps = [seq for seq, is_step in enumerate(kinds) if is_step]
            assert asyncio.run(indexes.of(run)).count == len(steps)
            for position in data.draw(st.lists(st.integers(0, len(steps) + 2), max_size=4)):
                wanted = steps[position] if position < len(steps) else None
                assert asyncio.run(indexes.seq_at(run, position)) == wanted
            for seq in data.draw(st.lists(st.integers(0, len(kinds) + 2), max_size=4)):
                assert asyncio.run(indexes.position_of(run, seq)) == sum(kinds[:seq])
            for is_step in part:
                store.writer.append(run, "step" if is_step else "call", "{}", seat="one", episode=0, step=0)
            store.writer.flush()
            kinds += part


def test_the_kit_is_as_evil_as_it_claims() -> None:
    assert "<script>" in EVIL
    assert EVIL in Hall(Context.create(0)).observe().to_text()


def test_the_page_asks_only_for_what_lies_below_it() -> None:
    """A reverse proxy may serve the page below a path, which an absolute address would leave."""
    for file in (Path(dashboard.__file__).parent / "assets").iterdir():
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"""(?:src|href|action)=["']/|(?:url|import|fetch)\(\s*["'`]/|from ["']/""", text), (
            file.name
        )


@pytest.mark.parametrize(
    "told",
    [
        '{"step":{"observation":{"status":{"health":NaN,"food":1e999,"drink":1e308}},"result":{"reward":NaN}}}',
        '{"step":{"observation":{"status":[1]},"result":{"reward":1e308}}}',
        '{"step":{"observation":null,"result":{"reward":"much"}}}',
        '{"step":[]}', "{}", "[]",
    ],
)  # fmt: skip
def test_recorded_steps_with_values_that_are_no_numbers_add_nothing_to_the_curves(served: Served, told: str) -> None:
    sound = '{"step":{"observation":{"status":{}},"result":{"reward":2.0}}}'

    def recorded() -> str:
        store = served.nexus.store
        run = store.repository.create_run(NewRun(game="echo", agent="random")).id
        for number, body in enumerate([sound, told, told, sound]):
            store.writer.append(run, "step", body, seat="one", episode=0, step=number)
        store.writer.flush()
        return run

    (reward,) = served.read(f"/nexus/runs/{served.do(recorded)}/curve")["curves"]
    assert (reward["kind"], reward["low"], reward["high"]) == ("reward", [2, 2, 2, 4], [2, 2, 2, 4])

"""The bridge over a real socket: every error of the seed's table, and what it does besides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from bridge_server import Served, command, serving
from click.testing import CliRunner
from scripted_engine import BODY, NOON, ScriptedEngine
from sqlalchemy import select

from wsap_check.hosts import ManualClock
from wsap_core.errors import StorageError
from wsap_nexus.http.listening import Address
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.cli.serve import serve
from wsap_tes3mp.engines.engine import Done, EngineView
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.log.records import COMMAND
from wsap_tes3mp.protocol.commands import CommandInput
from wsap_tes3mp.protocol.errors import SEED_CODES, BridgeError, CommandConflictError, StalePerceptionError

RETRY = {"BRIDGE_UNAVAILABLE", "PERCEPTION_TIMEOUT", "COMMAND_CONFLICT", "INTERNAL_ERROR"}
"""The seed's, section 7.2."""


async def forever() -> Done:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.fixture(scope="module")
def shared() -> Iterator[Served]:
    with serving("ada", "bob", deadline=0.05) as served:
        yield served


@pytest.fixture
def served(shared: Served) -> Iterator[Served]:
    """Give the bridge as new: an engine that is well, and nobody busy."""
    yield shared
    engine = shared.engine
    engine.boot_id, engine.ids, engine.body, engine.silent = "boot-1", ("ada", "bob"), BODY, False
    engine.then = engine.confirm
    for task in shared.in_loop(lambda: list(shared.bridge._tasks.values())):
        shared.loop.call_soon_threadsafe(task.cancel)
    shared.in_loop(lambda: None)


def refused(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """Check an error for its form, and return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["error"]
    error = answer.json()["error"]
    assert sorted(error) == ["code", "details", "message", "retry", "timestamp"]
    assert error["code"] == code
    assert error["message"].endswith(".")
    assert isinstance(error["details"], dict)
    assert datetime.fromisoformat(error["timestamp"]).tzinfo is not None
    assert error["retry"] is (code in RETRY)
    return dict(error)


def states(served: Served) -> list[tuple[str, str | None]]:
    """Return state and code of every command of the log."""
    return [(row.state, row.code) for row in served.in_loop(lambda: served.log.read(select(COMMAND)))]


# ---------------------------------------------------------------- the seed's table


def no_engine(served: Served) -> httpx2.Response:
    served.engine.boot_id = None
    return served.http.get("/perception?agent_id=ada")


def no_agent(served: Served) -> httpx2.Response:
    served.engine.ids = ()
    return served.http.get("/perception")


def no_engine_for_a_command(served: Served) -> httpx2.Response:
    served.engine.boot_id = None
    return served.post()


def silent(served: Served) -> httpx2.Response:
    served.engine.silent = True
    return served.http.get("/perception?agent_id=ada")


def newer(served: Served) -> httpx2.Response:
    return served.post(command("dance", protocol_version="2.0.0", params=None))


def wrong_shape(served: Served) -> httpx2.Response:
    served.engine.body = {**BODY, "health": {"current": 3, "max": 2}}
    return served.http.get("/perception?agent_id=ada")


def unknown(served: Served) -> httpx2.Response:
    return served.post(command("dance", reasoning=3, agent_id=None))


def missing(served: Served) -> httpx2.Response:
    return served.post({name: value for name, value in command().items() if name != "reasoning"})


def busy(served: Served) -> httpx2.Response:
    served.then(forever)
    assert served.post().status_code == 202
    return served.post()


def not_logged(served: Served) -> httpx2.Response:
    begin = served.log.begin

    def full(*given: Any, **options: Any) -> str:
        raise StorageError("There is no room left.")

    served.log.begin = full  # type: ignore[method-assign]
    try:
        return served.post()
    finally:
        served.log.begin = begin  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("cause", "status", "code"),
    [
        (no_engine, 503, "BRIDGE_UNAVAILABLE"),
        (no_agent, 503, "BRIDGE_UNAVAILABLE"),
        (no_engine_for_a_command, 503, "BRIDGE_UNAVAILABLE"),
        (silent, 504, "PERCEPTION_TIMEOUT"),
        (newer, 422, "SCHEMA_MISMATCH"),
        (wrong_shape, 422, "SCHEMA_MISMATCH"),
        (unknown, 400, "INVALID_COMMAND"),
        (missing, 400, "VALIDATION_ERROR"),
        (busy, 409, "COMMAND_CONFLICT"),
        (not_logged, 500, "INTERNAL_ERROR"),
    ],
)
def test_every_error_of_the_seed(
    served: Served, cause: Callable[[Served], httpx2.Response], status: int, code: str
) -> None:
    before = len(served.engine.carried_out)
    refused(cause(served), status, code)
    assert len(served.engine.carried_out) == before + (code == "COMMAND_CONFLICT")
    (kind,) = [kind for kind in SEED_CODES if kind.code == code]
    assert (kind.http_status, kind.retryable) == (status, code in RETRY)


# ---------------------------------------------------------------- perceptions


def test_a_perception_and_a_status_are_as_the_seed_has_them(served: Served) -> None:
    seen = served.http.get("/perception", params={"agent_id": "bob"}).json()
    assert {name: seen[name] for name in ("agent_id", "timestamp", "protocol_version")} == {
        "agent_id": "bob",
        "timestamp": "2026-03-21T12:00:00Z",
        "protocol_version": "1.1.0",
    }
    assert seen["inventory_summary"]["encumbrance_pct"] == 1.2
    status = served.http.get("/morrowind/status").json()
    assert list(status)[:5] == [
        "bridge_connected", "engine", "protocol_version", "uptime_seconds", "last_perception_at"
    ]  # fmt: skip
    assert (status["bridge_connected"], status["last_perception_at"]) == (True, "2026-03-21T12:00:00Z")
    served.engine.boot_id = None
    status = served.http.get("/morrowind/status")
    assert (status.status_code, status.json()["bridge_connected"]) == (200, False)


@pytest.mark.parametrize("query", ["", "?agent_id=eve", "?agent_id=", "?agent_id=%E2%82%AC"])
def test_whoever_is_not_named_or_not_there_is_told_who_is(served: Served, query: str) -> None:
    error = refused(served.http.get(f"/perception{query}"), 400, "VALIDATION_ERROR")
    assert error["details"] == {"agent_ids": ["ada", "bob"]}


def test_one_agent_alone_need_not_be_named(served: Served) -> None:
    served.engine.ids = ("bob",)
    assert served.http.get("/perception").json()["agent_id"] == "bob"


DEEP: dict[str, Any] = {}
for _ in range(5000):
    DEEP = {"in": DEEP}


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        3,
        [],
        {**BODY, "location": {**BODY["location"], "x": float("nan")}},
        {**BODY, "location": {**BODY["location"], "cell": "\ud800"}},
        {**BODY, "raw_engine_data": {"x": float("inf")}},
        {**BODY, "raw_engine_data": {"\udfff": 1}},
        {**BODY, "raw_engine_data": {"x": b"\xff"}},
        {**BODY, "raw_engine_data": {"x": object()}},
        {**BODY, "raw_engine_data": DEEP},
        {**BODY, "nearby_entities": [{"entity_id": "a", "name": "\udc80", "entity_type": "npc", "distance": 1}]},
        {**BODY, "nearby_entities": None},
        {**BODY, "health": {"current": -1, "max": 10}},
        {**BODY, "fidelity": {"x": "guessed"}},
        {3: 4},
    ],
)
def test_nonsense_of_an_engine_is_a_mismatch_and_never_a_failure_of_the_bridge(
    served: Served, body: Any, caplog: pytest.LogCaptureFixture
) -> None:
    served.engine.body = body
    refused(served.http.get("/perception?agent_id=ada"), 422, "SCHEMA_MISMATCH")
    assert any("does not fit the schema" in record.getMessage() for record in caplog.records)


NAIVE = NOON.replace(tzinfo=None)
ODD: Any = 3


@pytest.mark.parametrize(
    "view", [None, "x", EngineView(NAIVE, 1, BODY), EngineView(NOON, -1, BODY), EngineView(ODD, 1, BODY)]
)
def test_views_of_another_shape_and_naive_timestamps_are_a_mismatch(served: Served, view: Any) -> None:
    async def perceive(agent_id: str) -> Any:
        return view

    served.engine.perceive = perceive  # type: ignore[method-assign]
    try:
        refused(served.http.get("/perception?agent_id=ada"), 422, "SCHEMA_MISMATCH")
    finally:
        del served.engine.perceive


def test_an_engine_that_raises_is_an_internal_error(served: Served) -> None:
    async def perceive(agent_id: str) -> EngineView:
        raise ZeroDivisionError

    served.engine.perceive = perceive  # type: ignore[method-assign]
    try:
        refused(served.http.get("/perception?agent_id=ada"), 500, "INTERNAL_ERROR")
    finally:
        del served.engine.perceive


# ---------------------------------------------------------------- commands


def test_a_command_is_accepted_exactly_as_the_seed_says_and_its_outcome_can_be_waited_for(served: Served) -> None:
    answer = served.post()
    accepted = answer.json()
    assert (answer.status_code, accepted) == (
        202,
        {"status": "accepted", "command_id": accepted["command_id"], "logged": True},
    )
    outcome = served.http.get(f"/command/{accepted['command_id']}", params={"wait": 30}).json()
    assert (outcome["state"], outcome["agent_id"], outcome["message"]) == ("confirmed", "ada", "Done.")
    refused(served.http.get("/command/cmd_none"), 404, "UNKNOWN_NAME")


@pytest.mark.parametrize(("name", "params"), [("noop", {}), ("journal_note", {"content": "Rain.", "tags": ["sky"]})])
def test_notes_and_empty_beats_pass_while_another_command_runs_and_are_done_at_once(
    served: Served, name: str, params: dict[str, Any]
) -> None:
    served.then(forever)
    running = served.post().json()["command_id"]
    for _ in range(3):
        served.in_loop(lambda: None)
    before = list(served.engine.carried_out)
    accepted = served.post(command(name, params=params)).json()
    assert served.http.get(f"/command/{accepted['command_id']}").json()["state"] == "confirmed"
    assert served.http.get(f"/command/{running}").json()["state"] == "dispatched"
    assert served.engine.carried_out == before
    busy = {agent["agent_id"]: agent["busy"] for agent in served.http.get("/agents").json()["agents"]}
    assert busy == {"ada": running, "bob": None}
    assert served.post(command(agent_id="bob")).status_code == 202


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"protocol_version": None}, "protocol_version"),
        ({"protocol_version": 1}, "protocol_version"),
        ({"timestamp": "2026-03-21T14:30:01"}, "timestamp"),
        ({"timestamp": 1774103400}, "timestamp: a timestamp is a text with a time zone, such as 2026-03-21T14:30:00Z"),
        ({"timestamp": "1774103400"}, "timestamp: a timestamp is a text"),
        ({"context": {"perception_timestamp": 1774103400}}, "perception_timestamp: a timestamp is a text"),
        ({"params": {"duration_seconds": "1"}}, "duration_seconds: Input should be a valid number"),
        ({"agent_id": ""}, "agent_id"),
        ({"params": None}, "params"),
        ({"params": {"duration_seconds": -1}}, "duration_seconds"),
        ({"command": "move_to", "params": {"target_x": 1}}, "move_to don't fit: target_x and target_y go together."),
        ({"command": "move_to", "params": {"target_x": 1, "target_y": 2, "target_entity_id": "cat"}}, "move_to"),
        ({"command": "dialogue", "params": {"entity_id": "cat"}}, "dialogue"),
        ({"command": "journal_note", "params": {"content": ""}}, "content"),
        ({"command": None}, "command"),
        ({"context": {"heartbeat_cycle": -1}}, "heartbeat_cycle"),
        ({"agent_id": "eve"}, "eve"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place_and_logged(
    served: Served, changes: dict[str, Any], where: str
) -> None:
    count = len(states(served))
    error = refused(served.post(command(**changes)), 400, "VALIDATION_ERROR")
    assert where in error["message"]
    assert states(served)[count:] == [("rejected", "VALIDATION_ERROR")]


def test_what_a_newer_minor_version_adds_is_accepted(served: Served) -> None:
    body = command(protocol_version="1.9.3", mood="calm", context={"perception_sequence": 0, "moon": 2})
    accepted = served.post(body)
    assert accepted.status_code == 202
    # What a client adds to the context is logged with it.
    record = served.in_loop(lambda: served.log.record(accepted.json()["command_id"]))
    assert record.context == {"perception_sequence": 0, "moon": 2}


def test_other_content_types_and_what_is_no_json_are_refused(served: Served) -> None:
    def sent(content: bytes, kind: str = "application/json") -> httpx2.Response:
        return served.http.post("/command", content=content, headers={"Content-Type": kind})

    refused(sent(json.dumps(command()).encode(), "text/plain"), 415, "UNSUPPORTED_MEDIA_TYPE")
    refused(sent(json.dumps(command()).encode(), "application/x-www-form-urlencoded"), 415, "UNSUPPORTED_MEDIA_TYPE")
    for content in (b"{", b'{"x": NaN}', b"\xff", b'{"a": 1, "a": 2}'):
        refused(sent(content), 400, "INVALID_JSON")
    for content in (b"", b"[]", b"null", b'"x"'):
        refused(sent(content), 400, "VALIDATION_ERROR")


def test_a_key_repeats_the_first_answer_and_is_good_for_one_command(served: Served) -> None:
    key = {"Idempotency-Key": "k1"}
    first, again = served.post(**key), served.post(**key)
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert served.engine.carried_out.count(first.json()["command_id"]) <= 1
    refused(served.post(command(reasoning="Another."), **key), 422, "IDEMPOTENCY_KEY_REUSED")
    served.engine.boot_id = None
    assert served.post(**key).json() == first.json()


@pytest.mark.slow
def test_changing_something_needs_the_token(served: Served) -> None:
    for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}):
        with httpx2.Client(base_url=served.url, headers=header) as other:
            for method, path in [("POST", "/command"), ("POST", "/agents"), ("DELETE", "/agents/ada"),
                                 ("POST", "/agents/ada/respawn"), ("POST", "/agents/ada/items")]:  # fmt: skip
                refused(other.request(method, path, json=command()), 401, "UNAUTHORIZED")
            assert other.get("/perception?agent_id=ada").status_code == (401 if header else 200)
    refused(served.http.get("/morrowind/status", headers={"Host": "evil.example"}), 421, "HOST_REFUSED")


@pytest.mark.slow
def test_a_bridge_that_trusts_this_machine_takes_commands_without_the_token() -> None:
    with serving("ada", trusting=True) as served, httpx2.Client(base_url=served.url) as seeds:
        assert seeds.post("/command", json=command()).status_code == 202
        refused(seeds.post("/command", json=command(), headers={"Authorization": "Bearer x"}), 401, "UNAUTHORIZED")


@pytest.mark.parametrize(
    ("path", "body"),
    [("/agents", {"agent_id": "eve"}), ("/agents/ada/respawn", None), ("/agents/ada/items", {"transfer_id": "t"})],
)
def test_what_the_engine_does_not_offer_is_said(served: Served, path: str, body: Any) -> None:
    refused(served.http.post(path, json=body), 501, "NOT_OFFERED")
    refused(served.http.delete("/agents/ada"), 501, "NOT_OFFERED")


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--agent", ""], "empty value"), (["--agent", "x" * 191], "1 to 190"), (["--agent", "a\udcff"], "printable"),
     (["--deadline", "nan"], "not a number"), (["--engine", "tes3mp", "--encoding", "cp1251"], "without --data")],
)  # fmt: skip
def test_what_a_bridge_cannot_serve_with_is_refused_before_it_starts(options: list[str], words: str) -> None:
    done = CliRunner().invoke(serve, ["--port", "0", *options])
    assert done.exit_code != 0
    assert words in done.output + str(done.exception)


@pytest.mark.parametrize(
    ("options", "host"),
    [([], "127.0.0.1"), (["--expose"], "0.0.0.0"), (["--expose", "--host", "10.1.2.3"], "10.1.2.3")],
)
def test_an_exposed_bridge_listens_for_other_machines(
    options: list[str], host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def listens(bridge: Bridge, address: Address, token: str, **more: Any) -> None:
        asked.append(address.host)

    monkeypatch.setenv("WSAP_HOME", str(tmp_path))
    monkeypatch.setattr("wsap_tes3mp.bridge.app.serve", listens)
    assert CliRunner().invoke(serve, options).exit_code == 0
    assert asked == [host]


def test_an_agent_whose_id_has_a_slash_is_reached_like_every_other(served: Served) -> None:
    served.engine.ids = ("a/b",)
    for answer in (
        served.http.post("/agents/a%2Fb/respawn"),
        served.http.post("/agents/a%2Fb/items", json={"transfer_id": "t"}),
        served.http.delete("/agents/a%2Fb"),
    ):
        refused(answer, 501, "NOT_OFFERED")
    refused(served.http.delete("/agents/a%2Fc"), 400, "VALIDATION_ERROR")


def test_events_tell_of_outcomes_perceptions_and_agents(served: Served) -> None:
    heard: dict[str, dict[str, Any]] = {}
    with served.http.stream("GET", "/events") as stream:
        lines = stream.iter_lines()
        assert next(lines) == ": hello"
        accepted = served.post(command(agent_id="bob")).json()["command_id"]
        served.engine.ids = ("ada", "bob", "cid")
        kind = ""
        for line in lines:
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                heard.setdefault(kind, json.loads(line[6:]))
            if len(heard) == 3:
                break
    assert heard["outcome"] == {"agent_id": "bob", "command_id": accepted, "state": "confirmed", "code": None}
    assert heard["agents"] == {"agent_id": "cid", "joined": True}
    assert heard["perception"]["agent_id"] in ("ada", "bob", "cid")


# ---------------------------------------------------------------- outcomes, in this process


def wanted(name: str = "wait", **changes: Any) -> CommandInput:
    return CommandInput.model_validate(command(name, **changes))


@pytest.mark.parametrize(
    ("said", "state", "code"),
    [
        (Done("failed", "No.", "OUT_OF_REACH", 3), "failed", "OUT_OF_REACH"),
        (None, "unknown", "SCHEMA_MISMATCH"),
        ("done", "unknown", "SCHEMA_MISMATCH"),
        (Done("finished"), "unknown", "SCHEMA_MISMATCH"),  # type: ignore[arg-type]
        (Done("confirmed", "", None, "3"), "unknown", "SCHEMA_MISMATCH"),  # type: ignore[arg-type]
        (Done("confirmed", "", None, 3, [1]), "unknown", "SCHEMA_MISMATCH"),  # type: ignore[arg-type]
        (Done("confirmed", "\ud800", None, 10**40, {"x": float("nan"), "y": {1}}), "confirmed", None),
        (ZeroDivisionError(), "unknown", "ENGINE_FAILED"),
    ],
)
def test_whatever_an_engine_says_of_a_command_there_is_an_outcome(said: Any, state: str, code: str | None) -> None:
    async def then() -> Any:
        if isinstance(said, Exception):
            raise said
        return said

    async def main() -> None:
        engine = ScriptedEngine("ada")
        engine.then = then
        with CommandLog() as log:
            bridge = Bridge(engine, log)
            accepted = await bridge.command(wanted())
            outcome = await bridge.outcome(accepted.command_id, wait=60)
            assert (outcome.state, outcome.code) == (state, code)
            outcome.model_dump_json()
            assert (await bridge.command(wanted())).status == "accepted"
            await bridge.stop()

    asyncio.run(main())


def test_a_command_that_never_ends_is_unknown_after_a_while_and_the_agent_free() -> None:
    async def main() -> None:
        engine, clock = ScriptedEngine("ada"), ManualClock()
        engine.then = forever
        with CommandLog() as log:
            bridge = Bridge(engine, log, clock=clock, patience=10)
            accepted = await bridge.command(wanted())
            for _ in range(20):
                await asyncio.sleep(0)
            await clock.advance(10.9)
            for _ in range(20):
                await asyncio.sleep(0)
            assert (await bridge.outcome(accepted.command_id)).state == "dispatched"
            await clock.advance(0.2)  # of a second that the command asks for itself
            for _ in range(20):
                await asyncio.sleep(0)
            outcome = await bridge.outcome(accepted.command_id)
            assert (outcome.state, outcome.code) == ("unknown", "COMMAND_TIMEOUT")
            engine.then = engine.confirm
            await bridge.command(wanted())
            await bridge.stop()

    asyncio.run(main())


def test_a_perception_is_stale_by_its_age_on_the_bridges_own_clock() -> None:
    async def main() -> None:
        engine, clock = ScriptedEngine("ada"), ManualClock()
        with CommandLog() as log:
            bridge = Bridge(engine, log, clock=clock, stale_after=5)
            seen = await bridge.perception()
            on_it = {"perception_timestamp": "2026-03-21T12:00:00Z", "perception_sequence": seen.sequence}
            await clock.advance(4)
            await bridge.command(wanted("noop", params={}, context=on_it))
            await clock.advance(2)
            with pytest.raises(StalePerceptionError):
                await bridge.command(wanted("noop", params={}, context=on_it))
            await bridge.perception()
            await bridge.command(wanted("noop", params={}, context=on_it))
            assert [row.state for row in log.read(select(COMMAND))] == ["confirmed", "rejected", "confirmed"]
            await bridge.stop()

    asyncio.run(main())


def test_the_age_at_which_perceptions_are_stale_is_an_option_of_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(bridge: Bridge, *_: Any, **__: Any) -> None:
        await bridge.start()
        context = {"perception_sequence": (await bridge.perception("agent")).sequence}
        while True:  # until the perception is old enough
            await bridge.command(wanted("noop", params={}, agent_id="agent", context=context))

    monkeypatch.setenv("WSAP_HOME", str(tmp_path))
    monkeypatch.setattr("wsap_tes3mp.bridge.app.serve", play)
    done = CliRunner().invoke(serve, ["--stale-after", "0.01"])
    assert isinstance(done.exception, StalePerceptionError)


def test_what_cannot_be_marked_as_sent_is_not_sent_and_an_outcome_is_written_as_soon_as_it_can_be() -> None:
    async def main() -> None:
        engine, clock = ScriptedEngine("ada"), ManualClock()
        with CommandLog() as log:
            bridge = Bridge(engine, log, clock=clock)
            mark, finish = log.dispatched, log.finish

            def full(*given: Any) -> Any:
                raise StorageError("There is no room left.")

            log.dispatched = full  # type: ignore[assignment]
            accepted = await bridge.command(wanted())
            outcome = await bridge.outcome(accepted.command_id, wait=60)
            assert (outcome.state, outcome.code, engine.carried_out) == ("failed", "INTERNAL_ERROR", [])
            log.dispatched, log.finish = mark, full  # type: ignore[assignment]
            accepted = await bridge.command(wanted())
            for _ in range(20):
                await asyncio.sleep(0)
            assert (await bridge.outcome(accepted.command_id)).state == "dispatched"
            log.finish = finish  # type: ignore[method-assign]
            await clock.advance(1)
            for _ in range(20):
                await asyncio.sleep(0)
            assert (await bridge.outcome(accepted.command_id)).state == "confirmed"
            await bridge.stop()

    asyncio.run(main())


def test_a_note_whose_outcome_cannot_be_written_at_once_is_accepted_and_confirmed_later() -> None:
    async def main() -> None:
        engine, clock = ScriptedEngine("ada"), ManualClock()
        engine.then = forever
        with CommandLog() as log:
            bridge, finish = Bridge(engine, log, clock=clock), log.finish
            running = await bridge.command(wanted())

            def full(*given: Any) -> Any:
                raise StorageError("There is no room left.")

            log.finish = full  # type: ignore[assignment]
            note = wanted().model_copy(update={"command": "journal_note", "params": {"content": "A note."}})
            accepted = await bridge.command(note, key="k")
            log.finish = finish  # type: ignore[method-assign]
            await clock.advance(1)
            for _ in range(20):
                await asyncio.sleep(0)
            assert (await bridge.outcome(accepted.command_id)).state == "confirmed"
            assert await bridge.command(note, key="k") == accepted
            with pytest.raises(CommandConflictError) as error:
                await bridge.command(wanted())
            assert error.value.details == {"command_id": running.command_id}
            await bridge.stop()

    asyncio.run(main())


@pytest.mark.slow
def test_a_bridge_that_stops_leaves_what_runs_unknown_and_another_one_settles_what_a_crash_left(tmp_path: Path) -> None:
    path = tmp_path / "commands.sqlite"
    with serving("ada", path=path) as served:
        served.then(forever)
        stopped = served.post().json()["command_id"]
        served.http.get("/morrowind/status")
    with CommandLog(path) as log:
        waiting, running = log.begin(wanted()), log.begin(wanted(agent_id="bob"))
        log.dispatched(running)
    with serving("ada", path=path) as served:
        found = {name: served.http.get(f"/command/{name}").json() for name in (stopped, waiting, running)}
    assert [found[name]["state"] for name in (stopped, waiting, running)] == ["unknown", "failed", "unknown"]


def test_errors_of_the_bridge_are_one_family() -> None:
    assert {kind.code for kind in SEED_CODES} == RETRY | {"SCHEMA_MISMATCH", "INVALID_COMMAND", "VALIDATION_ERROR"}
    assert all(issubclass(kind, BridgeError) for kind in SEED_CODES)
    assert NOON.tzinfo is UTC

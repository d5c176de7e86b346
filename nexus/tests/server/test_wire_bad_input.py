"""The wire API given what it must not take: each line of the list, answered in the one form with a stable code."""

from __future__ import annotations

import json
import socket
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from llm_server import ModelServer
from wire_server import Served, problem, serving

from wsap_core.errors import ConfigError, StorageVersionError
from wsap_nexus.http.access.auth import own_token
from wsap_nexus.http.access.guard import HttpLimits, Rates
from wsap_nexus.http.listening import Address, PortInUseError, listen
from wsap_nexus.http.refusals import NotJsonError, TooManyRequestsError
from wsap_nexus.http.strict import read_json
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import Policy


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("nexus")) as nexus:
        yield nexus


@pytest.fixture(scope="module")
def eve(served: Served) -> Iterator[httpx2.Client]:
    with served.register("eve") as client:
        yield client


def enter(client: httpx2.Client, agent: str, game: str, **values: object) -> httpx2.Response:
    return client.post("/nexus/transit/enter", json={"agent_id": agent, "game": game, **values})


# --- moves ----------------------------------------------------------------------------------------


def test_an_unknown_world_is_not_found_and_the_nearest_is_named(eve: httpx2.Client) -> None:
    answer = enter(eve, "eve", "craftr")
    assert problem(answer) == (404, "UNKNOWN_NAME")
    assert answer.json()["error"]["details"]["suggestions"] == ["crafter"]


@pytest.mark.parametrize("status", ["offline", "maintenance"])
def test_a_world_that_is_closed_says_why_and_that_one_may_try_again(
    served: Served, eve: httpx2.Client, status: str
) -> None:
    with served.client() as owner:
        owner.put("/nexus/games/echo/status", json={"status": status, "reason": "being painted"})
        answer = enter(eve, "eve", "echo")
        owner.put("/nexus/games/echo/status", json={"status": "available"})
    assert problem(answer) == (503, "GAME_UNAVAILABLE")
    assert "being painted" in answer.json()["error"]["message"]
    assert answer.json()["error"]["retry"] is True


def test_a_world_of_another_major_version_is_refused(served: Served, eve: httpx2.Client) -> None:
    from dataclasses import replace

    spec = served.nexus.catalog.spec("echo")
    served.nexus.catalog.known["echo"] = replace(spec, protocol_version="99.0.0")
    try:
        assert problem(enter(eve, "eve", "echo")) == (409, "GAME_INCOMPATIBLE")
    finally:
        served.nexus.catalog.known["echo"] = spec


HERE = {
    "persona": {"persona": "@/etc/hostname"},
    "model": {"model": "@~/.netrc"},
    "memory.embed": {"memory": "fulltext", "memory.embed": "@secret"},
    "skin": {"skin": "@~/.netrc"},
    "mcp.headers": {"mcp.headers": {"Cookie": "jar"}},
    "mcp.servers": {"mcp.servers": {"a": {"command": ["cat", "/etc/hostname"]}}},
    "mcp.command": {"tools": "mcp", "mcp.command": ["cat", "/etc/hostname"]},
    "mcp.cwd": {"mcp.cwd": "/"},
    "mcp.url": {"mcp.url": "http://127.0.0.1:1/"},
    "mcp.env": {"mcp.env": '{"PYTHONPATH": "/tmp"}'},
    "prompts": {"prompts": "/etc"},
    "memory.path": {"memory": "fulltext", "memory.path": "memories.db"},
    "memory.summary_model": {"memory": "fifo", "memory.summary_model": "storyteller//etc/x.toml"},
    "model.host": {"model.host": "http://127.0.0.1:1"},
    "model.api_key": {"model": "openai/x", "model.api_key": "env:HOME"},
    "model.key_variable": {"model": "openai/x", "model.key_variable": "HOME"},
    "model.base_url": {"model": "openai/x", "model.base_url": "http://127.0.0.1:1/v1"},
    "model.headers": {"model": "openai/x", "model.headers": {"X": "${HOME}"}},
    "model.extra": {"model": "openai/x", "model.extra": {"api_key": "env:HOME"}},
    "model.extra ": {"model": "litellm/x", "model.extra": {"api_base": "http://127.0.0.1:1/v1"}},
    "model.api_base": {"model": "litellm/x", "model.api_base": "http://127.0.0.1:1/v1"},
    "model ": {"model": "outlines/./weights"},
    "model  ": {"model": "outlines/vllm:~/weights"},
    "model   ": {"model": "storyteller/mine.toml"},
    "model    ": {"model": "outlines//mnt/disk:1/weights"},
    "model     ": {"model": "outlines/../weights:2"},
}
"""Options over the wire that would have the nexus use its own files, programs, keys or variables, by the option."""


@pytest.mark.parametrize("name", sorted(HERE))
def test_options_over_the_wire_name_no_file_and_no_program_of_the_machine(
    served: Served, eve: httpx2.Client, name: str
) -> None:
    policy = {"*": {"agent": "llm", "options": {"model": "ollama/small", **HERE[name]}}}
    with served.client() as owner:
        refused = owner.post("/nexus/agents", json={"id": "reader", "policies": policy})
        assert problem(refused) == (403, "FORBIDDEN")
        assert f"The option {name.strip()} names" in refused.json()["error"]["message"]
        assert owner.get("/nexus/agents/reader").status_code == 404
        assert problem(owner.patch("/nexus/agents/eve", json={"policies": policy})) == (403, "FORBIDDEN")
        assert owner.get("/nexus/agents/eve").json()["agent"]["policies"] == {"*": {"agent": "external", "options": {}}}


def test_options_over_the_wire_are_declared_and_the_harmless_ones_are_taken(served: Served) -> None:
    with served.client() as owner:
        unknown = {"*": {"agent": "llm", "options": {"model": "scripted/x", "model.reply": "a", "memory.pth": "/x"}}}
        refused = owner.post("/nexus/agents", json={"id": "odd", "policies": unknown})
        assert problem(refused) == (403, "FORBIDDEN")
        assert "memory.pth is declared by no part of the agent 'llm'" in refused.json()["error"]["message"]
        options = {"model": "scripted/x", "model.reply": "a", "memory": "fulltext", "memory.keep": 50, "window": 2}
        options |= {"tools": "notes,recall", "recall.tokens": 90, "notes.remember": "no", "persona": "Calm."}
        taken = {"*": {"agent": "llm", "options": options}, "echo": {"agent": "wanderer", "options": {"curiosity": 1}}}
        assert owner.post("/nexus/agents", json={"id": "mild", "policies": taken}).status_code == 201


def test_a_memory_file_and_the_environment_stay_out_of_reach_of_the_wire(
    served: Served, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMEBODYS_SECRET", "abcdef123456")
    here = {"model": "openai/x", "model.base_url": server.base_url, "model.api_key": "env:SOMEBODYS_SECRET"}
    file = {"model": "scripted/x", "model.reply": "a", "memory": "fulltext", "memory.path": str(tmp_path / "m.db")}
    with served.client() as owner:
        for options in (here, file):
            policies = {"*": {"agent": "llm", "options": options}}
            assert owner.post("/nexus/agents", json={"id": "reaching", "policies": policies}).status_code == 403
            assert owner.patch("/nexus/agents/eve", json={"policies": policies}).status_code == 403
    assert server.requests == []
    assert list(tmp_path.iterdir()) == []


def test_a_policy_that_was_set_at_the_machine_may_be_sent_back_as_it_is(served: Served) -> None:
    options = {"model": "ollama/small", "persona": "@persona.txt"}
    with served.nexus.nexus_store.change() as tx:
        tx.register("kept", policies={"*": Policy("llm", options)})
    with served.client() as owner:
        same = {"*": {"agent": "llm", "options": options}}
        assert owner.patch("/nexus/agents/kept", json={"policies": same}).status_code == 200
        other = {"*": {"agent": "llm", "options": {**options, "persona": "@other.txt"}}}
        assert problem(owner.patch("/nexus/agents/kept", json={"policies": other})) == (403, "FORBIDDEN")


def test_nobody_enters_twice(served: Served) -> None:
    with served.register("twice") as twice:
        assert enter(twice, "twice", "echo").status_code == 201
        assert problem(enter(twice, "twice", "crafter")) == (409, "ALREADY_IN_WORLD")


def test_who_is_in_no_world_leaves_none(eve: httpx2.Client) -> None:
    assert problem(eve.post("/nexus/transit/exit", json={"agent_id": "eve"})) == (409, "NOT_IN_WORLD")


def test_acting_needs_a_session_that_is_there_and_open(served: Served) -> None:
    with served.register("ghost") as ghost:
        assert problem(ghost.post("/nexus/sessions/session-99999999/act", json={"name": "noop"})) == (
            404,
            "UNKNOWN_NAME",
        )
        bridge = enter(ghost, "ghost", "echo").json()["bridge_url"]
        assert ghost.post(f"{bridge}/jack-out", json={}).status_code == 200
        assert problem(ghost.post(f"{bridge}/act", json={"name": "noop"})) == (410, "SESSION_CLOSED")
        assert problem(ghost.get(f"{bridge}/observation")) == (410, "SESSION_CLOSED")


def test_a_token_is_good_for_its_own_agent_alone(served: Served, eve: httpx2.Client) -> None:
    with served.register("mallory") as mallory:
        bridge = urlsplit(enter(mallory, "mallory", "echo").json()["bridge_url"]).path
    for path in ("/nexus/agents/mallory/observation", "/nexus/agents/mallory/messages", f"{bridge}/observation"):
        assert problem(eve.get(path)) == (403, "FORBIDDEN"), path
    for path in ("/nexus/agents/mallory/act", f"{bridge}/act"):
        assert problem(eve.post(path, json={"name": "noop"})) == (403, "FORBIDDEN"), path
    assert problem(eve.post("/nexus/transit/exit", json={"agent_id": "mallory"})) == (403, "FORBIDDEN")
    assert problem(eve.post("/nexus/agents", json={"id": "another"})) == (403, "FORBIDDEN")
    assert problem(eve.patch("/nexus/agents/eve", json={"persona": "Queen."})) == (403, "FORBIDDEN")


def test_private_things_and_changes_need_a_token_and_the_right_one(served: Served, eve: httpx2.Client) -> None:
    with served.client("") as nobody:
        assert problem(nobody.get("/nexus/agents/eve/observation")) == (401, "UNAUTHORIZED")
        assert problem(nobody.post("/nexus/agents", json={"id": "x"})) == (401, "UNAUTHORIZED")
        assert nobody.get("/nexus/agents/eve").status_code == 200
    with served.client("made-up") as stranger:
        answer = stranger.get("/nexus/agents/eve")
        assert problem(answer) == (401, "UNAUTHORIZED")
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_new_token_ends_the_old_one(served: Served) -> None:
    with served.register("renewed") as old, served.client() as owner:
        fresh = owner.post("/nexus/agents/renewed/token").json()["token"]
        assert problem(old.get("/nexus/agents/renewed/messages")) == (401, "UNAUTHORIZED")
        with served.client(fresh) as new:
            assert new.get("/nexus/agents/renewed/messages").status_code == 200


def test_the_token_of_an_agent_that_was_taken_out_is_good_no_longer(served: Served) -> None:
    with served.register("removed") as removed, served.client() as owner:
        assert removed.get("/nexus/agents/removed/messages").status_code == 200
        assert owner.delete("/nexus/agents/removed").status_code == 200
        assert problem(removed.get("/nexus/agents/removed/messages")) == (401, "UNAUTHORIZED")
        assert owner.post("/nexus/agents/removed/act", json={"name": "noop"}).status_code >= 400


def test_over_the_wire_no_file_of_this_machine_decides(served: Served) -> None:
    with served.client() as owner:
        for agent in ("./evil.py:Agent", "os:system", "..\\evil.py:Agent"):
            body = {"id": "filed", "policies": {"*": {"agent": agent}}}
            assert problem(owner.post("/nexus/agents", json=body)) == (403, "FORBIDDEN")
        body = {"id": "filed", "policies": {"./evil.py:Game": {"agent": "random"}}}
        assert owner.post("/nexus/agents", json=body).status_code == 404
        assert owner.get("/nexus/agents/filed").status_code == 404


def test_an_unknown_option_of_entering_is_a_mistake_that_is_told(eve: httpx2.Client) -> None:
    assert problem(enter(eve, "eve", "echo", dificulty="hard")) == (400, "VALIDATION_ERROR")
    assert problem(enter(eve, "eve", "echo", exit_when="health <")) == (400, "CONFIG")
    assert problem(enter(eve, "eve", "echo", avatar="nobody")) == (400, "USAGE")


def test_an_ability_that_a_game_lacks_is_not_implemented(served: Served) -> None:
    with served.register("blind") as blind, served.client() as owner:
        bridge = enter(blind, "blind", "echo").json()["bridge_url"]
        lacking = [blind.get(f"{bridge}/view"), owner.get(f"{bridge}/snapshot")]
        codes = {problem(answer) for answer in lacking if answer.status_code != 200}
        assert codes <= {(501, "ABILITY_MISSING")}
        assert problem(owner.post(f"{bridge}/restore", json={})) == (409, "SESSION_MANAGED")
        assert problem(blind.post(f"{bridge}/reset", json={})) == (409, "SESSION_MANAGED")
        assert problem(blind.post(f"{bridge}/admit", json={"transfer_id": "t"})) == (409, "SESSION_MANAGED")
        assert problem(blind.post(f"{bridge}/jack-in", json={"avatar_id": "x"})) == (409, "SESSION_MANAGED")


# --- bodies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff\xfe{}",
        b'{"id": "a", "id": "b"}',
        b'{"id": "a", "name": NaN}',
        b'{"id": "a", "name": -Infinity}',
        b'{"id": "a", "name": 1e999}',
        b'{"id": "a", "name": ' + b"9" * 30 + b"}",
        b'{"id": "a", "name": ' + b"9" * 5000 + b"}",
        b'{"id": "a", "name": "\\ud800"}',
        b'{"id": "a", "name": "\\u0000"}',
        b"[" * 40 + b"]" * 40,
        b"[" * 100_000,
    ],
    ids=lambda body: repr(body[:24]),
)
def test_a_body_that_can_not_be_kept_is_refused(served: Served, body: bytes) -> None:
    with pytest.raises(NotJsonError):
        read_json(body)
    with served.client() as owner:
        answer = owner.post("/nexus/agents", content=body, headers={"Content-Type": "application/json"})
    assert problem(answer) == (400, "INVALID_JSON")


def test_json_that_is_all_right_is_read_as_python_reads_it() -> None:
    text = '{"a": [1, -2.5, 1e3, 9223372036854775807, true, null, "\\ud83d\\ude00 é"], "b": {"c": {}}}'
    assert read_json(text.encode()) == json.loads(text)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_another_content_type_is_refused(served: Served, kind: str) -> None:
    with served.client() as owner:
        answer = owner.post("/nexus/agents", content=b'{"id": "typed"}', headers={"Content-Type": kind})
        assert problem(answer) == (415, "UNSUPPORTED_MEDIA_TYPE")
        assert owner.get("/nexus/agents/typed").status_code == 404


def test_a_body_over_a_mebibyte_is_refused_told_or_not(served: Served) -> None:
    large = b'{"id": "' + b"x" * 2**20 + b'"}'
    with served.client() as owner:
        headers = {"Content-Type": "application/json"}
        assert problem(owner.post("/nexus/agents", content=large, headers=headers)) == (413, "TOO_LARGE")
        parts = (large[at : at + 65536] for at in range(0, len(large), 65536))
        assert problem(owner.post("/nexus/agents", content=parts, headers=headers)) == (413, "TOO_LARGE")


@pytest.mark.parametrize(
    "path",
    [
        "/nexus/agents/../games",
        "/nexus/agents/%2e%2e/games",
        "/nexus/agents/..%2f..%2fetc%2fpasswd",
        "/nexus/agents/..%5c..%5cetc",
        "/nexus//agents",
        "/nexus/agents/%00",
        "/nexus/agents/%252e%252e",
    ],
)
def test_a_path_that_climbs_leads_nowhere(served: Served, path: str) -> None:
    assert raw(served, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")[:2] == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::2]", "", "127.0.0.1:1, evil.example",
        "127.0.0.1:1@evil.example", "[::1].evil.example",
    ],
)  # fmt: skip
def test_a_page_that_points_its_own_name_here_is_refused(served: Served, host: str) -> None:
    status, code, _ = raw(served, f"GET /nexus/agents HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    assert (status, code) == (421, "HOST_REFUSED")


@pytest.mark.parametrize("host", ["localhost:9998", "127.0.0.1", "[::1]:80", "LOCALHOST"])
def test_this_machine_by_any_of_its_names_is_let_in(served: Served, host: str) -> None:
    assert raw(served, f"GET /nexus/health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")[0] == 200


def test_no_answer_is_for_pages_of_other_origins(served: Served) -> None:
    with served.client("") as page:
        headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        asked = page.options("/nexus/agents", headers=headers)
        got = page.get("/nexus/agents", headers=headers)
    assert asked.status_code == 405
    assert not [name for name in (*asked.headers, *got.headers) if name.startswith("access-control")]


def test_a_client_that_sends_its_body_too_slowly_is_told_so(tmp_path: Path) -> None:
    with serving(tmp_path, limits=HttpLimits(body_seconds=0.1)) as served:
        head = f"POST /nexus/agents HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {served.token}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        status, code, _ = raw(served, head)
        assert (status, code) == (408, "REQUEST_TIMEOUT")


@pytest.mark.slow
def test_a_client_that_vanishes_leaves_everything_as_it_was(served: Served) -> None:
    with served.register("steady") as steady:
        url = urlsplit(served.url)
        for _ in range(5):
            with socket.create_connection((url.hostname, url.port or 0)) as gone:
                gone.sendall(b"GET /nexus/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                gone.recv(200)
        assert steady.post("/nexus/agents/steady/act", json={"name": "list_games"}).status_code == 200
        with served.client("") as anybody:
            # Each stream ends when its client is seen to be gone, which a request or two later it is.
            left = [anybody.get("/nexus/health").json()["streams"] for _ in range(200)]
    assert left[-1] == 0


@pytest.mark.parametrize(
    "name", ["a\nb", "\x1b[31mred", "\u202eevil", "x" * 81, " padded ", "\x07"], ids=lambda name: repr(name)[:12]
)
def test_a_name_that_moves_the_cursor_is_refused(served: Served, name: str) -> None:
    with served.client() as owner:
        assert owner.post("/nexus/agents", json={"id": "named", "name": name}).status_code == 400
        assert owner.get("/nexus/agents/named").status_code == 404


def test_an_agent_with_a_model_that_can_not_be_asked_is_refused_when_it_is_added(served: Served) -> None:
    deaf = {"*": {"agent": "llm", "options": {"model": "scripted/x"}}}
    with served.client() as owner:
        refused = owner.post("/nexus/agents", json={"id": "deaf", "policies": deaf})
        assert problem(refused) == (400, "USAGE")
        assert "The model scripted/x can't be used: The scripted backend requires" in refused.text
        assert owner.get("/nexus/agents/deaf").status_code == 404
        assert owner.post("/nexus/agents", json={"id": "deaf"}).status_code == 201
        assert problem(owner.patch("/nexus/agents/deaf", json={"policies": deaf})) == (400, "USAGE")
        again = owner.post("/nexus/agents", json={"id": "deaf", "policies": deaf})
        assert again.status_code == 200, "one that is known is only looked up"


def test_a_name_full_of_markup_is_just_a_name(served: Served) -> None:
    name = "<script>alert(1)</script> [bold]x[/bold] {{7*7}} ${x}"
    with served.client() as owner:
        assert owner.post("/nexus/agents", json={"id": "markup", "name": name}).json()["agent"]["name"] == name
        assert owner.get("/nexus/agents/markup").headers["content-type"] == "application/json"


@pytest.mark.parametrize("agent", ["../x", "A", "", "a" * 65, "a b", "-a", "é", "a\n", "a/b", "nexus"])
def test_an_id_that_is_none_is_refused(served: Served, agent: str) -> None:
    with served.client() as owner:
        assert problem(owner.post("/nexus/agents", json={"id": agent}))[0] == 400


# --- what one caller may take ---------------------------------------------------------------------


def test_a_caller_has_a_rate_and_is_told_when_there_is_room_again() -> None:
    now = [0.0]
    rates = Rates(10, 3, lambda: now[0])
    for _ in range(3):
        rates.take("eve")
    with pytest.raises(TooManyRequestsError) as refused:
        rates.take("eve")
    assert refused.value.after == pytest.approx(0.1)
    rates.take("bob")
    now[0] += 0.1
    rates.take("eve")


def test_too_many_requests_are_answered_with_when_to_come_again(tmp_path: Path) -> None:
    with serving(tmp_path, limits=HttpLimits(rate=0.001, burst=5)) as served, served.client("") as anybody:
        answers = [anybody.get("/nexus/health") for _ in range(7)]
    assert [a.status_code for a in answers] == [200] * 5 + [429] * 2
    assert problem(answers[-1]) == (429, "RATE_LIMITED")
    assert int(answers[-1].headers["retry-after"]) > 0


def test_clients_without_a_token_take_no_stream_from_those_with_one(tmp_path: Path) -> None:
    limits, lines = HttpLimits(streams=8, streams_each=3), []
    with serving(tmp_path, limits=limits) as served, ExitStack() as held:

        def opens(client: httpx2.Client, path: str = "/nexus/events") -> int:
            answer = held.enter_context(client.stream("GET", path))
            lines.append(answer.iter_lines())  # one that nobody holds closes the stream
            if answer.status_code == 200:
                next(lines[-1])
            return answer.status_code

        nobody, owner = held.enter_context(served.client("")), held.enter_context(served.client())
        eve, bob = held.enter_context(served.register("eve")), held.enter_context(served.register("bob"))
        assert [opens(nobody, path) for path in ("/nexus/events", "/nexus/events?also=pulse") * 2] == [
            200,
            200,
            200,
            503,
        ]
        assert [opens(eve) for _ in range(4)] == [200, 200, 200, 503]
        assert opens(bob) == 503, "the last quarter is for whoever runs the nexus"
        assert [opens(owner) for _ in range(3)] == [200, 200, 503]
        assert problem(nobody.get("/nexus/events")) == (503, "TOO_MANY_STREAMS")


# --- starting -------------------------------------------------------------------------------------


def test_a_port_in_use_is_told_with_what_to_do(served: Served) -> None:
    port = urlsplit(served.url).port or 0
    with pytest.raises(PortInUseError, match="choose another with --port"):
        listen(Address(port=port))


def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "wsap.db"
    with open_store(str(file)):
        pass
    with sqlite3.connect(file) as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StorageVersionError), open_store(str(file)):
        pass


def test_the_token_is_for_its_owner_alone_to_read(tmp_path: Path) -> None:
    file = tmp_path / "nexus.token"
    token = own_token(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert own_token(file) == token
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        own_token(file)
    file.write_text("short")
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="no token"):
        own_token(file)


def test_where_others_can_reach_it_reading_needs_the_token_too(tmp_path: Path) -> None:
    with serving(tmp_path, address=Address("0.0.0.0", 0)) as served:
        with served.client("") as nobody:
            for path in ("/nexus", "/nexus/agents", "/nexus/events", "/openapi.json", "/nexus/health"):
                assert problem(nobody.get(path)) == (401, "UNAUTHORIZED"), path
        with served.client() as owner:
            assert owner.get("/nexus/agents").status_code == 200


def test_a_token_that_guards_nothing_keeps_a_nexus_from_listening_for_others(tmp_path: Path) -> None:
    file = tmp_path / "nexus.token"
    own_token(file)
    file.chmod(0o666)
    with pytest.raises(ConfigError, match="chmod 600"), serving(tmp_path, address=Address("0.0.0.0", 0)):
        pass


def raw(served: Served, request: str) -> tuple[int, str, dict[str, object]]:
    """Send bytes as they are, and return the status, the code and the body of the answer."""
    url = urlsplit(served.url)
    with socket.create_connection((url.hostname, url.port or 0), timeout=300) as connection:
        connection.sendall(request.encode("latin-1"))
        answer = b""
        while b"\r\n\r\n" not in answer or not answer.rstrip().endswith(b"}"):
            part = connection.recv(65536)
            if not part:
                break
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    data = json.loads(body) if body else {}
    return int(head.split()[1]), str(data.get("error", {}).get("code")), data


def test_a_game_s_name_may_have_slashes(served: Served) -> None:
    with served.client() as owner:
        known = owner.get("/nexus/games/echo")
        assert known.json()["game"]["id"] == "echo"
        for name in ("pettingzoo:classic/chess-v6", "a/status"):
            refused = owner.get(f"/nexus/games/{name}")
            assert refused.json()["error"]["code"] == "UNKNOWN_NAME", "not a route that does not exist"
            refused = owner.put(f"/nexus/games/{name}/status", json={"status": "offline"})
            assert refused.json()["error"]["code"] == "UNKNOWN_NAME"

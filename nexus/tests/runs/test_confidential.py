"""Keys and passwords are used, and never recorded, exported or told."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hosts import host_with_ours
from hypothesis import given
from hypothesis import strategies as st

from wsap_core import PluginHost
from wsap_core.errors import ConfigError
from wsap_core.host import Registration
from wsap_core.seams.context import Context
from wsap_core.seams.model import Request
from wsap_core.specs import AdapterSpec, BackendSpec
from wsap_llm.mcp.connection import ToolServerError
from wsap_llm.scripted import ScriptedBackend
from wsap_llm.secrets import PREFIX, clean, redacted, secrets_in, with_secrets, without
from wsap_nexus.api import list_runs, play, resume_run
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.session import replies_of, start
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import Policy
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.store.upkeep.export import export_jsonl

SERVER = str(Path(__file__).parents[3] / "plugins" / "wsap-llm" / "tests" / "mcp_server" / "server.py")
SECRET = "sk-deep-lake-4711-xyzzy"


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"mcp.headers": {"Authorization": f"Bearer {SECRET}"}}, "MCP_HEADERS_AUTHORIZATION"),
        ({"mcp.env": {"LAKE": SECRET}}, "MCP_ENV_LAKE"),
        ({"mcp.env": json.dumps({"LAKE": SECRET})}, "MCP_ENV_LAKE"),
        ({"mcp.servers": {"wiki": {"headers": {"x-key": SECRET}}}}, "MCP_SERVERS_WIKI_HEADERS_X_KEY"),
        ({"mcp.servers": json.dumps({"wiki": {"env": {"A": SECRET}}})}, "MCP_SERVERS_WIKI_ENV_A"),
        ({"mcp.command": ["server", f"--api-key={SECRET}"]}, "MCP_COMMAND_1"),
        ({"mcp.command": ["server", "--token", SECRET, "x"]}, "MCP_COMMAND_2"),
        ({"mcp.url": f"https://me:{SECRET}@example.org/mcp"}, "MCP_URL"),
        ({"mcp.url": f"https://example.org/mcp?token={SECRET}"}, "MCP_URL"),
        ({"model.api_key": SECRET}, "MODEL_API_KEY"),
        ({"model.headers": {"x-gateway": SECRET}}, "MODEL_HEADERS_X_GATEWAY"),
        ({"model.extra": {"hf_token": SECRET}}, "MODEL_EXTRA_HF_TOKEN"),
        ({"password": SECRET}, "PASSWORD"),
    ],
)
def test_a_text_where_keys_stand_is_kept_as_a_reference_and_found_again_by_it(
    options: dict[str, Any], kept: str
) -> None:
    recorded = redacted(options)
    assert SECRET not in json.dumps(recorded)
    assert PREFIX + kept in json.dumps(recorded)
    assert any(SECRET in secret for secret in secrets_in(options))
    given = next(text for text in secrets_in(options) if SECRET in text)
    known = {PREFIX + kept: given}
    assert SECRET in json.dumps(with_secrets(recorded, known))
    assert redacted(with_secrets(recorded, known)) == recorded
    with pytest.raises(ConfigError, match=f"set the environment variable {PREFIX}{kept}"):
        with_secrets(recorded, {})


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ({"mcp.headers": {"Authorization": "Bearer ${LAKE_KEY}"}}, {"Authorization": f"Bearer {SECRET}"}),
        ({"mcp.env": {"KEY": "$LAKE_KEY"}}, {"KEY": SECRET}),
        ({"mcp.env": {"KEY": "env:LAKE_KEY"}}, {"KEY": SECRET}),
        ({"model.api_key": "${LAKE_KEY}"}, SECRET),
        ({"mcp.url": "https://example.org/mcp?token=${LAKE_KEY}"}, f"https://example.org/mcp?token={SECRET}"),
        ({"mcp.command": ["server", "--token=env:LAKE_KEY"]}, ["server", f"--token={SECRET}"]),
    ],
)
def test_a_reference_is_recorded_as_it_is_and_means_the_variable(options: dict[str, Any], meant: Any) -> None:
    assert redacted(options) == options
    assert list(with_secrets(options, {"LAKE_KEY": SECRET}).values()) == [meant]
    with pytest.raises(ConfigError, match="LAKE_KEY, which is not set"):
        with_secrets(options, {})


@pytest.mark.parametrize(
    "options",
    [
        {"model.reply": '{"action":"speak",  "params": {}}', "mcp.servers": '[1, {"env": 3}]', "note": "[not JSON"},
        {"persona": "You owe me $20 and env:iously ${much}."},
        {"env": "CartPole-v1", "headers": "yes", "key": "c minor", "tokens": 300, "max_tokens": 300},
        {"recall_tokens": 5, "model.key_variable": "MY_KEY", "model.base_url": "http://127.0.0.1:8000/v1"},
        {"model.base_url": "https://example.org/openai?api-version=2024"},
        {"mcp.command": ["python", "-c", "print('$HOME')"], "mcp.tools": ["get_token"]},
    ],
)
def test_what_is_not_confidential_stays_as_it_is(options: dict[str, Any]) -> None:
    assert redacted(options) == with_secrets(options, {}) == options
    assert secrets_in(options) == ()


_PLAIN = st.text("abc -./", max_size=8)
_HIDDEN = st.text("0123456789", min_size=12, max_size=20)
_TABLE = st.dictionaries(st.sampled_from(["A", "B_KEY", "x-auth"]), _HIDDEN, max_size=3)
_OPTIONS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "env": _TABLE,
            "headers": _TABLE,
            "api_key": _HIDDEN,
            "note": _PLAIN,
            "list": st.lists(_PLAIN, max_size=2),
        },
    ),
    lambda inner: st.dictionaries(st.sampled_from(["servers", "wiki", "mcp"]), inner, min_size=1, max_size=2),
    max_leaves=4,
)


@given(_OPTIONS)
def test_nothing_hidden_is_recorded_wherever_it_stands_and_all_of_it_comes_back(options: dict[str, Any]) -> None:
    recorded = json.dumps(redacted(options))
    known: dict[str, str] = {}

    def collect(value: Any, path: tuple[str, ...]) -> None:
        if isinstance(value, dict):
            for name, part in value.items():
                collect(part, (*path, name))
        elif isinstance(value, str) and value.isdigit():
            assert value not in recorded
            variable = PREFIX + "_".join(path).upper().replace("-", "_")
            known[variable] = value

    collect(options, ())
    assert with_secrets(json.loads(recorded), known) == options


def test_an_error_is_cleaned_with_all_that_is_behind_it() -> None:
    error, inner = ConfigError(f"It said: bad key {SECRET}"), ValueError(f"bad key {SECRET}")
    error.__cause__ = ExceptionGroup("several", [inner])
    clean(error, (SECRET,))
    assert str(error) == "It said: bad key (hidden)"
    assert str(inner) == "bad key (hidden)"
    assert without("as it is", ()) == "as it is"


# --- in a run -----------------------------------------------------------------------------------


@pytest.fixture
def host() -> PluginHost:
    def answer(request: Request) -> str:
        if "Result of" in request.messages[-1].text():
            return json.dumps({"action": "speak", "params": {"text": request.messages[-1].text()[:60]}})
        return json.dumps({"tool": "secret", "params": {}})

    own = host_with_ours()
    own.backends.add(
        Registration(BackendSpec("teller", "", lambda c: ScriptedBackend(answer, model="teller/x")), "t", "t")
    )
    return own


def options(value: str, kind: str = "stdio") -> dict[str, Any]:
    command = [sys.executable, SERVER, kind]
    return {"model": "teller/x", "tools": "mcp", "mcp.command": command, "mcp.env": {"LAKE_KEY": value}}


def leaks(folder: Path, database: Path) -> list[str]:
    """Where the secret can be read: the database's files byte for byte, and all that can be taken out."""
    found = [path.name for path in folder.iterdir() if path.is_file() and SECRET.encode() in path.read_bytes()]
    with open_store(str(database)) as store:
        for record in store.repository.list_runs():
            found += [line for line in export_jsonl(store.repository, record.id) if SECRET in line]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("given", ["text", "reference"])
def test_a_key_given_to_a_server_is_nowhere_in_the_record_and_the_run_can_be_gone_on_with(
    given: str, host: PluginHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    database = folder / "runs.db"
    monkeypatch.setenv("MY_LAKE_KEY", SECRET)
    value = SECRET if given == "text" else "env:MY_LAKE_KEY"
    controls = Controls()
    plan = RunPlan("echo", (SeatPlan("seat-1", "llm", options(value)),), steps=4, snapshot_every=1)
    with (
        open_store(str(database)) as store,
        start(plan, host, store, controls=controls, observers=[lambda _: controls.stop()]) as session,
    ):
        asyncio.run(session.play())
        told = [e.data for e in store.repository.read_events(str(session.run.run_id), kinds=("tool",))]
    assert "my key is (hidden)" in str(told), "the server has the key, and what it says of it is hidden"
    assert leaks(folder, database) == []

    variable = f"{PREFIX}MCP_ENV_LAKE_KEY"
    if given == "text":
        with pytest.raises(ConfigError, match=f"set the environment variable {variable}"):
            resume_run(database=str(database), host=host)
        monkeypatch.setenv(variable, SECRET)
    summary = resume_run(database=str(database), host=host)
    assert summary.steps == 4
    assert leaks(folder, database) == []
    monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("MY_LAKE_KEY")
    with open_store(str(database)) as store:
        again, past = replies_of(str(summary.run), store)
        with start(again, host, store, past=past) as session:
            assert asyncio.run(session.play()).trajectory_hash == summary.trajectory_hash, "a replay needs no key"


@pytest.mark.slow
def test_a_server_that_tells_its_key_when_it_fails_does_not_get_it_into_the_error_or_the_record(
    host: PluginHost, tmp_path: Path
) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    database = folder / "runs.db"
    with pytest.raises(ToolServerError, match=r"the key \(hidden\) is not accepted") as caught:
        play("echo", "llm", agent_options=options(SECRET, "telling"), steps=2, database=str(database), host=host)
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__
    assert len(list_runs(database=str(database))) == 1
    assert leaks(folder, database) == []


def test_a_game_is_given_what_a_reference_means(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[Any] = []

    def make(context: Context) -> object:
        given.append(context.config["api_key"])
        raise ConfigError(f"The key {context.config['api_key']} is not accepted.")

    monkeypatch.setenv("GAME_KEY", SECRET)
    database = tmp_path / "runs.db"
    with pytest.raises(ConfigError, match=r"The key \(hidden\) is not accepted"):
        play(AdapterSpec("locked", "", make), "random", options={"api_key": "$GAME_KEY"}, database=str(database))
    assert given == [SECRET]
    assert leaks(tmp_path, database) == []


def test_the_nexus_keeps_no_key_of_an_agent_or_a_world(tmp_path: Path) -> None:
    with Database.open(tmp_path / "wsap.db") as database:
        nexus_store = NexusStore(database)
        with nexus_store.change() as tx:
            agent, new = tx.register("anna", policies={"*": Policy("llm", options(SECRET))})
            world = tx.add_world("echo", "anna", 7, {"api_key": SECRET, "length": 7})
        assert new
        with nexus_store.look() as tx:
            kept = tx.agent("anna").policies["*"].options
    assert kept["mcp.env"] == agent.policies["*"].options["mcp.env"] == {"LAKE_KEY": f"env:{PREFIX}MCP_ENV_LAKE_KEY"}
    assert world.options == {"api_key": f"env:{PREFIX}API_KEY", "length": 7}
    assert [path.name for path in tmp_path.iterdir() if SECRET.encode() in path.read_bytes()] == []

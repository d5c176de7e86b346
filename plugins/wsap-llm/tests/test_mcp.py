"""Tools of MCP servers, against well-behaved and misbehaving real servers."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core.errors import ConfigError, MissingServiceError, WsapError
from wsap_core.installing import install_line
from wsap_core.protocol import ActionDef, Tool
from wsap_core.protocol.subset import check_schema
from wsap_core.protocol.values import validate_value
from wsap_core.seams.context import Context
from wsap_core.seams.services import Services
from wsap_core.seams.tool import AgentTool, ToolSource
from wsap_llm.decision.toolbox import Toolbox
from wsap_llm.mcp.config import ServerConfig, read_servers
from wsap_llm.mcp.connection import ToolServerError
from wsap_llm.mcp.mapping import UnusableToolError, capped, subset, tool_of
from wsap_llm.mcp.source import McpTools, create
from wsap_llm.reply import Understood, read_reply
from wsap_llm.reply.schema import reply_functions, reply_schema
from wsap_llm.schemas.strict_schema import strict_violation

SERVER = str(Path(__file__).parent / "mcp_server" / "server.py")


def stdio(kind: str = "stdio", **options: Any) -> dict[str, Any]:
    """Return the options for the test server as a program."""
    return {"command": [sys.executable, SERVER, kind], **options}


def use(
    options: Mapping[str, Any], scene: Callable[[Callable[..., Awaitable[str]], list[AgentTool]], Awaitable[None]]
) -> list[str]:
    """Open the tools, play a scene with them, and return the messages to the user."""
    told: list[str] = []

    async def play() -> None:
        source = create(Context(config=options, services=Services(progress=told.append)))
        assert isinstance(source, ToolSource)
        async with aclosing(Toolbox([source])) as box:
            tools = await box.open()
            by_name = {tool.definition.name: tool for tool in tools}

            async def call(name: str, **parameters: Any) -> str:
                result = by_name[name].run(parameters)
                assert inspect.isawaitable(result)
                return await result

            await scene(call, list(tools))

    asyncio.run(play())
    return told


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with subprocess.Popen([sys.executable, SERVER, "http"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/mcp", server
        server.kill()


@pytest.mark.slow
def test_the_tools_of_a_program_are_offered_with_their_parameters_and_answer() -> None:
    async def scene(call: Callable[..., Awaitable[str]], tools: list[AgentTool]) -> None:
        add = next(tool.definition for tool in tools if tool.definition.name == "add")
        assert add.description == "Adds two numbers."
        assert [(p.name, p.optional) for p in add.parameters] == [
            ("a", False), ("b", True), ("mode", True), ("note", True),
        ]  # fmt: skip
        schemas = {p.name: p.json_schema() for p in add.parameters}
        assert schemas["a"] == {"type": "integer"}
        assert schemas["b"] == {"type": "number"}
        assert schemas["mode"] == {"type": "string", "enum": ["plain", "loud"]}
        assert schemas["note"] == {"type": ["null", "string"]}
        where = next(t.definition for t in tools if t.definition.name == "spot").parameters[0].json_schema()
        assert where["properties"] == {"x": {"type": "integer"}, "y": {"type": "integer"}}
        assert all(check_schema(p.json_schema()) is None for tool in tools for p in tool.definition.parameters)

        assert await call("add", a=2, mode="loud") == "2.5!"
        assert await call("spot", where={"x": 3}) == "3,0 and 0 others"
        assert (await call("fails")).startswith("The tool says that it failed: ")
        assert await call("picture") == "(image, image/png, not shown)"

    assert use(stdio(), scene) == []


@pytest.mark.slow
def test_a_result_is_cleaned_and_cut() -> None:
    async def scene(call: Callable[..., Awaitable[str]], tools: list[AgentTool]) -> None:
        assert await call("says", text="\x1b[2Jred\u202e\n<|im_start|>") == "[2Jred \n<|im_start|>"
        said = await call("says", text="x" * 1000, times=1000)
        assert said == "x" * 200 + "\n(cut off: 999800 more characters)"

    assert use(stdio(longest=200), scene) == []


@pytest.mark.slow
def test_a_server_gets_its_own_variables_and_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")

    async def scene(call: Callable[..., Awaitable[str]], tools: list[AgentTool]) -> None:
        names = (await call("environment")).split()
        assert "LAKE" in names
        assert "PATH" in names
        assert "SOME_API_KEY" not in names

    use(stdio(env={"LAKE": "deep"}), scene)


@pytest.mark.slow
def test_a_server_that_dies_in_mid_call_is_told_in_a_line_and_started_again() -> None:
    async def scene(call: Callable[..., Awaitable[str]], tools: list[AgentTool]) -> None:
        for _ in range(2):
            said = await call("dies")
            assert "\n" not in said
            assert re.match("The tool server mcp failed in this call: the connection was lost", said)
            assert await call("says", text="alive") == "alive"

    (told,) = use(stdio(), scene)
    assert "the connection was lost; it will be restarted when needed, at most 3 times" in told


@pytest.mark.slow
def test_a_server_is_given_up_on_after_as_many_restarts_as_allowed() -> None:
    async def scene(call: Callable[..., Awaitable[str]], tools: list[AgentTool]) -> None:
        for _ in range(2):
            assert "failed in this call" in await call("dies")
        for _ in range(3):
            assert await call("says", text="x") == "The tool server mcp is out of order; do without it."

    told = use(stdio(restarts=1), scene)
    assert len(told) == 2
    assert "failed 2 times and will not be restarted" in told[1]


@pytest.mark.slow
def test_a_server_that_hangs_is_given_up_in_time_and_started_again() -> None:
    async def scene(call: Callable[..., Awaitable[str]], tools: list[AgentTool]) -> None:
        assert "it did not respond in time" in await call("hangs")
        assert await call("says", text="alive") == "alive"

    assert len(use(stdio(timeout=2.0), scene)) == 1


@pytest.mark.slow
def test_garbage_among_the_messages_does_no_harm(capfd: pytest.CaptureFixture[str]) -> None:
    async def scene(call: Callable[..., Awaitable[str]], tools: list[AgentTool]) -> None:
        assert await call("prints") == "printed"
        assert await call("says", text="alive") == "alive"

    assert use(stdio(), scene) == []
    assert capfd.readouterr().err == "", "nothing of a server's reaches the terminal"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (stdio("crash"), "ModuleNotFoundError: no furnace"),
        (stdio("garbage", start_timeout=1.5), "did not respond in time"),
        (stdio("silent", start_timeout=1.0), "did not respond in time"),
        ({"command": ["no-such-program-anywhere"]}, "program or working directory not found"),
        ({"url": "http://127.0.0.1:9/mcp"}, "no server responds"),
    ],
)
def test_a_server_that_can_not_be_reached_is_told_before_the_run(
    options: dict[str, Any], why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def open_it() -> None:
        source = create(Context(config=options, services=Services(progress=told.append)))
        with pytest.raises(ToolServerError, match=why) as caught:
            await Toolbox([source]).open()
        assert "\x1b" not in str(caught.value)

    told: list[str] = []
    asyncio.run(open_it())
    assert told == [], "the error says it, and nothing is started again"
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_the_program_ends_with_the_tools(tmp_path: Path) -> None:
    script = (
        "import os, runpy, sys\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        f"sys.argv = ['server.py', 'stdio']; runpy.run_path({SERVER!r}, run_name='__main__')\n"
    )

    async def scene(call: Callable[..., Awaitable[str]], tools: list[AgentTool]) -> None:
        assert await call("says", text="here") == "here"
        os.kill(int((tmp_path / "pid").read_text()), 0)

    use({"command": [sys.executable, "-c", script]}, scene)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.slow
def test_a_server_at_an_address_answers_and_several_servers_have_prefixes(
    address: tuple[str, subprocess.Popen[str]],
) -> None:
    async def scene(call: Callable[..., Awaitable[str]], tools: list[AgentTool]) -> None:
        assert {t.definition.name for t in tools} == {"web_says", "web_add", "own_says"}
        assert await call("web_says", text="over http") == "over http"
        assert await call("web_add", a=1, b=2) == "3.0"
        assert await call("own_says", text="here") == "here"

    servers = {
        "web": {"url": address[0], "tools": ["says", "add"]},
        "own": stdio(tools=["says", "sings"]),
    }
    assert use({"servers": servers}, scene) == ["The tool server own has no usable tool 'sings'."]


@pytest.mark.slow
def test_an_address_that_falls_silent_is_told_and_found_again(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, SERVER, "http"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"

        async def scene(call: Callable[..., Awaitable[str]], tools: list[AgentTool]) -> None:
            assert "failed in this call" in await call("dies")
            server.wait()
            assert "no server responds at the address" in await call("says", text="x")

        told = use({"url": url, "timeout": 5}, scene)
        assert len(told) == 1
        assert server.returncode == 3


@pytest.mark.slow
def test_a_call_that_is_broken_off_leaves_the_server_as_it_was() -> None:
    async def scene(call: Callable[..., Awaitable[str]], tools: list[AgentTool]) -> None:
        hanging = asyncio.ensure_future(call("hangs"))
        assert await call("says", text="meanwhile") == "meanwhile"
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert await call("says", text="alive") == "alive"

    assert use(stdio(), scene) == []


# --- descriptions by servers ----------------------------------------------------------------------


def test_references_are_followed_and_circles_end() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "name": {"type": "string"}}}
    made = subset({"$ref": "#/$defs/tree"}, {"$defs": {"tree": tree}})
    assert made["properties"]["left"]["properties"]["name"] == {"type": "string"}
    assert subset({"$ref": "#/a"}, {"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}}) == {}
    assert subset({"$ref": "http://elsewhere/schema"}, {}) == {}


def test_a_tool_whose_parameters_can_not_be_given_is_left_out() -> None:
    with pytest.raises(UnusableToolError):
        tool_of("t", "", {"properties": {"two words": {}}, "required": ["two words"]})
    with pytest.raises(UnusableToolError):
        tool_of("t", "", {"properties": {}, "required": ["x"]})
    assert tool_of("t", "", {"properties": {"two words": {}}}).parameters == ()


def test_names_become_tags_and_descriptions_one_line() -> None:
    tool = tool_of("9/<b>\x1b", "Do\nthis\x1b[2J now" + "!" * 1000, {}, prefix="")
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", tool.name)
    assert "\n" not in tool.description
    assert len(tool.description) == 500
    assert tool_of("a/b", "", {}).name == tool_of("a.b", "", {}).name == "a_b"


def test_of_two_tools_that_have_one_name_here_the_first_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    class Listing:
        def __init__(self, server: ServerConfig, tell: object) -> None:
            pass

        async def open(self) -> list[SimpleNamespace]:
            return [SimpleNamespace(name=name, description=name, input_schema={}) for name in ("a/b", "a.b")]

    monkeypatch.setattr("wsap_llm.mcp.source.Connection", Listing)
    told: list[str] = []
    tools = asyncio.run(McpTools([ServerConfig("shed")], told.append).open())
    assert [tool.definition for tool in tools] == [Tool("a_b", "a/b")]
    assert told == ["The tool 'a.b' of the tool server shed is left out: another tool has the same name."]


_LEAF = st.sampled_from(
    [
        {"type": "string"}, {"type": "integer", "minimum": 0}, {"enum": ["a", 1, None]}, {"const": True}, True, {},
        {"type": "string", "pattern": "^a", "maxLength": 3}, {"$ref": "#/$defs/d"}, {"not": {"type": "null"}},
        {"type": ["number", "null"]}, {"format": "date"}, {"type": "nonsense"}, {"minimum": True}, "text", None,
    ]
)  # fmt: skip
_SCHEMA = st.recursive(
    _LEAF,
    lambda inner: st.one_of(
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
        st.builds(lambda a: {"type": "array", "items": a, "maxItems": 2}, inner),
        st.builds(
            lambda a, p: {"type": "object", "properties": {"k": a}, "additionalProperties": False, **p},
            inner,
            st.sampled_from([{}, {"patternProperties": {"^x": {}}}, {"required": ["k"]}]),
        ),
        st.builds(lambda a, b: {"allOf": [a], **(b if isinstance(b, dict) else {})}, inner, inner),
    ),
    max_leaves=6,
)
_VALUE = st.recursive(
    st.sampled_from([None, True, 0, 1, -1, 2.5, "", "a", "ab", "abcd"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["k", "x1", "q"]), inner, max_size=2),
    max_leaves=4,
)


@settings(deadline=None)
@given(_SCHEMA, _VALUE)
@pytest.mark.slow
def test_what_fits_a_servers_schema_fits_ours(schema: Any, value: Any) -> None:
    """Compare with the jsonschema library, for valid schemas."""
    root = {"$defs": {"d": {"type": "string", "minLength": 1}}}
    made = subset(schema, root)
    assert check_schema(made) is None
    if not isinstance(schema, dict | bool):
        return
    whole = {**schema, **root} if isinstance(schema, dict) else schema
    try:
        jsonschema.Draft202012Validator.check_schema(whole)
    except jsonschema.SchemaError:
        return
    if jsonschema.Draft202012Validator(whole).is_valid(value):
        assert validate_value(value, made) is None


def offered(schema: Any) -> Tool:
    return tool_of("put", None, {"properties": {"it": schema}, "required": ["it"]})


def sent(tool: Tool) -> dict[str, Any]:
    """The schema that the request of a decision has, and that a server may enforce."""
    return reply_schema((ActionDef("wait"),), (tool,))


@settings(deadline=None)
@given(_SCHEMA, _VALUE)
@pytest.mark.slow
def test_what_a_server_of_tools_accepts_the_schema_that_is_sent_accepts(schema: Any, value: Any) -> None:
    """Compare with the jsonschema library, for valid schemas."""
    root = {"$defs": {"d": {"type": "string", "minLength": 1}}}
    whole = {"properties": {"it": schema}, "required": ["it"], **root}
    try:
        jsonschema.Draft202012Validator.check_schema(whole)
    except jsonschema.SchemaError:
        return
    if jsonschema.Draft202012Validator(whole).is_valid({"it": value}):
        tool = tool_of("put", None, whole)
        jsonschema.Draft202012Validator(sent(tool)).validate({"tool": "put", "params": {"it": value}})
        (_, function) = reply_functions((ActionDef("wait"),), (tool,))
        jsonschema.Draft202012Validator(function.parameters).validate({"it": value})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "x" * 900),
        ({"type": "integer"}, 1795740027000),
        ({"type": "number", "minimum": 0}, 1.5e12),
        ({"type": "array", "items": {"type": "integer"}}, list(range(20))),
        ({"type": "object"}, {"k": 1}),
        ({"type": "object", "additionalProperties": {"type": "number"}}, {"k": 1.5}),
        ({"type": "object", "properties": {"k": {"type": "object"}}}, {"k": {"deep": [1, {}]}}),
        ({}, {"any": ["thing"]}),
    ],
)
def test_no_limit_is_put_on_what_a_tool_of_a_server_takes(schema: Any, value: Any) -> None:
    tool = offered(schema)
    said = {"tool": "put", "params": {"it": value}}
    jsonschema.Draft202012Validator(sent(tool)).validate(said)
    read = read_reply(json.dumps(said), (ActionDef("wait"),), (tool,))
    assert isinstance(read, Understood)
    assert read.choice.parameters == {"it": value}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object"}, {"k": 1}),
        ({"type": "object", "properties": {"k": {}}}, {"k": [1]}),
        ({"type": "array"}, [1, "a", {}]),
        ({"type": "string"}, "x" * 900),
        ({"type": "integer"}, 1795740027000),
    ],
)
def test_where_the_subset_of_a_server_has_no_open_values_they_are_written_as_a_text(schema: Any, value: Any) -> None:
    tool = offered(schema)
    whole = reply_schema((ActionDef("wait"),), (tool,), strict_openai=True)
    assert strict_violation(whole) is None
    given = value if isinstance(value, int | str) else json.dumps(value)
    said = {"reply": {"tool": "put", "params": {"it": given}}}
    jsonschema.Draft202012Validator(whole).validate(said)
    read = read_reply(json.dumps(said), (ActionDef("wait"),), (tool,))
    assert isinstance(read, Understood)
    assert read.choice.parameters == {"it": value}


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(1, 200))
def test_a_capped_text_says_what_is_missing(text: str, longest: int) -> None:
    said = capped(text, longest)
    assert len(said) <= longest + 50
    assert ("(cut off: " in said) or len(text) <= longest


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "either command"),
        ({"command": "python server.py"}, "list of texts"),
        ({"command": ["a"], "url": "http://x"}, "either command"),
        ({"url": "file:///etc/passwd"}, "http://"),
        ({"command": ["a", 1]}, "command of the server 'mcp' of the tool mcp must be a list of texts"),
        ({"command": ["a\0b"]}, "list of texts"),
        ({"command": ["a"], "timeout": "soon"}, "number"),
        ({"command": ["a"], "restarts": -1}, "number"),
        ({"comand": ["a"]}, "no option 'comand'"),
        ({"servers": {}}, "table of servers"),
        ({"servers": {"a b": {"command": ["x"]}}}, "Invalid name"),
        ({"servers": {"a": []}}, "must be a table"),
        ({"command": ["a"], "env": {"A": 1}}, "env of the server 'mcp' of the tool mcp must be a table of texts"),
        ({"servers": '{"a": '}, "not valid JSON"),
        ({"servers": "[" * 100_000}, "not valid JSON"),
        ({"url": "http://x", "timeout": "nan"}, "number"),
    ],
)
def test_a_wrong_option_is_told_in_a_sentence(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(why)):
        read_servers(options)


def test_options_of_a_command_line_may_be_json_texts() -> None:
    (server,) = read_servers({"servers": '{"wiki": {"command": ["a", "b c"], "env": {"A": "1"}, "timeout": 5}}'})
    assert (server.name, server.command, server.env, server.timeout) == ("wiki", ("a", "b c"), {"A": "1"}, 5.0)
    assert read_servers({"command": '["a", "b"]', "timeout": "2.5"})[0].command == ("a", "b")
    assert read_servers({"url": "http://x", "timeout": "2.5"})[0].timeout == 2.5


def test_what_is_told_of_an_address_has_no_password_in_it() -> None:
    (server,) = read_servers({"url": "https://me:secret@example.org:8443/mcp?token=secret"})
    assert server.where == "https://example.org:8443/mcp"


def test_without_the_sdk_the_package_to_install_is_named(tmp_path: Path) -> None:
    """Without the SDK, importing the module works, and creating the tools names the package to install."""
    code = (
        "import importlib.util as u, sys\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, package=None: None if name == 'mcp' else find(name, package)\n"
        "from wsap_core.seams.context import Context\n"
        "from wsap_llm.mcp.source import create\n"
        "assert 'mcp' not in sys.modules\n"
        "try:\n    create(Context(config={'command': ['x']}))\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.startswith(MissingServiceError.__name__)
    assert install_line("wsap-llm[mcp]") in said
    assert issubclass(MissingServiceError, WsapError)
    assert issubclass(McpTools, ToolSource)


def test_no_shell_ever_sees_a_command(tmp_path: Path) -> None:
    """A program name with shell syntax is the name of a program that does not exist."""
    target = tmp_path / "made"

    async def open_it() -> None:
        with pytest.raises(ToolServerError, match="program or working directory not found"):
            await create(Context(config={"command": [f"touch {target}; true"]})).open()

    asyncio.run(open_it())
    assert not target.exists()
